"""`memdir server jobs` and `memdir server jobs retry` against a real server whose store lost a content."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from memdir.store.sqlite.store import DATABASE_NAME, SqliteStore
from memdir.store.tree.operations import Put
from tests.servers import ServerProcess, start

Run = Callable[..., tuple[int, str, str]]
WAIT_S = 30.0


class Lossy:
    """A server with a document whose content is not there."""

    def __init__(self, home: Path) -> None:
        folder = home / "data" / "server"
        self.database = folder / DATABASE_NAME
        store = SqliteStore.open(folder)
        container = store.containers.ensure("local", "notes")
        with store.blobs.upload() as upload:
            upload.write(b"words that come back")
            document = store.files.apply(container, Put(path="/lost.md", blob=upload.finish())).document
        assert document is not None
        self.document_id = document.id
        self.hash = document.content_hash
        with store.db.write() as connection:
            connection.execute("update blob set hash = 'elsewhere' where hash = ?", (self.hash,))
        store.close()
        self.process: ServerProcess = start(home, "--port", "0")

    def heal(self) -> None:
        """The content is found again."""
        store = SqliteStore.open(self.database.parent)
        with store.db.write() as connection:
            connection.execute("update blob set hash = ? where hash = 'elsewhere'", (self.hash,))
        store.close()

    def status(self) -> str:
        with self.process.client() as client:
            return str(client.get(f"/v3/documents/{self.document_id}").json()["status"])

    def until(self, status: str) -> None:
        deadline, pause = time.monotonic() + WAIT_S, threading.Event()
        while self.status() != status:
            assert time.monotonic() < deadline
            pause.wait(0.05)


@pytest.fixture(scope="module")
def lossy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lossy]:
    made = Lossy(tmp_path_factory.mktemp("home"))
    yield made
    assert made.process.stop() == 0


@pytest.fixture
def asked(lossy: Lossy, monkeypatch: pytest.MonkeyPatch) -> Lossy:
    """Commands talk to that server."""
    monkeypatch.setenv("MEMDIR_SERVER_URL", lossy.process.url)
    monkeypatch.setenv("MEMDIR_API_KEY", lossy.process.key)
    return lossy


def rows_of(run: Run, *arguments: str) -> list[dict[str, Any]]:
    code, out, _ = run("server", "jobs", "--json", *arguments)
    rows: list[dict[str, Any]] = json.loads(out)
    assert code == (0 if rows else 1)
    return rows


@pytest.mark.promise("pipeline.dead-letters")
def test_what_was_given_up_is_listed_with_its_reason_and_tried_again(run: Run, asked: Lossy) -> None:
    asked.until("failed")
    (row,) = rows_of(run, "--failed")
    assert row.pop("at").endswith("Z")
    assert row == {
        "document_id": asked.document_id,
        "kind": "index",
        "container": "notes",
        "path": "/lost.md",
        "state": "failed",
        "priority": "interactive",
        "attempts": 1,
        "reason": "the content is gone",
    }
    code, out, _ = run("server", "jobs", "--failed", "--container", "notes")
    assert code == 0
    assert f"{asked.document_id}  notes/lost.md: the content is gone (tried 1 time)" in out
    assert rows_of(run, "--container", "another") == []
    assert run("server", "jobs", "retry", "--all", "--container", "another")[0] == 1
    code, _, err = run("server", "jobs", "retry", "no-such-document")
    assert (code, "no-such-document" in err) == (2, True)
    asked.heal()
    assert run("server", "jobs", "retry", asked.document_id)[:2] == (0, "1 job queued again\n")
    asked.until("done")
    assert rows_of(run, "--failed") == []
    assert run("server", "jobs", "retry", "--all")[0] == 1


@pytest.mark.parametrize("arguments", [(), ("x", "--all"), ("x", "--container", "notes")])
def test_what_to_try_again_has_to_be_said(run: Run, arguments: tuple[str, ...]) -> None:
    assert run("server", "jobs", "retry", *arguments)[0] == 2
