"""One operation on a file, as whoever sees it tells it: the mount, or a watcher of ordinary folders."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Any, Final, Generic, Literal, TypeVar

CONTENT_MAX_BYTES: Final = 256 * 1024
"""A longer content is not told, and known by its hash alone."""
COPY_MS: Final = 10_000
"""So long after it was read what is made with the same contents is a copy."""

_PROCESSES_MAX: Final = 256
_Path = TypeVar("_Path")
_About = TypeVar("_About")

Kind = Literal["read", "browse", "search", "write", "mkdir", "delete", "rmdir", "rename", "copy"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """`path` is what it was about; `target` the new name of a rename, or what a copy made. `before`, `after`: contents, as far
    as they are not longer than CONTENT_MAX_BYTES; of a rename, `before` is what the target held. `created`: there was no
    such file. `raw`: what the system did."""

    kind: Kind
    at_ms: int
    pid: int
    path: str
    target: str = ""
    before: bytes | None = None
    after: bytes | None = None
    created: bool = False
    replaced: bool = False
    size_bytes: int = 0
    fields: dict[str, Any] = field(default_factory=dict)
    raw: str = ""
    actor: str = ""
    """Name of the program."""
    session_key: str = ""
    """Of the terminal, or the program, that it came from."""


class OpenedLast(Generic[_Path, _About]):
    """The files that each process opened last, and something about each: what it makes with the same contents is a copy."""

    def __init__(self, each_max: int) -> None:
        """At most `each_max` files of each of _PROCESSES_MAX processes are known."""
        self._each_max = each_max
        self._by_process: OrderedDict[int, OrderedDict[_Path, _About]] = OrderedDict()

    def note(self, pid: int, path: _Path, about: _About) -> None:
        own = self._by_process.setdefault(pid, OrderedDict())
        self._by_process.move_to_end(pid)
        own[path] = about
        own.move_to_end(path)
        while len(own) > self._each_max:
            own.popitem(last=False)
        while len(self._by_process) > _PROCESSES_MAX:
            self._by_process.popitem(last=False)

    def of(self, pid: int) -> OrderedDict[_Path, _About]:
        """The earliest first."""
        return self._by_process.get(pid, OrderedDict())
