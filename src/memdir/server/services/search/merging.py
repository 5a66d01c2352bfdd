"""Passages and memories in the one ranked list of `/v1/search`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from memdir.api import v1
from memdir.core.errors import NotFoundError
from memdir.core.siblings import sibling_path
from memdir.retrieval.types import Hit
from memdir.server.engine import Engine
from memdir.server.http.access import Caller
from memdir.server.indexing.extraction import text_bytes
from memdir.server.services.search.hits import Found
from memdir.server.services.search.memory_search import Recalled, recalled, was_read_in
from memdir.store.types import Document, Scope

HIT_TEXT_MAX_CHARS: Final = 2000
_LOOK_CHARS: Final = 200
_TIME: Final = re.compile(r"^\[(\d+:\d\d:\d\d)\] ", re.MULTILINE)
_ANCHOR: Final = re.compile(r"^(?:#+ )?((?:Page|Slide) \d+(?:: .{1,100})?|Sheet: .{1,100})$", re.MULTILINE)
Placed = tuple[Recalled, Document, str]
"""A memory, the document with a place that says it, and the lines there."""


def search_hit(hit: Hit, document: Document) -> v1.SearchHit:
    """A passage's best lines as they go out."""
    return v1.SearchHit(
        path=document.path or "",
        document_id=document.id,
        kind="chunk",
        start_line=hit.start_line,
        end_line=hit.end_line,
        start_byte=hit.start_byte,
        end_byte=hit.end_byte,
        text=hit.text[:HIT_TEXT_MAX_CHARS],
        score=hit.score,
        title=document.title or hit.title,
        signals=None if hit.signals is None else dict(hit.signals),
        why=hit.why,
        alike=hit.alike or None,
        weak=True if hit.weak else None,
        sibling=sibling_path(document.path or "", document.transcription) if document.transcription else None,
        place=place_in_source(hit) if document.transcription else None,
    )


def place_in_source(hit: Hit) -> str | None:
    """The page, slide, sheet or time of a hit in the text beside a file: the anchor before its lines."""
    chunk = hit.stored.chunk
    end = chunk.text.find(hit.text[:_LOOK_CHARS])
    before = chunk.text[: len(chunk.text) if end < 0 else end + len(hit.text)]
    return place_before(before) or place_before(chunk.context.replace(" › ", "\n"))


def place_before(text: str) -> str | None:
    """The last page, slide, sheet or time that a text names as its own."""
    found = _TIME.findall(text) or _ANCHOR.findall(text)
    return str(found[-1]) if found else None


def placed_memories(
    caller: Caller, engine: Engine, scope: Scope, request: v1.SearchRequest, found: Sequence[Found]
) -> list[Placed]:
    """Memories that fit and stand in a file. Those of a file that is still being read are passed over: their lines may be
    others by now."""
    memories = recalled(caller, engine, scope, request.q, limit=request.limit, threshold=None)
    sources = {one.source.id: one.source for one in memories if one.source is not None and one.source.path is not None}
    read = set(caller.store.documents.indexed(list(sources))) - caller.store.documents.being_remembered(list(sources))
    contents: dict[str, bytes] = {}
    made: list[Placed] = []
    for one in memories:
        source = one.source
        if source is None or source.id not in read:
            continue
        text = ""
        if not any(was_read_in(one.memory, hit, document) for hit, document in found):
            if source.id not in contents:
                contents[source.id] = _content(caller, source)
            place = one.memory.candidate
            text = contents[source.id][place.start_byte : place.end_byte].decode("utf-8", "replace")
            if not text:
                continue
        made.append((one, source, text))
    return made


def merged(
    hits: Sequence[v1.SearchHit], found: Sequence[Found], memories: Sequence[Placed], *, keeps_order: bool
) -> list[v1.SearchHit]:
    """Hits (those of `found`, one for one) and memories in one list. A memory and the lines it was read in are one hit, with
    the better of both scores. With `keeps_order` (a reranker made it) memories stand behind the hits."""
    made = list(hits)
    for one, source, text in memories:
        fact, place = one.memory.candidate.text, one.memory.candidate
        same = next((at for at, (hit, document) in enumerate(found) if was_read_in(one.memory, hit, document)), None)
        if same is not None:
            best = made[same]
            score = best.score if keeps_order else max(best.score, one.score)
            made[same] = best.model_copy(update={"score": score, "memory": best.memory or fact})
            continue
        made.append(
            v1.SearchHit(
                path=source.path or "",
                document_id=source.id,
                kind="memory",
                start_line=place.start_line,
                end_line=place.end_line,
                start_byte=place.start_byte,
                end_byte=place.end_byte,
                text=text[:HIT_TEXT_MAX_CHARS],
                score=min(one.score, made[-1].score) if keeps_order and made else one.score,
                title=source.title,
                memory=fact,
            )
        )
    return made if keeps_order else sorted(made, key=lambda hit: (-hit.score, hit.path, hit.start_byte))


def _content(caller: Caller, document: Document) -> bytes:
    try:
        return text_bytes(caller.store, document)
    except NotFoundError:  # deleted meanwhile
        return b""
