"""The files of one build, and the manifest that names them.

A build is a folder `NUMBER-GENERATION` of plain arrays (little endian) beside `NUMBER.json`, the manifest; NUMBER stands for
the model. The manifest is renamed into place last: without it a folder is nobody's. It also holds the checksums of all
files but two: the bytes of what was deleted are overwritten in `vectors` and `codes`.
"""

from __future__ import annotations

import json
import logging
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from memdir.core.errors import MemdirError
from memdir.retrieval.derived_index import remove, sweep, write_synced
from memdir.store.text.words import path_shares

log = logging.getLogger(__name__)

FORMAT: Final = 1
"""Grows when the files change their meaning; others are made anew."""

DTYPES: Final[Mapping[str, str]] = {
    "ids": "<i8",  # chunk of each row; rows are in the order of paths, then of the text
    "order": "<u4",  # rows in the order of their chunks' ids
    "vectors": "<f2",  # rows x dimensions
    "starts": "<i8",  # first row of each document, and the end
    "paths": "<u1",  # paths of the documents one after the other, in UTF-8
    "path_ends": "<i8",
    "documents": "S16",  # digests of the documents' ids, sorted
    "document_places": "<u4",  # whose they are: which document in the order of paths
    "mean": "<f4",
    "centres": "<f4",  # lists x dimensions
    "list_ends": "<i8",
    "list_rows": "<u4",  # rows list by list, ascending in each
    "codes": "<u8",  # words x rows, in the order of list_rows
    "words": "<u1",  # stems of paths one after the other, sorted, in UTF-8
    "word_ends": "<i8",
    "posting_ends": "<i8",
    "postings": "<u4",  # documents (in the order of paths) that have the word in their path
    "shares": "<f4",  # what it counts there
}
CHANGING: Final = frozenset({"vectors", "codes"})
_PIECE_BYTES: Final = 1 << 22
_PROBES: Final = (
    "/notes/2024-passport_renewal.txt", "/src/HttpServer/getUserName.py", "/Übersicht/Straßen.md", "/日本語/東京タワー.txt",
    "/Meetings/running late.eml", "/Отчёты/планы.md",
)  # fmt: skip


class DamagedError(MemdirError):
    """Files that are not what their manifest says, or of another format. They are made anew."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """What there is of one model in one container."""

    format: int
    generation: int
    model: str
    epoch: str
    """Of the container: after a restore it is another one, and ids may mean other passages."""
    event_id: int
    """Everything up to this row of `vector_event` is in the files."""
    dim: int
    rows: int
    lists: int
    analysis: str
    """How paths are taken apart, see `analysis`; '' when there are no words of paths."""
    sizes_bytes: Mapping[str, int]
    checksums: Mapping[str, int]
    """CRC-32 of each file that does not change."""


def analysis() -> str:
    """Another text when paths are taken apart in another way than they were."""
    shares = [path_shares(path) for path in _PROBES]
    return f"{zlib.crc32(json.dumps(shares).encode()):08x}"


def manifest_file(folder: Path, number: int) -> Path:
    """Where the manifest of a model lies."""
    return folder / f"{number}.json"


def build_folder(folder: Path, number: int, generation: int) -> Path:
    """Where the files of a build lie."""
    return folder / f"{number}-{generation}"


def write_manifest(folder: Path, number: int, manifest: Manifest) -> None:
    """From here on the build is the one that counts."""
    write_synced(manifest_file(folder, number), [json.dumps(asdict(manifest), indent=1).encode()])


def read_manifest(folder: Path, number: int) -> Manifest | None:
    """The manifest of a model, None when there is none. DamagedError."""
    path = manifest_file(folder, number)
    try:
        facts: Any = json.loads(path.read_bytes())
        manifest = Manifest(**facts)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError) as error:
        raise DamagedError(f"{path} is no manifest: {error}") from error
    if manifest.format != FORMAT:
        raise DamagedError(f"{path} has format {manifest.format}, this memdir writes {FORMAT}")
    return manifest


def load(folder: Path, manifest: Manifest, number: int) -> dict[str, np.ndarray[Any, Any]]:
    """The arrays of a build, mapped. DamagedError when one is missing, too short or has another checksum."""
    place = build_folder(folder, number, manifest.generation)
    found: dict[str, np.ndarray[Any, Any]] = {}
    for name, size_bytes in manifest.sizes_bytes.items():
        path = place / name
        try:
            if path.stat().st_size != size_bytes:
                raise DamagedError(f"{path} has {path.stat().st_size} bytes, not {size_bytes}")
            if name not in CHANGING and _checksum(path) != manifest.checksums.get(name):
                raise DamagedError(f"{path} has another checksum than when it was written")
            dtype = np.dtype(DTYPES[name])
            empty = np.zeros(0, dtype=dtype)
            found[name] = np.asarray(np.memmap(path, dtype=dtype, mode="r")) if size_bytes else empty
        except (OSError, KeyError, ValueError) as error:
            raise DamagedError(f"{path} cannot be read: {error}") from error
    return found


def tidy(folder: Path) -> None:
    """Take away what a build that died left, and builds that no manifest names. Only while nobody builds here."""
    if not folder.is_dir():
        return
    sweep(folder)
    named = set()
    for path in folder.glob("*.json"):
        if path.stem.isdigit():
            try:
                manifest = read_manifest(folder, int(path.stem))
            except DamagedError:
                continue
            if manifest is not None:
                named.add(build_folder(folder, int(path.stem), manifest.generation).name)
    for entry in sorted(folder.iterdir()):
        if entry.is_dir() and entry.name not in named:
            log.info("taking away %s, which no manifest names", entry)
            remove(entry)


class Writer:
    """Writes the files of a build and keeps their sizes and checksums."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.sizes_bytes: dict[str, int] = {}
        self.checksums: dict[str, int] = {}

    def array(self, name: str, array: np.ndarray[Any, Any]) -> None:
        """Write an array."""
        data = np.ascontiguousarray(array, dtype=DTYPES[name]).view(np.uint8).reshape(-1).data
        self.pieces(name, (data[first : first + _PIECE_BYTES] for first in range(0, len(data), _PIECE_BYTES)))

    def pieces(self, name: str, pieces: Iterable[bytes | memoryview]) -> None:
        """Write a file piece by piece."""
        checksum = 0

        def counted() -> Iterator[bytes | memoryview]:
            nonlocal checksum
            for piece in pieces:
                if name not in CHANGING:
                    checksum = zlib.crc32(piece, checksum)
                yield piece

        self.sizes_bytes[name] = write_synced(self.folder / name, counted())
        if name not in CHANGING:
            self.checksums[name] = checksum


def _checksum(path: Path) -> int:
    checksum = 0
    with path.open("rb") as file:
        while piece := file.read(_PIECE_BYTES):
            checksum = zlib.crc32(piece, checksum)
    return checksum
