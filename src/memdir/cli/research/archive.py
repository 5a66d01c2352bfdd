"""`memdir research archive DIR ADDRESS…`: pages for a workspace that an agent of one's own works in, or a person."""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from memdir.cli.command import EXIT_NOTHING, EXIT_OK, Command, Parser
from memdir.core.errors import MemdirError

if TYPE_CHECKING:
    from memdir.cli.output import Output
    from memdir.core.web import Http
    from memdir.research.archive import Page

_ADDRESSES_MAX: Final = 50


def _configure(parser: Parser) -> None:
    parser.add_argument("dir", metavar="DIR", help="the workspace; it is made when it is missing")
    parser.add_argument("addresses", metavar="ADDRESS", nargs="+", help="a web address, or a file here")
    parser.add_argument("--question", metavar="TEXT", default="", help="show the lines that bear on it")
    parser.add_argument("--private-addresses", action="store_true", help="also fetch from this machine and its network")


def _run(args: argparse.Namespace, out: Output) -> int:
    from memdir.core.web import Http
    from memdir.research.archive import Archive
    from memdir.research.digest import excerpt
    from memdir.research.web import reader
    from memdir.research.workspace import Workspace

    workspace = Workspace(Path(args.dir))
    workspace.make()
    archive = Archive(workspace)
    http = Http(private_allowed=args.private_addresses)
    made, failed = [], []
    try:
        for address in args.addresses[:_ADDRESSES_MAX]:
            try:
                source = archive.add(_page(address, http), time.time_ns() // 1_000_000)
            except MemdirError as error:
                failed.append({"address": address, "error": error.message})
                if not out.json:
                    out.note(error.message)
                continue
            made.append({"address": address, "source": source.path, "first": source.first, "last": len(source.lines)})
            if not out.json:
                out.line(f"{out.name(source.path)}: text in lines {source.first} to {len(source.lines)}")
                if args.question:
                    for line in excerpt(source, args.question).split("\n"):
                        out.line(out.raw(line))
    finally:
        http.close()
        reader.close()
    if out.json:
        out.document({"archived": made, "failed": failed})
    return EXIT_NOTHING if failed else EXIT_OK


def _page(address: str, http: Http) -> Page:
    from memdir.core.errors import FetchError
    from memdir.core.web import PAGE_MAX_BYTES, too_large
    from memdir.research.web import reader
    from memdir.research.web.reader import fetched_page

    if address.startswith(("http://", "https://")):
        return fetched_page(http, address)
    path = Path(address)
    try:
        if path.stat().st_size > PAGE_MAX_BYTES:
            raise too_large(address)
        data = path.read_bytes()
    except OSError as error:
        raise FetchError(f"{address}: {error.strerror}", hint="a web address, or a file here") from error
    return reader.page(path.absolute().as_uri(), path.name, data)


COMMAND = Command(
    name="research archive",
    usage="DIR ADDRESS… [--question TEXT]",
    description=(
        "Archive pages in a workspace's sources/ as readable Markdown, a sentence a line, so that notes can cite their lines. "
        "For agents that do the research themselves with `memdir research check` as their judge. What they cite as "
        "[sources/NAME.md#L3-L9] is checked with or without a hash."
    ),
    examples=(
        (
            "memdir research archive lsm https://example.org/lsm.html --question 'how is it compacted?'",
            "fetch, and show the lines",
        ),
        ("memdir research archive lsm ~/papers/lsm.pdf", "a file"),
    ),
    exit_codes=((EXIT_OK, "all are archived"), (EXIT_NOTHING, "some could not be had; the rest is archived")),
    configure=_configure,
    run=_run,
)
