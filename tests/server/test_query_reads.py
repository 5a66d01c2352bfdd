"""No statement of a search, a put, a hook or a listing reads more than it returns: how many rows PostgreSQL really reads for
each that a server runs, in a container of 10,000 documents.

The rows are copies of those that a server wrote, so that all are about the same subject and mention the same names.
"""

from __future__ import annotations

import json
import pickle
from typing import Any, Final

import psycopg
import pytest

from memdir.store.postgres.database import APP_ROLE, SCHEMA
from memdir.store.postgres.dialect import translated
from tests.postgres import Postgres
from tests.server.test_query_plans import ALLOWED, STATEMENT, used

COPIES: Final = 100
READ_MAX: Final = 1_000
"""Rows that a statement may read; a tenth of what the tables hold, or less …"""
RETURNED_SHARE: Final = 40
"""… or so many for each row that it returns: for a page of 1,000 a scan of 10,000 is the better plan."""
Ran = tuple[str, Any, str]
"""A statement, its bindings, for whom it was run."""
COPIED: Final[dict[str, dict[str, str]]] = {
    "document": {"id": "text", "path": "text", "custom_id": "text"},
    "document_facet": {"document_id": "text"},
    "document_name": {"document_id": "text"},
    "document_words": {"document_id": "text"},
    "document_version": {"id": "number", "document_id": "text"},
    "change": {"seq": "number", "document_id": "text", "path": "text"},
    "chunk": {"id": "number", "document_id": "text"},
    "chunk_words": {"chunk_id": "number"},
    "chunk_tie": {"chunk_id": "number"},
    "chunk_vector": {"chunk_id": "number"},
    "memory": {"id": "text"},
    "memory_source": {"id": "number", "memory_id": "text", "document_id": "text"},
    "memory_vector": {"memory_id": "text"},
    "agent_memory": {"number": "number", "id": "text", "document_id": "text"},
    "agent_event": {"id": "number"},
    "blob": {"hash": "text"},
    "job": {"document_id": "text"},
}
"""The columns that tell a copy from its original, and agree between tables."""
_OF_COPY: Final = {"text": "{} || '-' || k", "number": "{} + k * 1000000"}
"""The value of such a column in copy `k`."""


@pytest.fixture(scope="module")
def database(postgres: Postgres, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A connection to the enlarged database of a server that every route was asked of, and what that ran."""
    home = tmp_path_factory.mktemp("home")
    with postgres.database() as url:
        recorded = used(home, url)
        ran: list[Ran] = []
        with open(recorded, "rb") as file:
            while file.peek(1):
                ran.append(pickle.load(file))
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(f"set search_path to {SCHEMA}, public")
            enlarge(connection)
            yield connection, ran


def enlarge(connection: psycopg.Connection[Any]) -> None:
    """COPIES of each row, foreign keys and triggers aside, and work that waits on all documents."""
    connection.execute("set session_replication_role = replica")
    for table, keys in COPIED.items():
        names = [
            name
            for (name,) in connection.execute(
                "select attname from pg_attribute where attrelid = %s::regclass and attnum > 0 and not attisdropped "
                "and attgenerated = ''",
                (table,),
            )
        ]
        assert set(keys) <= set(names), table
        values = [_OF_COPY[keys[name]].format(name) if name in keys else name for name in names]
        connection.execute(
            f"insert into {table} ({', '.join(names)}) overriding system value "
            f"select {', '.join(values)} from {table}, generate_series(1, {COPIES}) k"
        )
    connection.execute(
        "insert into job (org_id, document_id, kind, container_id, priority, not_before_ms, created_at_ms, turn) "
        "select d.org_id, d.id, work, d.container_id, row_number() over () % 2, 0, 0, row_number() over () from document d, "
        "unnest(array['index', 'memory']) work on conflict do nothing"
    )
    connection.execute("set session_replication_role = origin")
    connection.execute("analyze")


def read(connection: psycopg.Connection[Any], sql: str, bindings: Any, acting: str) -> tuple[int, int, str]:
    """The most rows that a step of the statement reads from a table, how many the statement returns or changes, and the step.
    Nothing is changed."""
    with connection.transaction(force_rollback=True):
        connection.execute(f"set local role {APP_ROLE}")
        connection.execute("select set_config('memdir.org', %s, true)", (acting,))
        [[answer]] = connection.execute(f"explain (analyze, format json) {translated(sql)}", bindings).fetchall()
    steps = [answer[0]["Plan"]]
    returned = int(steps[0]["Actual Rows"])
    most, place = 0, ""
    while steps:
        step = steps.pop()
        steps += step.get("Plans", ())
        if "Scan" in step["Node Type"] and ("Relation Name" in step or "Index Name" in step):
            removed = step.get("Rows Removed by Filter", 0) + step.get("Rows Removed by Index Recheck", 0)
            rows = int((step["Actual Rows"] + removed) * step["Actual Loops"])
            if rows > most:
                read_from = step.get("Relation Name") or step["Index Name"]
                most, place = rows, f"{step['Node Type']} {read_from} {step.get('Index Cond', '')} {step.get('Filter', '')}"
    return most, returned, place


@pytest.mark.promise("real.bounded")
def test_no_statement_reads_more_than_it_returns(database: tuple[psycopg.Connection[Any], list[Ran]]) -> None:
    connection, ran = database
    [[size]] = connection.execute("select count(*) from chunk").fetchall()
    assert size > 10 * READ_MAX
    found: dict[str, Any] = {}
    asked = 0
    for sql, bindings, acting in ran:
        text = " ".join(sql.split())
        if not STATEMENT.match(text) or any(text.startswith(known) for known in ALLOWED):
            continue
        try:
            rows, returned, step = read(connection, sql, bindings, acting)
        except psycopg.errors.IntegrityError:  # what it inserts is there: it was recorded where that was new
            continue
        asked += 1
        if rows > max(READ_MAX, RETURNED_SHARE * returned):
            found[text] = (rows, returned, step)
    assert asked > 200
    assert not found, json.dumps(found, indent=1)
