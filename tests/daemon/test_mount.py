"""A real mount with a real server: up, written, searched, killed, up again, away."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from memdir.client.http import Client
from memdir.client.local import ensure_server, running_server, stop_server
from memdir.core.errors import BusyError, MemdirError
from memdir.core.paths import app_paths
from memdir.daemon import launch
from memdir.daemon.control import ControlClient, DaemonGoneError
from memdir.daemon.registry import MountRecord, MountRegistry, MountSpec

pytestmark = pytest.mark.mount

STOP_S = 60.0


def gone(pid: int) -> bool:
    """Wait for the end of a process."""
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([handle], [], [], STOP_S)[0])
    finally:
        os.close(handle)


def until(condition: Callable[[], bool], timeout_s: float = 60.0) -> None:
    """Ask again until it holds; each question waits in the daemon, so this does not spin."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"


class Home:
    """One user's memdir in a temporary folder."""

    def __init__(self, tmp_path: Path) -> None:
        self.place = tmp_path / "notes"
        self.place.mkdir()
        self.registry = MountRegistry(app_paths())

    def mount(
        self, name: str = "notes", *, place: Path | None = None, sync: bool = True, read_only: bool = False
    ) -> MountRecord:
        spec = MountSpec(name=name, path=str(place or self.place), sync=sync, read_only=read_only, drain_timeout_s=20.0)
        return launch.start(spec, foreground=False, timeout_s=60.0)

    def call(self, record: MountRecord, op: str, **args: object) -> dict[str, object]:
        return ControlClient(record.socket_file).call(op, 90.0, **args)

    def server_of(self, record: MountRecord) -> dict[str, object]:
        server = self.call(record, "status")["server"]
        assert isinstance(server, dict)
        return server

    def stop(self, record: MountRecord) -> int:
        left = self.call(record, "stop", drain_timeout_s=20.0)["left"]
        assert record.pid is not None
        assert gone(record.pid)
        assert isinstance(left, int)
        return left


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Home]:
    monkeypatch.setenv("MEMDIR_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("MEMDIR_SERVER_URL", raising=False)
    one = Home(tmp_path)
    yield one
    for record in one.registry.all():
        if record.pid is not None and record.is_alive():
            os.kill(record.pid, signal.SIGTERM)
            assert gone(record.pid)
    stop_server(app_paths(), timeout_s=STOP_S)


def mounted(place: Path) -> bool:
    return f" {place} " in Path("/proc/self/mountinfo").read_text(encoding="utf-8")


def test_the_main_job_from_a_write_to_a_search_and_back(home: Home) -> None:
    record = home.mount()
    assert mounted(home.place)
    assert (home.place / "profile.md").read_text().startswith("# Memory Profile\n")
    (home.place / "travel.md").write_text("We take the night train to Vienna on Friday.\n")
    (home.place / "work").mkdir()
    (home.place / "work" / "b.md").write_text("The invoice was paid late.\n")
    until(lambda: bool(home.call(record, "sync", wait=True, timeout_s=30)["searchable"]))
    answer = home.call(record, "grep", q="railway journey to Austria", paths=["/"], limit=5)
    hits = answer["hits"]
    assert isinstance(hits, list)
    assert (hits[0]["path"], hits[0]["start_line"], hits[0]["kind"]) == ("/travel.md", 1, "chunk")
    (home.place / "travel.md").write_text("We fly to Lisbon instead.\n")
    hits = home.call(record, "grep", q="airplane to Portugal", paths=["/travel.md"], limit=5, wait_ms=20_000)["hits"]
    assert isinstance(hits, list)
    assert "Lisbon" in hits[0]["text"], "what was just written is found"
    scoped = home.call(record, "grep", q="airplane to Portugal", paths=["/work"], limit=5)["hits"]
    assert isinstance(scoped, list)
    assert {hit["path"] for hit in scoped} <= {"/work/b.md"}
    status = home.call(record, "status")
    assert {"name", "path", "pid", "uptime_s", "queue_length", "server"} <= set(status)
    assert home.stop(record) == 0
    assert not mounted(home.place)
    assert home.registry.get(record.id).state == "stopped"
    again = home.mount()
    assert again.id == record.id
    assert (home.place / "travel.md").read_text() == "We fly to Lisbon instead.\n"


def test_the_profile_is_there_at_once_read_only_and_grows_with_the_memory(home: Home) -> None:
    record = home.mount()
    profile = home.place / "profile.md"
    assert "## Core Knowledge" in profile.read_text()
    with pytest.raises(OSError, match="Read-only"):
        profile.write_text("mine")
    (home.place / "user.md").write_text("# About me\n\n- I prefer tea over coffee.\n- My name is Ada Winter.\n")

    def shown() -> bool:
        home.call(record, "sync", wait=True, timeout_s=30)
        return "tea" in profile.read_text()

    until(shown)
    home.stop(record)
    stop_server(app_paths(), timeout_s=STOP_S)
    home.mount(sync=False)
    assert "tea" in profile.read_text(), "the last known profile is shown without a server"


def test_after_a_kill_a_new_mount_clears_the_dead_one_and_nothing_is_lost(home: Home) -> None:
    record = home.mount()
    written = {}
    for number in range(50):
        path = home.place / f"{number}.md"
        path.write_text(f"text {number}\n")
        written[path] = f"text {number}\n"
    assert record.pid is not None
    os.kill(record.pid, signal.SIGKILL)
    assert gone(record.pid)
    with pytest.raises(DaemonGoneError):
        home.call(record, "status")
    assert home.registry.get(record.id).state == "dead"
    again = home.mount()
    assert again.id == record.id
    assert {path: path.read_text() for path in written} == written
    until(lambda: bool(home.call(again, "sync", wait=True, timeout_s=30)["drained"]))
    assert home.call(again, "queue", limit=10)["rows"] == []


def test_sigterm_unmounts_cleanly(home: Home) -> None:
    record = home.mount(sync=False)
    (home.place / "a").write_bytes(b"1")
    assert record.pid is not None
    os.kill(record.pid, signal.SIGTERM)
    assert gone(record.pid)
    assert not mounted(home.place)
    assert home.registry.get(record.id).pid is None
    assert not Path(record.socket_file).exists()


def test_an_umount_from_outside_ends_the_daemon(home: Home) -> None:
    record = home.mount(sync=False)
    subprocess.run(["umount", str(home.place)], check=True, timeout=30)
    assert record.pid is not None
    assert gone(record.pid)
    assert home.registry.get(record.id).state == "stopped"


def test_without_sync_no_server_is_started_and_grep_works_by_words(home: Home) -> None:
    record = home.mount(sync=False)
    (home.place / "a.md").write_text("first\nthe harbour lights\n")
    answer = home.call(record, "grep", q="harbour light", paths=["/"], limit=5)
    hits = answer["hits"]
    assert isinstance(hits, list)
    assert (hits[0]["path"], hits[0]["start_line"]) == ("/a.md", 2)
    assert answer["note"]
    assert not app_paths().server_state_file.exists()
    with pytest.raises(MemdirError, match="without sync"):
        home.call(record, "sync", wait=True, timeout_s=5)


@pytest.mark.promise("sync.offline")
def test_a_mount_without_a_server_answers_searches_and_says_so_and_all_arrives_when_there_is_one(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMDIR_SERVER_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("MEMDIR_API_KEY", "none")
    record = home.mount()
    (home.place / "a.md").write_text("the zebra crossing\n")
    until(lambda: home.server_of(record)["since"] is not None)  # sync is up and has found nobody
    answer = home.call(record, "grep", q="zebra", paths=["/"], limit=5)
    hits = answer["hits"]
    assert answer["offline"] is True
    assert isinstance(hits, list)
    assert hits[0]["path"] == "/a.md"
    status = home.call(record, "status")
    server = status["server"]
    assert isinstance(server, dict)
    assert server["online"] is False
    assert server["since"] is not None
    assert status["queue_length"] == 1
    (home.place / "d").mkdir()
    (home.place / "d" / "b.md").write_text("of the first mount\n")
    (home.place / "gone.md").write_text("not for long\n")
    assert home.call(record, "stop", drain_timeout_s=0)["left"] == 4
    assert record.pid is not None
    assert gone(record.pid)
    record = home.mount()  # still nobody there
    (home.place / "d").rename(home.place / "e")
    (home.place / "gone.md").unlink()
    (home.place / "e" / "c.md").write_text("of the second\n")
    (home.place / "e" / "b.md").chmod(0o600)
    assert (home.place / "e" / "b.md").read_text() == "of the first mount\n"
    home.call(record, "stop", drain_timeout_s=0)
    assert record.pid is not None
    assert gone(record.pid)
    monkeypatch.delenv("MEMDIR_SERVER_URL")
    monkeypatch.delenv("MEMDIR_API_KEY")
    again = home.mount()
    until(lambda: bool(home.call(again, "sync", wait=True, timeout_s=30)["drained"]))
    server = ensure_server(app_paths())
    with Client(server.url, server.api_key) as client:
        entries = {entry.path: entry for entry in client.list_files("notes").entries}
        assert set(entries) == {"/a.md", "/e", "/e/b.md", "/e/c.md"}
        assert client.read_file("notes", "/e/b.md") == b"of the first mount\n"
        assert client.read_file("notes", "/e/c.md") == b"of the second\n"
    assert entries["/e/b.md"].mode & 0o777 == 0o600


def test_a_stopped_server_stays_away_until_somebody_asks_for_it(home: Home) -> None:
    record = home.mount()
    until(lambda: bool(home.call(record, "sync", wait=True, timeout_s=30)["searchable"]))
    assert stop_server(app_paths(), timeout_s=STOP_S)
    (home.place / "a.md").write_text("the zebra crossing\n")
    hits = home.call(record, "grep", q="zebra", paths=["/"], limit=5, mode="literal")["hits"]
    assert isinstance(hits, list)
    assert hits[0]["path"] == "/a.md"
    until(lambda: not _server_of(home.call(record, "status"))["online"])
    assert running_server(app_paths()) is None, "a mount's own loops leave it stopped"
    answer = home.call(record, "grep", q="zebra", paths=["/"], limit=5, wait_ms=20_000)
    hits = answer["hits"]
    assert answer["offline"] is False, answer["note"]
    assert isinstance(hits, list)
    assert hits[0]["path"] == "/a.md"
    assert running_server(app_paths()) is not None
    assert stop_server(app_paths(), timeout_s=STOP_S)
    until(lambda: bool(home.call(record, "sync", wait=True, timeout_s=30)["searchable"]))


def _server_of(status: dict[str, object]) -> dict[str, object]:
    server = status["server"]
    assert isinstance(server, dict)
    return server


def test_an_unmount_right_after_the_mount_counts_what_nobody_has_read_yet(home: Home) -> None:
    record = home.mount(sync=False)
    for number in range(20):
        (home.place / f"{number}.md").write_text("1\n")
    home.stop(record)
    record = home.mount()
    left = home.call(record, "stop", drain_timeout_s=0)["left"]
    assert left == 20


def test_what_was_deleted_and_renamed_in_a_mount_without_sync_reaches_the_server_later(home: Home) -> None:
    record = home.mount()
    for name in ("kept.md", "deleted.md", "renamed.md"):
        (home.place / name).write_text(f"{name}\n")
    until(lambda: bool(home.call(record, "sync", wait=True, timeout_s=30)["drained"]))
    assert home.stop(record) == 0
    record = home.mount(sync=False)
    (home.place / "deleted.md").unlink()
    (home.place / "renamed.md").rename(home.place / "other.md")
    home.stop(record)
    record = home.mount()
    until(lambda: _paths_at_the_server() == ["/kept.md", "/other.md"])
    assert sorted(entry.name for entry in home.place.glob("*.md")) == ["kept.md", "other.md", "profile.md"]


def _paths_at_the_server() -> list[str]:
    found = running_server(app_paths())
    if found is None:
        return []
    with Client(found.url, found.api_key) as client:
        return [entry.path for entry in client.list_files("notes").entries]


def test_a_read_only_mount_refuses_writes(home: Home) -> None:
    record = home.mount(sync=False, read_only=True)
    with pytest.raises(OSError, match="Read-only"):
        (home.place / "a").write_bytes(b"1")
    home.stop(record)


def test_a_place_can_be_mounted_only_once(home: Home, tmp_path: Path) -> None:
    home.mount(sync=False)
    with pytest.raises(BusyError, match="already mounted"):
        home.mount(sync=False)
    with pytest.raises(BusyError, match="already mounted as notes"):
        home.mount("other", sync=False)


def test_a_start_that_fails_says_why_and_leaves_no_record(home: Home, tmp_path: Path) -> None:
    with pytest.raises(MemdirError, match="does not exist"):
        home.mount(place=tmp_path / "missing", sync=False)
    assert home.registry.all() == []


def test_two_mounts_of_one_memory_see_each_other(home: Home, tmp_path: Path) -> None:
    second_place = tmp_path / "second"
    second_place.mkdir()
    first = home.mount()
    second = home.mount(place=second_place)
    assert first.id != second.id
    (home.place / "shared.md").write_text("from the first\n")
    until(lambda: bool(home.call(first, "sync", wait=True, timeout_s=30)["drained"]))

    def arrived() -> bool:
        home.call(second, "sync", wait=True, timeout_s=5)
        return (second_place / "shared.md").exists()

    until(arrived)
    assert (second_place / "shared.md").read_text() == "from the first\n"


def test_a_mount_in_use_is_unmounted_all_the_same(home: Home) -> None:
    record = home.mount(sync=False)
    (home.place / "a").write_bytes(b"1")
    with open(home.place / "a", "rb"):
        assert record.pid is not None
        os.kill(record.pid, signal.SIGTERM)
        assert gone(record.pid)
    assert not mounted(home.place)
