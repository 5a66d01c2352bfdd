"""No statement of a search, a put, a hook or a listing reads more than it returns: SQLite's plans of all that a server runs.

A plan that scans a table, or that finds rows by the container alone, costs as much as the container holds. What does so on
purpose is written down here, with its bound.
"""

from __future__ import annotations

import json
import os
import re
import select
import subprocess
import sys
from pathlib import Path
from typing import Final

import apsw
import httpx
import pytest

from memdir.api.examples import EXAMPLES
from memdir.store.sqlite.store import SqliteStore
from tests.server.conftest import until
from tests.server.test_matrix import ROUTES, ROWS, is_elsewhere
from tests.servers import START_S

TAG: Final = "notes"
_ONCE: Final = "once when the server starts"
_LOADED: Final = "once, when a container is first searched or its index is made anew; afterwards the log of changes is followed"
_SETTLED: Final = "only rows that are being settled: leases, holds and the trash hold as many as there are calls under way"
_COUNTED: Final = "counts entries of one index for a listing that tells its total: 4 ms for 100,000"
_PAST: Final = "what stands there now is looked through, in pages, for what stood there at a time"
_BY_HAND: Final = "an administrator's call, or a change of a container's settings"
_FORGOTTEN: Final = "forgetting, and looking whether it is forgotten: everything of a container is read"
_END: Final = "the first or the last entry of an index (SQLite's min/max optimisation)"
ALLOWED: Final[dict[str, str]] = {
    "update job set leased_until_ms = 0, owner = '', deaths = deaths + 1 where leased_until_ms > 0": _ONCE,
    "delete from answer where status is null": _ONCE,
    "update blob_trash set ": _ONCE,
    "select id, path, content_hash from document_version where container_id = ? and id > ? and kind": _FORGOTTEN,
    "select id, null, text from memory where container_id = ? and id > ?": _FORGOTTEN,
    "select id from document where container_id = ? and path is null and id > ?": _FORGOTTEN,
    "update memory set is_embedded = 0 where is_embedded = 1 and not exists": _ONCE,
    "insert into job (document_id, kind, container_id, priority, not_before_ms, created_at_ms, turn) select document_id": _ONCE,
    "select id from container k where exists (select 1 from agent_memory": _ONCE,
    "select id from container order by id": _ONCE,
    "select m.name from vector_model m where exists": _LOADED,
    "select c.id, v.vector, coalesce(d.path, ''), d.id from document d cross join chunk c": _LOADED,
    "select id, path, kind, content_hash, size_bytes, mode, mtime_ns, id, content_at_ms, created_at_ms from document d": _PAST,
    "select content_hash from document where container_id = ? and kind <> 'dir' union all": _LOADED,
    "select id, is_forgotten, forget_after_ms from memory where container_id = ? and is_latest = 1 order by id":
        "once after the memories of a container changed: 20 ms for 26,000",
    "select count(*) from (select 1 from chunk where container_id = ? limit ?)":
        "until the index of words was compared with the store after a start: at most 50,001 passages",
    "select place from blob where place is not null limit ?": _ONCE,
    "select 1 from blob_trash where not_before_ms <= ? and not exists (select 1 from blob_hold": _SETTLED,
    "select distinct export_id, org_id from export_hold": _SETTLED,
    "insert into export_hold": "an export, which returns all of that",
    "select j.document_id, j.kind, k.tag, d.path, case when j.failed_at_ms": _BY_HAND,
    "select count(*), coalesce(sum(d.size_bytes), 0) from document d join container k": _BY_HAND,
    "select count(*) from job where container_id = ? and kind = ?": _BY_HAND,
    "select id, path, task_type from document where container_id = ? and kind = 'file' and status in": _BY_HAND,
    "select count(*) from org": _BY_HAND,
    "select count(*) from document d where d.container_id = ? and d.kind = 'file'": _COUNTED,
    "select container_id, count(*) from document where container_id in": _COUNTED,
    "select m.container_id, count(*) from memory m where m.container_id in": _COUNTED,
    "select count(*) from memory where container_id in": _COUNTED,
    "select count(*) from chunk c where c.container_id = ?": _COUNTED,
    "select (select count(*) from agent_memory where container_id = ?)": _COUNTED,
    "select count(*), coalesce(max(size_bytes), 0) from (select d.size_bytes from job j join": (
        "the limit inside it; edits that wait are few"
    ),
    "select count(*) from (select 1 from chunk c cross join chunk_vector v": "the limit inside it",
    "select c.id, d.id, d.custom_id, c.ordinal, c.text, d.created_at_ms from document d cross join chunk c":
        "the listing of passages of /ns, which nothing of ours calls: all passages are sorted, 200 ms for 100,000",
    "delete from agent_event where id <= (select max(id) from agent_event)": _END,
    "select (select min(number) from agent_memory": _END,
    "select max(id) from agent_event where container_id = ?": _END,
    "select min(id) from agent_event where container_id = ?": _END,
}  # fmt: skip
_ALONE: Final = re.compile(r"(SEARCH|SCAN) (\S+)(?: AS \S+)?(?: USING (?:COVERING )?INDEX (\S+) \(container_id=\?\))")
_SCAN: Final = re.compile(r"SCAN (\S+)")
_TABLE: Final = re.compile(r"\b(?:from|join|update|into) (\w+)(?: as)? (\w+)")
_KEYWORDS: Final = {"where", "join", "on", "set", "order", "limit", "group", "cross", "left", "values", "as"}
STATEMENT: Final = re.compile(r"(?:with|select|update|delete|insert)\b", re.IGNORECASE)


@pytest.fixture(scope="module")
def statements(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """The database of a server that every route was asked of, and what it ran."""
    home = tmp_path_factory.mktemp("home")
    SqliteStore.open(home / "data" / "server").close()  # the steps that make the schema are no statements of the store
    recorded = used(home)
    return home / "data" / "server", [json.loads(line) for line in recorded.read_text().splitlines()]


def used(home: Path, database_url: str = "") -> Path:
    """What a server ran (see `recording_server`) while every route was asked of it."""
    recorded = home / "statements"
    reading, writing = os.pipe()
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.server.recording_server", str(recorded), "--ready-fd", str(writing), "--port", "0"],
        pass_fds=(writing,), stdin=subprocess.DEVNULL,
        env=os.environ | {"MEMDIR_HOME": str(home), "MEMDIR_DATABASE_URL": database_url},
    )  # fmt: skip
    os.close(writing)
    try:
        assert select.select([reading], [], [], START_S)[0], "the server said nothing"
        assert os.read(reading, 100).strip() == b"ready"
        url = json.loads((home / "state" / "server.json").read_text())["url"]
        key = json.loads((home / "config" / "credentials.json").read_text())["api_key"]
        with httpx.Client(base_url=url, headers={"Authorization": f"Bearer {key}"}, timeout=120, trust_env=False) as client:
            use(client)
    finally:
        os.close(reading)
        process.terminate()
        assert process.wait(60) == 0
    return recorded


def fill(client: httpx.Client) -> None:
    """Notes, files and memories in a container, all read."""
    notes = [f"I prefer tea number {n}. Ada lives in Porto. See plan-{n}.md and ops@example.org." for n in range(60)]
    client.post("/v3/documents/batch", json={"containerTag": TAG, "contents": notes}).raise_for_status()
    for n in range(20):
        text = f"# Plan {n}\n\nThe ropes of berth {n} were mended by Ida Lund. See [next](plan-{n + 1}.md).\n"
        client.put(f"/v1/files/work/plan-{n}.md", params={"containerTag": TAG}, content=text.encode()).raise_for_status()
        client.put(f"/v1/files/memory/n{n}.md", params={"containerTag": TAG}, content=f"- Ida likes {n}\n".encode())
    until(lambda: not client.get("/v3/documents/processing", params={"containerTag": TAG}).json()["totalCount"], every_s=0.1)


def use(client: httpx.Client) -> None:
    """Fill a container, search it in every way, ask every route once, and fill it again, since some delete."""
    fill(client)
    for mode in ("documents", "memories", "hybrid"):
        for extra in ({}, {"filepath": "/work/"}, {"include": {"documents": True, "relatedMemories": True, "chunks": True}}):
            body = {"q": "who mended the ropes and what does Ada like", "containerTag": TAG, "searchMode": mode, **extra}
            client.post("/v4/search", json=body).raise_for_status()
    for mode in ("semantic", "literal", "regex"):
        client.post("/v1/search", json={"q": "ropes", "containerTag": TAG, "mode": mode, "waitMs": 10})
    client.post("/v1/search", json={"q": "ropes of plan", "containerTag": TAG, "filepath": "/work/", "explain": True})
    client.post("/v4/profile", json={"containerTag": TAG, "q": "tea"}).raise_for_status()
    listed = client.post("/v3/documents/list", json={"containerTags": [TAG], "limit": 5}).json()
    document = listed["memories"][0]["id"]
    places = {"{path:path}": "work/plan-1.md", "{name}": document, "{tag}": TAG, "{namespace}": TAG, "{version}": "1"}
    for method, path in ROUTES:
        if is_elsewhere(path) or (method, path) in {("DELETE", "/v3/container-tags/{tag}"), ("DELETE", "/v1/orgs/{owner}")}:
            continue
        body = EXAMPLES.get((method.lower(), path.replace(":path}", "}")))
        row = ROWS.get((method, path))
        url = re.sub(r"{[^}]+}", lambda found: places.get(found[0], "x"), path)
        content = json.dumps(body).replace('"DOCUMENT"', json.dumps(document)).encode() if body is not None else b"x"
        headers = {"Content-Type": "application/json"} if body is not None else {}
        sent = None if method in ("GET", "HEAD") else content
        client.request(method, url, params=row.params if row else None, content=sent, headers=headers)
    fill(client)


def plan(connection: apsw.Connection, sql: str) -> list[tuple[int, str]]:
    """The steps of a statement, each with the number of the query that it is a step of."""
    names = dict.fromkeys(re.findall(r":(\w+)", sql))
    rows = connection.execute(f"explain query plan {sql}", names or [None] * sql.count("?"))
    return [(int(row[1]), str(row[3])) for row in rows]


def unbounded(tables: set[str], sql: str, steps: list[tuple[int, str]]) -> list[str]:
    """Steps that read a table whole, or all rows of a container: not those of a query in a query, and not those in the order of
    an index of which a limit takes the first."""
    called = {name: name for name in tables}
    called |= {alias: table for table, alias in _TABLE.findall(sql) if table in tables and alias not in _KEYWORDS}
    sorted_ = {query for query, step in steps if "TEMP B-TREE FOR ORDER BY" in step}
    limited = re.search(r"\blimit\b", sql) is not None and not sql.startswith("select count(")
    found = []
    for query, step in steps:
        scanned, alone = _SCAN.match(step), _ALONE.match(step)
        if (alone or (scanned and scanned[1] in called)) and not (limited and " USING " in step and query not in sorted_):
            found.append(step)
    return found


def enlarge(connection: apsw.Connection) -> None:
    """Let the planner believe that every table is a thousand times as large."""
    connection.execute("analyze")
    for table, index, stat in connection.execute("select tbl, idx, stat from sqlite_stat1").fetchall():
        numbers = [int(part) for part in stat.split() if part.isdigit()]
        more = [numbers[0] * 1000] + [number if number == 1 else number * 1000 for number in numbers[1:]]
        text = " ".join(map(str, more))
        connection.execute("update sqlite_stat1 set stat = ? where tbl = ? and idx is ?", (text, table, index))
    connection.execute("analyze sqlite_schema")


@pytest.mark.promise("real.bounded")
@pytest.mark.parametrize("analysed", [False, True])
def test_no_statement_reads_more_than_it_returns(statements: tuple[Path, list[str]], analysed: bool) -> None:
    folder, ran = statements
    found = {}
    with apsw.Connection(str(folder / "memdir.db")) as connection:
        if analysed:
            enlarge(connection)
        tables = {name for (name,) in connection.execute("select name from sqlite_schema where type = 'table'")}
        tables.discard("sqlite_sequence")  # a row for each numbered table
        for sql in map(str.split, ran):
            text = " ".join(sql)
            if STATEMENT.match(text) and " where false" not in text and not any(text.startswith(known) for known in ALLOWED):
                bad = unbounded(tables, text, plan(connection, text))
                if bad:
                    found[text] = bad
    assert len(ran) > 250
    assert not found, json.dumps(found, indent=1)
