"""Where a new file belongs and how it would be called; what is done again and again. Only with evidence, and only proposed."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from memdir.traces.collect import naming
from memdir.traces.events import Event

SUGGESTIONS_MAX: Final = 5
REPEATS_MIN: Final = 3
STEPS: Final = range(3, 16)
PROCEDURES_MAX: Final = 20
_WORD: Final = re.compile(r"[^\W\d_]{3,}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Suggestion:
    """A folder and a name for a file, how sure (0 to 1), and files that are alike and lie there; paths of this machine."""

    folder: str
    name: str
    score: float
    evidence: tuple[str, ...]


def suggest(events: Iterable[Event], name: str, text: str = "", *, named_folder: str = "") -> list[Suggestion]:
    """For a file called `name` that says `text`, by where files of its kind and of its words were put. Of folders that are
    equally good the one in which it is, or shall be, comes first."""
    placed = _placed(events)
    extension = _extension(name)
    words = _words(f"{name} {text[:20_000]}")
    scored: dict[str, list[tuple[float, str]]] = {}
    for (root, path), content in placed.items():
        own = _words(f"{path} {content[:20_000]}")
        shared = len(words & own) / max(1.0, (len(words) * len(own)) ** 0.5)
        score = shared + (0.2 if _extension(path) == extension else 0.0)
        if score > 0:
            scored.setdefault(_folder(root + path), []).append((score, root + path))
    made = []
    names: dict[str, Counter[str]] = {}
    for root, path in placed:
        names.setdefault(_folder(root + path), Counter())[naming(path)] += 1
    for folder, found in scored.items():
        found.sort(reverse=True)
        best = sum(score for score, _ in found[:3]) / 3
        evidence = tuple(path for _, path in found[:3])
        made.append(Suggestion(folder=folder, name=_named(name, names[folder]), score=min(1.0, best), evidence=evidence))
    return sorted(made, key=lambda one: (-one.score, one.folder != named_folder, one.folder))[:SUGGESTIONS_MAX]


def _placed(events: Iterable[Event]) -> dict[tuple[str, str], str]:
    """Where files stand now as far as events tell (a root and a path in it), with what they said."""
    placed: dict[tuple[str, str], str] = {}
    for event in events:
        root = event.root.rstrip("/")
        place = (root, event.path)
        if event.type in ("file_write", "file_copy"):
            placed[place] = str(event.fields.get("content", placed.get(place, "")))
        elif event.type in ("file_move", "file_rename"):
            old = str(event.fields["old_path"])
            below = [path for at, path in placed if at == root and path.startswith(old + "/")]
            for path in [old] if (root, old) in placed else below:
                placed[root, event.path + path[len(old) :]] = placed.pop((root, path))
        elif event.type == "file_delete":
            placed.pop(place, None)
    return placed


def _folder(path: str) -> str:
    return path.rpartition("/")[0] or "/"


def _named(name: str, styles: Counter[str]) -> str:
    """As the files of its folder are called, where most of them are called alike."""
    style, count = styles.most_common(1)[0]
    stem, dot, extension = name.rpartition(".") if "." in name.lstrip(".") else (name, "", "")
    if count < 2 or count * 2 <= styles.total() or naming(name) == style:
        return name
    words = [word.casefold() for word in re.findall(r"[^\W_]+", re.sub(r"(?<=[a-z])(?=[A-Z])", " ", stem))]
    joined = {"snake": "_".join(words), "kebab": "-".join(words), "spaced": " ".join(words)}
    return joined.get(style, stem) + dot + extension


def _extension(path: str) -> str:
    name = path.rpartition("/")[2]
    return name.rpartition(".")[2].casefold() if "." in name else ""


def _words(text: str) -> set[str]:
    return {word.casefold() for word in _WORD.findall(text)}


# procedures


@dataclass(frozen=True, slots=True, kw_only=True)
class Procedure:
    """Steps that were done in several sessions in the same order, and those sessions."""

    steps: tuple[str, ...]
    sessions: tuple[str, ...]


def procedures(events: Iterable[Event]) -> list[Procedure]:
    """Sequences of REPEATS_MIN sessions or more, the longest first; what is mostly part of a longer one of the same sessions is
    left out."""
    by_session: dict[str, list[str]] = {}
    for event in events:
        if event.is_counted:
            steps = by_session.setdefault(event.session, [])
            step = _step(event)
            if steps and event.type in ("file_edit", "file_write") and steps[-1] == _step(event, "read"):
                steps.pop()  # who edits a file opens it
            if not steps or steps[-1] != step:
                steps.append(step)
    found: dict[tuple[str, ...], set[str]] = {}
    begins = {session: set(range(len(steps))) for session, steps in by_session.items()}
    for size in STEPS:  # what is repeated begins and ends with something shorter that is
        sized: dict[tuple[str, ...], set[str]] = {}
        for session, steps in by_session.items():
            for at in begins[session]:
                if at + size <= len(steps):
                    sized.setdefault(tuple(steps[at : at + size]), set()).add(session)
        repeated = {part: sessions for part, sessions in sized.items() if len(sessions) >= REPEATS_MIN}
        found |= {part: sessions for part, sessions in repeated.items() if len(set(part)) >= 3}
        for session, steps in by_session.items():
            there = {at for at in begins[session] if tuple(steps[at : at + size]) in repeated}
            begins[session] = {at for at in there if at + 1 in there}
    kept: list[Procedure] = []
    for steps_found, sessions in sorted(found.items(), key=lambda item: (-len(item[0]), -len(item[1]), item[0])):
        if any(_is_part(steps_found, one.steps) and sessions <= set(one.sessions) for one in kept):
            continue
        kept.append(Procedure(steps=steps_found, sessions=tuple(sorted(sessions))))
        if len(kept) == PROCEDURES_MAX:
            break
    return kept


def _is_part(part: Sequence[str], whole: Sequence[str]) -> bool:
    """Whether most of it stands in the other one: the same steps, begun a little earlier or later, are told once."""
    threes = {tuple(whole[at : at + 3]) for at in range(len(whole) - 2)}
    own = [tuple(part[at : at + 3]) for at in range(len(part) - 2)]
    return 2 * sum(one in threes for one in own) > len(own)


_VERBS: Final = {
    "file_read": "read", "file_browse": "list", "file_search": "search", "file_write": "write", "file_edit": "edit",
    "dir_create": "make the folder", "file_copy": "copy to", "file_move": "move to", "file_delete": "delete",
    "file_rename": "rename to",
}  # fmt: skip


def _step(event: Event, verb: str | None = None) -> str:
    """Numbers in names count alike: `2026-11-02.md` and `2026-11-09.md` are one step."""
    return f"{verb or _VERBS[event.type]} {re.sub(r'[0-9]+', 'N', event.path)}"


def skill(procedure: Procedure, number: int) -> str:
    """A draft of a SKILL.md, to be read and changed by a person."""
    steps = "\n".join(f"{at}. {step[:1].upper()}{step[1:]}" for at, step in enumerate(procedure.steps, start=1))
    what = f"From '{procedure.steps[0]}' to '{procedure.steps[-1]}', as it was done {len(procedure.sessions)} times"
    seen = f"Seen in sessions {', '.join(procedure.sessions)}. A draft: check it before you use it. N stands for numbers."
    return f"---\nname: procedure-{number}\ndescription: {what}\n---\n\n{seen}\n\n{steps}\n"


def as_json(one: Suggestion) -> dict[str, Any]:
    return {"folder": one.folder, "name": one.name, "score": round(one.score, 3), "evidence": list(one.evidence)}
