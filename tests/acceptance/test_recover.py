"""`memdir recover` in the situations it is for, each one made for real."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.driver import Memdir, is_mounted, kill, mounts_below, wait_for_exit
from tests.acceptance.users import as_ordinary_user

pytestmark = pytest.mark.mount

HOLD = {
    "the memory": "import fcntl, struct; fcntl.fcntl(f, fcntl.F_OFD_SETLK, struct.pack('hhqqi4x', fcntl.F_WRLCK, 0, 0, 0, 0))",
    "its database": "import sqlite3; db = sqlite3.connect(sys.argv[1]); db.execute('begin immediate')",
}
Spawn = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def memdir(tmp_path: Path) -> Iterator[Memdir]:
    """A home of its own, without a server."""
    base = tmp_path.resolve()
    (base / "work").mkdir()
    home = Path(tempfile.mkdtemp(prefix="md-"))  # short: sockets stand in it, and a socket's path has 107 bytes
    runner = Memdir(folder=base / "work", home=home)
    yield runner
    runner.close()
    shutil.rmtree(home)


@pytest.fixture
def spawn() -> Iterator[Spawn]:
    """A process that runs some Python, says ready, and waits."""
    children: list[subprocess.Popen[str]] = []

    def start(code: str, *arguments: object, cwd: Path | str = "/") -> subprocess.Popen[str]:
        child = subprocess.Popen(
            [sys.executable, "-c", f"import sys\n{code}\nprint('ready', flush=True)\ninput()", *map(str, arguments)],
            cwd=cwd, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        children.append(child)
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        return child

    yield start
    for child in children:
        child.kill()
        child.communicate(timeout=20)


def filled(memdir: Memdir) -> tuple[Path, int]:
    """A mount with a file, and its daemon."""
    place = memdir.mount("notes", "--no-sync")
    (place / "a.md").write_text("acknowledged")
    return place, memdir.status("notes")["pid"]


def data_folder(memdir: Memdir) -> Path:
    [folder] = [entry for entry in (memdir.home / "data" / "mounts").iterdir() if entry.is_dir()]
    return folder


def recover(memdir: Memdir, *arguments: str, expect: int = 0) -> dict[str, Any]:
    """The kinds of trouble, and what became of each."""
    answer = memdir.run("recover", *arguments, "--json", expect=expect).json()
    assert answer["ok"] is (expect == 0)
    return {trouble["kind"]: trouble for trouble in answer["troubles"]}


def assert_whole(memdir: Memdir) -> None:
    """Everything acknowledged is there, and the cache is as it must be."""
    place = memdir.mount("notes", "--no-sync")
    assert (place / "a.md").read_text() == "acknowledged"
    memdir.run("unmount", "notes")
    assert memdir.run("fsck", "notes").out == "notes: clean\n"


def test_without_trouble_nothing_is_done(memdir: Memdir) -> None:
    assert memdir.run("recover").out == "nothing is wrong\n"
    _, pid = filled(memdir)
    assert recover(memdir, "--all") == {}
    assert memdir.status("notes")["pid"] == pid


@pytest.mark.promise("recover.killed", "recover.dry-run")
def test_a_killed_daemon(memdir: Memdir) -> None:
    place, pid = filled(memdir)
    kill(pid)
    assert recover(memdir, "--dry-run", expect=1)["crashed-daemon"]["result"] == "found"
    assert is_mounted(place)  # nothing was done
    said = memdir.run("recover").out
    assert f"notes: the daemon (pid {pid}) ended without unmounting, and {place} is a mount without a daemon\n" in said
    assert "checked the cache: clean" in said
    assert not is_mounted(place)
    assert list((memdir.home / "run").glob("*.sock")) == []
    assert memdir.run("recover").out == "nothing is wrong\n"
    assert_whole(memdir)


@pytest.mark.promise("recover.killed")
def test_a_killed_daemon_with_a_shell_in_the_mount(memdir: Memdir, spawn: Spawn) -> None:
    place, pid = filled(memdir)
    spawn("f = open('a.md')", cwd=place)
    kill(pid)
    recover(memdir, "notes")
    assert not is_mounted(place)
    assert_whole(memdir)


@pytest.mark.promise("recover.hung")
def test_a_halted_daemon_is_named_and_ended_only_when_that_is_asked_for(memdir: Memdir) -> None:
    place, pid = filled(memdir)
    os.kill(pid, signal.SIGSTOP)
    said = memdir.run("recover", expect=1).out
    assert f"the daemon (pid {pid}, since {time.strftime('%Y-')}" in said
    assert f"`kill -CONT {pid}` lets it go on" in said
    assert is_mounted(place)
    ended = recover(memdir, "notes", "--force")["hung-daemon"]
    assert ended["done"][0] == f"ended the process {pid}"
    wait_for_exit(pid, 1)
    assert not is_mounted(place)
    assert "INFO memdir.daemon.lifecycle ended" in (data_folder(memdir) / "daemon.log").read_text()  # in order, by SIGTERM
    assert_whole(memdir)


@pytest.mark.promise("recover.hung")
def test_a_daemon_whose_socket_is_gone_can_be_ended(memdir: Memdir) -> None:
    _, pid = filled(memdir)
    [socket] = (memdir.home / "run").glob("*.sock")
    socket.unlink()
    assert "its socket is gone" in recover(memdir, expect=1)["hung-daemon"]["problem"]
    recover(memdir, "notes", "--force")
    wait_for_exit(pid, 1)
    assert_whole(memdir)


@pytest.mark.promise("recover.locked")
@pytest.mark.parametrize("what", HOLD)
def test_a_stranger_that_holds_the_cache_is_named_and_never_ended(memdir: Memdir, spawn: Spawn, what: str) -> None:
    filled(memdir)
    memdir.run("unmount", "notes")
    file = data_folder(memdir) / ("lock" if what == "the memory" else "cache.db")
    holder = spawn(f"f = open(sys.argv[1], 'r+b')\n{HOLD[what]}", file)
    for arguments in (["notes"], ["notes", "--force"]):
        [found] = recover(memdir, *arguments, expect=1).values()
        assert found["kind"] == ("locked-cache" if what == "the memory" else "locked-database")
        assert f"pid {holder.pid}, since" in found["problem"]
        assert found["result"] == "left"
    assert holder.poll() is None
    holder.communicate("\n", timeout=20)
    recover(memdir, "notes")
    assert_whole(memdir)


@pytest.mark.promise("recover.locked")
def test_a_memdir_that_holds_the_cache_beside_its_record_is_ended_when_that_is_asked_for(memdir: Memdir) -> None:
    place, pid = filled(memdir)
    record = data_folder(memdir) / "mount.json"
    record.write_text(json.dumps(json.loads(record.read_text()) | {"pid": None}))
    assert f"pid {pid}, since" in recover(memdir, expect=1)["locked-cache"]["problem"]
    assert is_mounted(place)
    recover(memdir, "notes", "--force")
    wait_for_exit(pid, 1)
    recover(memdir)
    assert not is_mounted(place)
    assert_whole(memdir)


@pytest.mark.promise("recover.pid-reuse")
def test_a_process_that_got_the_number_of_the_daemon_is_left_alone(memdir: Memdir, spawn: Spawn) -> None:
    place, pid = filled(memdir)
    kill(pid)
    other = spawn("")
    record = data_folder(memdir) / "mount.json"
    record.write_text(json.dumps(json.loads(record.read_text()) | {"pid": other.pid}))
    found = recover(memdir, "notes", "--force")["crashed-daemon"]
    assert "its number belongs to another process now" in found["problem"]
    assert other.poll() is None
    assert not is_mounted(place)
    assert_whole(memdir)


@pytest.mark.promise("recover.records")
@pytest.mark.parametrize("damage", ["cut", "empty", "garbage", "gone"])
def test_a_record_that_cannot_be_read_is_written_again(memdir: Memdir, damage: str) -> None:
    filled(memdir)
    memdir.run("unmount", "notes")
    record = data_folder(memdir) / "mount.json"
    if damage == "gone":
        record.unlink()
    else:
        record.write_bytes({"cut": record.read_bytes()[:150], "empty": b"", "garbage": b"\xff" * 100}[damage])
    found = recover(memdir)["damaged-record"]
    assert found["done"] == [f"wrote a new record: notes at {memdir.folder / 'notes'}"]
    assert_whole(memdir)


@pytest.mark.promise("recover.records")
def test_a_memory_whose_name_nobody_knows_is_kept_and_can_be_named(memdir: Memdir) -> None:
    filled(memdir)
    memdir.run("unmount", "notes")
    folder = data_folder(memdir)
    (folder / "mount.json").unlink()
    (folder / "daemon.log").unlink()
    found = recover(memdir, expect=1)["damaged-record"]
    assert f"`memdir recover {folder} --as NAME`" in found["hint"]
    recover(memdir, str(folder), "--as", "notes")
    assert_whole(memdir)


@pytest.mark.promise("recover.records")
def test_a_daemon_whose_data_was_deleted_is_told_of(memdir: Memdir) -> None:
    place, pid = filled(memdir)
    shutil.rmtree(data_folder(memdir))
    found = recover(memdir, expect=1)["folder-gone"]
    assert (found["name"], found["path"]) == ("notes", str(place))
    assert f"`kill {pid}`" in found["hint"]
    assert (place / "a.md").read_text() == "acknowledged"  # as long as it runs
    kill(pid, signal.SIGTERM)
    assert not is_mounted(place)
    recover(memdir)


@pytest.mark.promise("recover.leftovers")
def test_what_lies_around_is_taken_away(memdir: Memdir, tmp_path: Path) -> None:
    filled(memdir)
    memdir.run("unmount", "notes")
    temporary = tmp_path / "tmp"
    (temporary / "memdir-doctor-x1" / "mount").mkdir(parents=True)
    (temporary / "memdir-doctor-x2").mkdir()
    memdir.env["TMPDIR"] = str(temporary)
    folder = data_folder(memdir)
    (folder / ".mount.json.abcdefgh").write_text("half")
    (folder / ".mount.json.fresh_12").write_text("somebody writes it now")
    (folder.parent / "0123456789ab").mkdir()
    (folder.parent / "0123456789ab" / "daemon.log").write_text("it never came up")
    subprocess.run([sys.executable, "-c", "import socket, sys; socket.socket(socket.AF_UNIX).bind(sys.argv[1])",
                    str(memdir.home / "run" / "m-feedfeedfeed.sock")], check=True)  # fmt: skip
    (memdir.home / "state").mkdir(exist_ok=True)
    (memdir.home / "state" / "server.json").write_text('{"pid": 4194304, "url": "http://127.0.0.1:1"}')
    for path in (*temporary.iterdir(), folder / ".mount.json.abcdefgh"):
        os.utime(path, (1_700_000_000, 1_700_000_000))
    found = recover(memdir)
    assert found.keys() == {"empty-folder", "stale-socket", "stale-server", "half-written", "temporary-folder"}
    assert list(temporary.iterdir()) == []
    assert [entry.name for entry in folder.iterdir() if entry.name.startswith(".")] == [".mount.json.fresh_12"]
    assert list((memdir.home / "run").iterdir()) == []
    assert not (folder.parent / "0123456789ab").exists()
    assert not (memdir.home / "state" / "server.json").exists()
    assert_whole(memdir)


@pytest.mark.promise("recover.damage")
def test_damage_that_costs_contents_is_left_for_fsck(memdir: Memdir) -> None:
    filled(memdir)
    memdir.run("unmount", "notes")
    database = data_folder(memdir) / "cache.db"
    whole = database.read_bytes()
    database.write_bytes(b"\0" * 100 + whole[100:])
    found = recover(memdir, "notes", expect=2)["cache"]
    assert found["result"] == "failed"
    assert found["hint"] == "`memdir fsck notes --repair` saves what can be read"
    database.write_bytes(whole)
    assert_whole(memdir)


def test_a_missing_database_with_a_journal_is_told_of(memdir: Memdir) -> None:
    _, pid = filled(memdir)
    kill(pid)
    database = data_folder(memdir) / "cache.db"
    database.rename(database.with_name("elsewhere"))
    assert recover(memdir, expect=1)["cache-gone"]["result"] == "left"
    database.with_name("elsewhere").rename(database)
    recover(memdir, "notes")
    assert_whole(memdir)


def test_a_dead_mount_that_is_in_no_record_is_cleared_by_its_path(memdir: Memdir) -> None:
    place, pid = filled(memdir)
    kill(pid)
    shutil.rmtree(data_folder(memdir))
    assert place in mounts_below(place)
    recover(memdir, str(place))
    assert not is_mounted(place)
    unknown = memdir.run("recover", "nothing-like-that", expect=2)
    assert "there is no memory" in unknown.err


@pytest.mark.promise("recover.as-user")
def test_an_ordinary_user_recovers_by_fusermount() -> None:
    said = as_ordinary_user("""
        memdir mount notes --no-sync
        echo acknowledged > notes/a.md
        pid=$(memdir status notes --json | sed 's/.*"pid": \\([0-9]*\\).*/\\1/')
        kill -KILL $pid
        tail --pid=$pid -f /dev/null
        memdir recover
        grep -c "$PWD/notes fuse.memdir" /proc/self/mounts
        memdir mount notes --no-sync
        cat notes/a.md
        cd notes; memdir unmount notes; echo $?; cd ..
        memdir unmount notes
        memdir fsck notes
    """)
    assert "cleared the dead mount\n" in said
    assert "checked the cache: clean\n0\nnotes is mounted at " in said
    assert "\nacknowledged\n" in said
    assert "is in use by bash (pid " in said
    assert said.endswith("notes: clean\n")
