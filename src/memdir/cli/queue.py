"""`memdir queue`: what waits to be pushed, and what is parked with a reason."""

from __future__ import annotations

import argparse
from typing import Any, Final

from memdir.cli.command import EXIT_NOTHING, EXIT_OK, Command, Parser, bounded_int
from memdir.cli.output import Output
from memdir.cli.text import visible

_LIMIT_DEFAULT: Final = 100
_LIMIT_MAX: Final = 10_000
_TIMEOUT_S: Final = 30.0


def _configure(parser: Parser) -> None:
    parser.add_argument(
        "name", metavar="NAME", nargs="?", help="a name or a path (default: the mount around you, or the only one)"
    )
    parser.add_argument(
        "-n", "--limit", metavar="N", type=bounded_int(1, _LIMIT_MAX), default=_LIMIT_DEFAULT,
        help=f"at most N rows (default: {_LIMIT_DEFAULT})",
    )  # fmt: skip


def _run(args: argparse.Namespace, out: Output) -> int:
    from memdir.cli.targets import control, find_mount, open_registry, require_running

    record = require_running(find_mount(open_registry(), args.name))
    rows: list[dict[str, Any]] = control(record).call("queue", _TIMEOUT_S, limit=args.limit).get("rows") or []
    if out.json:
        out.document(rows)
    elif not rows:
        out.note(f"nothing waits in {record.name}")
    for row in [] if out.json else rows:
        attempts = f" (tried {row['attempts']} times)" if (row.get("attempts") or 0) > 1 else ""
        reason = f": {visible(str(row['error']))}" if row.get("error") else ""
        out.line(f"{visible(str(row['state'])):<9} {visible(str(row['op'])):<7} {out.name(str(row['path']))}{reason}{attempts}")
    if len(rows) >= args.limit:
        out.note(f"these are the first {args.limit} rows, there may be more")
    return EXIT_OK if rows else EXIT_NOTHING


COMMAND = Command(
    name="queue",
    usage="[OPTIONS] [NAME]",
    description="Show the changes of a mount that wait to be pushed, and the parked ones with the reason.",
    examples=[("memdir queue", "state, operation, path, reason"), ("memdir queue notes --json", "for programs")],
    exit_codes=[(0, "something waits"), (1, "nothing waits")],
    configure=_configure,
    run=_run,
)
