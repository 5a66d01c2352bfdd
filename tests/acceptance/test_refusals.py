"""What a person sees when the machine refuses: one line and a hint, exit code 2, and nothing left behind."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.driver import Memdir
from tests.acceptance.users import NOBODY, as_ordinary_user

pytestmark = pytest.mark.mount

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can make such a machine")

FULL = "mount -t tmpfs -o size=64k none $BASE/disk; head -c 100k /dev/zero > $BASE/disk/fill 2> /dev/null"
READ_ONLY = "mount -t tmpfs -o ro none $BASE/disk"
NO_DEVICE = "mount -t tmpfs none $BASE/disk; cp -a /dev/null /dev/zero /dev/urandom $BASE/disk; mount --bind $BASE/disk /dev"
MACHINES = {
    "read-only home": (f"{READ_ONLY}; export MEMDIR_HOME=$BASE/disk/x", "read-only file system", "MEMDIR_HOME"),
    "read-only XDG folders": (f"{READ_ONLY}; unset MEMDIR_HOME; export HOME=$BASE/disk", "read-only file", "XDG_DATA_HOME"),
    "somebody else's home": (
        f"mkdir -p $BASE/disk/data; chown {NOBODY} $BASE/disk/data; export MEMDIR_HOME=$BASE/disk",
        "belongs to user",
        "chown -R 0",
    ),
    "a full disk": (f"{FULL}; export MEMDIR_HOME=$BASE/disk", "the disk is full", "MEMDIR_HOME moves it"),
    "no FUSE device": (NO_DEVICE, "/dev/fuse is missing", "modprobe fuse"),
    "a wrong FUSE device": ("mount --bind /dev/null /dev/fuse", "/dev/fuse is not the FUSE device", "mknod"),
    "too many open files": ("ulimit -n 12", "too many files are open", "ulimit -n 4096"),
    "a mount point that is a file": ("touch a", "is not a directory", "--path"),
    "a mount point below a file": ("touch f; set -- --path f/a", "is not a directory", "--path"),
    "a mount point on a read-only disk": (f"{READ_ONLY}; set -- --path $BASE/disk/a", "Read-only", "choose another --path"),
    "another mount at the mount point": ("mkdir a; mount -t tmpfs none a", "another filesystem is mounted", "unmount it"),
}
"""What makes the machine so, and words of the message and of the hint."""


def run_in(base: Path, script: str) -> subprocess.CompletedProcess[str]:
    """A shell script as root in a mount namespace of its own; `memdir` is the command."""
    command = f'memdir() {{ "{sys.executable}" -m memdir.cli "$@"; }}\ncd "$BASE/work"\n'
    return subprocess.run(
        ["unshare", "--mount", "--propagation", "private", "bash", "-c", command + script],
        env={**os.environ, "BASE": str(base), "MEMDIR_HOME": str(base / "home"), "NO_COLOR": "1"},
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip


@pytest.fixture
def base(tmp_path: Path) -> Path:
    folder = tmp_path.resolve()
    for name in ("work", "disk"):
        (folder / name).mkdir()
    return folder


@as_root
@pytest.mark.promise("refused.plainly")
@pytest.mark.parametrize("machine", [*MACHINES])
def test_what_the_machine_refuses_is_one_line_with_a_hint(base: Path, machine: str) -> None:
    setting, message, hint = MACHINES[machine]
    done = run_in(base, f'{setting}\nls > before\nmemdir mount a --no-sync "$@"; code=$?\nls | diff before - >&2\nexit $code')
    lines = done.stderr.splitlines()
    assert done.returncode == 2, done
    assert len(lines) == 2, done.stderr
    assert lines[0].startswith("memdir: ")
    assert message in lines[0]
    assert lines[1].startswith("  hint: ")
    assert hint in lines[1]
    assert done.stdout == ""
    kept = [path for path in (base / "home" / "data" / "mounts").glob("*") if path.is_dir()]
    assert kept == [], "the folder of a mount that never came up"


@as_root
@pytest.mark.promise("refused.folders-closed")
def test_folders_that_others_may_write_to_are_closed_with_a_line(base: Path) -> None:
    (base / "home" / "data").mkdir(parents=True)
    (base / "home" / "data").chmod(0o777)
    done = run_in(base, "memdir mount a --no-sync; memdir unmount a")
    assert done.returncode == 0, done
    assert done.stderr == f"memdir: others could write to {base}/home/data; it is closed to them now\n"
    assert (base / "home" / "data").stat().st_mode & 0o777 == 0o700


@as_root
@pytest.mark.promise("refused.disk-full")
def test_a_disk_that_gets_full_is_told_and_the_mount_ends_in_order(base: Path) -> None:
    done = run_in(base, """
        mount -t tmpfs -o size=600k none $BASE/disk; export MEMDIR_HOME=$BASE/disk
        memdir mount a --no-sync
        head -c 4M /dev/urandom > a/big
        echo $?
        memdir status a | grep problem
        memdir unmount a; echo $?
        memdir list --all
    """)  # fmt: skip
    assert "No space left on device" in done.stderr
    assert "disk" in done.stdout.split("problem")[1].splitlines()[0]
    assert "full" in done.stdout.split("problem")[1].splitlines()[0]
    assert f"a: unmounted from {base}/work/a\n0\na  unmounted  {base}/work/a" in done.stdout
    assert "Traceback" not in done.stdout + done.stderr


@pytest.mark.promise("refused.helper")
@pytest.mark.parametrize(
    ("outside", "message", "hint"),
    [
        ('mount --bind "$BASE/fuse" "$(command -v fusermount3)"', "fusermount3 is not installed", "apt-get install fuse3"),
        (
            'helper=$(command -v fusermount3); cp $helper $BASE/h; chmod 755 $BASE/h; mount --bind $BASE/h $helper',
            "refused to mount", "setuid root",
        ),
    ],
    ids=["none", "not setuid"],
)  # fmt: skip
def test_an_ordinary_user_without_a_working_helper_is_told_so(outside: str, message: str, hint: str) -> None:
    said = as_ordinary_user("memdir mount notes --no-sync; echo $?; ls", outside=outside)
    first, second, code, *left = said.splitlines()
    assert message in first
    assert hint in second
    assert code == "2"
    assert left == []


@pytest.fixture
def memdir(tmp_path: Path) -> Iterator[Memdir]:
    """A home of its own, without a server."""
    base = tmp_path.resolve()
    (base / "work").mkdir()
    runner = Memdir(folder=base / "work", home=base / "home")
    yield runner
    runner.close()


@pytest.mark.promise("read-only.refuses")
def test_a_read_only_mount_refuses_every_change_and_says_what_it_is(memdir: Memdir) -> None:
    place = memdir.mount("notes", "--no-sync")
    (place / "a.md").write_text("there")
    (place / "d").mkdir()
    memdir.run("unmount", "notes")
    memdir.mount("notes", "--no-sync", "--read-only")
    set_attribute = f'{sys.executable} -c \'import os; os.setxattr("a.md", "user.x", b"1")\''
    changes = [
        "echo x > new", "echo x >> a.md", "mkdir e", "rmdir d", "rm a.md", "mv a.md b.md", "ln a.md b.md", "ln -s a.md b.md",
        "chmod 600 a.md", "touch a.md", "truncate -s 0 a.md", "mkfifo f", set_attribute,
    ]  # fmt: skip
    for change in changes:
        refused = memdir.shell(change, cwd=place, expect=(1, 2))
        assert "Read-only file system" in refused.err, change
    assert (place / "a.md").read_text() == "there"
    options = memdir.shell(f"grep ' {place} fuse.memdir ' /proc/self/mounts").out.split()[3]
    assert options.split(",")[0] == "ro"
    assert memdir.status("notes")["read_only"] is True
    assert "(read-only)" in memdir.run("list").out
    assert "read-only" in memdir.run("status", "notes").out
    memdir.run("unmount", "notes")
    assert memdir.run("fsck", "notes").out == "notes: clean\n"
