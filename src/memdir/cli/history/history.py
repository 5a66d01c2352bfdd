"""`memdir history`: what a file was before, what changed in a folder, what was deleted, and how long all that is kept."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

from memdir.cli.command import EXIT_NOTHING, EXIT_OK, Command, Parser, bounded_int
from memdir.cli.text import human_bytes, plural, visible
from memdir.cli.times import here
from memdir.core.errors import NotFoundError, UsageError

if TYPE_CHECKING:
    from memdir.api import v1
    from memdir.cli.history.shared import Place
    from memdir.cli.output import Output
    from memdir.client.http import Client

_NUMBER_MAX: Final = 1 << 62
_LIMIT_DEFAULT: Final = 100
_LIMIT_MAX: Final = 1000
_COUNT_MAX: Final = 1000
_DAYS_MAX: Final = 3650
"""As the server bounds them."""
_DIFF_MAX_BYTES: Final = 4 << 20
"""Comparing lines takes time that grows with the square of what differs."""
_EMPTY_PAGES_MAX: Final = 20
_RANGE: Final = re.compile(r"(\d{1,18})(?:\.\.(\d{1,18}))?")


def _configure(parser: Parser) -> None:
    parser.add_argument("path", metavar="PATH", nargs="?", help="a file or folder in a mount (default: the folder you are in)")
    parser.add_argument("--container", metavar="NAME", help="a memory on the server, mounted or not; PATH is then a path in it")
    parser.add_argument("--show", metavar="N", type=bounded_int(1, _NUMBER_MAX), help="print the exact bytes of revision N")
    parser.add_argument("--diff", metavar="N[..M]", type=_revisions, help="what changed from revision N to M (default: to now)")
    parser.add_argument("--deleted", action="store_true", help="list files that were deleted and can be restored")
    limit_help = f"at most N lines, 1 to {_LIMIT_MAX} (default: {_LIMIT_DEFAULT})"
    parser.add_argument("--limit", metavar="N", type=bounded_int(1, _LIMIT_MAX), default=_LIMIT_DEFAULT, help=limit_help)
    parser.add_argument(
        "--keep-count", metavar="N", type=bounded_int(0, _COUNT_MAX),
        help="from now on keep N former revisions of each file of this memory, 0 to 1000; 0 keeps none (default: 50)",
    )  # fmt: skip
    parser.add_argument(
        "--keep-days", metavar="N", type=bounded_int(0, _DAYS_MAX),
        help="from now on keep them for N days, 0 to 3650 (default: 90)",
    )  # fmt: skip


def _revisions(text: str) -> tuple[int, int | None]:
    found = _RANGE.fullmatch(text)
    if found is None or int(found[1]) < 1 or int(found[2] or 1) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is neither a number nor two as 41..57")
    return int(found[1]), int(found[2]) if found[2] else None


def _run(args: argparse.Namespace, out: Output) -> int:
    from memdir.cli.history.shared import keeper, placed

    if args.show is not None and (args.json or args.deleted or args.diff is not None):
        raise UsageError("--show prints bytes, so it goes without --json, --diff and --deleted")
    place = placed(args.path, args.container)
    with keeper(out) as client:
        if args.show is not None:
            return _show(client, place.container, args.show)
        if args.diff is not None:
            return _diff(client, place, args.diff, out)
        if args.keep_count is not None or args.keep_days is not None:
            return _keep(client, place, args, out)
        if args.deleted:
            return _print_deleted(_deleted(client, place, args.limit, out), out)
        rows, more = _rows(client, place, args.limit, out)
        if more:
            out.note(f"these are the newest {len(rows)}, there are more: use --limit")
        _print(rows, place.path, out)
        if out.is_terminal and not out.json:
            out.note(_kept(client.container_settings(place.container)))
    return EXIT_OK if rows else EXIT_NOTHING


# --- what there is -----------------------------------------------------------------------------------------------------


def _rows(client: Client, place: Place, limit: int, out: Output) -> tuple[list[dict[str, Any]], bool]:
    """Of a file: its revisions and renames, the present one first. Of a folder: what changed in it."""
    from memdir.client.errors import NotFoundError as NothingThereError

    if place.path != "/":
        try:
            page = client.versions(place.container, place.path, limit=limit)
        except NothingThereError as error:
            rows, more = _changes(client, place, limit)
            if not rows:
                out.note(error.message)
            return rows, more
        if page.current is None or page.current.kind != "dir":
            return _revisions_of(page, limit), page.next_before is not None
    try:
        return _changes(client, place, limit)
    except NothingThereError as error:
        out.note(error.message)
        return [], False


def _revisions_of(page: v1.VersionsPage, limit: int) -> list[dict[str, Any]]:
    rows = [_version_row(entry) for entry in page.versions]
    rows += [
        {"version": None, "reason": "moved", "path": move.path, "from": move.from_path, "began_at": move.at, "ended_at": None,
         "revision": move.seq}
        for move in page.renames
    ]  # fmt: skip
    rows.sort(key=lambda row: (row["began_at"] or "", row["version"] or 0), reverse=True)
    if page.current is not None:
        entry = page.current
        rows.insert(0, {
            "version": None, "reason": "current", "path": entry.path, "began_at": page.current_since, "ended_at": None,
            "size_bytes": entry.size_bytes, "content_hash": entry.content_hash, "kind": entry.kind, "mode": entry.mode,
            "mtime_ns": entry.mtime_ns, "revision": entry.revision, "document_id": entry.document_id,
        })  # fmt: skip
    return rows[: limit + 1]


def _changes(client: Client, place: Place, limit: int) -> tuple[list[dict[str, Any]], bool]:
    """Newest first. A page of the server may be empty and not the last."""
    rows: list[dict[str, Any]] = []
    before: int | None = None
    for _ in range(_EMPTY_PAGES_MAX):
        page = client.history(place.container, place.path, before=before, limit=limit - len(rows))
        rows += [
            {"revision": entry.seq, "reason": entry.kind, "path": entry.path, "from": entry.from_path, "began_at": entry.at,
             "size_bytes": entry.size_bytes, "kind": entry.entry_kind, "mode": entry.mode}
            for entry in page.entries
        ]  # fmt: skip
        before = page.next_before
        if before is None or len(rows) >= limit:
            break
    return rows, before is not None


def _deleted(client: Client, place: Place, limit: int, out: Output) -> list[dict[str, Any]]:
    from memdir.client.errors import NotFoundError as NothingThereError

    try:
        page = client.deleted_versions(place.container, place.path, limit=limit)
    except NothingThereError as error:
        out.note(error.message)
        return []
    if page.next_before is not None:
        out.note(f"these are the newest {len(page.versions)}, there are more: use --limit")
    return [_version_row(entry) for entry in page.versions]


def _version_row(entry: v1.VersionEntry) -> dict[str, Any]:
    return {
        "version": entry.version,
        "path": entry.path,
        "began_at": entry.began_at,
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


def _print(rows: list[dict[str, Any]], path: str, out: Output) -> None:
    if out.json:
        out.document(rows)
        return
    for row in rows:
        size = "" if row.get("size_bytes") is None else human_bytes(row["size_bytes"])
        if "version" not in row:  # a folder's: each line names its path
            where = f"{row['from']} -> {row['path']}" if row["from"] else row["path"]
            out.line(f"{here(row['began_at'])}  {row['reason']:<6}  {size:>10}  {out.name(where)}")
            continue
        number = {"current": "now", "moved": ""}.get(row["reason"], row["version"])
        until = here(row["ended_at"]) if row["ended_at"] else ""
        where = f"{row['from']} -> {row['path']}" if row["reason"] == "moved" else row["path"] if row["path"] != path else ""
        line = f"{number:>8}  {here(row['began_at'])}  {until:<19}  {size:>10}  {row['reason']:<8}  {out.name(where or '')}"
        out.line(line.rstrip())


def _print_deleted(rows: list[dict[str, Any]], out: Output) -> int:
    if out.json:
        out.document(rows)
    for row in () if out.json else rows:
        size = human_bytes(row["size_bytes"])
        out.line(f"{row['version']:>8}  {here(row['ended_at'])}  {size:>10}  {out.name(row['path'] or '')}".rstrip())
    return EXIT_OK if rows else EXIT_NOTHING


# --- one revision ------------------------------------------------------------------------------------------------------


def _show(client: Client, container: str, number: int) -> int:
    sys.stdout.flush()
    for piece in _pieces(client, container, number):
        sys.stdout.buffer.write(piece)
    sys.stdout.buffer.flush()
    return EXIT_OK


def _pieces(client: Client, container: str, number: int) -> Iterable[bytes]:
    from memdir.client.errors import NotFoundError as NothingThereError

    try:
        with client.open_version(container, number) as pieces:
            yield from pieces
    except NothingThereError as error:
        raise NotFoundError(error.message, hint="`memdir history PATH` lists them") from error


def _diff(client: Client, place: Place, revisions: tuple[int, int | None], out: Output) -> int:
    """A unified diff. Exit code 1 when nothing differs, as there is nothing to show."""
    from memdir.sync.conflicts.text_diff import lines_of, unified

    first, second = revisions
    old = _bounded(_pieces(client, place.container, first), f"revision {first}")
    new, label = _other_side(client, place, second)
    if out.json:
        out.document({"path": place.path, "from": first, "to": second, "equal": old == new})
        return EXIT_OK if old != new else EXIT_NOTHING
    if old == new:
        return EXIT_NOTHING
    try:
        before, after = ([line.decode("utf-8") for line in lines_of(side)] for side in (old, new))
    except UnicodeDecodeError:
        out.line(f"revision {first} and {label} differ, and are no text")
        return EXIT_OK
    for line in unified(before, after, f"{place.path} (revision {first})", f"{place.path} ({label})"):
        out.line(visible(line).replace("\\t", "\t"))
    return EXIT_OK


def _other_side(client: Client, place: Place, number: int | None) -> tuple[bytes, str]:
    """The second revision, or what the server has now; nothing at all when the file was deleted."""
    from memdir.cli.history.shared import push_first
    from memdir.client.errors import NotFoundError as NothingThereError

    if number is not None:
        return _bounded(_pieces(client, place.container, number), f"revision {number}"), f"revision {number}"
    push_first(place)
    try:
        with client.open_file(place.container, place.path) as (_, pieces):
            return _bounded(pieces, "what stands there now"), "now"
    except NothingThereError:
        return b"", "now: nothing"


def _bounded(pieces: Iterable[bytes], what: str) -> bytes:
    data = b""
    for piece in pieces:
        data += piece
        if len(data) > _DIFF_MAX_BYTES:
            raise UsageError(
                f"{what} has more than {human_bytes(_DIFF_MAX_BYTES)}", hint="--show N prints it; compare it with `diff`"
            )
    return data


# --- how long ----------------------------------------------------------------------------------------------------------


def _keep(client: Client, place: Place, args: argparse.Namespace, out: Output) -> int:
    changes = {"versionsMaxCount": args.keep_count, "versionsMaxDays": args.keep_days}
    answer = client.change_settings(place.container, {name: value for name, value in changes.items() if value is not None})
    if out.json:
        out.document({
            "container": place.container,
            "keep_count": answer.get("versionsMaxCount"), "keep_days": answer.get("versionsMaxDays"),
        })  # fmt: skip
    else:
        out.line(f"{out.name(place.container)}: {_kept(answer)}; older ones are gone for good")
    return EXIT_OK


def _kept(settings: dict[str, Any]) -> str:
    count, days = settings.get("versionsMaxCount"), settings.get("versionsMaxDays")
    if count == 0 or days == 0:
        return "no former revisions are kept"
    return f"of each file {plural(int(count or 0), 'former revision')} at most, for {plural(int(days or 0), 'day')}"


COMMAND = Command(
    name="history",
    usage="[OPTIONS] [PATH]",
    description=(
        "Show what a file was before, the present content first: the number of each revision, from when to when it was the\n"
        "content, its size, whether it was replaced, deleted or moved, and where it stood, if elsewhere. A history follows\n"
        "its file when that is renamed. Of a folder: what changed below it, newest first. What was not pushed yet is none."
    ),
    examples=[
        ("memdir history notes/plan.md", "what the file was before"),
        ("memdir history notes/plan.md --diff 41", "what changed since revision 41"),
        ("memdir history notes/plan.md --show 41", "print revision 41"),
        ("memdir history notes/work", "what changed in a folder"),
        ("memdir history --deleted notes", "files that were deleted and can be restored"),
        ("memdir history notes --keep-days 30 --keep-count 20", "how much is kept of this memory"),
        ("memdir history --container notes /plan.md --json", "without a mount, for programs"),
    ],
    exit_codes=[(0, "there is something to show"), (1, "there is nothing; with --diff: nothing differs")],
    configure=_configure,
    run=_run,
)
