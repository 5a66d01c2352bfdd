"""`memdir bench smoke` and `memdir bench posix`: the figures of this machine."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from memdir.cli.command import Command, Parser, bounded_int

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


def _configure_posix(parser: Parser) -> None:
    parser.add_argument(
        "--rounds", metavar="N", type=bounded_int(0, 1000), help="how often everything is measured (default: 5)"
    )
    parser.add_argument(
        "--files", metavar="N", type=bounded_int(20, 200_000),
        help="small files (default: 5000); twice as many documents, two fifths as many sources",
    )  # fmt: skip
    parser.add_argument(
        "--stream-mib", metavar="N", type=bounded_int(1, 16 * 1024), help="size of the large file (default: 1024)"
    )
    parser.add_argument(
        "--workload", metavar="NAME", nargs="+", action="extend", default=[], help="only these, or a whole suite (default: all)"
    )
    parser.add_argument(
        "--targets", metavar="NAME", nargs="+", action="extend", default=[],
        help="what to compare (default: native, memdir and every peer that is installed)",
    )  # fmt: skip
    parser.add_argument("--seed", metavar="N", type=bounded_int(0, 2**32), default=1, help="of the random order (default: 1)")
    parser.add_argument("--dir", metavar="DIR", type=Path, help="where the native tree and the caches lie (default: TMPDIR)")
    parser.add_argument("--grow", action="store_true", help="also how each workload's cost grows from 1,000 to 100,000 files")
    parser.add_argument(
        "--latency", action="store_true",
        help="also the wait for one create, one lookup beside an indexing server, a remote change, a mount after SIGKILL",
    )  # fmt: skip
    parser.add_argument("--quick", action="store_true", help="little work, two rounds: whether all runs, not how fast it is")
    parser.add_argument("--output", metavar="FILE", type=Path, help="write the JSON there too")


def _run_posix(args: argparse.Namespace, out: Output) -> int:
    from memdir.bench.posix.command import main

    return main(args, as_json=out.json)


POSIX = Command(
    name="bench posix",
    usage="[OPTIONS]",
    description=(
        "Time filesystem work on a native folder, on memdir and on every FUSE filesystem that is installed (bindfs,\n"
        "libfuse's passthrough when its source and a compiler are there), side by side in random order. Root measures\n"
        "really cold caches. Says first how long it will take."
    ),
    examples=[
        ("memdir bench posix", "five rounds of everything"),
        ("memdir bench posix --quick", "does it work here? under a minute"),
        ("memdir bench posix --workload create documents --targets native memdir", "a workload and a suite on two targets"),
        ("memdir bench posix --rounds 0 --grow --latency", "only what does not come in rounds"),
        ("memdir bench posix --json --dir /mnt/disk > posix.json", "on another disk"),
    ],
    exit_codes=[(0, "measured; each goal says whether it was met"), (2, "memdir or the native folder could not be measured")],
    configure=_configure_posix,
    run=_run_posix,
)
