"""Do the blobs in a folder and the rows that name them fit together? For `fsck`: nobody has the folder open."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

import apsw

from memdir.fs.cache.blobs import BlobFile, blob_files
from memdir.fs.cache.mark import Left, left_by
from memdir.fs.posix.place import ABSENT, IN_CHUNKS
from memdir.fs.posix.state import INDEX_BITS

_ROWS: Final = "select ino, place, size from inode where place > 0"
_HASH_BYTES: Final = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class BlobFault:
    """A row without its blob (`size_bytes` of the row), or a blob without a row."""

    kind: str
    detail: str
    ino: int
    blob: int
    file: BlobFile | None = None
    """The blob that no row names."""


def blob_faults(connection: apsw.Connection, folder: Path) -> list[BlobFault]:
    """What does not fit. A folder that was not closed is expected to have blobs too many, and after a power cut too few: the
    next open sees to that."""
    left = left_by(folder)
    files = {(file.ino, file.blob): file for file in blob_files(folder)}
    owners = {blob: ino for ino, blob in files}
    faults = []
    rows = {(ino, blob) for ino, blob, _ in connection.execute(_ROWS)}
    if left is not Left.POWER_CUT:
        for ino, blob in sorted(rows - files.keys()):
            owner = owners.get(blob)
            if owner is None:
                kind, detail = "blob-missing", f"the contents of file {ino} are in blob {blob}, which is not there"
            else:
                kind, detail = "blob-owner", f"file {ino} names blob {blob}, which belongs to file {owner}"
            faults.append(BlobFault(kind=kind, detail=detail, ino=ino, blob=blob))
    if left is Left.CLOSED:
        for ino, blob in sorted(files.keys() - rows):
            detail = f"blob {blob} of file {ino} is named by nothing"
            faults.append(BlobFault(kind="blob-orphan", detail=detail, ino=ino, blob=blob, file=files[ino, blob]))
    return faults


def forget_missing(connection: apsw.Connection, fault: BlobFault) -> None:
    """The bytes are not on this machine: chunks that are still there count again; else the file is absent, with a hash that
    nothing has, and sync asks the server for the file of that name."""
    first = fault.ino << INDEX_BITS
    last = (fault.ino + 1 << INDEX_BITS) - 1
    connection.execute(
        f"update inode set place = {IN_CHUNKS} where ino = ?1"  # noqa: S608 - a constant
        " and (size = 0 or exists (select 1 from chunk where key between ?2 and ?3))",
        (fault.ino, first, last),
    )
    connection.execute(
        f"update inode set place = {ABSENT}, target = zeroblob({_HASH_BYTES}) where ino = ? and place = ?",  # noqa: S608
        (fault.ino, fault.blob),
    )
