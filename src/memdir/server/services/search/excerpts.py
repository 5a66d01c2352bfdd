"""What is asked for around the hits of `/v1/search`: neighbouring lines, hits of a file together, a budget in tokens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from memdir.api import v1
from memdir.core.errors import NotFoundError
from memdir.core.limits import MIB
from memdir.retrieval import grouping
from memdir.retrieval.grouping import LeftOut, Place, Span
from memdir.server.http.access import Caller
from memdir.server.indexing.extraction import text_bytes

READ_MAX_BYTES: Final = 16 * MIB
"""Hits in a larger file stay as they are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shaped:
    """The hits as they go out."""

    hits: list[v1.SearchHit]
    tokens: int | None = None
    left_out: LeftOut | None = None


def is_plain(request: v1.SearchRequest) -> bool:
    """Whether the hits go out as they were found."""
    return not request.group and not request.context and request.budget_tokens is None


def shaped(caller: Caller, hits: Sequence[v1.SearchHit], request: v1.SearchRequest) -> Shaped:
    """The hits of one document that touch made one, with lines around them, as many as a budget takes, and those of a document
    together."""
    if is_plain(request):
        return Shaped(hits=list(hits))
    spans = [_span(number, hit) for number, hit in enumerate(hits)]
    spans = grouping.joined(spans, lambda document_id: _content(caller, document_id), context_lines=request.context)
    tokens, left_out = None, None
    if request.budget_tokens is not None:
        filled = grouping.filled(spans, request.budget_tokens)
        spans, tokens, left_out = list(filled.spans), filled.tokens, filled.left_out
    if request.group:
        spans = grouping.together(spans)
    return Shaped(hits=[_hit(span, hits) for span in spans], tokens=tokens, left_out=left_out)


def _span(number: int, hit: v1.SearchHit) -> Span:
    place = Place(start_line=hit.start_line, end_line=hit.end_line, start_byte=hit.start_byte, end_byte=hit.end_byte)
    return Span(document_id=hit.document_id, path=hit.path, score=hit.score, place=place, text=hit.text, hits=(number,))


def _hit(span: Span, hits: Sequence[v1.SearchHit]) -> v1.SearchHit:
    """The best hit of a span, in the span's place."""
    own = [hits[number] for number in span.hits]
    return own[0].model_copy(
        update={
            "start_line": span.place.start_line,
            "end_line": span.place.end_line,
            "start_byte": span.place.start_byte,
            "end_byte": span.place.end_byte,
            "text": span.text,
            "matched": [
                v1.LineRange(start_line=hit.start_line, end_line=hit.end_line)
                for hit in sorted(own, key=lambda hit: (hit.start_byte, hit.end_byte))
            ],
        }
    )


def _content(caller: Caller, document_id: str) -> bytes | None:
    """The bytes of a document, when they are text in UTF-8."""
    document = caller.store.documents.get(document_id)
    if document is None or document.size_bytes > READ_MAX_BYTES:
        return None
    try:
        data = text_bytes(caller.store, document)
        data.decode()
    except (NotFoundError, UnicodeDecodeError):
        return None
    return data
