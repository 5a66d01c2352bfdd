"""Real mounts and a real server on disks that are really full."""

from __future__ import annotations

import errno
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from memdir.client.local import ensure_server
from memdir.core.limits import KIB, MIB
from memdir.core.paths import app_paths
from tests.daemon.test_lazy import put
from tests.daemon.test_mount import Home, home, until
from tests.daemon.test_server_lives import at_server, memdir, pushed
from tests.fs.test_full_disk import outside

pytestmark = [
    pytest.mark.mount,
    pytest.mark.promise("sync.disk-full"),
    pytest.mark.skipif(os.geteuid() != 0, reason="mounting a small filesystem needs root"),
]
__all__ = ["home"]


@contextmanager
def small_disk(where: Path, size_mib: int) -> Iterator[None]:
    """A filesystem of so much room at `where`."""
    where.mkdir(mode=0o700, parents=True, exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size_mib}m,mode=700", "none", str(where)], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(where)], check=True)


@pytest.fixture
def servers_disk(tmp_path: Path) -> Iterator[Path]:
    """Ask for it before `home`, so that the processes that use it end first."""
    folder = tmp_path / "home" / "data" / "server"
    with small_disk(folder, 24):
        yield folder


@pytest.fixture
def shared_disk(tmp_path: Path) -> Iterator[Path]:
    """As `servers_disk`, for everything."""
    folder = tmp_path / "home"
    with small_disk(folder, 64):
        (folder / "others").write_bytes(bytes(24 * MIB))
        yield folder


@pytest.fixture
def mounts_disk(tmp_path: Path) -> Iterator[Path]:
    """As `servers_disk`."""
    folder = tmp_path / "home" / "data" / "mounts"
    with small_disk(folder, 24):
        yield folder


def test_a_server_without_room_is_told_and_gets_everything_when_there_is_room(servers_disk: Path, home: Home) -> None:
    record = home.mount()
    until(lambda: bool(home.server_of(record)["online"]))
    (home.place / "a.md").write_text("before\n")
    pushed(home, record)
    other = outside(servers_disk)
    written = {f"{number}.bin": os.urandom(300 * KIB) for number in range(8)} | {"a.md": b"edited\n"}
    for name, content in written.items():
        (home.place / name).write_bytes(content)
    until(lambda: "the server's disk is full" in str(home.call(record, "status")["trouble"]))
    assert home.server_of(record)["online"], "what needs no room goes on"
    said = memdir("status", "notes")
    assert "the server's disk is full; what waits goes on when there is room" in said
    assert "the server is reading" not in said
    assert home.call(record, "status")["parked"] == 0
    assert home.call(record, "sync", wait=True, timeout_s=1)["problem"]
    for name, content in written.items():
        assert (home.place / name).read_bytes() == content
    other.unlink()
    assert "queued again" in memdir("retry", "notes")
    pushed(home, record)
    until(lambda: home.call(record, "status")["trouble"] is None)
    for name, content in written.items():
        assert at_server(f"/{name}") == content
    assert ensure_server(app_paths()).data_dir == str(servers_disk)


def test_a_mount_without_room_refuses_its_programs_loses_nothing_and_goes_on(mounts_disk: Path, home: Home) -> None:
    record = home.mount()
    until(lambda: bool(home.server_of(record)["online"]))
    (home.place / "a.md").write_text("before\n")
    (home.place / "big").write_bytes(os.urandom(900 * KIB))
    pushed(home, record)
    accepted: dict[str, bytes] = {}

    def write() -> None:
        name = f"{len(accepted)}.bin"
        content = os.urandom(64 * KIB)
        (home.place / name).write_bytes(content)
        accepted[name] = content

    def write_until_refused() -> None:
        while len(accepted) < 2000:
            write()

    for _ in range(5):
        write()
    other = outside(mounts_disk)
    with pytest.raises(OSError, match="No space left") as refused:
        write_until_refused()
    assert refused.value.errno == errno.ENOSPC
    theirs = {f"theirs-{number}.bin": os.urandom(4 * KIB) for number in range(40)}
    put({f"/{name}": content for name, content in theirs.items()})
    until(lambda: "full" in str(home.call(record, "status")["trouble"]))
    assert (home.place / "a.md").read_text() == "before\n"
    other.unlink()
    until((home.place / "theirs-39.bin").exists)
    pushed(home, record)
    until(lambda: home.call(record, "status")["trouble"] is None)
    for name, content in accepted.items():
        assert (home.place / name).read_bytes() == content
        assert at_server(f"/{name}") == content
    for name, content in theirs.items():
        assert (home.place / name).read_bytes() == content
    (home.place / "after.md").write_text("there is room\n")
    pushed(home, record)
    assert at_server("/after.md") == b"there is room\n"
    assert home.call(record, "status")["conflicts"] == 0


def test_a_server_leaves_the_last_of_a_shared_disk_to_those_who_delete(shared_disk: Path, home: Home) -> None:
    record = home.mount()
    until(lambda: bool(home.server_of(record)["online"]))
    source = Path(os.__file__).parent
    copied: list[Path] = []
    room_bytes = 8 * MIB
    for file in sorted(source.rglob("*.py")):
        room_bytes -= file.stat().st_size
        if room_bytes < 0:
            break
        to = home.place / file.relative_to(source)
        to.parent.mkdir(parents=True, exist_ok=True)
        to.write_bytes(file.read_bytes())
        copied.append(to)
    until(lambda: "the server's disk is full" in str(home.call(record, "status")["trouble"]))
    found = os.statvfs(shared_disk)
    assert found.f_bavail * found.f_frsize > found.f_blocks * found.f_frsize // 16, "what the mount keeps"

    def told() -> int:
        logs = (shared_disk / "state").glob("*.log")
        return sum(log.read_text().count("no room on the disk to go on indexing") for log in logs)

    until(lambda: told() >= 1)
    assert told() <= 2, "once for each of its processes"
    for file in copied:
        file.unlink()
    pushed(home, record)
    until(lambda: home.call(record, "status")["trouble"] is None)
