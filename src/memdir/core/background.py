"""Starting a process that outlives its starter and reports over a pipe: the daemon of a mount, the local server."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from memdir.core.descriptors import wait_readable

_READY_TEXT_MAX_BYTES: Final = 1 << 16
_EXIT_WAIT_S: Final = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """How a start went. `text` is what the child reported: `ready`, the words of its error, '' when it ended without a word,
    None when nothing complete came in time (then it was told to end). `exit_code` is None while it runs."""

    text: str | None
    exit_code: int | None

    @property
    def ready(self) -> bool:
        return self.text == "ready"


def start_background(
    module: str, arguments: Sequence[str], *, log_file: Path, deadline: float, environment: Mapping[str, str] | None = None
) -> Started:
    """Run `python -m module *arguments --ready-fd N` in a session of its own, its output appended to `log_file` (0600), and
    wait until it reports or `deadline` (monotonic seconds) has passed. `environment` comes on top of this process's own."""
    reading, writing = os.pipe()
    try:
        log_fd = os.open(log_file, os.O_CREAT | os.O_APPEND | os.O_WRONLY | os.O_CLOEXEC, 0o600)
        try:
            child = subprocess.Popen(
                [sys.executable, "-m", module, *arguments, "--ready-fd", str(writing)],
                stdin=subprocess.DEVNULL, stdout=log_fd, stderr=log_fd,
                pass_fds=(writing,), start_new_session=True, cwd="/",
                env={**os.environ, **(environment or {})},
            )  # fmt: skip
        finally:
            os.close(log_fd)
            os.close(writing)
        text = read_ready(reading, deadline)
    finally:
        os.close(reading)
    exit_code = None
    if text is None:
        child.terminate()
    elif text != "ready":
        exit_code = child.wait(timeout=_EXIT_WAIT_S)
    _detach(child)
    return Started(text=text, exit_code=exit_code)


def read_ready(fd: int, deadline: float) -> str | None:
    """What a child reports on its ready pipe: its first line (or all, at most 64 KiB, when it closes the pipe); None when
    nothing complete came until `deadline` (monotonic seconds)."""
    data = b""
    while len(data) < _READY_TEXT_MAX_BYTES:
        left = deadline - time.monotonic()
        if left <= 0 or not wait_readable(fd, timeout_s=left):
            return None
        piece = os.read(fd, 4096)
        if not piece:
            break
        data += piece
        if data.startswith(b"ready\n"):
            break
    return data.decode("utf-8", "replace").strip()


def _detach(child: subprocess.Popen[bytes]) -> None:
    """Let a background child live on without a warning when this process's object for it goes away."""
    exit_code = child.poll()
    child.returncode = 0 if exit_code is None else exit_code
