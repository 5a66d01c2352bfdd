"""Scores of all rows at once, in pieces that stay in the processor's cache: faster than whole arrays from some 100,000 rows.

All in single precision; who is close to the best is told by the caller in double precision.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

Values = npt.NDArray[np.float32]
Rows = npt.NDArray[np.int32]

PIECE_ROWS: Final = 32_768
SLACK: Final = 6e-5
"""Of two scores here against those in double precision. Each differs by less than 2e-6 for its precision, and by
`postings.DRIFT_MAX` for what was kept."""


@dataclass(frozen=True, slots=True)
class Part:
    """What a signal adds to each row's score."""

    values: npt.NDArray[Any]
    factor: float
    """Of the values."""
    most: float
    """Of a value times the factor."""


def add_up(sums: Values, parts: Sequence[tuple[Values, float]], allowed: npt.NDArray[np.bool_] | None) -> Values:
    """Add parts, each values by row and what they are multiplied with, to `sums`; take out what is not allowed. Returns the
    largest sum of each piece."""
    tops = []
    product = np.empty(PIECE_ROWS, dtype=np.float32)
    for low in range(0, len(sums), PIECE_ROWS):
        own = sums[low : low + PIECE_ROWS]
        weighed = product[: len(own)]
        for values, weight in parts:
            np.multiply(values[low : low + PIECE_ROWS], np.float32(weight), out=weighed)
            own += weighed
        if allowed is not None:
            own *= allowed[low : low + PIECE_ROWS]
        tops.append(own.max())
    return np.array(tops, dtype=np.float32)


def at_least(sums: Values, tops: Values, least: float) -> Rows:
    """Rows with such a sum, ascending."""
    found = [
        np.flatnonzero(sums[low : low + PIECE_ROWS] >= least) + low
        for low in (np.flatnonzero(tops >= least) * PIECE_ROWS).tolist()
    ]
    return np.concatenate(found).astype(np.int32) if found else np.zeros(0, dtype=np.int32)


def leading(sums: Values, tops: Values, factor: float, parts: Sequence[Part], *, floor: float, limit: int) -> Rows:
    """Rows with a sum above `floor` that may be among the best `limit` by `factor` times their sum and what the parts add; and
    all that could tie with the last of them. `tops` as `add_up` says. Newest rows first: they are likelier to be among the
    best, and of the others only those are looked at whose sum, with the most of every part, reaches what is known."""
    kept_rows, kept = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.float32)
    most, least = sum(part.most for part in parts), 0.0
    for piece in range(len(tops) - 1, -1, -1):
        need = max(floor, (least - most - SLACK) / factor) if factor else floor
        if tops[piece] <= need:
            continue
        low = piece * PIECE_ROWS
        own = sums[low : low + PIECE_ROWS]
        at = np.flatnonzero(own > need)
        found = own[at] * np.float32(factor)
        for part in parts:
            found += part.values[low : low + PIECE_ROWS][at] * np.float32(part.factor)
        close = found >= least
        kept_rows, kept = np.concatenate((at[close] + low, kept_rows)), np.concatenate((found[close], kept))
        if len(kept) >= limit:
            least = max(0.0, float(np.partition(kept, len(kept) - limit)[len(kept) - limit]) - SLACK)
            close = kept >= least
            kept_rows, kept = kept_rows[close], kept[close]
    return kept_rows.astype(np.int32)
