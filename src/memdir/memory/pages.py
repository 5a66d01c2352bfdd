"""The pages of the folder `profile/`: all that is known, by people, projects, and what changed. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from memdir.memory.dates import DAY_MS, day_of
from memdir.memory.entities import Entities
from memdir.memory.file_names import kind_of_subject
from memdir.memory.profile import FORGOTTEN_BELOW, freshness, profile
from memdir.store.types import Memory

PAGE_MAX_CHARS: Final = 60_000
CHANGES_DAYS: Final = 7
_ALL_TOKENS: Final = 1_000_000
_FORMER_MAX: Final = 3
"""Facts that one took the place of, shown with it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """A fact that holds, where it is said (`memory/me.md:3`; empty: by a call), and what was so before, the latest first."""

    memory: Memory
    place: str = ""
    former: Sequence[Memory] = ()


def pages(known: Sequence[Known], *, now_ms: int) -> dict[str, str]:
    """Texts by file name."""
    by_id = {one.memory.id: one for one in known}
    shown = profile([one.memory for one in known], now_ms=now_ms, budget_tokens=_ALL_TOKENS)
    entities = Entities(one.memory for one in known)
    static, dynamic = ([by_id[memory.id] for memory in one] for one in (shown.static, shown.dynamic))
    facts = [*static, *dynamic]
    people, projects = entities.people(), entities.projects()
    for one in facts:
        name, path = entities.named(one.memory.candidate.subject), one.place.rpartition(":")[0]
        kind = kind_of_subject(path, one.memory.candidate.subject)
        if kind == "person":
            people, projects = people | {name}, projects - {name}
        elif kind == "project":
            people, projects = people - {name}, projects | {name}
    return {
        "core.md": _page("Core knowledge", "What lasts, the most important first.", map(_line, static)),
        "recent.md": _page("Recent context", "The latest first.", map(_line, dynamic)),
        "people.md": _page("People", "Who is known, and what of them.", _grouped(facts, entities, people)),
        "projects.md": _page("Projects", "What is worked on.", _grouped(facts, entities, projects)),
        "changes.md": _page("Changes", f"What changed in {CHANGES_DAYS} days, the latest first.", _changes(known, now_ms)),
    }  # fmt: skip


def _page(title: str, about: str, lines: Iterable[str]) -> str:
    text = f"# {title}\n\n{about} Made from your files; to change it, change those.\n\n"
    left_out = 0
    for line in lines:
        if left_out or len(text) + len(line) > PAGE_MAX_CHARS:
            left_out += 1
        else:
            text += line + "\n"
    return text + (f"\n{left_out} lines more: `memdir memory list`\n" if left_out else "")


def _line(one: Known) -> str:
    memory = one.memory
    began = memory.candidate.valid_from_ms
    since = ""
    if began is not None:
        is_plan = began > (memory.candidate.said_ms or began)
        since = f"{'from' if is_plan else 'since'} {day_of(began)}" if memory.candidate.kind == "static" else str(day_of(began))
    notes = ", ".join(part for part in (one.place, since) if part)
    return f"- {' '.join(memory.candidate.text.split())}" + (f" ({notes})" if notes else "")


def _grouped(facts: Sequence[Known], entities: Entities, names: set[str]) -> Iterable[str]:
    """A heading for each name, those with most facts first."""
    of_name: Mapping[str, list[Known]] = {name: [] for name in names}
    for one in facts:
        for name in entities.names_in(one.memory.candidate) & names:
            of_name[name].append(one)
    for name, own in sorted(of_name.items(), key=lambda item: (-len(item[1]), item[0])):
        if own:
            yield f"## {_written(name, own)}"
            yield from map(_line, own)
            yield ""


def _written(name: str, facts: Sequence[Known]) -> str:
    """As the facts write it."""
    for one in facts:
        at = one.memory.candidate.text.casefold().find(name)
        if at >= 0:
            return one.memory.candidate.text[at : at + len(name)]
    return name.title()


def _changes(known: Sequence[Known], now_ms: int) -> Iterable[str]:
    """New facts, and those that took the place of others, with both."""
    since = now_ms - CHANGES_DAYS * DAY_MS
    fresh = [one for one in known if one.memory.created_at_ms >= since and _is_shown(one.memory, now_ms)]
    for one in sorted(fresh, key=lambda one: (-one.memory.created_at_ms, one.memory.candidate.start_byte, one.memory.id)):
        day = day_of(one.memory.created_at_ms)
        if one.former:
            former = " ".join(f"~~{' '.join(before.candidate.text.split())}~~" for before in one.former[:_FORMER_MAX])
            yield f"- {day}: {former} → {_line(one)[2:]}"
        else:
            yield f"- {day}: new: {_line(one)[2:]}"


def _is_shown(memory: Memory, now_ms: int) -> bool:
    return memory.candidate.kind == "static" or freshness(memory, now_ms=now_ms) >= FORGOTTEN_BELOW
