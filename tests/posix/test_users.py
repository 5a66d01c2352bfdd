"""An ordinary user's mount: it is that user's alone, and everything works in it but giving files away."""

from __future__ import annotations

import errno
import os
import stat
import subprocess
from pathlib import Path

import pytest

from tests.fuse.test_names import refused
from tests.posix.forked import as_user, beside_user
from tests.posix.sides import NOBODY, Side

pytestmark = [
    pytest.mark.mount,
    pytest.mark.promise("posix.user"),
    pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user"),
]


def sh(script: str) -> str:
    """A shell script in the current directory; it must succeed."""
    done = subprocess.run(
        ["/bin/bash", "-euo", "pipefail", "-c", script], capture_output=True, text=True, timeout=60, check=False,
        env={"PATH": "/usr/bin:/bin", "HOME": "/nonexistent", "LC_ALL": "C.UTF-8", "GIT_CONFIG_GLOBAL": "/dev/null"},
    )  # fmt: skip
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout


def test_everything_belongs_to_the_user_who_mounted(user_side: Side) -> None:
    def work() -> None:
        os.umask(0o022)
        os.mkdir("own")
        os.chdir("own")
        Path("f").write_text("hello")
        os.mkdir("d")
        os.symlink("f", "s")
        os.link("f", "h")
        for name in (".", "f", "d", "s", "h"):
            info = os.lstat(name)
            assert (info.st_uid, info.st_gid) == (NOBODY, NOBODY), name
        assert stat.S_IMODE(os.stat("f").st_mode) == 0o644
        with refused(errno.EPERM):
            os.chown("f", 0, 0)
        with refused(errno.EPERM):
            os.mknod("null", stat.S_IFCHR | 0o666, os.makedev(1, 3))
        os.setxattr("f", "user.a", b"1")
        with refused(errno.EPERM):
            os.setxattr("f", "trusted.a", b"1")

    as_user(user_side, work)


@pytest.mark.parametrize("uid", [0, 65533])
def test_nobody_else_may_enter_not_even_root(user_side: Side, uid: int) -> None:
    place = user_side.mount.path

    def work() -> None:
        for call in (os.listdir, os.stat):
            with refused(errno.EACCES):
                call(place)
        with refused(errno.EACCES):
            os.open(place / "x", os.O_CREAT | os.O_WRONLY)

    beside_user(user_side, uid, work)


def test_the_usual_programs_work(user_side: Side) -> None:
    def work() -> None:
        script = """
            mkdir work; cd work
            mkdir -p a/b; echo one > a/1; cp -r a copy; mv copy moved; ln a/1 a/2; ln -s 1 a/3
            chmod 750 a; chmod u+x a/1; touch -d '2001-02-03 04:05:06.789' a/1
            tar cf - a | (mkdir t; tar xf - -C t); diff -r a t/a
            cp -a a kept; [ "$(stat -c '%Y %a' kept/1)" = "$(stat -c '%Y %a' a/1)" ]
            printf '#!/bin/sh\\necho ran\\n' > run; chmod 755 run; ./run > out; [ "$(cat out)" = ran ]
            sed -i s/one/two/ a/2; cat a/2; find . -type f | wc -l
            rm -rf a moved t kept; ls
        """
        assert sh(script).split() == ["two", "9", "out", "run"]

    as_user(user_side, work)


def test_a_user_is_in_his_own_groups_only(user_side: Side) -> None:
    def work() -> None:
        Path("mine").write_text("x")
        os.chmod("mine", 0o6755)
        assert stat.S_IMODE(os.stat("mine").st_mode) == 0o6755
        with open("mine", "a", encoding="utf-8") as handle:
            handle.write("y")
        assert stat.S_IMODE(os.stat("mine").st_mode) == 0o755  # nobody but root keeps them at a write
        os.chmod("mine", 0o000)
        with refused(errno.EACCES):
            os.open("mine", os.O_RDONLY)
        os.unlink("mine")

    as_user(user_side, work)
