"""From options to a run to an exit code."""

from __future__ import annotations

import argparse
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, Final

from memdir.core.errors import MemdirError
from memdir_bench.figures import Figure, machine
from memdir_bench.report import reported
from memdir_bench.smoke import progress
from memdir_bench.sync import flow, wire
from memdir_bench.sync.fixtures import Fixture, fixture

PARTS: Final[dict[str, Callable[[Fixture, flow.Sizes], Iterator[Figure]]]] = {
    "visible": flow.visible,
    "sent": wire.sent,
    "idle": wire.idle,
    "pull": flow.pull,
    "push": flow.push,
    "grow": wire.growth,
}


def main(args: argparse.Namespace, *, as_json: bool) -> int:
    """Measure and print. 0, or 2 when a part could not be measured."""
    return reported(run, args, as_json=as_json)


def run(args: argparse.Namespace) -> dict[str, Any]:
    """Each part on a server of its own, so that no part waits for what another one left to be indexed; one that fails is
    reported and stops none of the others."""
    sizes = flow.QUICK if args.quick else flow.Sizes()
    if args.files is not None:
        sizes = replace(sizes, small=args.files)
    parts = tuple(args.part) or tuple(part for part in PARTS if part != "grow")
    if args.grow and "grow" not in parts:
        parts = (*parts, "grow")
    figures: list[Figure] = []
    failed: dict[str, str] = {}
    for part in parts:
        progress(f"{part} …")
        try:
            with fixture(args.dir) as one:
                figures += PARTS[part](one, sizes)
        except (MemdirError, OSError, subprocess.TimeoutExpired) as error:
            failed[part] = str(error)
            progress(f"{part} failed: {error}")
    return {"machine": machine(), "figures": [figure.as_json() for figure in figures], "failed": failed}
