"""Where the contents of a regular file are: the values of `Inode.place`, and what a storage of large contents can do."""

from __future__ import annotations

from typing import Final, Protocol

from memdir.fs.types import Data

IN_CHUNKS: Final = 0
"""In chunks, in the tables: every file begins here, and nothing but a file is anywhere else."""
ABSENT: Final = -1
"""On the server only: size, times and mode are known, no byte is on this machine. Positive numbers are blobs."""


class StagedContents(Protocol):
    """A blob in the making, used by one thread and without the filesystem's lock; `finish` or `abandon` ends it."""

    size_bytes: int

    def append(self, data: Data) -> None: ...

    def finish(self, ino: int) -> int:
        """Make it durable as a blob of `ino` that no record names yet; its number."""
        ...

    def abandon(self) -> None: ...


class BlobStore(Protocol):
    """Large contents, one blob a file, each named by its inode and a number that is never used twice. FsError with the errno of
    the disk. The filesystem's lock is held, except where a method says otherwise."""

    def staged(self) -> StagedContents:
        """Begin with contents that come in pieces. Without the lock."""
        ...

    def create(self, ino: int) -> int:
        """A new, empty blob of `ino`; its number."""
        ...

    def discard(self, ino: int, blob: int) -> None:
        """Remove a blob that no record names."""
        ...

    def size(self, ino: int, blob: int) -> int:
        """Bytes up to the end of the blob: more than the file has after a truncation, fewer only after a power cut."""
        ...

    def allocated_bytes(self, ino: int, blob: int) -> int:
        """What the blob takes on the disk."""
        ...

    def read(self, ino: int, blob: int, offset: int, size: int) -> bytes:
        """Up to `size` bytes; shorter at the end of the blob."""
        ...

    def write(self, ino: int, blob: int, offset: int, data: Data) -> None:
        """All of it."""
        ...

    def check_room(self, size_bytes: int) -> None:
        """ENOSPC when so much more would leave too little for the journal: removing files must always be possible."""
        ...

    def resize(self, ino: int, blob: int, size: int) -> None:
        """Cut the blob, or let it end with a hole."""
        ...

    def is_cut(self, blob: int) -> bool:
        """Whether a power cut may still bring back bytes that `resize` cut off."""
        ...

    def zero(self, ino: int, blob: int, start: int, end: int, *, allocated: bool) -> None:
        """The range reads as zeros; its space is given back, or kept when `allocated`."""
        ...

    def allocate(self, ino: int, blob: int, start: int, end: int) -> None:
        """Reserve space for the range; the end of the blob stays. ENOSPC."""
        ...

    def seek(self, ino: int, blob: int, offset: int, *, hole: bool) -> int | None:
        """Where data (a hole) begins, from `offset` on; None when there is none before the end of the blob."""
        ...

    def start_writeback(self, ino: int, blob: int) -> None:
        """Let the disk begin with what is not written yet, without waiting for it. Never raises."""
        ...
