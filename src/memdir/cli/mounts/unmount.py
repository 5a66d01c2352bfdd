"""`memdir unmount`: push what is left, let go of the directory, wait until the daemon is really gone."""

from __future__ import annotations

import argparse
import os
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from memdir.cli.command import EXIT_INTERRUPTED, EXIT_NOTHING, EXIT_OK, Command, Parser, seconds
from memdir.cli.mounts.drain import Asking
from memdir.cli.output import Output
from memdir.cli.text import held_back, plural, visible
from memdir.core.errors import BusyError, MemdirError, NotFoundError, UsageError
from memdir.core.processes import end_process, processes_inside, wait_for_end
from memdir.daemon.control import DaemonGoneError
from memdir.daemon.recovery import clear
from memdir.daemon.registry import MountRecord, MountRegistry

_EXIT_WAIT_S: Final = 30.0
"""From the daemon's answer to its end: unmounting and closing the cache."""
_KILL_WAIT_S: Final = 5.0
_BUSY_SHOWN: Final = 5


def _configure(parser: Parser) -> None:
    parser.add_argument("target", metavar="NAME|PATH", nargs="?", help="the name of the memory, or where it is mounted")
    parser.add_argument("--all", action="store_true", help="every mount of NAME, or every mount there is")
    parser.add_argument(
        "--drain-timeout", metavar="S", type=seconds(), help="push for at most S seconds (default: as given to mount, else 30)"
    )
    parser.add_argument(
        "--lazy", action="store_true", help="detach it now; who has something open in it may finish, then its daemon ends"
    )
    parser.add_argument(
        "--force", action="store_true", help="push nothing, take it away under its users, kill a daemon that does not answer"
    )


def _run(args: argparse.Namespace, out: Output) -> int:
    from memdir.cli.targets import find_mount, open_registry

    if args.force and args.lazy:
        raise UsageError("--force and --lazy exclude each other", hint="--lazy lets users finish, --force does not")
    registry = open_registry()
    if args.all:
        return _unmount_all(registry, args, out)
    if args.target is None:
        raise UsageError("say what to unmount", hint="a name or a path; --all means every mount")
    try:
        record = find_mount(registry, args.target, exact=True)
    except NotFoundError:
        if not _clear_unknown(args.target):
            raise
        path = os.path.abspath(args.target)
        if out.json:
            out.document(_document(None, path, "dead"))
        else:
            out.line(f"cleared the dead mount at {out.name(path)}")
        return EXIT_OK
    code, document = _unmount(registry, record, args, out)
    if out.json:
        out.document(document)
    return code


def _unmount_all(registry: MountRegistry, args: argparse.Namespace, out: Output) -> int:
    """Every mount of a name, or every mount. One that stays does not keep the others; the first refusal is the answer."""
    records = registry.all() if args.target is None else registry.find_by_name(args.target)
    if args.target is not None and not records:
        raise NotFoundError(f"there is no memory {args.target!r}", hint="with --all give its name, or nothing")
    running = [record for record in records if record.state != "stopped"]
    documents: list[dict[str, object]] = []
    refused: list[MemdirError] = []
    for record in running:
        try:
            documents.append(_unmount(registry, record, args, out)[1])
        except MemdirError as error:
            if refused:
                out.note(error.message)
            refused.append(error)
    if out.json:
        out.document(documents)
    elif not running:
        out.note("nothing was mounted" if args.target is None else f"{args.target} was not mounted")
    if refused:
        raise refused[0]
    return EXIT_OK if running else EXIT_NOTHING


def _unmount(
    registry: MountRegistry, record: MountRecord, args: argparse.Namespace, out: Output
) -> tuple[int, dict[str, object]]:
    state = record.state
    ended = Ended()
    users = _name_users(record) if args.lazy else ""  # once it is out of the tree, nobody's files have a path in it any more
    if record.detached and state == "alive" and not args.force:
        raise BusyError(
            f"{record.name} is detached from {record.path} already; its daemon (pid {record.pid}) ends with its last user",
            hint="--force takes the files away that are still open",
        )
    if state == "alive":
        drain_s = 0.0 if args.force else record.drain_timeout_s if args.drain_timeout is None else args.drain_timeout
        ended = stop_daemon(record, drain_timeout_s=drain_s, force=args.force, lazy=args.lazy)
    cleared = clear(registry, record)
    removed = remove_created_dir(record)
    was = {"alive": "mounted", "dead": "dead", "stopped": "unmounted"}[state]
    if out.json:
        pass  # one document for all, see the caller
    elif state == "stopped" and not cleared:
        out.note(f"{record.name} was not mounted")
    elif ended.detached:
        until = f"it ends when {users} leave it" if users else "it ends when its last user leaves it"
        out.line(f"{out.name(record.name)}: detached from {out.name(record.path)}; {visible(until)}")
    else:
        out.line(f"{out.name(record.name)}: unmounted from {out.name(record.path)}{_left_sentence(record, state, ended)}")
    code = EXIT_OK if state != "stopped" or cleared else EXIT_NOTHING
    if ended.interrupted:
        code = EXIT_INTERRUPTED
    return code, _document(record.name, record.path, was, ended=ended, removed=removed)


def _document(name: str | None, path: str, was: str, *, ended: Ended | None = None, removed: bool = False) -> dict[str, object]:
    ended = ended or Ended()
    return {
        "name": name,
        "path": path,
        "was": was,
        "pushed": ended.pushed,
        "left": ended.left,
        "why_left": ended.why_left if ended.left else None,
        "interrupted": ended.interrupted,
        "detached": ended.detached,
        "removed_directory": removed,
    }


def _clear_unknown(target: str) -> bool:
    """A dead memdir mount that is in no record (its data folder was deleted, or it was another user's) can still be cleared."""
    from memdir.fs.fuse.mounting import clear_dead_mount

    return clear_dead_mount(Path(target))


def _left_sentence(record: MountRecord, state: str, ended: Ended) -> str:
    if state != "alive":
        return "; its daemon was dead, changes not pushed yet are kept for the next mount"
    held = f"; {held_back(record.name, ended.held)}" if ended.held.get("held_deletions") else ""
    pushed = f"; pushed {plural(ended.pushed, 'change')}" if ended.pushed else ""
    parked = f"; {ended.parked} parked, see `memdir queue` at the next mount" if ended.parked else ""
    if ended.left:
        waits = f"{plural(ended.left, 'change waits', 'changes wait')} for the next mount"
        why = "you ended the wait" if ended.interrupted else ended.why_left
        return f"{pushed}; {waits}{f': {visible(why)}' if why else ''}{parked}{held}"
    if not record.sync or ended.left is None:
        return pushed + held
    return f"{pushed}, everything {'else ' if held or parked else ''}is pushed{parked}{held}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How the end of a daemon went. `left` changes wait for the next mount; None when nobody could say."""

    left: int | None = None
    pushed: int | None = None
    """While it was waited for."""
    parked: int = 0
    why_left: str | None = None
    interrupted: bool = False
    """Ctrl-C ended the wait."""
    held: dict[str, object] = field(default_factory=dict)
    """What the daemon says of files that are missing at the server."""
    detached: bool = False
    """Out of the tree, and it goes on until its last user is gone."""


def stop_daemon(record: MountRecord, *, drain_timeout_s: float, force: bool = False, lazy: bool = False) -> Ended:
    """End a running daemon and wait for its death, but for `lazy`.

    BusyError when somebody uses the mount (it goes on unchanged), or when the daemon does not end; with `force` the mount is
    taken away under its users, and a daemon that does not end is killed.
    """
    pid = record.pid
    if pid is None:
        raise ValueError("only a running daemon can be stopped")
    try:
        handle = os.pidfd_open(pid)  # before the question: the number could be given to another process afterwards
    except ProcessLookupError:
        return Ended()
    asking = Asking(record, drain_timeout_s=drain_timeout_s, force=force, lazy=lazy)
    answer: dict[str, Any] = {}
    try:
        try:
            answer = asking.wait()
        except DaemonGoneError:
            pass  # between two questions it ended by itself, or it hangs: the wait below tells
        except MemdirError:
            if not force and not asking.interrupted:
                raise
        if answer.get("busy"):
            raise _busy_error(record)
        ended = _ended(answer, drain_timeout_s, interrupted=asking.interrupted)
        if ended.detached:
            return ended
        if wait_for_end(handle, _EXIT_WAIT_S if not force else _KILL_WAIT_S):
            return _with_last_count(record, ended)
        if not force:
            raise _busy_error(record)
        if not end_process(handle, wait_s=_KILL_WAIT_S):
            raise BusyError(f"the daemon (pid {pid}) cannot be killed", hint="it hangs in the kernel; see `dmesg`")
        return ended
    finally:
        os.close(handle)


def _ended(answer: dict[str, Any], drain_timeout_s: float, *, interrupted: bool) -> Ended:
    left, pushed, parked = (answer.get(key) for key in ("left", "pushed", "parked"))
    return Ended(
        left=left if isinstance(left, int) else None,
        pushed=pushed if isinstance(pushed, int) else None,
        parked=parked if isinstance(parked, int) else 0,
        why_left=str(answer.get("why_left") or f"{drain_timeout_s:g} s were not enough for them"),
        interrupted=interrupted,
        held={key: answer.get(key) for key in ("held_deletions", "other_life")},
        detached=bool(answer.get("detached")),
    )


def _with_last_count(record: MountRecord, ended: Ended) -> Ended:
    """What the daemon wrote down at its very end: between its answer and that, some more may have been pushed."""
    from memdir.cli.targets import open_registry

    try:
        left = open_registry().get(record.id).left
    except MemdirError:  # whoever deleted the data deleted this too
        return ended
    return ended if left is None else replace(ended, left=left)


def _busy_error(record: MountRecord) -> BusyError:
    from memdir.cli.targets import spoken

    users = _name_users(record)
    if users:
        hint = "leave it or end them; --lazy detaches it now and lets them finish, --force takes it away under them"
        return BusyError(f"{record.path} is in use by {users}", hint=hint)
    if _is_unmounted(record):
        return BusyError(
            f"the daemon of {record.name} (pid {record.pid}) did not end within {_EXIT_WAIT_S:g} s",
            hint=f"see `memdir logs {spoken(record.name, record.path)}`; --force kills it, nothing that was written is lost",
        )
    hint = "--lazy detaches it now and lets them finish, --force takes it away under them; `fuser -vm` as root names them"
    return BusyError(f"{record.path} is in use by processes of other users", hint=hint)


def _is_unmounted(record: MountRecord) -> bool:
    """Whether nothing stands at the mountpoint any more, so that it is the daemon itself that takes its time."""
    from memdir.fs.fuse.mountpoint import is_mountpoint

    return not is_mountpoint(Path(record.path))


def _name_users(record: MountRecord) -> str:
    users = processes_inside(record.path, but=record.pid)
    named = ", ".join(f"{user.name} (pid {user.pid})" for user in users[:_BUSY_SHOWN])
    return f"{named} and {len(users) - _BUSY_SHOWN} more" if len(users) > _BUSY_SHOWN else named


def remove_created_dir(record: MountRecord) -> bool:
    """Remove the mountpoint when `memdir mount` had made it and nothing is in it. Whether it is gone now."""
    if not record.created_dir:
        return False
    try:
        os.rmdir(record.path)
    except FileNotFoundError:
        return True
    except OSError:  # something stands in it now, or the parent is read-only: then it stays
        return False
    return True


COMMAND = Command(
    name="unmount",
    usage="[OPTIONS] NAME|PATH | --all [NAME]",
    description=(
        "Push what is left (bounded by --drain-timeout), unmount, and end the daemon. What could not be pushed stays on this\n"
        "machine for the next mount; Ctrl-C ends the wait at once. A mount that is in use stays, and its users are named.\n"
        "Also clears away a mount whose daemon was killed."
    ),
    examples=[
        ("memdir unmount notes", "by name"),
        ("memdir unmount ./notes --drain-timeout 5", "by place, push for 5 s at most"),
        ("memdir unmount notes --lazy", "although a shell stands in it"),
        ("memdir unmount team --all", "a memory that is mounted at several places"),
    ],
    exit_codes=[(0, "unmounted"), (1, "it was not mounted"), (130, "unmounted, and Ctrl-C ended the wait for the rest")],
    configure=_configure,
    run=_run,
)
