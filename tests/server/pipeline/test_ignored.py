"""Files that ignore files or tools set apart: kept, found by words behind everything else, never read by the transformer."""

from __future__ import annotations

import httpx
import pytest

from memdir.store.acting import acting_as
from memdir.store.types import Container
from tests.server.conftest import AnyStore, Putting
from tests.server.fakes import FakeEngine, HashEmbedder
from tests.server.pipeline.conftest import Events, Working, document_at, drained
from tests.server.test_files_http import put as put_http
from tests.server.test_search_http import done, search
from tests.servers import ON_BOTH

LAST = ("/app/build/out.txt", "/app/trace.log", "/app/web/uv.lock", "/app/drafts/old/a.md")
FIRST = ("/app/src/main.py", "/app/keep.log", "/build/notes.md", "/app/drafts/a.md")


@pytest.fixture
def filled(store: AnyStore, put: Putting, events: Events, working: Working) -> FakeEngine:
    put("/app/.gitignore", b"build/\n*.log\n!keep.log\n")
    put("/app/drafts/.gitignore", b"old\n")
    for path in (*LAST, *FIRST):
        put(path, f"Words of {path} in a sentence.\n".encode())
    engine = FakeEngine(store, dense=HashEmbedder("fake-dense"))
    working(engine)
    events.until(drained(store))
    return engine


def embedded(store: AnyStore, engine: FakeEngine, container: Container) -> set[str]:
    ids = engine.embedded(container.id, "fake-dense")
    return {stored.path or "" for stored in engine.chunks.chunks(ids).values()} - {"/app/.gitignore", "/app/drafts/.gitignore"}


@pytest.mark.promise("real.ignored")
def test_what_an_ignore_file_names_is_not_read_by_the_transformer(
    store: AnyStore, container: Container, filled: FakeEngine
) -> None:
    assert embedded(store, filled, container) == set(FIRST)
    assert "ignore file" in (document_at(store, container, "/app/trace.log").error or "")
    assert "lock file" in (document_at(store, container, "/app/web/uv.lock").error or "")
    origins = filled.chunks.origins(range(1, 100))
    assert {origin.path for origin in origins.values() if origin.searched_last} == set(LAST)


def test_a_server_that_starts_again_leaves_it_so(
    store: AnyStore, container: Container, filled: FakeEngine, events: Events
) -> None:
    assert store.embedding.backfill(model="another") == len(FIRST) + 2
    store.embedding.abandon()
    assert store.embedding.backfill(model="fake-dense") == 0


def test_an_ignore_file_that_comes_later_or_changes_is_followed(
    store: AnyStore, container: Container, put: Putting, filled: FakeEngine, events: Events
) -> None:
    put("/app/.gitignore", b"src\n")
    events.until(drained(store))
    origins = filled.chunks.origins(range(1, 200))
    last = {origin.path for origin in origins.values() if origin.searched_last}
    assert last == {"/app/src/main.py", "/app/web/uv.lock", "/app/drafts/old/a.md"}
    assert {"/app/build/out.txt", "/app/trace.log"} <= embedded(store, filled, container)
    put("/.memdirignore", b"!main.py\n!old\n!src\n")
    events.until(drained(store))
    origins = filled.chunks.origins(range(1, 200))
    assert {origin.path for origin in origins.values() if origin.searched_last} == {"/app/web/uv.lock"}


def test_an_ignore_file_whose_content_is_gone_keeps_no_other_file_from_being_read(
    store: AnyStore, container: Container, put: Putting, events: Events, working: Working
) -> None:
    put("/.gitignore", b"*.log\n")
    put("/a.log", b"words of a log\n")
    gone = document_at(store, container, "/.gitignore").content_hash
    with acting_as("local"), store.db.write() as connection:
        connection.execute("delete from blob where hash = ?", (gone,))
    engine = FakeEngine(store, dense=HashEmbedder("fake-dense"))
    working(engine)
    events.until(lambda: document_at(store, container, "/a.log").status == "done")
    assert embedded(store, engine, container) == {"/a.log"}


@ON_BOTH
def test_it_is_found_behind_everything_else_unless_its_folder_is_asked(client: httpx.Client, tag: str) -> None:
    put_http(client, tag, "/.gitignore", b"out/\n")
    put_http(client, tag, "/out/report.md", b"The walnut tree by the gate was planted in 1990.\n")
    put_http(client, tag, "/garden.md", b"Somebody planted the walnut tree by the gate before we came, said the neighbour.\n")
    done(client, tag)
    for question in ("when was the walnut tree by the gate planted", "walnut_tree planted"):
        found = search(client, tag, question, nearest=3)["results"]
        assert [hit["path"] for hit in found][:1] == ["/garden.md"], question
        asked = search(client, tag, question, filepath="/out/")["results"]
        assert [hit["path"] for hit in asked] == ["/out/report.md"], question
