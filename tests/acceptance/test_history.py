"""History in a real mount: what a person changes and deletes there comes back there."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.acceptance.driver import Memdir, eventually, tree_of

pytestmark = pytest.mark.mount


@pytest.mark.promise("sync.history", "sync.restore")
def test_every_edit_in_a_mount_is_a_revision_and_comes_back_at_once(memdir: Memdir, name: str) -> None:
    place = memdir.mount(name)
    plan = place / "plan.md"
    for text in ("one\n", "two\n"):
        plan.write_text(text)
        memdir.run("sync", place, "--wait")
    plan.chmod(0o755)
    memdir.run("sync", place, "--wait")
    plan.rename(place / "moved.md")
    (place / "moved.md").write_text("not pushed yet\n")

    memdir.run("restore", place / "moved.md", "--at", "now")
    assert (place / "moved.md").read_text() == "not pushed yet\n", "what waits is pushed before anything is decided"
    rows = memdir.run("history", place / "moved.md", "--json").json()
    former = [row for row in rows if row["version"] is not None]
    assert rows[0]["reason"] == "current"
    assert [row["mode"] for row in former] == [0o755, 0o644, 0o644]
    assert "moved" in [row["reason"] for row in rows]

    memdir.run("restore", place / "moved.md", "--rev", str(former[-1]["version"]))
    assert (place / "moved.md").read_text() == "one\n", "the mount shows it when the command ends"
    assert (place / "moved.md").stat().st_mode & 0o777 == 0o644
    newest = memdir.run("history", place / "moved.md", "--json").json()[1]
    shown = memdir.run("history", place / "moved.md", "--show", str(newest["version"])).out
    assert shown == "not pushed yet\n", "what was replaced is a revision"
    memdir.run("unmount", name)


@pytest.mark.promise("sync.history")
def test_a_history_goes_on_when_an_editor_puts_the_old_file_aside_and_deletes_it(memdir: Memdir, name: str) -> None:
    """As JetBrains' editors, Helix and Word save: a rename that is for a moment is none."""
    place = memdir.mount(name)
    aside = {"jetbrains.md": "jetbrains.md___jb_old___", "helix.md": "helix.mdAbC123.bck", "word.docx": "~WRL0002.tmp"}
    for file in aside:
        (place / file).write_text("one\n")
    memdir.run("sync", place, "--wait")
    for text in ("two\n", "three\n"):
        for file, old in aside.items():
            (place / "beside").write_text(text)
            (place / file).rename(place / old)
            (place / "beside").rename(place / file)
            (place / old).unlink()
        memdir.run("sync", place, "--wait")
    for file in aside:
        rows = memdir.run("history", place / file, "--json").json()
        assert [row["reason"] for row in rows] == ["current", "replaced", "replaced"], file
        assert memdir.run("history", place / file, "--show", str(rows[-1]["version"])).out == "one\n"
    assert memdir.run("undelete", place, "--list", expect=1).out == "", "nothing was deleted"
    memdir.run("unmount", name)


@pytest.mark.promise("sync.restore")
def test_a_folder_that_was_deleted_in_a_mount_comes_back_with_all_that_was_in_it(memdir: Memdir, name: str) -> None:
    place = memdir.mount(name)
    for number in range(30):
        folder = place / "work" / f"part-{number % 3}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{number}.md").write_text(f"note {number}\n")
    (place / "work" / "part-0" / "run.sh").write_text("#!/bin/sh\n")
    (place / "work" / "part-0" / "run.sh").chmod(0o755)
    (place / "work" / "link").symlink_to("part-0/run.sh")
    memdir.run("sync", place, "--wait")
    before = tree_of(place)

    subprocess.run(["rm", "-r", str(place / "work")], check=True)
    listed = memdir.run("undelete", place / "work", "--list", "--json").json()
    assert len(listed) == 32
    assert tree_of(place) == {}
    memdir.run("undelete", place / "work")
    assert tree_of(place) == before
    assert (place / "work" / "part-0" / "run.sh").stat().st_mode & 0o777 == 0o755
    assert (place / "work" / "link").is_symlink()
    assert memdir.run("undelete", place, expect=1).out == ""
    memdir.run("unmount", name)


def test_without_a_server_nothing_is_restored_and_nothing_is_lost(memdir: Memdir, name: str, tmp_path: Path) -> None:
    place = memdir.mount(name)
    (place / "a.md").write_text("one\n")
    memdir.run("sync", place, "--wait")
    memdir.env["MEMDIR_SERVER_URL"], memdir.env["MEMDIR_API_KEY"] = "http://127.0.0.1:1", "none"
    try:
        assert memdir.run("restore", "--container", name, "/a.md", expect=2).err
    finally:
        del memdir.env["MEMDIR_SERVER_URL"], memdir.env["MEMDIR_API_KEY"]
    assert (place / "a.md").read_text() == "one\n"
    eventually(lambda: memdir.status(name)["queue_length"] == 0, "nothing waits")
    memdir.run("unmount", name)
