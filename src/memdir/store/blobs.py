"""Originals, byte for byte, once for each SHA-256.

Up to `INLINE_MAX_BYTES` they live in the database; larger ones in a file `blobs/ab/<hash>`: written to `tmp/`, fsynced,
renamed inside the transaction that first refers to them. Files are removed only after the commit that took the last
reference away, under the writer's lock and after a look that no row has come back. What a crash leaves behind (a file
without a row) goes at the next `recover`.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, Final

from memdir.core.errors import CorruptError, NotFoundError
from memdir.core.ids import new_id
from memdir.core.limits import KIB, MIB
from memdir.core.paths import ensure_dir
from memdir.store.database import Database, Transaction, fetch

INLINE_MAX_BYTES: Final = 256 * KIB
PIECE_BYTES: Final = MIB
EMPTY_HASH: Final = hashlib.sha256(b"").hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class StagedBlob:
    """Bytes that are safe to refer to: in memory, or in an fsynced file of `tmp/`."""

    hash: str
    size_bytes: int
    data: bytes | None
    file: Path | None


class Upload:
    """Bytes on their way in. Spills to a file past `INLINE_MAX_BYTES`. Use as a context manager: leaving discards what
    was not taken over by a commit."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._hash = hashlib.sha256()
        self._pieces: list[bytes] = []
        self._out: IO[bytes] | None = None
        self._file: Path | None = None
        self.size_bytes = 0

    def write(self, piece: bytes) -> None:
        """Append. OSError (no space) passes through."""
        self._hash.update(piece)
        self.size_bytes += len(piece)
        if self._out is None:
            self._pieces.append(piece)
            if self.size_bytes <= INLINE_MAX_BYTES:
                return
            self._file = ensure_dir(self._folder) / f"{new_id()}.part"
            self._out = os.fdopen(os.open(self._file, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600), "wb")
            piece = b"".join(self._pieces)
            self._pieces.clear()
        self._out.write(piece)

    def finish(self) -> StagedBlob:
        """The bytes are complete; a file is on the disk when this returns."""
        data = None
        if self._out is None:
            data = b"".join(self._pieces)
        else:
            self._out.flush()
            os.fsync(self._out.fileno())
            self._out.close()
        return StagedBlob(hash=self._hash.hexdigest(), size_bytes=self.size_bytes, data=data, file=self._file)

    def __enter__(self) -> Upload:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._out is not None:
            self._out.close()
        if self._file is not None:
            self._file.unlink(missing_ok=True)


class BlobStore:
    """The blob table and the folder beside it."""

    def __init__(self, db: Database, folder: Path) -> None:
        self._db = db
        self._folder = folder / "blobs"
        self._temp = folder / "tmp"

    def upload(self) -> Upload:
        """A place for bytes that come in pieces."""
        return Upload(self._temp)

    def path(self, content_hash: str) -> Path:
        """Where a large blob's file is."""
        return self._folder / content_hash[:2] / content_hash

    def add(self, connection: Transaction, staged: StagedBlob) -> None:
        """One more reference, inside the caller's transaction."""
        connection.execute("update blob set ref_count = ref_count + 1 where hash = ?", (staged.hash,))
        if connection.changes():
            return
        if staged.file is not None:
            target = self.path(staged.hash)
            ensure_dir(target.parent)
            os.replace(staged.file, target)
            _sync_folder(target.parent)
        connection.execute(
            "insert into blob (hash, size_bytes, ref_count, data) values (?, ?, 1, ?)",
            (staged.hash, staged.size_bytes, staged.data),
        )

    def release(self, connection: Transaction, hashes: Iterable[str]) -> list[str]:
        """One reference less for each of `hashes`, inside the caller's transaction. Returns hashes whose files
        `remove_files` must take away after the commit."""
        orphans = []
        for content_hash in hashes:
            connection.execute("update blob set ref_count = ref_count - 1 where hash = ?", (content_hash,))
            rows = fetch(
                connection, "delete from blob where hash = ? and ref_count <= 0 returning data is null", (content_hash,)
            )
            if rows and rows[0][0]:
                orphans.append(content_hash)
        return orphans

    def remove_files(self, hashes: Iterable[str]) -> None:
        """Remove files whose rows are gone; one that came back meanwhile stays."""
        for content_hash in hashes:
            with self._db.write() as connection:
                if not fetch(connection, "select 1 from blob where hash = ?", (content_hash,)):
                    self.path(content_hash).unlink(missing_ok=True)

    def content(self, content_hash: str) -> bytes:
        """The bytes of a blob; NotFoundError when it is gone, CorruptError when its file does not fit its row."""
        return b"".join(self.pieces(content_hash))

    def pieces(self, content_hash: str) -> Iterator[bytes]:
        """The bytes in pieces of at most 1 MiB (a small blob in one). The file is open when this returns, so a delete
        meanwhile does not disturb the reader."""
        if content_hash == EMPTY_HASH:
            return iter(())
        row = self._db.one("select size_bytes, data from blob where hash = ?", (content_hash,))
        if row is None:
            raise NotFoundError("the content is gone")
        if row[1] is not None:
            return iter((row[1],))
        try:
            source = self.path(content_hash).open("rb")
        except FileNotFoundError:
            if self._db.one("select 1 from blob where hash = ?", (content_hash,)) is None:
                raise NotFoundError("the content is gone") from None
            raise CorruptError(f"the file of blob {content_hash[:12]}… is missing") from None
        if os.fstat(source.fileno()).st_size != row[0]:
            source.close()
            raise CorruptError(f"the file of blob {content_hash[:12]}… has not the size it must have")
        return _FilePieces(source)

    def recover(self) -> int:
        """Remove what a crash left: unfinished uploads, files without a row. Call only while nobody else uses the folder.
        Returns how many files went."""
        leftovers = list(self._temp.iterdir()) if self._temp.is_dir() else []
        folders = [entry for entry in self._folder.iterdir() if entry.is_dir()] if self._folder.is_dir() else []
        for folder in folders:
            for file in folder.iterdir():
                if self._db.one("select 1 from blob where hash = ? and data is null", (file.name,)) is None:
                    leftovers.append(file)
        for file in leftovers:
            file.unlink(missing_ok=True)
        return len(leftovers)


class _FilePieces(Iterator[bytes]):
    """Reads an open file to its end and closes it, also when it is dropped half-way."""

    def __init__(self, source: IO[bytes]) -> None:
        self._source = source

    def __next__(self) -> bytes:
        piece = b"" if self._source.closed else self._source.read(PIECE_BYTES)
        if not piece:
            self._source.close()
            raise StopIteration
        return piece

    def close(self) -> None:
        """Stop reading."""
        self._source.close()

    def __del__(self) -> None:
        self._source.close()


def _sync_folder(folder: Path) -> None:
    """Make the names in `folder` durable."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
