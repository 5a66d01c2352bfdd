"""`memdir memory why`: which lines a fact of `profile.md` comes from, and what it said before."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from memdir.cli.command import EXIT_NOTHING, EXIT_OK, Command, Parser
from memdir.cli.text import visible
from memdir.core.errors import UsageError

if TYPE_CHECKING:
    from memdir.cli.output import Output


def _configure(parser: Parser) -> None:
    parser.add_argument("text", metavar="TEXT", nargs="+", help="a line of profile.md, or some words of it")
    parser.add_argument("--in", dest="path", metavar="PATH", help="a path in the mount (default: the folder you are in)")
    parser.add_argument("--container", metavar="NAME", help="a memory on the server, mounted or not")


def _run(args: argparse.Namespace, out: Output) -> int:
    from memdir.cli.history.shared import placed
    from memdir.client.light import call
    from memdir.client.local import ensure_server
    from memdir.core.paths import app_paths

    query = " ".join(args.text).strip().lstrip("-").strip()
    if not query:
        raise UsageError("there is nothing to ask about", hint="give a line of profile.md, or some words of it")
    place = placed(args.path, args.container)
    params = {"containerTag": place.container, "q": query}
    found = call(ensure_server(app_paths()), "GET", "/v1/facts/why", params=params, timeout_s=30.0)
    if out.json:
        out.document(found)
    else:
        for fact in found["facts"]:
            _show(fact, out)
        if not found["facts"]:
            out.note("no fact has all of these words")
    return EXIT_OK if found["facts"] else EXIT_NOTHING


def _show(fact: dict[str, Any], out: Output) -> None:
    out.line(out.style(visible(fact["text"]), "bold"))
    about = f"{fact['kind']}, of {fact['subject']}, confidence {fact['confidence']}, last said {fact['updatedAt'][:10]}"
    out.line(f"   {visible(about)}")
    for source in fact["sources"]:
        lines = f"{source['startLine']}" + (f"-{source['endLine']}" if source["endLine"] > source["startLine"] else "")
        where = "said by a call" if source["path"] is None else f"{out.name(source['path'])}:{lines}"
        out.line(f"   {where}" + ("" if source["stands"] else "  (not any more)"))
    for before in fact["versions"][1:]:
        out.line(f"   before, from {before['since'][:10]}: {visible(before['text'])}")


COMMAND = Command(
    name="memory why",
    usage="[OPTIONS] TEXT ...",
    description=(
        "Show where a fact of profile.md comes from: the file and the lines that say it, how sure it is, and what it said\n"
        "before it was updated. To correct it, change that file."
    ),
    examples=[
        ("memdir memory why moved to Lisbon", "of the mount you are in"),
        ("memdir memory why --in notes/ 'prefers short answers' --json", "of another, for programs"),
    ],
    exit_codes=[(0, "there is such a fact"), (1, "there is none")],
    configure=_configure,
    run=_run,
)
