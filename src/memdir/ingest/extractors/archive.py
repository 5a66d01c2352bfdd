"""Archives (zip, tar, gzip, bzip2, xz): what is in them, and the text of the files that can be read, within limits."""

from __future__ import annotations

import bz2
import contextlib
import gzip
import lzma
import tarfile
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from memdir.ingest.extractors import embedded
from memdir.ingest.extractors.output import ExtractionError, Output
from memdir.ingest.text import decode

ENTRIES_MAX: Final = 2_000
"""Listed and opened; that there are more is said."""
TOTAL_MAX_BYTES: Final = 128 << 20
_MARKED_UTF8: Final = 0x800
_DAMAGED: Final = (
    zipfile.BadZipFile,
    tarfile.TarError,
    OSError,
    EOFError,
    lzma.LZMAError,
    zlib.error,
    ValueError,
    NotImplementedError,
)
_DAMAGED_HINT: Final = "pack it again"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Member:
    name: str
    size_bytes: int
    data: bytes | None
    """None: a folder, a link, or too large to be opened."""
    note: str = ""


def extract(path: Path, out: Output) -> None:
    """ExtractionError when it is damaged from the beginning."""
    out.engine = "python zipfile, tarfile"
    members: list[_Member] = []
    total = 0
    try:
        for member in _members(path):
            members.append(member)
            total += len(member.data or b"")
            out.progress(len(members), 0)
            if len(members) >= ENTRIES_MAX or total >= TOTAL_MAX_BYTES:
                out.truncated = True
                break
    except _DAMAGED as error:
        if not members:
            raise ExtractionError("it is damaged or cut off", hint=_DAMAGED_HINT) from error
        out.fact("damaged", "it ends in the middle")
    out.fact("entries", len(members))
    for member in members:
        out.item(f"{member.name} ({member.size_bytes} bytes{member.note})")
    out.end_list()
    for member in members:
        if member.data:
            embedded.add(member.data, member.name, out, title="File")


def _members(path: Path) -> Iterator[_Member]:
    with path.open("rb") as handle:
        head = handle.read(6)
    if head.startswith(b"PK"):
        yield from _zipped(path)
        return
    try:
        archive = tarfile.open(path, "r|*")  # noqa: SIM115  closed below, when it is one
    except tarfile.ReadError:
        archive = None  # one packed file
    if archive is not None:
        with archive:
            yield from _tarred(archive)
        return
    opener = gzip.open if head.startswith(b"\x1f\x8b") else bz2.open if head.startswith(b"BZh") else lzma.open
    with opener(path, "rb") as stream:
        data = bytes(stream.read(embedded.PART_MAX_BYTES + 1))
    large = len(data) > embedded.PART_MAX_BYTES
    yield _Member(
        name="contents", size_bytes=len(data), data=data[: embedded.PART_MAX_BYTES], note=" and more" if large else ""
    )


def _zipped(path: Path) -> Iterator[_Member]:
    with zipfile.ZipFile(path) as archive:
        infos = archive.infolist()
        for info, name in zip(infos, _names(infos), strict=True):
            if info.is_dir():
                yield _Member(name=name, size_bytes=0, data=None)
            elif info.flag_bits & 1:
                yield _Member(name=name, size_bytes=info.file_size, data=None, note=", encrypted")
            elif info.file_size > embedded.PART_MAX_BYTES:
                yield _Member(name=name, size_bytes=info.file_size, data=None, note=", not opened")
            else:
                data, note = None, ", cannot be unpacked"
                with contextlib.suppress(*_DAMAGED), archive.open(info) as handle:
                    data, note = handle.read(embedded.PART_MAX_BYTES), ""
                yield _Member(name=name, size_bytes=info.file_size, data=data, note=note)


def _names(infos: Sequence[zipfile.ZipInfo]) -> list[str]:
    """Names without the mark of UTF-8 are in whatever the machine used that packed them; the library takes all for cp437."""
    unmarked = [not info.flag_bits & _MARKED_UTF8 and not info.filename.isascii() for info in infos]
    raw = b"\n".join(info.filename.encode("cp437") for info, is_one in zip(infos, unmarked, strict=True) if is_one)
    text = decode(raw)
    told = text.text.split("\n") if text is not None else []
    if len(told) != sum(unmarked):
        return [info.filename for info in infos]
    return [told.pop(0) if is_one else info.filename for info, is_one in zip(infos, unmarked, strict=True)]


def _tarred(archive: tarfile.TarFile) -> Iterator[_Member]:
    for info in archive:
        handle = archive.extractfile(info) if info.isreg() and info.size <= embedded.PART_MAX_BYTES else None
        note = ", not opened" if info.isreg() and handle is None else ""
        yield _Member(name=info.name, size_bytes=info.size, data=handle.read() if handle else None, note=note)
