"""`memdir bench agents`: how well, how fast and how surely the memories of coding agents are found."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from memdir.cli.command import Command, Parser, bounded_int

if TYPE_CHECKING:
    from memdir.cli.output import Output


def _sizes(text: str) -> tuple[int, ...]:
    """Numbers of memories, with commas between them."""
    one = bounded_int(10, 2_000_000)
    return tuple(one(part.strip()) for part in text.split(","))


def _configure(parser: Parser) -> None:
    parser.add_argument(
        "--part", metavar="NAME", nargs="+", choices=("accuracy", "scale", "day"), default=[],
        help="accuracy, scale, day (default: all)",
    )  # fmt: skip
    parser.add_argument("--sizes", metavar="N,N…", type=_sizes, help="memories in the container (default: 10,1000,50000)")
    parser.add_argument("--dir", metavar="DIR", type=Path, help="where the stores lie (default: TMPDIR)")
    parser.add_argument("--quick", action="store_true", help="little of everything: whether all runs, not how good it is")
    parser.add_argument("--output", metavar="FILE", type=Path, help="write the JSON there too")


def _run(args: argparse.Namespace, out: Output) -> int:
    from memdir.bench.agents.command import main

    return main(args, as_json=out.json)


COMMAND = Command(
    name="bench agents",
    usage="[OPTIONS]",
    description=(
        "Store memories on servers of its own and ask for them. accuracy: the ten cases of the design, and 590 questions\n"
        "about a thousand memories, misspelt and in other words, and about what none of them says. scale: searches inside the\n"
        "server, the hook as a process, needles, bytes and build rate, beside plain FTS5 and every memory scored, in the same\n"
        "run. day: eight sessions with MCP servers and hooks side by side; what is lost, and what is left."
    ),
    examples=[
        ("memdir bench agents --quick", "does it work here? under two minutes"),
        ("memdir bench agents --part accuracy", "the right memory first?"),
        (
            "memdir bench agents --part scale --sizes 1000000 --output million.json",
            "a million: needs a quarter of an hour and more",
        ),
    ],
    exit_codes=[(0, "measured; each goal says whether it was met"), (2, "a part could not be measured")],
    configure=_configure,
    run=_run,
)
