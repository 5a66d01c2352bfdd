"""Exact text and regular expressions for `/v1/search`: files that can match, read and matched in path order.

With an index of the container, candidates are the contents whose trigrams fit, what was put since, and what is never
indexed. Without one, or for a pattern that asks for no trigram, every file in scope is read, within bounds that the answer
speaks of. The texts beside files come after the files, and are found in the same way.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Final

from memdir.api import v1
from memdir.core.errors import NotFoundError
from memdir.core.limits import EXACT_LIMIT_MAX, MIB
from memdir.core.patterns.matcher import Matcher, Pattern
from memdir.core.patterns.select import Choice, Excerpt, Room, look_into
from memdir.core.siblings import ERROR, sibling_path
from memdir.retrieval.trigrams.needs import needs_of
from memdir.server.background.trigram_indexes import TrigramIndexes
from memdir.server.indexing.extraction import text_bytes
from memdir.server.services.search.merging import place_before
from memdir.store.store import Store
from memdir.store.types import Document, Scope

FILES_MAX: Final = 50_000
BYTES_MAX: Final = 4096 * MIB
SECONDS_MAX: Final = 30.0
"""What one search may read, and how long."""
CANDIDATES_ASKED_MAX: Final = 5000
"""More candidates than these are met by going through the scope in order and not looked up one by one."""


@dataclass(slots=True, kw_only=True)
class Found:
    """What a search has found, and what it cost."""

    hits: list[v1.SearchHit] = field(default_factory=list)
    counts: list[v1.FileCount] = field(default_factory=list)
    binary: list[str] = field(default_factory=list)
    note: str | None = None
    files_read: int = 0
    bytes_read: int = 0


def search(store: Store, indexes: TrigramIndexes | None, scopes: Sequence[Scope], request: v1.SearchRequest) -> Found:
    """Lines that match, at most `request.limit`, each scope in path order and each file once. UsageError for a pattern that is
    none."""
    pattern = Pattern(
        text=request.q, regex=request.mode == "regex", ignore_case=request.ignore_case, whole_words=request.whole_words
    )
    matcher, choice = Matcher(pattern), choice_of(request)
    found, room = Found(), Room(request.limit)
    seen: set[tuple[str, bool]] = set()
    deadline_s = time.monotonic() + SECONDS_MAX
    for document, is_text, can_match in _files(store, indexes, scopes, matcher, choice, texts=request.texts):
        if (document.id, is_text) in seen:
            continue
        seen.add((document.id, is_text))
        if len(found.counts) >= request.limit or len(found.binary) >= EXACT_LIMIT_MAX:
            found.note = f"these are the first {max(len(found.counts), len(found.binary)):,} files"
            break
        over = found.files_read >= FILES_MAX or found.bytes_read + document.size_bytes > BYTES_MAX
        if over or time.monotonic() > deadline_s:
            found.note = (
                f"stopped after {found.files_read:,} files ({found.bytes_read / MIB:,.0f} MiB), before "
                f"{'the text of ' if is_text else ''}{document.path}: search a smaller folder, or for a text with three fixed "
                "characters in a row"
            )
            break
        if can_match:
            _read(store, matcher, document, choice, room, found, is_text=is_text)
        elif choice.count:
            found.counts.append(v1.FileCount(path=_shown(document, is_text=is_text), count=0))
        if room.is_full:
            found.note = room.note
            break
    return found


def choice_of(request: v1.SearchRequest) -> Choice:
    """Lines around a hit are left to `shaping` where hits are grouped or fill a budget."""
    around = request.context if request.context and not request.group and request.budget_tokens is None else None
    return Choice(
        invert=request.invert,
        only_matching=request.only_matching,
        before=around if request.before is None else request.before,
        after=around if request.after is None else request.after,
        max_count=request.max_count,
        files_only=request.files_only,
        count=request.count,
    )


def _read(
    store: Store, matcher: Matcher, document: Document, choice: Choice, room: Room, found: Found, *, is_text: bool
) -> None:
    """A file, or the text beside it."""
    try:
        data = text_bytes(store, document) if is_text else store.blobs.content(document.content_hash)
    except NotFoundError:  # deleted since the candidates were listed
        return
    found.files_read += 1
    found.bytes_read += len(data)
    look = look_into(matcher, data, choice, room)
    if choice.count:
        found.counts.append(v1.FileCount(path=_shown(document, is_text=is_text), count=look.count))
    elif look.binary:
        found.binary.append(document.path or "")
    place, begin = None, 0
    sibling = _sibling(document) if is_text else None
    for excerpt in look.excerpts:
        if is_text:
            end = data.find(b"\n", excerpt.end_byte) + 1 or len(data)
            place = place_before(data[begin:end].decode("utf-8", "replace")) or place
            begin = end
        found.hits.append(_hit(document, sibling, place, excerpt, around=choice.has_context))


def _shown(document: Document, *, is_text: bool) -> str:
    """The path of a file, or of the text beside it where a name is that long."""
    return (_sibling(document) if is_text else None) or document.path or ""


def _sibling(document: Document) -> str | None:
    return sibling_path(document.path or "", document.transcription or "")


def _hit(document: Document, sibling: str | None, place: str | None, excerpt: Excerpt, *, around: bool) -> v1.SearchHit:
    return v1.SearchHit(
        path=document.path or "",
        document_id=document.id,
        kind="literal",
        start_line=excerpt.first,
        end_line=excerpt.last,
        start_byte=excerpt.start_byte,
        end_byte=excerpt.end_byte,
        text=excerpt.text.decode("utf-8", "replace"),
        score=1.0,
        sibling=sibling,
        place=place,
        matched=[v1.LineRange(start_line=one, end_line=one) for one in excerpt.matched] if around else None,
    )


def _files(
    store: Store, indexes: TrigramIndexes | None, scopes: Sequence[Scope], matcher: Matcher, choice: Choice, *, texts: bool
) -> Iterator[tuple[Document, bool, bool]]:
    """What to look at: a file, whether the text beside it is meant, and whether it can match. Files that cannot are left out
    unless they are counted. With `texts` the texts come after the files."""
    known = None if choice.invert else _wanted(store, indexes, scopes, matcher)
    for is_text in (False, True) if texts else (False,):
        wanted = None if known is None else known[is_text]
        asked = wanted is not None and len(wanted) <= CANDIDATES_ASKED_MAX and not choice.count
        for scope in scopes:
            if wanted is not None and asked and not scope.exact:
                documents: Iterable[Document] = store.originals.with_contents(scope, wanted)
            else:
                documents = store.originals.files(scope, with_text=is_text)
            for document in documents:
                can_match = wanted is None or document.content_hash in wanted
                is_there = not is_text or document.transcription not in (None, ERROR)
                if is_there and (can_match or choice.count):
                    yield document, is_text, can_match


def _wanted(
    store: Store, indexes: TrigramIndexes | None, scopes: Sequence[Scope], matcher: Matcher
) -> tuple[AbstractSet[str], AbstractSet[str]] | None:
    """Hashes of the contents that can match, and of those whose texts can; None when nobody knows."""
    needs = needs_of(matcher.tree, ignore_case=matcher.pattern.ignore_case)
    container_id = scopes[0].container_id
    ready = None if indexes is None or needs.is_open else indexes.ready(container_id)
    fresh = None if ready is None else store.originals.changed_since(container_id, ready.position.seq)
    if ready is None or fresh is None:
        return None
    fitting = {digest.hex() for digest in ready.view.candidates(needs)} | ready.unread
    newer = {digest for digest in fresh if bytes.fromhex(digest) not in ready.view.known}
    with_text = {source for digest in fitting if (source := ready.texts.get(digest)) is not None}
    return fitting | newer, with_text | store.originals.texts_since(container_id, ready.position.texts)
