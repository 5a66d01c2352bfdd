"""What is PostgreSQL's own: the graph of vectors, bounds on common words, many writers, the wall between organisations."""

from __future__ import annotations

import multiprocessing
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from memdir.core.clock import FakeClock
from memdir.retrieval.embed import StaticEmbedder
from memdir.store.acting import SYSTEM, acting_as
from memdir.store.postgres import nearest, words
from memdir.store.postgres.rows import kept_text, shown_text
from memdir.store.postgres.store import PostgresStore
from memdir.store.types import Chunk, Matrix, Scope
from tests.retrieval.conftest import World

DIM = 384
MODEL = "clustered"
WHOLE = Scope(container_id=1)


@pytest.fixture
def world(database_url: str, tmp_path: Path) -> Iterator[World]:
    clock = FakeClock()
    store = PostgresStore.open(database_url, tmp_path, clock=clock, acting=SYSTEM)
    yield World(store, clock)
    store.close()


def clustered(count: int, seed: int) -> Matrix:
    """Vectors as embeddings of text lie: clusters in a space of few dimensions, and noise."""
    space = np.random.default_rng(1)
    centres, projection = space.normal(size=(100, 40)), space.normal(size=(40, DIM))
    random = np.random.default_rng(seed)
    latent = centres[random.integers(0, 100, count)] + 0.7 * random.normal(size=(count, 40))
    made = latent @ projection + 2 * random.normal(size=(count, DIM))
    unit: Matrix = (made / np.linalg.norm(made, axis=1, keepdims=True)).astype(np.float32)
    return unit


def fill(world: World, count: int, *, folders: int = 10) -> None:
    """`count` passages with vectors, every second one in container 2; the graph is made at the end, as after a restore."""
    world.sql("insert into vector_model (id, name) values (9, ?)", MODEL)
    with world.db.write() as transaction:
        transaction.execute("select set_config('role', 'none', true)")
        for container in (1, 2):
            for folder in range(folders):
                transaction.execute(
                    "insert into document (id, container_id, path, kind, status, content_hash, size_bytes, mode, mtime_ns, "
                    "revision, created_at_ms, updated_at_ms) values (?, ?, ?, 'file', 'done', 'h', 0, 0, 0, 1, 0, 0)",
                    (f"{container}-{folder}", container, f"/{folder}/file"),
                )
        transaction.execute(
            "insert into chunk (id, document_id, container_id, revision, ordinal, start_byte, end_byte, start_line, end_line, "
            "text, context, text_hash) select n, (1 + n % 2) || '-' || (n / 2 % cast(? as integer)), 1 + n % 2, 1, n, "
            "0, 0, 1, 1, '', '', sha256(cast(cast(n as text) as bytea)) from generate_series(1, cast(? as integer)) n",
            (folders, count),
        )
        transaction.execute("insert into chunk_words select id, 0, '{}', '{}' from chunk")
        transaction.execute("drop index chunk_vector_near_384")
        texts = ["[" + ",".join(f"{value:.4f}" for value in row) + "]" for row in clustered(count, 2).tolist()]
        transaction.execute(
            "insert into chunk_vector (model_id, chunk_id, container_id, vector) select 9, n, 1 + n % 2, cast(text as halfvec) "
            "from unnest(cast(? as text[])) with ordinality v (text, n)",
            (texts,),
        )
        transaction.execute(
            "create index chunk_vector_near_384 on chunk_vector using hnsw ((vector::halfvec(384)) halfvec_ip_ops) "
            "where vector_dims(vector) = 384"
        )
    world.db.all("analyze chunk_vector")


def check_recall(world: World, monkeypatch: pytest.MonkeyPatch, scope: Scope, *, at_least: float) -> None:
    """Ten nearest through the graph against the ten nearest of all."""
    walked: list[int] = []
    through_graph = nearest._through_graph

    def watched(*args: Any, **options: Any) -> Any:
        found = through_graph(*args, **options)
        walked.append(len(found))
        return found

    monkeypatch.setattr(nearest, "_through_graph", watched)
    shares = []
    for query in clustered(30, 3):
        monkeypatch.setattr(nearest, "EXACT_MAX", 1 << 40)
        exact = world.chunks.nearest(scope, query, model=MODEL, limit=10)
        monkeypatch.setattr(nearest, "EXACT_MAX", 0)
        monkeypatch.setattr(nearest, "_STEP_COST", 0)
        near = world.chunks.nearest(scope, query, model=MODEL, limit=150)
        assert len(near.ids) == 150
        assert near.counted == pytest.approx(exact.counted, rel=0.2), "from a sample"
        best = near.ids[np.argsort(-near.cosines)[:10]]
        shares.append(len(set(best.tolist()) & set(exact.ids.tolist())) / 10)
        rows = world.chunks.chunks(near.ids.tolist()).values()
        assert {row.document_id.partition("-")[0] for row in rows} == {str(scope.container_id)}
        assert all((row.path or "").startswith(scope.folder) for row in rows)
    assert walked == [150] * 30, "the graph was not used"
    assert np.mean(shares) >= at_least, shares


@pytest.mark.parametrize("folder", ["/", "/3"])
def test_the_graph_finds_what_a_comparison_of_all_finds(world: World, monkeypatch: pytest.MonkeyPatch, folder: str) -> None:
    fill(world, 4_000)
    check_recall(world, monkeypatch, Scope(container_id=1, folder=folder), at_least=0.95)


@pytest.mark.long
@pytest.mark.parametrize("folder", ["/", "/3"])
def test_the_graph_of_twenty_thousand(world: World, monkeypatch: pytest.MonkeyPatch, folder: str) -> None:
    fill(world, 20_000)
    check_recall(world, monkeypatch, Scope(container_id=2, folder=folder), at_least=0.95)


def test_a_small_share_of_the_graph_is_compared_instead(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(world, 4_000, folders=100)
    monkeypatch.setattr(nearest, "EXACT_MAX", 0)
    monkeypatch.setattr(nearest, "_SCAN_MAX", 1)
    query = clustered(1, 3)[0]
    near = world.chunks.nearest(Scope(container_id=1, folder="/7"), query, model=MODEL, limit=150)
    assert len(near.ids) == near.counted == 20


def test_common_words_are_bounded_and_still_ranked(
    world: World, static: StaticEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(60):
        world.put(f"/many/{number}.md", f"common words number {number} and some filler {number * 7}", static)
    world.put("/few/a.md", "a walnut among common things", static)
    world.put("/few/b.md", "nothing else but common", static)
    plain = world.chunks.lexical(WHOLE, ["walnut", "common"], 100)
    monkeypatch.setattr(words, "MATCHES_MAX", 5)
    monkeypatch.setattr(words, "SAMPLE", 30)
    bounded = world.chunks.lexical(WHOLE, ["walnut", "common"], 100)
    assert bounded[0][0] == plain[0][0]
    assert bounded[0][1] == pytest.approx(plain[0][1], rel=0.3)
    assert len(bounded) == 6, "the walnut, and no more of the others than may be looked up"
    scoped = world.chunks.lexical(Scope(container_id=1, folder="/few"), ["common"], 100)
    assert len(scoped) == 2, "the bound counts inside the scope"


def sampled(world: World) -> words.ContainerSample:
    with world.db.snapshot() as reader:
        return words.sample(reader, 1)


def test_a_large_container_is_known_from_a_sample(
    world: World, static: StaticEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(300):
        world.put(f"/{number}.md", f"text number {number}", static)
    exact = sampled(world)
    assert (exact.taken, exact.size) == (300, 300)
    monkeypatch.setattr(words, "SAMPLE", 100)
    estimate = sampled(world)
    assert estimate.taken == 100
    assert estimate.size == pytest.approx(300, rel=0.3)
    assert estimate.mean_length == pytest.approx(exact.mean_length, rel=0.1)


def test_words_that_were_thrown_away_come_back_when_the_document_is_indexed_again(world: World, static: StaticEmbedder) -> None:
    """What migration 10 leaves to the background: the passages stay, their words are taken apart anew."""
    texts = ("Die Häuser am Fluss sind alt, und die Katze schläft.", "東京タワーは高い。")
    chunks = [
        Chunk(ordinal=number, start_byte=number, end_byte=number + 1, start_line=1, end_line=1, text=text, context="")
        for number, text in enumerate(texts)
    ]
    document = world.document("/a.md", b"x")
    vectors = static.embed_passages(list(texts))
    before = world.chunks.replace_chunks(document, chunks, model=static.name, vectors=vectors)
    world.sql("delete from chunk_words")
    assert world.chunks.lexical(WHOLE, ["Haus"], 10) == []
    assert world.chunks.replace_chunks(document, chunks, model=static.name, vectors=vectors) == before
    for word, chunk_id in (("Häusern", before[0]), ("haeuser", before[0]), ("タワー", before[1])):
        assert [found for found, _ in world.chunks.lexical(WHOLE, [word], 10)] == [chunk_id], word


@pytest.mark.parametrize("text", ["plain", "a\x00b", "\U000f8000", "\U000f80000\x00\U000f80001", "\x00"])
def test_every_text_comes_back(text: str) -> None:
    assert "\x00" not in kept_text(text)
    assert shown_text(kept_text(text)) == text


def test_a_passage_may_hold_the_character_that_the_database_cannot(world: World, static: StaticEmbedder) -> None:
    document = world.document("/a.md", b"x")
    chunk = Chunk(ordinal=0, start_byte=0, end_byte=9, start_line=1, end_line=1, text="wal\x00nut tree", context="\x00")
    world.chunks.replace_chunks(document, [chunk], model=static.name, vectors=static.embed_passages(["walnut"]))
    assert [stored.chunk for stored in world.chunks.document_chunks(document.id)] == [chunk]
    assert len(world.chunks.lexical(WHOLE, ["tree"], 10)) == 1


def test_another_organisation_finds_nothing_whatever_it_asks_for(world: World, static: StaticEmbedder) -> None:
    document = world.put("/walnut.md", "walnut", static)
    (stored,) = world.chunks.document_chunks(document.id)
    query = static.embed_query("walnut")
    for organisation, sees in (("o", True), ("someone-else", False), ("", False)):
        with acting_as(organisation):
            found = (
                bool(world.chunks.lexical(WHOLE, ["walnut"], 10)),
                bool(len(world.chunks.nearest(WHOLE, query, model=static.name, limit=10).ids)),
                bool(world.chunks.named(WHOLE, ["walnut"], model=static.name, limit=10)),
                bool(np.isfinite(world.chunks.cosines(1, [stored.id], query, model=static.name)).any()),
                bool(world.chunks.chunks([stored.id])),
                bool(world.chunks.document_chunks(document.id)),
                bool(world.chunks.missing_vectors(model="other", limit=10)),
            )
        assert found == (sees,) * len(found), organisation


def _write_many(url: str, folder: str, container_id: int, failed: Any) -> None:
    """One server process that indexes its own container."""
    try:
        static = StaticEmbedder()
        store = PostgresStore.open(url, Path(folder), acting=SYSTEM)
        world = World.again(store)
        for number in range(12):
            world.put(
                f"/{number % 5}.md", f"walnut number {number} of container {container_id}", static, container_id=container_id
            )
        store.close()
    except BaseException as error:
        failed.put(f"{container_id}: {error!r}")
        raise


def test_many_processes_index_different_containers_at_once(world: World, database_url: str, tmp_path: Path) -> None:
    for container_id in (3, 4):
        world.container(container_id)
    context = multiprocessing.get_context("spawn")
    failed = context.Queue()
    processes = [
        context.Process(target=_write_many, args=(database_url, str(tmp_path / str(number)), number, failed))
        for number in (1, 2, 3, 4)
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join(120)
    assert [process.exitcode for process in processes] == [0, 0, 0, 0], failed.get(timeout=5)
    for number in (1, 2, 3, 4):
        hits = world.chunks.lexical(Scope(container_id=number), ["walnut"], 100)
        stored = world.chunks.chunks([chunk_id for chunk_id, _ in hits]).values()
        assert {row.path for row in stored} == {f"/{place}.md" for place in range(5)}
        assert all(row.chunk.text.endswith(f"of container {number}") for row in stored)


def part_of(number: int, cut: str) -> Chunk:
    return Chunk(
        ordinal=number, start_byte=number, end_byte=number + 1, start_line=1, end_line=1, text=f"part {number}", context=cut
    )


def test_workers_on_one_document_leave_one_whole_set(
    world: World, database_url: str, tmp_path: Path, static: StaticEmbedder
) -> None:
    document = world.document("/a.md", b"x")
    stores = [PostgresStore.open(database_url, tmp_path / str(number), acting=SYSTEM) for number in range(3)]
    problems: list[Exception] = []

    def work(store: PostgresStore, mine: int) -> None:
        chunks = store.chunks()
        try:
            for turn in range(8):
                cut = str((turn + mine) % 3)
                made = [part_of(number, cut) for number in range(12)]
                vectors = static.embed_passages([chunk.text for chunk in made])
                ids = chunks.replace_chunks(document, made, model=static.name, vectors=vectors)
                assert len(ids) == 12
                chunks.add_vectors(list(reversed(ids)), model=MODEL, vectors=np.ones((12, 8), dtype=np.float32))
        except Exception as error:  # noqa: BLE001  told below
            problems.append(error)

    threads = [threading.Thread(target=work, args=(store, number)) for number, store in enumerate(stores)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    for store in stores:
        store.close()
    assert problems == []
    stored = world.chunks.document_chunks(document.id)
    assert [item.chunk.text for item in stored] == [f"part {n}" for n in range(12)]
    assert len({item.chunk.context for item in stored}) == 1, "passages of one cut, not of two"
    counts = [world.db.one(f"select count(*) from {table}") for table in ("chunk", "chunk_words")]
    assert counts == [(12,), (12,)]
    vectors = world.db.one(
        "select count(*) from chunk_vector v join vector_model m on m.id = v.model_id where m.name = ?", (static.name,)
    )
    assert vectors == (12,)


def test_every_number_of_dimensions_that_is_searched_by_graph_has_one(world: World) -> None:
    names = {row[0] for row in world.db.all("select indexname from pg_indexes where tablename = 'chunk_vector'")}
    assert {f"chunk_vector_near_{dim}" for dim in nearest.INDEXED_DIMS} <= names
