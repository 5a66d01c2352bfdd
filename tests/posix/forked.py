"""Running a function in a forked child, as another user or in another mount namespace. The child says what went wrong."""

from __future__ import annotations

import os
import signal
import traceback
from collections.abc import Callable

from tests.posix.sides import NOBODY, Side
from tests.posix.worker import become, enter_mounts_of

_REPORT_MAX_BYTES = 60_000
_CHILD_MAX_S = 100


def forked(work: Callable[[], object]) -> Callable[[], None]:
    """Start `work` in a child; what is returned waits for it and fails with its traceback."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reader)
        code = 0
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(_CHILD_MAX_S)  # a child that waits for ever must not outlive its test
        try:
            work()
        except BaseException:  # noqa: BLE001  told to the parent, who fails with it
            os.write(writer, traceback.format_exc().encode()[-_REPORT_MAX_BYTES:])
            code = 1
        os._exit(code)
    os.close(writer)

    def wait() -> None:
        report = b""
        while piece := os.read(reader, 65536):
            report += piece
        os.close(reader)
        _, status = os.waitpid(pid, 0)
        assert not report, report.decode()
        assert status == 0, f"the child ended with status {status}"

    return wait


def as_user(side: Side, work: Callable[[], object]) -> None:
    """`work` as the ordinary user who mounted `side`, where that mount can be seen, standing in its root."""

    def prepared() -> None:
        enter_mounts_of(side.mount.pid)
        become(NOBODY)
        os.chdir(side.mount.path)
        work()

    forked(prepared)()


def beside_user(side: Side, uid: int, work: Callable[[], object]) -> None:
    """`work` as somebody else (or root) in the mount namespace of `side`, standing outside of the mount."""

    def prepared() -> None:
        enter_mounts_of(side.mount.pid)
        if uid:
            become(uid)
        os.chdir("/")
        work()

    forked(prepared)()
