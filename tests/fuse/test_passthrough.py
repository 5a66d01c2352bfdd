"""Large files that the kernel reads and writes by itself. Root only, Linux 6.9 or newer."""

from __future__ import annotations

import contextlib
import mmap
import os
import random
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from memdir.core.errors import UsageError
from memdir.fs.cache.fsck import check
from memdir.fs.fuse.backing import check_passthrough
from memdir.fs.fuse.mounting import clear_dead_mount
from memdir.fs.fuse.options import FuseOptions
from memdir.fs.memory import MemoryFs
from tests.fuse.harness import MountProcess

_MIB = 1024 * 1024
OPTIONS = {"profile": "observed", "passthrough": True}


def works() -> bool:
    try:
        check_passthrough()
    except UsageError:
        return False
    return True


pytestmark = [pytest.mark.mount, pytest.mark.skipif(not works(), reason="needs root and Linux 6.9")]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    folder.mkdir()
    return folder


@pytest.fixture
def mount(mountpoint: Path, data: Path) -> Iterator[MountProcess]:
    with MountProcess(mountpoint, kind="sqlite", folder=data, options=OPTIONS) as mount:
        yield mount
    assert check(data) == []
    assert not any(path.stat().st_mode & 0o100 for path in (data / "blobs").iterdir())


def asked(mount: MountProcess) -> dict[str, int]:
    requests: dict[str, int] = mount.call("stats")["requests"]
    return requests


@pytest.mark.promise("large.passthrough")
def test_the_daemon_is_not_asked_for_the_bytes(mount: MountProcess) -> None:
    piece = os.urandom(_MIB)
    with (mount.path / "f").open("wb", buffering=0) as file:
        for _ in range(4):
            file.write(piece)
        assert os.fstat(file.fileno()).st_size == 4 * _MIB
        os.fsync(file.fileno())
    os.posix_fadvise(fd := os.open(mount.path / "f", os.O_RDONLY), 0, 0, os.POSIX_FADV_DONTNEED)
    assert os.pread(fd, 5 * _MIB, 0) == piece * 4
    os.close(fd)
    assert not {"READ", "WRITE"} & asked(mount).keys()
    assert mount.call("stats")["failures"] == 0
    assert os.stat(mount.path / "f").st_size == 4 * _MIB


def test_random_work_matches_a_byte_array(mount: MountProcess) -> None:
    rng = random.Random(5)
    model = bytearray(os.urandom(2 * _MIB))
    path = mount.path / "f"
    path.write_bytes(model)
    for _ in range(12):
        with path.open("r+b", buffering=0) as file:
            for _ in range(20):
                offset, kind = rng.randrange(3 * _MIB), rng.random()
                if kind < 0.15:
                    file.truncate(offset)
                    model[:] = model[:offset].ljust(offset, b"\0")
                elif kind < 0.3 and model:
                    with mmap.mmap(file.fileno(), len(model)) as view:
                        at = rng.randrange(len(model))
                        view[at : at + 1] = model[at : at + 1] = b"m"
                else:
                    data = rng.randbytes(rng.randrange(1, 100_000))
                    os.pwrite(file.fileno(), data, offset)
                    model[:] = model.ljust(offset, b"\0")
                    model[offset : offset + len(data)] = data
                if rng.random() < 0.2:
                    os.fsync(file.fileno())
                assert os.fstat(file.fileno()).st_size == len(model)
            assert os.stat(path).st_size == len(model)
        assert path.read_bytes() == model
    assert mount.call("stats")["failures"] == 0


def test_opens_of_one_file_agree_while_it_grows_and_shrinks(mount: MountProcess) -> None:
    path = mount.path / "f"
    path.write_bytes(b"small")
    first = os.open(path, os.O_RDWR)  # through the daemon, as the contents are in its tables
    os.pwrite(first, b"x" * 2 * _MIB, 0)
    second = os.open(path, os.O_RDONLY)
    assert os.pread(second, 3 * _MIB, 0) == b"x" * 2 * _MIB
    os.close(first)
    os.close(second)
    third = os.open(path, os.O_RDWR)  # now by the kernel
    os.pwrite(third, b"y", 0)
    fourth = os.open(path, os.O_RDWR | os.O_TRUNC)
    os.pwrite(third, b"end", _MIB)
    assert os.pread(fourth, 2 * _MIB, 0) == bytes(_MIB) + b"end"
    os.ftruncate(fourth, 3)
    os.close(third)
    os.close(fourth)
    assert path.read_bytes() == bytes(3)
    path.write_bytes(b"again")
    assert path.read_bytes() == b"again"


def test_appending_and_small_files_work_as_ever(mount: MountProcess) -> None:
    for number in range(30):
        (mount.path / f"note-{number}").write_text(f"note {number}")
    with (mount.path / "log").open("ab", buffering=0) as one, (mount.path / "log").open("ab", buffering=0) as two:
        for number in range(50):
            one.write(b"one %d\n" % number)
            two.write(b"two %d\n" % number)
    assert len((mount.path / "log").read_bytes().splitlines()) == 100
    assert [(mount.path / f"note-{number}").read_text() for number in range(30)] == [f"note {number}" for number in range(30)]
    os.rename(mount.path / "note-1", mount.path / "note-2")
    assert (mount.path / "note-2").read_text() == "note 1"


def test_a_kill_loses_nothing_that_was_written(mountpoint: Path, data: Path) -> None:
    mount = MountProcess(mountpoint, kind="sqlite", folder=data, options=OPTIONS)
    assert mount.start() == {"ready": True}
    expected = os.urandom(2 * _MIB)
    fd = os.open(mountpoint / "f", os.O_CREAT | os.O_RDWR)
    os.pwrite(fd, expected, 0)
    (mountpoint / "small").write_text("small")
    mount.kill()
    with contextlib.suppress(OSError):
        os.close(fd)
    assert clear_dead_mount(mountpoint)
    assert check(data) == []
    with MountProcess(mountpoint, kind="sqlite", folder=data, options=OPTIONS):
        assert (mountpoint / "f").read_bytes() == expected
        assert (mountpoint / "small").read_text() == "small"
    assert check(data) == []


def test_many_threads_open_and_close_one_file(mount: MountProcess) -> None:
    path = mount.path / "f"
    path.write_bytes(b"x" * 2 * _MIB)
    failures: list[OSError] = []

    def work(seed: int) -> None:
        rng = random.Random(seed)
        try:
            for _ in range(40):
                fd = os.open(path, rng.choice([os.O_RDONLY, os.O_RDWR]))
                os.pread(fd, 10, rng.randrange(_MIB))
                os.close(fd)
        except OSError as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert path.read_bytes() == b"x" * 2 * _MIB


def test_it_needs_the_observed_profile() -> None:
    from memdir.fs.cache.filesystem import SqliteFs

    assert not hasattr(MemoryFs(), "lend")
    with pytest.raises(UsageError, match="observed"):
        FuseOptions(passthrough=SqliteFs.__new__(SqliteFs))
