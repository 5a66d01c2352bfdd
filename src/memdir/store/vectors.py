"""Vectors as they are kept and compared, the same in every store."""

from __future__ import annotations

from typing import Final

import numpy as np

from memdir.store.types import Matrix, Nearest

NOTHING_NEAR: Final = Nearest(ids=np.zeros(0, dtype=np.int64), cosines=np.zeros(0, dtype=np.float32), mean=None, counted=0)


def dots(matrix: Matrix, vector: Matrix) -> Matrix:
    """`matrix @ vector` on this thread alone. BLAS hands a product of this size to its thread pool, which on a busy machine
    waits for a processor: p95 15 ms instead of 0.5 ms at 5,000 x 384, measured on two cores."""
    product: Matrix = np.einsum("ij,j->i", matrix, vector)
    return product
