"""What every place of pages offers: a search, and the page of an address."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from memdir.research.archive import Page

RESULTS_MAX = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """One result of a search."""

    url: str
    title: str
    snippet: str


class Place(Protocol):
    """Thread-safe: pages are fetched in parallel."""

    @property
    def name(self) -> str:
        """For people: `web by brave`, `/srv/manuals`."""

    def search(self, query: str, limit: int) -> list[Found]:
        """The best pages for some words, best first. FetchError when the search cannot be had."""

    def has(self, url: str) -> bool:
        """Whether an address is of this place."""

    def fetch(self, url: str) -> Page:
        """FetchError with the reason when the page cannot be had."""
