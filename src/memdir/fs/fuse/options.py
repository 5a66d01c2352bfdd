"""How a mount behaves: one frozen record, two profiles."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from memdir.core.errors import UsageError
from memdir.core.limits import MIB
from memdir.fs.fuse.abi import READ_BUFFER_SLACK_BYTES
from memdir.fs.fuse.wire import Handler
from memdir.fs.source import ContentSource
from memdir.fs.vfs import Lender


class Profile(Enum):
    """What the kernel asks us about."""

    FAST = "fast"
    """No OPEN, RELEASE or OPENDIR requests: the kernel opens files by itself. Nobody learns of opens and closes."""
    OBSERVED = "observed"
    """Every open and close of a file is a request, told to `FuseOptions.observer`."""


class Tracer(Protocol):
    """Wraps handlers of requests, to see what is done: `fs.fuse.tracing`."""

    def install(self, table: dict[int, Handler]) -> None: ...


class OpenObserver(Protocol):
    """Told of opens in the observed profile, from the request loop: return at once, touch nothing in the mount."""

    def opened(self, ino: int, pid: int, flags: int) -> None: ...

    def closed(self, ino: int) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class FuseOptions:
    """Options of one mount. The defaults are the fast profile of a read-write mount."""

    profile: Profile = Profile.FAST
    read_only: bool = False
    allow_other: bool | None = None
    """Whether other users may enter (file modes still apply). None: only when root mounts; an ordinary user's mount belongs to
    that user, and allowing others needs `user_allow_other` in /etc/fuse.conf."""
    suid_dev: bool = False
    """Honour setuid bits and device nodes (root only). Off: a memory is no place to run setuid programs from."""
    source: str = "memdir"
    """First column of /proc/mounts."""
    timeout_s: int = 1_000_000
    """How long the kernel may keep names (also absent ones) and attributes. Long is safe: every change that does not come
    through the kernel is announced by the `Invalidator`."""
    max_write_bytes: int = MIB
    """Largest single read or write request; the kernel caps it at `fs.fuse.max_pages_limit` pages (1 MiB by default)."""
    readahead_bytes: int = MIB
    max_background: int = 512
    """Read-ahead and asynchronous requests the kernel may have in flight. Large, because reads that wait for the server count,
    and past it nothing is read ahead of files that are here."""
    notify_queue_max: int = 131_072
    """Distinct pending notifications; past it they are replaced by one invalidation of the whole tree."""
    observer: OpenObserver | None = None
    tracer: Tracer | None = None
    """Told of what is done with files, in the observed profile."""
    passthrough: Lender | None = None
    """Lets the kernel read and write large files by itself (root, Linux 6.9 or newer, observed profile). None: it asks."""
    contents: ContentSource | None = None
    """Brings contents that are on the server only; without it their readers get EIO."""
    contents_timeout_s: float = 30.0
    """How long a reader waits for contents while nothing comes; then EIO."""

    def __post_init__(self) -> None:
        if "," in self.source or "\0" in self.source or not self.source:
            raise UsageError(f"a mount's source cannot be {self.source!r}")
        if not READ_BUFFER_SLACK_BYTES <= self.max_write_bytes <= 16 * MIB or self.max_write_bytes % 4096:
            raise UsageError("max_write_bytes must be whole pages, 4 KiB to 16 MiB")
        if self.contents_timeout_s <= 0:
            raise UsageError("the timeout of contents must be positive")
        if self.passthrough is not None and self.profile is not Profile.OBSERVED:
            raise UsageError("passthrough needs the observed profile", hint="opens and closes must be seen")
        if self.tracer is not None and self.profile is not Profile.OBSERVED:
            raise UsageError("tracing needs the observed profile", hint="opens and closes must be seen")
        if self.timeout_s < 0 or self.notify_queue_max < 1:
            raise UsageError("timeouts and bounds cannot be negative")
