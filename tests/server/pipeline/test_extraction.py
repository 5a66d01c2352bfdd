"""Files that are no text on their way through the pipeline: read apart, once for the same bytes, and indexed by their text."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest

from memdir.api import v1
from memdir.core.siblings import ERROR
from memdir.core.sqlite import migration_steps
from memdir.ingest import extractors
from memdir.ingest.sandbox import Sandbox
from memdir.server.background.trigram_indexes import TrigramIndexes
from memdir.server.indexing import extraction
from memdir.server.services.search import exact
from memdir.store.acting import SYSTEM, acting_as
from memdir.store.postgres import migrations
from memdir.store.sqlite.store import SqliteStore
from memdir.store.tree.operations import Delete
from memdir.store.types import Container, Scope
from memdir_bench.ingest import documents
from memdir_bench.ingest.phrases import PHRASE
from tests.postgres import Postgres
from tests.server.conftest import AnyStore, Putting
from tests.server.fakes import FakeEngine, HashEmbedder
from tests.server.pipeline.conftest import Events, Working, document_at, status, texts


@pytest.fixture
def read_count(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The kinds of the documents that were given to a sandbox, in their order."""
    asked: list[str] = []
    given = Sandbox.extract

    def extract(self: Sandbox, *arguments: object, **options: object) -> object:
        asked.append(arguments[1].kind)  # type: ignore[attr-defined]
        return given(self, *arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(Sandbox, "extract", extract)
    return asked


def test_a_pdf_is_indexed_by_its_text(
    store: AnyStore, container: Container, put: Putting, events: Events, working: Working
) -> None:
    put("/river.pdf", documents.pdf())
    engine = FakeEngine(store, dense=HashEmbedder("fake-dense"))
    working(engine)
    events.until(lambda: status(store, container, "/river.pdf") == "done")
    document = document_at(store, container, "/river.pdf")
    assert (document.title, document.error, document.media_type) == ("Birds of the river", None, "application/pdf")
    assert document.transcription == "pdf"
    assert any(PHRASE in text for text in texts(engine, document))
    text = extraction.text_of(store, document.content_hash)
    assert text is not None
    assert text.text.startswith('---\nsource: ""\nsha256: "' + document.content_hash)
    assert not any("sha256" in text for text in texts(engine, document)), "front matter is no passage"


@pytest.mark.promise("extract.once")
def test_the_same_bytes_are_read_once(
    store: AnyStore, container: Container, put: Putting, events: Events, working: Working, read_count: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    data = documents.docx()
    put("/a.docx", data)
    working(FakeEngine(store))
    events.until(lambda: status(store, container, "/a.docx") == "done")
    put("/b.docx", data)
    events.until(lambda: status(store, container, "/b.docx") == "done")
    assert read_count == ["archive"], "a ZIP until somebody looks inside"
    assert document_at(store, container, "/b.docx").transcription == "office"
    monkeypatch.setattr(extraction, "VERSION", extractors.VERSION + 1)
    store.reprocessing.ask([container.id], "index")
    store.notify(container.id)
    events.until(lambda: len(read_count) == 2 and store.jobs.count() == 0)
    assert read_count == ["archive", "archive"], "newer extractors read it again, and once for both"


def test_what_cannot_be_read_fails_with_its_reason_and_nothing_is_found_in_it(
    store: AnyStore, container: Container, put: Putting, events: Events, working: Working
) -> None:
    put("/a.pdf", documents.encrypted_pdf())
    working(FakeEngine(store))
    events.until(lambda: status(store, container, "/a.pdf") == "failed")
    document = document_at(store, container, "/a.pdf")
    assert document.error == "It is encrypted with a password. Save a copy without the password beside it"
    assert document.transcription == ERROR
    put("/a.pdf", documents.pdf())
    events.until(lambda: status(store, container, "/a.pdf") == "done")
    assert (document_at(store, container, "/a.pdf").error, document_at(store, container, "/a.pdf").transcription) == (
        None,
        "pdf",
    )


def test_siblings_are_numbered_as_they_come_and_go(
    store: AnyStore, container: Container, put: Putting, events: Events, working: Working
) -> None:
    put("/a.pdf", documents.pdf())
    put("/b.rtf", documents.rtf())
    working(FakeEngine(store))
    events.until(lambda: store.jobs.count() == 0)
    rows = store.extractions.beside(container.id, since=0, limit=10)
    assert sorted((row.path, row.transcription) for row in rows) == [("/a.pdf", "pdf"), ("/b.rtf", "office")]
    last = rows[-1].sibling_version
    assert store.changes.since(container.id, 0, limit=1).siblings_version == last  # type: ignore[union-attr]
    put("/a.pdf", b"plain text now")
    events.until(lambda: document_at(store, container, "/a.pdf").media_type == "text/plain")
    events.until(lambda: store.jobs.count() == 0)
    (row,) = store.extractions.beside(container.id, since=last, limit=10)
    assert (row.path, row.transcription, row.extracted) == ("/a.pdf", None, None)


def test_a_text_goes_with_the_last_file_of_its_contents(
    store: AnyStore, container: Container, put: Putting, events: Events, working: Working
) -> None:
    put("/b.rtf", documents.rtf())
    working(FakeEngine(store))
    events.until(lambda: store.jobs.count() == 0)
    digest = document_at(store, container, "/b.rtf").content_hash
    assert store.extractions.text(digest) is not None
    store.files.apply(container, Delete(path="/b.rtf", purge=True))
    assert store.extractions.text(digest) is None


def test_an_engine_that_comes_later_reads_what_was_left(
    store: AnyStore, container: Container, put: Putting, events: Events, working: Working, read_count: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    given = Sandbox.extract

    def without(self: Sandbox, *arguments: object, **options: object) -> object:
        result = given(self, *arguments, **options)  # type: ignore[arg-type]
        return type(result)(**{**{name: getattr(result, name) for name in result.__slots__}, "needs": "ocr"})

    monkeypatch.setattr(Sandbox, "extract", without)
    monkeypatch.setattr("memdir.ingest.extractors.ocr.is_available", lambda: False)
    put("/b.rtf", documents.rtf())
    working(FakeEngine(store))
    events.until(lambda: store.jobs.count() == 0)
    monkeypatch.setattr(Sandbox, "extract", given)
    store.reprocessing.ask([container.id], "index")
    store.notify(container.id)
    events.until(lambda: store.jobs.count() == 0)
    assert read_count == ["office"], "nothing has changed"
    monkeypatch.setattr("memdir.ingest.extractors.ocr.is_available", lambda: True)
    store.reprocessing.ask([container.id], "index")
    store.notify(container.id)
    events.until(lambda: store.jobs.count() == 0)
    digest = document_at(store, container, "/b.rtf").content_hash
    assert store.extractions.known([digest])[digest].needs == ""


def _made_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stores are made as by the version before files were read: the schema's first step alone."""
    for place in ("memdir.core.sqlite.migration_steps", "memdir.store.postgres.migrations.migration_steps"):
        monkeypatch.setattr(place, lambda package: migration_steps(package)[:1])


_MADE = """
insert into container (org_id, tag, epoch, created_at_ms, updated_at_ms) values ('local', 'old', 'e', 0, 0);
insert into document (id, container_id, path, kind, media_type, status, content_hash, size_bytes, mode, mtime_ns, revision,
created_at_ms, updated_at_ms)
select 'd' || kind.number, k.id, '/f' || kind.number, 'file', kind.media_type, 'done', 'h', 1, 420, 0, 1, 0, 0
from container k cross join (
    select 1 as number, 'application/pdf' as media_type union all select 2, 'text/plain' union all select 3, 'audio/mpeg'
) as kind;
insert into job (document_id, kind, container_id, priority, not_before_ms, created_at_ms)
select 'd2', 'embed', id, 0, 0, 0 from container;
insert into memory (id, container_id, root_id, parent_id, relation, version, is_latest, kind, subject, text, confidence,
created_at_ms, updated_at_ms)
select 'm1', id, 'm1', null, null, 1, 0, 'static', 'user', 'I live in Porto.', 1, 0, 0 from container union all
select 'm2', id, 'm1', 'm1', 'updates', 2, 1, 'static', 'user', 'I live in Lisbon.', 1, 0, 0 from container;
insert into memory_source (memory_id, document_id, revision, confidence, start_byte, end_byte, start_line, end_line)
values ('m1', 'd1', 1, 1, 0, 9, 1, 1), ('m2', 'd2', 1, 1, 0, 9, 1, 1)
"""
_INSERTS = _MADE.split(";")


@pytest.mark.promise("extract.upgraded")
def test_a_store_made_before_keeps_what_it_has_and_its_files_are_asked_to_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as before:
        _made_before(before)
        old = SqliteStore.open(tmp_path)
        with old.db.write() as connection:
            for statement in _INSERTS:
                connection.execute(statement)
        old.close()
    store = SqliteStore.open(tmp_path)
    with acting_as(SYSTEM):
        container = store.containers.find("local", "old")
        assert container is not None
        assert document_at(store, container, "/f1").transcription is None
        assert store.jobs.count("index") == 2
        assert store.jobs.count("embed") == 1
        assert {job.document_id for job in store.jobs.claim("index", limit=9)} == {"d1", "d3"}
        assert _standing(store) == ["I live in Lisbon."]
        with store.db.write() as connection:
            connection.execute("delete from document where id = 'd2'")
        assert _standing(store) == ["I live in Porto."]
    store.close()


def _standing(store: SqliteStore) -> list[str]:
    container = store.containers.find("local", "old")
    assert container is not None
    return [memory.candidate.text for memory in store.memories.latest(container.id)]


@pytest.mark.promise("extract.upgraded")
def test_so_on_postgres(postgres: Postgres, monkeypatch: pytest.MonkeyPatch) -> None:
    with postgres.database(empty=True) as url:
        with monkeypatch.context() as before:
            _made_before(before)
            assert migrations.migrate(url) == (0, 1)
        with psycopg.connect(url) as connection:
            connection.execute("set search_path to memdir")
            connection.execute("select set_config('memdir.org', 'local', false)")
            for statement in _INSERTS:
                connection.execute(statement)
        assert migrations.migrate(url) == (1, len(migration_steps(migrations.MIGRATIONS)))
        with psycopg.connect(url) as connection:
            connection.execute("select set_config('memdir.org', '*', false)")
            rows = connection.execute("select document_id, kind from memdir.job where kind <> 'memory' order by 1").fetchall()
            connection.execute("set search_path to memdir")
            connection.execute("delete from document where id = 'd2'")
            kept = connection.execute("select text from memory where is_latest = 1").fetchall()
        assert rows == [("d1", "index"), ("d2", "embed"), ("d3", "index")]
        assert kept == [("I live in Porto.",)]


@pytest.mark.promise("retrieval.literal-index")
def test_only_texts_that_can_match_are_read_by_an_exact_search(
    store: AnyStore, container: Container, put: Putting, events: Events, working: Working, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """Of 9,988 files, 5,700 with texts beside them, each search read all 5,700."""
    folder = tmp_path / "trigrams"
    folder.mkdir()
    indexes = TrigramIndexes(store, folder)

    def look(q: str, **options: object) -> tuple[list[str | None], int]:
        request = v1.SearchRequest(container_tag="notes", q=q, mode="literal", limit=50, **options)  # type: ignore[arg-type]
        found = exact.search(store, indexes, [Scope(container_id=container.id, folder="/")], request)
        return [hit.sibling or hit.path for hit in found.hits], found.files_read

    letter = documents.docx()
    put("/a.pdf", documents.pdf())
    put("/b.docx", letter)
    put("/c.pdf", documents.encrypted_pdf())
    put("/d.md", PHRASE.encode())
    working(FakeEngine(store))
    events.until(lambda: store.jobs.count() == 0)
    pdf, docx, copy = "/a.pdf.pdf-transcription.md", "/b.docx.office-transcription.md", "/e.docx.office-transcription.md"
    assert look(PHRASE) == (["/d.md", pdf, docx], 6), "every file and every text"
    indexes.bring_up_to_date()
    assert look(PHRASE) == (["/d.md", pdf, docx], 3)
    assert look("no such words") == ([], 0)
    assert look(PHRASE, texts=False) == (["/d.md"], 1)
    request = v1.SearchRequest(container_tag="notes", q=PHRASE, mode="literal", limit=50, count=True)
    counted = exact.search(store, indexes, [Scope(container_id=container.id, folder="/")], request)
    assert {one.path: one.count for one in counted.counts} == {
        **dict.fromkeys(("/a.pdf", "/b.docx", "/c.pdf"), 0), **dict.fromkeys(("/d.md", pdf, docx), 1)
    }  # fmt: skip
    put("/e.docx", letter)
    put("/f.pdf", documents.pdf_of(["A wren sings in the ivy"]))
    events.until(lambda: store.jobs.count() == 0)
    assert look(PHRASE)[0] == ["/d.md", pdf, docx, copy]
    assert look("A wren sings in the ivy")[0] == ["/f.pdf.pdf-transcription.md"], "read since"
    indexes.notify(container.id)
    indexes.bring_up_to_date()
    assert look("A wren sings in the ivy") == (["/f.pdf.pdf-transcription.md"], 1)
    assert indexes.check(container.id, full=True) == []
    monkeypatch.setattr(extraction, "VERSION", extractors.VERSION + 1)
    store.reprocessing.ask([container.id], "index")
    store.notify(container.id)
    events.until(lambda: store.jobs.count() == 0)
    for _ in range(2):
        assert look(PHRASE)[0] == ["/d.md", pdf, docx, copy], "read again"
        indexes.notify(container.id)
        indexes.bring_up_to_date()
    known = len(indexes.ready(container.id).view.known)  # type: ignore[union-attr]
    assert known == 8, "five contents and three texts: nothing of the older texts"
