"""One event: something that somebody did with a file. Twelve types, by the names of FileGram's Table 5.

`cross_file_ref` and `context_switch` are derived from the others, marked so, and never counted.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from typing import Any, Final, Literal, get_args

EventType = Literal[
    "file_read", "file_browse", "file_search", "file_write", "file_edit", "dir_create", "file_copy", "file_move", "file_delete",
    "file_rename", "cross_file_ref", "context_switch",
]  # fmt: skip
TYPES: Final[frozenset[str]] = frozenset(get_args(EventType))
DERIVED: Final = frozenset({"cross_file_ref", "context_switch"})
LINES_MAX: Final = 5000
"""Of a text whose changes are told line by line; one with more is told whole."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """`path` is absolute in its root (a mount, a watched folder); `fields` are the type's own, as in `Table 5`."""

    id: str
    type: str
    timestamp_ms: int
    session: str
    actor: str
    """Name of the program."""
    pid: int
    root: str
    path: str
    fields: Mapping[str, Any] = field(default_factory=dict)
    raw: str = ""
    """The operation, or operations, that it was made of."""

    @property
    def depth(self) -> int:
        """0 for the root itself, 1 for what stands in it."""
        return depth_of(self.path)

    @property
    def is_counted(self) -> bool:
        """Whether it tells how somebody works: it is not derived, and no part of work in bulk."""
        return not self.is_derived and not self.fields.get("is_bulk")

    @property
    def is_derived(self) -> bool:
        return self.type in DERIVED

    def as_json(self) -> dict[str, Any]:
        """As `memdir traces list --json` shows it, and as it stands in the log."""
        return {
            "id": self.id, "type": self.type, "path": self.path, "timestamp_ms": self.timestamp_ms, "session": self.session,
            "actor": {"pid": self.pid, "name": self.actor}, "root": self.root, "depth": self.depth, "raw": self.raw,
            **self.fields,
        }  # fmt: skip

    @staticmethod
    def of_json(found: Mapping[str, Any]) -> Event:
        """ValueError for what is none."""
        if found.get("type") not in TYPES:
            raise ValueError(f"{str(found.get('type'))[:40]!r} is no type of events")
        actor = found.get("actor") or {}
        own = {
            key: value for key, value in found.items()
            if key not in ("id", "type", "path", "timestamp_ms", "session", "actor", "root", "depth", "raw")
        }  # fmt: skip
        return Event(
            id=str(found["id"]), type=str(found["type"]), timestamp_ms=int(found["timestamp_ms"]),
            session=str(found["session"]), actor=str(actor.get("name", "")), pid=int(actor.get("pid", 0)),
            root=str(found.get("root", "")), path=str(found["path"]), fields=own, raw=str(found.get("raw", "")),
        )  # fmt: skip


def depth_of(path: str) -> int:
    """Components of a path."""
    return len([part for part in path.split("/") if part])


def hash_of(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def text_of(data: bytes) -> str | None:
    """Contents as text; None for what is none."""
    if b"\0" in data:
        return None
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return None


Delta = Sequence[Sequence[Any]]
"""Changes of lines, from the first to the last: [first line, line after the last, text in their place], counted from 0 in the
former text."""


def delta(before: str, after: str) -> list[list[Any]]:
    """What changed, so that `applied(before, delta(before, after)) == after`."""
    old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    if max(len(old), len(new)) > LINES_MAX:
        return [[0, len(old), after]]
    changes = SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    return [[i1, i2, "".join(new[j1:j2])] for tag, i1, i2, j1, j2 in changes if tag != "equal"]


def applied(before: str, changes: Delta) -> str:
    """A text with changes."""
    old = before.splitlines(keepends=True)
    made: list[str] = []
    at = 0
    for first, last, text in changes:
        made += old[at:first]
        made.append(text)
        at = last
    return "".join(made) + "".join(old[at:])


def counted(changes: Delta) -> tuple[int, int, int]:
    """Lines added, deleted and modified. A line that another one took the place of is added and deleted, as in a unified diff,
    and modified once."""
    added = deleted = modified = 0
    for first, last, text in changes:
        new, old = len(str(text).splitlines()), last - first
        added, deleted, modified = added + new, deleted + old, modified + min(new, old)
    return added, deleted, modified
