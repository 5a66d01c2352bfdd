"""A memdir of its own for a measurement: private MEMDIR_HOME, the real command line, and nothing left behind."""

from __future__ import annotations

import errno
import fcntl
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
from memdir_bench.programs import run_to_end

COMMAND_LIMIT_S: Final = 120.0
_PREFIX: Final = "memdir-bench-"
_OWNER: Final = "owner"
_REMOVE_TRIES: Final = 50
_REMOVE_PAUSE_S: Final = 0.1


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
        # Ctrl-C is for the benchmark, which ends its commands in order.
        code = run_to_end(command, cwd=cwd, env=env, stdout=out, stderr=err, limit_s=limit_s, start_new_session=True)
        elapsed_s = time.perf_counter() - started
        out.seek(0)
        err.seek(0)
        return Result(
            code=code,
            stdout=out.read().decode("utf-8", "replace"),
            stderr=err.read().decode("utf-8", "replace"),
            elapsed_s=elapsed_s,
        )


def memdir_command() -> list[str]:
    """The installed command beside this interpreter, as a user runs it; the module when there is none."""
    script = Path(sys.executable).parent / "memdir"
    return [str(script)] if script.exists() else [sys.executable, "-m", "memdir.cli"]


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
    """A session in a new temporary folder (below `parent`); at the end its mounts, its server and its folder are gone. So are
    those of earlier sessions there whose process was killed."""
    place = Path(parent or tempfile.gettempdir())
    with uninterrupted():
        clear_left(place)
    folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=place)).resolve()
    session = _session(folder)
    lock = _own(folder)
    try:
        yield session
    finally:
        with uninterrupted():
            _close(session)
            os.close(lock)


def _session(folder: Path) -> BenchSession:
    env = {name: value for name, value in os.environ.items() if not name.startswith("MEMDIR_")}
    env["MEMDIR_HOME"] = str(folder / "home")
    return BenchSession(folder=folder, env=env)


def _own(folder: Path) -> int:
    """A lock that lasts as long as this process, whatever ends it; taken before the file has its name, so that nobody meets one
    that is not locked yet."""
    fresh = folder / f"{_OWNER}.new"
    fd = os.open(fresh, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    fresh.rename(folder / _OWNER)
    return fd


def clear_left(parent: Path) -> list[Path]:
    """End what sessions below `parent` left behind when they were killed; returns their folders. A running one, another user's
    and a folder without a lock are left alone."""
    from memdir.daemon.registry import MountRegistry

    cleared = []
    for folder in sorted(parent.resolve().glob(f"{_PREFIX}*")):
        try:
            if folder.lstat().st_uid != os.geteuid():
                continue
            fd = os.open(folder / _OWNER, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
        except OSError:
            continue
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            session = _session(folder)
            session.mounts = [record.path for record in MountRegistry(session.paths()).all() if record.state == "alive"]
            _close(session)
            cleared.append(folder)
        except BlockingIOError:
            continue
        finally:
            os.close(fd)
    return cleared


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
    _remove(session.folder)


def _remove(folder: Path) -> None:
    """A daemon whose mount was detached may still write its last lines while its folder goes."""
    for _ in range(_REMOVE_TRIES):
        try:
            shutil.rmtree(folder)
            return
        except OSError as error:
            if error.errno != errno.ENOTEMPTY:
                raise
        time.sleep(_REMOVE_PAUSE_S)
    shutil.rmtree(folder)


def mounts_below(folder: Path) -> list[Path]:
    """What is mounted in `folder`, the innermost first."""
    return [Path(entry.mountpoint) for entry in reversed(mounts()) if entry.mountpoint.startswith(f"{folder}/")]
