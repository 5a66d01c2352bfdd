"""`memdir server audit`: who did what, when, with which key."""

from __future__ import annotations

import argparse
import time
from typing import Any

from memdir.cli.command import EXIT_NOTHING, EXIT_OK, Command, Parser, bounded_int
from memdir.cli.output import Output
from memdir.cli.server.admin_calls import add_org, ask, duration_s, moment

_PAGE = 1000


def _configure(parser: Parser) -> None:
    parser.add_argument("--since", metavar="TIME", type=duration_s, help="how far to look back: 15m, 12h, 7d")
    parser.add_argument("--key", metavar="NAME", help="what one key did: name or id")
    parser.add_argument("--user", metavar="NAME", help="what one user did")
    parser.add_argument("--container", metavar="TAG", help="what was done in one container")
    parser.add_argument("--action", choices=("read", "write", "admin"), help="what kind of call")
    parser.add_argument(
        "-n", "--lines", metavar="N", type=bounded_int(1, 1_000_000), default=100, help="at most N (default: 100)"
    )
    add_org(parser)


def _run(args: argparse.Namespace, out: Output) -> int:
    params = {name: getattr(args, name) for name in ("key", "user", "container", "action") if getattr(args, name)}
    if args.since is not None:
        params["since"] = str(int((time.time() - args.since) * 1000))
    events: list[dict[str, Any]] = []
    while len(events) < args.lines:
        page = ask("GET", "/v1/audit", org=args.org, params=params | {"limit": str(min(_PAGE, args.lines - len(events)))})
        events += page["events"]
        if page["next"] is None:
            break
        params["before"] = str(page["next"])
    if out.json:
        out.document({"events": events})
        return EXIT_OK if events else EXIT_NOTHING
    for event in reversed(events):
        who = event["key"] or event["key_id"]
        who = f"{event['user']} ({who})" if event["user"] else who
        where = " ".join(part for part in (event["container"], event["target"]) if part)
        out.line(
            f"{moment(event['at'])}  {event['status']}  {out.name(who)}  {event['action']}  {event['call']}  "
            f"{out.name(where)}  {out.name(event['address'])}".rstrip()
        )
    if not events:
        out.note("nothing is on record for that")
    return EXIT_OK if events else EXIT_NOTHING


COMMAND = Command(
    name="server audit",
    usage="[OPTIONS]",
    description=(
        "Show the audit log, oldest first: time, status, who, what, where. It holds every call with a known key for 90 days,\n"
        "at most a million; contents and queries are not in it."
    ),
    examples=[
        ("memdir server audit --since 1d --action write", "what was changed since yesterday"),
        ("memdir server audit --key ci --container docs --json", "what one key did in one container"),
    ],
    exit_codes=[(0, "there is something"), (1, "there is nothing")],
    configure=_configure,
    run=_run,
)
