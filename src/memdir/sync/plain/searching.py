"""Search at a server that answers with passages and no lines: these are found by looking the passage up in the file here."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from memdir.api import v1
from memdir.client.errors import ServerError
from memdir.client.http import Client
from memdir.fs.path import is_within
from memdir.sync.plain.records import Records

LocalText = Callable[[str], bytes | None]
"""The bytes of a file in the mount, None when it is not there, too large or not fetched."""

LIMIT_MAX: Final = 100
"""Results of one call."""
_TEXT_MAX_CHARS: Final = 2000
_ANCHOR_CHARS: Final = 160
"""So much of a passage is looked for when the whole of it is not found: servers join, cut and head their passages."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """Where a passage stands: lines from 1, both ends included; bytes half open."""

    start_line: int
    end_line: int
    start_byte: int
    end_byte: int
    text: str


def search(client: Client, records: Records, request: v1.SearchRequest, local_text: LocalText) -> v1.SearchResponse:
    """Ask `/v4/search` and answer as `/v1/search` does. What has no place in the mount is left out."""
    body: dict[str, Any] = {
        "q": request.q, "containerTag": request.container_tag, "searchMode": "hybrid", "limit": min(request.limit, LIMIT_MAX),
    }  # fmt: skip
    scope = request.filepath.rstrip("/") or "/"
    if scope != "/":
        body["filepath"] = scope if records.at(scope) is not None else scope + "/"
    answer = client.ask("POST", "/v4/search", json=body)
    results = answer.get("results")
    if not isinstance(results, list):
        raise ServerError("the server's answer to a search has no results")
    hits: list[v1.SearchHit] = []
    texts: dict[str, bytes | None] = {}
    for item in results:
        hit = _hit(item, records, scope, texts, local_text) if isinstance(item, dict) else None
        if hit is not None:
            hits.append(hit)
    pending = records.unsettled_paths(scope, 1000)
    timing = answer.get("timing")
    return v1.SearchResponse(
        results=hits, total=len(hits), pending=pending, timing_ms=float(timing) if isinstance(timing, (int, float)) else 0.0
    )


def _hit(
    item: dict[str, Any], records: Records, scope: str, texts: dict[str, bytes | None], local_text: LocalText
) -> v1.SearchHit | None:
    passage = item.get("chunk") or item.get("memory")
    path, document_id = _place(item, records)
    if not isinstance(passage, str) or path is None or not is_within(path, scope):
        return None
    if path not in texts:
        texts[path] = local_text(path)
    content = texts[path]
    found = find(passage, content) if content is not None else None
    if found is None:
        found = Found(start_line=1, end_line=1, start_byte=0, end_byte=0, text=passage[:_TEXT_MAX_CHARS])
    score = item.get("similarity")
    return v1.SearchHit(
        path=path, document_id=document_id, kind="chunk" if item.get("chunk") else "memory", start_line=found.start_line,
        end_line=found.end_line, start_byte=found.start_byte, end_byte=found.end_byte, text=found.text,
        score=min(1.0, max(0.0, float(score))) if isinstance(score, (int, float)) else 0.0,
    )  # fmt: skip


def _place(item: dict[str, Any], records: Records) -> tuple[str | None, str]:
    """Path and document of a result: as it says, or by the document that it names."""
    documents = item.get("documents")
    named = documents[0] if isinstance(documents, list) and documents and isinstance(documents[0], dict) else {}
    document_id = str(named.get("id") or item.get("documentId") or "")
    path = item.get("filepath")
    known = records.known(document_id) if document_id else None
    if known is not None:
        return known.path, known.id
    if isinstance(path, str):
        shown = records.at(path)
        return (shown.path, shown.id) if shown is not None else (None, "")
    return None, ""


def find(passage: str, content: bytes) -> Found | None:
    """Look a passage up in a file, whatever white space became of it: the whole, else its beginning, else its longest line."""
    try:
        text = content.decode()
    except UnicodeDecodeError:
        return None
    lines = [line.strip() for line in passage.splitlines() if line.strip()]
    longest = max(lines, key=len, default="")
    for wanted in (passage, passage.strip()[:_ANCHOR_CHARS], longest[:_ANCHOR_CHARS]):
        words = wanted.split()
        match = re.search(r"\s+".join(map(re.escape, words)), text) if words else None
        if match is not None:
            return _found(text, match.start(), match.end())
    return None


def _found(text: str, start: int, end: int) -> Found:
    first, last = text.count("\n", 0, start) + 1, text.count("\n", 0, max(start, end - 1)) + 1
    line_start = text.rfind("\n", 0, start) + 1
    line_end = text.find("\n", end)
    line_end = len(text) if line_end < 0 else line_end
    shown = text[line_start:line_end][:_TEXT_MAX_CHARS]
    low = len(text[:line_start].encode())
    return Found(
        start_line=first, end_line=last, start_byte=low, end_byte=low + len(text[line_start:line_end].encode()), text=shown
    )
