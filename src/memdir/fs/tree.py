"""The second face of a filesystem: the one the sync engine works on, by path.

The first face (`vfs.Vfs`) records an `Intent` with every change, in the same durable step. This face reads those intents,
reads exact versions of contents, and applies what came from the server. Applying records no intent, tells the
`Invalidator`, and is a compare-and-set: it happens only when the path still looks as the caller believes, so an unsynced
local edit can never be overwritten.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from memdir.core.errors import MemdirError
from memdir.fs.types import AbsentTotals, Intent, LocalFact, RemoteFile
from memdir.fs.vfs import IntentListener, Invalidator


class LocalChangedError(MemdirError):
    """What stands at the path is not what the caller expected; nothing was changed. Plan again."""


class ContentsMismatchError(MemdirError):
    """The bytes for an absent file are not the ones its hash names; nothing was changed."""


class SyncTree(Protocol):
    """Paths are absolute in the mount (`/a/b`). `expected` is the fact the caller planned with, None for "nothing there"."""

    def listen(self, listener: IntentListener) -> None:
        """Call `listener` after every recorded intent."""
        ...

    def connect(self, invalidator: Invalidator) -> None:
        """Tell `invalidator` of every applied change."""
        ...

    def intents(self, after_seq: int, limit: int) -> Sequence[Intent]:
        """Recorded intents behind `after_seq`, in order. A path written many times before it is read here appears once.

        PUT and DELETE say "look at this path" only; a MOVE says everything about its target, also that something it replaced
        is gone. An exchange, or a rename out of a local-only folder, gives one PUT or DELETE for each path below."""
        ...

    def newest_intent(self) -> int:
        """The number of the last intent so far, 0 before any."""
        ...

    def intents_left(self, after_seq: int) -> int:
        """How many intents stand behind `after_seq`. Reads none of them: costs the same for any number."""
        ...

    def acknowledge(self, seq: int) -> None:
        """The intents up to `seq` are safe in the sync engine's own records and may be dropped here."""
        ...

    def fact(self, path: str) -> LocalFact | None:
        """What stands at `path` now, None for nothing or for a type that is never synced (fifo, socket, device)."""
        ...

    def is_asked_for(self, path: str) -> bool:
        """Whether `.memdirignore` says that the folder at `path` is to be synced whatever it is."""
        ...

    def is_local_only(self, path: str) -> bool:
        """Whether `path` stays on this machine (`fs.localonly` and `.memdirignore`). Such paths leave no intent; `fact` and
        `children` still show them, so a scan must ask."""
        ...

    def children(self, folder: str) -> Sequence[LocalFact]:
        """The facts directly below `folder`, by name. Empty when it is no folder."""
        ...

    def read(self, fact: LocalFact, offset: int, size: int) -> bytes:
        """Bytes of exactly the version in `fact`; LocalChangedError once the contents moved on or the inode is gone,
        ContentsAbsentError when they are not here."""
        ...

    def put_file(
        self, path: str, content: Iterable[bytes], *, mode: int, mtime_ns: int, expected: LocalFact | None
    ) -> LocalFact:
        """Put a file at `path` (and missing parents). Existing contents are replaced at once, never partly visible.

        LocalChangedError when `path` does not match `expected`; FsError ENOSPC, ENOTDIR."""
        ...

    # Contents that are on the server only

    def put_absent(self, path: str, file: RemoteFile, *, expected: LocalFact | None) -> LocalFact:
        """As `put_file`, without the bytes. LocalChangedError; FsError EINVAL for the ignore file, which is never absent."""
        ...

    def put_new_absent(self, files: Sequence[RemoteFile]) -> list[LocalFact | None]:
        """Many at once, where nothing stands; None for each that was left out because something does."""
        ...

    def fill(self, fact: LocalFact, content: Iterable[bytes]) -> None:
        """Give the absent file its bytes, checked against its size and hash; nothing happens when it has them. Neither version
        nor times change. LocalChangedError, ContentsMismatchError, FsError ENOSPC: nothing happened."""
        ...

    def evict(self, fact: LocalFact, content_hash: str) -> None:
        """Forget the bytes of a file: the server has them, and `content_hash` is theirs (the caller has made sure). Neither
        version nor times change. LocalChangedError; FsError EBUSY for what stays (the ignore file, an empty file, a file
        that the kernel reads by itself)."""
        ...

    def special_count(self) -> int:
        """How many sockets, FIFOs and device nodes have a name."""
        ...

    def absent_totals(self) -> AbsentTotals: ...

    def absent_files(self, limit: int, *, max_bytes: int) -> Sequence[LocalFact]:
        """Absent files of at most `max_bytes` each, those first that are worth bringing first. May miss what was put a moment
        ago."""
        ...

    def absent_with(self, content_hash: str, limit: int) -> Sequence[LocalFact]:
        """Absent files with these contents; none is missed."""
        ...

    def fact_by_number(self, ino: int) -> LocalFact | None:
        """The fact of an inode at one of its paths ("/" for a file without any); None when it is gone."""
        ...

    def paths_of(self, ino: int) -> Sequence[str]:
        """Every synced path of an inode."""
        ...

    def coldest_numbers(self) -> Sequence[int]:
        """Files that have contents here, the longest unused first."""
        ...

    def held_bytes(self) -> int:
        """The sizes of all files whose contents are here."""
        ...

    def free_bytes(self) -> int:
        """What may still be written to the disk that holds the contents."""
        ...

    def watch_uses(self) -> None:
        """Note from now on which files are used, for `coldest_numbers`."""
        ...

    def put_dir(self, path: str, *, mode: int, expected: LocalFact | None) -> LocalFact: ...

    def put_symlink(self, path: str, target: bytes, *, expected: LocalFact | None) -> LocalFact: ...

    def set_mode(self, path: str, *, mode: int, expected: LocalFact) -> LocalFact: ...

    def delete(self, path: str, *, expected: LocalFact) -> None:
        """Remove a file, a symlink or an empty folder; FsError ENOTEMPTY for a folder with anything in it."""
        ...

    def move(self, source: str, path: str, *, expected: LocalFact) -> LocalFact:
        """Rename what `expected` describes at `source` to `path`, where nothing may stand (LocalChangedError)."""
        ...
