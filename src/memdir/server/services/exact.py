"""Exact text and regular expressions for `/v1/search`: files that can match, read and matched in path order.

With an index of the container, candidates are the contents whose trigrams fit, what was put since, and what is never
indexed. Without one, or for a pattern that asks for no trigram, every file in scope is read, within bounds that the answer
speaks of.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from memdir.api import v1
from memdir.core.errors import NotFoundError
from memdir.core.limits import MIB
from memdir.core.patterns.matcher import Line, Matcher, Pattern, is_binary
from memdir.retrieval.trigrams.needs import needs_of
from memdir.server.trigrams import TrigramIndexes
from memdir.store.store import Store
from memdir.store.types import Document, Scope

TEXT_MAX_BYTES: Final = 2000
FILES_MAX: Final = 50_000
BYTES_MAX: Final = 4096 * MIB
SECONDS_MAX: Final = 30.0
"""What one search may read, and how long."""
BINARY_SHOWN_MAX: Final = 1000
CANDIDATES_ASKED_MAX: Final = 5000
"""More candidates than these are met by going through the scope in order and not looked up one by one."""


@dataclass(slots=True, kw_only=True)
class Found:
    """What a search has found, and what it cost."""

    hits: list[v1.SearchHit] = field(default_factory=list)
    binary: list[str] = field(default_factory=list)
    note: str | None = None
    files_read: int = 0
    bytes_read: int = 0


def search(store: Store, indexes: TrigramIndexes | None, scope: Scope, request: v1.SearchRequest) -> Found:
    """Lines that match, in path order, at most `request.limit`. UsageError for a pattern that is none."""
    pattern = Pattern(
        text=request.q, regex=request.mode == "regex", ignore_case=request.ignore_case, whole_words=request.whole_words
    )
    matcher = Matcher(pattern)
    found = Found()
    deadline_s = time.monotonic() + SECONDS_MAX
    for document in _candidates(store, indexes, scope, matcher):
        over = found.files_read >= FILES_MAX or found.bytes_read + document.size_bytes > BYTES_MAX
        if over or time.monotonic() > deadline_s:
            found.note = (
                f"stopped after {found.files_read:,} files ({found.bytes_read / MIB:,.0f} MiB), before {document.path}: "
                "search a smaller folder, or for a text with three fixed characters in a row"
            )
            break
        _read(store, matcher, document, request, found)
        if len(found.hits) >= request.limit:
            break
    return found


def _read(store: Store, matcher: Matcher, document: Document, request: v1.SearchRequest, found: Found) -> None:
    try:
        data = store.blobs.content(document.content_hash)
    except NotFoundError:  # deleted since the candidates were listed
        return
    found.files_read += 1
    found.bytes_read += len(data)
    if is_binary(data):
        if len(found.binary) < BINARY_SHOWN_MAX and matcher.matches(data):
            found.binary.append(document.path or "")
        return
    for line in matcher.lines(data):
        found.hits.append(_hit(document, data, line))
        if request.files_only or len(found.hits) >= request.limit:
            return


def _hit(document: Document, data: bytes, line: Line) -> v1.SearchHit:
    first = max(line.line_start, line.start_byte - TEXT_MAX_BYTES // 2)
    shown = data[first : min(line.line_end, first + TEXT_MAX_BYTES)]
    return v1.SearchHit(
        path=document.path or "",
        document_id=document.id,
        kind="literal",
        start_line=line.number,
        end_line=line.number,
        start_byte=line.start_byte,
        end_byte=line.end_byte,
        text=shown.decode("utf-8", "replace").rstrip("\r"),
        score=1.0,
    )


def _candidates(store: Store, indexes: TrigramIndexes | None, scope: Scope, matcher: Matcher) -> Iterator[Document]:
    needs = needs_of(matcher.tree, ignore_case=matcher.pattern.ignore_case)
    originals = store.originals
    ready = None if indexes is None or scope.exact or needs.is_open else indexes.ready(scope.container_id)
    fresh = None if ready is None else originals.changed_since(scope.container_id, ready.seq)
    if ready is None or fresh is None:
        yield from originals.files(scope)
        return
    fitting = {digest.hex() for digest in ready.view.candidates(needs)}
    newer = {digest for digest in fresh if bytes.fromhex(digest) not in ready.view.known}
    wanted = fitting | newer | ready.unread
    if len(wanted) <= CANDIDATES_ASKED_MAX:
        yield from originals.with_contents(scope, wanted)
    else:
        yield from (document for document in originals.files(scope) if document.content_hash in wanted)
