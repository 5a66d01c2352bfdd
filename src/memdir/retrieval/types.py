"""What a search is asked and what it answers."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from memdir.store.types import Scope, StoredChunk


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchQuery:
    """`scope` names the container and where in it. `threshold` None: the searcher's own."""

    text: str
    scope: Scope
    limit: int = 10
    threshold: float | None = None
    containing: tuple[str, ...] = ()
    """Only statements that hold each of these texts, in any case and with any white space, by how well they fit `text`."""
    explain: bool = False
    nearest: int = 0
    """Where no hit is sure enough, so many of the nearest all the same, each marked as weak."""
    lines: bool = True
    """Choose the best lines inside each hit; without, a hit is its whole chunk."""
    hops: bool = True
    """Take a question for two things apart, and follow the best hits to what they are connected with; without, what the query
    finds by itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """The best lines of one chunk. Bytes are half open in the original, lines counted from 1 and both inclusive."""

    stored: StoredChunk
    start_line: int
    end_line: int
    start_byte: int
    end_byte: int
    text: str
    """Exactly the bytes of the span, decoded; without the line end."""
    score: float
    """0 to 1: how sure it is that this is about the query; below the threshold nothing is shown."""
    title: str | None
    signals: Mapping[str, float] | None
    """With `explain`: lexical, static, dense, path as they entered the fusion, each 0 to 1."""
    alike: int = 0
    """Other files that say the same, and are not shown for it."""
    weak: bool = False
    """It is below the threshold, and here only because nothing else was found."""
    why: str | None = None
    """How it was reached when the query alone did not bring it up here: `linked from /notes/a.md`, `shares INC-4411`."""

    @property
    def document_id(self) -> str:
        return self.stored.document_id

    @property
    def path(self) -> str | None:
        return self.stored.path


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchOutcome:
    """Hits by falling score, ties by path and offset; how long each stage took in milliseconds."""

    hits: Sequence[Hit]
    total: int
    """Passages above the threshold, before `limit`; of those that others led to, the ones that could be shown."""
    stages_ms: Mapping[str, float]
    closest: float = 0.0
    """The best score, shown or not."""


class StageTimer:
    """How long each stage of a search took, in milliseconds."""

    def __init__(self) -> None:
        self.stages_ms: dict[str, float] = {}
        self._last = time.perf_counter()

    def lap(self, stage: str) -> None:
        """`stage` has ended, and began when the one before it did."""
        now = time.perf_counter()
        self.stages_ms[stage] = round((now - self._last) * 1000, 3)
        self._last = now
