"""A child process that runs cases of the conformance table: `python -m tests.posix.worker FOLDER [UID [PID]]`.

One JSON line in (a list of steps), one out (their answers). A child, because cases change user, directory and umask, and
because an ordinary user's mount is seen in the mount namespace of PID only.
"""

from __future__ import annotations

import ctypes
import itertools
import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from tests.posix.calls import Calls, check

_CLONE_NEWNS = 0x20000


def enter_mounts_of(pid: int) -> None:
    """See what another process has mounted (setns(2))."""
    fd = os.open(f"/proc/{pid}/ns/mnt", os.O_RDONLY)
    check(ctypes.CDLL(None, use_errno=True).setns(fd, _CLONE_NEWNS))
    os.close(fd)


def become(uid: int) -> None:
    """An ordinary user for good."""
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)


@contextmanager
def as_user(who: str) -> Iterator[None]:
    """Be `uid` or `uid:gid,group,...` for one call; root stays reachable as the saved user."""
    if not who:
        yield
        return
    uid, _, groups = who.partition(":")
    gids = [int(gid) for gid in groups.split(",")] if groups else [int(uid)]
    before = os.getgroups()
    os.setgroups(gids)
    os.setresgid(gids[0], gids[0], 0)
    os.setresuid(int(uid), int(uid), 0)
    try:
        yield
    finally:
        os.setresuid(0, 0, 0)
        os.setresgid(0, 0, 0)
        os.setgroups(before)


def run(folder: str, steps: list[dict[str, str | list[str]]]) -> list[str]:
    """All answers of one case, in a new folder that is the current one."""
    os.mkdir(folder, 0o755)
    os.chdir(folder)
    calls = Calls()
    answers = []
    try:
        for step in steps:
            with as_user(str(step["user"])):
                answers.append(calls.run(list(step["words"]), str(step["fd"])))
    finally:
        calls.close_all()
        os.chdir("/")
    return answers


def main() -> None:
    folder = sys.argv[1]
    if len(sys.argv) > 3:
        enter_mounts_of(int(sys.argv[3]))
    if len(sys.argv) > 2:
        become(int(sys.argv[2]))
    os.umask(0)
    numbers = itertools.count()
    for line in sys.stdin:
        try:
            answer: object = {"answers": run(f"{folder}/{next(numbers)}", json.loads(line))}
        except Exception as error:  # noqa: BLE001  the parent says which case it was
            answer = {"error": f"{type(error).__name__}: {error}"}
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
