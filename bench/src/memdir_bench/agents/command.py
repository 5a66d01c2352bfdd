"""The parts of `memdir bench agents` in one run: accuracy, sizes, a day."""

from __future__ import annotations

import argparse
import subprocess
import tempfile
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any, Final

from memdir.core.errors import MemdirError
from memdir_bench.agents.accuracy import accuracy
from memdir_bench.agents.day_simulation import day
from memdir_bench.agents.hook_relevance import hook_relevance
from memdir_bench.agents.scale import QUICK, Work, at_size
from memdir_bench.agents.transcripts import capture_figures
from memdir_bench.agents.updated import update_figures
from memdir_bench.figures import Figure, machine
from memdir_bench.report import reported

PARTS: Final = ("accuracy", "prompts", "capture", "updates", "scale", "day")
SIZES: Final = (10, 1_000, 50_000)
"""A million takes its time, and is asked for by name."""
_QUICK_SIZES: Final = (10, 200)


def main(args: argparse.Namespace, *, as_json: bool) -> int:
    """Measure and print. 0, or 2 when a part could not be measured."""
    return reported(run, args, as_json=as_json)


def run(args: argparse.Namespace) -> dict[str, Any]:
    """Every part that is wanted; one that fails is reported and stops none of the others."""
    figures: list[Figure] = []
    failed: dict[str, str] = {}
    for name, part in _parts(args).items():
        try:
            figures += part()
        except (MemdirError, OSError, subprocess.SubprocessError) as error:
            failed[name] = str(error)
    return {"machine": machine(), "figures": [found.as_json() for found in figures], "failed": failed}


def _parts(args: argparse.Namespace) -> dict[str, Callable[[], Iterable[Figure]]]:
    wanted = args.part or PARTS
    sizes = args.sizes or (_QUICK_SIZES if args.quick else SIZES)
    found: dict[str, Callable[[], Iterable[Figure]]] = {}
    if "accuracy" in wanted:
        found["accuracy"] = partial(_in_folder, args.dir, partial(accuracy, share=6 if args.quick else 1))
    if "prompts" in wanted:
        found["prompts"] = partial(_in_folder, args.dir, hook_relevance)
    if "capture" in wanted:
        found["capture"] = partial(_in_folder, args.dir, capture_figures)
    if "updates" in wanted:
        found["updates"] = update_figures
    for size in sizes if "scale" in wanted else ():
        found[str(size)] = partial(at_size, size, QUICK if args.quick else Work(), parent=args.dir)
    if "day" in wanted:
        found["day"] = partial(day, parent=args.dir, **({"sessions": 3, "prompts": 5} if args.quick else {}))
    return found


def _in_folder(parent: Path | None, part: Callable[[Path], Iterable[Figure]]) -> Iterable[Figure]:
    with tempfile.TemporaryDirectory(prefix="memdir-bench-agents-", dir=parent) as folder:
        yield from part(Path(folder))
