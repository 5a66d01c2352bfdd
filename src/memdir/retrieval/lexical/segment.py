"""A part of an inverted index that never changes: words to passages, passages in the order of their paths.

Words and documents stand as 64-bit hashes (BLAKE2b): among a million words two share one with a chance of 3 in 100 million.
Rows are numbered in the order of (path, document, chunk id), so that a folder is a range of rows and costs what is in it.

The score of a word in a passage depends on two numbers only: how often it is there and how long the passage is. Both are kept
as the number of one of the segment's distinct pairs (`codes`), so that scoring a posting is one look into a small table.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_left
from dataclasses import dataclass, fields
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from memdir.retrieval.lexical.arrays import Array, Arrays
from memdir.store.types import Scope

Rows = npt.NDArray[np.int64]

TENTHS: Final = (10, 7)
"""What a word counts in the passage's text and in its context (title and headings), in tenths."""
FIELD_STARTS: Final = (0, 0xC000)
"""Positions of words in the two fields begin here, so that a phrase never spans both."""
POSITION_MAX: Final = 0xFFFF


def key_of(word: str) -> int:
    """The number that stands for a word (or for a document's id)."""
    return int.from_bytes(hashlib.blake2b(word.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")


def path_bytes(path: str | None) -> bytes:
    """A path as it is kept and compared: byte order of UTF-8, as in the databases."""
    return (path or "").encode("utf-8", "surrogatepass")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, weakref_slot=True)
class Segment:
    """Compared by identity. T words, P postings, O occurrences, C codes, R rows (passages), D documents."""

    keys: Array
    """u64[T], ascending."""
    starts: Array
    """i64[T + 1]: the postings of each word."""
    spots: Array
    """i64[T + 1]: the occurrences of each word."""
    tf_max: Array
    """u32[T]: the highest frequency of the word, in tenths."""
    length_min: Array
    """u32[T]: the shortest passage that holds it, in words."""
    rows: Array
    """i32[P], ascending within a word."""
    codes: Array
    """u16[P] or u32[P]."""
    positions: Array
    """u16[O], in the order of the postings."""
    code_tf: Array
    """u32[C]: frequency in tenths."""
    code_length: Array
    """u32[C]: words in the passage."""
    code_count: Array
    """u32[C]: occurrences."""
    chunk_ids: Array
    """i64[R]."""
    digests: Array
    """u64[R]: the first bytes of the hash of the passage's text."""
    lengths: Array
    """u32[R], in words."""
    by_id: Array
    """i32[R]: rows in the order of their chunk ids."""
    doc_starts: Array
    """i32[D + 1]: the rows of each document."""
    doc_keys: Array
    """u64[D]."""
    doc_by_key: Array
    """i32[D]: documents in the order of their keys."""
    paths: Array
    """u8: paths of the documents, one behind the other."""
    path_starts: Array
    """i64[D + 1]."""

    @staticmethod
    def of(arrays: Arrays) -> Segment:
        """From a sink or file."""
        return Segment(**{name: arrays[name] for name in FIELDS})

    @property
    def size(self) -> int:
        """Rows."""
        return len(self.chunk_ids)

    @property
    def size_bytes(self) -> int:
        """Of all arrays."""
        return sum(getattr(self, name).nbytes for name in FIELDS)

    def word(self, key: int) -> int:
        """The number of a word, -1 when no passage holds it."""
        at = int(np.searchsorted(self.keys, np.uint64(key)))
        return at if at < len(self.keys) and int(self.keys[at]) == key else -1

    def rows_of(self, chunk_ids: Rows) -> Rows:
        """The row of each chunk, -1 for one that is not here."""
        if not self.size or not len(chunk_ids):
            return np.full(len(chunk_ids), -1, dtype=np.int64)
        places = np.minimum(np.searchsorted(self.chunk_ids, chunk_ids, sorter=self.by_id), self.size - 1)
        rows = self.by_id[places].astype(np.int64)
        return np.where(self.chunk_ids[rows] == chunk_ids, rows, -1)

    def rows_of_document(self, key: int) -> list[int]:
        """The rows of a document, wherever it stands (it can stand at two paths for as long as a move has not been seen)."""
        wanted = np.uint64(key)
        first = int(np.searchsorted(self.doc_keys, wanted, sorter=self.doc_by_key))
        end = int(np.searchsorted(self.doc_keys, wanted, side="right", sorter=self.doc_by_key))
        documents = self.doc_by_key[first:end].tolist()
        return [row for at in documents for row in range(int(self.doc_starts[at]), int(self.doc_starts[at + 1]))]

    def document_of(self, rows: Rows) -> Rows:
        """The document of each row."""
        found: Rows = np.searchsorted(self.doc_starts, rows, side="right") - 1
        return found

    def path(self, document: int) -> bytes:
        """Where a document stood when the segment was made."""
        return self.paths[int(self.path_starts[document]) : int(self.path_starts[document + 1])].tobytes()

    def range_of(self, scope: Scope) -> tuple[int, int]:
        """First and end row of what stood in `scope` when the segment was made."""
        low, high = scope_bounds(scope)
        documents = _Paths(self)
        first, end = bisect_left(documents, low), bisect_left(documents, high)
        return int(self.doc_starts[first]), int(self.doc_starts[end])


def scope_bounds(scope: Scope) -> tuple[bytes, bytes]:
    """Paths in `scope` are those from the first to before the second; not for '/', which also holds what has no path."""
    if scope.exact:
        path = path_bytes(scope.folder)
        return path, path + b"\0"
    folder = path_bytes(scope.folder.rstrip("/"))
    return folder + b"/", folder + b"0"


class _Paths:
    """A segment's paths as a sequence, for `bisect`."""

    def __init__(self, segment: Segment) -> None:
        self._segment = segment

    def __len__(self) -> int:
        return len(self._segment.doc_keys)

    def __getitem__(self, at: int) -> bytes:
        return self._segment.path(at)


FIELDS: Final = tuple(field.name for field in fields(Segment))
DTYPES: Final[dict[str, Any]] = {
    "keys": "<u8", "starts": "<i8", "spots": "<i8", "tf_max": "<u4", "length_min": "<u4", "rows": "<i4", "codes": "<u4",
    "positions": "<u2", "code_tf": "<u4", "code_length": "<u4", "code_count": "<u4", "chunk_ids": "<i8", "digests": "<u8",
    "lengths": "<u4", "by_id": "<i4", "doc_starts": "<i4", "doc_keys": "<u8", "doc_by_key": "<i4", "paths": "|u1",
    "path_starts": "<i8",
}  # fmt: skip
