"""`memdir import`: take an archive over into a memory on the server, or an agent's memories from a file."""

from __future__ import annotations

import argparse
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final

from memdir.cli.command import EXIT_NOTHING, EXIT_OK, Command, Parser
from memdir.core.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from memdir.api import v1
    from memdir.cli.output import Output

_PIECE_BYTES: Final = 1 << 20


def _configure(parser: Parser) -> None:
    parser.add_argument(
        "file", metavar="FILE", help="a tar, tar.gz or zip; without NAME a file of memories; - is standard input"
    )
    parser.add_argument("name", metavar="NAME", nargs="?", help="the memory on the server; it is made when there is none")
    parser.add_argument(
        "--merge",
        choices=("fail", "skip", "replace"),
        help="when something stands there already: refuse everything (default), leave it, or replace it",
    )
    parser.add_argument("--links", choices=("inside", "all"), help=_LINKS_HELP)


_LINKS_HELP: Final = "all: also take symlinks that lead out of the archive (default: refuse such an archive)"


def _run(args: argparse.Namespace, out: Output) -> int:
    if args.name is not None:
        return _archive(args, out)
    if args.merge or args.links:
        raise UsageError("--merge and --links are about an archive, which needs a NAME", hint="see `memdir import --help`")
    from memdir.cli.memory.files import IMPORT

    return IMPORT.run(IMPORT.parser().parse_args([args.file]), out)


def _archive(args: argparse.Namespace, out: Output) -> int:
    from memdir.cli.search.remote import connected
    from memdir.cli.targets import check_container_name

    name = check_container_name(args.name)
    if args.file != "-" and not Path(args.file).is_file():
        raise UsageError(f"{args.file} is no file", hint="give a tar, tar.gz or zip, or - for standard input")
    with nullcontext(sys.stdin.buffer) if args.file == "-" else open(args.file, "rb") as source, connected(out.note) as client:
        result = client.take_over(name, _pieces(source), merge=args.merge or "fail", all_links=args.links == "all")
    _report(result, out)
    return EXIT_NOTHING if result.failed_count else EXIT_OK


def _pieces(source: IO[bytes]) -> Iterator[bytes]:
    while piece := source.read(_PIECE_BYTES):
        yield piece


def _report(result: v1.ImportResult, out: Output) -> None:
    if out.json:
        out.document(result.model_dump(mode="json"))
        return
    for problem in result.failed:
        out.note(f"{problem.path}: {problem.error}")
    if result.failed_count > len(result.failed):
        out.note(f"and {result.failed_count - len(result.failed)} more")
    counts = [
        (result.created, "new"),
        (result.replaced, "replaced"),
        (result.unchanged, "there already"),
        (result.skipped, "left as they stand"),
        (result.memories, "memories"),
        (result.failed_count, "failed"),
    ]
    out.line(
        f"{result.container_tag}: " + (", ".join(f"{count:,} {what}" for count, what in counts if count) or "nothing to do")
    )


COMMAND = Command(
    name="import",
    usage="[OPTIONS] FILE [NAME]",
    description=(
        "Take an archive over into a memory on the server, mounted or not: one that `memdir export` wrote, or any tar, tar.gz\n"
        "or zip of plain files, folders and symlinks. All of it is looked at first, and nothing is written when anything is\n"
        "refused. An import that was broken off goes on when it is repeated with --merge skip or replace.\n"
        "\n"
        "Without NAME: what an agent remembers, from a file of memories, as `memdir memory import`, which has more options."
    ),
    examples=[
        ("memdir import notes.tar.gz notes", "into a new memory"),
        ("memdir import --merge replace notes.tar.gz notes", "files of the archive win"),
        ("tar -c -C ~/papers . | memdir import - papers", "a folder, without a file between"),
        ("memdir import memories.json", "an agent's memories"),
    ],
    exit_codes=[(0, "everything is there"), (1, "some entries could not be taken over")],
    configure=_configure,
    run=_run,
)
