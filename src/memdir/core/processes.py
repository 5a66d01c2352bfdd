"""What `/proc` says about other processes: who holds a lock, who is inside a folder, when somebody started (proc(5)).

Nothing here touches the files in question, so a hung filesystem cannot block it. An ordinary user sees the open files of own
processes only; of the others the locks in `/proc/locks` at most.
"""

from __future__ import annotations

import os
import re
import signal
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from memdir.core.descriptors import wait_readable

_PROC: Final = Path("/proc")
_PR_SET_PDEATHSIG: Final = 1
_FILE_MAX_BYTES: Final = 4 << 20
"""Of one file in /proc at most: the maps of a large process have some hundred KiB."""
_LOCK_LINE: Final = re.compile(
    r"^(?:lock:\t)?\d+: \w+\s+\w+\s+\w+ (?P<pid>-?\d+) (?P<major>[0-9a-f]+):(?P<minor>[0-9a-f]+):(?P<inode>\d+) ", re.MULTILINE
)
"""A line of /proc/locks or of an fdinfo file, of a lock that is held (one that waits has `->` behind its number)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """A process that runs now."""

    pid: int
    name: str
    """Its short name, at most 15 characters."""
    started_at_s: float
    """Seconds since the epoch; 0 when it cannot be told."""
    state: str
    """As in proc(5): R, S, D (waits in the kernel), T (stopped by a signal), Z …"""

    def __str__(self) -> str:
        return f"{self.name}, pid {self.pid}"

    @property
    def is_stopped(self) -> bool:
        """Whether somebody halted it with SIGSTOP, or a debugger did."""
        return self.state in ("T", "t")


def process(pid: int) -> Process | None:
    """What runs under `pid`; None when nothing does, or when it ended and waits for its parent."""
    text = _read(_PROC / str(pid) / "stat")
    name, _, rest = text.partition("(")[2].rpartition(")")
    fields = rest.split()
    if len(fields) < 20 or fields[0] in ("Z", "X"):
        return None
    started_s = _boot_time_s() + int(fields[19]) / os.sysconf("SC_CLK_TCK")
    return Process(pid=pid, name=name, started_at_s=started_s, state=fields[0])


def process_exists(pid: int) -> bool:
    """Whether there is such a process, whoever owns it."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def command_line(pid: int) -> list[str]:
    """The words `pid` was started with; empty when it is gone or not ours to ask."""
    return [word for word in _read(_PROC / str(pid) / "cmdline").split("\0") if word]


def lock_holders(path: Path) -> list[Process]:
    """The processes that hold a lock on the file `path`: flock, fcntl, and locks of an open file description.

    /proc/locks names no process for the last kind, so the descriptors of every process of this user are looked at as well.
    """
    try:
        info = os.stat(path)
    except OSError:
        return []
    device = (os.major(info.st_dev), os.minor(info.st_dev))
    pids = {
        int(match["pid"])
        for match in _LOCK_LINE.finditer(_read(_PROC / "locks"))
        if (int(match["major"], 16), int(match["minor"], 16)) == device and int(match["inode"]) == info.st_ino
    }
    own, real = os.getpid(), os.path.realpath(path)
    pids.update(pid for pid in _pids() if pid not in pids and _locks(pid, real, info.st_ino))
    found = (process(pid) for pid in sorted(pids) if pid > 0 and pid != own)
    return [holder for holder in found if holder is not None]


def processes_inside(path: str, *, but: int | None = None) -> list[Process]:
    """The processes, as far as this user may look, with their working directory, an open or a mapped file below `path`."""
    found = []
    for pid in _pids():
        if pid in (os.getpid(), but):
            continue
        try:
            fds = os.listdir(_PROC / str(pid) / "fd")
        except OSError:
            continue  # ended meanwhile, or another user's
        links = ["cwd", "root", "exe", *(f"fd/{fd}" for fd in fds)]
        if any(_is_below(_link(pid, link), path) for link in links) or _maps_below(pid, path):
            known = process(pid)
            if known is not None:
                found.append(known)
    return found


def end_process(handle: int, *, wait_s: float) -> bool:
    """SIGTERM, after `wait_s` SIGKILL, to the process of a pidfd; one that somebody halted (SIGSTOP) goes on for that.
    False when it does not even end then: it hangs in the kernel."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        for sent in (number, signal.SIGCONT):
            try:
                signal.pidfd_send_signal(handle, sent)
            except ProcessLookupError:
                return True
        if wait_for_end(handle, wait_s):
            return True
    return False


def wait_for_end(handle: int, timeout_s: float) -> bool:
    """Whether the process of a pidfd has ended (pidfd_open(2)), waited for at most `timeout_s`."""
    return wait_readable(handle, timeout_s=timeout_s)


def _pids() -> Iterator[int]:
    return (int(entry) for entry in os.listdir(_PROC) if entry.isdigit())


def _locks(pid: int, path: str, inode: int) -> bool:
    """Whether a descriptor of `pid` that goes by the name `path` holds a lock. The device is left out: for some filesystems
    (btrfs, overlayfs) the kernel's tables and stat(2) name different ones."""
    try:
        numbers = os.listdir(_PROC / str(pid) / "fd")
    except OSError:
        return False
    return any(
        int(match["inode"]) == inode
        for number in numbers
        if _link(pid, f"fd/{number}") == path
        for match in _LOCK_LINE.finditer(_read(_PROC / str(pid) / "fdinfo" / number))
    )


def _maps_below(pid: int, path: str) -> bool:
    lines = _read(_PROC / str(pid) / "maps").splitlines()
    return any(_is_below(line[line.find("/") :], path) for line in lines if "/" in line)


def _is_below(target: str, path: str) -> bool:
    return target == path or target.startswith(path.rstrip("/") + "/")


def _link(pid: int, name: str) -> str:
    try:
        return os.readlink(_PROC / str(pid) / name)
    except OSError:
        return ""


def _boot_time_s() -> float:
    match = re.search(r"^btime (\d+)$", _read(_PROC / "stat"), re.MULTILINE)
    return float(match[1]) if match else 0.0


def _read(file: Path) -> str:
    """A file of /proc; '' when it is gone or may not be read."""
    try:
        with open(file, "rb") as handle:
            return handle.read(_FILE_MAX_BYTES).decode("utf-8", "surrogateescape")
    except OSError:
        return ""


def end_with_parent(parent_pid: int) -> None:
    """The kernel kills this process when the thread that started it ends (prctl(2); on Linux)."""
    import ctypes

    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
    if os.getppid() != parent_pid:
        os._exit(1)
