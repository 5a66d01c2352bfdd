"""What a container holds already of what is to be stored: a memory that says the same, one that it updates, or one that it
may."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from memdir.retrieval.agents.similar import NEAR_MIN, similarity
from memdir.retrieval.agents.updates import Relation, relation
from memdir.server.agents.semantic import SemanticSearch
from memdir.server.agents.state import AgentMemoryState
from memdir.server.engine import Engine
from memdir.server.http.access import Caller
from memdir.store.agents.files import Draft
from memdir.store.agents.memories import AgentRecord
from memdir.store.types import Container

_NEAR_MAX: Final = 10
_COSINE_MIN: Final = 0.4
"""Of two statements about the same thing. The rules decide; what is farther away is not worth asking them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """A memory, and what the new one is to it."""

    record: AgentRecord
    relation: Relation
    similarity: float = 0.0
    why: str = ""


def standing(
    caller: Caller, state: AgentMemoryState, engine: Engine | None, container: Container, piece: Draft
) -> Standing | None:
    """Of the same project: what says the same, else what it updates, else what it may. What is proposed counts only when it
    says the same words."""
    known = caller.store.agents.saying(container.id, piece.content, piece.project)
    if known is not None:
        return Standing(record=known, relation=Relation.SAME, similarity=1.0)
    numbers = state.index(container.id).similar(piece.content)
    records = {one.id: one for one in caller.store.agents.many(container.id, numbers).values() if one.project == piece.project}
    alike = [(similarity(piece.content, one.content), -one.number, one.id) for one in records.values()]
    best = max(alike, default=(0.0, 0, ""))
    if best[0] >= NEAR_MIN:
        return Standing(record=records[best[2]], relation=Relation.SAME, similarity=best[0])
    for record in _near(caller, engine, container, piece):
        records.setdefault(record.id, record)
    found = [
        Standing(record=one, relation=how, why=_WHY[how])
        for one in sorted(records.values(), key=lambda one: -one.number)
        if (how := relation(piece.content, one.content)) is not None
    ]
    updated = [one for one in found if one.relation is Relation.UPDATES and _may_be_replaced(one.record, piece, caller)]
    if updated:
        return updated[0]
    return Standing(record=found[0].record, relation=Relation.MAY_UPDATE, why=_WHY[Relation.MAY_UPDATE]) if found else None


_WHY: Final = {
    Relation.UPDATES: "the same subject and attribute, said newer",
    Relation.MAY_UPDATE: "about the same, perhaps with another value",
}


def _may_be_replaced(record: AgentRecord, piece: Draft, caller: Caller) -> bool:
    """What is not trusted replaces nothing that is; one piece of several cannot be replaced by itself."""
    if record.provenance.is_trusted and not piece.provenance.is_trusted:
        return False
    return len(caller.store.agents.of_document(record.document_id)) == 1


def _near(caller: Caller, engine: Engine | None, container: Container, piece: Draft) -> list[AgentRecord]:
    """The memories of the project that are closest in meaning; none where the model is not there yet."""
    search = SemanticSearch.of(
        caller, engine, container.id, piece.project, lambda one: one.project == piece.project, wait_s=0.0
    )
    near = None if search is None else search.nearest(piece.content)
    return [] if near is None else [record for record, cosine in near.memories[:_NEAR_MAX] if cosine >= _COSINE_MIN]
