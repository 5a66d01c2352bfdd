"""Taking one measurement: cold caches, a clock, the daemon's processor time, requests and memory, and a limit on the whole."""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

from memdir.bench.posix import clocks
from memdir.bench.posix.steps import STEP_LIMIT_S, Step
from memdir.bench.posix.targets import Target
from memdir.bench.session import BenchError
from memdir.core.errors import MemdirError

_QUIET_WINDOW_S: Final = 0.02
_QUIET_CPU_S: Final = 0.0004
"""Less processor time than this in a window counts as quiet."""
_SETTLE_MAX_S: Final = 5.0


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
            wall_s = timed(step)
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


def timed(step: Step) -> float:
    """Seconds of the work alone; the collector of this process does not run meanwhile."""
    gc.disable()
    try:
        started_s = time.perf_counter()
        step.work()
        return time.perf_counter() - started_s
    finally:
        gc.enable()


def settle(target: Target, *, changed: bool = False) -> None:
    """Wait until the daemon has nothing more to do (what a change left for later, forgotten inodes), at most 5 s."""
    if target.pid is None:
        return
    if changed and target.settle_s:
        time.sleep(target.settle_s)
    deadline_s = time.monotonic() + _SETTLE_MAX_S
    before_s = target.cpu_s()
    while time.monotonic() < deadline_s:
        time.sleep(_QUIET_WINDOW_S)
        now_s = target.cpu_s()
        if now_s - before_s < _QUIET_CPU_S:
            return
        before_s = now_s


def difference(before: Mapping[str, int], after: Mapping[str, int]) -> dict[str, int]:
    """What came in between, by kind."""
    return {kind: number - before.get(kind, 0) for kind, number in after.items() if number != before.get(kind, 0)}
