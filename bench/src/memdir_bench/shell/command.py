"""`memdir bench shell`: how far the in-process shell agrees with real bash, and how fast it is beside it.

Agreement: standard output, exit code and resulting files of every script, on the same files. Speed: the same commands over the
same files in both, bash on a tmpfs; starting a process is a part of what bash costs.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any, Final

from memdir.fs.cache.filesystem import SqliteFs
from memdir.shell import Shell
from memdir.shell.files import Files
from memdir_bench.figures import Figure, figure_of, machine
from memdir_bench.report import reported
from memdir_bench.shell.compare import ENV, difference, in_bash, in_process
from memdir_bench.shell.scripts import Script, all_scripts

GOALS: Final[Mapping[str, float]] = {"agreement": 0.99, "start": 5.0, "import": 100.0}
figure: Final = partial(figure_of, GOALS)
_RANDOM: Final = 600
_FILES: Final = 2_000
_RUNS: Final = 5
_SHOWN_CHARS: Final = 100
_WORKLOADS: Final = {
    "grep_r": "grep -r 'token 77' . | wc -l",
    "find": "find . -name '*7.txt' -type f | wc -l",
    "pipeline_of_five": "cat *.txt | grep token | sort -k2n | uniq | tail -n 3",
    "loop": "for f in f1?.txt; do wc -l < $f; done | sort | uniq -c",
}
_OPTIONAL: Final = ("rg", "tree", "jq", "patch", "column", "file", "xxd")
"""Programs that a machine may lack: scripts that call one that is not there are left out, and counted."""


def main(args: argparse.Namespace, *, as_json: bool) -> int:
    """Measure and print. 0, or 2 when a part could not be measured."""
    return reported(run, args, as_json=as_json)


def run(args: argparse.Namespace) -> dict[str, Any]:
    """Agreement, then speed."""
    scripts, left_out = runnable(all_scripts(seed=args.seed, random_count=60 if args.quick else _RANDOM))
    if args.quick:
        scripts = scripts[::10]
    figures, differing = _agreement(scripts)
    figures += _speed(_FILES // 10 if args.quick else _FILES)
    return {
        "machine": machine(),
        "figures": [one.as_json() for one in figures],
        "failed": {},
        "left_out": left_out,
        "remarks": [f"differs in {where}: {_short(script.text)}" for script, where in differing],
        "disagreements": [{"kind": script.kind, "script": script.text, "differs": where} for script, where in differing],
    }


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _SHOWN_CHARS else line[:_SHOWN_CHARS] + " …"


def runnable(scripts: list[Script]) -> tuple[list[Script], int]:
    """The scripts whose programs are on this machine, and how many are not. `awk` means GNU's: others write some numbers and
    letters otherwise."""
    missing = {name for name in _OPTIONAL if shutil.which(name) is None}
    if not _is_gnu_awk():
        missing.add("awk")
    calls = re.compile(r"(?<![\w./-])(?:" + "|".join(map(re.escape, sorted(missing))) + r")(?![\w.-])") if missing else None
    kept = [script for script in scripts if calls is None or not calls.search(script.text)]
    return kept, len(scripts) - len(kept)


def _is_gnu_awk() -> bool:
    try:
        said = subprocess.run(["awk", "--version"], capture_output=True, check=False, stdin=subprocess.DEVNULL).stdout
    except FileNotFoundError:
        return False
    return b"GNU Awk" in said


def compared(script: Script) -> str:
    """Where the two shells differ on `script`; "" when they agree."""
    return difference(in_bash(script.text), in_process(script.text))


def _agreement(scripts: list[Script]) -> tuple[list[Figure], list[tuple[Script, str]]]:
    with multiprocessing.get_context("spawn").Pool(os.cpu_count() or 1) as pool:
        found = list(zip(scripts, pool.map(compared, scripts, chunksize=8), strict=True))
    differing = [(script, where) for script, where in found if where]
    totals, bad = Counter(script.kind for script in scripts), Counter(script.kind for script, _ in differing)
    figures = [figure("agreement", 1 - len(differing) / len(scripts), "share", samples=len(scripts), better="higher")]
    figures += [
        figure(f"agreement_of_{kind}", 1 - bad[kind] / count, "share", samples=count, better="higher")
        for kind, count in totals.items()
    ]
    return figures, differing


def _speed(count: int) -> list[Figure]:
    texts = {f"f{number}.txt": "line of text\n" * 50 + f"token {number}\n" for number in range(count)}
    shm = Path("/dev/shm")  # noqa: S108  a tmpfs
    with (
        tempfile.TemporaryDirectory(prefix="memdir-bench-shell-", dir=shm if shm.is_dir() else None) as name,
        tempfile.TemporaryDirectory(prefix="memdir-bench-store-") as store,
        closing(SqliteFs.open(Path(store), sync=False)) as fs,
    ):
        files = Files(fs)
        figures = [_import(), _start(files)]
        for path, text in texts.items():
            Path(name, path).write_text(text)
            files.write(f"/{path}", text.encode())
        with Shell.over(files, env=ENV) as shell:
            for workload, script in _WORKLOADS.items():
                ours, theirs = _timed(shell, Path(name), script)
                figures.append(
                    figure(workload, ours / theirs, "of bash's time", samples=_RUNS, note=f"{theirs * 1000:.1f} ms in bash")
                )
    return figures


def _timed(shell: Shell, folder: Path, script: str) -> tuple[float, float]:
    """Median seconds, runs taking turns. RuntimeError when the answers differ."""
    ours, theirs = [], []
    for _ in range(_RUNS):
        began_s = time.perf_counter()
        mine = shell.run_sync(script)
        ours.append(time.perf_counter() - began_s)
        began_s = time.perf_counter()
        done = subprocess.run(
            ["bash", "-c", script], cwd=folder, env=ENV | {"PATH": os.environ["PATH"]}, capture_output=True, check=False
        )
        theirs.append(time.perf_counter() - began_s)
        if mine.stdout.split() != done.stdout.decode().split():
            raise RuntimeError(f"{script!r}: {mine.stdout[:200]!r} and {done.stdout[:200]!r}")
    return statistics.median(ours), statistics.median(theirs)


def _import() -> Figure:
    code = "import time; t = time.perf_counter(); from memdir.shell import Shell; print(time.perf_counter() - t)"
    took = [
        float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout) * 1000
        for _ in range(_RUNS)
    ]
    return figure("import", statistics.median(took), "ms", samples=_RUNS)


def _start(files: Files) -> Figure:
    def starts() -> Iterator[float]:
        for _ in range(_RUNS + 1):
            began_s = time.perf_counter()
            with Shell.over(files) as shell:
                shell.run_sync(":")
                yield (time.perf_counter() - began_s) * 1000

    return figure("start", statistics.median([*starts()][1:]), "ms", samples=_RUNS, note="and its first command, once imported")
