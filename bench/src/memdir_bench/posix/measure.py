"""Taking one measurement: cold caches, a clock, the daemon's processor time, requests and memory, and a limit on the whole."""

from __future__ import annotations

import gc
import resource
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

from memdir.core.errors import MemdirError
from memdir_bench.posix import clocks
from memdir_bench.posix.steps import STEP_LIMIT_S, Step
from memdir_bench.posix.targets import Target
from memdir_bench.session import BenchError

_QUIET_WINDOW_S: Final = 0.02
_QUIET_CPU_S: Final = 0.0004
"""Less processor time than this in a window counts as quiet."""
_QUIET_WINDOWS_CHANGED: Final = 8
"""After a change: a daemon that waits for the disk is quiet for a while, too."""
_SETTLE_MAX_S: Final = 60.0
"""A gigabyte that waits in the journal takes SQLite some seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One step, once, on one target."""

    workload: str
    target: str
    round: int
    ops: int
    unit: str
    size_bytes: int
    wall_s: float
    client_cpu_s: float
    """Of this process and the programs it ran, the kernel's work for them included."""
    cpu_s: float | None
    """Of the daemon, until it was quiet again; None where there is no daemon."""
    requests: Mapping[str, int] | None
    rss_mib: float | None


@dataclass(slots=True, kw_only=True)
class Meter:
    """`drops` says how caches are made cold: by the kernel (root), or by starting the daemons anew."""

    drops: bool
    limit_s: float = STEP_LIMIT_S
    samples: list[Sample] = field(default_factory=list)

    @property
    def cold_means(self) -> str:
        if self.drops:
            return (
                "the kernel's page, name and inode caches dropped through /proc/sys/vm/drop_caches, on the disk below as well; "
                "daemons go on running"
            )
        return (
            "no root, so: daemons started anew, and posix_fadvise(DONTNEED) on every file below them and of the native folder; "
            "the native folder keeps its names and attributes"
        )

    def run(self, target: Target, step: Step, *, round_: int) -> Sample:
        """Run a step with everything around it, and keep what was measured."""
        step.prepare()
        if step.cold:
            self.make_cold(target, step.cold)
            step.load()
        settle(target)
        asked = target.requests()
        cpu_s = target.cpu_s()
        with self.limited(target):
            wall_s, client_cpu_s = timed(step)
        settle(target, changed=step.changes)
        spent_s = target.cpu_s() - cpu_s
        after = target.requests()
        step.check()
        sample = Sample(
            workload=step.name,
            target=target.name,
            round=round_,
            ops=step.ops,
            unit=step.unit,
            size_bytes=step.size_bytes,
            wall_s=wall_s,
            client_cpu_s=client_cpu_s,
            cpu_s=None if target.pid is None else spent_s,
            requests=None if asked is None or after is None else difference(asked, after),
            rss_mib=None if target.pid is None else clocks.resident_mib(target.pid),
        )
        self.samples.append(sample)
        return sample

    @contextmanager
    def limited(self, target: Target) -> Iterator[None]:
        """Kill the daemon of a step that does not end: whoever waits for it then gets an error. BenchError says so."""
        reached = threading.Event()

        def end() -> None:
            reached.set()
            target.kill()

        timer = threading.Timer(self.limit_s, end)
        timer.daemon = True
        timer.start()
        try:
            yield
        except (OSError, MemdirError) as error:
            if reached.is_set():
                raise BenchError(f"no end after {self.limit_s:g} s on {target.name}; its daemon was killed") from error
            raise
        finally:
            timer.cancel()

    def make_cold(self, target: Target, what: str) -> None:
        """`what`: "names" or "all"."""
        if self.drops:
            clocks.drop_caches(clocks.DROP_NAMES if what == "names" else clocks.DROP_ALL)
        else:
            target.stop()
            clocks.advise_unused(target.backing)
            target.start()


def timed(step: Step) -> tuple[float, float]:
    """Seconds of the work alone, on the clock and of the processor; the collector of this process does not run meanwhile."""
    gc.disable()
    try:
        before_cpu_s = _own_cpu_s()
        started_s = time.perf_counter()
        step.work()
        wall_s = time.perf_counter() - started_s
        return wall_s, _own_cpu_s() - before_cpu_s
    finally:
        gc.enable()


def _own_cpu_s() -> float:
    spent = [resource.getrusage(whose) for whose in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in spent)


def settle(target: Target, *, changed: bool = False) -> None:
    """Wait until the daemon has nothing more to do: what a change left for later, forgotten inodes."""
    if target.pid is None:
        return
    if changed and target.settle_s:
        time.sleep(target.settle_s)
    deadline_s = time.monotonic() + _SETTLE_MAX_S
    wanted = _QUIET_WINDOWS_CHANGED if changed else 1
    quiet = 0
    before_s = target.cpu_s()
    while quiet < wanted and time.monotonic() < deadline_s:
        time.sleep(_QUIET_WINDOW_S)
        now_s = target.cpu_s()
        quiet = quiet + 1 if now_s - before_s < _QUIET_CPU_S else 0
        before_s = now_s


def difference(before: Mapping[str, int], after: Mapping[str, int]) -> dict[str, int]:
    """What came in between, by kind."""
    return {kind: number - before.get(kind, 0) for kind, number in after.items() if number != before.get(kind, 0)}
