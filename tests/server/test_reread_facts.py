"""After an update facts are read again by the rules of today."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import httpx

from memdir.server.background.reread_facts import FILE_NAME, ask_when_rules_changed, rules
from memdir.store.jobs.queue import BULK
from memdir.store.store import Store
from memdir.store.types import Container
from tests.server.conftest import Putting, until
from tests.servers import start


def test_who_was_read_by_other_rules_is_read_again_once(
    store: Store, container: Container, put: Putting, tmp_path: Path
) -> None:
    put("/memory/a.md", b"I live in Porto.")
    put("/notes/b.md", b"I live in Porto.")
    other = store.containers.ensure("another", "theirs")
    for job in store.jobs.claim("index", limit=10):
        store.jobs.finish([job])
    with store.db.write() as connection:
        connection.execute("update document set status = 'done'")
    assert ask_when_rules_changed(store, tmp_path, with_model=False) == 1
    (job,) = store.jobs.claim("memory", limit=10)
    assert (job.container_id, job.priority) == (container.id, BULK)
    store.jobs.finish([job])
    assert ask_when_rules_changed(store, tmp_path, with_model=False) == 0
    (tmp_path / FILE_NAME).write_text("those of last year")
    assert ask_when_rules_changed(store, tmp_path, with_model=True) == 0, "a model would be paid for"
    assert (tmp_path / FILE_NAME).read_text() == rules()
    assert store.containers.ids(after=0, limit=10) == [container.id, other.id]


def test_a_server_that_starts_after_an_update_drops_what_the_rules_do_not_say_any_more(tmp_path: Path) -> None:
    running = start(tmp_path, "--port", "0")

    def told(client: httpx.Client) -> str:
        return client.get("/v1/profile", params={"containerTag": "notes"}).text

    with running.client() as client:
        client.put("/v1/files/memory/me.md", params={"containerTag": "notes"}, content=b"I live in Porto.\n").raise_for_status()
        until(lambda: "lives in Porto" in told(client) or "live in Porto" in told(client))
    assert running.stop() == 0
    folder = next(tmp_path.rglob("memdir.db")).parent
    with sqlite3.connect(folder / "memdir.db") as database:
        assert database.execute("update memory set text = 'Engine: pypdfium2'").rowcount == 1
    database.close()
    (folder / FILE_NAME).write_text("those of last year")
    again = start(tmp_path, "--port", "0")
    try:
        with again.client() as client:
            until(lambda: "Porto" in told(client) and "Engine" not in told(client))
    finally:
        assert again.stop() == 0
