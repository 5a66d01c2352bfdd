"""`memdir retry`: push parked changes again."""

from __future__ import annotations

import argparse
from typing import Final

from memdir.cli.command import EXIT_NOTHING, EXIT_OK, Command, Parser
from memdir.cli.output import Output
from memdir.cli.text import plural

_TIMEOUT_S: Final = 30.0


def _configure(parser: Parser) -> None:
    parser.add_argument(
        "target", metavar="NAME|PATH", nargs="?", help="a mount, or one file in it (default: everything parked)"
    )


def _run(args: argparse.Namespace, out: Output) -> int:
    from memdir.cli.targets import control, find_mount, open_registry, path_in_mount, require_running

    registry = open_registry()
    record = require_running(find_mount(registry, args.target))
    path = path_in_mount(registry, record, args.target)
    count = int(control(record).call("retry", _TIMEOUT_S, path=path).get("requeued") or 0)
    if out.json:
        out.document({"name": record.name, "path": path, "requeued": count})
    else:
        out.line(f"{record.name}: {plural(count, 'change')} queued again")
    return EXIT_OK if count else EXIT_NOTHING


COMMAND = Command(
    name="retry",
    usage="[OPTIONS] [NAME|PATH]",
    description="Push changes again that the server refused and that were parked (see `memdir queue` for the reasons).",
    examples=[("memdir retry", "everything parked"), ("memdir retry notes/big.bin", "one file")],
    exit_codes=[(0, "something was queued again"), (1, "nothing was parked")],
    configure=_configure,
    run=_run,
)
