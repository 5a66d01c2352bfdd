"""Makes the files of one model in one container: one pass over the store, then lists and codes from the file of vectors.

Memory: the codes (48 bytes a passage at 384 dimensions), ids and paths once, and a sample of vectors for the lists; never all
vectors. At a million passages of 384 dimensions some 300 MB for a minute, and 900 MB of disk.
"""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np

from memdir.core.paths import ensure_dir
from memdir.retrieval.derived_index import TEMPORARY, remove, replace_synced
from memdir.retrieval.vectors.codes import codes_of, words_for
from memdir.retrieval.vectors.files import FORMAT, Manifest, Writer, analysis, build_folder, write_manifest
from memdir.retrieval.vectors.lists import assigned, centres_of, lists_for
from memdir.store.passages.vectors import Halves
from memdir.store.sqlite.vectors import VectorRow
from memdir.store.text.words import path_shares
from memdir.store.types import Matrix

DIGEST_BYTES: Final = 16
_PIECE_ROWS: Final = 1_024
_BLOCK_ROWS: Final = 4_096


def digest(document_id: str) -> bytes:
    """What stands for a document's id. 128 bits of BLAKE2: no two are the same."""
    return hashlib.blake2b(document_id.encode(), digest_size=DIGEST_BYTES).digest()


def build(
    rows: Iterable[VectorRow],
    folder: Path,
    *,
    number: int,
    model: str,
    stamp: Callable[[], tuple[str, int]],
    with_words: bool,
    checkpoint: Callable[[int], None],
) -> Manifest | None:
    """Write the files for `rows` (as `VectorReader.by_path` gives them) below `folder` and put them in place; None when there
    are no rows. `stamp`, asked after the last row, gives the container's epoch and the last event that the rows hold.
    `checkpoint` gets the number of rows read so far, often, and may raise to end the build, which has then changed nothing.
    One build of a model in a container at a time."""
    ensure_dir(folder)
    generation = _next_generation(folder, number)
    place = build_folder(folder, number, generation)
    temporary = place.with_name(place.name + TEMPORARY)
    remove(temporary)
    ensure_dir(temporary)
    writer = Writer(temporary)
    read = _Read()
    writer.pieces("vectors", read.pieces(rows, checkpoint))
    if not read.ids:
        remove(temporary)
        return None
    dim = writer.sizes_bytes["vectors"] // 2 // len(read.ids)
    matrix: Halves = np.memmap(temporary / "vectors", dtype="<f2", mode="r", shape=(len(read.ids), dim))
    _write_rows(writer, read)
    lists = _write_lists(writer, np.asarray(matrix), lambda: checkpoint(len(read.ids)))
    if with_words:
        _write_words(writer, read, lambda: checkpoint(len(read.ids)))
    manifest = Manifest(
        format=FORMAT,
        generation=generation,
        model=model,
        epoch=stamp()[0],
        event_id=stamp()[1],
        dim=dim,
        rows=len(read.ids),
        lists=lists,
        analysis=analysis() if with_words else "",
        sizes_bytes=writer.sizes_bytes,
        checksums=writer.checksums,
    )
    checkpoint(len(read.ids))
    replace_synced(temporary, place)
    write_manifest(folder, number, manifest)
    return manifest


def _next_generation(folder: Path, number: int) -> int:
    """Higher than that of every folder of the model, whether a manifest names it or not."""
    found = [entry.name.split(".")[0].split("-") for entry in folder.glob(f"{number}-*")]
    return 1 + max((int(parts[1]) for parts in found if len(parts) == 2 and parts[1].isdigit()), default=0)


class _Read:
    """What is kept of the rows beside their vectors."""

    def __init__(self) -> None:
        self.ids = array("q")
        self.starts = array("q")
        self.paths = bytearray()
        self.path_ends = array("q")
        self.documents: list[bytes] = []

    def pieces(self, rows: Iterable[VectorRow], checkpoint: Callable[[int], None]) -> Iterator[bytes]:
        """The vectors, many at a time."""
        last: str | None = None
        piece: list[bytes] = []
        for row in rows:
            if row.document_id != last:
                last = row.document_id
                self.starts.append(len(self.ids))
                self.paths += row.path.encode()
                self.path_ends.append(len(self.paths))
                self.documents.append(digest(row.document_id))
            self.ids.append(row.chunk_id)
            piece.append(row.vector)
            if len(piece) == _PIECE_ROWS:
                checkpoint(len(self.ids))
                yield b"".join(piece)
                piece = []
        self.starts.append(len(self.ids))
        yield b"".join(piece)

    def path(self, place: int) -> str:
        """Of the document at a place."""
        return self.paths[self.path_ends[place - 1] if place else 0 : self.path_ends[place]].decode()


def _write_rows(writer: Writer, read: _Read) -> None:
    ids = np.frombuffer(read.ids, dtype=np.int64)
    documents = np.array(read.documents, dtype=f"S{DIGEST_BYTES}")
    by_digest = np.argsort(documents, kind="stable")
    writer.array("ids", ids)
    writer.array("order", np.argsort(ids, kind="stable"))
    writer.array("starts", np.frombuffer(read.starts, dtype=np.int64))
    writer.array("paths", np.frombuffer(read.paths, dtype=np.uint8))
    writer.array("path_ends", np.frombuffer(read.path_ends, dtype=np.int64))
    writer.array("documents", documents[by_digest])
    writer.array("document_places", by_digest)


def _write_lists(writer: Writer, matrix: Halves, checkpoint: Callable[[], None]) -> int:
    """Lists, and the codes in their order. Returns how many lists there are."""
    count, dim = matrix.shape
    lists = lists_for(count)
    centres = centres_of(matrix, lists, checkpoint=checkpoint)
    places = assigned(matrix, centres, checkpoint=checkpoint)
    rows = np.argsort(places, kind="stable")
    mean = _mean(matrix, checkpoint)
    codes = np.empty((words_for(dim), count), dtype=np.uint64)
    for first in range(0, count, _BLOCK_ROWS):
        checkpoint()
        part = rows[first : first + _BLOCK_ROWS]
        codes[:, first : first + len(part)] = codes_of(matrix[part].astype(np.float32), mean)
    writer.array("mean", mean)
    writer.array("centres", centres)
    writer.array("list_ends", np.cumsum(np.bincount(places, minlength=lists)))
    writer.array("list_rows", rows)
    writer.array("codes", codes)
    return lists


def _mean(matrix: Halves, checkpoint: Callable[[], None]) -> Matrix:
    total = np.zeros(matrix.shape[1], dtype=np.float64)
    for first in range(0, len(matrix), _BLOCK_ROWS):
        checkpoint()
        total += matrix[first : first + _BLOCK_ROWS].astype(np.float32).sum(axis=0, dtype=np.float64)
    return (total / len(matrix)).astype(np.float32)


def _write_words(writer: Writer, read: _Read, checkpoint: Callable[[], None]) -> None:
    """Documents by the words of their paths."""
    postings: dict[str, tuple[array[int], array[float]]] = {}
    for place in range(len(read.path_ends)):
        if place % _PIECE_ROWS == 0:
            checkpoint()
        for word, share in path_shares(read.path(place)):
            documents, shares = postings.setdefault(word, (array("I"), array("f")))
            documents.append(place)
            shares.append(share)
    words = sorted(postings)
    encoded = [word.encode() for word in words]
    writer.array("words", np.frombuffer(b"".join(encoded), dtype=np.uint8))
    writer.array("word_ends", _ends(len(word) for word in encoded))
    writer.array("posting_ends", _ends(len(postings[word][0]) for word in words))
    writer.pieces("postings", (_little(postings[word][0], "<u4") for word in words))
    writer.pieces("shares", (_little(postings[word][1], "<f4") for word in words))


def _ends(sizes: Iterable[int]) -> np.ndarray[Any, Any]:
    return np.cumsum(np.fromiter(sizes, dtype=np.int64))


def _little(values: array[Any], dtype: str) -> bytes:
    return np.asarray(values).astype(dtype).tobytes()
