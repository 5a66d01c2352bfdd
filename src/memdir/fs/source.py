"""Where the contents of absent files come from: the port that an edge asks when it meets ContentsAbsentError."""

from __future__ import annotations

import errno
import threading
import time
from collections.abc import Callable
from typing import Final, Protocol

from memdir.fs.errors import FsError

_LOOK_S: Final = 1.0
"""How often is looked whether something came."""

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


def wait_for(
    source: ContentSource, ino: int, *, silence_max_s: float, is_given_up: Callable[[], bool] = lambda: False
) -> FsError | None:
    """Have the contents of `ino` brought, and wait as long as some of them come. How it ended, as `Brought` is told; ETIMEDOUT
    when nothing came for `silence_max_s` seconds, ECANCELED when the wait `is_given_up`."""
    done = threading.Event()
    outcome: list[FsError | None] = []

    def brought(error: FsError | None) -> None:
        outcome.append(error)
        done.set()

    source.bring(ino, brought)
    arrived, deadline_s = 0, time.monotonic() + silence_max_s
    while not done.wait(min(_LOOK_S, silence_max_s)):
        now = source.arrived_bytes(ino)
        if now != arrived:
            arrived, deadline_s = now, time.monotonic() + silence_max_s
        if is_given_up():
            return FsError(errno.ECANCELED)
        if time.monotonic() >= deadline_s:
            return FsError(errno.ETIMEDOUT, f"the server sent nothing of it for {silence_max_s:g} s")
    return outcome[0]
