"""Weights of the signals that rank agents' memories, as people write them: `bm25=0.6,recency=0.1`."""

from __future__ import annotations

import os
from typing import Final

from memdir.core.errors import UsageError

ENV_WEIGHTS: Final = "MEMDIR_AGENT_WEIGHTS"
"""What the server takes where a search does not say: names that are left out keep their defaults."""
WEIGHT_MAX: Final[dict[str, float]] = {
    "bm25": 1.0, "recency": 1.0, "frequency": 1.0, "tags": 1.0, "project": 1.0, "decay_per_day": 10.0,
}  # fmt: skip
"""The greatest value of each; the smallest is 0."""


def parsed_weights(text: str) -> dict[str, float]:
    """Only the names that are given. UsageError for others, and for what is no number within its bounds."""
    found: dict[str, float] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, _, number = part.partition("=")
        name = name.strip().replace("-", "_")
        if name not in WEIGHT_MAX:
            raise UsageError(f"there is no weight {name!r}", hint=f"give some of {', '.join(WEIGHT_MAX)}: bm25=0.6,recency=0.1")
        try:
            value = float(number)
        except ValueError:
            value = -1.0
        if not 0 <= value <= WEIGHT_MAX[name]:
            raise UsageError(f"{name} is a number from 0 to {WEIGHT_MAX[name]:g}, not {number.strip()!r}")
        found[name] = value
    return found


def told_weights() -> dict[str, float]:
    """What the environment says. UsageError as above, with the variable's name."""
    try:
        return parsed_weights(os.environ.get(ENV_WEIGHTS, ""))
    except UsageError as error:
        raise UsageError(f"{ENV_WEIGHTS}: {error.message}", hint=error.hint) from None
