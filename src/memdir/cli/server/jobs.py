"""`memdir server jobs [retry]`: work on documents that waits, runs, or was given up."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any, Final

from memdir.cli.command import EXIT_NOTHING, EXIT_OK, Command, Parser, bounded_int
from memdir.cli.text import plural, visible
from memdir.core.errors import NotFoundError, UsageError

if TYPE_CHECKING:
    from memdir.cli.output import Output

_LIMIT_DEFAULT: Final = 100
_LIMIT_MAX: Final = 1000
_TIMEOUT_S: Final = 30.0


def _configure(parser: Parser) -> None:
    parser.add_argument("--failed", action="store_true", help="only what was given up, with the reason, newest first")
    parser.add_argument("--container", metavar="NAME", help="only of one memory (default: of all)")
    parser.add_argument(
        "-n", "--limit", metavar="N", type=bounded_int(1, _LIMIT_MAX), default=_LIMIT_DEFAULT,
        help=f"at most N rows (default: {_LIMIT_DEFAULT})",
    )  # fmt: skip


def _configure_retry(parser: Parser) -> None:
    parser.add_argument("document", metavar="ID", nargs="?", help="the id of a document, as `memdir server jobs` shows it")
    parser.add_argument("--all", action="store_true", help="everything that was given up")
    parser.add_argument("--container", metavar="NAME", help="with --all: only of one memory")


def _call(out: Output, method: str, path: str, **arguments: Any) -> dict[str, Any]:
    from memdir.client.light import LightCallError, call
    from memdir.client.local import ensure_server, running_server
    from memdir.core.paths import app_paths

    paths = app_paths()
    server = running_server(paths)
    if server is None:
        out.note("starting the local server")
        server = ensure_server(paths)
    try:
        return call(server, method, path, timeout_s=_TIMEOUT_S, **arguments)
    except LightCallError as error:
        if error.status == 404:
            raise NotFoundError(error.message, hint="`memdir server jobs --failed` shows the ids") from error
        raise


def _list(args: argparse.Namespace, out: Output) -> int:
    params = {"limit": str(args.limit), "failed": "true" if args.failed else "false"}
    if args.container is not None:
        params["containerTag"] = args.container
    answer = _call(out, "GET", "/v1/jobs", params=params)
    rows: list[dict[str, Any]] = answer.get("jobs") or []
    if out.json:
        out.document([_row(row) for row in rows])
    elif not rows:
        out.note("nothing was given up" if args.failed else "nothing waits")
    for row in [] if out.json else rows:
        where = f"{row['containerTag']}{row['path'] or ''}"
        reason = f": {visible(str(row['reason']))}" if row.get("reason") else ""
        tried = f" (tried {plural(row['attempts'], 'time')})" if row["attempts"] else ""
        out.line(f"{row['state']:<8} {row['kind']:<7} {row['documentId']}  {out.name(where)}{reason}{tried}")
    if answer.get("hasMore"):
        out.note(f"these are the first {len(rows)}, there are more: use --limit or --container")
    return EXIT_OK if rows else EXIT_NOTHING


def _row(row: dict[str, Any]) -> dict[str, Any]:
    return {
        "document_id": row["documentId"],
        "kind": row["kind"],
        "container": row["containerTag"],
        "path": row["path"],
        "state": row["state"],
        "priority": row["priority"],
        "attempts": row["attempts"],
        "reason": row["reason"],
        "at": row["at"],
    }


def _retry(args: argparse.Namespace, out: Output) -> int:
    if (args.document is None) != args.all:
        raise UsageError("which work: the ID of a document, or --all", hint="`memdir server jobs --failed` shows the ids")
    if args.container is not None and not args.all:
        raise UsageError("--container goes with --all")
    body = {"documentId": args.document} if args.document is not None else {}
    if args.container is not None:
        body["containerTag"] = args.container
    count = int(_call(out, "POST", "/v1/jobs:retry", body=body).get("requeued") or 0)
    if out.json:
        out.document({"requeued": count})
    elif count:
        out.line(f"{plural(count, 'job')} queued again")
    else:
        out.note("nothing was given up")
    return EXIT_OK if count else EXIT_NOTHING


COMMAND = Command(
    name="server jobs",
    usage="[OPTIONS]",
    description=(
        "Show the work on documents that waits, runs, or was given up. Work is given up when it failed five times, when the\n"
        "same document ended its worker three times, and at once when trying again cannot help; the row stays, with the reason."
    ),
    examples=[
        ("memdir server jobs", "state, kind of work, document, place"),
        ("memdir server jobs --failed --json", "what was given up, and why, for programs"),
    ],
    exit_codes=[(0, "there is some"), (1, "there is none")],
    configure=_configure,
    run=_list,
)
RETRY = Command(
    name="server jobs retry",
    usage="[OPTIONS] [ID]",
    description="Put work that was given up back into the queue. A document that had failed is queued again.",
    examples=[
        ("memdir server jobs retry 01JD3Y6T0V8Q9W", "one document"),
        ("memdir server jobs retry --all --container notes", "everything in one memory"),
    ],
    exit_codes=[(0, "something was queued again"), (1, "nothing was given up")],
    configure=_configure_retry,
    run=_retry,
)
