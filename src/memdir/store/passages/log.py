"""What the store tells those who keep an index of its passages: what there is, and what changed since.

A passage never changes: its id stands for the same text for ever. It comes, it goes, and its document may move.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexedPassage:
    """A passage with all that an index of words needs. `path` None: its document has no place."""

    chunk_id: int
    document_id: str
    path: str | None
    text: str
    context: str
    digest: int
    """First 8 bytes, little endian, of the hash of its text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedPassage:
    """A passage without its text."""

    chunk_id: int
    document_id: str
    path: str | None
    digest: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PassageEvent:
    """`add` and `drop` of a passage, `path` of a document. The same may be told more than once."""

    kind: str
    chunk_id: int | None
    document_id: str | None


class PassageLog(Protocol):
    """Any thread may read. Every read sees all that was committed before it, so that passages may be newer than the event that
    told of them."""

    def bounds(self) -> tuple[int, int]:
        """Number of the oldest event that is still known (one more than the newest when none is), and of the newest one."""
        ...

    def events(self, container_id: int, *, after: int, until: int) -> Sequence[PassageEvent]:
        """Events of one container in order."""
        ...

    def count(self, container_id: int, *, most: int = -1) -> int:
        """How many passages a container has; of more than `most`, that number."""
        ...

    def passages(self, container_id: int, chunk_ids: Sequence[int]) -> Sequence[IndexedPassage]:
        """Those of the passages that are (still) in the container."""
        ...

    def listing(self, container_id: int, *, after: int, limit: int) -> Sequence[ListedPassage]:
        """Passages of a container with an id above `after`, in order of their ids, without their texts."""
        ...

    def paths(self, document_ids: Sequence[str]) -> dict[str, str | None]:
        """Where documents stand now; those that are gone are left out."""
        ...
