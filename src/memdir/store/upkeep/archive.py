"""The file that a backup is: a zip archive that either engine writes and either engine reads.

    manifest.json          format, version, when, the tables with their columns, and the SHA-256 of every other member
    tables/NAME.jsonl      one JSON array a row, in the order of the columns; bytes are {"base64": "…"}
    blobs.jsonl            [hash, size, {"base64": "…"}], or null as the last for one that is a member of its own
    contents/ab/HASH       a large content

The manifest is written last and the file gets its name after that, so what has the name is complete. Anybody can look into it
with `unzip`. What is derived (passages, vectors) is not in it and is made again; nor is anything about the running store.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final

from memdir.core.errors import CorruptError, NotFoundError, UsageError, VersionError

FORMAT: Final = 1
_MANIFEST: Final = "manifest.json"
_MANIFEST_MAX_BYTES: Final = 256 << 20
_LINE_MAX_BYTES: Final = 64 << 20
"""The longest row: a small blob, or a document with all its metadata, has far less."""
_PIECE: Final = 1 << 20
_BROKEN: Final = (zipfile.BadZipFile, zlib.error, NotImplementedError)
"""What zipfile raises of bytes that were changed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """What an archive says of itself."""

    memdir: str
    engine: str
    made_at: str
    tables: dict[str, list[str]]
    rows: dict[str, int]
    members: dict[str, str]
    missing: list[str]
    """Large contents that could not be read when the archive was made."""


class ArchiveWriter:
    """An archive that grows. `writing` opens one."""

    def __init__(self, archive: zipfile.ZipFile) -> None:
        self._archive = archive
        self._members: dict[str, str] = {}
        self._tables: dict[str, list[str]] = {}
        self._rows: dict[str, int] = {}
        self._missing: list[str] = []

    def rows(self, name: str, columns: Iterable[str], rows: Iterable[Iterable[Any]]) -> int:
        """A table. Returns how many rows it has."""
        self._tables[name] = list(columns)
        self._rows[name] = self._lines(f"tables/{name}.jsonl", rows)
        return self._rows[name]

    def blobs(self, rows: Iterable[tuple[str, int, bytes | None]]) -> int:
        """Small contents, and the sizes of large ones. Returns how many."""
        self._rows["blob"] = self._lines("blobs.jsonl", rows)
        return self._rows["blob"]

    def _lines(self, member: str, rows: Iterable[Iterable[Any]]) -> int:
        digest, count = hashlib.sha256(), 0
        with self._archive.open(_info(member, zipfile.ZIP_DEFLATED), "w", force_zip64=True) as out:
            for row in rows:
                line = json.dumps([_written(value) for value in row], separators=(",", ":")).encode() + b"\n"
                digest.update(line)
                out.write(line)
                count += 1
        self._members[member] = digest.hexdigest()
        return count

    def content(self, content_hash: str, pieces: Iterator[bytes]) -> None:
        """A large content. CorruptError and NotFoundError of `pieces` pass through; the archive calls it missing then."""
        member = _member_of(content_hash)
        try:
            with self._archive.open(_info(member, zipfile.ZIP_STORED), "w", force_zip64=True) as out:
                for piece in pieces:
                    out.write(piece)
        except (CorruptError, NotFoundError):
            self.without(content_hash)
            raise
        self._members[member] = content_hash

    def without(self, content_hash: str) -> None:
        """A large content cannot be had."""
        self._missing.append(content_hash)

    def finish(self, *, memdir: str, engine: str, made_at: str) -> Manifest:
        """Write the manifest."""
        manifest = Manifest(
            memdir=memdir,
            engine=engine,
            made_at=made_at,
            tables=self._tables,
            rows=self._rows,
            members=self._members,
            missing=self._missing,
        )
        document = {"format": FORMAT} | {name: getattr(manifest, name) for name in Manifest.__slots__}
        self._archive.writestr(_info(_MANIFEST, zipfile.ZIP_DEFLATED), json.dumps(document, indent=1))
        return manifest


@contextmanager
def writing(file: Path) -> Iterator[ArchiveWriter]:
    """A new archive that gets its name, durably, when the block ends without an error. UsageError when `file` exists."""
    if file.exists():
        raise UsageError(f"{file} exists", hint="choose another name, or remove it first")
    part = file.with_name(file.name + ".part")
    fd = os.open(part, os.O_CREAT | os.O_TRUNC | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(fd, "w+b") as out:
            with zipfile.ZipFile(out, "w", compresslevel=1, allowZip64=True) as archive:
                yield ArchiveWriter(archive)
            out.flush()
            os.fsync(out.fileno())
        os.link(part, file)  # and not a rename: a file that came meanwhile is not replaced
    except FileExistsError:
        raise UsageError(f"{file} exists", hint="choose another name, or remove it first") from None
    finally:
        part.unlink(missing_ok=True)
    folder = os.open(file.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


class ArchiveReader:
    """A complete archive. What is read is compared with the manifest; a difference is a CorruptError at the end of a member."""

    def __init__(self, archive: zipfile.ZipFile, name: str) -> None:
        self._archive = archive
        self._name = name
        self.manifest = self._manifest()

    def _manifest(self) -> Manifest:
        try:
            if self._archive.getinfo(_MANIFEST).file_size > _MANIFEST_MAX_BYTES:
                raise self._damaged("its manifest is too large")
            document = json.loads(self._archive.read(_MANIFEST))
            if document["format"] > FORMAT:
                raise VersionError(f"{self._name} was made by a newer memdir, {document['memdir']}", hint="upgrade memdir")
            return Manifest(**{name: document[name] for name in Manifest.__slots__})
        except (KeyError, ValueError, TypeError, EOFError, OSError, *_BROKEN) as error:
            raise self._damaged(f"it is no backup of memdir ({error})") from None

    def _damaged(self, why: str) -> CorruptError:
        return CorruptError(f"{self._name} cannot be used: {why}", hint="take another backup")

    def rows(self, name: str) -> Iterator[list[Any]]:
        """The rows of a table; none for one that is not there."""
        return self._lines(f"tables/{name}.jsonl") if name in self.manifest.tables else iter(())

    def blobs(self) -> Iterator[tuple[str, int, bytes | None]]:
        """Hash, size, and the bytes of a small content."""
        for content_hash, size_bytes, data in self._lines("blobs.jsonl"):
            if data is not None and hashlib.sha256(data).hexdigest() != content_hash:
                raise self._damaged(f"content {content_hash[:12]}… was changed")
            yield content_hash, size_bytes, data

    def has_content(self, content_hash: str) -> bool:
        """Whether a large content is in the archive."""
        return _member_of(content_hash) in self.manifest.members

    def content(self, content_hash: str) -> Iterator[bytes]:
        """A large content in pieces."""
        return self._pieces(_member_of(content_hash))

    def _lines(self, member: str) -> Iterator[list[Any]]:
        rest = b""
        for piece in self._pieces(member):
            *lines, rest = (rest + piece).split(b"\n")
            if len(rest) > _LINE_MAX_BYTES:
                raise self._damaged(f"{member} has a line that is too long")
            for line in lines:
                yield [_read(value) for value in self._parsed(member, line)]
        if rest:
            raise self._damaged(f"{member} ends in the middle of a line")

    def _parsed(self, member: str, line: bytes) -> list[Any]:
        try:
            row = json.loads(line)
        except ValueError:
            row = None
        if not isinstance(row, list):
            raise self._damaged(f"{member} holds something that is no row")
        return row

    def _pieces(self, member: str) -> Iterator[bytes]:
        digest = hashlib.sha256()
        try:
            with self._archive.open(member) as source:
                while piece := source.read(_PIECE):
                    digest.update(piece)
                    yield piece
        except (KeyError, EOFError, OSError, *_BROKEN) as error:
            raise self._damaged(f"{member}: {error}") from None
        if digest.hexdigest() != self.manifest.members.get(member):
            raise self._damaged(f"{member} was changed")


@contextmanager
def reading(file: Path) -> Iterator[ArchiveReader]:
    """An archive. NotFoundError; CorruptError for a file that is none, or is not complete; VersionError for a newer one."""
    try:
        source: IO[bytes] = file.open("rb")
    except FileNotFoundError:
        raise NotFoundError(f"there is no file {file}") from None
    except IsADirectoryError:
        raise UsageError(f"{file} is a folder", hint="name the archive in it") from None
    with source:
        try:
            archive = zipfile.ZipFile(source)
        except (EOFError, ValueError, *_BROKEN) as error:
            raise CorruptError(f"{file} is no backup, or not a complete one: {error}") from None
        with archive:
            yield ArchiveReader(archive, str(file))


def _member_of(content_hash: str) -> str:
    return f"contents/{content_hash[:2]}/{content_hash}"


def _info(member: str, compression: int) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(member)
    info.compress_type = compression
    info.external_attr = 0o600 << 16
    return info


def _written(value: Any) -> Any:
    return {"base64": base64.b64encode(value).decode()} if isinstance(value, (bytes, bytearray, memoryview)) else value


def _read(value: Any) -> Any:
    return base64.b64decode(value["base64"], validate=True) if isinstance(value, dict) else value
