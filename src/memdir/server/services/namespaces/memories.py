"""Search, profile and memories as `/ns` knows them: the services of `/v4` under other names."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, Literal

from memdir.api import ns, v3, v4
from memdir.core.clock import iso_ms
from memdir.core.errors import MemdirError, NotFoundError
from memdir.server.engine import Engine
from memdir.server.errors import text_of
from memdir.server.http.access import Caller
from memdir.server.services.admin import containers
from memdir.server.services.contents import memories
from memdir.server.services.contents.views import pagination, summary_of, type_of
from memdir.server.services.namespaces.documents import Order, Sort, found, paged
from memdir.server.services.namespaces.filters import filters_of
from memdir.server.services.search import v4 as recall
from memdir.server.services.search.filters import condition_of, fits
from memdir.server.services.search.memory_relations import contexts
from memdir.server.services.search.memory_search import metadata_of
from memdir.store.errors import InvalidError
from memdir.store.tree.containers import BUCKETS_KEY
from memdir.store.types import Document, Memory

LISTED_MAX: Final = 10_000
"""Memories of one namespace that are listed at all."""
FORGET_THRESHOLD: Final = 0.6
"""How close to a query a memory must be to be forgotten by it: well above what search calls a hit."""
FORGET_MAX: Final = 100
VERSIONS_MAX: Final = 3
"""Earlier and later versions that a memory shows, as the hosted service does."""
_MODES: Final[dict[str, Literal["hybrid", "memories", "documents"]]] = {
    "hybrid": "hybrid",
    "memories": "memories",
    "chunks": "documents",
}


def search(caller: Caller, engine: Engine, namespace: str, request: ns.Search) -> ns.SearchResults:
    """Memories, passages, or both by similarity."""
    answer = recall.search_memories(
        caller,
        engine,
        v4.SearchMemories(
            q=request.query,
            container_tag=namespace,
            search_mode=_MODES[request.search_mode],
            limit=request.limit,
            threshold=request.threshold,
            rerank=request.rerank == "order",
            include=v4.Include(
                documents=request.include.documents,
                summaries=request.include.documents,
                related_memories=request.include.related,
                forgotten_memories=request.include.forgotten,
            ),
            filters=filters_of(request.filter),
        ),
    )
    return ns.SearchResults(results=[_result(caller, result) for result in answer.results], search_time=answer.timing)


def _result(caller: Caller, result: v4.MemoryResult) -> ns.SearchResult:
    memory = None if result.memory is None else caller.store.memories.get(result.id)
    system = {"updatedAt": result.updated_at}
    if memory is not None:
        system["createdAt"] = iso_ms(memory.created_at_ms)
    included = None
    if result.context is not None or result.documents:
        source = result.documents[0] if result.documents else None
        included = ns.Included(
            related=None if result.context is None else _related(result.context),
            document=None
            if source is None
            else ns.SourceDocument(
                id=source.id,
                title=source.title,
                type=source.type,
                metadata=source.metadata or {},
                summary=source.summary,
                system=ns.Stamps(created_at=source.created_at, updated_at=source.updated_at),
            ),
        )
    return ns.SearchResult(
        id=result.id,
        memory=result.memory,
        chunk=result.chunk,
        metadata=result.metadata or {},
        similarity=result.similarity,
        is_latest=memory.is_latest and not memory.is_forgotten if memory is not None else True,
        is_inference=memory is not None and memory.relation == "derives",
        system=system,
        included=included,
    )


def _related(context: v4.Context, *, limit: int = ns.RELATED_MAX, source: ns.SourceDocument | None = None) -> ns.Related:
    def listed(relatives: Iterable[v4.Relative], most: int) -> list[ns.RelatedMemory]:
        return [
            ns.RelatedMemory(
                id=relative.id,
                relation=relative.relation,
                version=relative.version,
                memory=relative.memory,
                metadata=relative.metadata or {},
                system={"updatedAt": relative.updated_at},
                document=source,
            )
            for relative in list(relatives)[:most]
        ]

    near = min(limit, VERSIONS_MAX)
    return ns.Related(
        parents=listed(context.parents, near), children=listed(context.children, near), siblings=listed(context.related, limit)
    )


def profile(caller: Caller, engine: Engine, namespace: str, request: ns.ProfileRequest) -> ns.Profile:
    """What is known, by importance, each fact with its id."""
    body = v4.ProfileRequest(container_tag=namespace, filters=filters_of(request.filter), buckets=request.buckets)
    facts = recall.profile(caller, engine, body).profile
    container = found(caller, namespace)
    known = () if container is None else engine.memories.latest(container.id)
    ids = {memory.candidate.text: memory.id for memory in reversed(known)}

    def listed(texts: Sequence[str] | None) -> list[ns.ProfileFact]:
        return [ns.ProfileFact(id=ids.get(text, ""), memory=text) for text in texts or ()]

    return ns.Profile(
        profile=ns.ProfileSections(
            static=listed(facts.static),
            dynamic=listed(facts.dynamic),
            buckets={name: listed(texts) for name, texts in (facts.buckets or {}).items()},
        )
    )


def buckets(caller: Caller, namespace: str) -> ns.Buckets:
    """The namespace's buckets; there are none of the organisation here."""
    if found(caller, namespace) is None:
        return ns.Buckets(buckets={})
    defined = containers.settings(caller, namespace).get(BUCKETS_KEY) or []
    return ns.Buckets(buckets={str(entry["key"]): str(entry.get("description") or "") for entry in defined})


def change_buckets(
    caller: Caller, namespace: str, *, put: dict[str, str] | None = None, drop: Sequence[str] = ()
) -> ns.Buckets:
    """Add or change some buckets, and take others away. NotFoundError for a namespace that does not exist."""
    caller.container(namespace, "write")
    standing = buckets(caller, namespace).buckets | (put or {})
    kept = [{"key": key, "description": text} for key, text in standing.items() if key not in drop]
    containers.change_settings(caller, namespace, {BUCKETS_KEY: kept or None})
    return buckets(caller, namespace)


def forget(caller: Caller, namespace: str, ids: Sequence[str]) -> ns.Forgotten:
    """Out of profile and search, each for itself."""
    caller.allow("write", namespace)
    errors: list[ns.Failed] = []
    matches: list[ns.ForgetMatch] = []
    for memory_id in dict.fromkeys(ids):
        try:
            memories.forget(caller, v4.ForgetMemory(id=memory_id, container_tag=namespace))
            memory = caller.store.memories.get(memory_id)
            matches.append(ns.ForgetMatch(id=memory_id, memory="" if memory is None else memory.candidate.text))
        except MemdirError as error:
            errors.append(ns.Failed(id=memory_id, error=text_of(error)))
    return ns.Forgotten(count=len(matches), errors=errors, matches=matches)


def forget_matching(caller: Caller, engine: Engine, namespace: str, request: ns.ForgetMatching) -> ns.Forgotten:
    """The memories that are close to a query; forgotten unless it is only asked which they are."""
    caller.allow("read" if request.dry_run else "write", namespace)
    if found(caller, namespace) is None:
        return ns.Forgotten(count=0, errors=[], matches=[])
    query = v4.SearchMemories(
        q=request.query, container_tag=namespace, search_mode="memories", threshold=FORGET_THRESHOLD, limit=FORGET_MAX
    )
    hits = recall.search_memories(caller, engine, query).results
    if not request.dry_run:
        return forget(caller, namespace, [hit.id for hit in hits])
    return ns.Forgotten(
        count=len(hits), errors=[], matches=[ns.ForgetMatch(id=hit.id, memory=hit.memory or "") for hit in hits]
    )


def memory_view(memory: Memory, source: Document | None) -> ns.Memory:
    """A memory in the words of `/ns`."""
    return ns.Memory(
        id=memory.id,
        memory=memory.candidate.text,
        metadata=dict(metadata_of(memory, source)),
        is_static=memory.candidate.kind == "static",
        is_inference=memory.relation == "derives",
        is_latest=memory.is_latest,
        is_forgotten=memory.is_forgotten,
        version=memory.version,
        system=ns.Stamps(created_at=iso_ms(memory.created_at_ms), updated_at=iso_ms(memory.updated_at_ms)),
    )


def get(caller: Caller, namespace: str, memory_id: str, include: Sequence[str], related_limit: int) -> ns.MemoryDetails:
    """One memory, and what was asked for beside it."""
    container = caller.container(namespace, "read")
    memory = caller.store.memories.get(memory_id)
    if memory is None or memory.container_id != container.id:
        raise NotFoundError(f"there is no memory {memory_id[:100]!r} in namespace {namespace!r}")
    source = None if memory.document_id is None else caller.store.documents.get(memory.document_id)
    document = None
    if source is not None and "documents" in include:
        document = ns.SourceDocument(
            id=source.custom_id or source.id,
            title=source.title,
            type=type_of(source),
            metadata=dict(source.metadata),
            summary=summary_of(caller, source),
            system=ns.Stamps(created_at=iso_ms(source.created_at_ms), updated_at=iso_ms(source.updated_at_ms)),
        )
    related = None
    if "related" in include:
        related = _related(contexts(caller.store.memories, [memory])[memory.id], limit=related_limit)
    included = ns.Included(related=related, document=document) if related or document else None
    return ns.MemoryDetails(**dict(memory_view(memory, source)), included=included)


def page(
    caller: Caller, namespace: str, request: ns.ListRequest, *, number: int, limit: int, sort: Sort, order: Order
) -> ns.Listed:
    """A page of facts that hold now, with `forgotten` also of those that were forgotten."""
    if sort == "position":
        raise InvalidError("only chunks have a position")
    caller.allow("read", namespace)
    container = found(caller, namespace)
    listed: list[tuple[Memory, Document | None]] = []
    if container is not None:
        known = caller.store.memories.latest(container.id, limit=LISTED_MAX, forgotten=request.include.forgotten)
        sources = caller.store.documents.many({m.document_id for m in known if m.document_id is not None})
        condition = condition_of(filters_of(request.filter))
        pairs = [(memory, sources.get(memory.document_id or "")) for memory in known]
        listed = [(memory, source) for memory, source in pairs if fits(condition, metadata_of(memory, source))]
    listed.sort(
        key=lambda item: (item[0].updated_at_ms if sort == "updatedAt" else item[0].created_at_ms, item[0].id),
        reverse=order == "desc",
    )
    shown = listed[(number - 1) * limit : number * limit]
    place: v3.Pagination = pagination(number, limit, len(listed))
    return ns.Listed(memories=[memory_view(memory, source) for memory, source in shown], pagination=paged(place))
