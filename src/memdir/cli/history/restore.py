"""`memdir restore`: bring a former content of a file back, or a folder to what it was at a moment."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from memdir.cli.command import EXIT_ERROR, EXIT_NOTHING, EXIT_OK, Command, Parser, bounded_int
from memdir.cli.text import plural, visible
from memdir.cli.times import here, past_moment
from memdir.core.errors import UsageError

if TYPE_CHECKING:
    from memdir.api import v1
    from memdir.cli.history.shared import Place
    from memdir.cli.output import Output
    from memdir.client.http import Client

_NUMBER_MAX: Final = 1 << 62
_LISTED_MAX: Final = 1000
_REVISIONS_MAX: Final = 1000
_NOW: Final = datetime.max.replace(tzinfo=UTC)
"""In place of a moment: when what waited has been pushed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One path of a folder: what stood there then, None for nothing; what stands there now."""

    path: str
    then: v1.PastEntry | None
    now: v1.FileEntry | None

    @property
    def word(self) -> str:
        if self.then is None:
            return "delete"
        return "restore" if self.now is None else "replace"


def _moment(text: str) -> datetime:
    return _NOW if text.strip().lower() == "now" else past_moment(text)


def _configure(parser: Parser) -> None:
    parser.add_argument(
        "path", metavar="PATH", help="a file in a mount, where it stands or stood last; with --at also a folder"
    )
    parser.add_argument(
        "--rev", "--version", dest="rev", metavar="N", type=bounded_int(1, _NUMBER_MAX),
        help="the revision with this number in `memdir history PATH` (default: the newest former one, as after a deletion)",
    )  # fmt: skip
    parser.add_argument(
        "--at", metavar="TIME", type=_moment,
        help="what stood there then: 2026-11-20, '2026-11-20 18:30', 10:30, '2h ago', yesterday, or ISO 8601 with a zone",
    )  # fmt: skip
    parser.add_argument("--exact", action="store_true", help="of a folder: also delete the files that did not stand there then")
    parser.add_argument("--dry-run", action="store_true", help="with --at: say what would be done, and do nothing")
    parser.add_argument("--container", metavar="NAME", help="a memory on the server, mounted or not; PATH is then a path in it")


def _run(args: argparse.Namespace, out: Output) -> int:
    from memdir.cli.history.shared import keeper, placed, push_first

    if args.at is not None and args.rev is not None:
        raise UsageError("either --at or --rev", hint="a moment, or a number of `memdir history PATH`")
    if args.at is None and (args.exact or args.dry_run):
        raise UsageError("--exact and --dry-run go with --at")
    place = placed(args.path, args.container)
    if place.path == "/" and args.at is None:
        raise UsageError(f"{args.path} is the memory itself", hint="--at TIME brings all of it to a moment")
    if not args.dry_run:
        push_first(place)
    if args.at == _NOW:
        args.at = datetime.now(UTC)
    with keeper(out) as client:
        if args.at is None:
            return _restore_revision(client, place, args.rev, out)
        return _restore_moment(client, place, args, out)


# --- one file ----------------------------------------------------------------------------------------------------------


def _restore_revision(client: Client, place: Place, number: int | None, out: Output) -> int:
    from memdir.api import v1
    from memdir.client.errors import NotFoundError as NothingThereError

    try:
        if number is None:
            found = client.versions(place.container, place.path, limit=1).versions
            if not found:
                out.note(f"no former revision of {place.path} is kept")
                return EXIT_NOTHING
            number = found[0].version
        entry = client.restore_version(v1.RestoreRequest(container_tag=place.container, version=number, path=place.path))
    except NothingThereError as error:
        out.note(error.message)
        return EXIT_NOTHING
    return _say_restored(place, entry, number, out)


def _say_restored(place: Place, entry: v1.FileEntry, number: int | None, out: Output) -> int:
    from memdir.cli.history.shared import wait_shown

    wait_shown(place, entry.revision, out)
    if out.json:
        out.document({"path": entry.path, "version": number, "revision": entry.revision, "size_bytes": entry.size_bytes})
    else:
        what = f"revision {number}" if number is not None else "what stood there then"
        out.line(f"{out.name(entry.path)}: {what} is the content again, as change {entry.revision}")
    return EXIT_OK


def _restore_moment(client: Client, place: Place, args: argparse.Namespace, out: Output) -> int:
    from memdir.cli.history.shared import entries_below
    from memdir.client.errors import NotFoundError as NothingThereError

    at: datetime = args.at
    try:
        then = _standing(client, place, at, out)
        now = {entry.path: entry for entry in entries_below(client, place.container, place.path)}
    except NothingThereError as error:
        out.note(error.message)
        return EXIT_NOTHING
    a_file = place.path != "/" and not any(path != place.path for path in (*then, *now))
    a_file = a_file and not (place.path in now and now[place.path].kind == "dir")
    if a_file and place.path not in then:
        found = _under_another_name(client, place, at)
        if found is not None:
            then[place.path] = found
            out.note(f"it stood at {found.path} then")
    if not then and not (args.exact and now):
        out.note(f"nothing stood at {place.path} on {here(at.isoformat())}; `memdir history {args.path}` shows what there is")
        return EXIT_NOTHING
    steps = list(_steps(then, now, exact=args.exact))
    return _carry_out(client, place, steps, len(then), args, out)


def _standing(client: Client, place: Place, at: datetime, out: Output) -> dict[str, v1.PastEntry]:
    found: dict[str, v1.PastEntry] = {}
    since: str | None = None
    for page in client.standing_at(place.container, place.path, at.isoformat()):
        for entry in page.entries:
            found.setdefault(entry.path, entry)
        since = since or page.renames_since
    if since is not None:
        out.note(f"renames before {here(since)} are not known any more: what was renamed then may come back at a later name")
    return found


def _under_another_name(client: Client, place: Place, at: datetime) -> v1.PastEntry | None:
    """The content of the file that stands at the path now, at a moment when it stood elsewhere."""
    from memdir.api import v1
    from memdir.client.errors import NotFoundError as NothingThereError

    try:
        page = client.versions(place.container, place.path, limit=_REVISIONS_MAX)
    except NothingThereError:
        return None
    current = page.current
    for version in page.versions if current is not None else ():
        began = None if version.began_at is None else datetime.fromisoformat(version.began_at)
        if version.path and began is not None and began <= at < datetime.fromisoformat(version.ended_at):
            return v1.PastEntry.model_validate(version.model_dump() | {"stands_at": None})
    if current is not None and page.current_since is not None and datetime.fromisoformat(page.current_since) <= at:
        return v1.PastEntry.model_validate(current.model_dump() | {"version": None, "stands_at": current.path})
    return None


# --- what has to be done -----------------------------------------------------------------------------------------------


def _steps(then: dict[str, v1.PastEntry], now: dict[str, v1.FileEntry], *, exact: bool) -> Iterator[Step]:
    """In the order of the paths; deletions first, which may make room for a file where a folder stands."""
    for path, entry in sorted(now.items()) if exact else ():
        if path not in then and entry.kind != "dir":
            yield Step(path=path, then=None, now=entry)
    for path, past in sorted(then.items()):
        entry_now = now.get(path)
        same = entry_now is not None and (
            (entry_now.content_hash, entry_now.kind, entry_now.mode) == (past.content_hash, past.kind, past.mode)
        )
        if not same:
            yield Step(path=path, then=past, now=entry_now)


def _carry_out(client: Client, place: Place, steps: list[Step], stood: int, args: argparse.Namespace, out: Output) -> int:
    from memdir.cli.history.shared import in_parallel, wait_shown
    from memdir.client.errors import ClientError

    refused: dict[str, str] = {}
    last = 0
    for part in () if args.dry_run else ([s for s in steps if s.then is None], [s for s in steps if s.then is not None]):
        label = "restoring" if part and part[0].then else "deleting"
        results = in_parallel(label, part, lambda step: _take(client, place.container, step), lambda step: step.path)
        for step, result in zip(part, results, strict=True):
            if isinstance(result, ClientError):
                refused[step.path] = result.message
            else:
                last = max(last, result)
    if last:
        wait_shown(place, last, out)
    if out.json:
        out.document({
            "path": place.path, "at": args.at.isoformat(), "dry_run": args.dry_run, "stood": stood,
            "unchanged": stood - sum(step.then is not None for step in steps),
            "steps": [
                {"path": step.path, "do": step.word, "version": None if step.then is None else step.then.version,
                 "error": refused.get(step.path)}
                for step in steps
            ],
        })  # fmt: skip
    else:
        _print_steps(steps, refused, stood, args, out)
    return EXIT_ERROR if refused else EXIT_OK


def _take(client: Client, container: str, step: Step) -> int:
    """One path. Returns the number of the change. ClientError; what was changed since it was looked at stays."""
    from memdir.api import v1
    from memdir.client.remote import Expect

    now, then = step.now, step.then
    expect = Expect(revision=None if now is None else now.revision)
    if then is None:
        return client.delete_file(container, step.path, expect=expect).seq
    if then.version is not None:
        request = v1.RestoreRequest(
            container_tag=container, version=then.version, path=step.path,
            if_match=expect.revision, if_none_match=expect.revision is None,
        )  # fmt: skip
        return client.restore_version(request).revision
    with client.open_file(container, then.stands_at or step.path) as (_, pieces):  # renamed since: a copy takes its old place
        return client.put_file(
            container, step.path, pieces, kind=then.kind, mode=then.mode, mtime_ns=then.mtime_ns, expect=expect
        ).revision


def _print_steps(steps: list[Step], refused: dict[str, str], stood: int, args: argparse.Namespace, out: Output) -> None:
    for step in steps[:_LISTED_MAX]:
        number = f" (revision {step.then.version})" if step.then is not None and step.then.version is not None else ""
        why = f": not done: {visible(refused[step.path])}" if step.path in refused else ""
        out.line(f"{'would ' if args.dry_run else ''}{step.word} {out.name(step.path)}{number}{why}")
    if len(steps) > _LISTED_MAX:
        out.line(f"… and {len(steps) - _LISTED_MAX:,} more (--json lists all)")
    done = len(steps) - len(refused)
    moment = here(args.at.isoformat())
    if not steps:
        out.note(f"nothing to do: it is what it was on {moment}")
    elif args.dry_run:
        out.note(f"{plural(stood, 'file')} stood there on {moment}; {plural(len(steps), 'path')} would change")
    else:
        out.note(
            f"{plural(stood, 'file')} stood there on {moment}; {plural(done, 'path')} changed, what was there is a revision"
        )


COMMAND = Command(
    name="restore",
    usage="[OPTIONS] PATH",
    description=(
        "Bring a former content of a file back, with its mode, also of one that was deleted; or with --at a folder to what it\n"
        "was at a moment: nothing is deleted for that unless --exact says so. It becomes the newest content; what it replaces\n"
        "becomes a revision in turn. What was changed in the mount and waits to be pushed is pushed first."
    ),
    examples=[
        ("memdir restore notes/plan.md --rev 41", "the content of revision 41"),
        ("memdir restore notes/plan.md --at '2h ago'", "what it was two hours ago"),
        ("memdir restore notes/gone.md", "undo a deletion, or the last change"),
        ("memdir restore notes/work --at 10:30 --dry-run", "what would change in a folder"),
        ("memdir restore --container notes /plan.md --rev 41 --json", "without a mount, for programs"),
    ],
    exit_codes=[
        (0, "it was restored"),
        (1, "there is no such revision, or nothing stood there then"),
        (2, "some paths were refused, or an error"),
    ],
    configure=_configure,
    run=_run,
)
