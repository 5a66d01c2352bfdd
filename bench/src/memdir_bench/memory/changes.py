"""What people note of a change in plain words, and whether the fact that it ends is gone, and no other."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources import files

from memdir.memory.profile import profile
from memdir_bench.memory.judging import DAY_MS, Store

_FIRST_MS = 20_000 * DAY_MS
_LATER_DAYS = 9
_JOURNAL = ("/memory/2024-10-13.md", "Slept badly. Long walk by the river. ")
"""A page of a journal, and what else stands on it."""


@dataclass(frozen=True, slots=True)
class Changes:
    """Facts that a later note ends, those of them that were shown before and are no longer; facts that it does not, those
    still shown."""

    to_end: int
    ended: int
    to_stay: int
    stayed: int


def changes(family: str, *, in_journal: bool = False) -> Changes:
    """Of a family, `tuned` or `held`: each pair is two notes of its own, the later one on a page of a journal if so wished."""
    counts = {"ends": [0, 0], "stays": [0, 0]}
    for kind, before, after in pairs(family):
        counts[kind][0] += 1
        counts[kind][1] += before in _shown(before) and (
            (before in _shown(before, after, in_journal=in_journal)) == (kind == "stays")
        )
    return Changes(*counts["ends"], *counts["stays"])


def pairs(family: str) -> list[tuple[str, str, str]]:
    """`ends` or `stays`, the earlier note, the later one."""
    found: list[tuple[str, str, str]] = []
    kind = ""
    for line in files("memdir_bench.memory").joinpath("changes", f"{family}.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            kind = line.removeprefix("## ")
        elif line and not line.startswith("#"):
            before, _, after = line.partition(" | ")
            found.append((kind, before, after))
    return found


def _shown(*notes: str, in_journal: bool = False) -> list[str]:
    """The profile after them."""
    store = Store()
    for number, note in enumerate(notes):
        path, lead = _JOURNAL if number and in_journal else (f"/memory/{number}/notes.md", "")
        store.write(path, lead + note, now_ms=_FIRST_MS + number * _LATER_DAYS * DAY_MS)
    shown = profile(store.latest(), now_ms=_FIRST_MS + _LATER_DAYS * DAY_MS)
    return shown.static_texts + shown.dynamic_texts
