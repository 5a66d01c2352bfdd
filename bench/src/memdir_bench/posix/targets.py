"""What is measured: a native folder, memdir, other FUSE filesystems over a native folder. Each can start, stop, be killed."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from memdir.core.errors import MemdirError
from memdir.fs.fuse.mounting import unmount_path
from memdir.fs.fuse.mountpoint import is_dead, is_mountpoint
from memdir_bench.posix import clocks
from memdir_bench.session import BenchError, BenchSession

_UP_LIMIT_S: Final = 20.0
_DOWN_LIMIT_S: Final = 20.0
_POLL_S: Final = 0.01
_CONTROL_LIMIT_S: Final = 20.0


class Target:
    """The native folder; the others refine it. `root` is where the workloads run, `backing` where the bytes lie on the disk."""

    is_peer = False
    settle_s = 0.0
    """How long after a change the daemon may still begin to work on it."""

    def __init__(self, name: str, root: Path, *, describes: str = "a folder on the same disk") -> None:
        self.name = name
        self.root = root
        self.backing = root
        self.describes = describes

    def start(self) -> None:
        """Make `root` usable."""
        self.root.mkdir(exist_ok=True)

    def stop(self) -> None:
        """Leave no process and no mount; may be called at any time, and again."""

    def kill(self) -> None:
        """End a daemon that does not answer, so that whoever waits for it goes on."""

    @property
    def pid(self) -> int | None:
        """The daemon; a native folder has none."""
        return None

    def requests(self) -> Mapping[str, int] | None:
        """What the kernel asked so far, by kind; None when this target does not say."""
        return None

    def cpu_s(self) -> float:
        """Processor time of the daemon so far."""
        return 0.0 if self.pid is None else clocks.cpu_s(self.pid)

    def is_well(self) -> bool:
        """Whether it still answers."""
        if self.pid is not None and not os.path.exists(f"/proc/{self.pid}"):
            return False
        return not is_dead(self.root)

    def restart(self) -> None:
        self.stop()
        self.start()


class Memdir(Target):
    """The real daemon behind the real `memdir mount --no-sync`."""

    settle_s = 0.35
    """The cache's flusher waits 0.25 s for more (`fs.cache.flusher.QUIET_S`)."""

    def __init__(self, name: str, session: BenchSession, *, options: Sequence[str]) -> None:
        super().__init__(name, session.folder / name, describes=f"memdir mount --no-sync {' '.join(options)}")
        self.backing = session.folder / "home" / "data"
        self._session = session
        self._options = tuple(options)
        self._pid: int | None = None
        self._socket = ""

    def start(self) -> None:
        shown = self._session.mount(self.name, "--no-sync", *self._options, "--json").json()
        self._pid = int(shown["pid"])
        self._socket = ""

    def stop(self) -> None:
        self._pid = None
        if self.name in self._session.mounts:
            try:
                self._session.unmount(self.name)
            except BenchError:
                detach(self.root)
                self._session.memdir("unmount", self.name, "--force", allowed=(0, 1, 2))
        detach(self.root)

    def kill(self) -> None:
        _kill(self._pid)

    def load_programs(self) -> None:
        """Mount and unmount something else, so that a start that follows does not wait for Python's files."""
        self._session.mount("another", "--no-sync")
        self._session.unmount("another")

    @property
    def pid(self) -> int | None:
        return self._pid

    def requests(self) -> Mapping[str, int]:
        from memdir.daemon.control import ControlClient

        if not self._socket:
            self._socket = self._find_socket()
        counted = ControlClient(self._socket).call("counters", _CONTROL_LIMIT_S)["requests"]
        return {str(kind): int(number) for kind, number in counted.items()}

    def _find_socket(self) -> str:
        from memdir.daemon.registry import MountRegistry

        (record,) = MountRegistry(self._session.paths()).find_by_name(self.name)
        return record.socket_file


class Peer(Target):
    """Another filesystem's program in the foreground, over a native folder."""

    is_peer = True

    def __init__(self, name: str, folder: Path, *, command: Callable[[Path, Path], list[str]], describes: str) -> None:
        super().__init__(name, folder / name, describes=describes)
        self.backing = folder / f"{name}-source"
        self._command = command(self.backing, self.root)
        self._log = folder / f"{name}.log"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        self.root.mkdir(exist_ok=True)
        self.backing.mkdir(exist_ok=True)
        with self._log.open("ab") as log:
            # A session of its own: Ctrl-C is for us, and we end it in order.
            self._process = subprocess.Popen(
                self._command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )
        deadline_s = time.monotonic() + _UP_LIMIT_S
        while not is_mountpoint(self.root):
            if self._process.poll() is not None or time.monotonic() > deadline_s:
                said = self._log.read_text(encoding="utf-8", errors="replace").strip()[-300:]
                self.stop()
                raise BenchError(f"{self.name} did not mount: {said or 'it said nothing'}")
            time.sleep(_POLL_S)

    def stop(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        if process.poll() is None and is_mountpoint(self.root):
            try:
                unmount_path(self.root)
            except MemdirError:
                process.kill()
        try:
            process.wait(_DOWN_LIMIT_S if not is_mountpoint(self.root) else 0.1)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(_DOWN_LIMIT_S)
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()
        detach(self.root)

    def kill(self) -> None:
        _kill(self.pid)

    @property
    def pid(self) -> int | None:
        return None if self._process is None else self._process.pid


def detach(root: Path) -> None:
    """Take whatever is still mounted at `root` out of the tree."""
    if is_mountpoint(root):
        unmount_path(root, lazy=True)


def _kill(pid: int | None) -> None:
    if pid is None:
        return
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return
