"""A bit for each component of a vector: which side of the mean it lies on. What shares most bits is compared exactly.

Charikar, "Similarity Estimation Techniques from Rounding Algorithms" (2002): the share of bits in which two vectors differ
grows with the angle between them. Taking the mean off first makes the bits of a model's vectors, which all lean to one side,
independent. Of 18,000 real vectors of 384 dimensions the 600 codes closest to the query's hold all of the ten nearest passages
and 96 % of the 150 nearest; docs/adr has more numbers.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from memdir.store.types import Matrix

Codes = npt.NDArray[np.uint64]
"""Shape (words, rows): the first 64 bits of all rows lie together, so that a scan reads memory in order."""
Distances = npt.NDArray[np.uint16]

_WORD_BITS: Final = 64
_BLOCK_ROWS: Final = 16_384


def words_for(dim: int) -> int:
    """64-bit words of a code of `dim` bits."""
    return -(-dim // _WORD_BITS)


def codes_of(matrix: Matrix, mean: Matrix) -> Codes:
    """Codes of the rows; bits beyond the dimensions are 0."""
    count, dim = matrix.shape
    bits = np.zeros((count, words_for(dim) * _WORD_BITS), dtype=np.bool_)
    np.greater(matrix, mean, out=bits[:, :dim])
    packed = np.packbits(bits, axis=1, bitorder="little").view("<u8").astype(np.uint64)
    return np.ascontiguousarray(packed.T)


def distances(codes: Codes, code: Codes) -> Distances:
    """In how many bits each row differs from `code` (one column)."""
    count = codes.shape[1]
    found = np.empty(count, dtype=np.uint16)
    for first in range(0, count, _BLOCK_ROWS):
        block = slice(first, first + _BLOCK_ROWS)
        np.add.reduce(np.bitwise_count(codes[:, block] ^ code), axis=0, dtype=np.uint16, out=found[block])
    return found


def fewest(differing: Distances, count: int) -> npt.NDArray[np.int64]:
    """Places of at least `count` rows with the fewest bits that differ, in their order; rows as far as the last one are all
    taken, so that it does not matter in which order rows lie."""
    if len(differing) <= count:
        return np.arange(len(differing), dtype=np.int64)
    return np.flatnonzero(differing <= np.partition(differing, count - 1)[count - 1])
