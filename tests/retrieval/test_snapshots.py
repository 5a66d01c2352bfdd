"""The vectors of a container in memory, as the SQLite store holds them."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from memdir.retrieval.embed import StaticEmbedder
from memdir.store.sqlite import snapshots
from memdir.store.sqlite.chunks import SqliteChunkStore
from memdir.store.types import Scope
from tests.retrieval.conftest import World


def paths_in_memory(world: World, model: str, container_id: int = 1) -> set[str]:
    snapshot = world.chunks.vectors(container_id, model=model)
    return {path for path, chunk_id in zip(snapshot.paths, snapshot.ids.tolist(), strict=True) if chunk_id >= 0}


def check_snapshot(world: World, model: str, container_id: int = 1) -> None:
    """What is held in memory is what a fresh reader would load."""
    fresh = SqliteChunkStore(world.db).vectors(container_id, model=model)
    held = world.chunks.vectors(container_id, model=model)
    alive = {int(i): (held.paths[row], held.matrix[row].tobytes()) for row, i in enumerate(held.ids) if i >= 0}
    assert alive == {int(i): (fresh.paths[row], fresh.matrix[row].tobytes()) for row, i in enumerate(fresh.ids)}


def test_a_snapshot_in_use_never_changes(sqlite_world: World, static: StaticEmbedder) -> None:
    sqlite_world.put("/old/a.md", "walnut", static)
    before = sqlite_world.chunks.vectors(1, model=static.name)
    sqlite_world.move("/old/a.md", "/new/a.md")
    assert before.paths == ("/old/a.md",)
    assert sqlite_world.chunks.vectors(1, model=static.name).paths == ("/new/a.md",)
    check_snapshot(sqlite_world, static.name)


def test_rows_of_a_folder_are_found_by_path(sqlite_world: World, static: StaticEmbedder) -> None:
    for path in ("/a/x.md", "/a/b/y.md", "/ab/z.md", "/a.md"):
        sqlite_world.put(path, "walnut", static)
    snapshot = sqlite_world.chunks.vectors(1, model=static.name)
    rows = snapshot.rows_in(Scope(container_id=1, folder="/a"))
    assert rows is not None
    assert {snapshot.paths[row] for row in rows} == {"/a/x.md", "/a/b/y.md"}
    none = snapshot.rows_in(Scope(container_id=1, folder="/none"))
    assert none is not None
    assert none.tolist() == []


def test_deleted_words_are_not_in_the_file(sqlite_world: World, static: StaticEmbedder) -> None:
    sqlite_world.put("/a.md", "the zanzibar codeword", static)
    sqlite_world.put("/b.md", "an innocent line", static)
    sqlite_world.delete("/a.md")
    sqlite_world.db.checkpoint()
    assert b"zanzibar" not in sqlite_world.db.path.read_bytes()
    sqlite_world.sql("insert into chunk_words (chunk_words) values ('integrity-check')")


def test_the_memory_follows_any_sequence_of_changes(sqlite_world: World, static: StaticEmbedder) -> None:
    for number in range(30):
        path = f"/f/{number}.md"
        sqlite_world.put(path, f"text number {number}", static)
        if number % 3 == 1:
            sqlite_world.move(path, f"/g/{number}.md")
            path = f"/g/{number}.md"
        if number % 5 == 0:
            sqlite_world.delete(path)
        elif number % 4 == 0:
            sqlite_world.put(path, f"edited {number}", static)
        check_snapshot(sqlite_world, static.name)


def test_a_cache_that_is_too_far_behind_loads_anew(
    sqlite_world: World, static: StaticEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshots, "_EVENTS_KEPT", 2)
    monkeypatch.setattr(snapshots, "_PRUNE_EVERY", 1)
    sqlite_world.put("/a.md", "one", static)
    assert paths_in_memory(sqlite_world, static.name) == {"/a.md"}
    for number in range(10):
        sqlite_world.put(f"/{number}.md", f"text {number}", static)
    assert len(paths_in_memory(sqlite_world, static.name)) == 11
    check_snapshot(sqlite_world, static.name)


def test_without_changes_the_same_snapshot_is_given(sqlite_world: World, static: StaticEmbedder) -> None:
    sqlite_world.put("/a.md", "one", static)
    assert sqlite_world.chunks.vectors(1, model=static.name) is sqlite_world.chunks.vectors(1, model=static.name)


def test_the_memory_of_idle_containers_is_given_up_first(sqlite_world: World, static: StaticEmbedder) -> None:
    store = SqliteChunkStore(sqlite_world.db, cache_max_bytes=1)
    sqlite_world.put("/a.md", "one", static)
    sqlite_world.put("/a.md", "two", static, container_id=2)
    first = store.vectors(1, model=static.name)
    store.vectors(2, model=static.name)
    again = store.vectors(1, model=static.name)
    assert again is not first
    assert again.ids.tolist() == first.ids.tolist()


def test_readers_and_a_writer_at_once_see_whole_states(sqlite_world: World, static: StaticEmbedder) -> None:
    problems: list[str] = []
    done = threading.Event()

    def read() -> None:
        while not done.is_set():
            snapshot = sqlite_world.chunks.vectors(1, model=static.name)
            if not len(snapshot.ids) == len(snapshot.matrix) == len(snapshot.paths):
                problems.append("a snapshot of unequal parts")
            if snapshot.matrix.size and not np.isfinite(snapshot.matrix @ np.ones(static.dim, dtype=np.float32)).all():
                problems.append("a row that was never written")

    readers = [threading.Thread(target=read) for _ in range(3)]
    for reader in readers:
        reader.start()
    for number in range(40):
        sqlite_world.put(f"/{number % 7}.md", f"text {number}", static)
    done.set()
    for reader in readers:
        reader.join(20)
    assert problems == []
    check_snapshot(sqlite_world, static.name)
