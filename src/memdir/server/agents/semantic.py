"""The memories closest to a text by meaning, and whether a prompt needs them. Start with `needed`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from memdir.retrieval.agents.need import NEEDED_MIN, near_best, parts_of
from memdir.server.http.access import Caller
from memdir.store.agents.memories import FOLDER, AgentRecord
from memdir.store.types import Matrix, Scope

if TYPE_CHECKING:
    from memdir.retrieval.embed.port import Embedder
    from memdir.server.engine import Engine

_NEAREST: Final = 40
"""Passages that are looked at: several may be of one memory, or of another project."""
_FRESH_MS: Final = 120_000
_NEWEST: Final = 50
_FRESH_MAX: Final = 8
"""Memories of the last two minutes that have no vector yet are embedded while the prompt waits, so many at most: 5 ms each."""

Near = list[tuple[AgentRecord, float]]
"""Memories with their cosines, best first."""


def needed(
    caller: Caller, engine: Engine | None, container_id: int, prompt: str, *, projects: Sequence[str | None], wait_s: float
) -> list[AgentRecord] | None:
    """What a prompt needs of the memories of some projects (None: of no project), best first. None when that cannot be told:
    the model is not there (within `wait_s`) or cannot read the language, or no memory was embedded yet."""
    need = None if engine is None else engine.prompt_need(wait_s)
    if engine is None or engine.dense is None or need is None:
        return None
    model = engine.dense
    surest, found, known = NEEDED_MIN, Near(), 0
    for part in parts_of(prompt):
        vector = model.embed_query(part)
        if need.doubts(vector):
            continue
        found_near = nearest(caller, engine, model, container_id, vector, projects[0])
        near = [one for one in found_near if one[0].project in projects]
        known += len(near)
        if not near:
            continue
        sure = need.probability(vector, near[0][1])
        if sure >= surest:
            surest, found = sure, near[: near_best([cosine for _, cosine in near])]
    return [record for record, _ in found] if known else None


def nearest(caller: Caller, engine: Engine, model: Embedder, container_id: int, vector: Matrix, project: str | None) -> Near:
    """Of all memories, those of a project looked for apart, too."""
    found: dict[str, tuple[AgentRecord, float]] = {}
    folders = [FOLDER] if project is None else [f"{FOLDER}/{project}", FOLDER]
    for folder in folders:
        scope = Scope(container_id=container_id, folder=folder)
        near = engine.vectors.nearest(scope, vector, model=model.name, limit=_NEAREST)
        cosine_of = dict(zip(near.ids.tolist(), near.cosines.tolist(), strict=True))
        passages = engine.chunks.chunks(list(cosine_of))
        pieces = caller.store.agents.of_documents([one.document_id for one in passages.values()])
        for chunk_id, passage in passages.items():
            own = pieces.get(passage.document_id, [])
            record = next((one for one in own if one.content in passage.chunk.text or passage.chunk.text in one.content), None)
            record = record or (own[0] if own else None)
            if record is not None:
                known = found.get(record.id)
                if known is None or known[1] < cosine_of[chunk_id]:
                    found[record.id] = record, cosine_of[chunk_id]
    for record, cosine in _fresh(caller, model, container_id, vector, project, found):
        found[record.id] = record, cosine
    return sorted(found.values(), key=lambda one: (-one[1], one[0].number))


def _fresh(
    caller: Caller,
    model: Embedder,
    container_id: int,
    vector: Matrix,
    project: str | None,
    known: dict[str, tuple[AgentRecord, float]],
) -> Near:
    """What was stored a moment ago and has no vector yet."""
    newest = caller.store.agents.page(container_id, after=None, limit=_NEWEST)
    since_ms = caller.store.now_ms() - _FRESH_MS
    fresh = [record for record in newest if record.created_at_ms >= since_ms and record.id not in known]
    fresh = [record for record in fresh if record.project in (None, project)][:_FRESH_MAX]
    return list(zip(fresh, _cosines(model, fresh, vector), strict=True))


def _cosines(model: Embedder, records: Sequence[AgentRecord], vector: Matrix) -> list[float]:
    if not records:
        return []
    found: list[float] = (model.embed_passages([record.content for record in records]) @ vector).astype(np.float64).tolist()
    return found
