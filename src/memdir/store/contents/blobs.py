"""Originals, byte for byte, once for each SHA-256.

Up to `INLINE_MAX_BYTES` they live in the database, larger ones in a store of contents (`contents`: a folder, or S3) under a
place that is never used again. Large bytes go there before the transaction that refers to them, announced in the table
`blob_trash`; that transaction takes the announcement out, and the one that takes the last reference away puts the place
back into the trash. So at every moment each content that exists is known to the database, whoever dies when, and any number of
processes may add, drop and collect at once. (A power cut may take the announcement and leave the bytes: `sweep` finds them.)
"""

from __future__ import annotations

import hashlib
import logging
import math
import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, Final

from memdir.core.clock import Clock, SystemClock
from memdir.core.errors import BusyError, CorruptError, NotFoundError, StorageError
from memdir.core.ids import new_id
from memdir.core.limits import KIB, MIB
from memdir.core.paths import ensure_dir
from memdir.store.acting import SYSTEM, acting_as
from memdir.store.contents.backends import Contents, DiskContents, Source, hash_of, new_place
from memdir.store.contents.blob_trash import BlobTrash
from memdir.store.database import Database, Transaction, fetch, first, marks_for
from memdir.store.errors import DiskFullError

log = logging.getLogger(__name__)

INLINE_MAX_BYTES: Final = 256 * KIB
PIECE_BYTES: Final = MIB
EMPTY_HASH: Final = hashlib.sha256(b"").hexdigest()
ORPHAN_MS: Final = 24 * 3600 * 1000
"""Bytes that no row knows are left alone until they are this old: an upload may be on its way to its row."""
KEPT_BYTES: Final = 64 * MIB
"""What the disk with the server's folder keeps free of new contents and of indexes: deleting needs space first, here and in the
mounts whose caches lie on the same disk (`fs.cache.disk_space`: 16 MiB each at most)."""
KEPT_SHARE: Final = 8
"""Of a small disk, one part in so many."""
_STEP_PLACES: Final = 64
_SAMPLE_PLACES: Final = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class StagedBlob:
    """Bytes that are safe to refer to: in memory, at a place of their own, or (both None) already known by their hash."""

    hash: str
    size_bytes: int
    data: bytes | None
    place: str | None


class Upload:
    """Bytes on their way in. Spills to a file past `INLINE_MAX_BYTES`. Use as a context manager: leaving discards what
    was not taken over by a commit."""

    def __init__(self, blobs: BlobStore, *, frees: bool) -> None:
        self._blobs = blobs
        self._frees = frees
        self._hash = hashlib.sha256()
        self._pieces: list[bytes] = []
        self._out: IO[bytes] | None = None
        self._file: Path | None = None
        self._place: str | None = None
        self.size_bytes = 0

    def write(self, piece: bytes) -> None:
        """Append. DiskFullError when the rest of the disk is kept for deleting; OSError (no space) passes through."""
        if not self._frees:
            self._blobs.check_room()
        self._hash.update(piece)
        self.size_bytes += len(piece)
        if self._out is None:
            self._pieces.append(piece)
            if self.size_bytes <= INLINE_MAX_BYTES:
                return
            self._file = ensure_dir(self._blobs.temp) / f"{new_id()}.part"
            self._out = os.fdopen(os.open(self._file, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600), "wb")
            piece = b"".join(self._pieces)
            self._pieces.clear()
        self._out.write(piece)

    def finish(self) -> StagedBlob:
        """The bytes are complete; large ones are in the store of contents when this returns, unless it has them already.
        StorageError."""
        content_hash = self._hash.hexdigest()
        if self._out is None or self._file is None:
            data = b"".join(self._pieces)
            return StagedBlob(hash=content_hash, size_bytes=self.size_bytes, data=data, place=None)
        self._out.flush()
        os.fsync(self._out.fileno())
        self._out.close()
        if not self._blobs.has(content_hash):
            place = new_place(content_hash)
            self._blobs.trash.expect(place, content_hash=content_hash, size_bytes=self.size_bytes)
            self._place = place
            self._blobs.contents.put(place, self._file)
        return StagedBlob(hash=content_hash, size_bytes=self.size_bytes, data=None, place=self._place)

    def __enter__(self) -> Upload:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._out is not None:
            self._out.close()
        if self._file is not None:
            self._file.unlink(missing_ok=True)
        if self._place is not None and self._blobs.trash.give_up(self._place):
            self._blobs.tidy([self._place])


class BlobStore:
    """The blob table and the store of contents beside it."""

    def __init__(self, db: Database, folder: Path, *, contents: Contents | None = None, clock: Clock | None = None) -> None:
        """`folder` holds uploads on their way, and the contents when no other store is given."""
        self._db = db
        self._folder = ensure_dir(folder)
        self.temp = folder / "tmp"
        """Files of uploads under way."""
        self.contents: Contents = contents or DiskContents(folder / "blobs")
        self.is_own = self.contents.name == str(folder / "blobs")
        """Whether nobody else can have put contents there: a bucket or another folder may be shared with another server, whose
        contents are unknown here and are not to be swept."""
        self.trash = BlobTrash(db, clock or SystemClock())
        self._collector: Callable[[], None] | None = None

    def upload(self, *, frees: bool = False) -> Upload:
        """A place for bytes that come in pieces. `frees`: they replace more than they are, and may have the last bytes."""
        return Upload(self, frees=frees)

    def check_room(self) -> None:
        """DiskFullError when `has_room` says no."""
        if not self.has_room():
            raise DiskFullError

    def has_room(self) -> bool:
        """Whether the disk with the server's folder has more than what is kept for changes that free some."""
        try:
            found = os.statvfs(self._folder)
        except FileNotFoundError:  # somebody deleted it under a server that runs: that is no lack of room
            return True
        return found.f_bavail * found.f_frsize >= min(KEPT_BYTES, found.f_blocks * found.f_frsize // KEPT_SHARE)

    def has(self, content_hash: str) -> bool:
        """Whether somebody refers to such a content now."""
        return self._db.one("select 1 from blob where hash = ?", (content_hash,)) is not None

    def add(self, connection: Transaction, staged: StagedBlob) -> None:
        """One more reference, inside the caller's transaction. BusyError when what made the bytes known to `finish` has gone
        since: they have to be sent again."""
        # Small contents are new more often than not, and are put without asking first.
        if staged.data is None and self._count_up(connection, staged.hash):
            return
        place, size_bytes = staged.place, staged.size_bytes
        if staged.data is None and place is None:
            back = self.trash.bring_back(connection, staged.hash)
            if back is None:
                raise BusyError("the same content was deleted while it was sent", hint="send it again")
            place, size_bytes = back
        row = first(
            connection,
            "insert into blob (hash, size_bytes, ref_count, data, place) values (?, ?, 1, ?, ?) on conflict do nothing "
            "returning 1",
            (staged.hash, size_bytes, staged.data, place),
        )
        if row is not None:
            if staged.place is not None:
                self.trash.take(connection, staged.place)
        elif not self._count_up(connection, staged.hash):  # they were there already, and went meanwhile
            raise BusyError("the same content was deleted while it was sent", hint="send it again")

    def hold(self, connection: Transaction, content_hash: str) -> None:
        """One more reference to a content that has one already. NotFoundError when it is gone."""
        if not self._count_up(connection, content_hash):
            raise NotFoundError("the content is gone")

    def _count_up(self, connection: Transaction, content_hash: str) -> bool:
        connection.execute("update blob set ref_count = ref_count + 1 where hash = ?", (content_hash,))
        return bool(connection.changes())

    def release(self, connection: Transaction, hashes: Iterable[str]) -> list[str]:
        """One reference less for each of `hashes`, inside the caller's transaction. Returns places that `tidy` may look at
        after the commit. In the order of the hashes, so that two transactions do not wait for each other."""
        thrown = []
        for content_hash in sorted(hashes):
            connection.execute("update blob set ref_count = ref_count - 1 where hash = ?", (content_hash,))
            rows = fetch(
                connection, "delete from blob where hash = ? and ref_count <= 0 returning place, size_bytes", (content_hash,)
            )
            for place, size_bytes in rows:
                if place is not None:
                    self.trash.throw(connection, place, content_hash=content_hash, size_bytes=size_bytes)
                    thrown.append(place)
        return thrown

    def tidy(self, places: Iterable[str]) -> None:
        """After a commit: delete what is due at `places`, or tell the collector that there is something. A store that fails is
        asked again later, and no reason for the caller's work to fail."""
        due = list(places)
        if not due:
            return
        if self._collector is not None:
            self._collector()
            return
        for start in range(0, len(due), _STEP_PLACES):
            try:
                self.collect(places=due[start : start + _STEP_PLACES])
            except (StorageError, OSError) as error:
                log.warning("contents that are not needed could not be deleted yet: %s", error)
                return

    def check_place(self) -> None:
        """That contents are where this store looks for them. StorageError when none of several is: another store of contents
        was used before, and mixing the two would be hard to undo. (One that is missing is damage: see `server check`.)"""
        rows = self._db.all("select place from blob where place is not null limit ?", (_SAMPLE_PLACES,))
        if len(rows) > 1 and all(self.contents.size(row[0]) is None for row in rows):
            raise StorageError(
                f"the large contents of this server are not in {self.contents.name}",
                hint="set --blobs (or MEMDIR_BLOBS) to where they are; `memdir server backup` and `restore` move them",
            )

    def collect_with(self, collector: Callable[[], None] | None) -> None:
        """From now on `collector` is told when there is something to delete, on any thread; None: `tidy` deletes itself."""
        self._collector = collector

    @acting_as(SYSTEM)
    def collect(self, *, places: list[str] | None = None) -> int:
        """Delete some of what is due. Returns how many; 0 when there is nothing more to do now. StorageError, and what was not
        deleted comes up again later."""
        claimed = self.trash.claim(places=places)
        if claimed:
            self.contents.delete(claimed)
            self.trash.forget(claimed)
        return len(claimed)

    def small(self, hashes: Sequence[str]) -> dict[str, bytes]:
        """The bytes of those of at most 500 blobs that are kept in the database."""
        rows = self._db.all(
            f"select hash, data from blob where data is not null and hash in ({marks_for(hashes)})",  # noqa: S608
            hashes,
        )
        return dict(rows)

    def content(self, content_hash: str) -> bytes:
        """The bytes of a blob; NotFoundError when it is gone, CorruptError when they are not what was put."""
        return b"".join(self.pieces(content_hash))

    def pieces(self, content_hash: str) -> Iterator[bytes]:
        """The bytes in pieces of at most 1 MiB (a small blob in one). They are open when this returns, so a delete meanwhile
        does not disturb the reader. Large ones are checked while they are read: the last piece comes when all are right."""
        if content_hash == EMPTY_HASH:
            return iter(())
        place = None
        while True:
            row = self._db.one("select size_bytes, data, place from blob where hash = ?", (content_hash,))
            if row is None:
                raise NotFoundError("the content is gone")
            if row[1] is not None:
                return iter((row[1],))
            if row[2] is None or row[2] == place:
                raise CorruptError(f"the bytes of blob {content_hash[:12]}… are missing", hint="run `memdir server check`")
            place = row[2]
            try:
                return self.checked(content_hash, place, size_bytes=row[0])
            except NotFoundError:  # deleted, and perhaps put again elsewhere, since the row was read
                continue

    def checked(self, content_hash: str, place: str, *, size_bytes: int | None = None) -> Iterator[bytes]:
        """The bytes at a place, open when this returns. NotFoundError; CorruptError at once for another size, at the end for
        another hash."""
        source, found_bytes = self.contents.open(place)
        if size_bytes is not None and found_bytes != size_bytes:
            source.close()
            raise _wrong(content_hash, "size")
        return _CheckedPieces(source, content_hash)

    @acting_as(SYSTEM)
    def recover(self) -> int:
        """Remove what a crash left: unfinished uploads, and bytes in a folder of our own that nobody knows. Call only while
        nobody else uses the store. Returns how many went."""
        count = self._clear_temp(before_s=math.inf)
        self.trash.give_up_all()
        try:
            if self.is_own:
                count += self.sweep(older_ms=None)
            while collected := self.collect():
                count += collected
        except StorageError as error:
            log.warning("contents that are not needed could not be deleted yet: %s", error)
        return count

    @acting_as(SYSTEM)
    def sweep(self, *, older_ms: int | None = ORPHAN_MS) -> int:
        """Delete bytes that are older than that and that no row knows, parts of uploads that never ended, and forgotten files
        of uploads. Any number of processes may be at work, unless the age is None, for any. Returns how many went."""
        before_ms = _before_ms(older_ms)
        count = self._clear_temp(before_s=before_ms / 1000) + self.contents.abandon(before_ms=before_ms)
        for place in self.orphans(older_ms=older_ms):
            self.contents.delete([place])
            count += 1
        return count

    def orphans(self, *, older_ms: int | None = ORPHAN_MS) -> Iterator[str]:
        """Places that hold bytes and that no row knows."""
        before_ms = _before_ms(older_ms)
        for stored in self.contents.all():
            if stored.modified_ms < before_ms and not self._known(stored.place):
                yield stored.place

    def _known(self, place: str) -> bool:
        row = self._db.one("select 1 from blob where hash = ? and place = ?", (hash_of(place), place))
        return row is not None or self.trash.knows(place)

    def _clear_temp(self, *, before_s: float) -> int:
        count = 0
        for file in self.temp.iterdir() if self.temp.is_dir() else ():
            if file.stat().st_mtime < before_s:
                file.unlink(missing_ok=True)
                count += 1
        return count

    def close(self) -> None:
        """Let the store of contents go."""
        self.contents.close()


def _before_ms(older_ms: int | None) -> int:
    """By the system's clock: the stores of contents stamp with one like it."""
    return 1 << 62 if older_ms is None else time.time_ns() // 1_000_000 - older_ms


def _wrong(content_hash: str, what: str) -> CorruptError:
    return CorruptError(
        f"the bytes of blob {content_hash[:12]}… have not the {what} they must have", hint="run `memdir server check --deep`"
    )


class _CheckedPieces(Iterator[bytes]):
    """Reads a source to its end and closes it, also when it is dropped half-way. One piece ahead of its reader, so that bytes
    with another hash are an error before the last of them is given out."""

    def __init__(self, source: Source, content_hash: str) -> None:
        self._source = source
        self._expected = content_hash
        self._hash = hashlib.sha256()
        self._ahead: bytes | None = None
        self._ended = False

    def __next__(self) -> bytes:
        if self._ended:
            raise StopIteration
        if self._ahead is None:
            self._ahead = self._read()
        given, self._ahead = self._ahead, self._read()
        if not self._ahead:
            self.close()
            if self._hash.hexdigest() != self._expected:
                raise _wrong(self._expected, "hash")
        if not given:
            raise StopIteration
        return given

    def _read(self) -> bytes:
        pieces, missing = [], PIECE_BYTES
        while missing and (piece := self._source.read(missing)):
            pieces.append(piece)
            missing -= len(piece)
        whole = b"".join(pieces)
        self._hash.update(whole)
        return whole

    def close(self) -> None:
        """Stop reading."""
        self._ended = True
        self._source.close()

    def __del__(self) -> None:
        self._source.close()
