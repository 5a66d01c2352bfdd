"""`memdir mount --nfs` as a user types it: served, synced and searched; mounted by the kernel where it has a client."""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path
from typing import Any

import pytest

from memdir.fs.types import ROOT_INO, Owner
from tests.acceptance.driver import Memdir, eventually, wait_for_exit
from tests.nfs.client import Connection, NfsFs

HAS_CLIENT = "\tnfs\n" in Path("/proc/filesystems").read_text() and os.geteuid() == 0


def client(answer: dict[str, Any]) -> tuple[Connection, NfsFs]:
    command = answer["nfs_command"]
    port = re.search(r"\bport=(\d+)", command)
    assert port is not None
    connection = Connection(int(port[1]), uid=os.geteuid(), gid=os.getegid())
    return connection, NfsFs(connection, connection.mount(command.split("127.0.0.1:")[1].split()[0]), None)


@pytest.mark.skipif(HAS_CLIENT, reason="the kernel mounts it")
@pytest.mark.promise("nfs.mount", "nfs.handles")
def test_a_memory_that_is_served_is_synced_searched_and_goes_on_after_a_kill(memdir: Memdir, name: str) -> None:
    said = memdir.run("mount", name, "--nfs", "--json").json()
    assert said["nfs"] is True
    connection, fs = client(said)
    me = Owner(os.geteuid(), os.getegid())
    folder = fs.mkdir(ROOT_INO, b"work", 0o755, me)
    file = fs.create(folder.ino, b"ants.md", 0o100644, me)
    fs.write(file.ino, 0, b"# Ants\n\nThe weaver ant builds its nest from living leaves.\n")
    fs.fsync(file.ino)
    memdir.run("sync", name, "--wait", limit_s=120)
    found = memdir.hits("what do insects make homes of", "--container", name)
    assert [(hit["path"], hit["start_line"]) for hit in found][:1] == [("/work/ants.md", 3)]
    assert b"Memory Profile" in fs.read(fs.lookup(ROOT_INO, b"profile.md").ino, 0, 1000)
    assert "served, not mounted" in memdir.run("status", name).out
    other = memdir.mount(name + "-2", "--no-sync")
    assert other.is_dir()
    memdir.run("unmount", other)
    os.kill(said["pid"], signal.SIGKILL)
    wait_for_exit(said["pid"], 20)
    again = memdir.run("mount", name, "--nfs", "--json").json()
    assert again["nfs_command"] == said["nfs_command"]  # the same port and path: clients go on
    connection.close()
    connection, fs = client(again)
    assert fs.read(file.ino, 0, 6) == b"# Ants"  # by the handle of before
    fs.rename(folder.ino, b"ants.md", ROOT_INO, b"moved.md")
    connection.close()
    memdir.run("unmount", name)
    plain = memdir.mount(name)
    assert (plain / "moved.md").read_text().startswith("# Ants")
    assert not (plain / "work" / "ants.md").exists()
    memdir.run("unmount", plain)


@pytest.mark.skipif(not HAS_CLIENT, reason="this kernel has no NFS client")
def test_the_kernel_mounts_it(memdir: Memdir, name: str) -> None:
    place = memdir.mount(name, "--nfs")
    (place / "a.md").write_text("hello\n")
    os.rename(place / "a.md", place / "b.md")
    assert (place / "b.md").read_text() == "hello\n"
    memdir.run("sync", name, "--wait", limit_s=120)
    memdir.run("unmount", name)
    eventually(lambda: not os.path.ismount(place), "it is unmounted")


@pytest.mark.parametrize("option", ["--traces", "--passthrough", "--profile=observed"])
def test_what_only_fuse_has_is_refused(memdir: Memdir, option: str) -> None:
    ran = memdir.run("mount", "x", "--nfs", option, expect=2)
    assert "FUSE" in ran.err
