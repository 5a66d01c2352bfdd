"""The passages of a scope that are closest to a vector: each one compared, or through the graph of pgvector (HNSW).

The graph is one for all containers. A search in it that keeps only one container's passages walks on until it has enough
(iterative scan): the smaller the container's share, the further it walks. Comparing all costs as much as the scope holds.
What is cheaper is decided from the sample of the container; small scopes are always compared, which is exact.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from memdir.store.database import Database, Row, Transaction, fetch, first
from memdir.store.passages.reading import is_whole
from memdir.store.passages.vectors import COUNTED_MAX, NOTHING_NEAR
from memdir.store.postgres.rows import scope_condition, vector_text
from memdir.store.postgres.words import SAMPLE, SAMPLED, sample
from memdir.store.types import Matrix, Nearest, Scope

INDEXED_DIMS: Final = (256, 384, 512, 768, 1024, 1536)
"""Numbers of dimensions that have a graph, as in schema/0001_schema.sql; models with another number are compared."""
EXACT_MAX: Final = 10_000
"""Passages in scope up to which all are compared: about 15 ms at 384 dimensions."""
_STEP_COST: Final = 4.0
"""What a step in the graph costs beside a comparison one after the other, which reads memory in order."""
_SEARCH_LIST: Final = 400
"""Candidates that the graph's search keeps (`hnsw.ef_search`): more finds more of what is nearest."""
_SCAN_MAX: Final = 200_000
"""Passages that one search of the graph looks at; a search that ends there with too few compares all instead."""


def nearest(db: Database, scope: Scope, query: Matrix, *, model_id: int, limit: int) -> Nearest:
    """The `limit` passages in scope that are closest to `query`."""
    with db.snapshot() as reader:
        if len(query) in INDEXED_DIMS:
            size = _size(reader, scope)
            total = _total(reader, len(query)) if size > EXACT_MAX else 0.0
            if size > EXACT_MAX and limit * total / size * _STEP_COST < size:
                found = _through_graph(reader, scope, query, model_id=model_id, limit=limit)
                if len(found) == limit:
                    return _near(found, counted=round(size))
        return _compared(reader, scope, query, model_id=model_id, limit=limit)


def counted(db: Database, scope: Scope, *, model_id: int) -> int | None:
    """How many passages in scope have a vector of the model, None for more than COUNTED_MAX."""
    where, inside = _inside(scope)
    row = db.one(
        f"select count(*) from (select 1 from chunk_vector v {where} and v.container_id = ? and v.model_id = ? limit ?) few",  # noqa: S608
        (*inside, scope.container_id, model_id, COUNTED_MAX + 1),
    )
    return None if row is None or row[0] > COUNTED_MAX else int(row[0])


def _size(reader: Transaction, scope: Scope) -> float:
    """About how many passages are in scope, from the sample of the container."""
    around = sample(reader, scope.container_id)
    if around.taken < SAMPLE or is_whole(scope):
        return around.size
    where, inside = scope_condition(scope)
    row = first(
        reader,
        f"select count(*) from chunk c {where} and c.id in (select s.id from {SAMPLED} s)",  # noqa: S608
        (*inside, scope.container_id, SAMPLE),
    )
    assert row is not None
    return around.size * int(row[0]) / around.taken


def _total(reader: Transaction, dim: int) -> float:
    """About how many vectors the graph holds, as the database counted last (`analyze`, `vacuum`)."""
    row = first(
        reader,
        "select greatest(reltuples, 0) from pg_class where oid = to_regclass(cast(? as text))",
        (f"chunk_vector_near_{dim}",),
    )
    return 0.0 if row is None else float(row[0])


def _compared(reader: Transaction, scope: Scope, query: Matrix, *, model_id: int, limit: int) -> Nearest:
    where, inside = _inside(scope)
    rows = fetch(
        reader,
        "with scored as materialized (select v.chunk_id, -(v.vector <#> cast(? as halfvec)) as cosine "  # noqa: S608
        f"from chunk_vector v {where} and v.container_id = ? and v.model_id = ?) "
        "select chunk_id, cosine, (select count(*) from scored) from scored "
        "order by cosine desc, chunk_id limit ?",
        (vector_text(query), *inside, scope.container_id, model_id, limit),
    )
    if not rows:
        return NOTHING_NEAR
    return _near(rows, counted=int(rows[0][2]))


def _through_graph(reader: Transaction, scope: Scope, query: Matrix, *, model_id: int, limit: int) -> list[Row]:
    dim = len(query)
    where, inside = _inside(scope)
    distance = f"v.vector::halfvec({dim}) <#> cast(? as halfvec({dim}))"
    text = vector_text(query)
    # The planner is told to walk the graph; it cannot know how much of it is in scope.
    _steer(reader, walking=True)
    rows = fetch(
        reader,
        f"select v.chunk_id, -({distance}) from chunk_vector v {where} "  # noqa: S608
        f"and v.model_id = ? and v.container_id = ? and vector_dims(v.vector) = {dim} order by {distance} limit ?",
        (text, *inside, model_id, scope.container_id, text, limit),
    )
    _steer(reader, walking=False)
    return rows


def _steer(reader: Transaction, *, walking: bool) -> None:
    """Settings of this transaction: whether the graph is the only way that the planner has."""
    others = "off" if walking else "on"
    fetch(
        reader,
        "select set_config('hnsw.ef_search', ?, true), set_config('hnsw.iterative_scan', 'relaxed_order', true), "
        "set_config('hnsw.max_scan_tuples', ?, true), set_config('enable_sort', ?, true), "
        "set_config('enable_hashjoin', ?, true), set_config('enable_mergejoin', ?, true), "
        "set_config('enable_seqscan', ?, true), set_config('enable_bitmapscan', ?, true)",
        (str(_SEARCH_LIST), str(_SCAN_MAX), *[others] * 5),
    )


def _inside(scope: Scope) -> tuple[str, tuple[object, ...]]:
    """Join and condition that keep vectors `v` of a container inside a scope."""
    if is_whole(scope):
        return "where true", ()
    where, inside = scope_condition(scope)
    return f"join chunk c on c.id = v.chunk_id {where}", inside


def _near(rows: list[Row], *, counted: int) -> Nearest:
    return Nearest(
        ids=np.array([row[0] for row in rows], dtype=np.int64),
        cosines=np.array([row[1] for row in rows], dtype=np.float32),
        counted=counted,
    )
