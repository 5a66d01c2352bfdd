"""How fast contents go to the server and to another mount, and how long an edit in one mount takes to be seen in another."""

from __future__ import annotations

import io
import os
import random
import subprocess
import tarfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from memdir.core.limits import KIB, MIB
from memdir_bench.corpus import SUBJECTS, sentence
from memdir_bench.figures import Figure, percentile
from memdir_bench.programs import run_checked
from memdir_bench.session import BenchError
from memdir_bench.sync.fixtures import Fixture, Mounted, until
from memdir_bench.sync.goals import figure
from memdir_bench.sync.lookups import timed_lookups

SMALL_BYTES: Final = KIB
_FOLDER_FILES: Final = 100
_EPOCH_S: Final = 1_767_225_600
_UNTAR_LIMIT_S: Final = 600.0
_LOOK_S: Final = 0.2
"""Asking a daemon for its status takes the processor, too."""
_SEEN_POLL_S: Final = 0.002
_SEEN_LIMIT_S: Final = 30.0
_WARM_S: Final = 1.0
_WARM_EDITS: Final = 3
"""Both mounts have met the server and follow its feed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """How much work."""

    small: int = 10_000
    large: int = 4
    large_mib: int = 64
    edits: int = 200
    contents: int = 2000
    idle_s: float = 60.0
    grow: tuple[int, ...] = (100, 1_000, 10_000, 50_000)
    grow_idle_s: float = 10.0


QUICK: Final = Sizes(
    small=100, large=1, large_mib=2, edits=5, contents=50, idle_s=1.0, grow=(20, 60), grow_idle_s=0.5
)  # fmt: skip


def push(fixture: Fixture, sizes: Sizes) -> Iterator[Figure]:
    """An archive of small notes is unpacked, while somebody looks names up; then large files of random bytes."""
    here = fixture.mount("pushed", "here")
    (here.root / "first.md").write_text("Before the clock starts, the server has loaded its models.\n", encoding="utf-8")
    fixture.session.memdir("sync", str(here.root), "--wait")
    archive = fixture.session.folder / "small.tar"
    _pack(archive, sizes.small)
    with timed_lookups(here.root) as waits:
        time.sleep(_WARM_S)
        quiet_ms = waits()
    daemon_mib, server_mib, before = here.resident_mib(), fixture.server_mib(), fixture.cost(here)
    with timed_lookups(here.root) as waits:
        started_s = time.perf_counter()
        _unpack(archive, here.root)
        written_s = time.perf_counter() - started_s
        until(lambda: here.waiting() == 0, "the files are at the server", poll_s=_LOOK_S)
        elapsed_s = time.perf_counter() - started_s
        busy_ms = waits()
    cost, count = fixture.cost(here) - before, sizes.small
    note = f"{count} files of 1 KiB, indexed meanwhile; tar alone took {written_s:.1f} s"
    yield figure("untar_rate", count / elapsed_s, "files/s", samples=count, better="higher", note=note)
    yield figure("untar_daemon_cpu", cost.daemons_s * 1000 / count, "ms/file", samples=count, note="filesystem and sync")
    yield figure(
        "untar_server_cpu", cost.server_s * 1000 / count, "ms/file", samples=count, note="what it indexes meanwhile too"
    )
    grown = here.resident_mib(peak=True) - daemon_mib
    yield figure("untar_daemon_growth", grown, "MiB", note=f"from {daemon_mib:.0f} MiB")
    yield figure("untar_server_growth", fixture.server_mib(peak=True) - server_mib, "MiB", note=f"from {server_mib:.0f} MiB")
    for share in (50, 99):
        yield figure(f"quiet_lookup_p{share}", percentile(quiet_ms, share / 100), "ms", samples=len(quiet_ms), note="before it")
        yield figure(f"untar_lookup_p{share}", percentile(busy_ms, share / 100), "ms", samples=len(busy_ms))
    yield figure("untar_lookup_max", max(busy_ms), "ms", samples=len(busy_ms))
    yield from _large(fixture, sizes)


def _large(fixture: Fixture, sizes: Sizes) -> Iterator[Figure]:
    here = fixture.mount("large", "here")
    dice, size_bytes = random.Random(3), sizes.large_mib * MIB  # noqa: S311  not a secret
    before, started_s = fixture.cost(here), time.perf_counter()
    for number in range(sizes.large):
        with open(here.root / f"large-{number}.bin", "wb") as file:
            for _ in range(sizes.large_mib):
                file.write(dice.randbytes(MIB))
    until(lambda: here.waiting() == 0, "the large files are at the server")
    elapsed_s, cost = time.perf_counter() - started_s, fixture.cost(here) - before
    total, note = sizes.large * size_bytes, f"{sizes.large} files of {sizes.large_mib} MiB, their writing included"
    yield figure("push_large_rate", total / elapsed_s / 1e6, "MB/s", samples=sizes.large, better="higher", note=note)
    yield figure("push_large_daemon_cpu", cost.daemons_s * 1e9 / total, "ms/MB", samples=sizes.large)
    yield figure("push_large_server_cpu", cost.server_s * 1e9 / total, "ms/MB", samples=sizes.large)
    there = fixture.mount("large", "there", "--prefetch", "none")
    until(lambda: len(_names(there.root)) == sizes.large, "the names of the large files are there")
    before, started_s = fixture.cost(there), time.perf_counter()
    for name in _names(there.root):
        _read(name, size_bytes)
    elapsed_s, cost = time.perf_counter() - started_s, fixture.cost(there) - before
    yield figure("pull_large_rate", total / elapsed_s / 1e6, "MB/s", samples=sizes.large, better="higher", note="read at once")
    yield figure("pull_large_daemon_cpu", cost.daemons_s * 1e9 / total, "ms/MB", samples=sizes.large)


def pull(fixture: Fixture, sizes: Sizes) -> Iterator[Figure]:
    """Another mount of the container: its names, its contents as the prefetch brings them and as readers ask for them, and then
    what is written while both are mounted."""
    count = sizes.contents
    here = fixture.mount("pulled", "here")
    write_small(here.root / "old", 0, count)
    here.settle()
    started_s = time.perf_counter()
    there = fixture.mount("pulled", "there", "--prefetch", "none")
    until(lambda: len(_names(there.root)) == count, "all names are there")
    elapsed_s = time.perf_counter() - started_s
    yield figure("pull_names_rate", count / elapsed_s, "files/s", samples=count, better="higher", note="memdir mount included")
    before, started_s = fixture.cost(there), time.perf_counter()
    for name in _names(there.root):
        _read(name, SMALL_BYTES)
    elapsed_s, cost = time.perf_counter() - started_s, fixture.cost(there) - before
    yield figure("pull_read_rate", count / elapsed_s, "files/s", samples=count, better="higher", note="read one by one")
    yield figure("pull_read_daemon_cpu", cost.daemons_s * 1000 / count, "ms/file", samples=count)
    fixture.unmount(there)
    there = fixture.mount("pulled", "third", "--prefetch", "all")
    before, started_s = fixture.cost(there), time.perf_counter()
    until(lambda: len(_names(there.root)) == count, "all names are there")
    until(lambda: not there.status()["absent_files"], "the prefetch has brought everything", poll_s=_LOOK_S)
    elapsed_s, cost = time.perf_counter() - started_s, fixture.cost(there) - before
    yield figure(
        "prefetch_rate", count / elapsed_s, "files/s", samples=count, better="higher", note="memdir mount not included"
    )
    yield figure("prefetch_daemon_cpu", cost.daemons_s * 1000 / count, "ms/file", samples=count)
    started_s = time.perf_counter()
    write_small(here.root / "new", count, 2 * count)
    until(lambda: len(_names(there.root / "new")) == count, "the new names are there", poll_s=_LOOK_S)
    elapsed_s = time.perf_counter() - started_s
    note = "written in one mount until the other shows every name"
    yield figure("follow_rate", count / elapsed_s, "files/s", samples=count, better="higher", note=note)


def visible(fixture: Fixture, sizes: Sizes) -> Iterator[Figure]:
    """From the end of an edit in one mount until another mount shows its bytes."""
    here, there = fixture.mount("shared", "here"), fixture.mount("shared", "there")
    waits_ms, dice = [], random.Random(4)  # noqa: S311  not a secret
    for number in range(-_WARM_EDITS, sizes.edits):
        name, text = f"note-{number % 20:02d}.md", f"edit {number}\n"
        (here.root / name).write_text(text, encoding="utf-8")
        waited_s = _seen(there.root / name, text)
        if number >= 0:
            waits_ms.append(waited_s * 1000)
        time.sleep(dice.uniform(0.0, 0.2))  # not in step with anything
    for share in (50, 95):
        yield figure(f"visible_p{share}", percentile(waits_ms, share / 100), "ms", samples=sizes.edits)
    yield figure("visible_max", max(waits_ms), "ms", samples=sizes.edits, note="debounce, push, feed and pull; two daemons")


def _seen(path: Path, text: str) -> float:
    def shown() -> bool:
        try:
            return path.read_text(encoding="utf-8") == text
        except FileNotFoundError:
            return False

    return until(shown, f"{path.name} shows the edit", poll_s=_SEEN_POLL_S, limit_s=_SEEN_LIMIT_S)


def write_small(folder: Path, first: int, last: int) -> None:
    """Files of random bytes, with which the server has nothing to do but keep them."""
    dice = random.Random(first)  # noqa: S311  not a secret
    for number in range(first, last):
        if number == first or number % _FOLDER_FILES == 0:
            place = folder / f"{number // _FOLDER_FILES:04d}"
            place.mkdir(parents=True, exist_ok=True)
        with open(place / f"{number:06d}.bin", "wb") as file:
            file.write(dice.randbytes(SMALL_BYTES))


def count_names(mounted: Mounted) -> int:
    """Files of random bytes that a mount shows."""
    return len(_names(mounted.root))


def _names(folder: Path) -> list[str]:
    return [
        os.path.join(parent, name) for parent, _, names in os.walk(folder) for name in names if name.endswith(".bin")
    ]  # fmt: skip


def _read(name: str, size_bytes: int) -> None:
    with open(name, "rb", buffering=0) as file:
        seen = 0
        while piece := file.read(MIB):
            seen += len(piece)
    if seen != size_bytes:
        raise BenchError(f"{name} has {seen} bytes instead of {size_bytes}")


def _pack(archive: Path, count: int) -> None:
    """Notes of a kibibyte, a hundred to a folder."""
    dice = random.Random(2)  # noqa: S311  not a secret
    lines = [sentence(dice, dice.choice(SUBJECTS)) for _ in range(1000)]
    with tarfile.open(archive, "w") as packed:
        for number in range(count):
            text = "\n".join(dice.choices(lines, k=20)).encode("utf-8")[:SMALL_BYTES]
            entry = tarfile.TarInfo(f"d{number // _FOLDER_FILES:04d}/note-{number:05d}.md")
            entry.size, entry.mtime, entry.mode = len(text), _EPOCH_S, 0o644
            packed.addfile(entry, io.BytesIO(text))


def _unpack(archive: Path, folder: Path) -> None:
    try:
        run_checked(["tar", "xf", str(archive), "-C", str(folder)], limit_s=_UNTAR_LIMIT_S)
    except FileNotFoundError:
        raise BenchError("this benchmark needs tar") from None
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
        raise BenchError(f"tar failed: {error}") from error
