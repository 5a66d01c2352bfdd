"""A store from before direct memories and filters by index: everything is taken over."""

from __future__ import annotations

from pathlib import Path

import apsw

from memdir.api.v3 import Filters
from memdir.core.clock import FakeClock
from memdir.core.sqlite import migration_steps
from memdir.server.services.search.filters import condition_of
from memdir.store.sqlite.store import DATABASE_NAME, SqliteStore
from memdir.store.tree.documents import Listing

METADATA = '{"n": 3, "x": 2.5, "s": "Hello", "b": true, "l": ["a", 7, null, {"d": 1}], "o": {"d": 1}, "z": null, "t": "12"}'


def earlier_store(folder: Path) -> None:
    """The schema before `direct`, with a document, and a memory that it says."""
    steps = migration_steps("memdir.store.sqlite.schema")
    before = next(number for number, sql in enumerate(steps) if "document_facet" in sql)
    folder.mkdir()
    connection = apsw.Connection(str(folder / DATABASE_NAME))
    connection.execute("pragma foreign_keys=on")
    for sql in steps[:before]:
        connection.execute(sql)
    connection.execute(f"pragma user_version={before}")
    connection.execute(
        "insert into container (id, org_id, tag, epoch, created_at_ms, updated_at_ms) values (1, 'local', 'notes', 'e', 1, 1)"
    )
    connection.execute(
        "insert into document (id, container_id, path, kind, status, content_hash, size_bytes, mode, mtime_ns, revision, "
        "metadata, created_at_ms, updated_at_ms) values ('d', 1, '/memory/a.md', 'file', 'done', 'h', 0, 420, 0, 1, ?, 1, 1)",
        (METADATA,),
    )
    for memory_id, parent, latest in (("m1", None, 0), ("m2", "m1", 1)):
        connection.execute(
            "insert into memory (id, container_id, root_id, parent_id, relation, version, is_latest, kind, subject, text, "
            "confidence, created_at_ms, updated_at_ms) values (?, 1, 'm1', ?, ?, ?, ?, 'static', 'user', ?, 0.8, 1, 1)",
            (memory_id, parent, parent and "updates", 1 + latest, latest, f"Fact {memory_id}."),
        )
        connection.execute(
            "insert into memory_source (memory_id, document_id, revision, stands, confidence, start_byte, end_byte, "
            "start_line, end_line) values (?, 'd', 1, ?, 0.8, 3, 9, 1, 2)",
            (memory_id, latest),
        )
    connection.close()


def test_documents_can_be_filtered_and_memories_keep_their_sources(tmp_path: Path) -> None:
    earlier_store(tmp_path / "server")
    store = SqliteStore.open(tmp_path / "server", clock=FakeClock())
    try:
        for key, value, kind in (
            ("n", "3", "metadata"),
            ("n", "3.0", "numeric"),
            ("x", "2.5", "metadata"),
            ("s", "Hello", "metadata"),
            ("b", "true", "metadata"),
            ("l", "a", "array_contains"),
            ("l", 7, "array_contains"),
            ("t", "12", "numeric"),
        ):
            condition = condition_of(Filters(AND=[{"key": key, "value": value, "filterType": kind}]))
            assert store.documents.count(Listing(container_ids=(1,), condition=condition)) == 1, (key, value, kind)
        for key in ("o", "z"):
            condition = condition_of(Filters(AND=[{"key": key, "value": "", "filterType": "string_contains"}]))
            assert store.documents.count(Listing(container_ids=(1,), condition=condition)) == 0, key
        (latest,) = store.memories.latest(1)
        assert (latest.id, latest.document_id, latest.caller, latest.metadata) == ("m2", "d", None, {})
        assert (latest.candidate.start_byte, latest.candidate.end_line) == (3, 2)
        assert [memory.id for memory in store.memories.history("m2")] == ["m1", "m2"]
        document = store.documents.get("d")
        assert document is not None
        assert (document.task_type, document.url) == ("memory", None)
        store.memories.forget_document(document)
        assert store.memories.history("m2") == [], "the triggers are there: a memory goes with its last source"
    finally:
        store.close()
