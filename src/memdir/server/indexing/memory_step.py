"""Documents through the step from text to memories. No threads, no waiting; it may be killed anywhere and repeated."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from memdir.ingest.text import decode
from memdir.memory.extract import extract
from memdir.memory.file_names import is_about_user
from memdir.memory.model_reader import from_environment
from memdir.memory.own_name import names_in
from memdir.memory.people_tables import is_of_cards
from memdir.memory.reconcile import reconcile, related_topics_of, same_text, topics_of
from memdir.server.indexing.known_facts import KnownFacts, Topic
from memdir.server.indexing.leases import Lease
from memdir.server.indexing.pipeline import Failed, Small, Work, content, decoded, each, small_contents
from memdir.store.errors import SupersededError
from memdir.store.memories.memories import Decided
from memdir.store.paths import is_memory_source
from memdir.store.store import Store
from memdir.store.types import Container, Memory, MemoryCandidate

_OF_OTHERS: Final = frozenset({"mail", "web", "archive"})
"""Kinds of files whose text others wrote: nothing of it becomes a fact."""


@dataclass(slots=True, kw_only=True, eq=False)
class _Reading(Work):
    """A document on its way to memories. `own`: what it said before."""

    candidates: Sequence[MemoryCandidate] = ()
    own: Sequence[Memory] = field(default_factory=list)


def remember_all(store: Store, facts: KnownFacts, leases: Sequence[Lease]) -> Failed:
    """Bring the memories in line with what documents of one organisation say, if they stand under the memory paths; else take
    them back. Documents whose facts have nothing to do with each other share a transaction; the others are decided one after
    the other. `facts` of the calling thread spare it from reading all that is known for each document.

    Returns the documents that failed and why, as `pipeline.index_all`: SupersededError also when another document's facts came
    between.
    """
    failed: Failed = []
    documents = store.documents.many([lease.job.document_id for lease in leases])
    works = [
        _Reading(lease=lease, document=documents[lease.job.document_id])
        for lease in leases
        if lease.job.document_id in documents
    ]
    of_container: dict[int, list[_Reading]] = {}
    for work in works:
        of_container.setdefault(work.document.container_id, []).append(work)
    for container_id, together in of_container.items():
        container = store.containers.by_id(container_id)
        if container is not None:
            _remember_in(store, facts, container, together, failed)
    lost = {lease for lease, _ in failed}
    store.jobs.finish([lease.job for lease in leases if lease not in lost])
    return failed


def _remember_in(store: Store, facts: KnownFacts, container: Container, works: Sequence[_Reading], failed: Failed) -> None:
    paths = container.memory_paths
    sources = [work for work in works if is_memory_source(work.document.path, work.document.task_type, paths)]
    each([work for work in works if work not in sources], partial(_forget, store), failed)
    if not sources:
        return
    called = facts.called(container)
    small = small_contents(store, sources)
    sources = each(sources, partial(_read, store, small, called), failed)
    names = _names_in((work.document.path, work.candidates) for work in sources) - called
    if names:  # these are read again with them, and so are others, once
        known = store.memories.standing_in([work.document.id for work in sources])
        before = _names_in((work.document.path, [memory.candidate for memory in known[work.document.id]]) for work in sources)
        here = {work.document.id for work in works}
        others = [one for one in facts.of_names(container, names - before) if one not in here]
        store.reprocessing.ask_for(container.id, others, "memory")
        sources = each(sources, partial(_read, store, small, called | names), failed)
    standing = store.memories.standing_in([work.document.id for work in sources])
    for work in sources:
        work.own = standing[work.document.id]
    for unrelated in _unrelated(sources):
        now = store.containers.by_id(container.id)
        if now is None:
            return
        _decide(store, facts, now, unrelated, failed)


def _names_in(said: Iterable[tuple[str | None, Sequence[MemoryCandidate]]]) -> frozenset[str]:
    """What the user is called, as documents say, of which the paths are given."""
    return frozenset(
        name for path, candidates in said for one in candidates for name in names_in(one, is_own=is_about_user(path or ""))
    )


def _forget(store: Store, work: _Reading) -> None:
    store.memories.forget_document(work.document, guard=store.jobs.guard(work.lease.job))


def _read(store: Store, small: Small, called: frozenset[str], work: _Reading) -> None:
    document = work.document
    if document.transcription in _OF_OTHERS and not is_of_cards(document.path or ""):
        return
    if document.transcription is not None:
        text = decoded(store, document)
    else:
        data = content(store, small, document) if document.kind == "file" else b""
        text = work.lease.compute(lambda: decode(data))
    if text is not None:
        path = document.path or ""
        reader = from_environment()
        restated = [] if reader is None or not path else reader(text.text)
        is_new = document.created_at_ms == document.updated_at_ms  # the revision of a file is its container's count
        work.candidates = work.lease.compute(
            lambda: extract(
                text.text, path, byte_at=text.byte_at, written_ms=document.mtime_ns // 1_000_000 or document.updated_at_ms,
                is_first_writing=is_new, restated=restated, called=called,
            )
        )  # fmt: skip


def _unrelated(works: Sequence[_Reading]) -> Iterator[list[_Reading]]:
    """In order, cut where a document says, or said, what one before it in the same part did: `KnownFacts.concerned` of each
    then shows nothing that another one of its part changes."""
    part: list[_Reading] = []
    met_texts: set[str] = set()
    met_topics: set[Topic] = set()
    met_related: set[Topic] = set()
    for work in works:
        said = [*work.candidates, *(memory.candidate for memory in work.own)]
        texts = {same_text(candidate.text) for candidate in said}
        topics = {topic for candidate in said for topic in topics_of(candidate)}
        related = {topic for candidate in said for topic in related_topics_of(candidate)}
        if texts & met_texts or related & met_topics or topics & met_related:
            yield part
            part, met_texts, met_topics, met_related = [], set(), set(), set()
        part.append(work)
        met_texts |= texts
        met_topics |= topics
        met_related |= related
    if part:
        yield part


def _decide(store: Store, facts: KnownFacts, container: Container, works: Sequence[_Reading], failed: Failed) -> None:
    """Of documents that are unrelated."""
    decisions: list[Decided] = []

    def decide(work: _Reading) -> None:
        others = facts.concerned(container, work.candidates, work.own)
        changes = work.lease.compute(lambda: reconcile(work.candidates, own=work.own, others=others))
        guard = store.jobs.guard(work.lease.job)
        decisions.append(Decided(document=work.document, changes=changes, guard=guard))

    works = each(works, decide, failed)
    try:
        changed = store.memories.apply_all(container.id, decisions, version=container.profile_version)
    except SupersededError as error:
        failed += [(work.lease, error) for work in works]
        return
    failed += [(work.lease, SupersededError()) for work, one in zip(works, changed, strict=True) if one is None]
    carried_out = [decided for decided, one in zip(decisions, changed, strict=True) if one is not None]
    facts.applied(container, carried_out, changed=any(changed))
