"""`memdir bench smoke`: the figures of this machine."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from memdir.cli.command import Command, Parser

if TYPE_CHECKING:
    from memdir.cli.output import Output


def _configure(_parser: Parser) -> None:
    """No options of its own."""


def _run(_args: argparse.Namespace, out: Output) -> int:
    from memdir.bench.smoke import main

    return main(["--json"] if out.json else [])


SMOKE = Command(
    name="bench smoke",
    usage="[OPTIONS]",
    description="Measure search freshness and latency, start-up times, and filesystem rates against the native filesystem.",
    examples=[("memdir bench smoke --json > figures.json", "takes a few minutes; uses its own temporary folders")],
    exit_codes=[(0, "measured; each figure says whether it reached its goal")],
    configure=_configure,
    run=_run,
)
