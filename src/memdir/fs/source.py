"""Where the contents of absent files come from: the port that an edge asks when it meets ContentsAbsentError."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from memdir.fs.errors import FsError

Brought = Callable[[FsError | None], None]
"""Told once, from any thread, how it ended: None when the contents are here (or the file changed, so that asking the
filesystem again makes sense), else why they cannot be had. Must return at once."""


class ContentSource(Protocol):
    """Thread-safe. One fetch for an inode, however many ask."""

    def bring(self, ino: int, brought: Brought) -> None:
        """Somebody waits for the contents of `ino`: fetch them before everything that nobody waits for. Returns at once."""
        ...

    def arrived_bytes(self, ino: int) -> int:
        """How much came so far of what is being fetched: while it grows, waiting makes sense."""
        ...
