"""Programs that are timed: their end is noticed when they end.

`subprocess.run` with a time limit looks for it after .5, 1, 2 … and at last every 50 ms (CPython's `Popen._wait`), so that what
it times is up to 50 ms too long, and 113 and 163 ms come up again and again.
"""

from __future__ import annotations

import contextlib
import os
import select
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

Output = int | IO[bytes] | None


def run_to_end(
    command: Sequence[str],
    *,
    limit_s: float,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    stdout: Output = None,
    stderr: Output = None,
    start_new_session: bool = False,
) -> int:
    """Its exit code; without input, and with files as its output, not pipes. After `limit_s` it is killed and
    subprocess.TimeoutExpired raised."""
    with subprocess.Popen(
        list(command), cwd=cwd, env=env, stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr,
        start_new_session=start_new_session,
    ) as process:  # fmt: skip
        try:
            has_ended = _ends_within(process.pid, limit_s)
        except BaseException:
            process.kill()
            raise
        if not has_ended:
            process.kill()
            raise subprocess.TimeoutExpired(command, limit_s)
        return process.wait()


def run_checked(command: Sequence[str], *, limit_s: float, env: Mapping[str, str] | None = None, stdout: Output = None) -> None:
    """As `run_to_end`; subprocess.CalledProcessError for another exit code than 0."""
    if code := run_to_end(command, limit_s=limit_s, env=env, stdout=stdout):
        raise subprocess.CalledProcessError(code, list(command))


def _ends_within(pid: int, limit_s: float) -> bool:
    descriptor = os.pidfd_open(pid)
    with contextlib.closing(open(descriptor, "rb", buffering=0)):
        waiting = select.poll()
        waiting.register(descriptor, select.POLLIN)
        return bool(waiting.poll(limit_s * 1000))
