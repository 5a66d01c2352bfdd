"""The two sides of the conformance table: a native directory, and a mount of memdir with its own worker process."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from tests.fuse.harness import MountProcess
from tests.posix.script import Case

_ROOT = Path(__file__).parents[2]
_TIMEOUT_S = 60.0
NOBODY = 65534


class Worker:
    """`tests.posix.worker` in a folder, as this process's user or another one, in this mount namespace or that of `pid`."""

    def __init__(self, folder: Path, log: Path, *, uid: int | None = None, pid: int | None = None) -> None:
        words = [str(folder)] + ([] if uid is None else [str(uid)]) + ([] if pid is None else [str(pid)])
        self._log = log
        with log.open("ab") as stderr:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.posix.worker", *words],
                cwd=_ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr,
            )  # fmt: skip

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(_TIMEOUT_S)
        self._process.stdout.close()

    def run(self, case: Case) -> list[str]:
        """One answer for each step of `case`."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        steps = [{"user": step.user, "fd": step.fd, "words": step.words} for step in case.steps]
        self._process.stdin.write(json.dumps(steps).encode() + b"\n")
        self._process.stdin.flush()
        ready, _, _ = select.select([self._process.stdout], [], [], _TIMEOUT_S)
        line = self._process.stdout.readline() if ready else b""
        assert line, f"{case.id}: the worker gave no answer\n{self._log.read_text()}"
        message = json.loads(line)
        assert "answers" in message, f"{case.id}: {message['error']}"
        answers: list[str] = message["answers"]
        return answers


def native_kind(folder: Path) -> str:
    """The type of the filesystem that `folder` is on, from the longest mount point above it."""
    best, kind = "", ""
    real = os.path.realpath(folder)
    with open("/proc/self/mounts", encoding="utf-8", errors="surrogateescape") as table:
        for line in table:
            _, place, name, *_ = line.split(" ")
            if (real + "/").startswith(place.rstrip("/") + "/") and len(place) >= len(best):
                best, kind = place, name
    return kind


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """A mount with its worker, and the worker of the native directory it is compared with (None where there is none)."""

    name: str
    mount: MountProcess
    worker: Worker
    native: Worker | None
