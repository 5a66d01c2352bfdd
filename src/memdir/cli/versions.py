"""`memdir versions`: former contents of a file, and what was deleted."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

from memdir.cli.command import EXIT_NOTHING, EXIT_OK, Command, Parser, bounded_int
from memdir.cli.text import human_bytes
from memdir.core.errors import NotFoundError, UsageError

if TYPE_CHECKING:
    from memdir.api import v1
    from memdir.cli.output import Output
    from memdir.client.http import Client

_NUMBER_MAX = 1 << 62
_LIMIT_DEFAULT = 100
_LIMIT_MAX = 1000


def _configure(parser: Parser) -> None:
    parser.add_argument("path", metavar="PATH", nargs="?", help="a file in a mount; with --deleted a folder (default: here)")
    parser.add_argument("--container", metavar="NAME", help="a memory on the server, mounted or not; PATH is then a path in it")
    parser.add_argument("--show", metavar="N", type=bounded_int(1, _NUMBER_MAX), help="print the exact bytes of version N")
    parser.add_argument("--deleted", action="store_true", help="list files that were deleted and can be restored")
    limit_help = f"at most N versions, 1 to {_LIMIT_MAX} (default: {_LIMIT_DEFAULT})"
    parser.add_argument("--limit", metavar="N", type=bounded_int(1, _LIMIT_MAX), default=_LIMIT_DEFAULT, help=limit_help)


def _run(args: argparse.Namespace, out: Output) -> int:
    from memdir.cli.remote import connected, place_of

    if args.path is None and not args.deleted and args.show is None:
        raise UsageError("which file?", hint="for example: memdir versions notes/plan.md")
    if args.show is not None and (args.json or args.deleted):
        raise UsageError("--show prints bytes, so it goes without --json and --deleted")
    container, path = place_of(args.path, args.container)
    with connected(out.note) as client:
        if args.show is not None:
            return _show(client, container, args.show)
        page = _page(client, container, path, args, out)
    if page.next_before is not None:
        out.note(f"these are the newest {len(page.versions)}, there are more: use --limit")
    _print(page, path, out, deleted=args.deleted)
    return EXIT_OK if page.versions else EXIT_NOTHING


def _page(client: Client, container: str, path: str, args: argparse.Namespace, out: Output) -> v1.VersionsPage:
    from memdir.api import v1
    from memdir.client.errors import NotFoundError as NothingThereError

    try:
        if args.deleted:
            return client.deleted_versions(container, path, limit=args.limit)
        return client.versions(container, path, limit=args.limit)
    except NothingThereError as error:
        out.note(error.message)
        return v1.VersionsPage(versions=[])


def _show(client: Client, container: str, number: int) -> int:
    from memdir.client.errors import NotFoundError as NothingThereError

    sys.stdout.flush()
    try:
        with client.open_version(container, number) as pieces:
            for piece in pieces:
                sys.stdout.buffer.write(piece)
    except NothingThereError as error:
        raise NotFoundError(error.message, hint="`memdir versions PATH` lists them") from error
    sys.stdout.buffer.flush()
    return EXIT_OK


def _print(page: v1.VersionsPage, path: str, out: Output, *, deleted: bool) -> None:
    if out.json:
        out.document([_row(entry) for entry in page.versions])
        return
    for entry in page.versions:
        where = entry.path if deleted or entry.path != path else ""
        words = f"{entry.version:>8}  {entry.ended_at}  {human_bytes(entry.size_bytes):>10}  {entry.reason:<8}"
        out.line(f"{words}  {out.name(where or '')}".rstrip())


def _row(entry: v1.VersionEntry) -> dict[str, Any]:
    return {
        "version": entry.version,
        "path": entry.path,
        "ended_at": entry.ended_at,
        "reason": entry.reason,
        "size_bytes": entry.size_bytes,
        "content_hash": entry.content_hash,
        "kind": entry.kind,
        "mode": entry.mode,
        "mtime_ns": entry.mtime_ns,
        "revision": entry.revision,
        "document_id": entry.document_id,
    }


COMMAND = Command(
    name="versions",
    usage="[OPTIONS] [PATH]",
    description=(
        "Show the former contents of a file, newest first: number, when it ceased to be the content, size, and whether it was\n"
        "replaced or deleted; and where the file stood then, if elsewhere. What was not pushed yet is not a version."
    ),
    examples=[
        ("memdir versions notes/plan.md", "what the file was before"),
        ("memdir versions notes/plan.md --show 41", "print version 41"),
        ("memdir versions --deleted notes", "files that were deleted and can be restored"),
        ("memdir versions --container notes /plan.md --json", "without a mount, for programs"),
    ],
    exit_codes=[(0, "there are versions"), (1, "there are none")],
    configure=_configure,
    run=_run,
)
