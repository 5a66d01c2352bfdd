"""A table of PostgreSQL that was just filled is known to be full."""

from __future__ import annotations

from pathlib import Path

from memdir.store.acting import SYSTEM
from memdir.store.operations import Put
from memdir.store.postgres.store import PostgresStore
from tests.server.pipeline.test_processes import poll


def rows_known(store: PostgresStore, table: str) -> int:
    row = store.db.one("select cast(reltuples as bigint) from pg_class where oid = to_regclass(?)", (f"memdir.{table}",))
    assert row is not None
    return int(row[0])


def test_the_planner_knows_of_a_growing_table_within_seconds(tmp_path: Path, database_url: str) -> None:
    store = PostgresStore.open(database_url, tmp_path, acting=SYSTEM)
    try:
        container = store.containers.ensure("local", "notes")
        for number in range(200):
            with store.blobs.upload() as upload:
                upload.write(b"%d" % number)
                store.files.apply(container, Put(path=f"/{number}.md", blob=upload.finish()))
        poll(lambda: rows_known(store, "document") >= 150)
    finally:
        store.close()
