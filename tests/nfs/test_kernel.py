"""A Linux kernel's NFS client mounts our server, from a virtual machine (`virtual_machine.py`)."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from memdir.fs.cache.filesystem import SqliteFs
from memdir.fs.nfs.session import NfsOptions, NfsSession
from memdir.fs.types import ROOT_INO, joined
from memdir.fs.views import ProfileFolder, ProfileView, ViewVfs
from memdir.shell.files import Files
from tests.nfs import virtual_machine

pytestmark = [pytest.mark.long, pytest.mark.skipif(bool(virtual_machine.missing()), reason=virtual_machine.missing())]


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[NfsSession, SqliteFs]]:
    (tmp_path / "mnt").mkdir()
    fs = SqliteFs.open(tmp_path / "cache")
    session = NfsSession(ViewVfs(fs, [ProfileView(), ProfileFolder()]), tmp_path / "mnt", NfsOptions(key_folder=tmp_path))
    session.mount()
    thread = threading.Thread(target=session.run)
    thread.start()
    yield session, fs
    session.unmount()
    thread.join()
    fs.close()


@pytest.mark.promise("nfs.kernel")
def test_a_kernel_mounts_it_and_does_what_people_do(served: tuple[NfsSession, SqliteFs], tmp_path: Path) -> None:
    session, fs = served
    Files(fs).write("/from-host", b"written by the host\n")
    export = session.command.split("127.0.0.1:")[1].split()[0]
    said = virtual_machine.run(tmp_path, port=session.port, export=export)
    assert "the guest is done" in said, said[-3000:]
    assert "FAILED" not in said, said[-6000:]
    wanted = re.findall(r"^check (\S+)", virtual_machine.GUEST_SCRIPT.read_text(encoding="utf-8"), re.MULTILINE)
    assert re.findall(r"^ok (\S+)", said, re.MULTILINE) == [*wanted[:-1], "unmount", "mount-again", wanted[-1]]
    big = fs.lookup(ROOT_INO, b"big")
    assert joined(fs.read(big.ino, 1_000_000, 3)) == b"XYZ"
    assert sorted(entry.name for entry in Files(fs).entries("/")) == sorted(
        ["a b", "big", "e", "from-host", "0" * 199 + "7", "y", "ünï"]
    )
