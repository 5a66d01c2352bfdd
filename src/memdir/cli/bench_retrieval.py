"""`memdir bench retrieval`: how well search ranks."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from memdir.cli.command import Command, Parser

if TYPE_CHECKING:
    from memdir.cli.output import Output


def _configure(parser: Parser) -> None:
    parser.add_argument("--cranfield", metavar="DIR", type=Path, help="the folder of cran.all.1400, cran.qry and cranqrel")
    parser.add_argument("--cisi", metavar="DIR", type=Path, help="the folder of CISI.ALL, CISI.QRY and CISI.REL")
    parser.add_argument("--lines", action="store_true", help="do the printed lines hold the answer? of a generated memory")
    parser.add_argument("--unrelated", action="store_true", help="do questions without an answer find nothing?")
    parser.add_argument("--languages", action="store_true", help="questions in English for answers in six other languages")
    parser.add_argument("--hops", action="store_true", help="questions whose answer needs two files, of a generated memory")
    parser.add_argument("--mixed", action="store_true", help="notes beside code, asked in other words than the notes'")
    parser.add_argument("--cache", metavar="DIR", type=Path, help="where vectors are kept between runs (default: the cache)")
    parser.add_argument("--output", metavar="FILE", type=Path, help="write the JSON there too")


def _run(args: argparse.Namespace, out: Output) -> int:
    from memdir.bench.retrieval.command import main

    return main(args, as_json=out.json)


COMMAND = Command(
    name="bench retrieval",
    usage="[OPTIONS]",
    description=(
        "Put collections with judgements through the server's own pipeline, ask all their questions, and say how good the\n"
        "rankings are: nDCG, recall, reciprocal rank and success, for each signal alone, for the whole search, and for the\n"
        "search without one of its parts; with intervals of the bootstrap. Vectors are kept: the second run is a quick one."
    ),
    examples=[
        ("memdir bench retrieval --cranfield ~/cranfield --cisi ~/cisi", "both collections; some minutes the first time"),
        ("memdir bench retrieval --hops", "does following connections bring the second file? needs no collection"),
        ("memdir bench retrieval --cisi ~/cisi --json > ranked.json", "one of them, for programs"),
    ],
    exit_codes=[(0, "measured; each goal says whether it was met"), (2, "there was nothing to measure, or it could not be")],
    configure=_configure,
    run=_run,
)
