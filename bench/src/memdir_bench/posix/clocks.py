"""What is read off a daemon from outside: processor time, memory. And how caches are made cold."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from memdir.core.errors import MemdirError

DROP_CACHES: Final = Path("/proc/sys/vm/drop_caches")
DROP_NAMES: Final = "2\n"
"""Names and inodes only (proc_sys_vm(5)): what the disk said stays in memory."""
DROP_ALL: Final = "3\n"
_TICKS_PER_S: Final = os.sysconf("SC_CLK_TCK")
_DESCENDANTS_MAX: Final = 1000


class ProcessGoneError(MemdirError):
    """The measured daemon ended."""


def cpu_s(*pids: int) -> float:
    """Processor time of processes so far: all their threads, also ended ones, their children, and children they waited for;
    each process once. ProcessGoneError when one of `pids` ended.

    The id of another process's clock is (~pid << 3) | 2 (CPUCLOCK_SCHED in Linux's posix-timers.h, what clock_getcpuclockid(3)
    computes), in nanoseconds; /proc/PID/stat has ticks of 10 ms, good enough for the children that are gone.
    """
    total = 0.0
    for pid in {*pids, *(child for one in pids for child in _descendants(one))}:
        try:
            fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
            total += time.clock_gettime((~pid << 3) | 2) + (int(fields[13]) + int(fields[14])) / _TICKS_PER_S
        except OSError:
            if pid in pids:
                raise ProcessGoneError(f"process {pid} ended while it was measured") from None
    return total


def _descendants(pid: int) -> Iterator[int]:
    """Living children and theirs; one that ends meanwhile is counted by its parent."""
    waiting = [pid]
    for _ in range(_DESCENDANTS_MAX):
        if not waiting:
            return
        parent = waiting.pop()
        try:
            threads = os.listdir(f"/proc/{parent}/task")
            lists = [Path(f"/proc/{parent}/task/{thread}/children").read_text(encoding="ascii") for thread in threads]
        except (FileNotFoundError, ProcessLookupError):
            continue
        children = [int(word) for words in lists for word in words.split()]
        waiting += children
        yield from (child for child in children if os.path.exists(f"/proc/{child}"))


def resident_mib(pid: int, *, peak: bool = False) -> float:
    """VmRSS, or VmHWM: the most there ever was."""
    wanted = "VmHWM:" if peak else "VmRSS:"
    try:
        text = Path(f"/proc/{pid}/status").read_text(encoding="utf-8", errors="replace")
    except OSError:
        raise ProcessGoneError(f"process {pid} ended while it was measured") from None
    for line in text.split("\n"):
        if line.startswith(wanted):
            return int(line.split()[1]) / 1024
    raise ProcessGoneError(f"process {pid} has no memory any more")


def can_drop_caches() -> bool:
    """Root may, and not in every container; tried for real, since a container's root passes access(2)."""
    try:
        DROP_CACHES.write_text(DROP_NAMES, encoding="ascii")
    except OSError:
        return False
    return True


def drop_caches(what: str) -> None:
    """Make the next reads cold on every filesystem of the machine; dirty pages cannot be dropped, so they are written first."""
    os.sync()
    DROP_CACHES.write_text(what, encoding="ascii")


def advise_unused(folder: Path) -> None:
    """What an ordinary user can do: ask the kernel to forget each file's pages (names and attributes stay)."""
    os.sync()
    for parent, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(parent, name)
            if not os.path.isfile(path) or os.path.islink(path):
                continue
            fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
            try:
                os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
            finally:
                os.close(fd)
