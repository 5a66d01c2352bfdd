"""What stands around a memory: its earlier and later versions, what extends it, what was derived from it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, Literal, cast

from memdir.api import v4
from memdir.core.clock import iso_ms
from memdir.store.memories.memories import MemoryStore
from memdir.store.types import Memory

RELATIVES_MAX: Final = 20
"""Of each kind, the closest first."""
_VERSIONS: Final = ("updates", "contradicts")
Relation = Literal["updates", "extends", "derives"]


def contexts(store: MemoryStore, memories: Sequence[Memory]) -> dict[str, v4.Context]:
    """The context of each memory by its id."""
    if not memories:
        return {}
    by_id: dict[str, Memory] = {}
    children: dict[str, list[Memory]] = {}
    for memory in store.versions([memory.root_id for memory in memories]):
        by_id[memory.id] = memory
        if memory.parent_id is not None:
            children.setdefault(memory.parent_id, []).append(memory)
    return {memory.id: _context(memory, by_id, children) for memory in memories}


def _context(memory: Memory, by_id: dict[str, Memory], children: dict[str, list[Memory]]) -> v4.Context:
    related = [child for child in children.get(memory.id, ()) if child.relation not in _VERSIONS]
    parent = by_id.get(memory.parent_id or "")
    if parent is not None and memory.relation not in _VERSIONS:
        related.insert(0, parent)
    return v4.Context(
        parents=list(_parents(memory, by_id)),
        children=list(_children(memory, children)),
        related=[_relative(other, memory if other is parent else other) for other in related[:RELATIVES_MAX]],
    )


def _parents(memory: Memory, by_id: dict[str, Memory]) -> Iterator[v4.Relative]:
    for distance in range(1, RELATIVES_MAX + 1):
        parent = by_id.get(memory.parent_id or "")
        if parent is None or memory.relation not in _VERSIONS:
            return
        yield _relative(parent, memory, version=-distance)
        memory = parent


def _children(memory: Memory, children: dict[str, list[Memory]]) -> Iterator[v4.Relative]:
    for distance in range(1, RELATIVES_MAX + 1):
        later = [child for child in children.get(memory.id, ()) if child.relation in _VERSIONS]
        if not later:
            return
        memory = later[-1]
        yield _relative(memory, memory, version=distance)


def _relative(memory: Memory, link: Memory, *, version: int | None = None) -> v4.Relative:
    """`link` is the one of the two that names the relation. To the wire a contradiction is an update."""
    relation = "updates" if link.relation in (None, *_VERSIONS) else link.relation
    return v4.Relative(
        id=memory.id,
        memory=memory.candidate.text,
        relation=cast(Relation, relation),
        version=version,
        metadata=dict(memory.metadata),
        updated_at=iso_ms(memory.updated_at_ms),
    )
