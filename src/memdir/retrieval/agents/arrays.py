"""Files of named arrays: written in pieces, put in place whole, and read by mapping them into memory."""

from __future__ import annotations

import json
import mmap
import os
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Protocol

import numpy as np

from memdir.core.errors import CorruptError
from memdir.core.paths import private
from memdir.retrieval.derived_index import TEMPORARY, replace_synced

Array = np.ndarray[Any, np.dtype[Any]]
Arrays = Mapping[str, Array]

_MAGIC: Final = b"MDARR001"
_HEADER_BYTES: Final = 8192
"""Magic, length and CRC-32 of the description, the description itself as JSON."""
_ALIGNED_BYTES: Final = 64
_PIECE_BYTES: Final = 1 << 24


class Sink(Protocol):
    """Takes arrays in pieces."""

    def reserve(self, name: str, dtype: str, most: int) -> None:
        """There will be an array of that name with at most that many values."""
        ...

    def append(self, name: str, values: Array) -> None:
        """The next values of an array."""
        ...

    def finish(self) -> Arrays:
        """All of them, to be read."""
        ...


class MemorySink:
    """Keeps the arrays in memory."""

    def __init__(self) -> None:
        self._pieces: dict[str, tuple[str, list[Array]]] = {}

    def reserve(self, name: str, dtype: str, most: int) -> None:
        del most
        self._pieces[name] = (dtype, [])

    def append(self, name: str, values: Array) -> None:
        dtype, pieces = self._pieces[name]
        pieces.append(values.astype(dtype, copy=False))

    def finish(self) -> Arrays:
        return {
            name: pieces[0] if len(pieces) == 1 else np.concatenate((np.zeros(0, dtype=dtype), *pieces)).astype(dtype)
            for name, (dtype, pieces) in self._pieces.items()
        }


class FileSink:
    """Writes the arrays to one file, which gets its name when all is in it and synced."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._temporary = path.with_name(path.name + TEMPORARY)
        self._file = open(self._temporary, "wb+", opener=private)  # noqa: SIM115  closed in __exit__
        self._next = _HEADER_BYTES
        self._arrays: dict[str, dict[str, Any]] = {}

    def __enter__(self) -> FileSink:
        return self

    def __exit__(self, *_: object) -> None:
        """What was not finished is nobody's."""
        if not self._file.closed:
            self._file.close()
            self._temporary.unlink(missing_ok=True)

    def reserve(self, name: str, dtype: str, most: int) -> None:
        self._arrays[name] = {"dtype": dtype, "offset": self._next, "count": 0, "crc": 0}
        size_bytes = most * np.dtype(dtype).itemsize
        self._next += -(-size_bytes // _ALIGNED_BYTES) * _ALIGNED_BYTES

    def append(self, name: str, values: Array) -> None:
        about = self._arrays[name]
        data = np.ascontiguousarray(values, dtype=about["dtype"])
        piece = _bytes_of(data)
        self._file.seek(about["offset"] + about["count"] * data.itemsize)
        self._file.write(piece)
        about["crc"] = zlib.crc32(piece, about["crc"])
        about["count"] += data.size

    def finish(self) -> Arrays:
        self._file.truncate(self._next)
        described = json.dumps({"arrays": self._arrays, "size_bytes": self._next}, sort_keys=True).encode()
        head = _MAGIC + len(described).to_bytes(4, "little") + zlib.crc32(described).to_bytes(4, "little") + described
        if len(head) > _HEADER_BYTES:
            raise ValueError(f"the description of {self._path.name} has {len(head)} bytes")
        self._file.seek(0)
        self._file.write(head)
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        replace_synced(self._temporary, self._path)
        return read_arrays(self._path, verify=False)


def read_arrays(path: Path, *, verify: bool) -> Arrays:
    """The arrays of a file, mapped. CorruptError for a file that is not what was written; only with `verify` are all of its
    bytes looked at (about a second for a gigabyte)."""
    damaged = CorruptError(f"{path} is damaged", hint="it is made again from the store by itself")
    try:
        with path.open("rb") as file:
            mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except (OSError, ValueError) as error:
        raise damaged from error
    head = mapped[:_HEADER_BYTES]
    described = head[16 : 16 + int.from_bytes(head[8:12], "little")]
    if head[:8] != _MAGIC or zlib.crc32(described) != int.from_bytes(head[12:16], "little"):
        raise damaged
    about = json.loads(described)
    if about["size_bytes"] != len(mapped):
        raise damaged
    arrays = {
        name: np.frombuffer(mapped, dtype=one["dtype"], count=one["count"], offset=one["offset"])
        for name, one in about["arrays"].items()
    }
    if verify and not _is_whole(mapped, 16 + len(described), arrays, about["arrays"]):
        raise damaged
    return arrays


def _is_whole(mapped: mmap.mmap, at: int, arrays: Arrays, described: Mapping[str, Any]) -> bool:
    """Whether the arrays have their checksums and there is nothing between them, nor between the description (which ends `at`)
    and the first."""
    for name, one in sorted(described.items(), key=lambda item: (item[1]["offset"], item[1]["count"])):
        if _crc(arrays[name]) != one["crc"] or not _is_empty(mapped, at, one["offset"]):
            return False
        at = one["offset"] + arrays[name].nbytes
    return _is_empty(mapped, at, len(mapped))


def _is_empty(mapped: mmap.mmap, at: int, end: int) -> bool:
    pieces = (mapped[first : min(end, first + _PIECE_BYTES)] for first in range(at, end, _PIECE_BYTES))
    return not any(piece.strip(b"\0") for piece in pieces)


def _crc(values: Array) -> int:
    data = _bytes_of(values)
    crc = 0
    for first in range(0, len(data), _PIECE_BYTES):
        crc = zlib.crc32(data[first : first + _PIECE_BYTES], crc)
    return crc


def _bytes_of(values: Array) -> memoryview:
    return values.data.cast("B") if values.size else memoryview(b"")
