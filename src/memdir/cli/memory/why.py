"""`memdir memory why`: which lines a fact of `profile.md` comes from, and what it said before."""

from __future__ import annotations

import argparse
import re
from typing import TYPE_CHECKING, Final

from memdir.cli.command import EXIT_NOTHING, EXIT_OK, Command, Parser
from memdir.core.errors import UsageError

if TYPE_CHECKING:
    from memdir.cli.output import Output

_PATH_LINE: Final = re.compile(r"(?P<path>\S.*):(?P<line>[1-9]\d{0,8})")
_LIMIT: Final = 20


def _configure(parser: Parser) -> None:
    parser.add_argument(
        "text", metavar="TEXT", nargs="+", help="a line of profile.md, or some words of it; or PATH:LINE of a file"
    )
    parser.add_argument("--in", dest="path", metavar="PATH", help="a path in the mount (default: the folder you are in)")
    parser.add_argument("--container", metavar="NAME", help="a memory on the server, mounted or not")


def _run(args: argparse.Namespace, out: Output) -> int:
    from memdir.cli.history.shared import placed
    from memdir.cli.memory.facts import FactsAt, show_fact
    from memdir.client.local import ensure_server
    from memdir.core.paths import app_paths

    query = " ".join(args.text).strip().removeprefix("- ")
    if not query:
        raise UsageError("there is nothing to look for", hint="give a line of profile.md, or some words of it")
    line = _PATH_LINE.fullmatch(query)
    place = placed(args.path if line is None else line["path"], args.container)
    facts = FactsAt(server=ensure_server(app_paths()), container=place.container)
    found = (
        facts.find(limit=_LIMIT, words=query)
        if line is None
        else facts.find(limit=_LIMIT, path=place.path, line=int(line["line"]))
    )
    if out.json:
        out.document({"facts": found})
    else:
        for fact in found:
            show_fact(fact, out)
        if not found:
            out.note("no fact was read there" if line is not None else "no fact has all of these words")
    return EXIT_OK if found else EXIT_NOTHING


COMMAND = Command(
    name="memory why",
    usage="[OPTIONS] TEXT ...",
    description=(
        "Show where a fact of profile.md comes from: the file and the lines that say it, how sure it is, and what it said\n"
        "before it was updated. To correct it, change that file."
    ),
    examples=[
        ("memdir memory why moved to Lisbon", "of the mount you are in"),
        ("memdir memory why memory/diary.md:12", "what was read in that line"),
        ("memdir memory why --in notes/ 'prefers short answers' --json", "of another, for programs"),
    ],
    exit_codes=[(0, "there is such a fact"), (1, "there is none")],
    configure=_configure,
    run=_run,
)
