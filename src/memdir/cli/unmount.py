"""`memdir unmount`: push what is left, let go of the directory, wait until the daemon is really gone."""

from __future__ import annotations

import argparse
import dataclasses
import os
import select
import signal
from pathlib import Path
from typing import Final

from memdir.cli.command import EXIT_NOTHING, EXIT_OK, Command, Parser, seconds
from memdir.cli.output import Output
from memdir.cli.text import plural
from memdir.core.errors import BusyError, MemdirError, NotFoundError
from memdir.daemon.control import DaemonGoneError
from memdir.daemon.registry import MountRecord, MountRegistry

_EXIT_WAIT_S: Final = 30.0
"""From the daemon's answer to its end: unmounting and closing the cache."""
_ANSWER_EXTRA_S: Final = 15.0
_KILL_WAIT_S: Final = 5.0
_BUSY_SHOWN: Final = 5


def _configure(parser: Parser) -> None:
    parser.add_argument("target", metavar="NAME|PATH", help="the name of the memory, or where it is mounted")
    parser.add_argument(
        "--drain-timeout", metavar="S", type=seconds(), help="push for at most S seconds (default: as given to mount, else 30)"
    )
    parser.add_argument("--force", action="store_true", help="push nothing, and kill a daemon that does not answer")


def _run(args: argparse.Namespace, out: Output) -> int:
    from memdir.cli.targets import find_mount, open_registry

    registry = open_registry()
    try:
        record = find_mount(registry, args.target, exact=True)
    except NotFoundError:
        if not _clear_unknown(args.target):
            raise
        if out.json:
            out.document(
                {"name": None, "path": os.path.abspath(args.target), "was": "dead", "left": None, "removed_directory": False}
            )
        else:
            out.line(f"cleared the dead mount at {out.name(os.path.abspath(args.target))}")
        return EXIT_OK
    state = record.state
    left: int | None = None
    if state == "alive":
        drain_s = 0.0 if args.force else record.drain_timeout_s if args.drain_timeout is None else args.drain_timeout
        left = stop_daemon(record, drain_timeout_s=drain_s, force=args.force)
    cleared = clear(registry, record)
    removed = remove_created_dir(record)
    if out.json:
        out.document(
            {
                "name": record.name,
                "path": record.path,
                "was": {"alive": "mounted", "dead": "dead", "stopped": "unmounted"}[state],
                "left": left,
                "removed_directory": removed,
            }
        )
    elif state == "stopped" and not cleared:
        out.note(f"{record.name} was not mounted")
    else:
        out.line(f"{out.name(record.name)}: unmounted from {out.name(record.path)}{_left_sentence(record, state, left)}")
    return EXIT_OK if state != "stopped" or cleared else EXIT_NOTHING


def _clear_unknown(target: str) -> bool:
    """A dead memdir mount that is in no record (its data folder was deleted, or it was another user's) can still be cleared."""
    from memdir.fs.fuse.mountpoint import clear_dead_mount

    return clear_dead_mount(Path(target))


def _left_sentence(record: MountRecord, state: str, left: int | None) -> str:
    if state != "alive":
        return "; its daemon was dead, changes not pushed yet are kept for the next mount"
    if left:
        return f"; {plural(left, 'change')} left to push, kept for the next mount"
    return ", everything is pushed" if record.sync and left == 0 else ""


def stop_daemon(record: MountRecord, *, drain_timeout_s: float, force: bool = False) -> int | None:
    """End a running daemon and wait for its death. How many changes are left, None when it could not say.

    BusyError when it does not end; with `force` it is killed then.
    """
    from memdir.cli.targets import control

    pid = record.pid
    if pid is None:
        raise ValueError("only a running daemon can be stopped")
    try:
        handle = os.pidfd_open(pid)  # before the question: the number could be given to another process afterwards
    except ProcessLookupError:
        return None
    left: int | None = None
    try:
        try:
            answer = control(record).call("stop", drain_timeout_s + _ANSWER_EXTRA_S, drain_timeout_s=drain_timeout_s)
            left = int(answer["left"]) if answer.get("left") is not None else None
        except DaemonGoneError:
            pass  # between two questions it ended by itself, or it hangs: the wait below tells
        except MemdirError:
            if not force:
                raise
        if _ended(handle, _EXIT_WAIT_S if not force else _KILL_WAIT_S):
            return left
        if not force:
            raise _busy_error(record)
        for number in (signal.SIGTERM, signal.SIGKILL):
            signal.pidfd_send_signal(handle, number)
            if _ended(handle, _KILL_WAIT_S):
                return left
        raise BusyError(f"the daemon (pid {pid}) cannot be killed", hint="it may hang in the kernel; see `dmesg`")
    finally:
        os.close(handle)


def _ended(handle: int, timeout_s: float) -> bool:
    """A pidfd becomes readable when its process ends (pidfd_open(2))."""
    poller = select.poll()
    poller.register(handle, select.POLLIN)
    return bool(poller.poll(timeout_s * 1000))


def _busy_error(record: MountRecord) -> BusyError:
    users = processes_inside(record.path, but=record.pid)
    if users:
        named = ", ".join(f"{name} (pid {pid})" for pid, name in users[:_BUSY_SHOWN])
        return BusyError(f"{record.path} is in use by {named}", hint="leave the directory or end them, or unmount with --force")
    return BusyError(
        f"the daemon of {record.name} (pid {record.pid}) did not end within {_EXIT_WAIT_S:g} s",
        hint=f"see `memdir logs {record.name}`; --force kills it, nothing that was written is lost",
    )


def processes_inside(path: str, *, but: int | None = None) -> list[tuple[int, str]]:
    """Processes of this user with their working directory or an open file below `path`. Reads /proc only."""
    found = []
    for entry in os.listdir("/proc"):
        if not entry.isdigit() or int(entry) in (os.getpid(), but):
            continue
        try:
            links = [f"/proc/{entry}/cwd", *(f"/proc/{entry}/fd/{fd}" for fd in os.listdir(f"/proc/{entry}/fd"))]
        except OSError:
            continue  # ended meanwhile, or another user's
        if any(_points_into(link, path) for link in links):
            found.append((int(entry), _process_name(entry)))
    return found


def _points_into(link: str, path: str) -> bool:
    try:
        target = os.readlink(link)
    except OSError:
        return False
    return target == path or target.startswith(path.rstrip("/") + "/")


def _process_name(pid: str) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return "?"


def clear(registry: MountRegistry, record: MountRecord) -> bool:
    """Take away a mount that nobody serves any more, and write down that it is unmounted. Whether there was one."""
    from memdir.fs.fuse.mountpoint import clear_dead_mount

    current = registry.get(record.id)
    if current.state == "alive":
        return False  # somebody mounted it again meanwhile
    cleared = clear_dead_mount(Path(record.path))
    if current.pid is not None:
        registry.save(dataclasses.replace(current, pid=None))
    return cleared


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
    usage="[OPTIONS] NAME|PATH",
    description=(
        "Push what is left (bounded by --drain-timeout), unmount, and end the daemon. What could not be pushed stays on this\n"
        "machine for the next mount. Also clears away a mount whose daemon was killed."
    ),
    examples=[
        ("memdir unmount notes", "by name"),
        ("memdir unmount ./notes --drain-timeout 5", "by place, push for 5 s at most"),
    ],
    exit_codes=[(0, "unmounted"), (1, "it was not mounted")],
    configure=_configure,
    run=_run,
)
