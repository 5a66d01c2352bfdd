"""One file of the trigram index: which of up to SEGMENT_CONTENTS contents hold which trigrams. Written once, never changed.

Layout, all numbers little endian: MAGIC; counts of contents, trigrams and posting bytes (u64 each); SHA-256 of each content
in ascending order (32 bytes each); a byte for each content, 1 when it is too diverse to be indexed; the trigrams in
ascending order (u32); where the posting list of each begins, and the end of the last (u64); bytes a gap of each list takes,
1, 2 or 4 (u8); the lists: the first row, then gaps between rows; CRC-32 of everything before it (u32). A list is short
where a trigram is rare, and takes a byte a content where it is common.
"""

from __future__ import annotations

import mmap
import os
import struct
import zlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from memdir.core.errors import CorruptError
from memdir.retrieval.derived_index import write_synced

SEGMENT_CONTENTS: Final = 16_384
SEGMENT_POSTING_BYTES: Final = 16 << 20
"""Segments that would have more do not become one: writing one takes 20 bytes of memory for each of these, and office files
and pictures have nearly as many trigrams as bytes."""
DIVERSE_TRIGRAMS: Final = 100_000
"""A content with more trigrams than these (noise, archives) would match nearly every pattern's trigrams: it is always read."""
MAGIC: Final = b"MDTRI001"
_HEAD: Final = struct.Struct("<8sQQQ")
_PIECE_BYTES: Final = 1 << 20
_FOLDED: Final = ((b"\xe2\x84\xaa", b"k"), (b"\xc5\xbf", b"s"), (b"\xc4\xb1", b"i"), (b"\xc4\xb0", b"i"))
"""Kelvin sign, long s, i without and with a dot: they are the same as an ASCII letter when case does not count."""

Numbers = npt.NDArray[np.uint32]


def trigrams_in(data: bytes) -> Numbers | None:
    """The distinct trigrams of a content in ascending order; None for one that is too diverse. Those over a line end are left
    out, since no match reaches over one."""
    found = _distinct(data.lower())
    if any(special in data for special, _ in _FOLDED):
        folded = data
        for special, letter in _FOLDED:
            folded = folded.replace(special, letter)
        found = _sorted_once(np.concatenate((found, _distinct(folded.lower()))))
    return None if len(found) > DIVERSE_TRIGRAMS else found


def _distinct(low: bytes) -> Numbers:
    found = np.zeros(0, dtype=np.uint32)
    for start in range(0, max(len(low) - 2, 0), _PIECE_BYTES):
        piece = np.frombuffer(low, dtype=np.uint8, offset=start, count=min(_PIECE_BYTES + 2, len(low) - start)).astype(
            np.uint32
        )
        inside = piece != 10
        grams = (piece[:-2] << 16) | (piece[1:-1] << 8) | piece[2:]
        grams = grams[inside[:-2] & inside[1:-1] & inside[2:]]
        found = _sorted_once(np.concatenate((found, grams)))
        if len(found) > DIVERSE_TRIGRAMS:
            break
    return found


def _sorted_once(numbers: Numbers) -> Numbers:
    """As np.unique, which hashes many different numbers and takes a hundred times as long (numpy 2.4)."""
    ordered = np.sort(numbers)
    return ordered[_firsts(ordered)]


def _firsts(ordered: Numbers) -> npt.NDArray[np.bool_]:
    """A mask of the first of each run of equal numbers."""
    firsts = np.ones(len(ordered), dtype=bool)
    np.not_equal(ordered[1:], ordered[:-1], out=firsts[1:])
    return firsts


def write_segment(path: Path, contents: Sequence[tuple[bytes, Numbers | None]]) -> None:
    """Contents by hash with their trigrams, to a new file that is complete and on the disk when this returns. OSError."""
    ordered = sorted(contents, key=lambda item: item[0])
    pairs = _pairs([grams for _, grams in ordered])
    grams = (pairs >> np.uint64(32)).astype(np.uint32)
    gaps = pairs.astype(np.uint32)  # the lower half: rows
    del pairs
    starts = np.flatnonzero(_firsts(grams))
    keys = grams[starts]
    del grams
    firsts = gaps[starts]
    gaps[1:] -= gaps[:-1].copy()
    gaps[starts] = firsts
    postings, offsets, widths = _packed(gaps, starts)
    parts = [
        _HEAD.pack(MAGIC, len(ordered), len(keys), len(postings)),
        b"".join(digest for digest, _ in ordered),
        bytes(grams is None for _, grams in ordered),
        keys.astype("<u4").tobytes(),
        offsets.astype("<u8").tobytes(),
        widths.tobytes(),
        postings,
    ]
    check = 0
    for part in parts:
        check = zlib.crc32(part, check)
    write_synced(path, [*parts, struct.pack("<I", check)])


def _pairs(lists: Sequence[Numbers | None]) -> npt.NDArray[np.uint64]:
    """Trigram and row in one number each, in ascending order: sorted where they lie, 8 bytes for each."""
    ends = np.cumsum([0 if grams is None else len(grams) for grams in lists], dtype=np.int64)
    pairs = np.empty(int(ends[-1]) if len(ends) else 0, dtype=np.uint64)
    for row, (end, grams) in enumerate(zip(ends.tolist(), lists, strict=True)):
        if grams is not None:
            pairs[end - len(grams) : end] = (grams.astype(np.uint64) << np.uint64(32)) | np.uint64(row)
    pairs.sort()
    return pairs


def _packed(gaps: Numbers, starts: npt.NDArray[np.intp]) -> tuple[bytes, npt.NDArray[np.uint64], npt.NDArray[np.uint8]]:
    """The lists in as few bytes a gap as the largest of each needs, one list behind the other."""
    if not len(starts):
        return b"", np.zeros(1, dtype=np.uint64), np.zeros(0, dtype=np.uint8)
    lengths = np.diff(np.append(starts, len(gaps)))
    largest = np.maximum.reduceat(gaps, starts)
    widths = np.where(largest < 1 << 8, 1, np.where(largest < 1 << 16, 2, 4)).astype(np.uint8)
    sizes = lengths * widths
    offsets = np.zeros(len(starts) + 1, dtype=np.uint64)
    offsets[1:] = np.cumsum(sizes)
    packed = np.zeros(int(offsets[-1]), dtype=np.uint8)
    for width in (1, 2, 4):
        chosen = np.repeat(widths == width, lengths)
        place = np.repeat(widths == width, sizes)
        packed[place] = gaps[chosen].astype(f"<u{width}").view(np.uint8)
    return packed.tobytes(), offsets, widths


class Segment:
    """A segment file, mapped. Thread-safe; closing is the garbage collector's."""

    def __init__(self, path: Path, *, thorough: bool = False) -> None:
        """CorruptError for what is no segment; with `thorough` its checksum is compared, too. OSError."""
        self.path = path
        with open(path, "rb") as handle:
            size = os.fstat(handle.fileno()).st_size
            if size < _HEAD.size + 12:
                raise CorruptError(f"{path} is too short for a trigram segment")
            self._map = mmap.mmap(handle.fileno(), 0, access=mmap.ACCESS_READ)
        magic, contents, keys, posting_bytes = _HEAD.unpack_from(self._map)
        expected = _HEAD.size + contents * 33 + keys * 13 + 8 + posting_bytes + 4
        if magic != MAGIC or contents > SEGMENT_CONTENTS or keys > 1 << 24 or size != expected:
            raise CorruptError(f"{path} is no trigram segment of this version")
        if thorough and zlib.crc32(memoryview(self._map)[:-4]) != struct.unpack_from("<I", self._map, size - 4)[0]:
            raise CorruptError(f"{path} is damaged")
        at = _HEAD.size
        self.hashes = np.frombuffer(self._map, dtype="V32", count=contents, offset=at)
        at += contents * 32
        self._diverse = np.frombuffer(self._map, dtype=np.uint8, count=contents, offset=at).astype(bool)
        at += contents
        self._keys = np.frombuffer(self._map, dtype="<u4", count=keys, offset=at)
        at += keys * 4
        self._offsets = np.frombuffer(self._map, dtype="<u8", count=keys + 1, offset=at)
        at += (keys + 1) * 8
        self.posting_bytes = int(posting_bytes)
        self._widths = np.frombuffer(self._map, dtype=np.uint8, count=keys, offset=at)
        self._postings_at = at + keys

    @property
    def count(self) -> int:
        return len(self.hashes)

    def digests(self) -> list[bytes]:
        """The hashes of its contents."""
        return [bytes(one) for one in self.hashes]

    def all_rows(self) -> npt.NDArray[np.bool_]:
        """A mask of every row."""
        return np.ones(self.count, dtype=bool)

    def rows_with(self, grams: Iterable[int]) -> npt.NDArray[np.bool_]:
        """A mask of the contents that hold all of `grams`, and of those that are always read."""
        mask = self.all_rows()
        for key in self._rarest_first(grams):
            if key < 0:
                mask[:] = False
                break
            here = np.zeros(self.count, dtype=bool)
            here[self._rows(key)] = True
            mask &= here
            if not mask.any():
                break
        mask |= self._diverse
        return mask

    def _rarest_first(self, grams: Iterable[int]) -> list[int]:
        """Places of the trigrams, those with the shortest lists first; -1 for one that no content has."""
        wanted = np.array(sorted(grams), dtype=np.uint32)
        places = np.searchsorted(self._keys, wanted).tolist()
        here = [
            key if key < len(self._keys) and int(self._keys[key]) == gram else -1
            for gram, key in zip(wanted.tolist(), places, strict=True)
        ]
        return sorted(here, key=lambda key: -1 if key < 0 else int(self._offsets[key + 1] - self._offsets[key]))

    def _rows(self, key: int) -> npt.NDArray[np.int64]:
        first, last, width = int(self._offsets[key]), int(self._offsets[key + 1]), int(self._widths[key])
        count = (last - first) // width
        gaps = np.frombuffer(self._map, dtype=f"<u{width}", count=count, offset=self._postings_at + first)
        return np.cumsum(gaps, dtype=np.int64)

    def _unpacked(self) -> tuple[npt.NDArray[np.uint16], npt.NDArray[np.int64]]:
        """The rows of all lists, one list behind the other, and how many each has: `_packed` undone, all lists in one step."""
        ends = self._offsets.astype(np.int64)
        sizes = ends[1:] - ends[:-1]
        lengths = sizes // np.maximum(self._widths, 1)
        packed = np.frombuffer(self._map, dtype=np.uint8, count=int(sizes.sum()), offset=self._postings_at)
        gaps = np.empty(int(lengths.sum()), dtype=np.uint32)
        for width in (1, 2, 4):
            chosen = np.repeat(self._widths == width, lengths)
            gaps[chosen] = packed[np.repeat(self._widths == width, sizes)].view(f"<u{width}")
        sums = np.cumsum(gaps, dtype=np.uint32)  # of all lists, and may wrap: what counts is the difference within one
        starts = np.cumsum(lengths) - lengths
        sums -= np.repeat(sums[starts] - gaps[starts], lengths)
        return sums.astype(np.uint16), lengths

    def trigrams_by_row(self) -> list[tuple[bytes, Numbers | None]]:
        """What `write_segment` got: for a segment that is made of this one."""
        all_rows, lengths = self._unpacked()
        order = np.argsort(all_rows, kind="stable")
        grams = np.repeat(self._keys, lengths)[order].astype(np.uint32)
        ends = np.cumsum(np.bincount(all_rows, minlength=self.count))
        begins = np.concatenate(([0], ends[:-1]))
        return [
            (digest, None if diverse else grams[begin:end])
            for digest, diverse, begin, end in zip(
                self.digests(), self._diverse.tolist(), begins.tolist(), ends.tolist(), strict=True
            )
        ]
