"""The tools people use every day work inside a mount as they do elsewhere."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from tests.acceptance.driver import Memdir, eventually, tree_of

pytestmark = pytest.mark.mount

GIT = "git -c user.name=t -c user.email=t@example.org -c init.defaultBranch=main -c commit.gpgsign=false"


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "source"
    for number in range(30):
        path = folder / f"d{number % 3}" / f"file {number}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"line one of {number}\nline two\n" * (number + 1))
    (folder / "run.sh").write_text("#!/bin/sh\necho it runs\n")
    (folder / "run.sh").chmod(0o755)
    return folder


@pytest.mark.promise("files.shell")
def test_shell_commands(memdir: Memdir, notes: Path, source: Path) -> None:
    memdir.shell(
        f"""set -e
        echo one > a.md && echo two >> a.md
        mkdir -p x/y/z && mv a.md x/y/z/b.md
        cp -r '{source}' copy
        cp -a x x2 && rm -r x
        ./copy/run.sh | grep -q 'it runs'
        rm copy/d0/*.txt && rmdir copy/d0""",
        cwd=notes,
    )
    tree = tree_of(notes)
    assert tree["x2/y/z/b.md"] == b"one\ntwo\n"
    assert {path for path in tree if path.startswith(("copy/d0", "x/"))} == set()
    assert tree["copy/d1/file 1.txt"] == (source / "d1" / "file 1.txt").read_bytes()


@pytest.mark.promise("files.git-clone")
def test_git_clone_and_commit(memdir: Memdir, notes: Path, source: Path) -> None:
    memdir.shell(f"{GIT} init -q && {GIT} add . && {GIT} commit -q -m first", cwd=source)
    memdir.shell(f"{GIT} clone -q '{source}' repo && cd repo && git fsck --strict && git status --porcelain", cwd=notes)
    memdir.shell(
        f"echo more >> 'd1/file 1.txt' && {GIT} commit -q -am second && {GIT} gc -q && git fsck --strict", cwd=notes / "repo"
    )
    assert memdir.shell("git status --porcelain", cwd=notes / "repo").out == ""
    assert memdir.shell("git log --format=%s", cwd=notes / "repo").lines == ["second", "first"]


@pytest.mark.promise("files.sed-in-place")
def test_sed_in_place(memdir: Memdir, notes: Path) -> None:
    (notes / "a.txt").write_text("the old word\n")
    (notes / "a.txt").chmod(0o640)
    memdir.shell("sed -i.bak 's/old/new/' a.txt && sed -i 's/word/term/' a.txt", cwd=notes)
    assert (notes / "a.txt").read_text() == "the new term\n"
    assert (notes / "a.txt.bak").read_text() == "the old word\n"
    assert (notes / "a.txt").stat().st_mode & 0o777 == 0o640


@pytest.mark.promise("files.rsync")
def test_rsync_brings_everything_and_then_nothing(memdir: Memdir, notes: Path, source: Path) -> None:
    memdir.shell(f"rsync -a '{source}/' in/", cwd=notes)
    assert tree_of(notes / "in") == tree_of(source)
    assert memdir.shell(f"rsync -a --itemize-changes '{source}/' in/", cwd=notes).out == ""
    (source / "run.sh").unlink()
    memdir.shell(f"rsync -a --delete '{source}/' in/", cwd=notes)
    assert not (notes / "in" / "run.sh").exists()


@pytest.mark.promise("files.tar")
def test_tar_unpacks_and_packs_again(memdir: Memdir, notes: Path, source: Path) -> None:
    memdir.shell(f"tar cf '{source}.tar' -C '{source}' .")
    memdir.shell(f"tar xf '{source}.tar' -C . && tar df '{source}.tar'", cwd=notes)
    assert tree_of(notes) == tree_of(source)


@pytest.mark.promise("files.vim-save")
def test_a_save_as_vim_makes_it_is_found(memdir: Memdir, notes: Path) -> None:
    """Backup by rename, a new file under the old name, swap file and probe file removed: no trace of them in a search."""
    target = notes / "plan.md"
    target.write_text("We travel by plane.\n")
    (notes / ".plan.md.swp").write_bytes(b"b0VIM 9.0")
    (notes / "4913").touch()
    (notes / "4913").unlink()
    target.rename(notes / "plan.md~")
    target.write_text("We travel by sailing boat.\n")
    (notes / "plan.md~").unlink()
    (notes / ".plan.md.swp").unlink()
    hits = memdir.hits("which vessel takes us across the sea", notes)
    assert Path(hits[0]["path"]).name == "plan.md"
    assert "sailing boat" in hits[0]["text"]
    assert {Path(hit["path"]).name for hit in hits} == {"plan.md"}


@pytest.mark.promise("posix.special")
def test_sockets_and_fifos_work_are_counted_and_stay_here(memdir: Memdir, notes: Path) -> None:
    (notes / "a.md").write_text("The walnut tree was planted.\n")
    memdir.shell("mkdir p && mkfifo p/fifo && (echo through > p/fifo &) && grep -q through p/fifo && mv p/fifo q", cwd=notes)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(os.path.relpath(notes / "listening"))
        listener.listen()
        with socket.socket(socket.AF_UNIX) as caller:
            caller.connect(os.path.relpath(notes / "listening"))
    memdir.run("sync", notes)
    status = memdir.status(str(notes))
    assert status["kept_here"] == {"folders": 0, "files": 0, "special": 2}
    assert "2 sockets, FIFOs and devices" in memdir.run("status", notes).out
    assert [hit["path"] for hit in memdir.hits("walnut", cwd=notes)]
    assert memdir.run("grep", "-F", "walnut", notes).lines
    other = memdir.mount(notes.name, "--path", memdir.folder / "other")
    eventually((other / "a.md").exists, "the file came")
    assert sorted(path.name for path in other.iterdir() if not path.name.startswith(".")) == ["a.md", "p", "profile.md"]
    memdir.shell("rm q listening", cwd=notes)
    assert memdir.status(str(notes))["kept_here"]["special"] == 0
