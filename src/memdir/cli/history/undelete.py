"""`memdir undelete`: bring back what was deleted, a file or all that went with a folder."""

from __future__ import annotations

import argparse
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from memdir.cli.command import EXIT_ERROR, EXIT_NOTHING, EXIT_OK, Command, Parser
from memdir.cli.text import human_bytes, plural, visible
from memdir.cli.times import here, past_moment

if TYPE_CHECKING:
    from memdir.api import v1
    from memdir.cli.history.shared import Place
    from memdir.cli.output import Output
    from memdir.client.http import Client

_ONE_DELETION_S: Final = 60.0
"""An `rm -r` is pushed in parts: deletions that follow each other within this time belong together."""
_FILES_MAX: Final = 1_000_000
_NAMES_MAX: Final = 100


def _configure(parser: Parser) -> None:
    parser.add_argument(
        "path", metavar="PATH", nargs="?", help="a file or folder that was deleted (default: the folder you are in)"
    )
    parser.add_argument(
        "--since", metavar="TIME", type=past_moment,
        help="all that was deleted since then, as for `memdir restore --at` (default: what went with the last deletion)",
    )  # fmt: skip
    parser.add_argument("--list", action="store_true", help="list what would come back, and do nothing")
    parser.add_argument(
        "--force",
        action="store_true",
        help="where something else stands now, put what was deleted beside it, with another name",
    )
    parser.add_argument("--container", metavar="NAME", help="a memory on the server, mounted or not; PATH is then a path in it")


def _run(args: argparse.Namespace, out: Output) -> int:
    from memdir.cli.history.shared import keeper, placed, push_first
    from memdir.client.errors import NotFoundError as NothingThereError

    place = placed(args.path, args.container)
    push_first(place)
    with keeper(out) as client:
        try:
            gone = _chosen(_deleted(client, place), args.since)
        except NothingThereError as error:
            out.note(error.message)
            gone = []
        if not gone:
            since = f" since {here(args.since.isoformat())}" if args.since else ""
            out.note(f"nothing that was deleted at or below {place.path}{since} is kept")
            if out.json:
                out.document([])
            return EXIT_NOTHING
        rows = [_row(entry) for entry in gone] if args.list else _bring_back(client, place, gone, out, force=args.force)
    _print(rows, out, listed=args.list)
    return EXIT_ERROR if any(row["error"] for row in rows) else EXIT_OK


def _deleted(client: Client, place: Place) -> list[v1.VersionEntry]:
    """The last content of each path at and below the place, latest deletion first."""
    found: dict[str, v1.VersionEntry] = {}
    before: int | None = None
    while len(found) < _FILES_MAX:
        page = client.deleted_versions(place.container, place.path, before=before)
        for entry in page.versions:
            if entry.path is not None:
                found.setdefault(entry.path, entry)
        before = page.next_before
        if before is None:
            break
    return list(found.values())


def _chosen(gone: list[v1.VersionEntry], since: datetime | None) -> list[v1.VersionEntry]:
    """Those since a moment, or those of the last deletion: going back until nothing was deleted for a while."""
    if since is not None:
        return [entry for entry in gone if datetime.fromisoformat(entry.ended_at) >= since]
    chosen: list[v1.VersionEntry] = []
    for entry in sorted(gone, key=lambda entry: entry.ended_at, reverse=True):
        at = datetime.fromisoformat(entry.ended_at)
        if chosen and (datetime.fromisoformat(chosen[-1].ended_at) - at).total_seconds() > _ONE_DELETION_S:
            break
        chosen.append(entry)
    return chosen


def _bring_back(client: Client, place: Place, gone: list[v1.VersionEntry], out: Output, *, force: bool) -> list[dict[str, Any]]:
    from memdir.cli.history.shared import in_parallel, wait_shown
    from memdir.client.errors import ClientError

    ordered = sorted(gone, key=lambda entry: entry.path or "")
    results = in_parallel(
        "bringing back",
        ordered,
        lambda entry: _restore(client, place.container, entry, force=force),
        lambda entry: entry.path or "",
    )
    rows, last = [], 0
    for entry, result in zip(ordered, results, strict=True):
        row = _row(entry)
        if isinstance(result, ClientError):
            row["error"] = result.message
        else:
            row["path"], last = result.path, max(last, result.revision)
        rows.append(row)
    if last:
        wait_shown(place, last, out)
    return rows


def _restore(client: Client, container: str, entry: v1.VersionEntry, *, force: bool) -> v1.FileEntry:
    """At its place, when nothing stands there; with `force` else beside it."""
    from memdir.api import v1
    from memdir.client.errors import ConflictError, PreconditionFailedError

    assert entry.path is not None
    names = [entry.path, *_beside(entry.path, entry.ended_at)] if force else [entry.path]
    for number, path in enumerate(names):
        request = v1.RestoreRequest(container_tag=container, version=entry.version, path=path, if_none_match=True)
        try:
            return client.restore_version(request)
        except (ConflictError, PreconditionFailedError):
            if number + 1 == len(names):
                raise
    raise AssertionError("a path is tried at least")


def _beside(path: str, ended_at: str) -> list[str]:
    """`notes.md` as `notes (deleted 2026-11-22).md`, and with numbers."""
    folder, _, name = path.rpartition("/")
    stem, dot, ending = name.rpartition(".")
    stem, ending = (stem, dot + ending) if stem else (name, "")
    day = here(ended_at)[:10]
    numbers = ["", *(f" {number}" for number in range(2, _NAMES_MAX))]
    return [f"{folder}/{stem} (deleted {day}{number}){ending}" for number in numbers]


def _row(entry: v1.VersionEntry) -> dict[str, Any]:
    return {
        "path": entry.path, "was": entry.path, "version": entry.version, "deleted_at": entry.ended_at,
        "size_bytes": entry.size_bytes, "error": None,
    }  # fmt: skip


def _print(rows: list[dict[str, Any]], out: Output, *, listed: bool) -> None:
    if out.json:
        out.document(rows)
        return
    for row in rows:
        if listed:
            out.line(
                f"{row['version']:>8}  {here(row['deleted_at'])}  {human_bytes(row['size_bytes']):>10}  {out.name(row['path'])}"
            )
        elif row["error"]:
            out.line(f"{out.name(row['was'])}: stays deleted: {visible(row['error'])}")
        else:
            out.line(out.name(row["path"]))
    refused = sum(row["error"] is not None for row in rows)
    if refused:
        out.note(f"{plural(refused, 'path')} refused; --force puts them beside what stands there")
    elif not listed:
        out.note(f"{plural(len(rows), 'file')} brought back")


COMMAND = Command(
    name="undelete",
    usage="[OPTIONS] [PATH]",
    description=(
        "Bring back what was deleted: a file, or of a folder all that went with the last deletion in it (deletions less than\n"
        "a minute apart belong together, as those of one `rm -r`). Files come back as themselves, with their history. Where\n"
        "something else stands now, nothing is replaced."
    ),
    examples=[
        ("memdir undelete notes/plan.md", "one file"),
        ("memdir undelete notes/work", "all that went with a folder"),
        ("memdir undelete notes --since yesterday --list", "what was deleted since then"),
        ("memdir undelete --container notes /work --json", "without a mount, for programs"),
    ],
    exit_codes=[
        (0, "all of it is back"),
        (1, "nothing that was deleted there is kept"),
        (2, "some paths were refused, or an error"),
    ],
    configure=_configure,
    run=_run,
)
