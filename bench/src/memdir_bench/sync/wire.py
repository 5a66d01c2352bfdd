"""What travels for a change and for no change at all, seen by a proxy; and what both cost as the container grows."""

from __future__ import annotations

import os
import random
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from memdir.core.limits import KIB, MIB
from memdir_bench.figures import Figure
from memdir_bench.sync.fixtures import Fixture, Mounted, until
from memdir_bench.sync.flow import Sizes, count_names, write_small
from memdir_bench.sync.goals import figure
from memdir_bench.sync.proxy import CountingProxy, counting_proxy

_FILES: Final = 50
_QUIET_S: Final = 1.0
"""No byte for so long: the change and its echo are through."""
_QUIET_LIMIT_S: Final = 60.0
_MINUTE_S: Final = 60.0
_STATUS_CALLS: Final = 20
_HANDLED: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """Something done to a mount, and the bytes that it changed."""

    name: str
    changed_bytes: int
    make: Callable[[Path], object]


def changes() -> list[Change]:
    return [
        Change(name="small_edit", changed_bytes=100, make=lambda root: _write(root / "small.md", 0, b"x" * 100)),
        Change(name="append_1m", changed_bytes=100, make=lambda root: _write(root / "1m.bin", MIB, b"x" * 100)),
        Change(name="middle_1m", changed_bytes=100, make=lambda root: _write(root / "1m.bin", MIB // 2, b"y" * 100)),
        Change(name="append_16m", changed_bytes=100, make=lambda root: _write(root / "16m.bin", 16 * MIB, b"x" * 100)),
        Change(name="rename_folder", changed_bytes=7, make=lambda root: (root / "folder").rename(root / "renamed")),
        Change(name="chmod", changed_bytes=2, make=lambda root: (root / "1m.bin").chmod(0o600)),
        Change(name="touch", changed_bytes=8, make=lambda root: os.utime(root / "1m.bin", (1, 1))),
        Change(name="delete_folder", changed_bytes=7, make=lambda root: _remove(root / "renamed")),
    ]


def sent(fixture: Fixture, _: Sizes) -> Iterator[Figure]:
    """Bytes both ways, the answers and the feed's echo included, of one mount."""
    dice = random.Random(5)  # noqa: S311  not a secret
    with counting_proxy(fixture.info.url) as proxy:
        here = fixture.mount("sent", "here", through=proxy.url)
        (here.root / "small.md").write_bytes(dice.randbytes(KIB))
        (here.root / "1m.bin").write_bytes(dice.randbytes(MIB))
        (here.root / "16m.bin").write_bytes(dice.randbytes(16 * MIB))
        (here.root / "folder").mkdir()
        for number in range(_FILES):
            (here.root / "folder" / f"{number}.bin").write_bytes(dice.randbytes(KIB))
        _wait_quiet(here, proxy)
        for change in changes():
            before = proxy.traffic()
            change.make(here.root)
            _wait_quiet(here, proxy)
            went = proxy.traffic() - before
            total = went.sent_bytes + went.received_bytes
            note = f"{change.changed_bytes} bytes changed, {went.requests} requests, {went.received_bytes} bytes came back"
            yield figure(f"{change.name}_wire", total, "bytes", note=note)
            yield figure(f"{change.name}_wire_ratio", total / change.changed_bytes, "x", note="bytes sent per byte changed")
        fixture.unmount(here)


def idle(fixture: Fixture, sizes: Sizes) -> Iterator[Figure]:
    """Requests and processor time a minute in which nothing happens, with one mount and with three."""
    with counting_proxy(fixture.info.url) as proxy:
        mounts: list[Mounted] = []
        for count in (1, _HANDLED):
            while len(mounts) < count:
                mounts.append(fixture.mount("idle", str(len(mounts)), through=proxy.url))
            for one in mounts:
                _wait_quiet(one, proxy)
            traffic, before = proxy.traffic(), fixture.cost(*mounts)
            time.sleep(sizes.idle_s)
            went, cost, minutes = proxy.traffic() - traffic, fixture.cost(*mounts) - before, sizes.idle_s / _MINUTE_S
            note = f"{count} mount{'s' * (count > 1)}, {sizes.idle_s:.0f} s"
            yield figure(f"idle_{count}_requests", went.requests / minutes, "1/min", note=note)
            yield figure(f"idle_{count}_daemons_cpu", cost.daemons_s / minutes, "s/min", note=note)
            yield figure(f"idle_{count}_server_cpu", cost.server_s / minutes, "s/min", note=note)
        for one in mounts:
            fixture.unmount(one)


def growth(fixture: Fixture, sizes: Sizes) -> Iterator[Figure]:
    """Push, feed, memory, idle cost and status at each size of the container. A mount that was away catches up with what was
    written since the size before."""
    here, known = fixture.mount("grown", "here"), 0
    for count in sizes.grow:
        added = count - known
        before, started_s = fixture.cost(here), time.perf_counter()
        write_small(here.root, known, count)
        here.settle()
        elapsed_s, cost = time.perf_counter() - started_s, fixture.cost(here) - before
        yield figure(f"push_{count}_rate", added / elapsed_s, "files/s", samples=added, better="higher")
        yield figure(f"push_{count}_daemon_cpu", cost.daemons_s * 1000 / added, "ms/file", samples=added)
        yield figure(f"push_{count}_server_cpu", cost.server_s * 1000 / added, "ms/file", samples=added)
        note = "the first listing" if not known else "the feed; memdir mount included"
        yield figure(
            f"follow_{count}_rate", added / _follow(fixture, count), "files/s", samples=added, better="higher", note=note
        )
        yield from _at_rest(fixture, here, count, sizes)
        known = count


def _follow(fixture: Fixture, count: int) -> float:
    """How long a mount that was away takes until it shows every name."""
    started_s = time.perf_counter()
    there = fixture.mount("grown", "there", "--prefetch", "none")
    until(lambda: count_names(there) == count, "all names are there")
    elapsed_s = time.perf_counter() - started_s
    fixture.unmount(there)
    return elapsed_s


def _at_rest(fixture: Fixture, here: Mounted, count: int, sizes: Sizes) -> Iterator[Figure]:
    yield figure(f"resident_{count}", here.resident_mib(), "MiB")
    waits_ms = []
    for _ in range(_STATUS_CALLS):
        started_s = time.perf_counter()
        here.status()
        waits_ms.append((time.perf_counter() - started_s) * 1000)
    yield figure(f"status_{count}", statistics.median(waits_ms), "ms", samples=_STATUS_CALLS)
    before = fixture.cost(here)
    time.sleep(sizes.grow_idle_s)
    cost = fixture.cost(here) - before
    per_minute = _MINUTE_S / sizes.grow_idle_s
    yield figure(f"idle_{count}_files_daemon_cpu", cost.daemons_s * per_minute, "s/min", note=f"{sizes.grow_idle_s:.0f} s")


def _wait_quiet(mounted: Mounted, proxy: CountingProxy) -> None:
    """Until nothing waits and nothing travels."""
    mounted.settle()
    seen, since_s = proxy.traffic(), time.perf_counter()

    def is_quiet() -> bool:
        nonlocal seen, since_s
        now = proxy.traffic()
        if now != seen:
            seen, since_s = now, time.perf_counter()
        return time.perf_counter() - since_s > _QUIET_S

    until(is_quiet, "nothing travels any more", limit_s=_QUIET_LIMIT_S)


def _write(path: Path, offset: int, data: bytes) -> None:
    with open(path, "r+b") as file:
        file.seek(offset)
        file.write(data)


def _remove(folder: Path) -> None:
    for path in folder.iterdir():
        path.unlink()
    folder.rmdir()
