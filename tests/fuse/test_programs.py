"""What people do in a mount: editors, archives, version control, copies."""

from __future__ import annotations

import filecmp
import os
import random
import shutil
from pathlib import Path

import pytest

from tests.fuse.harness import in_shell

pytestmark = pytest.mark.mount


@pytest.fixture
def original(tmp_path: Path) -> Path:
    """A varied folder on the native filesystem."""
    rng = random.Random(11)
    base = tmp_path / "original"
    for number in range(60):
        folder = base / f"dir {number % 7}" / f"ü{number % 3}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"file {number}.txt").write_bytes(rng.randbytes(rng.choice([0, 1, 700, 70_000, 300_000])))
    os.symlink("dir 0", base / "link")
    os.link(base / "dir 0" / "ü0" / "file 0.txt", base / "hard")
    script = base / "run.sh"
    script.write_text("#!/bin/sh\necho ran\n")
    script.chmod(0o755)
    (base / "empty").mkdir()
    os.utime(script, ns=(1_500_000_000_123_456_789, 1_500_000_000_987_654_321))
    return base


def assert_same_tree(one: Path, other: Path) -> None:
    """Names, types, contents, permission bits and link targets are equal."""
    left, right = _describe(one), _describe(other)
    assert left.keys() == right.keys()
    for name, description in left.items():
        assert right[name] == description, name


def _describe(base: Path) -> dict[str, tuple[object, ...]]:
    found: dict[str, tuple[object, ...]] = {}
    for folder, names, files in os.walk(base):
        for name in (*names, *files):
            path = Path(folder, name)
            info = path.lstat()
            contents: object = None
            if path.is_symlink():
                contents = os.readlink(path)
            elif path.is_file():
                contents = path.read_bytes()
            found[str(path.relative_to(base))] = (info.st_mode, contents)
    return found


@pytest.mark.promise("files.shell")
def test_cp_and_back_again(place: Path, original: Path, tmp_path: Path) -> None:
    in_shell(f"cp -a {original} {place}/copy && cp -a {place}/copy {tmp_path}/back", place)
    assert_same_tree(original, place / "copy")
    assert_same_tree(original, tmp_path / "back")
    script = (place / "copy" / "run.sh").stat()
    assert script.st_mtime_ns == 1_500_000_000_987_654_321
    assert in_shell("./copy/run.sh", place) == "ran\n"


@pytest.mark.promise("files.tar")
def test_tar_in_both_directions(place: Path, original: Path, tmp_path: Path) -> None:
    in_shell(f"tar c -C {original} . | tar x -C {place}", place)
    assert_same_tree(original, place)
    in_shell(f"mkdir {tmp_path}/out && tar c . | tar x -C {tmp_path}/out", place)
    assert_same_tree(original, tmp_path / "out")


@pytest.mark.promise("files.rsync")
def test_rsync_copies_and_then_finds_nothing_to_do(place: Path, original: Path) -> None:
    if shutil.which("rsync") is None:
        # The same steps by hand: rsync writes `.name.XXXXXX` beside the target, sets its attributes, and renames it.
        for path in sorted(original.rglob("*")):
            target = place / path.relative_to(original)
            if path.is_symlink():
                target.symlink_to(os.readlink(path))
            elif path.is_dir():
                target.mkdir()
            else:
                temporary = target.with_name(f".{target.name}.Ab3dE6")
                shutil.copyfile(path, temporary)
                shutil.copystat(path, temporary)
                temporary.rename(target)
        assert_same_tree(original, place)
        return
    in_shell(f"rsync -aH {original}/ {place}/", place)
    assert_same_tree(original, place)
    assert in_shell(f"rsync -aHi {original}/ {place}/", place) == ""


@pytest.mark.promise("files.git-clone")
def test_git_works(place: Path) -> None:
    out = in_shell(
        """
        git init -q repo && cd repo
        git config user.email a@b && git config user.name n
        for n in $(seq 40); do echo "line $n" > "file $n.txt"; done
        git add . && git commit -qm first
        sed -i s/line/LINE/ "file 3.txt"
        git status --short
        git commit -qam second
        git mv "file 4.txt" renamed.txt && git commit -qm third
        git checkout -q -b side HEAD~2 && git checkout -q -
        git gc -q && git fsck --strict
        cd .. && git clone -q repo clone && cd clone && git log --oneline | wc -l && git status --short
        """,
        place,
    )
    assert out.split() == ["M", '"file', '3.txt"', "3"]
    assert (place / "clone" / "file 3.txt").read_text() == "LINE 3\n"
    assert not filecmp.dircmp(place / "repo", place / "clone", ignore=[".git"]).diff_files


@pytest.mark.promise("files.sed-in-place")
def test_sed_in_place_keeps_the_mode(place: Path) -> None:
    (place / "f").write_text("one\ntwo\n")
    (place / "f").chmod(0o640)
    in_shell("sed -i s/two/three/ f && sed -i.bak s/one/ONE/ f", place)
    assert (place / "f").read_text() == "ONE\nthree\n"
    assert (place / "f.bak").read_text() == "one\nthree\n"
    assert (place / "f").stat().st_mode & 0o777 == 0o640


def test_an_editor_that_renames_a_new_file_over_the_old_one(place: Path) -> None:
    (place / "note.md").write_text("old")
    temporary = place / ".note.md.tmp"
    with temporary.open("w") as handle:
        handle.write("new")
        handle.flush()
        os.fsync(handle.fileno())
    temporary.rename(place / "note.md")
    assert (place / "note.md").read_text() == "new"
    assert os.listdir(place) == ["note.md"]


@pytest.mark.promise("files.vim-save")
def test_an_editor_that_moves_the_old_file_away_first(place: Path) -> None:
    """vim with `backupcopy=no`: note.md becomes note.md~, a new note.md is written, the backup goes."""
    (place / "note.md").write_text("old")
    probe = place / "4913"
    probe.touch()
    probe.unlink()
    (place / "note.md").rename(place / "note.md~")
    assert not (place / "note.md").exists()
    (place / "note.md").write_text("new")
    assert (place / "note.md~").read_text() == "old"
    (place / "note.md~").unlink()
    if shutil.which("vim") is not None:
        in_shell("vim -u NONE -es -c 's/new/newer/' -c 'wq' note.md", place)
        assert (place / "note.md").read_text() == "newer\n"
    assert os.listdir(place) == ["note.md"]


@pytest.mark.promise("files.shell")
def test_shell_redirections(place: Path) -> None:
    out = in_shell(
        "echo one > f; echo two >> f; cat < f; : > f; wc -c < f; set -o noclobber; (echo x > f) 2>/dev/null || echo refused",
        place,
    )
    assert out.split() == ["one", "two", "0", "refused"]


def test_sqlite_keeps_a_database(place: Path) -> None:
    """Locks, fsync, rollback journals, and a shared mapping for the write-ahead log."""
    import sqlite3

    for mode in ("delete", "wal"):
        path = place / f"{mode}.db"
        connection = sqlite3.connect(path)
        try:
            assert connection.execute(f"pragma journal_mode={mode}").fetchone() == (mode,)
            connection.execute("create table t(x)")
            connection.executemany("insert into t values (?)", [(number,) for number in range(1000)])
            connection.commit()
        finally:
            connection.close()
        connection = sqlite3.connect(path)
        try:
            assert connection.execute("select count(*), sum(x) from t").fetchone() == (1000, 499_500)
            assert connection.execute("pragma integrity_check").fetchone() == ("ok",)
        finally:
            connection.close()


def test_find_and_grep_see_everything(place: Path, original: Path) -> None:
    shutil.copytree(original, place / "t", symlinks=True)
    (place / "t" / "empty" / "deep").mkdir()
    (place / "t" / "empty" / "deep" / "note").write_text("needle\n")
    assert in_shell("grep -rl needle .", place) == "./t/empty/deep/note\n"
    expected = sum(len(names) + len(files) for _, names, files in os.walk(original)) + 2
    assert int(in_shell("find t -mindepth 1 | wc -l", place)) == expected
