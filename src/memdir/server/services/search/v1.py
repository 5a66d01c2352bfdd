"""Search: ranked lines for `/v1`, results for `/v3` and `/v4`."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from functools import partial
from typing import Final

from memdir.api import v1
from memdir.api.search import Reranking
from memdir.core.limits import INT64_MAX, SEARCH_PENDING_MAX
from memdir.core.search_waits import SEARCH_WAIT_FILES_MAX
from memdir.retrieval.rerank.port import RERANK_MAX
from memdir.retrieval.types import SearchQuery
from memdir.retrieval.words import prepare
from memdir.server.dispatcher import Dispatcher
from memdir.server.engine import Engine
from memdir.server.http.access import Caller
from memdir.server.services.search import exact
from memdir.server.services.search.excerpts import Shaped, is_plain
from memdir.server.services.search.excerpts import shaped as shape
from memdir.server.services.search.hits import SPARE_HITS, current_hits, reranked_hits, wait_for_edits
from memdir.server.services.search.merging import merged, placed_memories, search_hit
from memdir.store.passages.reading import in_place
from memdir.store.types import Chosen, Scope

EMBED_WAIT_S: Final = 1.0
EMBED_WAIT_MAX_BYTES: Final = 64 << 10
"""Of one file: the transformer reads so much in about EMBED_WAIT_S. A larger one is not waited for, it may take minutes."""
CLOSEST_TOLD_MIN: Final = 0.1
"""Score of the closest passage from which on it is told when nothing is shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    """What a search found, before it is grouped and cut to a budget. The fields are those of the answer."""

    hits: list[v1.SearchHit]
    total: int
    stages_ms: dict[str, float]
    note: str | None
    reranking: Reranking | None = None
    binary: list[str] | None = None
    counts: list[v1.FileCount] | None = None


async def search(caller: Caller, dispatcher: Dispatcher, engine: Engine, request: v1.SearchRequest) -> v1.SearchResponse:
    """Wait as far as the request wants, then search. A container that does not exist has nothing in it."""
    began = time.perf_counter()
    paths = [(caller.narrowed(path), path.endswith("/")) for path in request.scopes]
    container = await dispatcher.run(caller.found, request.container_tag, "read", at=paths[0][0])
    if container is None:
        return v1.SearchResponse(results=[], total=0, pending=[], timing_ms=0.0)
    scopes = await dispatcher.run(lambda: [scope_of(caller, container.id, path, folder=folder) for path, folder in paths])
    scope = await dispatcher.run(united, caller, scopes) if request.mode == "semantic" else scopes[0]
    pending: list[str] = []
    lacking = 0
    if request.wait_seq > 0 and request.mode == "semantic":  # exact text is read from the files
        lacking = await _until_searchable(caller, dispatcher, engine, scope, request.wait_seq, began + request.wait_ms / 1000)
    waited = time.perf_counter()
    if request.mode != "semantic":
        found = await dispatcher.run(_exact, caller, engine, scopes, request)
    else:
        unread = await dispatcher.run(_unread, caller, engine, scope)
        pending = [path for path in unread if any(in_place(path, one) for one in scopes)]
        found = await dispatcher.run(_semantic, caller, engine, scope, request)
        if not found.hits and lacking and request.wait_ms:
            lacking = await _until_embedded(caller, dispatcher, scope, request.wait_seq, began + request.wait_ms / 1000)
            found = await dispatcher.run(_semantic, caller, engine, scope, request)
    grouping = time.perf_counter()
    shaped = await dispatcher.run(shape, caller, found.hits, request) if not is_plain(request) else Shaped(hits=found.hits)
    now = time.perf_counter()
    stages = found.stages_ms | {"wait": _ms(waited - began), "group": _ms(now - grouping)}
    left_out = shaped.left_out
    return v1.SearchResponse(
        results=shaped.hits,
        total=found.total,
        pending=pending,
        half_read=lacking or None,
        timing_ms=_ms(now - waited),
        stages_ms=stages if request.explain else None,
        reranking=found.reranking,
        tokens=shaped.tokens,
        left_out=None if left_out is None else v1.SearchLeftOut(count=left_out.count, paths=list(left_out.paths)),
        counts=found.counts,
        binary=found.binary,
        note=found.note,
    )


def _ms(seconds: float) -> float:
    return round(seconds * 1000, 3)


def scope_of(caller: Caller, container_id: int, path: str, *, folder: bool) -> Scope:
    """A file when one stands there and no trailing slash was sent, else a folder."""
    if path != "/" and not folder:
        document = caller.store.documents.at(container_id, path)
        if document is not None and document.kind != "dir":
            return Scope(container_id=container_id, folder=path, exact=True)
    return Scope(container_id=container_id, folder=path)


def united(caller: Caller, scopes: list[Scope]) -> Scope:
    """Several scopes of a container as one: their documents, below the folder that holds them all."""
    if len(scopes) == 1:
        return scopes[0]
    ids = (caller.store.originals.ids(scope) for scope in scopes)
    folder = os.path.commonpath([os.path.dirname(scope.folder) if scope.exact else scope.folder for scope in scopes])
    return Scope(container_id=scopes[0].container_id, folder=folder, chosen=Chosen(ids=frozenset().union(*ids)))


async def _until_searchable(
    caller: Caller, dispatcher: Dispatcher, engine: Engine, scope: Scope, seq: int, deadline: float
) -> int:
    """Until everything in scope up to `seq` is found by a search, at most to `deadline` (of `time.perf_counter`); of what is
    left of it, up to EMBED_WAIT_S for the transformer's vectors of fresh edits, which are then found by meaning and not only by
    words. Returns how many have none, as `_half_read_files` counts them."""
    missing = caller.store.documents.not_searchable
    with dispatcher.watch(scope.container_id) as watch:
        while await dispatcher.run(missing, scope, up_to_revision=min(seq, INT64_MAX), limit=1):
            left_s = deadline - time.perf_counter()
            if left_s <= 0 or dispatcher.closing:
                return await dispatcher.run(_half_read_files, caller, scope, seq)
            await watch.wait(left_s)
    await dispatcher.run(engine.wait_settled, deadline - time.perf_counter())
    return await _until_embedded(caller, dispatcher, scope, seq, min(deadline, time.perf_counter() + EMBED_WAIT_S))


async def _until_embedded(caller: Caller, dispatcher: Dispatcher, scope: Scope, seq: int, deadline: float) -> int:
    """Until the fresh edits in scope up to `seq` have the transformer's vectors. Returns how many have none.

    Waited for a second time, and longer, before an answer says that there is nothing: on a busy machine, or at the very first
    start, it would be said of a file that was saved a moment ago."""
    with dispatcher.watch(scope.container_id) as watch:
        while left := await dispatcher.run(_half_read_files, caller, scope, seq):
            left_s = deadline - time.perf_counter()
            if left_s <= 0 or dispatcher.closing or left > SEARCH_WAIT_FILES_MAX:
                return left
            await watch.wait(left_s)
    return 0


def _half_read_files(caller: Caller, scope: Scope, seq: int) -> int:
    """How many short files in scope up to `seq` cannot be found by meaning yet, at most SEARCH_WAIT_FILES_MAX + 1. Of more,
    which are an import, only what was edited since."""
    missing = partial(
        caller.store.documents.not_searchable,
        scope,
        up_to_revision=min(seq, INT64_MAX),
        limit=SEARCH_WAIT_FILES_MAX + 1,
        unfinished=True,
        size_max_bytes=EMBED_WAIT_MAX_BYTES,
    )
    left = len(missing())
    return left if left <= SEARCH_WAIT_FILES_MAX else len(missing(edits_only=True))


def _unread(caller: Caller, engine: Engine, scope: Scope) -> list[str]:
    """What cannot be found yet, though a moment was waited for it."""
    wait_for_edits(caller, engine, [scope.container_id])
    return caller.store.documents.not_searchable(scope)


def _half_read(caller: Caller, scope: Scope) -> str | None:
    """That the transformer has not read everything, which is a reason why nothing is found."""
    left = len(caller.store.documents.not_searchable(scope, unfinished=True))
    if not left:
        return None
    many = f"{left:,}{'' if left < SEARCH_PENDING_MAX else ' or more'}"
    return f"{many} {'file is' if left == 1 else 'files are'} still being read and found by words only until then"


def _exact(caller: Caller, engine: Engine, scopes: list[Scope], request: v1.SearchRequest) -> _Found:
    began = time.perf_counter()
    lines = exact.search(caller.store, engine.trigrams, scopes, request)
    return _Found(
        hits=lines.hits,
        total=len(lines.hits),
        stages_ms={"match": _ms(time.perf_counter() - began)},
        note=lines.note,
        binary=lines.binary,
        counts=lines.counts if request.count else None,
    )


def _semantic(caller: Caller, engine: Engine, scope: Scope, request: v1.SearchRequest) -> _Found:
    limit = max(request.limit, RERANK_MAX) if request.rerank else request.limit
    query = SearchQuery(
        text=request.q, scope=scope, limit=limit + SPARE_HITS, threshold=request.threshold, explain=request.explain,
        nearest=request.nearest, containing=request.containing,
    )  # fmt: skip
    found, outcome = current_hits(caller, engine, query)
    stages = dict(outcome.stages_ms)
    reranking = None
    if request.rerank:
        began = time.perf_counter()
        found, reranking = reranked_hits(engine, request.q, found)
        stages["rerank"] = _ms(time.perf_counter() - began)
    placed = [(hit, document) for hit, document in found if document.path is not None]
    began = time.perf_counter()
    memories = [] if request.containing else placed_memories(caller, engine, scope, request, placed)
    stages["memories"] = _ms(time.perf_counter() - began)
    keeps_order = reranking is not None and reranking.applied
    hits = merged([search_hit(hit, document) for hit, document in placed], placed, memories, keeps_order=keeps_order)
    if any(not hit.weak for hit in hits):
        hits = [hit for hit in hits if not hit.weak]
    total = max(0, outcome.total - len(outcome.hits)) + len(hits)
    note = None
    if not hits and not prepare(request.q).terms:
        note = "the query has no letter and no digit to search by; an exact search (--literal) finds other characters, too"
    elif request.containing and not hits:
        note = "no line holds all that it has to contain"
    elif hits and all(hit.weak for hit in hits):
        note = "nothing is sure enough: these are the nearest there is"
    elif not hits and outcome.closest >= CLOSEST_TOLD_MIN:
        note = f"nothing is sure enough to be shown; the closest scores {outcome.closest:.2f}, a lower threshold shows it"
    elif not hits:
        note = _half_read(caller, scope)
    return _Found(hits=hits[: request.limit], total=total, stages_ms=stages, note=note, reranking=reranking)
