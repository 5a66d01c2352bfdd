"""`memdir export`: a memory, or a folder of one, as a plain archive; an agent's memories as one file."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any, Final

from memdir.cli.command import EXIT_OK, Command, Parser
from memdir.cli.memory.files import FORMS, export, form_of
from memdir.cli.target_file import check_target, write_target
from memdir.cli.text import human_bytes, is_terminal
from memdir.core.errors import NotFoundError, UsageError

if TYPE_CHECKING:
    from memdir.api import v1
    from memdir.cli.output import Output

_SUFFIXES: Final[dict[str, v1.ArchiveFormat]] = {".tar": "tar", ".tar.gz": "tar.gz", ".tgz": "tar.gz", ".zip": "zip"}
_FORMATS: Final = ("tar", "tar.gz", "zip")


def _configure(parser: Parser) -> None:
    parser.add_argument("source", metavar="NAME|PATH", nargs="?", help="a memory on the server, or a folder or file in a mount")
    parser.add_argument("file", metavar="FILE", nargs="?", help="where to write; - is standard output")
    parser.add_argument("--format", choices=(*_FORMATS, *FORMS), help="default: what FILE ends in, else tar; json without NAME")
    parser.add_argument("--force", action="store_true", help="replace FILE when it exists")


def _run(args: argparse.Namespace, out: Output) -> int:
    if args.file is None:
        return _memories(args, out)
    if args.format in FORMS:
        raise UsageError(f"an archive of {args.source} is no {args.format}", hint="`memdir export FILE` writes memories")
    return _archive(args, out)


def _memories(args: argparse.Namespace, out: Output) -> int:
    """Without a NAME, an agent's memories: what `memdir memory export` does. A lone name of something else would be a file
    that nobody meant, so it has to look like one."""
    file = args.source or "-"
    if args.format not in (None, *FORMS) or (args.format is None and file != "-" and form_of(file) is None):
        raise UsageError(
            "an archive needs a NAME or PATH and a FILE, and a file of memories ends in .json or .md",
            hint="see `memdir export --help`",
        )
    return export(
        argparse.Namespace(file=file, format=args.format, force=args.force, project=None, tag=None, container=None), out
    )


def _archive(args: argparse.Namespace, out: Output) -> int:
    from memdir.cli.search.remote import connected, place_of
    from memdir.client.errors import NotFoundError as NothingThereError

    is_path = "/" in args.source or args.source in (".", "..")
    container, prefix = place_of(args.source, None) if is_path else place_of("/", args.source)
    form: v1.ArchiveFormat = args.format or _by_name(args.file)
    if args.file == "-" and (is_terminal(sys.stdout) or args.json):
        raise UsageError("an archive is nothing to read", hint="give a FILE, or send standard output into a program")
    check_target(args.file, force=args.force)
    try:
        with connected(out.note) as client, client.export(container, form=form, prefix=prefix) as pieces:
            size = write_target(args.file, pieces)
    except NothingThereError as error:
        raise NotFoundError(f"the server has no memory called {container}", hint="`memdir list --all` shows yours") from error
    report: dict[str, Any] = {"container": container, "path": prefix, "file": args.file, "format": form, "size_bytes": size}
    if out.json:
        out.document(report)
    else:
        out.note(f"{container}: {human_bytes(size)} written to {args.file}")
    return EXIT_OK


def _by_name(file: str) -> v1.ArchiveFormat:
    for suffix, form in _SUFFIXES.items():
        if file.endswith(suffix):
            return form
    return "tar"


COMMAND = Command(
    name="export",
    usage="[OPTIONS] NAME|PATH FILE, or [OPTIONS] [FILE]",
    description=(
        "Write a memory, or a folder of one, as a plain archive that tar and unzip read: the files as they are on the server\n"
        "at one moment, and beside them a folder .memdir with what files cannot carry. What was not pushed yet is not in it:\n"
        "`memdir sync --wait` first. The file is readable by you only.\n"
        "\n"
        "Without NAME or PATH, or with --format json or markdown: what an agent remembers, as `memdir memory export`."
    ),
    examples=[
        ("memdir export notes notes.tar.gz", "everything"),
        ("memdir export notes/work work.zip", "one folder of a mount"),
        ("memdir export notes - | tar -t", "what would be in it"),
        ("memdir export memories.json", "an agent's memories"),
    ],
    exit_codes=[(0, "the archive is complete")],
    configure=_configure,
    run=_run,
)
