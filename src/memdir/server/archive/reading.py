"""Archives from anybody: every name, kind, size and number is looked at before anything is done with it.

`survey` reads the whole archive once and refuses it, or says what is in it; `members` reads it again to take it over. Nothing
is ever unpacked into a folder: names are only compared and stored. Bounds: entries, bytes of names, depth, bytes of one file,
bytes in all, and how far they may unfold.
"""

from __future__ import annotations

import calendar
import gzip
import json
import posixpath
import stat
import struct
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import IO, Any, Final, cast

from memdir.core.limits import FILE_SYNC_MAX_BYTES, INT64_MAX, MIB, SYMLINK_MAX_BYTES
from memdir.server.archive.members import (
    CONTAINER_FILE,
    DOCUMENTS_FILE,
    FORMAT_NAME,
    FORMAT_VERSION,
    MEMORIES_FILE,
    PIECE_BYTES,
    SIDECAR,
    ZIP_ENTRIES_MAX,
    Format,
    Kind,
    Member,
)
from memdir.server.errors import TooLargeError
from memdir.store.errors import InvalidError
from memdir.store.paths import ancestors, checked_path

ENTRIES_MAX: Final = 500_000
NAMES_MAX_BYTES: Final = 64 * MIB
DEPTH_MAX: Final = 128
UNPACKED_MAX_BYTES: Final = 64 * 1024 * MIB
UNFOLDED_MAX: Final = 200
"""How many times its own size an archive may have unpacked, from `UNFOLDED_FROM_BYTES` on. Text packs 3 to 20 times."""
UNFOLDED_FROM_BYTES: Final = 64 * MIB
_READ_MAX_BYTES: Final = 2 * MIB
"""Of one read: a header that says it is larger than that is a lie or a bomb."""
_GZIP_MAGIC: Final = b"\x1f\x8b"
_ZIP_MAGIC: Final = (b"PK\x03\x04", b"PK\x05\x06", b"PK\x07\x08")
_ZIP_END: Final = b"PK\x05\x06"
_ZIP_TAIL_BYTES: Final = 22 + 65_535
_ENCRYPTED: Final = 1
_UTF8: Final = 0x800
_BROKEN: Final = (
    tarfile.TarError,
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    gzip.BadGzipFile,
    struct.error,
    NotImplementedError,
)


def format_of(file: IO[bytes]) -> Format:
    """What kind of archive a file is, by its first bytes."""
    file.seek(0)
    head = file.read(4)
    if head.startswith(_GZIP_MAGIC):
        return "tar.gz"
    return "zip" if head in _ZIP_MAGIC else "tar"


@dataclass(slots=True, kw_only=True)
class Survey:
    """What an archive holds. Paths are those of the container; what is in the sidecar folder counts apart."""

    form: Format
    paths: dict[str, Kind] = field(default_factory=dict)
    links_outside: list[str] = field(default_factory=list)
    """Paths of symlinks whose target is absolute or leads out of the tree."""
    size_bytes: int = 0
    header: dict[str, Any] | None = None
    """What the export says of itself; None: the archive was not made by one."""
    sidecar: str | None = None
    """Name of the folder that carries the rest."""
    documents: IO[bytes] = field(default_factory=tempfile.TemporaryFile)
    memories: IO[bytes] = field(default_factory=tempfile.TemporaryFile)
    """What the sidecar's two lists hold."""
    _names_bytes: int = 0
    _entries: int = 0
    _folders: set[str] = field(default_factory=set)

    def close(self) -> None:
        """Let the lists go."""
        self.documents.close()
        self.memories.close()

    def count(self, member: Member, packed_bytes: int) -> None:
        """Take one more member in, or refuse the archive."""
        self._entries += 1
        self._names_bytes += len(member.name.encode())
        self.size_bytes += member.size_bytes
        if self._entries > ENTRIES_MAX:
            raise TooLargeError(f"the archive has more than {ENTRIES_MAX} entries", hint="split it")
        if self._names_bytes > NAMES_MAX_BYTES:
            raise TooLargeError(f"the names in the archive have more than {NAMES_MAX_BYTES} bytes", hint="split it")
        if member.kind == "file" and member.size_bytes > FILE_SYNC_MAX_BYTES:
            raise TooLargeError(f"{member.name[:200]!r} is larger than {FILE_SYNC_MAX_BYTES} bytes", hint="leave it out")
        unfolded = self.size_bytes > max(UNFOLDED_FROM_BYTES, UNFOLDED_MAX * packed_bytes)
        if unfolded or self.size_bytes > UNPACKED_MAX_BYTES:
            raise TooLargeError(f"the archive unfolds to more than {self.size_bytes >> 20} MiB: that is refused")

    def place(self, member: Member) -> None:
        """Look at where a member goes."""
        path = checked_path("/" + member.name)
        if path in self.paths:
            raise InvalidError(f"{path[:200]!r} is in the archive twice", hint="pack it again")
        above = ancestors(path)
        if len(above) >= DEPTH_MAX:
            raise InvalidError(f"{path[:200]!r} is more than {DEPTH_MAX} folders deep")
        if member.kind != "dir" and path in self._folders:
            raise InvalidError(f"{path[:200]!r} is a folder and a {member.kind} in the archive")
        for folder in reversed(above):
            if self.paths.get(folder, "dir") != "dir":
                raise InvalidError(f"{path[:200]!r} stands below {folder[:200]!r}, which is no folder")
            if folder in self._folders:
                break
            self._folders.add(folder)
        self.paths[path] = member.kind
        if member.kind == "symlink" and leads_out(path, b"".join(member.content())):
            self.links_outside.append(path)


def leads_out(path: str, target: bytes) -> bool:
    """Whether a symlink at `path` points out of the tree, read literally."""
    text = target.decode("utf-8", "surrogateescape")
    if text.startswith("/"):
        return True
    joined = posixpath.normpath(posixpath.join(posixpath.dirname(path)[1:], text))
    return joined == ".." or joined.startswith("../")


def survey(file: IO[bytes], form: Format) -> Survey:
    """Read an archive to its end; close the result. InvalidError and TooLargeError say what is wrong with it."""
    found = Survey(form=form)
    try:
        _look_through(file, found)
    except BaseException:
        found.close()
        raise
    return found


def _look_through(file: IO[bytes], found: Survey) -> None:
    packed_bytes = file.seek(0, 2)
    first = True
    with opened(file, found.form) as entries:
        for member in entries:
            if first:
                found.header = _header_of(member)
                found.sidecar = None if found.header is None else member.name.partition("/")[0]
                first = False
            found.count(member, packed_bytes)
            if found.form == "zip":  # its sizes and checksums are claims until the content was read
                for _ in member.content():
                    pass
            if found.sidecar is None or not is_below(member.name, found.sidecar):
                found.place(member)
            elif member.kind == "symlink":
                raise InvalidError(f"{member.name[:200]!r} cannot be a symlink")
            else:
                _capture(found, member)


def _capture(found: Survey, member: Member) -> None:
    """Keep the lists aside: they may come behind the files that they describe."""
    lists = {f"{found.sidecar}/{DOCUMENTS_FILE}": found.documents, f"{found.sidecar}/{MEMORIES_FILE}": found.memories}
    target = lists.get(member.name)
    if target is None or member.kind != "file":
        return
    if target.tell():
        raise InvalidError(f"{member.name!r} is in the archive twice")
    for piece in member.content():
        target.write(piece)


def is_below(name: str, folder: str) -> bool:
    """Whether a member is a folder or stands below it."""
    return name == folder or name.startswith(folder + "/")


def _header_of(member: Member) -> dict[str, Any] | None:
    """What the first member says, when it is that of an export."""
    folder, _, name = member.name.partition("/")
    if not folder.startswith(SIDECAR) or name != CONTAINER_FILE or member.kind != "file" or member.size_bytes > PIECE_BYTES:
        return None
    try:
        header = json.loads(b"".join(member.content()))
    except (ValueError, RecursionError):
        return None
    if not isinstance(header, dict) or header.get("format") != FORMAT_NAME:
        return None
    if header.get("version") != FORMAT_VERSION:
        raise InvalidError(
            f"the archive has version {header.get('version')!r} of its format", hint="import it with a newer memdir"
        )
    return header


@contextmanager
def opened(file: IO[bytes], form: Format) -> Iterator[Iterator[Member]]:
    """The members one after the other; the content of one can be read until the next is taken. What is broken in the archive is
    an InvalidError."""
    try:
        file.seek(0)
        if form == "zip":
            yield _named(_zip_members(file))
        elif form == "tar.gz":
            with gzip.GzipFile(fileobj=file) as unpacked:
                yield _named(_tar_members(cast(IO[bytes], unpacked)))
        else:
            yield _named(_tar_members(file))
    except _BROKEN as error:
        raise InvalidError(f"the archive is broken: {str(error)[:200] or type(error).__name__}") from None
    except (UnicodeError, ValueError, OverflowError) as error:
        raise InvalidError(f"the archive makes no sense: {str(error)[:200]}") from None


def _named(members: Iterator[Member]) -> Iterator[Member]:
    """Names as `tar` and `zip` write them, without './' before and '/' behind; the folder itself is passed over."""
    for member in members:
        name = member.name
        while name.startswith("./"):
            name = name[2:].lstrip("/") if name[2:3] == "/" else name[2:]
        name = name.rstrip("/") if member.kind == "dir" else name
        if name in ("", ".") and member.kind == "dir":
            continue
        if name.startswith("/"):
            raise InvalidError(f"{name[:200]!r} is an absolute name", hint="pack with names relative to the folder")
        yield (
            member
            if name == member.name
            else Member(
                name=name,
                kind=member.kind,
                size_bytes=member.size_bytes,
                mode=member.mode,
                mtime_ns=member.mtime_ns,
                content=member.content,
            )
        )


class _Bounded:
    """A file of which nobody reads much at once: the lengths in tar's headers are read in one piece."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file

    def read(self, size: int = -1) -> bytes:
        if size < 0 or size > _READ_MAX_BYTES:
            raise InvalidError(f"a header of the archive says that it has {size} bytes")
        return self._file.read(size)

    def seek(self, offset: int, whence: int = 0) -> int:
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        return self._file.tell()


def _tar_members(file: IO[bytes]) -> Iterator[Member]:
    archive = tarfile.TarFile(fileobj=cast(Any, _Bounded(file)), encoding="utf-8", errors="surrogateescape")
    reached = -1
    while (info := archive.next()) is not None:
        cast(Any, archive).members = []  # it would keep every one of them
        if info.size < 0 or info.offset <= reached:
            raise InvalidError(f"the header of {info.name[:200]!r} makes no sense")
        reached = info.offset
        yield _tar_member(archive, info)
    # The library takes a header that it cannot read for the end; the end is a block of zeros.
    file.seek(cast(Any, archive).offset)
    end = file.read(tarfile.BLOCKSIZE)
    if len(end) < tarfile.BLOCKSIZE or end.strip(b"\0"):
        where = f"after {reached} bytes" if reached >= 0 else "at its beginning"
        raise InvalidError(f"the archive is cut off or broken {where}", hint="take tar, tar.gz or zip")


def _tar_member(archive: tarfile.TarFile, info: tarfile.TarInfo) -> Member:
    if info.islnk():
        raise InvalidError(f"{info.name[:200]!r} is a hard link", hint="pack with tar --hard-dereference")
    if not (info.isreg() or info.isdir() or info.issym()):
        raise InvalidError(f"{info.name[:200]!r} is neither a file nor a folder nor a symlink", hint="leave it out")
    target = info.linkname.encode("utf-8", "surrogateescape")
    if info.issym() and not 0 < len(target) <= SYMLINK_MAX_BYTES:
        raise InvalidError(f"the target of {info.name[:200]!r} has {len(target)} bytes")

    def content() -> Iterator[bytes]:
        if info.issym():
            yield target
            return
        source = archive.extractfile(info)
        left = info.size
        while left and source is not None:
            piece = source.read(min(PIECE_BYTES, left))
            if not piece:
                raise InvalidError("the archive ends in the middle of a file")
            left -= len(piece)
            yield piece

    kind: Kind = "symlink" if info.issym() else "dir" if info.isdir() else "file"
    return Member(
        name=info.name,
        kind=kind,
        size_bytes=len(target) if info.issym() else info.size if kind == "file" else 0,
        mode=info.mode & 0o7777,
        mtime_ns=_mtime_ns(info),
        content=content,
    )


def _mtime_ns(info: tarfile.TarInfo) -> int:
    """From the pax header with all its digits, else whole seconds; what does not fit is cut."""
    text = info.pax_headers.get("mtime")
    if text is None:
        found = int(info.mtime * 1_000_000_000) if isinstance(info.mtime, int) else int(info.mtime) * 1_000_000_000
    else:
        whole, _, digits = text.strip().lstrip("+-").partition(".")
        found = int(whole or "0") * 1_000_000_000 + int((digits[:9] or "0").ljust(9, "0"))
        found = -found if text.strip().startswith("-") else found
    return min(max(found, -INT64_MAX), INT64_MAX)


def _zip_members(file: IO[bytes]) -> Iterator[Member]:
    _check_zip_entries(file)
    with zipfile.ZipFile(file) as archive:
        for info in archive.infolist():
            yield _zip_member(archive, info)


def _check_zip_entries(file: IO[bytes]) -> None:
    """The table of contents is read whole, so its length is looked at first: the end record says it, or (zip64) all ones."""
    size = file.seek(0, 2)
    file.seek(max(0, size - _ZIP_TAIL_BYTES))
    tail = file.read()
    at = tail.rfind(_ZIP_END)
    if at < 0 or len(tail) - at < 22:
        raise InvalidError("the archive is broken: it has no end")
    entries, table_bytes = struct.unpack("<HI", tail[at + 10 : at + 16])
    locator = tail.rfind(b"PK\x06\x06")
    if (entries == 0xFFFF or table_bytes == 0xFFFFFFFF) and 0 <= locator <= at - 56:
        entries, table_bytes = struct.unpack("<QQ", tail[locator + 32 : locator + 48])
    if entries > ZIP_ENTRIES_MAX or table_bytes > NAMES_MAX_BYTES + ZIP_ENTRIES_MAX * 128:
        raise TooLargeError(f"a zip can have at most {ZIP_ENTRIES_MAX} entries here", hint="take a tar")


def _zip_member(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> Member:
    if info.flag_bits & _ENCRYPTED:
        raise InvalidError(f"{info.filename[:200]!r} is encrypted")
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise InvalidError(f"{info.filename[:200]!r} is packed in a way that is not read here", hint="use stored or deflated")
    unix = info.external_attr >> 16 if info.create_system == 3 else 0
    name = _zip_name(info)
    kind: Kind = "dir" if name.endswith("/") else "symlink" if stat.S_ISLNK(unix) else "file"
    if unix and stat.S_IFMT(unix) not in (0, stat.S_IFREG, stat.S_IFDIR, stat.S_IFLNK):
        raise InvalidError(f"{info.filename[:200]!r} is neither a file nor a folder nor a symlink", hint="leave it out")
    if kind == "symlink" and not 0 < info.file_size <= SYMLINK_MAX_BYTES:
        raise InvalidError(f"the target of {info.filename[:200]!r} has {info.file_size} bytes")

    def content() -> Iterator[bytes]:
        left = info.file_size
        with archive.open(info) as source:
            while piece := source.read(min(PIECE_BYTES, left + 1)):
                left -= len(piece)
                if left < 0:
                    raise InvalidError(f"{info.filename[:200]!r} is larger than the archive says")
                yield piece
        if left:
            raise InvalidError(f"{info.filename[:200]!r} is smaller than the archive says")

    return Member(
        name=name,
        kind=kind,
        size_bytes=0 if kind == "dir" else info.file_size,
        mode=unix & 0o7777 if unix else (0o755 if kind == "dir" else 0o644),
        mtime_ns=_zip_mtime_ns(info),
        content=content,
    )


def _extra(info: zipfile.ZipInfo, wanted: int) -> bytes:
    """An extra field of an entry, empty when it has none."""
    extra = info.extra
    while len(extra) >= 4:
        kind, length = struct.unpack("<HH", extra[:4])
        if kind == wanted:
            return extra[4 : 4 + length]
        extra = extra[4 + length :]
    return b""


def _zip_name(info: zipfile.ZipInfo) -> str:
    """In UTF-8 by its flag, by Info-ZIP's field for it, or because it is valid; else in the old code page."""
    if info.flag_bits & _UTF8:
        return info.orig_filename
    raw = info.orig_filename.encode("cp437")
    spelled = _extra(info, 0x7075)
    if len(spelled) > 5 and struct.unpack("<L", spelled[1:5])[0] == zlib.crc32(raw):
        return spelled[5:].decode()
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return info.orig_filename


def _zip_mtime_ns(info: zipfile.ZipInfo) -> int:
    """Info-ZIP's extended timestamp when there is one, else the date, taken for UTC."""
    stamp = _extra(info, 0x5455)
    if len(stamp) >= 5 and stamp[0] & 1:
        seconds: int = struct.unpack("<l", stamp[1:5])[0]
        return seconds * 1_000_000_000
    return calendar.timegm((*info.date_time, 0, 0, 0)) * 1_000_000_000
