"""The files of one model in one container, mapped and searched.

Rows lie in the order of paths, so that a folder is a range of rows. Up to EXACT_MAX rows in scope are all compared. Of more,
codes are compared in the lists around the query until there were enough in scope (`_probed`), and vectors of the best.
Memory: the codes of lists in use, ids and centres; the vectors are read from the page cache, 1,500 rows a search.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from memdir.retrieval.vectors.build import digest
from memdir.retrieval.vectors.codes import Codes, codes_of, distances, fewest, words_for
from memdir.retrieval.vectors.files import DamagedError, Manifest, analysis, build_folder, load
from memdir.store.passages.reading import is_everywhere
from memdir.store.passages.vectors import Halves, Rows, closest, dots, half_dots
from memdir.store.types import Chosen, Matrix, Scope

EXACT_MAX: Final = 10_000
"""Rows in scope up to which all are compared: 3 ms at 384 dimensions, and the answer is exact."""
_PROBED_MIN: Final = 32_768
_PROBED_SHARE: Final = 16
"""Codes in scope that a search compares: this many, or one in 16 when that is more."""
_RESCORED_PER_HIT: Final = 10
_RESCORED_MIN: Final = 1_000
"""Of the best codes, the vectors that are compared."""
_BITS_ENOUGH: Final = 256
"""A code of fewer bits tells less: so many times more vectors are compared."""
_CHECKED_ROWS: Final = 4096
"""Vectors in memory at once while codes are compared with them."""
_POSTINGS_MAX: Final = 20_000
"""Files with a word of the query in their path that are compared; a commoner word only adds to what rarer ones found."""

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class Near:
    """The nearest of one part of a container, which has `size` vectors in scope."""

    ids: Rows
    cosines: Matrix
    size: int


class Segment:
    """Not thread-safe. Rows are dropped, never added."""

    def __init__(self, folder: Path, number: int, manifest: Manifest) -> None:
        """DamagedError when the files are not what the manifest says."""
        arrays = load(folder, manifest, number)
        self.manifest = manifest
        self.place = build_folder(folder, number, manifest.generation)
        count, dim = manifest.rows, manifest.dim
        try:
            self.ids: Rows = arrays["ids"]
            self.vectors: Halves = arrays["vectors"].reshape(count, dim)
            self._order = arrays["order"]
            self._starts: Rows = arrays["starts"]
            self._paths = arrays["paths"]
            self._path_ends: Rows = arrays["path_ends"]
            self._documents = arrays["documents"]
            self._document_places = arrays["document_places"]
            self._mean: Matrix = arrays["mean"]
            self._centres: Matrix = arrays["centres"].reshape(manifest.lists, dim)
            self._list_ends: Rows = arrays["list_ends"]
            self._list_rows = arrays["list_rows"]
            self._codes = arrays["codes"].reshape(words_for(dim), count)
            self._words = _Words(arrays) if manifest.analysis == analysis() else None
        except (KeyError, ValueError) as error:
            raise DamagedError(f"{self.place} lacks a part: {error}") from error
        self.alive: Mask = np.ones(count, dtype=np.bool_)
        self.dead = 0
        self._chosen: WeakKeyDictionary[Chosen, Rows] = WeakKeyDictionary()
        self._dropped: list[int] = []
        self._listed: npt.NDArray[np.uint32] | None = None
        self._sorted_ids: Rows | None = None
        """Made on first use, 8 bytes a row: numpy copies what it is told to sort by at every look-up."""

    def __len__(self) -> int:
        return len(self.ids) - self.dead

    @property
    def has_words(self) -> bool:
        """Whether it knows words of paths as they are taken apart now."""
        return self._words is not None

    def rows_of(self, chunk_ids: Rows) -> Rows:
        """The row of each chunk, -1 for one that is not (or no longer) here."""
        if self._sorted_ids is None:
            self._sorted_ids = self.ids[self._order]
        places = np.minimum(np.searchsorted(self._sorted_ids, chunk_ids), len(self.ids) - 1)
        rows = self._order[places].astype(np.int64)
        return np.where((self.ids[rows] == chunk_ids) & self.alive[rows], rows, -1)

    def rows_of_document(self, document_id: str) -> Rows:
        """Rows of a document that are still here."""
        wanted = np.array([digest(document_id)], dtype=self._documents.dtype)
        place = int(np.searchsorted(self._documents, wanted)[0])
        if place == len(self._documents) or self._documents[place] != wanted[0]:
            return np.zeros(0, dtype=np.int64)
        at = int(self._document_places[place])
        rows = np.arange(self._starts[at], self._starts[at + 1], dtype=np.int64)
        return rows[self.alive[rows]]

    def path_at(self, place: int) -> str:
        """Path of the document at a place in the order of paths."""
        first = int(self._path_ends[place - 1]) if place else 0
        return bytes(self._paths[first : int(self._path_ends[place])]).decode()

    def path_of(self, row: int) -> str:
        """Path of a row when the files were made."""
        return self.path_at(int(np.searchsorted(self._starts, row, side="right")) - 1)

    def drop(self, row: int, *, erased: bool) -> None:
        """The row is no longer here; `erased`: its vector's bytes are to be overwritten by the next `erase`."""
        self.alive[row] = False
        self.dead += 1
        if erased:
            self._dropped.append(row)

    def take_dropped(self) -> Rows:
        """Rows to `erase`, once."""
        if not self._dropped:
            return np.zeros(0, dtype=np.int64)
        rows = np.unique(np.array(self._dropped, dtype=np.int64))
        self._dropped.clear()
        return rows

    def erase(self, rows: Rows) -> None:
        """Overwrite the vectors and codes of dropped rows in the files. Others may search meanwhile. OSError."""
        dim = self.manifest.dim
        _overwrite(self.place / "vectors", ((row * dim * 2, dim * 2) for row in rows.tolist()))
        words, count = self._codes.shape
        places = np.flatnonzero(np.isin(self._list_rows, rows)).tolist()
        _overwrite(self.place / "codes", ((8 * (word * count + place), 8) for word in range(words) for place in places))

    def wrong_codes(self) -> int:
        """How many rows in use have another code than their vector's. Reads all vectors."""
        wrong = 0
        for first in range(0, len(self._list_rows), _CHECKED_ROWS):
            rows = self._list_rows[first : first + _CHECKED_ROWS]
            codes = codes_of(self.vectors[rows].astype(np.float32), self._mean)
            differs = (codes != self._codes[:, first : first + len(rows)]).any(axis=0)
            wrong += int(np.count_nonzero(differs & self.alive[rows]))
        return wrong

    def cosines(self, chunk_ids: Rows, query: Matrix) -> Matrix:
        """Cosine of each chunk, NaN for one that is not here."""
        rows = self.rows_of(chunk_ids)
        found = np.full(len(chunk_ids), np.nan, dtype=np.float32)
        here = np.flatnonzero(rows >= 0)
        if len(here):
            found[here] = half_dots(self.vectors, query, rows[here])
        return found

    def nearest(self, scope: Scope, query: Matrix, limit: int, *, exact_max: int = EXACT_MAX) -> Near | None:
        """The closest rows in scope, None when there is nothing."""
        first, end = self.range_of(scope)
        rows = None if scope.chosen is None else self._rows_chosen(scope.chosen, first, end)
        size = self._alive_in(first, end, rows)
        if not size:
            return None
        if size <= exact_max:
            return self._compared(query, rows, first, end, limit)
        return self._approximate(query, rows, first, end, limit, size)

    def counted(self, scope: Scope) -> int:
        """How many rows are in scope."""
        first, end = self.range_of(scope)
        return self._alive_in(first, end, None if scope.chosen is None else self._rows_chosen(scope.chosen, first, end))

    def _alive_in(self, first: int, end: int, rows: Rows | None) -> int:
        """How many of `rows` (None: of those between two rows) are still here."""
        if not self.dead:
            return end - first if rows is None else len(rows)
        return int(np.count_nonzero(self.alive[first:end] if rows is None else self.alive[rows]))

    def _compared(self, query: Matrix, rows: Rows | None, first: int, end: int, limit: int) -> Near:
        if rows is None and self.alive[first:end].all():
            ids, cosines = self.ids[first:end], half_dots(self.vectors[first:end], query)
        else:
            rows = np.arange(first, end, dtype=np.int64) if rows is None else rows
            rows = rows[self.alive[rows]]
            ids, cosines = self.ids[rows], half_dots(self.vectors, query, rows)
        best, scores = closest(ids, cosines, limit)
        return Near(ids=best, cosines=scores, size=len(ids))

    def _approximate(self, query: Matrix, rows: Rows | None, first: int, end: int, limit: int, size: int) -> Near:
        span = end - first if rows is None else len(rows)
        wanted = max(_PROBED_MIN, size // _PROBED_SHARE)
        if span < len(self.ids) and span <= 2 * wanted:
            probed, codes = self._all_in(np.arange(first, end, dtype=np.int64) if rows is None else rows)
        else:
            probed, codes = self._probed(query, first, end, rows, wanted=wanted)
        code = codes_of(query[np.newaxis], self._mean)
        rescored = max(_RESCORED_MIN, _RESCORED_PER_HIT * limit) * max(1, _BITS_ENOUGH // self.manifest.dim)
        best = fewest(distances(codes, code), rescored)
        found = np.sort(probed[best].astype(np.int64))
        found = found[self.alive[found]]
        ids, cosines = closest(self.ids[found], half_dots(self.vectors, query, found), limit)
        return Near(ids=ids, cosines=cosines, size=size)

    def _probed(
        self, query: Matrix, first: int, end: int, chosen: Rows | None, *, wanted: int
    ) -> tuple[npt.NDArray[np.uint32], Codes]:
        """At least `wanted` rows in scope with their codes, of the lists whose centres are closest; all there are when
        those are fewer."""
        whole = first == 0 and end == len(self.ids) and chosen is None
        if whole and (wanted >= len(self.ids) or len(self._centres) == 1):
            return self._list_rows, self._codes
        allowed = None
        if chosen is not None:
            allowed = np.zeros(len(self.ids), dtype=np.bool_)
            allowed[chosen] = True
        affinity = dots(self._centres, query)
        rows: list[npt.NDArray[np.uint32]] = []
        codes: list[Codes] = []
        taken = 0
        order = np.argsort(-affinity, kind="stable")
        sizes = np.diff(self._list_ends, prepend=0)[order]
        ends = self._list_ends[order]
        for low, high in zip((ends - sizes).tolist(), ends.tolist(), strict=True):
            own, code = self._list_rows[low:high], self._codes[:, low:high]
            if not whole:
                part = slice(*np.searchsorted(own, np.array([first, end], dtype=np.uint32)))
                own, code = own[part], code[:, part]
            if allowed is not None:
                inside = allowed[own]
                own, code = own[inside], code[:, inside]
            rows.append(own)
            codes.append(code)
            taken += len(own)
            if taken >= wanted:
                break
        return np.concatenate(rows), np.concatenate(codes, axis=1)

    def _all_in(self, rows: Rows) -> tuple[npt.NDArray[np.uint32], Codes]:
        """`rows` with their codes. Where each row stands in the lists is made on first use, 4 bytes a row."""
        if self._listed is None:
            self._listed = np.empty(len(self.ids), dtype=np.uint32)
            self._listed[self._list_rows] = np.arange(len(self.ids), dtype=np.uint32)
        places = self._listed[rows]
        return rows.astype(np.uint32), self._codes[:, places]

    def range_of(self, scope: Scope) -> tuple[int, int]:
        """First and end row in the place of `scope`; documents without a path are in '/' only."""
        if is_everywhere(scope):
            return 0, len(self.ids)
        first, end = self._places_of(scope)
        return int(self._starts[first]), int(self._starts[end])

    def _places_of(self, scope: Scope) -> tuple[int, int]:
        """The same as documents in the order of paths."""
        if is_everywhere(scope):
            return 0, len(self._path_ends)
        if scope.exact:
            first = self._bisect(scope.folder.encode())
            return first, first + (first < len(self._path_ends) and self.path_at(first) == scope.folder)
        folder = scope.folder.rstrip("/").encode()
        return self._bisect(folder + b"/"), self._bisect(folder + b"0")

    def _bisect(self, path: bytes) -> int:
        """The first document whose path is not before `path`."""
        low, high = 0, len(self._path_ends)
        while low < high:
            middle = (low + high) // 2
            if self.path_at(middle).encode() < path:
                low = middle + 1
            else:
                high = middle
        return low

    def _rows_chosen(self, chosen: Chosen, first: int, end: int) -> Rows:
        """Rows of the documents that `chosen` takes, between two rows; made once for each `chosen`."""
        rows = self._chosen.get(chosen)
        if rows is None:
            rows = self._chosen[chosen] = self._choose(chosen)
        return rows[slice(*np.searchsorted(rows, [first, end]))]

    def _choose(self, chosen: Chosen) -> Rows:
        wanted = np.array([digest(document_id) for document_id in chosen.ids], dtype=self._documents.dtype)
        at = np.minimum(np.searchsorted(self._documents, wanted), len(self._documents) - 1)
        taken = np.zeros(len(self._documents), dtype=np.bool_)
        taken[self._document_places[at[self._documents[at] == wanted]]] = True
        if chosen.but:
            np.logical_not(taken, out=taken)
        return np.flatnonzero(np.repeat(taken, np.diff(self._starts)))

    def named(self, scope: Scope, stems: Collection[str]) -> Iterator[tuple[float, str, list[int]]]:
        """Paths in scope that hold any of `stems`: what the words count, path, chunks that are still here; best first."""
        if self._words is None:
            return
        first, end = self._places_of(scope)
        places, totals = self._words.sums(sorted(stems), first, end)
        rows = None if scope.chosen is None else self._rows_chosen(scope.chosen, 0, len(self.ids))
        for at in np.lexsort((places, -totals)).tolist():
            low, high = int(self._starts[places[at]]), int(self._starts[places[at] + 1])
            if rows is not None and np.searchsorted(rows, low) == np.searchsorted(rows, high):
                continue
            ids = self.ids[low:high][self.alive[low:high]].tolist()
            if ids:
                yield float(totals[at]), self.path_at(int(places[at])), ids


class _Words:
    """Documents by the words of their paths."""

    def __init__(self, arrays: dict[str, np.ndarray[Any, Any]]) -> None:
        """KeyError when a file is missing."""
        self._text = arrays["words"]
        self._ends: Rows = arrays["word_ends"]
        self._posting_ends: Rows = arrays["posting_ends"]
        self._postings = arrays["postings"]
        self._shares = arrays["shares"]

    def sums(self, stems: Collection[str], first: int, end: int) -> tuple[Rows, npt.NDArray[np.float64]]:
        """Documents between two places that hold any of `stems`, and what their words count together. When all words are
        common, the first _POSTINGS_MAX of the rarest."""
        found = sorted((self._of(stem, first, end) for stem in stems), key=lambda pair: len(pair[0]))
        found = [pair for pair in found if len(pair[0])]
        if not found:
            return np.zeros(0, dtype=np.int64), np.zeros(0)
        rare = [places for places, _ in found if len(places) <= _POSTINGS_MAX] or [found[0][0][:_POSTINGS_MAX]]
        places = np.unique(np.concatenate(rare))
        totals = np.zeros(len(places))
        for own, shares in found:
            at = np.minimum(np.searchsorted(own, places), len(own) - 1)
            totals += np.where(own[at] == places, shares[at], 0.0)
        return places.astype(np.int64), totals

    def _of(self, stem: str, first: int, end: int) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        word = stem.encode()
        low, high = 0, len(self._ends)
        while low < high:
            middle = (low + high) // 2
            if self._word(middle) < word:
                low = middle + 1
            else:
                high = middle
        if low == len(self._ends) or self._word(low) != word:
            return self._postings[:0], self._shares[:0]
        begin, stop = int(self._posting_ends[low - 1]) if low else 0, int(self._posting_ends[low])
        places = self._postings[begin:stop]
        inside = slice(*np.searchsorted(places, np.array([first, end], dtype=np.uint32)))
        return places[inside], self._shares[begin:stop][inside]

    def _word(self, number: int) -> bytes:
        return bytes(self._text[int(self._ends[number - 1]) if number else 0 : int(self._ends[number])])


def _overwrite(path: Path, spans: Iterator[tuple[int, int]]) -> None:
    """Put zeros over parts of a file, by place and length in bytes, and sync it."""
    fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        for place, length in spans:
            os.pwrite(fd, bytes(length), place)
        os.fsync(fd)
    finally:
        os.close(fd)
