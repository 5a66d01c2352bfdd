"""A store with vectors drawn at random, an index beside it, and what both answer to the same questions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import numpy as np

from memdir.core.clock import FakeClock
from memdir.retrieval.vectors.index import VectorIndexes
from memdir.store.sqlite.store import SqliteStore
from memdir.store.sqlite.vectors import VectorFeed
from memdir.store.types import Chosen, Chunk, Matrix, Scope
from tests.retrieval.conftest import World

DIM: Final = 24
MODEL: Final = "drawn"
SETTLE_S: Final = 60.0


def drawn(seed: int, count: int, dim: int = DIM) -> Matrix:
    """Normalised vectors; few different ones, so that there are ties."""
    random = np.random.default_rng(seed)
    made = random.normal(size=(count, dim)).astype(np.float32)
    return (made / np.linalg.norm(made, axis=1, keepdims=True)).astype(np.float32)


def passages(number: int, count: int) -> list[Chunk]:
    """Texts that no other number has."""
    return [
        Chunk(
            ordinal=at, start_byte=at, end_byte=at + 1, start_line=at + 1, end_line=at + 1, text=f"t{number}.{at}", context=""
        )
        for at in range(count)
    ]


def put(world: World, path: str, number: int, count: int = 2, *, container_id: int = 1) -> None:
    """A file with vectors that its number stands for."""
    document = world.document(path, str(number).encode(), container_id=container_id)
    world.chunks.replace_chunks(document, passages(number, count), model=MODEL, vectors=drawn(number % 7, count))


@contextmanager
def beside(world: World, folder: Path, **sizes: Any) -> Iterator[VectorIndexes]:
    """An index over the world's store with its files in `folder`."""
    assert isinstance(world.store, SqliteStore)
    index = VectorIndexes(VectorFeed(world.store.db), world.store.chunks(), folder, named_by=MODEL, **sizes)
    index.start(world.store)
    try:
        yield index
    finally:
        index.close()


@contextmanager
def opened(folder: Path) -> Iterator[World]:
    """The world of a store that is there."""
    with_store = SqliteStore.open(folder, clock=FakeClock())
    try:
        yield World.again(with_store)
    finally:
        with_store.close()


def scopes(world: World) -> Sequence[Scope]:
    """Everything, folders, a file, documents chosen here and there, another container."""
    ids = sorted(row[0] for row in world.db.all("select id from document"))
    some, but = Chosen(ids=frozenset(ids[::2])), Chosen(ids=frozenset(ids[1::3]), but=True)
    return (
        Scope(container_id=1), Scope(container_id=2), Scope(container_id=1, folder="/a"), Scope(container_id=1, folder="/ab"),
        Scope(container_id=1, folder="/a/b"), Scope(container_id=1, folder="/a/1.md", exact=True),
        Scope(container_id=1, folder="/none"), Scope(container_id=1, chosen=some), Scope(container_id=1, chosen=but),
        Scope(container_id=1, folder="/a", chosen=some), Scope(container_id=1, folder="/a", chosen=but),
    )  # fmt: skip


def answers(world: World, of: Any, limit: int = 5) -> list[Any]:
    """All that is asked of vectors, in a form that compares byte for byte."""
    found: list[Any] = []
    ids = [row[0] for row in world.db.all("select id from chunk order by id")] + [999_999]
    for number, scope in enumerate(scopes(world)):
        query = drawn(100 + number % 2, 1)[0]
        near = of.nearest(scope, query, model=MODEL, limit=limit)
        cosines = of.cosines(scope.container_id, ids, query, model=MODEL)
        named = of.named(scope, ["notes", "ab", "1"], model=MODEL, limit=limit)
        assert of.counted(scope, model=MODEL) == near.counted
        found.append((near.ids.tolist(), near.cosines.tobytes(), near.counted, cosines.tobytes(), named))
    return found
