"""No room: at the server, and on the disk with the mount's records. Nothing is lost, it is told, and it goes on by itself."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from memdir.core.sqlite import Connection, DiskFullError
from tests.sync.conftest import Mount
from tests.sync.fake_server import FakeServer

pytestmark = pytest.mark.promise("sync.disk-full")

CUTS_MAX = 200


class Disk:
    """Under the records of a mount: the transaction `number` and the `length - 1` after it find no room when they commit."""

    def __init__(self, mount: Mount, number: int, length: int) -> None:
        self.count = 0
        self.mount = mount
        database = mount.engine._db
        self._real, self._refused = database.write, range(number, number + length)
        database.write = self._write  # type: ignore[method-assign]

    @property
    def was_met(self) -> bool:
        return self.count > self._refused.start

    @contextmanager
    def _write(self, *, durable: bool = False) -> Iterator[Connection]:
        number, self.count = self.count, self.count + 1
        with self._real(durable=durable) as tx:
            yield tx
            if number in self._refused:
                raise DiskFullError("no room")

    def sync(self) -> None:
        """As the loops do: what finds no room is tried again."""
        for _ in range(60):
            try:
                self.mount.sync()
                return
            except DiskFullError:
                self.mount.clock.advance(1.0)
        raise AssertionError("it does not go on")


@pytest.mark.parametrize("length", [1, 3])
def test_wherever_the_records_find_no_room_a_push_and_a_pull_lose_nothing(tmp_path: Path, length: int) -> None:
    for number in range(CUTS_MAX):
        server = FakeServer()
        mount = Mount(tmp_path / str(number), server)
        for path in ("/edited", "/theirs", "/deleted", "/gone", "/renamed", "/both"):
            mount.write(path, b"old")
        mount.mkdir("/d")
        mount.write("/d/a", b"a")
        mount.mkdir("/server-renames")
        mount.write("/server-renames/a", b"a")
        mount.sync()
        disk = Disk(mount, number, length)
        mount.write("/edited", b"ours")
        mount.write("/new", b"new")
        mount.write("/large", b"l" * 100_000)
        mount.rm("/deleted")
        mount.mv("/renamed", "/other-name")
        mount.mv("/d", "/e")
        mount.write("/both", b"ours")
        server.write("/both", b"theirs")
        server.write("/theirs", b"theirs")
        server.write("/their-new", b"new")
        server.remove("/gone")
        server.rename("/server-renames", "/was-renamed")
        disk.sync()
        met = disk.was_met
        wanted = {
            "/edited": b"ours", "/new": b"new", "/large": b"l" * 100_000, "/other-name": b"old", "/e/a": b"a",
            "/theirs": b"theirs", "/their-new": b"new", "/was-renamed/a": b"a", "/both": b"theirs",
        }  # fmt: skip
        found = {path: content for path, (kind, content) in mount.tree().items() if kind == "file"}
        copies = [content for path, content in found.items() if path not in wanted]
        assert {path: found.get(path) for path in wanted} == wanted, number
        assert copies == [b"ours"], f"the side of a conflict, once: {number} {sorted(found)}"
        assert server.tree() == mount.tree(), number
        mount.engine.close()
        if not met:
            assert number > 10
            return
    raise AssertionError(f"more than {CUTS_MAX} transactions")


@pytest.mark.parametrize("whole", [True, False], ids=["every request", "one of a batch"])
def test_a_server_without_room_is_told_keeps_everything_waiting_and_is_asked_less_and_less(
    mount: Mount, server: FakeServer, whole: bool
) -> None:
    mount.write("/a", b"old")
    mount.mkdir("/d")
    mount.write("/d/a", b"1")
    mount.sync()
    mount.write("/a", b"new")
    mount.write("/large", b"2" * 100_000)
    mount.mv("/d", "/e")
    if whole:
        for call in (("POST", "/v1/files:batch"), ("POST", "/v1/files:move"), ("PUT", "/v1/files/")):
            server.fault(*call, status=507, times=1_000_000)
    else:
        server.reject = {"/a": 507, "/large": 507}
    server.requests.clear()
    for _ in range(100):
        mount.step()
    status = mount.engine.status()
    assert status.trouble == "the server's disk is full; what waits goes on when there is room"
    assert status.link.online, "reading goes on"
    assert status.parked == 0
    assert status.queue_length == (4 if whole else 2), "two files, a renamed folder and its row"
    assert {row.error for row in mount.engine.queue_rows(9) if row.attempts} == {"the server's disk is full"}
    assert len([request for request in server.requests if not request.startswith("GET")]) < 60, "300 seconds"
    server.write("/theirs", b"3")
    mount.step()
    assert mount.read("/theirs") == b"3"
    mount.restart()
    mount.write("/a", b"newer")
    mount.step()
    server.faults.clear()
    server.reject.clear()
    mount.clock.advance(300)
    mount.sync()
    assert server.tree() == mount.tree()
    assert server.tree()["/a"] == ("file", b"newer")
    status = mount.engine.status()
    assert (status.trouble, status.conflicts) == (None, 0)


def test_what_is_given_up_while_the_server_has_no_room_is_no_trouble_any_more(mount: Mount, server: FakeServer) -> None:
    server.reject["/a"] = 507
    mount.write("/a", b"1")
    mount.step()
    mount.step()
    assert "server's disk is full" in (mount.engine.status().trouble or "")
    mount.rm("/a")
    mount.sync()
    assert mount.engine.status().trouble is None


def test_an_answer_about_files_in_work_that_finds_no_room_is_asked_for_again(mount: Mount, server: FakeServer) -> None:
    server.in_pipeline["/a"] = None
    mount.write("/a", b"1")
    mount.sync()
    del server.in_pipeline["/a"]
    disk = Disk(mount, 0, 1)
    mount.clock.advance(60)
    assert not mount.engine.inflight.poll_if_due(), "an idle mount has nothing to lose, and no trouble that would stay"
    assert disk.was_met
    assert mount.engine.status().progress.files == 1
    mount.clock.advance(60)
    assert mount.engine.inflight.poll_if_due()
    assert mount.engine.status().progress.files == 0
