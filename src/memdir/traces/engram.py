"""One session, condensed: how it was done (17 numbers, and some more), what about, and in which steps. Deterministic; no model.

The 17 are FileGram's Table 6, exactly; ratios are over at least 1. Derived events, and work in bulk, are not counted.
"""

from __future__ import annotations

import re
import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from memdir.traces.collect import naming
from memdir.traces.events import Event, depth_of

FEATURES: Final = (
    "search_ratio", "browse_ratio", "revisit_ratio", "avg_output_length", "files_created", "total_output_chars", "dirs_created",
    "max_dir_depth", "files_moved", "total_edits", "avg_lines_changed", "small_edit_ratio", "total_deletes", "delete_to_create",
    "structured_files", "md_table_rows", "image_files",
)  # fmt: skip
EXTENDED: Final = (
    "reads", "edits_per_file", "backup_ratio", "named_ratio", "versioned_ratio", "burstiness", "output_types",
    "structure_density", "casual_density", "documentation_ratio",
)  # fmt: skip
SMALL_EDIT_LINES: Final = 10
STRUCTURED: Final = frozenset({"csv", "json", "xlsx", "yaml", "xml", "tsv"})
IMAGES: Final = frozenset({"png", "jpg", "jpeg", "svg", "gif"})
CHUNK_CHARS: Final = 800
CHUNKS_MAX: Final = 50
EPISODES_MAX: Final = 5
_STYLE_WORDS_MIN: Final = 50
"""Of what was written in a session, for its tone and structure to tell anything."""
EPISODE_EVENTS_MIN: Final = 3
_TABLE_ROW: Final = re.compile(r"^\|.*\|", re.MULTILINE)
_STRUCTURE: Final = re.compile(r"^(?:#{1,6} |[-*+] |\d+\. |\|)", re.MULTILINE)
_CASUAL: Final = re.compile(
    r"\b(?:I'm|I'll|don't|can't|it's|won't|gonna|wanna|yeah|ok|okay|lol|btw|hey|stuff)\b|!|[\U0001f300-\U0001faff]",
    re.IGNORECASE,
)
_VERSIONED: Final = re.compile(r"(?:^|[-_ .])v\d+(?:\.\d+)*(?:[-_ .]|$)", re.IGNORECASE)
_DOCUMENTATION: Final = re.compile(
    r"(?:^|/)(?:readme|index|notes?|changelog|summary|overview|contributing|todo)\b", re.IGNORECASE
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Episode:
    """Some events of a session that belong together, by their places in it: half open."""

    title: str
    first: int
    last: int
    summary: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Engram:
    """A session. `features` and `extended` by name; `has` says which of them rest on something that happened."""

    session: str
    begins_ms: int
    ends_ms: int
    actors: tuple[str, ...]
    counts: Mapping[str, int]
    features: Mapping[str, float]
    extended: Mapping[str, float]
    has: frozenset[str]
    languages: Mapping[str, int]
    file_types: Mapping[str, int]
    naming: Mapping[str, int]
    names: tuple[str, ...]
    descriptor: str
    chunks: tuple[tuple[str, str], ...]
    """Path, and up to CHUNK_CHARS characters of what was written or changed there."""
    episodes: tuple[Episode, ...]

    @property
    def vector(self) -> list[float]:
        """The 17 numbers in the order of FEATURES."""
        return [self.features[name] for name in FEATURES]


def engrams(events: Iterable[Event]) -> list[Engram]:
    """Of all sessions, in the order of their beginnings."""
    sessions: dict[str, list[Event]] = {}
    for event in events:
        if event.is_counted:
            sessions.setdefault(event.session, []).append(event)
    made = [engram(session, found) for session, found in sessions.items()]
    return sorted(made, key=lambda one: (one.begins_ms, one.session))


def engram(session: str, events: Sequence[Event]) -> Engram:
    """Of the events of one session that count, in any order."""
    events = sorted((one for one in events if one.is_counted), key=lambda one: (one.timestamp_ms, one.id))
    created = [one for one in events if one.type == "file_write" and one.fields.get("operation") == "create"]
    edits = [one for one in events if one.type == "file_edit"]
    counts = Counter(one.type for one in events)
    texts = [(one.path, str(one.fields["content"])) for one in created if "content" in one.fields]
    features = _fingerprint(events, created, edits, counts)
    changed = [(one.path, "".join(str(part[2]) for part in one.fields.get("delta", ()))) for one in edits]
    return Engram(
        session=session,
        begins_ms=events[0].timestamp_ms if events else 0,
        ends_ms=events[-1].timestamp_ms if events else 0,
        actors=tuple(sorted({one.actor for one in events})),
        counts=dict(sorted(counts.items())),
        features=features,
        extended=_extended(events, created, edits, texts),
        has=_evidence(counts, created, edits, texts),
        languages=dict(Counter(_language(text) for _, text in texts if len(text) > 40)),
        file_types=dict(Counter(str(one.fields.get("file_type") or "") for one in created)),
        naming=dict(Counter(naming(one.path) for one in created)),
        names=tuple(sorted({one.path.rpartition("/")[2] for one in created}))[:10],
        descriptor=_descriptor(features, texts),
        chunks=tuple(_chunks([*texts, *changed])),
        episodes=tuple(_episodes(events)),
    )


def _fingerprint(
    events: Sequence[Event], created: Sequence[Event], edits: Sequence[Event], counts: Mapping[str, int]
) -> dict[str, float]:
    looked = max(1, counts.get("file_read", 0) + counts.get("file_browse", 0) + counts.get("file_search", 0))
    lengths = [float(one.fields.get("length") or 0) for one in created]
    lines = [_changed_lines(one) for one in edits]
    depths = [depth_of(one.path) for one in events if one.type == "dir_create"]
    reads = [one for one in events if one.type == "file_read"]
    rows = sum(len(_TABLE_ROW.findall(str(one.fields.get("content", "")))) for one in created)
    values = (
        counts.get("file_search", 0) / looked,
        counts.get("file_browse", 0) / looked,
        sum(int(one.fields.get("view_count") or 1) > 1 for one in reads) / max(1, len(reads)),
        sum(lengths) / max(1, len(lengths)),
        len(created),
        sum(lengths),
        len(depths),
        max(depths, default=0),
        counts.get("file_move", 0),
        len(edits),
        sum(lines) / max(1, len(lines)),
        sum(one < SMALL_EDIT_LINES for one in lines) / max(1, len(lines)),
        counts.get("file_delete", 0),
        counts.get("file_delete", 0) / max(1, len(created)),
        sum(one.fields.get("file_type") in STRUCTURED for one in created),
        rows,
        sum(one.fields.get("file_type") in IMAGES for one in created),
    )
    return dict(zip(FEATURES, map(float, values), strict=True))


def _changed_lines(event: Event) -> int:
    return int(event.fields.get("lines_added") or 0) + int(event.fields.get("lines_deleted") or 0)


def _extended(
    events: Sequence[Event], created: Sequence[Event], edits: Sequence[Event], texts: Sequence[tuple[str, str]]
) -> dict[str, float]:
    copies = [one for one in events if one.type == "file_copy"]
    risky = sum(one.type in ("file_edit", "file_delete") for one in events)
    chars = max(1, sum(len(text) for _, text in texts))
    words = max(1, sum(len(text.split()) for _, text in texts))
    named = [naming(one.path) for one in created]
    values = (
        sum(one.type == "file_read" for one in events),
        len(edits) / max(1, len({one.path for one in edits})),
        sum(bool(one.fields.get("is_backup")) for one in copies) / max(1, risky),
        max(Counter(named).values(), default=0) / max(1, len(named)) if set(named) != {"plain"} else 0.0,
        sum(_VERSIONED.search(one.path.rpartition("/")[2]) is not None for one in created) / max(1, len(created)),
        _burstiness([one.timestamp_ms for one in events]),
        len({one.fields.get("file_type") for one in created}),
        1000 * sum(len(_STRUCTURE.findall(text)) for _, text in texts) / chars,
        1000 * sum(len(_CASUAL.findall(text)) for _, text in texts) / words,
        sum(_DOCUMENTATION.search(one.path) is not None for one in created) / max(1, len(created)),
    )
    return dict(zip(EXTENDED, map(float, values), strict=True))


def _burstiness(times: Sequence[int]) -> float:
    """(σ - μ) / (σ + μ) of the pauses: -1 for a clock, 0 for chance, towards 1 for bursts (Goh and Barabási, "Burstiness and
    memory in complex systems", 2008)."""
    pauses = [later - earlier for earlier, later in pairwise(times)]
    if len(pauses) < 2:
        return 0.0
    mean, deviation = statistics.fmean(pauses), statistics.pstdev(pauses)
    return (deviation - mean) / (deviation + mean) if deviation + mean else 0.0


def _evidence(
    counts: Mapping[str, int], created: Sequence[Event], edits: Sequence[Event], texts: Sequence[tuple[str, str]]
) -> frozenset[str]:
    """Names of features that say something of this session: who created nothing has no habit of long files in it."""
    has: set[str] = set()
    looked = counts.get("file_read", 0) + counts.get("file_browse", 0) + counts.get("file_search", 0)
    if looked >= EPISODE_EVENTS_MIN:
        has |= {"search_ratio", "browse_ratio", "revisit_ratio", "reads"}
    if created:
        has |= {
            "avg_output_length", "files_created", "total_output_chars", "delete_to_create", "structured_files", "md_table_rows",
            "image_files", "named_ratio", "versioned_ratio", "output_types", "documentation_ratio",
        }  # fmt: skip
    if created or counts.get("dir_create") or counts.get("file_move"):
        has |= {"dirs_created", "max_dir_depth", "files_moved"}
    if edits:
        has |= {"total_edits", "avg_lines_changed", "small_edit_ratio", "edits_per_file", "backup_ratio"}
    if counts.get("file_delete"):
        has |= {"total_deletes", "delete_to_create", "backup_ratio"}
    if sum(len(text.split()) for _, text in texts) >= _STYLE_WORDS_MIN:
        has |= {"structure_density", "casual_density"}
    if sum(counts.values()) > EPISODE_EVENTS_MIN:
        has.add("burstiness")
    return frozenset(has)


_STOPWORDS: Final[Mapping[str, frozenset[str]]] = {
    "en": frozenset("the and of to in is that for with was on as are this it".split()),  # noqa: SIM905
    "de": frozenset("der die und das ist nicht mit den von zu ein eine auf für im".split()),  # noqa: SIM905
    "fr": frozenset("le la les et des est une pour dans que qui sur pas avec au".split()),  # noqa: SIM905
    "es": frozenset("el la los y de que en es una para con por del se las".split()),  # noqa: SIM905
}


_LANGUAGE_CHARS: Final = 12_000
"""Some 2,000 words."""


def _language(text: str) -> str:
    """By its small words; `other` where none of four stands out."""
    words = re.findall(r"\w+", text[:_LANGUAGE_CHARS].casefold())
    scores = {name: sum(word in known for word in words) for name, known in _STOPWORDS.items()}
    best = max(scores, key=lambda name: (scores[name], name))
    return best if words and scores[best] >= 0.05 * len(words) else "other"


def _descriptor(features: Mapping[str, float], texts: Sequence[tuple[str, str]]) -> str:
    """What was written, in a few words; empty where nothing was."""
    if not texts:
        return ""
    text = "\n".join(part for _, part in texts)
    size = features["avg_output_length"]
    parts = ["long" if size >= 3000 else "short" if size <= 800 else "middling"]
    parts += ["with headings"] if re.search(r"^#{1,6} ", text, re.MULTILINE) else []
    parts += ["with tables"] if features["md_table_rows"] else []
    parts += ["with lists"] if len(re.findall(r"^[-*+] ", text, re.MULTILINE)) > len(texts) else []
    return f"{len(texts)} texts, {', '.join(parts)}" if len(texts) > 1 else f"a text, {', '.join(parts)}"


def _chunks(texts: Sequence[tuple[str, str]]) -> Sequence[tuple[str, str]]:
    """First the beginning of each text, then what follows in each."""
    parts = [
        (at, number, path, text[at : at + CHUNK_CHARS])
        for number, (path, text) in enumerate(texts)
        for at in range(0, min(len(text), CHUNKS_MAX * CHUNK_CHARS), CHUNK_CHARS)
        if text[at : at + CHUNK_CHARS].strip()
    ]
    return [(path, part) for _, _, path, part in sorted(parts)[:CHUNKS_MAX]]


# episodes

_PHASES: Final[Mapping[str, str]] = {
    "file_read": "Reading", "file_browse": "Looking around", "file_search": "Searching", "file_write": "Writing",
    "file_edit": "Revising", "dir_create": "Organising", "file_copy": "Organising", "file_move": "Organising",
    "file_rename": "Organising", "file_delete": "Cleaning up",
}  # fmt: skip


def _episodes(events: Sequence[Event]) -> list[Episode]:
    """Cut where what is done changes, or after a long pause; at most EPISODES_MAX, of EPISODE_EVENTS_MIN events or more."""
    if len(events) < 2 * EPISODE_EVENTS_MIN:
        return [_episode(events, 0, len(events))] if events else []
    scored = sorted(
        range(EPISODE_EVENTS_MIN, len(events) - EPISODE_EVENTS_MIN + 1),
        key=lambda at: (-_novelty(events, at), at),
    )
    cuts: list[int] = []
    for at in scored:
        if len(cuts) == EPISODES_MAX - 1 or (cuts and _novelty(events, at) < _NOVELTY_MIN):
            break
        if all(abs(at - other) >= EPISODE_EVENTS_MIN for other in cuts):
            cuts.append(at)
    edges = [0, *sorted(cuts), len(events)]
    return [_episode(events, first, last) for first, last in pairwise(edges)]


_NOVELTY_MIN: Final = 0.6
_WINDOW: Final = 4


def _novelty(events: Sequence[Event], at: int) -> float:
    """How different what comes after a place is from what comes before: phases and folders (1 - Jaccard), and the pause."""
    before, after = events[max(0, at - _WINDOW) : at], events[at : at + _WINDOW]
    phases = _apart({_PHASES[one.type] for one in before}, {_PHASES[one.type] for one in after})
    folders = _apart({one.path.rpartition("/")[0] for one in before}, {one.path.rpartition("/")[0] for one in after})
    pause = events[at].timestamp_ms - events[at - 1].timestamp_ms
    whole = max(1, events[-1].timestamp_ms - events[0].timestamp_ms)
    return 0.6 * phases + 0.2 * folders + 0.4 * pause / whole


def _apart(before: set[str], after: set[str]) -> float:
    return 1 - len(before & after) / max(1, len(before | after))


def _episode(events: Sequence[Event], first: int, last: int) -> Episode:
    part = events[first:last]
    phases = Counter(_PHASES[one.type] for one in part)
    folders = Counter(one.path.rpartition("/")[0] or "/" for one in part)
    (phase, _), (folder, _) = phases.most_common(1)[0], folders.most_common(1)[0]
    files = sorted({one.path.rpartition("/")[2] for one in part} - {""})
    what = ", ".join(f"{count} {name.casefold()}" for name, count in phases.most_common())
    named = ", ".join(files[:4]) + (f" and {len(files) - 4} more" if len(files) > 4 else "")
    summary = f"{len(part)} event{'s' * (len(part) > 1)} ({what})" + (f": {named}" if named else "")
    return Episode(title=f"{phase} in {folder}", first=first, last=last, summary=summary)
