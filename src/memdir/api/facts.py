"""`/v1/facts`: what was read in documents, since when it is so, and where it is said. JSON is camelCase; times are ISO 8601 in
UTC."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field

from memdir.api.wire import Wire
from memdir.core.limits import PATH_MAX_BYTES, QUERY_MAX_CHARS

FACTS_LIMIT_MAX = 1000
LINKS_MAX = 500

Query = Annotated[str, Field(min_length=1, max_length=QUERY_MAX_CHARS)]


class FactSource(Wire):
    """Where a fact is said: `path` null, an API key said it."""

    path: str | None
    start_line: int
    end_line: int
    stands: bool
    """False: the file says something else there now, and another source keeps the fact."""


class FactVersion(Wire):
    """What a fact said, and from which day on; null: it was written down only after it had ended."""

    text: str
    valid_from: str | None
    relation: str | None
    """To the version before it: updates, contradicts, extends, derives."""


class Fact(Wire):
    id: str
    text: str
    kind: Literal["static", "dynamic"]
    subject: str
    attribute: str | None
    """What it claims of its subject, where rules know: `lives in`, `works at`, `editor`."""
    value: str | None
    confidence: float
    updated_at: str
    valid_from: str | None
    """The day that its words name, else that of its document; null: it was written down only after it had ended."""
    valid_to: str | None
    """When what took its place began; null: it is so now."""
    score: float | None = None
    """How well it fits the question, 0 to 1."""
    sources: list[FactSource]
    versions: list[FactVersion]
    """What was so before, the latest first."""


class FactsQuery(Wire):
    """GET /v1/facts: what is asked for in its query."""

    container_tag: str
    id: Annotated[str, Field(max_length=100)] | None = None
    q: Query | None = None
    """A question: facts that answer it, best first. Without: the most important first."""
    words: Query | None = None
    """Only facts with every one of these words."""
    subject: Query | None = None
    """Only of this one: a name, `user`."""
    at: datetime | None = None
    """What was so at this moment, as it is known now. UTC, unless it says another zone."""
    path: Annotated[str, Field(max_length=PATH_MAX_BYTES)] | None = None
    line: Annotated[int, Field(ge=1)] | None = None
    """Only what is said there."""
    limit: Annotated[int, Field(ge=1, le=FACTS_LIMIT_MAX)] = 20


class Facts(Wire):
    """GET /v1/facts"""

    facts: list[Fact]


class Link(Wire):
    """One edge of the graph of what is known: `subject` and `object` are names in lower case, `user` is the user."""

    subject: str
    relation: str
    object: str
    fact_id: str
    path: str | None
    line: int


class Graph(Wire):
    """GET /v1/facts/graph?containerTag=&subject=&hops=: links from and to a subject, and from there on."""

    subject: str
    """As it was understood: `ana` is `ana ruiz` where only one is called so."""
    links: list[Link]
