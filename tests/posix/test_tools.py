"""Programs that copy whole trees with all their attributes, and others that look closely at a filesystem."""

from __future__ import annotations

import os
import shutil
import socket
from pathlib import Path

import pytest

from tests.fuse.harness import in_shell
from tests.posix.test_mapped import drop_cache

pytestmark = [pytest.mark.mount, pytest.mark.promise("posix.tools")]

IS_ROOT = os.geteuid() == 0
KEEP = "--xattrs --xattrs-include='*'"
SECOND_NS = 1_000_000_000


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A native tree with everything that copying tools keep."""
    tree = tmp_path_factory.mktemp("original") / "tree"
    (tree / "ü").mkdir(parents=True)
    (tree / "f").write_text("hello")
    (tree / "line\nbreak").write_text("x")
    (tree / os.fsdecode(b"\xff\xfe")).write_text("no utf-8")
    os.link(tree / "f", tree / "ü" / "hard")
    os.symlink("../f", tree / "ü" / "link")
    os.symlink("nowhere", tree / "dangling")
    with (tree / "sparse").open("wb") as handle:
        handle.truncate(8 << 20)
        handle.seek(5 << 20)
        handle.write(b"data")
    os.setxattr(tree / "f", "user.note", b"\x00\x01binary")
    os.setxattr(tree / "ü", "user.folder", b"yes")
    if IS_ROOT:
        os.setxattr(tree / "f", "trusted.note", b"root's")
        os.chown(tree / "f", 1234, 5678)
        os.lchown(tree / "dangling", 4321, 8765)
        os.mknod(tree / "null", 0o020666, os.makedev(1, 3))
    os.chmod(tree / "f", 0o2750)
    (tree / "ü").chmod(0o1770)
    for path in tree.rglob("*"):  # rsync sets no time that is the right second already
        os.utime(path, ns=(9, 1_111_111_111 * SECOND_NS + 5), follow_symlinks=False)
    os.utime(tree / "f", ns=(SECOND_NS * 1_000_000_000 + 1, SECOND_NS * 1_000_000_000 + 987_654_321))
    os.utime(tree / "dangling", ns=(5, 7 * SECOND_NS + 3), follow_symlinks=False)
    os.utime(tree / "ü", ns=(5, -3 * SECOND_NS + 9))
    return tree


def described(tree: Path) -> dict[str, tuple[object, ...]]:
    """All that a copy shall keep: type, mode, owners, links, size, modification, attributes, contents."""
    found: dict[str, tuple[object, ...]] = {}
    groups: dict[int, str] = {}
    for folder, names, files in os.walk(os.fsencode(tree)):
        for raw in sorted((*names, *files)):
            path = os.path.join(folder, raw)
            name = os.fsdecode(os.path.relpath(path, os.fsencode(tree)))
            info = os.lstat(path)
            attributes = {
                key: os.getxattr(path, key, follow_symlinks=False) for key in os.listxattr(path, follow_symlinks=False)
            }
            contents: object = None
            if os.path.islink(path):
                contents = os.readlink(path)
            elif os.path.isfile(path):
                contents = Path(os.fsdecode(path)).read_bytes()
            first = groups.setdefault(info.st_ino, name)
            size = info.st_size if not os.path.isdir(path) else 0
            owners = (info.st_uid, info.st_gid)
            found[name] = (info.st_mode, owners, first, size, info.st_rdev, info.st_mtime_ns, attributes, contents)
    return found


@pytest.mark.parametrize(
    "command",
    [
        "cp -a {source} {target}",
        "rsync -aHX {source}/ {target}/",
        "rsync -aHXS {source}/ {target}/",
        "mkdir {target} && tar -C {source} {keep} -cSf - . | tar -C {target} {keep} -xpf -",
    ],
    ids=["cp", "rsync", "rsync-sparse", "tar"],
)
def test_a_copy_in_and_back_out_keeps_everything(place: Path, original: Path, tmp_path: Path, command: str) -> None:
    program = command.split(maxsplit=1)[0]
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed")
    in_shell(command.format(source=original, target=place / "copy", keep=KEEP), place)
    assert described(place / "copy") == described(original)
    drop_cache(place / "copy" / "sparse")
    in_shell(command.format(source=place / "copy", target=tmp_path / "back", keep=KEEP), place)
    assert described(tmp_path / "back") == described(original)


@pytest.mark.skipif(shutil.which("rsync") is None, reason="rsync is not installed")
def test_rsync_with_acls_copies_what_there_is(place: Path, original: Path) -> None:
    """`-A` asks for access control lists, finds none, and goes on."""
    in_shell(f"rsync -aHAX {original}/ {place}/copy/", place)
    assert described(place / "copy") == described(original)
    assert in_shell(f"rsync -aHAXni {original}/ {place}/copy/", place) == ""


def test_touch_sets_any_date(place: Path, tmp_path: Path) -> None:
    for date in ("1902-01-01", "1969-12-31 23:59:59.5", "2038-01-20", "2106-02-08", "2200-06-01 12:00:00.123456789"):
        in_shell(
            f"export TZ=UTC; touch -d '{date}' f {tmp_path}/f; stat -c %.9Y f > a; stat -c %.9Y {tmp_path}/f | cmp a", place
        )


def test_programs_and_scripts_run_from_the_mount(place: Path) -> None:
    shutil.copy("/bin/ls", place / "ls")
    (place / "script").write_text("#!/bin/sh\necho ran: $1\n")
    (place / "script").chmod(0o755)
    assert in_shell("./ls", place).split() == ["ls", "script"]
    assert in_shell("./script x", place) == "ran: x\n"


def test_find_compares_times(place: Path) -> None:
    script = "touch -d '2020-01-01' old; touch -d '2021-01-01' new; [ new -nt old ]; find . -newer old -name new"
    assert in_shell(script, place).split() == ["./new"]


def test_a_socket_is_listed_as_one(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(place)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("s")
        assert in_shell("find . -type s; [ -S s ]", place) == "./s\n"
    monkeypatch.undo()
