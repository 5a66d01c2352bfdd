"""The engine with its threads and the machine's clock."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from memdir.fs.memory import MemoryFs
from memdir.fs.path import is_within
from memdir.fs.types import ROOT_INO, Owner
from memdir.sync.engine import WORKERS, Engine
from memdir.sync.push.pusher import INLINE_MAX_BYTES
from tests.sync.fake_server import FakeServer

OWNER = Owner(os.getuid(), os.getgid())


class Running:
    def __init__(self, folder: Path, server: FakeServer) -> None:
        self.fs = MemoryFs(uid=OWNER.uid, gid=OWNER.gid)
        self.engine = Engine(folder=folder, container="c", tree=self.fs, factory=server.client)
        self.engine.start()

    def write(self, name: bytes, content: bytes) -> None:
        ino = self.fs.create(ROOT_INO, name, 0o100644, OWNER).ino
        self.fs.write(ino, 0, content)


@pytest.fixture
def server() -> FakeServer:
    return FakeServer()


@pytest.fixture
def running(tmp_path: Path, server: FakeServer) -> Iterator[Running]:
    one = Running(tmp_path, server)
    yield one
    server.down = True
    with server.lock:
        server.lock.notify_all()  # end the long poll, so that no thread outlives the test
    one.engine.stop()


def eventually(server: FakeServer, running: Running, path: str, content: bytes) -> bool:
    """Wait until the mount holds `content`, woken by the engine's own events."""
    deadline = time.monotonic() + 30.0
    while time.monotonic() < deadline:
        entry = running.fs.fact(path)
        if entry is not None and running.fs.read(entry, 0, entry.size) == content:
            return True
        running.engine.flush("/", 0.2)
    return False


def test_a_flush_skips_the_debounce_and_returns_when_all_is_pushed(running: Running, server: FakeServer) -> None:
    running.engine.flush("/", 30.0)
    for number in range(200):
        running.write(str(number).encode(), b"x")
    assert running.engine.flush("/", 60.0) == []
    assert len(server.tree()) == 200
    assert running.engine.last_pushed_seq == 200


def test_a_flush_of_a_scope_waits_for_nothing_else(running: Running, server: FakeServer) -> None:
    server.reject["/bad"] = 500
    running.write(b"bad", b"1")
    running.write(b"good", b"2")
    assert running.engine.flush("/good", 30.0) == []
    assert "/good" in server.tree()


def test_a_remote_change_arrives_by_itself(running: Running, server: FakeServer) -> None:
    running.engine.flush("/", 30.0)
    server.write("/news", b"fresh")
    assert eventually(server, running, "/news", b"fresh")


def test_a_flush_without_a_server_returns_soon_and_says_what_waits(tmp_path: Path, server: FakeServer) -> None:
    server.down = True
    running = Running(tmp_path, server)
    running.write(b"a", b"1")
    started_s = time.monotonic()
    assert running.engine.flush("/", 60.0) == ["/a"]
    assert time.monotonic() - started_s < 20.0
    assert running.engine.stop() == 1


def test_what_was_left_is_pushed_by_the_next_start(tmp_path: Path, server: FakeServer) -> None:
    server.down = True
    first = Running(tmp_path, server)
    first.write(b"a", b"1")
    assert first.engine.stop() == 1
    server.down = False
    second = Engine(folder=tmp_path, container="c", tree=first.fs, factory=server.client)
    second.start()
    try:
        assert second.flush("/", 60.0) == []
        assert server.tree() == {"/a": ("file", b"1")}
    finally:
        server.down = True
        with server.lock:
            server.lock.notify_all()
        assert second.stop() == 0


def test_a_stop_does_not_wait_for_the_long_poll(tmp_path: Path, server: FakeServer) -> None:
    running = Running(tmp_path, server)
    running.engine.flush("/", 30.0)
    polling = threading.Event()
    real = server._feed

    def feed(*args: object):  # type: ignore[no-untyped-def]
        polling.set()
        return real(*args)  # type: ignore[arg-type]

    server._feed = feed  # type: ignore[method-assign]
    server.write("/wake", b"")
    assert polling.wait(30.0)
    started_s = time.monotonic()
    running.engine.stop()
    assert time.monotonic() - started_s < 15.0, "a long poll takes 25 s"
    server.down = True
    with server.lock:
        server.lock.notify_all()


@pytest.mark.promise("sync.parallel")
def test_eight_large_files_are_on_their_way_at_the_same_time_and_small_ones_with_them(
    running: Running, server: FakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    running.engine.flush("/", 30.0)
    together = threading.Barrier(WORKERS, timeout=60.0)
    handle = server.handle

    def meet(request: httpx.Request) -> tuple[int, object, dict[str, str]]:
        if request.method == "PUT":
            together.wait()  # answers none before all of them are here
        return handle(request)

    monkeypatch.setattr(server, "handle", meet)
    for number in range(WORKERS):
        running.write(f"large-{number}".encode(), bytes([number]) * (INLINE_MAX_BYTES + 1))
        running.write(f"small-{number}".encode(), b"x")
    assert running.engine.flush("/", 100.0) == []
    assert WORKERS == 8
    assert len(server.tree()) == 2 * WORKERS
    assert not together.broken


@pytest.mark.promise("sync.parallel")
def test_what_stands_in_one_another_is_never_pushed_at_the_same_time(
    running: Running, server: FakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    running.engine.flush("/", 30.0)
    lock, under_way, overlaps = threading.Lock(), list[str](), list[tuple[str, str]]()
    handle = server.handle

    def watch(request: httpx.Request) -> tuple[int, object, dict[str, str]]:
        if request.method == "POST":
            paths = [item["path"] for item in json.loads(request.content).get("operations", [])]
        else:
            paths = [request.url.path.removeprefix("/v1/files")] if request.method == "PUT" else []
        with lock:
            overlaps.extend((new, old) for new in paths for old in under_way if is_within(new, old) or is_within(old, new))
            under_way.extend(paths)
        try:
            return handle(request)
        finally:
            with lock:
                for path in paths:
                    under_way.remove(path)

    monkeypatch.setattr(server, "handle", watch)
    for number in range(12):
        folder = running.fs.mkdir(ROOT_INO, f"d{number}".encode(), 0o755, OWNER).ino
        for name, size in ((b"large", INLINE_MAX_BYTES + 1), (b"small", 1), (b"large2", INLINE_MAX_BYTES + 1)):
            running.fs.write(running.fs.create(folder, name, 0o100644, OWNER).ino, 0, b"x" * size)
    assert running.engine.flush("/", 100.0) == []
    assert len(server.tree()) == 48
    assert overlaps == []
