"""`memdir traces list|watch|import|pause|resume|forget|status`: the log of what was done with files."""

from __future__ import annotations

import argparse
import os
import signal
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from memdir.cli.command import EXIT_NOTHING, EXIT_OK, Command, Parser, bounded_int
from memdir.cli.text import plural, shortened, visible
from memdir.cli.times import past_moment
from memdir.core.errors import NotFoundError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from memdir.cli.output import Output
    from memdir.traces.events import Event
    from memdir.traces.log import Selection, TraceLog

_SHOWN_MAX: Final = 100_000
_FILE_MAX_BYTES: Final = 256 << 20


def opened() -> TraceLog:
    """The log of this user."""
    from memdir.core.paths import app_paths
    from memdir.traces.log import TraceLog

    return TraceLog(app_paths().traces_dir)


def add_filters(parser: Parser) -> None:
    parser.add_argument("--session", metavar="ID", help="only of this session")
    parser.add_argument("--path", metavar="PATH", help="only of what stands at and below this path")
    parser.add_argument("--since", metavar="WHEN", type=past_moment, help="only from then on: 2026-11-20, '2h ago', yesterday")


def chosen(args: argparse.Namespace) -> Iterator[Event]:
    """Events of the log that the filters let pass."""
    selection = _selection(args)
    return (event for event in opened().events() if selection.has(event))


def _selection(args: argparse.Namespace) -> Selection:
    from memdir.traces.log import Selection, path_key

    path = None if args.path is None else path_key(os.path.abspath(args.path))
    return Selection(args.session, path, 0 if args.since is None else int(args.since.timestamp() * 1000))


def _configure_list(parser: Parser) -> None:
    parser.add_argument(
        "-n", "--limit", metavar="N", type=bounded_int(1, _SHOWN_MAX), default=100, help="the last N (default: 100)"
    )
    parser.add_argument("--type", metavar="TYPE", help="only of this type: file_read, file_edit, …")
    parser.add_argument("--derived", action="store_true", help="also references and switches between files, which are derived")
    add_filters(parser)


def _list(args: argparse.Namespace, out: Output) -> int:
    from collections import deque

    from memdir.traces.collect import derived
    from memdir.traces.events import TYPES

    if args.type is not None and args.type not in TYPES:
        raise UsageError(f"{args.type!r} is no type of events", hint=f"one of {', '.join(sorted(TYPES))}")
    found = list(chosen(args))
    if args.derived:
        sessions: dict[str, list[Event]] = {}
        for event in found:
            sessions.setdefault(event.session, []).append(event)
        found += [one for own in sessions.values() for one in derived(own)]
        found.sort(key=lambda event: event.timestamp_ms)
    shown = deque((one for one in found if args.type in (None, one.type)), maxlen=args.limit)
    for event in shown:
        if out.json:
            out.document(event.as_json())
        else:
            out.line(_line(event, out))
    if not shown and not out.json:
        out.note("nothing was recorded: `memdir mount NAME --traces`, or `memdir traces watch DIR`")
    return EXIT_OK if shown else EXIT_NOTHING


def _line(event: Event, out: Output) -> str:
    from datetime import datetime

    moment = datetime.fromtimestamp(event.timestamp_ms / 1000).strftime("%Y-%m-%d %H:%M:%S")  # noqa: DTZ006  as people read it
    old = event.fields.get("old_path") or event.fields.get("src_path")
    lines = ""
    if event.type == "file_edit":
        lines = f" +{event.fields.get('lines_added')} -{event.fields.get('lines_deleted')}"
    query = f" {event.fields.get('query')!r}" if event.type == "file_search" else ""
    what = f"{out.name(str(old))} -> {out.name(event.path)}" if old else out.name(event.path)
    return f"{moment}  {event.type:<12} {what}{lines}{visible(shortened(query, 80))}  {visible(event.actor)}  {event.session}"


def _configure_watch(parser: Parser) -> None:
    parser.add_argument("dir", metavar="DIR", nargs="+", help="folders, with all below them")


def _watch(args: argparse.Namespace, out: Output) -> int:
    from memdir.traces.watch import Watcher, watch

    log = opened()
    roots = [Path(one).resolve() for one in args.dir]
    stopping = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: stopping.set())
    count = 0

    def add(events: list[Event]) -> None:
        nonlocal count
        count += len(events)
        log.add(events)

    watcher = Watcher(roots, log.ignored)  # before it is said: what happens from then on is seen
    reads = "Reads are seen too" if watcher.sees_reads else "Reads are seen by root, and in a mount with --traces"
    out.note(f"watching {', '.join(map(str, roots))}; Ctrl-C ends it. {reads}")
    if watcher.folders_without_reads:
        out.note(f"in {plural(watcher.folders_without_reads, 'folder')} no reads can be seen: their filesystem does not tell")
    watch(watcher, add, stopping.is_set)
    if watcher.missed:
        out.note("more happened at once than the system told of: some of it is missing")
    if out.json:
        out.document({"events": count, "missed": watcher.missed})
    else:
        out.line(f"{plural(count, 'event')} recorded")
    return EXIT_OK if count else EXIT_NOTHING


def _configure_import(parser: Parser) -> None:
    parser.add_argument("file", metavar="FILE", nargs="+", help="trajectories in the published layout: events.json")


def _import(args: argparse.Namespace, out: Output) -> int:
    from memdir.traces.published import NotPublishedError, read

    log = opened()
    known = {event.id for event in log.events()}
    count = 0
    for name in args.file:
        path = Path(name)
        try:
            if path.stat().st_size > _FILE_MAX_BYTES:
                raise UsageError(f"{name} is larger than {_FILE_MAX_BYTES >> 20} MiB")
            events = list(read(path.read_text(encoding="utf-8", errors="replace"), path.parent.name or path.stem))
        except FileNotFoundError:
            raise NotFoundError(f"there is no {name}") from None
        except NotPublishedError as error:
            raise UsageError(f"{name}: {error}") from None
        fresh = [event for event in events if event.id not in known]
        known.update(event.id for event in fresh)
        for begin in range(0, len(fresh), 1000):
            log.add(fresh[begin : begin + 1000], recorded=False)
        count += len(fresh)
    if out.json:
        out.document({"events": count})
    else:
        out.line(f"{plural(count, 'event')} taken over")
    return EXIT_OK if count else EXIT_NOTHING


def _pause(_: argparse.Namespace, out: Output) -> int:
    opened().pause()
    return _state(out)


def _resume(_: argparse.Namespace, out: Output) -> int:
    opened().resume()
    return _state(out)


def _state(out: Output) -> int:
    log = opened()
    sessions, count, last = set(), 0, 0
    for event in log.events():
        sessions.add(event.session)
        count, last = count + 1, max(last, event.timestamp_ms)
    state: dict[str, Any] = {"paused": log.is_paused, "events": count, "sessions": len(sessions)}
    state |= {"size_bytes": log.size_bytes, "last_ms": last or None}
    if out.json:
        out.document(state)
    else:
        now = "paused" if log.is_paused else "recording where it is asked for"
        what = f"{plural(count, 'event')} of {plural(len(sessions), 'session')}"
        out.line(f"{now}: {what}, {log.size_bytes:,} bytes")
    return EXIT_OK


def _status(_: argparse.Namespace, out: Output) -> int:
    return _state(out)


def _nothing(_: Parser) -> None:
    """No options."""


def _configure_forget(parser: Parser) -> None:
    parser.add_argument("--all", action="store_true", help="everything")
    add_filters(parser)


def _forget(args: argparse.Namespace, out: Output) -> int:
    if args.all == any((args.session, args.path, args.since)):
        raise UsageError("say what to forget", hint="--all, or some of --session, --path and --since")
    count = opened().forget(_selection(args))
    if out.json:
        out.document({"forgotten": count})
    else:
        out.line(f"{plural(count, 'event')} forgotten")
    return EXIT_OK if count else EXIT_NOTHING


LIST = Command(
    name="traces list",
    usage="[OPTIONS]",
    description=(
        "Show what was done with files: reads, searches, edits, moves and so on, in the order in which it was recorded.\n"
        "Nothing is recorded before you ask for it (`memdir mount --traces`, `memdir traces watch`), and nothing leaves this\n"
        "machine."
    ),
    examples=[
        ("memdir traces list --since '2h ago'", "the last two hours"),
        ("memdir traces list --type file_edit --json", "an object a line, with what changed"),
    ],
    exit_codes=[(0, "there are some"), (1, "there are none")],
    configure=_configure_list,
    run=_list,
)
WATCH = Command(
    name="traces watch",
    usage="DIR ...",
    description=(
        "Record what happens in ordinary folders, until it is ended: files that are made, changed, moved and deleted; for\n"
        "root also what is read and listed, and which program it was. Names in the file `ignore` beside the log are left out,\n"
        "a pattern a line; what no person does (.git, caches, keys) always."
    ),
    examples=[("memdir traces watch ~/Documents ~/Desktop", "in the foreground")],
    exit_codes=[(0, "something was recorded"), (1, "nothing happened")],
    configure=_configure_watch,
    run=_watch,
)
IMPORT = Command(
    name="traces import",
    usage="FILE ...",
    description="Take trajectories over that were recorded elsewhere, in the published layout; none is taken twice.",
    examples=[("memdir traces import session-7/events.json", "the folder's name is the session's, unless the file names one")],
    exit_codes=[(0, "events were taken over"), (1, "there were none, or none new")],
    configure=_configure_import,
    run=_import,
)
PAUSE = Command(
    name="traces pause",
    usage="",
    description="Record nothing from now on, in no mount and no folder, until `memdir traces resume`.",
    examples=[("memdir traces pause", "at once")],
    exit_codes=[(0, "it is paused")],
    configure=_nothing,
    run=_pause,
)
RESUME = Command(
    name="traces resume",
    usage="",
    description="Record again where that was asked for.",
    examples=[("memdir traces resume", "from now on")],
    exit_codes=[(0, "it goes on")],
    configure=_nothing,
    run=_resume,
)
STATUS = Command(
    name="traces status",
    usage="",
    description="Show whether it is paused, and how much was recorded.",
    examples=[("memdir traces status --json", "for programs")],
    exit_codes=[(0, "always")],
    configure=_nothing,
    run=_status,
)
FORGET = Command(
    name="traces forget",
    usage="--all | [--session ID] [--path PATH] [--since WHEN]",
    description=(
        "Delete what was recorded, for good. Sessions and habits are made anew from what is left each time, so nothing else\n"
        "keeps it."
    ),
    examples=[
        ("memdir traces forget --path notes/private", "what was done there"),
        ("memdir traces forget --since '1h ago'", "the last hour"),
    ],
    exit_codes=[(0, "it is forgotten"), (1, "there was nothing like that")],
    configure=_configure_forget,
    run=_forget,
)
