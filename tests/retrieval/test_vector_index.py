"""The index of vectors says what the store says, whatever happened to the store, to its files, or to the process."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memdir.core.clock import FakeClock
from memdir.retrieval.derived_index import folder_of
from memdir.retrieval.vectors import codes, lists, segment
from memdir.retrieval.vectors import index as vector_index
from memdir.retrieval.vectors.files import CHANGING, DTYPES
from memdir.store.passages.vectors import closest, dots, half_dots
from memdir.store.sqlite import chunks as sqlite_chunks
from memdir.store.sqlite import vectors as log
from memdir.store.sqlite.store import SqliteStore
from memdir.store.types import Chosen, Matrix, Scope
from tests.retrieval.conftest import World
from tests.retrieval.vectors import MODEL, SETTLE_S, answers, beside, drawn, put

WIDE = 192
PATHS = st.sampled_from(["/a/1.md", "/a/2.md", "/a/b/1.md", "/a/b/notes.md", "/ab/1.md", "/ab.md", "/notes/ab.md", "/z.md"])
CHANGE = st.one_of(
    st.tuples(st.just("put"), PATHS, st.integers(0, 40)),
    st.tuples(st.just("move"), PATHS, PATHS),
    st.tuples(st.just("delete"), PATHS, st.none()),
    st.tuples(st.just("other"), PATHS, st.integers(0, 40)),
    st.tuples(st.sampled_from(["reopen", "rebuild", "forget the log", "drop"]), st.none(), st.none()),
)


def change(world: World, what: str, path: str | None, value: object) -> None:
    """One change of the store."""
    assert path is not None
    known = (1, path) in world.documents
    if what == "put":
        put(world, path, int(str(value)), 1 + int(str(value)) % 4)
    elif what == "other":
        put(world, path, int(str(value)), container_id=2)
    elif what == "move" and known and (1, str(value)) not in world.documents:
        world.move(path, str(value))
    elif what == "delete" and known:
        world.delete(path)


@pytest.mark.promise("retrieved.brute-force")
@pytest.mark.parametrize("segment_min", [0, 3, 1_000])
@given(changes=st.lists(CHANGE, min_size=5, max_size=20))
@settings(max_examples=4)
def test_after_any_changes_the_index_answers_as_the_store_byte_for_byte(
    tmp_path_factory: pytest.TempPathFactory, segment_min: int, changes: list[tuple[str, str | None, object]]
) -> None:
    folder = tmp_path_factory.mktemp("store")
    store = SqliteStore.open(folder, clock=FakeClock())
    try:
        world = World(store, FakeClock())
        opened = beside(world, folder, segment_min=segment_min)
        index = opened.__enter__()
        try:
            for what, path, value in changes:
                if what == "reopen":
                    opened.__exit__(None, None, None)
                    opened = beside(world, folder, segment_min=segment_min)
                    index = opened.__enter__()
                elif what == "rebuild":
                    index.rebuild(1)
                elif what == "drop":
                    index.drop(1)
                elif what == "forget the log":
                    world.sql("delete from vector_event")
                else:
                    change(world, what, path, value)
                assert answers(world, index) == answers(world, world.chunks)
            assert index.settle(SETTLE_S)
            assert answers(world, index) == answers(world, world.chunks)
            assert [*index.check(1, full=True), *index.check(2, full=True)] == []
        finally:
            opened.__exit__(None, None, None)
    finally:
        store.close()


def grouped(seed: int, count: int) -> Matrix:
    """Vectors that lie in groups and in fewer dimensions than they have, as those of texts do."""
    space, random = np.random.default_rng(9), np.random.default_rng(seed)
    centres, projection = space.normal(size=(60, 30)), space.normal(size=(30, WIDE))
    made = (centres[random.integers(0, 60, count)] + 0.7 * random.normal(size=(count, 30))) @ projection
    made += 2.0 * random.normal(size=made.shape)
    return (made / np.linalg.norm(made, axis=1, keepdims=True)).astype(np.float32)


def many(world: World, count: int, *, container_id: int = 1, seed: int = 1) -> None:
    """Passages in files of ten, a hundred files in a folder."""
    vectors = grouped(seed, count).astype(np.float16)
    with world.db.write() as connection:
        connection.execute("insert or ignore into vector_model (id, name) values (1, ?)", (MODEL,))
        for file in range(count // 10):
            document = f"m{container_id}-{file}"
            connection.execute(
                "insert into document (id, container_id, path, kind, status, content_hash, size_bytes, mode, mtime_ns, "
                "revision, created_at_ms, updated_at_ms) values (?, ?, ?, 'file', 'done', 'h', 1, 420, 0, 1, 0, 0)",
                (document, container_id, f"/f{file // 100:03d}/{file}.md"),
            )
            for at in range(file * 10, file * 10 + 10):
                connection.execute(
                    "insert into chunk (document_id, container_id, revision, ordinal, start_byte, end_byte, start_line, "
                    "end_line, text, context, text_hash) values (?, ?, 1, ?, 0, 1, 1, 1, '', '', x'00')",
                    (document, container_id, at % 10),
                )
                connection.execute(
                    "insert into chunk_vector values (1, ?, ?, null)", (connection.last_insert_rowid(), vectors[at].tobytes())
                )


@pytest.fixture
def small_lists(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lists and probing already for a few thousand passages."""
    monkeypatch.setattr(lists, "SINGLE_MAX", 1_000)
    monkeypatch.setattr(segment, "_PROBED_MIN", 1_500)
    monkeypatch.setattr(segment, "_RESCORED_MIN", 300)


@pytest.mark.promise("retrieved.scope", "retrieved.containers")
def test_of_many_passages_nearly_all_of_the_nearest_are_found_and_none_outside_the_scope(
    sqlite_world: World, tmp_path: Path, small_lists: None
) -> None:
    many(sqlite_world, 6_000)
    many(sqlite_world, 3_000, container_id=2, seed=2)
    queries = grouped(77, 20)
    even = Chosen(ids=frozenset(f"m1-{file}" for file in range(0, 600, 2)))
    wanted = [
        Scope(container_id=1), Scope(container_id=2), Scope(container_id=1, folder="/f002"), Scope(container_id=1, chosen=even),
        Scope(container_id=1, folder="/f001", chosen=even), Scope(container_id=1, folder="/f001/100.md", exact=True),
    ]  # fmt: skip
    with beside(sqlite_world, tmp_path, segment_min=1_000, exact_max=200) as index:
        assert index.rebuild(1) == 6_000
        assert index.rebuild(2) == 3_000
        for scope in wanted:
            found, recalls = set(), []
            for number in range(20):
                query = queries[number]
                near = index.nearest(scope, query, model=MODEL, limit=30)
                exact = sqlite_world.chunks.nearest(scope, query, model=MODEL, limit=30)
                recalls.append(len(set(near.ids[:10].tolist()) & set(exact.ids[:10].tolist())) / len(exact.ids[:10]))
                assert near.counted == exact.counted
                found |= set(near.ids.tolist())
                assert (
                    near.cosines.tobytes() == index.cosines(scope.container_id, near.ids.tolist(), query, model=MODEL).tobytes()
                )
            inside = sqlite_world.chunks.nearest(scope, queries[0], model=MODEL, limit=10_000).ids.tolist()
            assert found <= set(inside)
            assert np.mean(recalls) >= 0.96
        assert index.check(1, full=True) == []


@pytest.mark.promise("retrieved.same")
def test_however_often_it_is_built_a_large_index_answers_the_same(
    sqlite_world: World, tmp_path: Path, small_lists: None
) -> None:
    many(sqlite_world, 4_000)
    said = []
    for number in range(2):
        with beside(sqlite_world, tmp_path / str(number), segment_min=1_000, exact_max=200) as index:
            for _ in range(number + 1):
                index.rebuild(1)
            near = [index.nearest(Scope(container_id=1), query, model=MODEL, limit=50) for query in grouped(77, 10)]
            said.append([(one.ids.tobytes(), one.cosines.tobytes()) for one in near])
    assert said[0] == said[1]


def test_a_move_of_a_folder_and_an_edit_go_into_a_large_index_without_a_build(
    sqlite_world: World, tmp_path: Path, small_lists: None
) -> None:
    many(sqlite_world, 4_000)
    with beside(sqlite_world, tmp_path, segment_min=3_500) as index:
        index.rebuild(1)
        generations = sorted(path.name for path in folder_of(tmp_path, 1, "vectors").iterdir())
        sqlite_world.sql("update document set path = '/new' || path where path like '/f001/%'")
        sqlite_world.sql("delete from document where path like '/f002/%'")
        for folder, count in (("/f001", 0), ("/new/f001", 1_000), ("/f002", 0), ("/f003", 1_000)):
            scope = Scope(container_id=1, folder=folder)
            near = index.nearest(scope, grouped(77, 1)[0], model=MODEL, limit=5_000)
            assert near.counted == count
            assert (
                near.ids.tolist()
                == sqlite_world.chunks.nearest(scope, grouped(77, 1)[0], model=MODEL, limit=5_000).ids.tolist()
            )
        assert sorted(path.name for path in folder_of(tmp_path, 1, "vectors").iterdir()) == generations


def files_of(folder: Path) -> list[Path]:
    return sorted(path for path in folder_of(folder, 1, "vectors").rglob("*") if path.is_file())


def test_what_was_deleted_is_overwritten_in_the_files(sqlite_world: World, tmp_path: Path) -> None:
    put(sqlite_world, "/secret-name.md", 1, 1)
    for number in range(2, 9):
        put(sqlite_world, f"/{number}.md", number, 3)
    vector = sqlite_world.db.all("select vector from chunk_vector order by chunk_id limit 1")[0][0]
    with beside(sqlite_world, tmp_path, segment_min=0) as index:
        index.rebuild(1)
        assert any(vector in path.read_bytes() for path in files_of(tmp_path))
        sqlite_world.sql(
            "delete from chunk where id > 1 and id in (select chunk_id from chunk_vector where vector = ?)", vector
        )
        sqlite_world.delete("/secret-name.md")
        index.noticed(1)
        assert index.settle(SETTLE_S)
        assert not any(vector in path.read_bytes() for path in files_of(tmp_path))
        assert answers(sqlite_world, index) == answers(sqlite_world, sqlite_world.chunks)
        index.rebuild(1)
        assert not any(b"secret" in path.read_bytes() for path in files_of(tmp_path))


@pytest.mark.parametrize("name", ["manifest", *DTYPES])
def test_a_damaged_file_is_found_and_made_anew(sqlite_world: World, tmp_path: Path, name: str) -> None:
    for number in range(12):
        put(sqlite_world, f"/notes-{number}.md", number)
    with beside(sqlite_world, tmp_path, segment_min=0) as index:
        index.rebuild(1)
    path = next(path for path in files_of(tmp_path) if path.name == name or (name == "manifest" and path.suffix == ".json"))
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 0xFF
    path.write_bytes(bytes(data) if name not in CHANGING else bytes(data[:-1]))
    with beside(sqlite_world, tmp_path, segment_min=0) as index:
        assert [finding.kind for finding in index.check(1)] == ["index-damaged"]
        assert answers(sqlite_world, index) == answers(sqlite_world, sqlite_world.chunks)
        assert index.settle(SETTLE_S)
        assert index.check(1, full=True) == []
        assert answers(sqlite_world, index) == answers(sqlite_world, sqlite_world.chunks)


@pytest.mark.parametrize("name", sorted(CHANGING))
def test_another_vector_or_code_than_the_stores_is_found(sqlite_world: World, tmp_path: Path, name: str) -> None:
    for number in range(12):
        put(sqlite_world, f"/{number}.md", number)
    with beside(sqlite_world, tmp_path, segment_min=0) as index:
        index.rebuild(1)
        path = next(path for path in files_of(tmp_path) if path.name == name)
        data = path.read_bytes()
        path.write_bytes(data[:-8] + bytes(one ^ 0xFF for one in data[-8:]))
        assert {finding.kind for finding in index.check(1, full=True)} <= {"index-differs", "index-damaged"}
        assert index.check(1, full=True) != []


def test_files_of_another_state_of_the_store_are_not_used(sqlite_world: World, tmp_path: Path) -> None:
    for number in range(12):
        put(sqlite_world, f"/{number}.md", number)
    with beside(sqlite_world, tmp_path, segment_min=0) as index:
        index.rebuild(1)
    sqlite_world.sql("update container set epoch = 'restored' where id = 1")
    with beside(sqlite_world, tmp_path, segment_min=0) as index:
        assert [finding.kind for finding in index.check(1)] == ["index-damaged"]
        assert answers(sqlite_world, index) == answers(sqlite_world, sqlite_world.chunks)


def test_a_container_that_is_gone_leaves_no_files(sqlite_world: World, tmp_path: Path) -> None:
    put(sqlite_world, "/a.md", 1)
    with beside(sqlite_world, tmp_path, segment_min=0) as index:
        index.rebuild(1)
        assert index.containers() == [1]
        sqlite_world.sql("delete from container where id = 1")
        index.noticed(1)
        assert index.settle(SETTLE_S)
        assert index.containers() == []


def test_an_index_that_is_too_far_behind_compares_everything(
    sqlite_world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log, "EVENTS_KEPT", 2)
    monkeypatch.setattr(log, "_PRUNE_EVERY", 1)
    for number in range(12):
        put(sqlite_world, f"/a/{number}.md", number)
    with beside(sqlite_world, tmp_path, segment_min=0) as index:
        index.rebuild(1)
        sqlite_world.move("/a/3.md", "/ab/3.md")
        sqlite_world.delete("/a/4.md")
        for number in range(12, 20):
            put(sqlite_world, f"/a/{number}.md", number)
        assert answers(sqlite_world, index) == answers(sqlite_world, sqlite_world.chunks)
        assert index.settle(SETTLE_S)


def test_what_is_held_of_idle_containers_is_given_up_first(sqlite_world: World, tmp_path: Path) -> None:
    for container_id in (1, 2):
        put(sqlite_world, "/a.md", container_id, container_id=container_id)
    with beside(sqlite_world, tmp_path, memory_max_bytes=1) as index:
        for _ in range(2):
            assert answers(sqlite_world, index) == answers(sqlite_world, sqlite_world.chunks)
        assert len(index._slots) == 1


def test_searches_beside_writes_and_builds_see_whole_states(sqlite_world: World, tmp_path: Path) -> None:
    problems: list[str] = []
    done = threading.Event()
    with beside(sqlite_world, tmp_path, segment_min=2) as index:

        def ask() -> None:
            while not done.is_set():
                near = index.nearest(Scope(container_id=1), drawn(1, 1)[0], model=MODEL, limit=1_000)
                if len(set(near.ids.tolist())) != near.counted or near.counted % 3:
                    problems.append(f"{near.counted} passages, of files that all have three")

        askers = [threading.Thread(target=ask) for _ in range(2)]
        for asker in askers:
            asker.start()
        for number in range(40):
            put(sqlite_world, f"/{number % 7}.md", number, 3)
            if number % 10 == 9:
                index.rebuild(1)
        done.set()
        for asker in askers:
            asker.join(20)
        assert problems == []
        assert answers(sqlite_world, index) == answers(sqlite_world, sqlite_world.chunks)


def kills(folder: Path, every: int) -> None:
    """`tests.retrieval.vector_kills` in a process of its own: it forks, and must not have the threads of this one."""
    command = [sys.executable, "-m", "tests.retrieval.vector_kills", str(folder), str(every)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=170, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert int(done.stdout.split()[-1]) > 40


@pytest.mark.promise("retrieved.killed")
def test_killed_at_steps_of_a_build_the_index_answers_and_can_be_built(tmp_path: Path) -> None:
    kills(tmp_path, 13)


@pytest.mark.long
def test_killed_at_every_step_of_a_build_the_index_answers_and_can_be_built(tmp_path: Path) -> None:
    kills(tmp_path, 1)


def test_halves_are_multiplied_as_if_they_had_been_widened() -> None:
    random = np.random.default_rng(1)
    matrix = (random.normal(size=(1_000, 384)) * 0.05).astype(np.float16)
    matrix[:3] = [[6e-8] * 384, [-0.0] * 384, [1.0] * 384]
    query = drawn(1, 1, 384)[0]
    wide = dots(matrix.astype(np.float32), query)
    assert half_dots(matrix, query).tobytes() == wide.tobytes()
    rows = random.integers(0, 1_000, 700)
    assert half_dots(matrix, query, rows).tobytes() == wide[rows].tobytes()
    for row in (0, 2, 999):
        assert half_dots(matrix[row : row + 1], query).tobytes() == wide[row : row + 1].tobytes()


def test_the_best_and_the_sum_do_not_depend_on_the_order() -> None:
    random = np.random.default_rng(2)
    ids = np.arange(400, dtype=np.int64)
    cosines = random.integers(-5, 5, 400).astype(np.float32) / 10
    order = random.permutation(400)
    for limit in (0, 1, 37, 400, 500):
        one, other = closest(ids, cosines, limit), closest(ids[order], cosines[order], limit)
        assert (one[0].tolist(), one[1].tolist()) == (other[0].tolist(), other[1].tolist())
        assert one[0].tolist() == sorted(range(400), key=lambda at: (-cosines[at], at))[:limit]


def test_codes_differ_in_as_many_bits_as_components_lie_on_other_sides() -> None:
    matrix = drawn(3, 300, 100)
    mean = matrix.mean(axis=0)
    made = codes.codes_of(matrix, mean)
    assert made.shape == (2, 300)
    differing = codes.distances(made, made[:, 7:8])
    assert differing.tolist() == ((matrix > mean) != (matrix[7] > mean)).sum(axis=1).tolist()
    picked = codes.fewest(differing, 20)
    assert len(picked) >= 20
    assert differing[picked].max() < np.delete(differing, picked).min()


def test_a_large_container_without_files_is_not_compared_as_a_whole(
    sqlite_world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(12):
        put(sqlite_world, f"/{'ab'[number % 2]}/{number}.md", number, 2)
    query, whole = drawn(1, 1)[0], Scope(container_id=1)
    for module, name, most in ((vector_index, "COMPARED_MAX", 20), (sqlite_chunks, "COUNTED_MAX", 15)):
        monkeypatch.setattr(module, name, most)
    monkeypatch.setattr(vector_index.VectorIndexes, "_ask_build", lambda *_: None)
    with beside(sqlite_world, tmp_path / "index", segment_min=3) as index:
        near = index.nearest(whole, query, model=MODEL, limit=5)
        assert (near.ids.tolist(), near.counted) == ([], 24), "how many there are is known, for the threshold"
        assert index.counted(whole, model=MODEL) == 24
        assert index.named(whole, ["4"], model=MODEL, limit=5) == []
        ids = [row[0] for row in sqlite_world.db.all("select id from chunk order by id")]
        known = sqlite_world.chunks.cosines(1, ids, query, model=MODEL)
        assert index.cosines(1, ids, query, model=MODEL).tobytes() == known.tobytes(), "what words found is judged"
        small = Scope(container_id=1, folder="/a")
        assert index.nearest(small, query, model=MODEL, limit=5).ids.tolist() == (
            sqlite_world.chunks.nearest(small, query, model=MODEL, limit=5).ids.tolist()
        )


def test_names_are_looked_up_without_reading_all_passages_for_each_file(sqlite_world: World) -> None:
    """As the store answers while there are no files: in a container of 100,000 passages it once took minutes."""
    for number in range(60):
        put(sqlite_world, f"/{number}-notes.md", number, 5)
    steps = []
    reader = sqlite_world.db.reader
    reader.set_progress_handler(lambda: steps.append(1) is not None and False, 10)
    try:
        found = sqlite_world.chunks.named(Scope(container_id=1), ["notes"], model=MODEL, limit=5)
    finally:
        reader.set_progress_handler(None)
    assert len(found) == 5
    assert len(steps) * 10 < 60 * 100, "some steps for each file; for each file all passages would be 60 * 300 * 5"
