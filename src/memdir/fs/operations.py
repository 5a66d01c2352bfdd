"""One operation on a file, as whoever sees it tells it: the mount, or a watcher of ordinary folders."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final, Literal

CONTENT_MAX_BYTES: Final = 256 * 1024
"""A longer content is not told, and known by its hash alone."""
COPY_MS: Final = 10_000
"""So long after it was read what is made with the same contents is a copy."""

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
    root: str = ""
    """Of the mount or the watched folder."""
