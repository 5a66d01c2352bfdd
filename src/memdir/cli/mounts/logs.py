"""`memdir logs`: the end of a log, and what is added to it."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from memdir.cli.command import EXIT_NOTHING, EXIT_OK, Command, Parser, bounded_int
from memdir.cli.output import Output
from memdir.cli.text import visible
from memdir.core.errors import UsageError

_LINES_DEFAULT: Final = 50
_LINES_MAX: Final = 100_000
_BLOCK_BYTES: Final = 64 * 1024
_TAIL_MAX_BYTES: Final = 16 * 1024 * 1024
"""Logs rotate at 4 MiB; a longer file is read from this far before its end."""


def _configure(parser: Parser) -> None:
    parser.add_argument(
        "name", metavar="NAME", nargs="?", help="a name or a path (default: the mount around you, or the only one)"
    )
    parser.add_argument("--server", action="store_true", help="the log of the local server instead")
    parser.add_argument(
        "-n", "--lines", metavar="N", type=bounded_int(0, _LINES_MAX), default=_LINES_DEFAULT,
        help=f"the last N lines (default: {_LINES_DEFAULT})",
    )  # fmt: skip
    parser.add_argument("-f", "--follow", action="store_true", help="go on with what is added, until Ctrl-C")


def _run(args: argparse.Namespace, out: Output) -> int:
    if args.follow and out.json:
        raise UsageError("--follow has no end and --json is one document", hint="leave one of them out")
    if args.server and args.name is not None:
        raise UsageError("either a mount or --server", hint="leave one of them out")
    file = _log_file(args)
    lines = tail(file, args.lines)
    if out.json:
        out.document({"log_file": str(file), "lines": lines})
        return EXIT_OK if lines else EXIT_NOTHING
    if not file.exists():
        out.note(f"{file} does not exist yet")
    for line in lines:
        out.line(visible(line))
    if args.follow:
        out.flush()
        from memdir.cli.follow import follow

        for line in follow(file):
            out.line(visible(line))
            sys.stdout.flush()
    return EXIT_OK if lines else EXIT_NOTHING


def _log_file(args: argparse.Namespace) -> Path:
    if args.server:
        from memdir.cli.search.remote import server_log_file

        return server_log_file()
    from memdir.cli.targets import find_mount, open_registry

    return Path(find_mount(open_registry(), args.name).log_file)


def tail(file: Path, count: int) -> list[str]:
    """The last `count` lines, read from the end in blocks. Empty when there is no file."""
    if count == 0:
        return []
    blocks: list[bytes] = []
    newlines = 0
    try:
        with open(file, "rb") as handle:
            for block in _blocks_backwards(handle.fileno()):
                blocks.append(block)
                newlines += block.count(b"\n")
                if newlines > count:
                    break
    except FileNotFoundError:
        return []
    lines = b"".join(reversed(blocks)).decode("utf-8", "backslashreplace").split("\n")
    if lines[-1] == "":
        lines.pop()
    return lines[-count:]


def _blocks_backwards(fd: int) -> Iterator[bytes]:
    end = os.fstat(fd).st_size
    lowest = max(0, end - _TAIL_MAX_BYTES)
    while end > lowest:
        start = max(lowest, end - _BLOCK_BYTES)
        yield os.pread(fd, end - start, start)
        end = start


COMMAND = Command(
    name="logs",
    usage="[OPTIONS] [NAME]",
    description="Show the end of the log of a mount's daemon, or of the local server. API keys are never in it.",
    examples=[("memdir logs notes -n 20", "the last 20 lines"), ("memdir logs --server -f", "the server's log, as it grows")],
    exit_codes=[(0, "there are lines"), (1, "the log is empty or does not exist yet")],
    configure=_configure,
    run=_run,
)
