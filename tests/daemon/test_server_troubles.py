"""A real mount whose real server halts, refuses the key, or has no room."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path

import pytest

from memdir.client.credentials import Credentials, save, stamp
from memdir.client.local import ensure_server, hanging_pid, running_server, stop_server
from memdir.core.paths import app_paths
from tests.daemon.test_lazy import put
from tests.daemon.test_mount import STOP_S, Home, home, until
from tests.daemon.test_server_lives import at_server, memdir, pushed

pytestmark = pytest.mark.mount
__all__ = ["home"]


def new_key(name: str, *options: str) -> str:
    """A key that the local server's own key makes."""
    made = memdir("server", "key", "create", "--name", name, *options, "--json", MEMDIR_CREDENTIALS="local")
    return str(json.loads(made)["key"])


def test_a_search_at_a_server_that_halted_is_answered_here_within_seconds(home: Home) -> None:
    record = home.mount()
    (home.place / "a.md").write_text("the night train to Vienna\n")
    until(lambda: bool(home.call(record, "sync", wait=True, timeout_s=30)["searchable"]))
    server = running_server(app_paths())
    assert server is not None
    os.kill(server.pid, signal.SIGSTOP)
    try:
        began_s = time.monotonic()
        answer = home.call(record, "grep", q="night train", paths=["/"], limit=5)
        took_s = time.monotonic() - began_s
        assert answer["offline"] is True
        assert "does not answer" in str(answer["note"])
        assert [hit["path"] for hit in answer["hits"]] == ["/a.md"]  # type: ignore[attr-defined]
        assert took_s < 10, "three seconds on a quiet machine"
        assert hanging_pid(app_paths()) == server.pid
        (home.place / "b.md").write_text("written while it halts\n")
        began_s = time.monotonic()
        assert home.call(record, "grep", q="halts", paths=["/"], limit=5)["offline"] is True
        assert time.monotonic() - began_s < 20
    finally:
        os.kill(server.pid, signal.SIGCONT)
    until(lambda: bool(home.server_of(record)["online"]))
    pushed(home, record)
    assert at_server("/b.md") == b"written while it halts\n"


@pytest.mark.promise("sync.key")
def test_a_revoked_key_keeps_the_queue_and_a_new_one_goes_on_by_itself(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    info = ensure_server(app_paths())
    first = new_key("first")
    file = save(app_paths(), Credentials(url=info.url, api_key=first, source="user"))
    monkeypatch.setenv("MEMDIR_CREDENTIALS", str(file))
    record = home.mount()
    (home.place / "a.md").write_text("one\n")
    pushed(home, record)
    memdir("server", "key", "revoke", "first", MEMDIR_CREDENTIALS="local")
    (home.place / "b.md").write_text("two\n")
    until(lambda: not home.server_of(record)["online"])
    status = home.call(record, "status")
    assert status["queue_length"] == 1
    assert status["parked"] == 0
    assert "401" in str(home.server_of(record)["error"])
    assert "memdir login" in str(home.server_of(record)["hint"])
    log = Path(record.log_file).read_text(encoding="utf-8")
    assert log.count("HTTP 401") == 1, "told once"
    read_only = new_key("reader", "--read-only")
    before = stamp(app_paths())
    save(app_paths(), Credentials(url=info.url, api_key=read_only, source="user"))
    assert stamp(app_paths()) != before
    began_s = time.monotonic()
    until(lambda: home.call(record, "status")["parked"] == 1)
    assert time.monotonic() - began_s < 15
    assert home.server_of(record)["online"], "what the key may do goes on"
    writer = new_key("writer")
    save(app_paths(), Credentials(url=info.url, api_key=writer, source="user"))
    until(lambda: home.call(record, "status")["parked"] == 0)
    pushed(home, record)
    monkeypatch.setenv("MEMDIR_CREDENTIALS", "local")
    assert at_server("/b.md") == b"two\n"


@pytest.mark.promise("sync.poller")
def test_what_the_server_cannot_read_is_told_in_the_mount(home: Home) -> None:
    content = b"words, many of them in one line\n" * 9000
    put({"/good.md": b"fine\n", "/broken.txt": content})
    folder, archive = Path(ensure_server(app_paths()).data_dir), home.place.parent / "backup"
    stop_server(app_paths(), timeout_s=STOP_S)
    for file in folder.rglob("*"):  # the contents are gone, and a restore makes the server read everything again
        if file.is_file() and file.stat().st_size == len(content):
            file.unlink()
    memdir("server", "backup", str(archive), code=1)
    memdir("server", "restore", str(archive), "--force", code=1)
    record = home.mount()
    until(lambda: home.call(record, "status")["failed"] == 1)
    until(lambda: home.call(record, "status")["processing"] == 0)
    told = (home.place / ".memdir" / "errors" / "broken.txt.txt").read_text()
    assert told.startswith("/broken.txt\n\nthe server keeps it and cannot search it: ")
    assert sorted(path.name for path in home.place.iterdir()) == ["broken.txt", "good.md", "profile.md"]
    assert "the server could not read 1 file" in memdir("status", "notes")
    assert "1 change queued again" in memdir("retry", str(home.place / "broken.txt"))
    until(lambda: home.call(record, "status")["failed"] == 1)
    (home.place / "broken.txt").write_text("short\n")
    until(lambda: (home.call(record, "status")["failed"], home.call(record, "status")["processing"]) == (0, 0))
