"""The nouns of the store. Times are milliseconds since the epoch unless the name says otherwise."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

Matrix = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True, kw_only=True)
class Container:
    """One memory: a tree of documents, its changes feed, its memories."""

    id: int
    org_id: str
    tag: str
    epoch: str
    last_seq: int
    profile_version: int
    memory_paths: tuple[str, ...]
    """Trailing slash: the folder and all below; without: that file. Empty: no memories."""
    versions_max: int
    """Versions kept of each document; 0: none."""
    versions_days: int
    """How long a version is kept; 0: not at all."""
    created_at_ms: int
    updated_at_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A file, folder or symlink of a container at its current revision. `path` is None for a document without a place."""

    id: str
    container_id: int
    container_tag: str
    custom_id: str | None
    path: str | None
    kind: str
    title: str | None
    media_type: str
    status: str
    error: str | None
    content_hash: str
    size_bytes: int
    mode: int
    mtime_ns: int
    revision: int
    metadata: Mapping[str, Any]
    created_at_ms: int
    updated_at_ms: int
    task_type: str = "memory"
    """`memory`, or `superrag`: for search only."""
    url: str | None = None
    """The content is this one address."""
    transcription: str | None = None
    """The kind of the text beside it, or `error`; None: there is none, the file is its own text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """A passage of a document's text, before it is stored. Bytes are half open, lines counted from 1, both inclusive."""

    ordinal: int
    start_byte: int
    end_byte: int
    start_line: int
    end_line: int
    text: str
    """Exactly the bytes of the span, decoded."""
    context: str
    """Title and headings above it: embedded and indexed with the text, never shown as it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredChunk:
    """A chunk as it is found again."""

    id: int
    document_id: str
    path: str | None
    revision: int
    updated_at_ms: int
    chunk: Chunk


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """The file of a chunk."""

    document_id: str
    path: str | None
    """None for a document without a place."""
    searched_last: bool
    """See `store.passages.ignored_files`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryCandidate:
    """A fact that a rule (or a model) read in a document, before it is reconciled with what is known."""

    kind: str
    """`static` (durable) or `dynamic` (recent context)."""
    subject: str
    text: str
    confidence: float
    start_line: int
    end_line: int
    start_byte: int
    end_byte: int
    said_ms: int | None = None
    """The day that the statement is of, by its line, its document's date or the time of writing, with the time where it was
    written on that day (else midnight UTC); None: nothing tells."""
    valid_from_ms: int | None = None
    """Since when it is so: the day that its words name, else `said_ms`."""
    is_passing: bool = False
    """Whether it tells of what happened only, and is remembered where a fact is over by it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """A fact with its provenance. Superseded facts stay, with `is_latest` false."""

    id: str
    container_id: int
    document_id: str | None
    """None: it was said by a call."""
    revision: int
    root_id: str
    parent_id: str | None
    relation: str | None
    """To the parent: `updates`, `extends`, `derives`, `contradicts`."""
    version: int
    is_latest: bool
    is_forgotten: bool
    candidate: MemoryCandidate
    created_at_ms: int
    updated_at_ms: int
    caller: str | None = None
    """Id of the API key that said it, None when it was read in a document."""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    forget_after_ms: int | None = None
    forget_reason: str | None = None
    source_count: int = 1
    """Documents and calls that said it."""
    ended_by: str | None = None
    """Id of the memory by which it holds no more."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, weakref_slot=True)
class Chosen:
    """Documents that a condition lets pass: those of `ids`, or with `but` all but those, whichever are fewer.

    Compared by identity: the store gives the same object for the same condition until a document changed, so that an index
    keeps what it made of it (rows, a mask) under the object itself, weakly. `ids` may name documents that are gone.
    """

    ids: frozenset[str]
    but: bool = False

    def __contains__(self, document_id: object) -> bool:
        return (document_id in self.ids) != self.but


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """Where to search: `folder` '/' is everything; `exact` names one file. `chosen` None: every document there."""

    container_id: int
    folder: str = "/"
    exact: bool = False
    chosen: Chosen | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Nearest:
    """The passages in a scope that are closest to a vector, in no order. Cosines are inner products of normalised vectors."""

    ids: npt.NDArray[np.int64]
    cosines: Matrix
    counted: int
    """How many passages are in scope; in a large scope of PostgreSQL about how many, from a sample."""
