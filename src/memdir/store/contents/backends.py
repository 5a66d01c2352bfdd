"""Where large contents are kept: a folder, or a bucket of an S3-compatible store. One contract suite runs over both.

Contents are written once under a place that was never used before and is never used again, so nothing here has to be
locked: which places are alive is the business of the tables `blob` and `blob_trash`, see `blobs`.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from memdir.core.errors import NotFoundError, StorageError
from memdir.core.ids import new_id
from memdir.core.paths import ensure_dir, explained, sync_folder

ENV_BLOBS: Final = "MEMDIR_BLOBS"
_PLACE: Final = re.compile(r"[0-9a-f]{2}/[0-9a-f]{64}(\.[0-9A-Za-z_-]+)?")
_COPY: Final = ".copy~"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """One content, as a listing shows it."""

    place: str
    size_bytes: int
    modified_ms: int


class Source(Protocol):
    """Bytes being read."""

    def read(self, size: int, /) -> bytes:
        """At most `size` bytes, none at the end. StorageError when the store fails on the way."""
        ...

    def close(self) -> None:
        """Stop reading."""
        ...


class Contents(Protocol):
    """A store of whole contents by place. Any thread may call; every method blocks. StorageError when the store cannot be
    reached or refuses: nothing is known then about what happened, and every call may be repeated."""

    @property
    def name(self) -> str:
        """What a person calls it: a folder or a URL, without secrets."""
        ...

    def put(self, place: str, file: Path) -> None:
        """Keep the bytes of `file`, which may be moved away for that; durable when this returns."""
        ...

    def open(self, place: str) -> tuple[Source, int]:
        """The bytes, and how many there are. A delete meanwhile does not disturb the reader. NotFoundError."""
        ...

    def size(self, place: str) -> int | None:
        """How many bytes there are; None for a place that holds nothing."""
        ...

    def delete(self, places: Sequence[str]) -> None:
        """Take contents away for good; a place that holds nothing is fine."""
        ...

    def all(self) -> Iterator[Stored]:
        """Everything that is there, also what nobody knows of; in no order."""
        ...

    def abandon(self, *, before_ms: int) -> int:
        """End what began before that moment and never became a content. Returns how many."""
        ...

    def close(self) -> None:
        """Let connections go."""
        ...


def new_place(content_hash: str) -> str:
    """A place that was never used: the hash says what is there, the rest that it is this life of it."""
    return f"{content_hash[:2]}/{content_hash}.{new_id()}"


def is_place(text: str) -> bool:
    """Whether that is a place of ours. (Without the last part: made before contents had several lives.)"""
    return _PLACE.fullmatch(text) is not None


def hash_of(place: str) -> str:
    """The SHA-256 that a place was made for."""
    return place[3:67]


class DiskContents:
    """Files `ab/<hash>.<id>` of one folder, on the same filesystem as what is put into it, or on another."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @property
    def name(self) -> str:
        """The folder."""
        return str(self._folder)

    def path(self, place: str) -> Path:
        """Where the file of a place is."""
        assert is_place(place), place
        return self._folder / place

    def put(self, place: str, file: Path) -> None:
        """Rename, with the name made durable; a copy when the folder is on another filesystem."""
        target = self.path(place)
        try:
            ensure_dir(target.parent)
            try:
                os.replace(file, target)
            except OSError as error:
                if error.errno != errno.EXDEV:
                    raise
                _copy(file, target)
            sync_folder(target.parent)
            sync_folder(self._folder)
        except OSError as error:
            raise _refused(error) from error

    def open(self, place: str) -> tuple[Source, int]:
        """The open file."""
        try:
            source = self.path(place).open("rb", buffering=0)
        except FileNotFoundError:
            raise NotFoundError(f"there is no content at {place}") from None
        except OSError as error:
            raise _refused(error) from error
        return source, os.fstat(source.fileno()).st_size

    def size(self, place: str) -> int | None:
        """From the file's metadata."""
        try:
            return self.path(place).stat().st_size
        except FileNotFoundError:
            return None
        except OSError as error:
            raise _refused(error) from error

    def delete(self, places: Sequence[str]) -> None:
        """Unlink."""
        for place in places:
            try:
                self.path(place).unlink(missing_ok=True)
            except OSError as error:
                raise _refused(error) from error

    def all(self) -> Iterator[Stored]:
        """Every file below the folder; names that are no places of ours are left out."""
        folders = sorted(entry for entry in self._folder.iterdir() if entry.is_dir()) if self._folder.is_dir() else []
        for folder in folders:
            for file in folder.iterdir():
                place = f"{folder.name}/{file.name}"
                if not is_place(place):
                    continue
                try:
                    info = file.stat()
                except FileNotFoundError:
                    continue
                yield Stored(place=place, size_bytes=info.st_size, modified_ms=info.st_mtime_ns // 1_000_000)

    def abandon(self, *, before_ms: int) -> int:
        """Copies from another filesystem that were cut off."""
        count = 0
        for file in self._folder.glob(f"??/*{_COPY}"):
            if file.stat().st_mtime_ns // 1_000_000 < before_ms:
                file.unlink(missing_ok=True)
                count += 1
        return count

    def close(self) -> None:
        """Nothing is kept open."""


def _copy(file: Path, target: Path) -> None:
    """Another filesystem: copy beside the target, sync, rename."""
    beside = target.with_name(target.name + _COPY)
    out = os.open(beside, os.O_CREAT | os.O_TRUNC | os.O_WRONLY | os.O_CLOEXEC, 0o600)
    try:
        with file.open("rb", buffering=0) as source, os.fdopen(out, "wb") as copy:
            while piece := source.read(1 << 20):
                copy.write(piece)
            copy.flush()
            os.fsync(copy.fileno())
        os.replace(beside, target)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
    file.unlink(missing_ok=True)


def _refused(error: OSError) -> Exception:
    """A full disk stays what it is: the server's edge tells the caller so."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return error
    return explained(error) or StorageError(f"the folder of contents refuses: {error}")
