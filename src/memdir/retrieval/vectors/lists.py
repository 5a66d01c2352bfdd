"""Vectors in groups of neighbours, so that a search looks into the groups around its query: spherical k-means.

An inverted file as in Sivic and Zisserman, "Video Google" (2003), and Jégou, Douze and Schmid, "Product Quantization for
Nearest Neighbor Search" (2011). Nothing in it is random: the first centres and what is trained on are rows at equal distances.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
import numpy.typing as npt

from memdir.store.passages.vectors import Halves
from memdir.store.types import Matrix

SINGLE_MAX: Final = 65_536
"""Rows up to which there is one list: their codes are all compared in less than a millisecond or two."""
_TRAINED_PER_LIST: Final = 40
_ROUNDS: Final = 5
_BLOCK_ROWS: Final = 4_096

Places = npt.NDArray[np.int32]


def lists_for(count: int) -> int:
    """How many lists for `count` rows: about their square root, so that choosing lists costs no more than looking into them."""
    return 1 if count <= SINGLE_MAX else int(count**0.5)


def centres_of(matrix: Halves, lists: int, *, checkpoint: Callable[[], None]) -> Matrix:
    """The centres of `lists` groups, normalised. `checkpoint` is called now and then and may raise."""
    count = len(matrix)
    trained = min(count, lists * _TRAINED_PER_LIST)
    sample = matrix[np.arange(trained, dtype=np.int64) * count // trained].astype(np.float32)
    centres = sample[np.arange(lists, dtype=np.int64) * trained // lists].copy()
    for _ in range(_ROUNDS if lists > 1 else 1):
        places = _places(sample, centres, checkpoint)
        order = np.argsort(places, kind="stable")
        sizes = np.bincount(places, minlength=lists)
        filled = np.flatnonzero(sizes)
        starts = (np.cumsum(sizes) - sizes)[filled]
        centres[filled] = np.add.reduceat(sample[order], starts, axis=0)
        norms = np.linalg.norm(centres, axis=1, keepdims=True)
        centres = (centres / np.where(norms > 0, norms, 1.0)).astype(np.float32)
    return centres


def assigned(matrix: Halves, centres: Matrix, *, checkpoint: Callable[[], None]) -> Places:
    """The list of each row."""
    return _places(matrix, centres, checkpoint)


def _places(matrix: Matrix | Halves, centres: Matrix, checkpoint: Callable[[], None]) -> Places:
    places = np.zeros(len(matrix), dtype=np.int32)
    if len(centres) == 1:
        return places
    turned = np.ascontiguousarray(centres.T)
    for first in range(0, len(matrix), _BLOCK_ROWS):
        checkpoint()
        part = matrix[first : first + _BLOCK_ROWS].astype(np.float32)
        places[first : first + len(part)] = np.argmax(part @ turned, axis=1)
    return places
