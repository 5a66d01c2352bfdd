"""A memdir of its own for a measurement: private MEMDIR_HOME, the real command line, and nothing left behind."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any, Final

from memdir.core.errors import MemdirError
from memdir.core.paths import AppPaths, under_home
from memdir.fs.fuse.mounting import unmount_path
from memdir.fs.fuse.mountpoint import mounts

COMMAND_LIMIT_S: Final = 120.0


class BenchError(MemdirError):
    """A command of the measured product failed, so there is no figure."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """One finished command."""

    code: int
    stdout: str
    stderr: str
    elapsed_s: float

    def json(self) -> Any:
        return json.loads(self.stdout)


@dataclass(slots=True, kw_only=True)
class BenchSession:
    """Runs `memdir` in `folder` against its own home; knows the mounts it made."""

    folder: Path
    env: dict[str, str]
    mounts: list[str] = field(default_factory=list)

    def memdir(self, *arguments: str, limit_s: float = COMMAND_LIMIT_S, allowed: Sequence[int] = (0,)) -> Result:
        """Run one command to its end."""
        try:
            result = run_limited([*memdir_command(), *arguments], cwd=self.folder, env=self.env, limit_s=limit_s)
        except subprocess.TimeoutExpired as error:
            raise BenchError(f"memdir {' '.join(arguments)} took longer than {limit_s:.0f} s") from error
        if result.code not in allowed:
            raise BenchError(f"memdir {' '.join(arguments)} ended with {result.code}: {result.stderr.strip()[-500:]}")
        return result

    def mount(self, name: str, *options: str, limit_s: float = COMMAND_LIMIT_S) -> Result:
        with uninterrupted():  # a command that was broken off may have started a daemon nobody knows of
            result = self.memdir("mount", name, *options, limit_s=limit_s)
            if name not in self.mounts:
                self.mounts.append(name)
        return result

    def unmount(self, name: str) -> Result:
        with uninterrupted():
            result = self.memdir("unmount", name)
            self.mounts.remove(name)
        return result

    def paths(self) -> AppPaths:
        """Where the measured memdir keeps its things."""
        return under_home(self.folder / "home")

    def daemon_pid(self, name: str) -> int:
        return int(self.memdir("status", name, "--json").json()["pid"])

    def server_status(self) -> dict[str, Any]:
        status = self.memdir("server", "status", "--json").json()
        if not isinstance(status, dict):
            raise BenchError("memdir server status --json did not answer with an object")
        return status


def run_limited(command: Sequence[str], *, cwd: Path, env: Mapping[str, str], limit_s: float) -> Result:
    """Run `command` to its end, without input. Its output goes to files, so that a background child cannot hold a pipe open.
    subprocess.TimeoutExpired after `limit_s`."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        started = time.perf_counter()
        done = subprocess.run(
            list(command), cwd=cwd, env=env, stdin=subprocess.DEVNULL, stdout=out, stderr=err, timeout=limit_s, check=False,
            start_new_session=True,  # Ctrl-C is for the benchmark, which ends its commands in order
        )  # fmt: skip
        elapsed_s = time.perf_counter() - started
        out.seek(0)
        err.seek(0)
        return Result(
            code=done.returncode,
            stdout=out.read().decode("utf-8", "replace"),
            stderr=err.read().decode("utf-8", "replace"),
            elapsed_s=elapsed_s,
        )


def memdir_command() -> list[str]:
    """The installed command beside this interpreter, as a user runs it; the module when there is none."""
    script = Path(sys.executable).parent / "memdir"
    return [str(script)] if script.exists() else [sys.executable, "-m", "memdir.cli"]


def peak_rss_mib(pid: int) -> float:
    """The most memory that a running process has had resident (VmHWM)."""
    for line in Path(f"/proc/{pid}/status").read_text(encoding="ascii", errors="replace").split("\n"):
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    raise BenchError(f"process {pid} has no VmHWM")


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Hold back Ctrl-C and SIGTERM until the block is done; for short steps that must not be left half done."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    held: list[tuple[int, FrameType | None]] = []
    before = {number: signal.signal(number, lambda *seen: held.append(seen)) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        if held:
            signal.raise_signal(held[0][0])


@contextmanager
def open_session(parent: Path | None = None) -> Iterator[BenchSession]:
    """A session in a new temporary folder (below `parent`); at the end its mounts, its server and its folder are gone."""
    folder = Path(tempfile.mkdtemp(prefix="memdir-bench-", dir=parent)).resolve()
    env = {name: value for name, value in os.environ.items() if not name.startswith("MEMDIR_")}
    env["MEMDIR_HOME"] = str(folder / "home")
    session = BenchSession(folder=folder, env=env)
    try:
        yield session
    finally:
        with uninterrupted():
            _close(session)


def _close(session: BenchSession) -> None:
    failed = []
    for name in list(session.mounts):
        try:
            session.memdir("unmount", name, "--force", limit_s=60)
        except BenchError as error:
            failed.append(error.message)
    try:
        session.memdir("server", "stop", limit_s=60, allowed=(0, 1))
    except BenchError as error:
        failed.append(error.message)
    for path in mounts_below(session.folder):
        unmount_path(path, lazy=True)
    if mounts_below(session.folder):  # never delete through a mount that is still there
        raise BenchError(f"a mount is left below {session.folder}", hint="; ".join(failed))
    shutil.rmtree(session.folder)


def mounts_below(folder: Path) -> list[Path]:
    """What is mounted in `folder`, the innermost first."""
    return [Path(entry.mountpoint) for entry in reversed(mounts()) if entry.mountpoint.startswith(f"{folder}/")]
