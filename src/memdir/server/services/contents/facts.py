"""Facts of a container: what holds, or held on a day, what answers a question, and the lines that say it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Final, Literal, cast

from memdir.api import facts as wire
from memdir.core.clock import iso_ms
from memdir.memory.claims import claim_of
from memdir.memory.entities import Entities, subject_of
from memdir.memory.profile import replaced_by_due_plans
from memdir.memory.questions import attribute_of, attributes_asked
from memdir.retrieval.types import SearchQuery
from memdir.server.engine import Engine
from memdir.server.http.access import Caller
from memdir.server.services.search.memory_search import SPARE, recalled
from memdir.store.memories.memories import Source
from memdir.store.types import Container, Memory, Scope

_READ_MAX: Final = 20_000
_OF_OTHERS: Final = 0.5
"""What a fact about others than those whom a question names counts."""
_ANSWERS: Final = 0.95
"""What a fact counts at least that tells of whom a question names what it asks for."""
_BESIDE: Final = 0.9
"""What others count then."""
_WORD: Final = re.compile(r"\w+")


def find(caller: Caller, engine: Engine, wanted: wire.FactsQuery) -> wire.Facts:
    """Those whose sources the caller may read."""
    container = caller.found(wanted.container_tag, "read")
    if container is None:
        return wire.Facts(facts=[])
    held = _held(caller, container, wanted.at)
    if wanted.q is not None:
        now_ms = caller.store.now_ms() if wanted.at is None else _ms(wanted.at)
        former = replaced_by_due_plans(held.values(), now_ms=now_ms)
        held = {memory_id: memory for memory_id, memory in held.items() if memory_id not in former}
    entities = Entities(held.values()) if wanted.q or wanted.subject else Entities(())
    scores = None if wanted.q is None else _scores(caller, engine, container, wanted, held, entities)
    needed = {word.casefold() for word in _WORD.findall(wanted.words or "")}
    subject = None if wanted.subject is None else entities.named(wanted.subject)
    found: list[wire.Fact] = []
    for memory_id in held if scores is None else scores:
        memory = held[memory_id]
        fits = (
            wanted.id in (None, memory_id)
            and needed <= {word.casefold() for word in _WORD.findall(memory.candidate.text)}
            and (subject is None or subject in entities.names_in(memory.candidate))
        )
        sources = [one for one in caller.store.memories.sources(memory.id) if _may_see(caller, one)] if fits else []
        if sources and (wanted.path is None or any(_is_at(one, wanted.path, wanted.line) for one in sources)):
            found.append(_fact(caller, memory, sources, None if scores is None else scores[memory_id]))
        if len(found) == wanted.limit:
            break
    return wire.Facts(facts=found)


def graph(caller: Caller, tag: str, subject: str, hops: int) -> wire.Graph:
    """Links from and to a subject, those of the nearest first, at most LINKS_MAX."""
    container = caller.found(tag, "read")
    held = {} if container is None else _held(caller, container, None)
    entities = Entities(held.values())
    name = entities.named(subject)
    links: list[wire.Link] = []
    for link in entities.around(name, hops=hops):
        source = next((one for one in caller.store.memories.sources(link.memory_id) if _may_see(caller, one)), None)
        if source is not None:
            links.append(
                wire.Link(
                    subject=link.subject, relation=link.relation, object=link.object, fact_id=link.memory_id,
                    path=source.path, line=source.start_line,
                )
            )  # fmt: skip
        if len(links) == wire.LINKS_MAX:
            break
    return wire.Graph(subject=name, links=links)


def _held(caller: Caller, container: Container, at: datetime | None) -> dict[str, Memory]:
    """By their ids, the most important first."""
    store = caller.store.memories
    if at is None:
        return {memory.id: memory for memory in store.latest(container.id, limit=_READ_MAX)}
    return {memory.id: memory for memory in store.held_at(container.id, _ms(at), limit=_READ_MAX)}


def _ms(at: datetime) -> int:
    return int((at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp() * 1000)


def _scores(
    caller: Caller,
    engine: Engine,
    container: Container,
    wanted: wire.FactsQuery,
    held: Mapping[str, Memory],
    entities: Entities,
) -> dict[str, float]:
    """Of the facts that answer the question, best first. Who asks of somebody does not want what is so of others."""
    assert wanted.q is not None
    scope = Scope(container_id=container.id)
    spare = _READ_MAX if wanted.words or wanted.subject or wanted.path else wanted.limit + SPARE
    if wanted.at is None:
        scores = {
            one.memory.id: one.score
            for one in recalled(caller, engine, scope, wanted.q, limit=spare, threshold=None)
            if one.memory.id in held
        }
    else:
        query = SearchQuery(text=wanted.q, scope=scope, limit=spare, threshold=None, lines=False)
        texts = {memory_id: memory.candidate.text for memory_id, memory in held.items()}
        with engine.in_flight.search():
            scores = {one.id: one.score for one in engine.memory_index.search_among(texts, query, engine.searcher)}
    asked, attributes = entities.asked_about(wanted.q), attributes_asked(wanted.q)
    for memory_id in scores if asked else ():
        if asked.isdisjoint(entities.names_in(held[memory_id].candidate)):
            scores[memory_id] *= _OF_OTHERS
    now_ms = caller.store.now_ms()
    answers = {
        memory_id
        for memory_id, memory in (held.items() if asked and attributes else ())
        if (wanted.at is not None or _said_since(memory) <= now_ms)
        and entities.named(subject_of(memory.candidate)) in asked
        and attribute_of(memory.candidate.text) in attributes
    }
    if answers:
        scores = {memory_id: score * (1.0 if memory_id in answers else _BESIDE) for memory_id, score in scores.items()}
        scores |= {memory_id: max(scores.get(memory_id, 0.0), _ANSWERS) for memory_id in answers}
    return dict(sorted(scores.items(), key=lambda one: -one[1]))


def _may_see(caller: Caller, source: Source) -> bool:
    return source.path is None or caller.key.covers(source.path)


def _is_at(source: Source, path: str, line: int | None) -> bool:
    return source.path == path and (line is None or source.start_line <= line <= source.end_line)


def _fact(caller: Caller, memory: Memory, sources: Sequence[Source], score: float | None) -> wire.Fact:
    history = caller.store.memories.history(memory.id)
    ending = caller.store.memories.many([one.ended_by for one in (*history, memory) if one.ended_by])
    began = {one.id: _began(one, ending) for one in (*history, memory)}
    ended = _ended(memory, ending)
    claim = claim_of(memory.candidate.text)
    return wire.Fact(
        id=memory.id,
        text=memory.candidate.text,
        kind=cast("Literal['static', 'dynamic']", memory.candidate.kind),
        subject=memory.candidate.subject,
        attribute=None if claim is None else claim.attribute,
        value=None if claim is None else claim.value,
        confidence=round(memory.candidate.confidence, 2),
        updated_at=iso_ms(memory.updated_at_ms),
        valid_from=_iso(began[memory.id]),
        valid_to=_iso(None if ended is None else max(ended, began[memory.id] or ended)),
        score=None if score is None else round(score, 4),
        sources=[
            wire.FactSource(path=one.path, start_line=one.start_line, end_line=one.end_line, stands=one.stands)
            for one in sources
        ],
        versions=[
            wire.FactVersion(text=one.candidate.text, valid_from=_iso(began[one.id]), relation=one.relation)
            for one in reversed(history)
            if one.id != memory.id and (began[one.id] or 0) <= (began[memory.id] or 0)
        ],
    )


def _began(memory: Memory, ending: Mapping[str, Memory]) -> int | None:
    """Since when it was so; None for one that was written down only after it had ended."""
    ended, said = _ended(memory, ending), _said_since(memory)
    return None if memory.parent_id is None and ended is not None and ended < said else said


def _ended(memory: Memory, ending: Mapping[str, Memory]) -> int | None:
    """When what took its place began; None: it is so now."""
    after = ending.get(memory.ended_by or "")
    return None if after is None else _said_since(after)


def _said_since(memory: Memory) -> int:
    since = memory.candidate.valid_from_ms
    return memory.created_at_ms if since is None else since


def _iso(at_ms: int | None) -> str | None:
    return None if at_ms is None else iso_ms(at_ms)
