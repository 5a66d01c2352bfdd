"""`memdir fsck` of real memories: its exit codes, what it refuses, and what it brings back."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.driver import Memdir

pytestmark = pytest.mark.mount


@pytest.fixture
def memdir(tmp_path: Path) -> Iterator[Memdir]:
    """A home of its own, without a server."""
    base = tmp_path.resolve()
    (base / "work").mkdir()
    runner = Memdir(folder=base / "work", home=base / "home")
    yield runner
    runner.close()


@pytest.fixture
def database(memdir: Memdir) -> Path:
    """The database of an unmounted memory with a file in it."""
    place = memdir.mount("notes", "--no-sync")
    (place / "a.md").write_text("acknowledged")
    memdir.run("unmount", "notes")
    [found] = (memdir.home / "data" / "mounts").glob("*/cache.db")
    return found


@pytest.mark.promise("fsck.exit-codes")
def test_clean_is_0_a_finding_is_1_and_a_repair_makes_it_0(memdir: Memdir, database: Path) -> None:
    assert memdir.run("fsck", "notes").out == "notes: clean\n"
    with sqlite3.connect(database) as connection:
        connection.execute("update inode set nlink = 7 where ino = 2")
    connection.close()
    found = memdir.run("fsck", "notes", expect=1)
    assert "  nlink: inode 2 counts 7 links, which is wrong\n" in found.out
    assert "`memdir fsck notes --repair`" in found.err
    assert memdir.run("fsck", "--repair").out.endswith("notes: repaired\n")
    assert memdir.run("fsck", "notes").out == "notes: clean\n"


@pytest.mark.promise("fsck.exit-codes", "fsck.mounted")
def test_what_cannot_be_checked_is_2_and_does_not_keep_others_from_it(memdir: Memdir, database: Path) -> None:
    memdir.mount("notes", "--no-sync")
    refused = memdir.run("fsck", "notes", expect=2)
    assert "is mounted at" in refused.err
    assert "`memdir unmount notes`" in refused.err
    memdir.run("unmount", "notes")
    with sqlite3.connect(database) as connection:
        connection.execute("pragma user_version = 99")
    connection.close()
    memdir.mount("zzz", "--no-sync")
    memdir.run("unmount", "zzz")
    answers = {answer["name"]: answer for answer in memdir.run("fsck", "--json", expect=2).json()}
    assert "made by a newer memdir" in answers["notes"]["error"]
    assert answers["zzz"]["error"] is None
    said = memdir.run("fsck", expect=2).out
    assert "notes: not checked: " in said
    assert "zzz: clean\n" in said


@pytest.mark.promise("fsck.salvage")
def test_a_destroyed_header_is_found_refused_and_repaired(memdir: Memdir, database: Path) -> None:
    whole = database.read_bytes()
    database.write_bytes(b"\0" * 100 + whole[100:])
    refused = memdir.run("mount", "notes", "--no-sync", expect=2)
    assert "`memdir fsck --repair` saves what can be read" in refused.err
    assert not (memdir.folder / "notes").exists()
    repaired = memdir.run("fsck", "notes", "--repair")
    assert "rows brought into a new database" in repaired.out
    place = memdir.mount("notes", "--no-sync")
    assert (place / "a.md").read_text() == "acknowledged"
    memdir.run("unmount", "notes")


@pytest.mark.promise("fsck.salvage")
def test_what_was_lost_is_said_with_1(memdir: Memdir, database: Path) -> None:
    place = memdir.mount("notes", "--no-sync")
    for number in range(2000):
        (place / f"{number}").write_bytes(b"x" * 100)
    memdir.run("unmount", "notes")
    whole = bytearray(database.read_bytes())
    for start in range(len(whole) // 2 // 4096 * 4096, len(whole) // 2 + 65536):
        whole[start] = 0
    database.write_bytes(whole)
    lossy = memdir.run("fsck", "notes", "--repair", "--json", expect=1).json()[0]
    assert lossy["lost"] != []
    assert lossy["left"] == []
    assert memdir.run("fsck", "notes").out == "notes: clean\n"


@pytest.mark.promise("fsck.emptied")
@pytest.mark.parametrize("how", ["emptied", "deleted"])
def test_a_database_that_is_gone_is_never_taken_for_a_new_memory(memdir: Memdir, database: Path, how: str) -> None:
    whole = database.read_bytes()
    if how == "emptied":
        database.write_bytes(b"")
    else:
        database.unlink()
    for command in (["mount", "notes", "--no-sync"], ["fsck", "notes"], ["fsck", "notes", "--repair"]):
        refused = memdir.run(*command, expect=2)
        assert "is gone or empty, although notes has been mounted before" in refused.err
    assert "cache.db" in memdir.run("recover", "notes", expect=1).out
    database.write_bytes(whole)
    assert memdir.run("fsck", "notes").out == "notes: clean\n"
