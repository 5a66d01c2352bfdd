"""`/v1/facts`: where the facts of a profile come from. JSON is camelCase; times are ISO 8601 in UTC."""

from __future__ import annotations

from typing import Literal

from memdir.api.wire import Wire

FACTS_MAX = 20


class FactSource(Wire):
    """Where a fact is said: `path` null, an API key said it."""

    path: str | None
    start_line: int
    end_line: int
    stands: bool
    """False: the file says something else there now, and another source keeps the fact."""


class FactVersion(Wire):
    """What a fact said, and from when on."""

    text: str
    since: str
    relation: str | None
    """To the version before it: updates, contradicts, extends, derives."""


class Fact(Wire):
    id: str
    text: str
    kind: Literal["static", "dynamic"]
    subject: str
    confidence: float
    updated_at: str
    sources: list[FactSource]
    versions: list[FactVersion]
    """Newest first, this one too."""


class FactsWhy(Wire):
    """GET /v1/facts/why?containerTag=&q=: facts that hold and have every word of `q`, the most important first."""

    facts: list[Fact]
