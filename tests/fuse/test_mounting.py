"""Mounting, unmounting, dead mounts, ordinary users, and reading the table of mounts."""

from __future__ import annotations

import errno
import os
import random
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from memdir.core.errors import UsageError
from memdir.fs.errors import FsError
from memdir.fs.fuse import mounting
from memdir.fs.fuse import mountpoint as mountpoints
from memdir.fs.fuse.errors import MountBusyError, MountError
from memdir.fs.fuse.mounting import clear_dead_mount, unmount_path
from memdir.fs.fuse.mountpoint import check_mountable, is_dead, is_mountpoint, mount_at
from memdir.fs.fuse.options import FuseOptions
from memdir.fs.fuse.session import FuseSession
from memdir.fs.memory import MemoryFs
from tests.fuse.harness import MountProcess
from tests.fuse.test_names import refused

NOBODY = 65534


@pytest.fixture
def fusermount() -> str:
    """The helper that ordinary users mount with. Its absence is a failure and not a skip: users depend on it."""
    found = shutil.which("fusermount3")
    if found is None:
        pytest.fail("fusermount3 is not installed, so mounting as an ordinary user cannot be proved: apt-get install fuse3")
    return found


@pytest.fixture
def public_dir(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder that other users can reach: pytest's own are 0700."""
    import tempfile

    base = Path(tempfile.mkdtemp(prefix="memdir-test-"))
    base.chmod(0o755)
    yield base
    shutil.rmtree(base)


# The table of mounts


def test_the_table_is_read_with_its_escapes_and_optional_fields(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = tmp_path / "mountinfo"
    table.write_bytes(
        b"22 27 0:21 / /proc rw,relatime - proc proc rw\n"
        rb"40 27 0:40 / /a\040b\011c\012d\134e rw shared:5 master:1 - fuse.memdir mem\040dir rw,user_id=0" + b"\n"
        rb"41 27 0:41 / /raw" + b"\xff" + rb"bytes rw - fuse.sshfs x rw" + b"\n"
        b"42 27 0:42 / /proc rw - tmpfs none rw\n"
    )
    monkeypatch.setattr(mountpoints, "_MOUNTINFO", table)
    entries = mountpoints.mounts()
    assert [entry.mountpoint for entry in entries] == ["/proc", "/a b\tc\nd\\e", "/raw\udcffbytes", "/proc"]
    assert (entries[1].fstype, entries[1].source, entries[1].device) == ("fuse.memdir", "mem dir", "0:40")
    visible = mount_at(Path("/proc"))
    assert visible is not None
    assert visible.mount_id == 42


def test_ordinary_places_are_no_mountpoints(tmp_path: Path) -> None:
    assert is_mountpoint(Path("/proc"))
    assert is_mountpoint(Path("/"))
    assert not is_mountpoint(tmp_path)
    assert not is_mountpoint(tmp_path / "nothing")
    (tmp_path / "link").symlink_to("/proc")
    (tmp_path / "loop").symlink_to("loop")
    assert is_mountpoint(tmp_path / "link")
    assert not is_mountpoint(tmp_path / "loop")


# What cannot be mounted on


def test_a_file_and_a_missing_path_are_refused_with_a_hint(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for path in (tmp_path / "file", tmp_path / "none", tmp_path / "file" / "below"):
        with pytest.raises(MountError) as caught:
            check_mountable(path)
        assert str(path) in caught.value.message
        assert caught.value.hint


def test_options_that_cannot_work_are_refused() -> None:
    for options in ({"source": "a,b"}, {"source": ""}, {"max_write_bytes": 5000}, {"max_write_bytes": 0}, {"timeout_s": -1}):
        with pytest.raises(UsageError):
            FuseOptions(**options)  # type: ignore[arg-type]


def test_a_missing_device_is_explained(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for device, word in ((str(tmp_path / "none"), "modprobe fuse"), (str(tmp_path), "--device /dev/fuse")):
        monkeypatch.setattr(mounting, "_DEVICE", device)
        with pytest.raises(MountError) as caught:
            mounting._mount_as_root(tmp_path, FuseOptions())
        assert word in caught.value.hint


def test_a_missing_helper_is_explained(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(mounting, "_HELPERS", ("no-such-helper",))
    with pytest.raises(MountError) as caught:
        mounting._mount_as_user(tmp_path, FuseOptions())
    assert "apt-get install fuse3" in caught.value.hint


def test_run_without_mount_is_refused(tmp_path: Path) -> None:
    session = FuseSession(MemoryFs(), tmp_path)
    with pytest.raises(MountError):
        session.run()
    session.unmount()
    session.close()


# Real mounts


@pytest.mark.promise("mount.as-root", "parts.fuse-direct")
@pytest.mark.mount
def test_a_mount_appears_and_goes(mountpoint: Path) -> None:
    mount = MountProcess(mountpoint)
    with mount:
        assert is_mountpoint(mountpoint)
        assert not is_dead(mountpoint)
        entry = mount_at(mountpoint)
        assert entry is not None
        assert (entry.fstype, entry.source) == ("fuse.memdir", "memdir")
        (mountpoint / "f").write_text("x")
    assert not is_mountpoint(mountpoint)
    assert os.listdir(mountpoint) == []


@pytest.mark.mount
def test_a_mountpoint_with_an_odd_name_works(tmp_path: Path) -> None:
    odd = tmp_path / "a b\\c\n,d=ü\t"
    odd.mkdir()
    with MountProcess(odd):
        assert is_mountpoint(odd)
        (odd / "f").write_text("x")
        assert (odd / "f").read_text() == "x"
    assert not is_mountpoint(odd)


@pytest.mark.mount
def test_mounting_twice_is_refused(own_mount: MountProcess) -> None:
    second = MountProcess(own_mount.path)
    answer = second.start()
    assert answer["type"] == "MountError"
    assert "already" in answer["error"]
    assert second.wait_ended() == 3
    second._close_pipes()
    assert os.listdir(own_mount.path) == ["profile.md"]


@pytest.mark.mount
def test_a_busy_mount_is_not_unmounted_unless_lazily(mountpoint: Path) -> None:
    mount = MountProcess(mountpoint)
    with mount:
        with (mountpoint / "f").open("w") as handle:
            with pytest.raises(MountBusyError) as caught:
                unmount_path(mountpoint)
            assert str(mountpoint) in caught.value.message
            handle.write("still works")
            handle.flush()
            unmount_path(mountpoint, lazy=True)
            assert not is_mountpoint(mountpoint)
            handle.write(" here")
            handle.flush()
            assert os.fstat(handle.fileno()).st_size == 16
        assert mount.wait_ended() == 0


@pytest.mark.mount
def test_the_session_unmounts_itself_from_another_thread(mountpoint: Path) -> None:
    with MountProcess(mountpoint) as mount:
        (mountpoint / "f").write_text("x")
        mount.send("unmount")
        assert mount.wait_ended() == 0
        assert not is_mountpoint(mountpoint)


@pytest.mark.mount
def test_the_loop_in_a_thread_ends_with_the_mount(mountpoint: Path) -> None:
    """As the daemon runs it. Nothing in this process touches the mount while it is served here."""
    session = FuseSession(MemoryFs(), mountpoint)
    session.mount()
    thread = threading.Thread(target=session.run)
    thread.start()
    done = subprocess.run(
        [sys.executable, "-c", "import sys; open(sys.argv[1], 'w').write('x')", str(mountpoint / "f")], timeout=60, check=False
    )
    session.unmount()
    thread.join(30)
    assert not thread.is_alive()
    assert done.returncode == 0
    stats = session.stats()
    assert stats.requests["WRITE"] == 1
    assert stats.failures == 0
    assert 0 < stats.cpu_s < 10
    session.invalidator.inode_changed(5)  # after the end: ignored


@pytest.mark.mount
def test_a_mount_that_is_never_served_can_be_given_up(mountpoint: Path) -> None:
    session = FuseSession(MemoryFs(), mountpoint)
    session.mount()
    session.close()
    assert not is_mountpoint(mountpoint)
    assert list(mountpoint.iterdir()) == []


@pytest.mark.mount
def test_a_killed_daemon_leaves_a_dead_mount_that_is_cleared(mountpoint: Path) -> None:
    mount = MountProcess(mountpoint)
    with mount:
        (mountpoint / "f").write_text("x")
        assert not clear_dead_mount(mountpoint)
        mount.kill()
        with refused(errno.ENOTCONN):
            os.listdir(mountpoint)
        assert is_mountpoint(mountpoint)
        assert is_dead(mountpoint)
        with pytest.raises(MountError) as caught:
            check_mountable(mountpoint)
        assert "umount" in caught.value.hint
        assert clear_dead_mount(mountpoint)
        assert not clear_dead_mount(mountpoint)
        assert not is_mountpoint(mountpoint)
        mount.start()
        assert os.listdir(mountpoint) == []


@pytest.mark.mount
def test_a_dead_mount_somebody_stands_in_is_cleared_too(mountpoint: Path) -> None:
    mount = MountProcess(mountpoint)
    with mount:
        (mountpoint / "d").mkdir()
        fd = os.open(mountpoint / "d", os.O_RDONLY | os.O_DIRECTORY)
        try:
            mount.kill()
            assert clear_dead_mount(mountpoint)
            assert not is_mountpoint(mountpoint)
        finally:
            os.close(fd)
        mount.start()


@pytest.mark.mount
def test_a_mount_without_an_answering_daemon_is_busy_and_not_dead(mountpoint: Path) -> None:
    session = FuseSession(MemoryFs(), mountpoint)
    session.mount()
    try:
        assert is_mountpoint(mountpoint)
        assert not is_dead(mountpoint, timeout_s=0.05)
    finally:
        session.close()
    assert not is_mountpoint(mountpoint)


@pytest.mark.mount
def test_a_read_only_mount_refuses_changes(mountpoint: Path) -> None:
    with MountProcess(mountpoint, options={"read_only": True}) as mount:
        mount.call("put", path="/f", text="x")
        assert (mountpoint / "f").read_text() == "x"
        for call in ((mountpoint / "g").touch, (mountpoint / "f").unlink, lambda: os.chmod(mountpoint / "f", 0o777)):
            with refused(errno.EROFS):
                call()


@pytest.mark.mount
def test_the_observed_profile_sees_opens_and_closes(mountpoint: Path) -> None:
    with MountProcess(mountpoint, options={"profile": "observed"}) as mount:
        (mountpoint / "f").write_text("x")
        ino = os.stat(mountpoint / "f").st_ino
        with (mountpoint / "f").open() as handle:
            assert handle.read() == "x"
            assert mount.call("events")[-1] == [1, ino, os.getpid(), os.O_RDONLY]
        (mountpoint / "f").write_text("other")
        assert (mountpoint / "f").read_text() == "other"
        opens = [event for event in mount.call("events") if event[0] == 1]
        assert [event[3] for event in opens] == [os.O_WRONLY, os.O_RDONLY, os.O_WRONLY, os.O_RDONLY]
        assert mount.call("stats")["requests"]["OPEN"] == 3


@pytest.mark.promise("parts.timeouts")
@pytest.mark.mount
def test_repeated_work_in_the_fast_profile_asks_nothing(mountpoint: Path) -> None:
    """Warm stat, open and read are answered by the kernel alone."""
    with MountProcess(mountpoint) as mount:
        for number in range(50):
            (mountpoint / f"{number}").write_text("x" * number)

        def work() -> tuple[list[bytes], bool]:
            return [path.read_bytes() for path in sorted(mountpoint.iterdir())], (mountpoint / "none").exists()

        first = work()
        work()  # a first read makes the kernel ask for the time of access once more
        before = mount.call("stats")["requests"]
        assert work() == first
        after = mount.call("stats")["requests"]
        asked = {name: after[name] - before.get(name, 0) for name in after if after[name] != before.get(name, 0)}
        asked.pop("IOCTL", None)  # Python asks at every open whether it has a terminal
        assert asked == {}


class UserMount:
    """A mount by an ordinary user, in the mount namespace of its serving process; `run` acts in there."""

    def __init__(self, base: Path, *, owner: int) -> None:
        self.place = base / "mnt"
        self.place.mkdir()
        os.chown(self.place, owner, owner)
        self.process = MountProcess(self.place, uid=NOBODY, private_device=str(base / "fuse"))

    def run(self, *command: str, uid: int = NOBODY) -> subprocess.CompletedProcess[str]:
        inside = ["nsenter", f"--mount=/proc/{self.process.pid}/ns/mnt", "--"]
        drop = ["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups", "--"]
        return subprocess.run([*inside, *drop, *command], capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.promise("parts.large-requests", "parts.readdirplus")
@pytest.mark.mount
def test_a_mebibyte_is_one_request_and_a_listing_brings_its_attributes(mountpoint: Path) -> None:
    with MountProcess(mountpoint) as mount:
        data = random.Random(1).randbytes(1 << 20)  # pages that were never touched go out in small pieces
        fd = os.open(mountpoint / "big", os.O_CREAT | os.O_WRONLY)
        for _ in range(8):
            assert os.write(fd, data) == len(data)
        os.close(fd)
        mount.call("put_many", folder="/d", count=300, text="x")
        with os.scandir(mountpoint / "d") as entries:
            assert sum(entry.stat().st_size for entry in entries) == 300
        requests = mount.call("stats")["requests"]
        assert requests["WRITE"] == 8
        assert requests["READDIRPLUS"] >= 1
        assert requests["LOOKUP"] + requests.get("GETATTR", 0) < 60


@pytest.mark.promise("mount.as-user")
@pytest.mark.mount
def test_an_ordinary_user_mounts_through_the_helper(public_dir: Path, fusermount: str) -> None:
    user = UserMount(public_dir, owner=NOBODY)
    with user.process as mount:
        done = user.run(
            "bash", "-ec", "cd $1; id -u; echo hello > f; cat f; mkdir d; mv f d/; stat -c %u d/f; ls", "x", str(user.place)
        )
        assert (done.returncode, done.stdout.split(), done.stderr) == (0, ["65534", "hello", "65534", "d"], "")
        table = user.run("cat", "/proc/self/mounts").stdout
        assert f"memdir {user.place} fuse.memdir rw,nosuid,nodev,noatime,user_id=65534,group_id=65534" in table
        assert "allow_other" not in table.split(str(user.place))[1].splitlines()[0]
        kept_out = user.run("ls", str(user.place), uid=0)
        assert "Permission denied" in kept_out.stderr  # it is that user's alone: even root stays outside
        assert mount.call("is_mounted") is True
        busy = user.run("bash", "-c", f"cd {user.place}; {fusermount} -u {user.place}; true")
        assert "busy" in busy.stderr.lower()
        mount.send("unmount")
        assert mount.wait_ended() == 0


@pytest.mark.mount
def test_an_ordinary_users_dead_mount_is_cleared_by_that_user(public_dir: Path, fusermount: str) -> None:
    user = UserMount(public_dir, owner=NOBODY)
    with user.process as mount:
        assert mount.call("die_and_clear") == [True, True, True, False]
        mount.send("unmount")
        assert mount.wait_ended() == 0


@pytest.mark.mount
def test_an_ordinary_user_is_told_why_a_mount_was_refused(public_dir: Path, fusermount: str) -> None:
    user = UserMount(public_dir, owner=0)
    answer = user.process.start()
    assert answer["type"] == "MountError"
    assert "writable" in answer["hint"]
    assert user.process.wait_ended() == 3
    user.process._close_pipes()


@pytest.mark.mount
def test_a_device_that_users_may_not_open_is_explained(public_dir: Path, fusermount: str) -> None:
    error = mounting._helper_error(public_dir, fusermount, b"fusermount3: failed to open /dev/fuse: Permission denied\n")
    assert "chmod 666 /dev/fuse" in error.hint
    error = mounting._helper_error(public_dir, fusermount, b"option allow_other only allowed if 'user_allow_other' is set")
    assert "/etc/fuse.conf" in error.hint
    assert "gave no reason" in mounting._helper_error(public_dir, fusermount, b"").message


@pytest.mark.mount
@pytest.mark.skipif(os.geteuid() != 0, reason="only root may widen the read-ahead of a mount")
def test_root_reads_ahead_as_far_as_a_request_may_carry(own_mount: MountProcess) -> None:
    entry = mount_at(own_mount.path)
    assert entry is not None
    assert Path(f"/sys/class/bdi/{entry.device}/read_ahead_kb").read_text(encoding="ascii").strip() == "1024"


class SlowDisk(MemoryFs):
    """A filesystem whose disk answers a sync when the test lets it."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = threading.Event()
        self.answers = threading.Event()

    def fsync(self, ino: int) -> None:
        self.asked.set()
        if not self.answers.wait(30):
            raise FsError(errno.EIO)


@pytest.mark.mount
def test_only_who_asked_for_a_sync_waits_for_the_disk(mountpoint: Path) -> None:
    disk = SlowDisk()
    session = FuseSession(disk, mountpoint)
    session.mount()
    thread = threading.Thread(target=session.run)
    thread.start()
    script = "import os, sys; f = open(sys.argv[1], 'w'); f.write('x'); f.flush(); os.fsync(f.fileno()); print('synced')"
    with subprocess.Popen([sys.executable, "-c", script, str(mountpoint / "f")], stdout=subprocess.PIPE, text=True) as caller:
        try:
            assert disk.asked.wait(30)
            subprocess.run(["/bin/sh", "-c", f"echo y > {mountpoint}/g && rm {mountpoint}/g"], timeout=30, check=True)
            assert caller.poll() is None
            disk.answers.set()
            assert caller.communicate(timeout=30)[0] == "synced\n"
        finally:
            disk.answers.set()
            caller.kill()
            session.unmount(lazy=True)
            thread.join(30)
    assert not thread.is_alive()


@pytest.mark.mount
def test_a_sync_that_the_disk_refuses_is_the_callers_error(mountpoint: Path) -> None:
    class FullDisk(MemoryFs):
        def fsync(self, ino: int) -> None:
            raise FsError(errno.ENOSPC)

    session = FuseSession(FullDisk(), mountpoint)
    session.mount()
    thread = threading.Thread(target=session.run)
    thread.start()
    script = (
        "import errno, os, sys; f = open(sys.argv[1], 'w')\n"
        "try: os.fsync(f.fileno())\n"
        "except OSError as e: sys.exit(e.errno != errno.ENOSPC)\n"
        "sys.exit(2)"
    )
    done = subprocess.run([sys.executable, "-c", script, str(mountpoint / "f")], timeout=30, check=False)
    session.unmount()
    thread.join(30)
    assert done.returncode == 0
