"""`memdir bench smoke`: the figures of this machine, each beside its goal.

Everything runs through the real command line, daemon and server in a private MEMDIR_HOME. Takes some minutes, most of them
for the transformer's vectors of 1,000 files. Filesystem figures alternate between the native folder and the mount in
the same run, so that a busy machine slows both.
"""

from __future__ import annotations

import json
import signal
import statistics
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

from memdir.core.errors import MemdirError
from memdir_bench import workloads
from memdir_bench.corpus import FACTS, generate, write
from memdir_bench.figures import Figure, machine, p50_p95, ratio_to_native
from memdir_bench.posix.clocks import resident_mib
from memdir_bench.session import BenchError, BenchSession, open_session

CORPUS_FILES: Final = 1000
CHUNKS_MIN: Final = 5000
FRESH_TRIALS: Final = 32
GREP_TRIALS: Final = 60
SEARCH_TRIALS: Final = 200
START_TRIALS: Final = 20
MOUNT_TRIALS: Final = 5
ROUNDS: Final = 3
FRESH_TRIES_MAX: Final = 20
"""Greps per fresh file before it counts as not found."""
SYNC_LIMIT_S: Final = 1800
"""A busy machine may need longer for the transformer; then the other figures are measured all the same, and this is said."""

QUERIES: Final = (
    "who mended the ropes of the ship",
    "protecting fruit from freezing at night",
    "medicine handed to the wrong ward",
    "stage lamps and electrical work",
    "machine outage and recovery of a copy",
    "marks and certificates of pupils",
    "money discussion that went on for hours",
    "insects that make honey",
    "heavy goods lifted by machinery",
    "music before the performance",
)


def main(argv: Sequence[str] | None = None) -> int:
    """Measure everything; JSON with `--json`, else a table. Exit 0 when measured, 2 when a part could not be."""
    as_json = "--json" in (sys.argv[1:] if argv is None else argv)
    before = signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that mounts and folders are cleaned up then, too
    try:
        report = run()
    finally:
        signal.signal(signal.SIGTERM, before)
    if as_json:
        sys.stdout.write(json.dumps(report, indent=2) + "\n")
    else:
        sys.stdout.write(table(report))
    return 2 if report["failed"] else 0


def run() -> dict[str, Any]:
    """All parts; one that fails is reported by name and does not stop the others."""
    parts: tuple[tuple[str, Callable[[BenchSession], list[Figure]]], ...] = (
        ("start-up", start_up),
        ("filesystem", filesystem),
        ("search", search),
    )
    figures: list[Figure] = []
    failed: dict[str, str] = {}
    for name, part in parts:
        progress(f"{name} …")
        try:
            with open_session() as session:
                figures += part(session)
        except (MemdirError, OSError) as error:
            failed[name] = str(error)
            progress(f"{name} failed: {error}")
    return {"machine": machine(), "figures": [figure.as_json() for figure in figures], "failed": failed}


def progress(text: str) -> None:
    sys.stderr.write(f"bench: {text}\n")
    sys.stderr.flush()


def start_up(session: BenchSession) -> list[Figure]:
    """How long commands take before they can do anything."""
    session.memdir("grep", "--help")  # byte-compile and fill the page cache
    help_ms = [session.memdir("grep", "--help").elapsed_s * 1000 for _ in range(START_TRIALS)]
    mounts = []
    for trial in range(MOUNT_TRIALS + 1):
        elapsed_s = session.mount("start").elapsed_s
        if trial:  # the first one also starts the server
            mounts.append(elapsed_s)
        else:
            first_s = elapsed_s
        session.unmount("start")
    return [
        *p50_p95("grep_help_start", help_ms, unit="ms", goal_p95=150),
        Figure(name="mount_first", value=first_s, unit="s", samples=1, goal=2.0, note="no server was running"),
        Figure(
            name="mount",
            value=statistics.median(mounts),
            unit="s",
            samples=len(mounts),
            goal=2.0,
            spread=(min(mounts), max(mounts)),
        ),
    ]


def filesystem(session: BenchSession) -> list[Figure]:
    """Ratios to the native filesystem, on a mount without sync; goals are the prototype's ratios."""
    session.mount("files", "--no-sync")
    peaks_mib: list[float] = []

    def forget_everything() -> None:
        """What the kernel and, with a new daemon, the mount hold in memory."""
        peaks_mib.append(resident_mib(session.daemon_pid("files"), peak=True))
        session.unmount("files")
        session.mount("files", "--no-sync")
        workloads.drop_caches()

    cold = workloads.can_drop_caches()
    native_root, mount_root = session.folder / "native", session.folder / "files"
    native_root.mkdir()
    times: dict[str, tuple[list[float], list[float]]] = {}
    for number in range(ROUNDS):
        progress(f"filesystem, round {number + 1} of {ROUNDS}")
        # A different order each round, so that neither side always meets the warmer machine.
        sides = [(native_root, 0), (mount_root, 1)]
        for root, side in sides if number % 2 == 0 else sides[::-1]:
            folder = root / f"round-{number}"
            folder.mkdir()
            forget = forget_everything if side else workloads.drop_caches
            for name, seconds in _workload_times(folder, forget=forget if cold else None):
                times.setdefault(name, ([], []))[side].append(seconds)
    floors = {"create": 0.42, "stat_first": 0.17, "open_read_cold": 0.07, "save_by_rename": 0.51, "list_tree_warm": 1.15}
    figures = [
        ratio_to_native(f"ratio_{name}", native, mount, goal=floors.get(name)) for name, (native, mount) in times.items()
    ]
    for name in ("write_stream", "read_stream"):
        rates = [workloads.STREAM_BYTES / 1e6 / seconds for seconds in times[name][1]]
        figures.append(
            Figure(
                name=f"{name}_rate", value=statistics.median(rates), unit="MB/s", samples=len(rates), better="higher",
                spread=(min(rates), max(rates)),
            )
        )  # fmt: skip
    peaks_mib.append(resident_mib(session.daemon_pid("files"), peak=True))
    figures.append(Figure(name="daemon_peak_rss_files", value=max(peaks_mib), unit="MiB", samples=1))
    return figures


def _workload_times(folder: Path, *, forget: Callable[[], None] | None) -> list[tuple[str, float]]:
    """One round on one side. `forget` drops what this side caches; without the right to do so (None) the first read is warm,
    and is named so."""
    times = [("create", workloads.create(folder)), ("stat_first", workloads.stat_all(folder))]
    times.append(("list_tree_warm", workloads.list_tree(folder)))
    if forget is not None:
        forget()
    times.append(("open_read_warm" if forget is None else "open_read_cold", workloads.read_all(folder)))
    if forget is not None:
        times.append(("open_read_again", workloads.read_all(folder)))
    times.append(("save_by_rename", workloads.save_by_rename(folder)))
    times.append(("write_stream", workloads.write_stream(folder)))
    if forget is not None:
        forget()
    times.append(("read_stream", workloads.read_stream(folder)))
    return times


def search(session: BenchSession) -> list[Figure]:
    """Import of 1,000 files, then search latency and freshness among them."""
    mount = session.folder / "memory"
    mount.mkdir()
    write(mount, generate(CORPUS_FILES))
    chunks = count_chunks(mount)
    if chunks < CHUNKS_MIN:
        raise BenchError(f"the corpus has only {chunks} chunks")
    session.memdir("server", "start")
    imported = session.mount("memory", "--import", limit_s=300)
    progress("waiting until the corpus is indexed; the transformer takes its time")
    synced = session.memdir(
        "sync", "memory", "--wait", "--timeout", str(SYNC_LIMIT_S), limit_s=SYNC_LIMIT_S + 30, allowed=(0, 1)
    )
    state = "all done" if synced.code == 0 else f"NOT all done within {SYNC_LIMIT_S} s"
    rate = CORPUS_FILES / imported.elapsed_s
    figures = [
        Figure(name="import_files_per_s", value=rate, unit="files/s", samples=1, better="higher", note="memdir mount --import"),
        Figure(
            name="import_indexed",
            value=imported.elapsed_s + synced.elapsed_s,
            unit="s",
            samples=1,
            note=f"{chunks} chunks, {state}",
        ),
        *latency(session, chunks),
        *freshness(session, mount),
    ]
    server = int(session.server_status()["pid"])
    figures.append(
        Figure(name="daemon_peak_rss", value=resident_mib(session.daemon_pid("memory"), peak=True), unit="MiB", samples=1)
    )
    figures.append(Figure(name="server_peak_rss", value=resident_mib(server, peak=True), unit="MiB", samples=1))
    return figures


def count_chunks(folder: Path) -> int:
    """How many passages the server will index."""
    from memdir.ingest.chunker import chunk
    from memdir.ingest.text import decode

    total = 0
    for path in sorted(folder.rglob("*")):
        if path.is_file() and (text := decode(path.read_bytes())) is not None:
            total += len(chunk(text, f"/{path.relative_to(folder)}"))
    return total


def latency(session: BenchSession, chunks: int) -> list[Figure]:
    """The search inside the server, and the whole command around it."""
    from memdir.api import v1
    from memdir.client.http import Client

    status = session.server_status()
    credentials = json.loads((session.folder / "home" / "config" / "credentials.json").read_text(encoding="utf-8"))
    served, asked = [], []
    with Client(str(status["url"]), str(credentials["api_key"])) as client:
        for number in range(SEARCH_TRIALS + 10):
            query = f"{QUERIES[number % len(QUERIES)]} {number}"  # a different text each time: no cache of answers helps
            answer = client.search(v1.SearchRequest(container_tag="memory", q=query))
            if number >= 10:
                served.append(answer.timing_ms)
    for number in range(GREP_TRIALS + 2):
        done = session.memdir("grep", f"{QUERIES[number % len(QUERIES)]} {number}", "memory", allowed=(0, 1))
        if number >= 2:
            asked.append(done.elapsed_s * 1000)
    note = f"{chunks} chunks, warm"
    return [
        *p50_p95("search_in_server", served, unit="ms", goal_p95=60, note=note),
        *p50_p95("grep_command", asked, unit="ms", goal_p95=250, note=note),
    ]


def freshness(session: BenchSession, mount: Path) -> list[Figure]:
    """From close() of a new file to the first grep, by meaning, that lists it."""
    import time

    waits = []
    missed = 0
    (mount / "fresh").mkdir()
    for number in range(FRESH_TRIALS):
        fact, query = FACTS[number % len(FACTS)]
        name = f"fresh/trial-{number:02d}.md"
        with open(mount / name, "w", encoding="utf-8") as out:
            out.write(f"# Heard today\n\n{fact}\n")
        closed = time.perf_counter()
        for _ in range(FRESH_TRIES_MAX):
            hits = session.memdir("grep", query, "memory", "--json", allowed=(0, 1)).json()
            if any(str(hit["path"]).endswith(name) and hit["kind"] == "chunk" for hit in hits):
                waits.append((time.perf_counter() - closed) * 1000)
                break
        else:
            missed += 1
    note = "process start of the grep included"
    return [
        *p50_p95("close_to_found", waits, unit="ms", goal_p95=1000, note=note),
        Figure(name="fresh_files_not_found", value=missed, unit="files", samples=FRESH_TRIALS, goal=0),
    ]


def table(report: dict[str, Any]) -> str:
    """The report for people."""
    rows = [f"{'figure':<28}{'value':>10}  {'unit':<8}{'goal':>8}  met"]
    for figure in report["figures"]:
        met = {True: "yes", False: "NO", None: ""}[figure.get("met")]
        rows.append(f"{figure['name']:<28}{figure['value']!s:>10}  {figure['unit']:<8}{figure.get('goal', ''):>8}  {met}")
    rows += [f"not measured: {name}: {why}" for name, why in report["failed"].items()]
    return "\n".join(rows) + "\n"


if __name__ == "__main__":
    sys.exit(main())
