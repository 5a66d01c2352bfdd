"""`memdir queue`: what waits, since when, and why; what is parked with its reason."""

from __future__ import annotations

import argparse
import math
from typing import TYPE_CHECKING, Any, Final

from memdir.cli.command import EXIT_NOTHING, EXIT_OK, Command, Parser, bounded_int
from memdir.cli.output import Output
from memdir.cli.text import human_duration, plural, visible

if TYPE_CHECKING:
    from memdir.daemon.registry import MountRecord

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
    answer = control(record).call("queue", _TIMEOUT_S, limit=args.limit)
    rows: list[dict[str, Any]] = answer.get("rows") or []
    if out.json:
        out.document(answer)
        return EXIT_OK if rows else EXIT_NOTHING
    for row in rows:
        out.line(_line(row, out))
    out.note(_total(record, answer))
    if len(rows) >= args.limit:
        out.note(f"these are the first {args.limit} rows, there may be more")
    return EXIT_OK if rows else EXIT_NOTHING


def _line(row: dict[str, Any], out: Output) -> str:
    """State, what would be done, path, since when, why, how often it was tried and when it will be."""
    old = f" (was {out.name(str(row['from']))})" if row.get("from") else ""
    attempts, next_try_s = int(row.get("attempts") or 0), row.get("next_try_s")
    tried = f"tried {plural(attempts, 'time')}" if attempts else ""
    again = f"again in {human_duration(math.ceil(next_try_s))}" if attempts and next_try_s else ""
    more = ", ".join(part for part in (tried, again) if part)
    age = "" if row.get("waits_s") is None else human_duration(row["waits_s"])
    words = f"{visible(str(row['state'])):<9} {visible(str(row['op'])):<7} {age:>9}  {out.name(str(row['path']))}{old}"
    return f"{words}: {visible(str(row['why']))}{f' ({more})' if more else ''}"


def _total(record: MountRecord, answer: dict[str, Any]) -> str:
    """How much there is in all, and what keeps all of it."""
    waiting, parked = int(answer.get("waiting") or 0), int(answer.get("parked") or 0)
    text = f"{plural(waiting, 'change waits', 'changes wait') if waiting else 'nothing waits'} in {record.name}"
    if parked:
        text += f", {parked} parked until the file changes or `memdir retry`"
    if answer.get("problem"):
        text += f"; {answer['problem']}"
    server = answer.get("server")
    if isinstance(server, dict) and not server.get("online"):
        since = f" since {server['since']}" if server.get("since") else ""
        text += f"; offline{since}: {server.get('error') or 'the server was not reached'}"
    return text if record.sync else f"{text}; it is mounted without sync"


COMMAND = Command(
    name="queue",
    usage="[OPTIONS] [NAME]",
    description=(
        "Show what waits in a mount: what would be done, for how long it has waited, and why. `put`, `delete` and `move`\n"
        "change the server, `fetch` and `remove` the mount; `compare` looks which. What the server refused is parked with its\n"
        "reason."
    ),
    examples=[("memdir queue", "state, operation, age, path, reason"), ("memdir queue notes --json", "for programs")],
    exit_codes=[(0, "something waits"), (1, "nothing waits")],
    configure=_configure,
    run=_run,
)
