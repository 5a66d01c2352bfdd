"""Vectors as they are kept and compared, the same in every store."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from memdir.store.types import Matrix, Nearest

Halves = npt.NDArray[np.float16]
Rows = npt.NDArray[np.int64]

NOTHING_NEAR: Final = Nearest(ids=np.zeros(0, dtype=np.int64), cosines=np.zeros(0, dtype=np.float32), counted=0)

COUNTED_MAX: Final = 10_000
"""Vectors in scope up to which a database counts them."""
_BLOCK_ROWS: Final = 256
"""Rows that are widened at a time: 384 KiB at 384 dimensions, which stays in a processor's own cache."""
_BITS_KEPT: Final = np.int32(np.uint32(0x8FFFE000).astype(np.int32))
_SCALE: Final = np.float32(2.0**112)


def dots(matrix: Matrix, vector: Matrix) -> Matrix:
    """`matrix @ vector` on this thread alone. BLAS hands a product of this size to its thread pool, which on a busy machine
    waits for a processor: p95 15 ms instead of 0.5 ms at 5,000 x 384, measured on two cores."""
    product: Matrix = np.einsum("ij,j->i", matrix, vector)
    return product


def half_dots(matrix: Halves, vector: Matrix, rows: Rows | None = None) -> Matrix:
    """Bit for bit `dots(matrix[rows].astype(float32), vector)`, without a copy of the rows and four times as fast as numpy
    widens float16. For finite components.

    The bits of a half, moved 13 places up beside its sign, are a float32 that is 2**112 times too small, subnormal halves
    included (IEEE 754 binary16: exponent bias 15, binary32: 127); the vector makes up for it. Powers of two round nothing.
    """
    count = len(matrix) if rows is None else len(rows)
    found = np.empty(count, dtype=np.float32)
    wide = np.empty((min(count, _BLOCK_ROWS), matrix.shape[1]), dtype=np.int32)
    scaled = vector.astype(np.float32) * _SCALE
    bits = matrix.view(np.int16)
    for first in range(0, count, _BLOCK_ROWS):
        end = min(count, first + _BLOCK_ROWS)
        part = wide[: end - first]
        part[...] = bits[first:end] if rows is None else bits[rows[first:end]]
        np.left_shift(part, 13, out=part)
        np.bitwise_and(part, _BITS_KEPT, out=part)
        found[first:end] = dots(part.view(np.float32), scaled)
    return found


def closest(ids: Rows, cosines: Matrix, limit: int) -> tuple[Rows, Matrix]:
    """The `limit` highest cosines, best first, ties by id: whatever order the rows come in, the same are taken."""
    if len(ids) > limit > 0:
        cut = np.partition(cosines, len(cosines) - limit)[len(cosines) - limit]
        kept = np.flatnonzero(cosines >= cut)
        ids, cosines = ids[kept], cosines[kept]
    order = np.lexsort((ids, -cosines))[: max(0, limit)]
    return ids[order], cosines[order]
