"""The tests' end of `tests.fuse.serve`."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Any

from memdir.fs.fuse.mounting import unmount_path
from memdir.fs.fuse.mountpoint import is_mountpoint

_ROOT = Path(__file__).parents[2]
ANSWER_TIMEOUT_S = 60.0


class MountProcess:
    """One served mount. Use it in a `with` block: at the end it must have unmounted and ended without a failure."""

    def __init__(self, mountpoint: Path, *, kind: str = "memory", folder: Path | None = None, **config: Any) -> None:
        self.path = mountpoint
        self.kind = kind
        self.folder = folder
        self._config = {"mountpoint": str(mountpoint), "kind": kind, "folder": str(folder), **config}
        self._process: subprocess.Popen[bytes] | None = None
        self._unread = b""
        self._log = mountpoint.parent / f"{mountpoint.name}.log"

    def start(self) -> dict[str, Any]:
        """Start the child; returns its first message."""
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.fuse.serve", json.dumps(self._config)],
                cwd=_ROOT,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
            )
        return self._answer()

    def __enter__(self) -> MountProcess:
        try:
            first = self.start()
            assert first == {"ready": True}, f"{first}\n{self.log}"
        except BaseException:
            self.kill()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        self.stop(check=kind is None)

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def log(self) -> str:
        return self._log.read_text() if self._log.exists() else ""

    def call(self, op: str, **arguments: Any) -> Any:
        """Run a command in the child."""
        self.send(op, **arguments)
        answer = self._answer()
        assert "error" not in answer, answer["error"]
        return answer["result"]

    def send(self, op: str, **arguments: Any) -> None:
        """Give a command that ends the child, which may be gone before it answers."""
        assert self._process is not None
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"op": op, **arguments}).encode() + b"\n")
        self._process.stdin.flush()

    def kill(self) -> None:
        """SIGKILL: leaves a dead mount."""
        assert self._process is not None
        self._process.send_signal(signal.SIGKILL)
        self._process.wait(ANSWER_TIMEOUT_S)
        self._close_pipes()

    def stop(self, *, check: bool = True) -> None:
        """Unmount and wait for the child."""
        if self._process is None:
            return
        if is_mountpoint(self.path):
            unmount_path(self.path, lazy=not check)
        try:
            code = self._process.wait(ANSWER_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            code = self._process.wait(ANSWER_TIMEOUT_S)
        self._close_pipes()
        if check:
            assert code == 0, f"exit {code}\n{self.log}"
            assert not self.log, self.log

    def wait_ended(self) -> int:
        assert self._process is not None
        return self._process.wait(ANSWER_TIMEOUT_S)

    def _close_pipes(self) -> None:
        assert self._process is not None
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()

    def _answer(self) -> dict[str, Any]:
        assert self._process is not None
        assert self._process.stdout is not None
        deadline_s = time.monotonic() + ANSWER_TIMEOUT_S
        fd = self._process.stdout.fileno()
        while b"\n" not in self._unread:
            ready, _, _ = select.select([fd], [], [], max(deadline_s - time.monotonic(), 0))
            piece = os.read(fd, 65536) if ready else b""
            assert piece, f"the serving process gave no answer\n{self.log}"
            self._unread += piece
        line, _, self._unread = self._unread.partition(b"\n")
        message: dict[str, Any] = json.loads(line)
        return message


def in_shell(script: str, folder: Path) -> str:
    """Run a shell script in `folder`; it must succeed. Returns its output."""
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={**os.environ, "HOME": "/nonexistent", "GIT_CONFIG_GLOBAL": "/dev/null", "LC_ALL": "C.UTF-8"},
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout
