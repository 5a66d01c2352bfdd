"""The caretaker of derived indexes: builds that were asked for happen whatever dies in between, and what disagrees is found."""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from memdir.core.clock import FakeClock
from memdir.retrieval.derived_index import Progress, Told, containers_in, folder_of, remove, untold, write_synced
from memdir.retrieval.derived_indexes import Build, Rebuilds, disagreements, mended
from memdir.store.sqlite.store import SqliteStore
from memdir.store.upkeep.engine import Finding

WAIT_S = 30.0


class PathList:
    """An index that is real and small: the paths of a container in a file."""

    name = "paths"

    def __init__(self, store: SqliteStore) -> None:
        self._store = store
        self.built: list[int] = []
        self.broken: set[int] = set()

    def _paths(self, container_id: int) -> list[str]:
        rows = self._store.db.all("select path from document where container_id = ? order by path", (container_id,))
        return [row[0] for row in rows]

    def _file(self, container_id: int) -> Path:
        return folder_of(self._store.folder, container_id, self.name) / "list.json"

    def check(self, container_id: int, *, full: bool = False) -> Sequence[Finding]:
        file = self._file(container_id)
        if not file.exists():
            return []
        try:
            paths = json.loads(file.read_bytes())
        except ValueError:
            return [Finding(kind="index-damaged", detail=f"{file} cannot be read")]
        right = self._paths(container_id)
        if not full:
            paths, right = paths[:1], right[:1]
        return [] if paths == right else [Finding(kind="index-differs", detail=f"{file} has {paths}")]

    def rebuild(self, container_id: int, *, told: Told = untold) -> int:
        paths = self._paths(container_id)
        told(Progress(done=0, total=len(paths)))
        if container_id in self.broken:
            raise OSError("no room")
        self._file(container_id).parent.mkdir(parents=True, exist_ok=True)
        write_synced(self._file(container_id), [json.dumps(paths).encode()])
        self.built.append(container_id)
        return len(paths)

    def drop(self, container_id: int) -> None:
        remove(folder_of(self._store.folder, container_id, self.name))

    def containers(self) -> Sequence[int]:
        return containers_in(self._store.folder, self.name)

    def close(self) -> None:
        """Nothing is held."""


@pytest.fixture
def store(tmp_path: Path) -> SqliteStore:
    opened = SqliteStore.open(tmp_path, clock=FakeClock())
    with opened.db.write() as connection:
        for container_id in (1, 2, 3):
            connection.execute(
                "insert into container (id, org_id, tag, epoch, created_at_ms, updated_at_ms) values (?, 'o', ?, 'e', 0, 0)",
                (container_id, f"c{container_id}"),
            )
            for name in "ab":
                connection.execute(
                    "insert into document (id, container_id, path, kind, status, content_hash, size_bytes, mode, mtime_ns, "
                    "revision, created_at_ms, updated_at_ms) values (?, ?, ?, 'file', 'done', '', 0, 420, 0, 1, 0, 0)",
                    (f"{container_id}{name}", container_id, f"/{name}"),
                )
    return opened


def plan(*container_ids: int) -> list[Build]:
    return [Build(container_id=container_id, name="paths") for container_id in container_ids]


def test_what_was_asked_for_is_built_in_order_and_told(store: SqliteStore) -> None:
    index = PathList(store)
    rebuilds = Rebuilds(store.folder, [index])
    rebuilds.ask([*plan(2, 1, 2), Build(container_id=1, name="nobody's")])
    assert (rebuilds.state().total, rebuilds.state().done) == (2, 0)
    steps: list[Progress] = []
    rebuilds.run(steps.append)
    assert index.built == [2, 1]
    assert steps == [Progress(done=0, total=2)] * 2
    assert (rebuilds.state().total, rebuilds.state().done, rebuilds.state().current) == (2, 2, None)
    assert not (store.folder / "indexes" / "rebuild.json").exists()


def test_a_build_that_was_cut_off_is_done_by_the_next_process(store: SqliteStore) -> None:
    index = PathList(store)
    rebuilds = Rebuilds(store.folder, [index])
    rebuilds.ask(plan(1, 2, 3))

    def dies_in_the_second(_: Progress) -> None:
        if index.built:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        rebuilds.run(dies_in_the_second)
    after = PathList(store)
    again = Rebuilds(store.folder, [after])
    assert (again.state().total, again.state().done) == (2, 0)
    again.run()
    assert (index.built, after.built) == ([1], [2, 3])


def test_a_build_that_fails_is_told_with_its_reason_and_stops_no_other(store: SqliteStore) -> None:
    index = PathList(store)
    index.broken = {1}
    rebuilds = Rebuilds(store.folder, [index])
    rebuilds.ask(plan(1, 2))
    rebuilds.run()
    assert index.built == [2]
    assert rebuilds.state().failed == ("paths of container 1: no room",)
    rebuilds.ask(plan(3))
    assert rebuilds.state().failed == (), "of another plan"


def test_the_thread_builds_what_is_asked_for_and_a_stop_leaves_the_rest_for_later(store: SqliteStore) -> None:
    index = PathList(store)
    inside, go_on = threading.Event(), threading.Event()
    build = index.rebuild

    def held(container_id: int, *, told: Told = untold) -> int:
        inside.set()
        assert go_on.wait(WAIT_S)
        return build(container_id, told=told)

    index.rebuild = held  # type: ignore[method-assign]
    rebuilds = Rebuilds(store.folder, [index])
    rebuilds.start()
    rebuilds.ask(plan(1, 2))
    assert inside.wait(WAIT_S)
    assert not rebuilds.stop(timeout_s=0.0)
    go_on.set()
    assert rebuilds.stop(timeout_s=WAIT_S)
    assert index.built == [], "the step under way saw that the process ends"
    assert Rebuilds(store.folder, [index]).state().total == 2


def test_a_plan_that_cannot_be_read_asks_for_nothing(store: SqliteStore) -> None:
    (store.folder / "indexes").mkdir()
    (store.folder / "indexes" / "rebuild.json").write_text("{half")
    assert Rebuilds(store.folder, [PathList(store)]).state().total == 0


@pytest.mark.parametrize(
    ("kind", "content", "full"),
    [("index-damaged", "[half", False), ("index-differs", '["/z"]', False), ("index-differs", '["/a", "/z"]', True)],
)
def test_an_index_that_disagrees_is_found_and_taken_away(store: SqliteStore, kind: str, content: str, full: bool) -> None:
    index = PathList(store)
    for container_id in (1, 2):
        index.rebuild(container_id)
    assert list(disagreements(store, [index], full=True)) == []
    (folder_of(store.folder, 2, "paths") / "list.json").write_text(content)
    found = list(disagreements(store, [index], full=full))
    assert [(finding.kind, build.container_id) for finding, build in found] == [(kind, 2)]
    assert [finding.repaired for finding in mended(store, [index], full=full)] == [True]
    assert list(disagreements(store, [index], full=True)) == []
    assert index.containers() == [1], "it comes back when it is needed"


def test_files_of_a_container_that_is_gone_are_found_and_taken_away(store: SqliteStore) -> None:
    index = PathList(store)
    index.rebuild(3)
    with store.db.write() as connection:
        connection.execute("delete from container where id = 3")
    assert [finding.kind for finding, _ in disagreements(store, [index])] == ["index-orphan"]
    mended(store, [index])
    assert index.containers() == []
