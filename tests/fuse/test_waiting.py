"""Readers of contents that are on the server only: they wait, alone, and never for ever."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

import pytest

from memdir.fs.errors import FsError
from memdir.fs.fuse.mounting import unmount_path
from memdir.fs.fuse.waiting import WAITING_MAX, WaitingRequests
from memdir.fs.source import Brought
from tests.fuse.harness import MountProcess
from tests.fuse.test_names import refused

pytestmark = pytest.mark.mount
T = TypeVar("T")
LONG_S = 60.0


@pytest.fixture(params=["memory", "sqlite"])
def mount(request: pytest.FixtureRequest, tmp_path: Path, mountpoint: Path) -> Iterator[MountProcess]:
    (tmp_path / "data").mkdir()
    options = {"contents_timeout_s": LONG_S}
    with MountProcess(mountpoint, kind=request.param, folder=tmp_path / "data", lazy=True, options=options) as one:
        yield one


@pytest.fixture
def beside() -> Iterator[Callable[[Callable[[], T]], Future[T]]]:
    """Run something that waits in another thread of this process, which is not the one that serves the mount."""
    with ThreadPoolExecutor(max_workers=16) as pool:
        yield pool.submit


def errno_of(call: Callable[[], object]) -> int:
    try:
        call()
    except OSError as error:
        return error.errno or -1
    return 0


@pytest.mark.promise("lazy.reads-wait-alone")
def test_a_reader_waits_and_nobody_else_does(mount: MountProcess, beside: Callable[..., Future[str]]) -> None:
    (mount.path / "here").write_text("here")
    ino = mount.call("put_absent", path="/there", text="from the server")
    assert os.stat(mount.path / "there").st_size == 15
    reading = beside((mount.path / "there").read_text)
    assert mount.call("asked", count=1) == [ino]
    assert (mount.path / "here").read_text() == "here"
    (mount.path / "new").write_text("new")
    assert sorted(os.listdir(mount.path)) == ["here", "new", "there"]
    os.chmod(mount.path / "there", 0o600)
    os.rename(mount.path / "there", mount.path / "moved")
    assert not reading.done()
    mount.call("send", ino=ino)
    assert reading.result(LONG_S) == "from the server"
    assert (mount.path / "moved").read_text() == "from the server"
    assert mount.call("asked", count=1) == [ino]


def test_many_readers_are_one_fetch(mount: MountProcess, beside: Callable[..., Future[str]]) -> None:
    ino = mount.call("put_absent", path="/f", text="x" * 3_000_000)
    readings = [beside((mount.path / "f").read_text) for _ in range(8)]
    mount.call("asked", count=1)
    mount.call("prompt")
    mount.call("send", ino=ino)
    assert all(reading.result(LONG_S) == "x" * 3_000_000 for reading in readings)
    assert set(mount.call("asked", count=1)) == {ino}
    assert len(mount.call("asked", count=1)) <= 2


@pytest.mark.promise("lazy.reads-end")
def test_a_failed_fetch_is_eio_and_the_next_try_may_succeed(mount: MountProcess, beside: Callable[..., Future[int]]) -> None:
    ino = mount.call("put_absent", path="/f", text="text")
    reading = beside(lambda: errno_of((mount.path / "f").read_text))
    mount.call("asked", count=1)
    mount.call("send", ino=ino, errno=errno.EHOSTDOWN)
    assert reading.result(LONG_S) == errno.EIO
    assert errno_of((mount.path / "f").read_text) == errno.EIO, "for a moment at once"
    mount.call("prompt")
    deadline_s = time.monotonic() + LONG_S
    while errno_of((mount.path / "f").read_text) and time.monotonic() < deadline_s:
        os.stat(mount.path)
    assert (mount.path / "f").read_text() == "text"
    mount._log.write_text("")  # the failed read is logged, as it should be


@pytest.mark.promise("lazy.local-changes")
def test_what_changes_part_of_a_file_waits_for_the_rest(mount: MountProcess, beside: Callable[..., Future[None]]) -> None:
    def append() -> None:
        with (mount.path / "a").open("a") as handle:
            handle.write(" and more")

    def overwrite() -> None:
        with (mount.path / "b").open("r+") as handle:
            handle.write("T")

    def cut() -> None:
        os.truncate(mount.path / "c", 2)

    inos = [mount.call("put_absent", path=f"/{name}", text=f"text {name}") for name in "abc"]
    changes = [beside(change) for change in (append, overwrite, cut)]
    mount.call("asked", count=3)
    for ino in inos:
        mount.call("send", ino=ino)
    for change in changes:
        change.result(LONG_S)
    assert [(mount.path / name).read_text() for name in "abc"] == ["text a and more", "Text b", "te"]


@pytest.mark.promise("lazy.local-changes")
def test_a_file_that_is_written_anew_or_removed_needs_nothing(mount: MountProcess) -> None:
    for name in "abc":
        mount.call("put_absent", path=f"/{name}", text="text")
    (mount.path / "a").write_text("new")
    (mount.path / "b").unlink()
    (mount.path / "tmp").write_text("saved by rename")
    os.replace(mount.path / "tmp", mount.path / "c")
    assert (mount.path / "a").read_text() == "new"
    assert (mount.path / "c").read_text() == "saved by rename"
    assert mount.call("stats")["failures"] == 0
    assert mount.call("asked", count=0) == []


def test_a_newer_version_that_arrives_meanwhile_is_what_the_reader_gets(
    mount: MountProcess, beside: Callable[..., Future[str]]
) -> None:
    ino = mount.call("put_absent", path="/f", text="first")
    reading = beside((mount.path / "f").read_text)
    mount.call("asked", count=1)
    mount.call("put", path="/f", text="second, longer")
    mount.call("send", ino=ino)
    assert reading.result(LONG_S)[:5] == "secon", "the kernel may cut it at the size it knew when the file was opened"
    assert (mount.path / "f").read_text() == "second, longer"


def test_evicted_contents_are_fetched_when_the_kernel_forgot_them_too(
    mount: MountProcess, beside: Callable[..., Future[str]]
) -> None:
    (mount.path / "f").write_text("text")
    os.sync()
    mount.call("evict", path="/f")
    ino = os.stat(mount.path / "f").st_ino
    mount.call("notice", ino=ino)
    mount.call("prompt")
    assert beside((mount.path / "f").read_text).result(LONG_S) == "text"
    assert mount.call("asked", count=1) == [ino]


def test_a_copy_inside_the_mount_waits_for_its_source(mount: MountProcess, beside: Callable[..., Future[int]]) -> None:
    mount.call("prompt")
    mount.call("put_absent", path="/f", text="text " * 1000)
    copying = beside(lambda: subprocess.run(["cp", mount.path / "f", mount.path / "g"], check=True, timeout=LONG_S).returncode)
    assert copying.result(LONG_S) == 0
    assert (mount.path / "g").read_text() == "text " * 1000


def test_a_mapping_of_an_absent_file_is_filled_when_it_is_touched(mount: MountProcess) -> None:
    mount.call("prompt")
    mount.call("put_absent", path="/f", text="mapped " * 2000)
    script = "import mmap,sys\nwith open(sys.argv[1],'rb') as f: print(mmap.mmap(f.fileno(),0,access=mmap.ACCESS_READ)[7:13])"
    done = subprocess.run(
        [sys.executable, "-c", script, mount.path / "f"], capture_output=True, text=True, check=True, timeout=LONG_S
    )
    assert done.stdout == "b'mapped'\n"


@pytest.mark.promise("lazy.reads-end")
def test_ctrl_c_frees_a_reader(mount: MountProcess) -> None:
    ino = mount.call("put_absent", path="/f", text="text")
    with subprocess.Popen(["cat", mount.path / "f"], stdout=subprocess.PIPE) as reader:
        mount.call("asked", count=1)
        reader.send_signal(signal.SIGINT)
        assert reader.wait(LONG_S) == -signal.SIGINT
    mount.call("send", ino=ino)
    assert (mount.path / "f").read_text() == "text"


@pytest.mark.promise("lazy.reads-end")
def test_a_writer_that_is_interrupted_has_changed_nothing(mount: MountProcess) -> None:
    mount.call("put_absent", path="/f", text="text")
    script = "import os,sys\nos.truncate(sys.argv[1], 2)"
    with subprocess.Popen([sys.executable, "-c", script, mount.path / "f"], stderr=subprocess.PIPE) as writer:
        mount.call("asked", count=1)
        writer.send_signal(signal.SIGINT)
        assert writer.wait(LONG_S) != 0
    assert os.stat(mount.path / "f").st_size == 4


@pytest.mark.promise("lazy.reads-end")
def test_a_server_that_sends_nothing_is_eio_in_time_and_one_that_is_slow_is_waited_for(
    tmp_path: Path, mountpoint: Path, beside: Callable[..., Future[int]]
) -> None:
    with MountProcess(mountpoint, lazy=True, options={"contents_timeout_s": 1.5}) as mount:
        ino, slow = (mount.call("put_absent", path=f"/{name}", text="text") for name in ("dead", "slow"))
        started_s = time.monotonic()
        dead = beside(lambda: errno_of((mount.path / "dead").read_text))
        crawling = beside(lambda: errno_of((mount.path / "slow").read_text))
        mount.call("asked", count=2)
        mount.call("arrived", ino=slow, size=1)
        assert dead.result(LONG_S) == errno.EIO
        assert 1.4 <= time.monotonic() - started_s < 10
        mount.call("send", ino=slow)
        assert crawling.result(LONG_S) in {0, errno.EIO}
        mount.call("send", ino=ino)
        assert (mount.path / "dead").read_text() == "text"
        assert "nothing came in time" in mount.log
        mount._log.write_text("")


@pytest.mark.promise("lazy.reads-end")
def test_an_unmount_frees_whoever_waits(mount: MountProcess, beside: Callable[..., Future[int]]) -> None:
    mount.call("put_absent", path="/f", text="text")
    reading = beside(lambda: errno_of((mount.path / "f").read_text))
    mount.call("asked", count=1)
    mount.call("end_waiting")
    assert reading.result(LONG_S) == errno.EIO
    with refused(errno.EIO):
        (mount.path / "f").read_text()
    unmount_path(mount.path)
    assert mount.wait_ended() == 0


@pytest.mark.promise("lazy.reads-wait-alone")
def test_more_waiting_readers_than_the_kernel_lets_read_ahead_block_no_present_file(
    mountpoint: Path, beside: Callable[..., Future[int]]
) -> None:
    """Read-ahead of waiting readers counts among the kernel's background requests."""
    with MountProcess(mountpoint, lazy=True, options={"contents_timeout_s": LONG_S}) as mount:
        for number in range(100):
            mount.call("put_absent", path=f"/f{number}", text="x" * 300_000)
        mount.call("put", path="/here", text="y" * 300_000)
        with subprocess.Popen(
            f"for i in $(seq 0 99); do cat {mount.path}/f$i > /dev/null & done; wait", shell=True, stderr=subprocess.DEVNULL
        ) as readers:
            mount.call("asked", count=100)
            assert beside(lambda: len((mount.path / "here").read_text())).result(20) == 300_000
            mount.call("end_waiting")
            readers.wait(LONG_S)


def test_without_a_source_a_read_is_eio_at_once(mountpoint: Path) -> None:
    with MountProcess(mountpoint) as mount:
        mount.call("put_absent", path="/f", text="text")
        with refused(errno.EIO):
            (mount.path / "f").read_text()
        assert os.stat(mount.path / "f").st_size == 4


# ---- the waiting room by itself


class Held:
    """A source that answers never, or when told."""

    def __init__(self) -> None:
        self.wanted: list[tuple[int, Brought]] = []

    def bring(self, ino: int, brought: Brought) -> None:
        self.wanted.append((ino, brought))

    def arrived_bytes(self, ino: int) -> int:
        return 0


class Room:
    def __init__(self, timeout_s: float = LONG_S) -> None:
        self.source = Held()
        self.waiting = WaitingRequests(self.source, timeout_s=timeout_s)
        self.refused: list[tuple[int, int]] = []
        self.rerun: list[bytes] = []
        self.told = threading.Condition()
        self.park_again = 0

    def start(self) -> None:
        self.waiting.start(self._rerun, self._refuse)

    def _rerun(self, request: bytes) -> None:
        if self.park_again and self.waiting.park(int(request), 7, request) is None:
            self.park_again -= 1
            return
        with self.told:
            self.rerun.append(request)
            self.told.notify_all()

    def _refuse(self, unique: int, number: int) -> None:
        with self.told:
            self.refused.append((unique, number))
            self.told.notify_all()

    def until(self, condition: Callable[[], bool]) -> None:
        with self.told:
            assert self.told.wait_for(condition, LONG_S)


@pytest.fixture
def room() -> Iterator[Room]:
    room = Room()
    room.start()
    yield room
    room.waiting.stop(timeout_s=LONG_S)


def test_the_waiting_room_is_bounded(room: Room) -> None:
    answers = [room.waiting.park(number, number, b"") for number in range(WAITING_MAX + 2)]
    assert answers == [None] * WAITING_MAX + [errno.EIO] * 2
    room.waiting.end()
    room.until(lambda: len(room.refused) == WAITING_MAX)
    assert room.waiting.park(99_999, 1, b"") == errno.EIO


@pytest.mark.promise("lazy.reads-end")
def test_what_is_brought_at_its_deadline_is_answered_and_the_room_goes_on() -> None:
    room = Room(timeout_s=0.0)
    room.start()
    try:
        with room.waiting._changed:  # the thread sees both at once
            assert room.waiting.park(1, 7, b"1") is None
            room.source.wanted[0][1](None)
        room.until(lambda: room.rerun == [b"1"])
        assert room.waiting.park(2, 8, b"2") is None
        room.until(lambda: room.refused == [(2, errno.EIO)])
    finally:
        room.waiting.stop(timeout_s=LONG_S)


def test_each_request_is_answered_once(room: Room) -> None:
    for unique in (1, 2, 3):
        assert room.waiting.park(unique, 7, str(unique).encode()) is None
    room.waiting.interrupt(2)
    room.waiting.interrupt(2)
    room.waiting.interrupt(17)
    assert len(room.source.wanted) == 1
    room.source.wanted[0][1](None)
    room.until(lambda: len(room.rerun) == 2)
    assert room.rerun == [b"1", b"3"]
    assert room.refused == [(2, errno.EINTR)]


def test_a_request_that_must_wait_again_does_so_a_bounded_number_of_times(room: Room) -> None:
    room.park_again = 1000
    assert room.waiting.park(5, 7, b"5") is None
    answered = 0
    deadline_s = time.monotonic() + LONG_S
    while not room.rerun and time.monotonic() < deadline_s:
        if len(room.source.wanted) > answered:
            room.source.wanted[answered][1](None)
            answered += 1
        else:
            with room.told:
                room.told.wait(0.01)
    assert room.rerun == [b"5"], "park said no in the end, and the request got its errno"
    assert answered <= 10


def test_a_source_that_answers_at_once_is_fine(room: Room) -> None:
    room.source.bring = lambda ino, brought: brought(FsError(errno.EIO))  # type: ignore[method-assign]
    assert room.waiting.park(1, 7, b"1") is None
    room.until(lambda: room.refused == [(1, errno.EIO)])
