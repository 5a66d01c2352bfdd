"""Building anew what is derived: `/v1/indexes`. For keys that may `admin`."""

from __future__ import annotations

from typing import Annotated, Literal, get_args

from pydantic import Field

from memdir.api.v1 import Wire

Derived = Literal["lexical", "vectors", "trigrams", "chunks", "memories", "transcriptions"]
DERIVED: tuple[Derived, ...] = get_args(Derived)


class RebuildRequest(Wire):
    """POST /v1/indexes:rebuild. `lexical` and `vectors` are indexes over passages, `trigrams` that of exact search; `chunks`
    cuts every file into passages anew, with their vectors; `memories` reads every file's facts again; `transcriptions` reads
    files that are no text again, if they could not be read, or can be read better."""

    container_tag: str | None = None
    """None: every container of the organisation."""
    what: Annotated[list[Derived], Field(min_length=1, max_length=len(DERIVED))]


class IndexBuild(Wire):
    """The build under way."""

    what: str
    container_tag: str | None
    done: int
    total: int


class IndexesView(Wire):
    """GET /v1/indexes: how far it is."""

    what: list[str]
    """Indexes that this server keeps in files; others are the database's own."""
    skipped: list[str]
    """Of what was asked for: the database keeps these itself, up to date with every change."""
    running: bool
    builds: int
    """Indexes of containers that were asked for, and are still to be built or were."""
    builds_done: int
    current: IndexBuild | None
    documents_left: int
    """Documents whose passages or memories are still being made."""
    failed: list[str]
