"""`memdir mount`: check the name and the place, import when asked, start the daemon, return when the directory works."""

from __future__ import annotations

import argparse
import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from memdir.cli.command import ALL, EXIT_OK, Command, Parser, prefetch_bytes, seconds, size_bytes
from memdir.cli.mounts import mount_settings
from memdir.cli.mounts.ignore import EVERYTHING, add_pattern
from memdir.cli.output import Output, Progress
from memdir.cli.text import human_bytes, plural, visible
from memdir.core.errors import BusyError, MemdirError, UsageError

if TYPE_CHECKING:
    from memdir.daemon.importer import ImportReport, Skipped
    from memdir.daemon.registry import MountRecord, MountRegistry, MountSpec

_START_TIMEOUT_S: Final = 30.0
_NAMES_MAX_S: Final = 5.0
"""A first mount waits so long for the names of what the server has."""
_ANSWER_S: Final = 5.0
_DRAIN_DEFAULT_S: Final = 30.0
_PREFETCH_DEFAULT: Final = 1 << 30
_FETCH_TIMEOUT_DEFAULT_S: Final = 30.0
_FETCH_TIMEOUT_MIN_S: Final = 0.1
_LISTED_MAX: Final = 20
"""Skipped paths shown on a terminal; --json has all of them."""


def _configure(parser: Parser) -> None:
    parser.add_argument("name", metavar="NAME", help="the memory's name: letters, digits, - _ . : (at most 100)")
    parser.add_argument("--path", metavar="DIR", help="where to mount it (default: ./NAME); made when it does not exist")
    parser.add_argument(
        "--import", dest="import_", action="store_true", help="copy the files that stand in DIR into the memory first"
    )
    parser.add_argument("--foreground", action="store_true", help="stay, log to standard error, unmount at Ctrl-C or SIGTERM")
    parser.add_argument("--no-sync", action="store_true", help="keep everything on this machine's disk; no server")
    parser.add_argument(
        "--all", action="store_true", help="sync what tools made and can make again, too (`memdir ignore add '!*'`)"
    )
    parser.add_argument(
        "--nfs", action="store_true", default=sys.platform == "darwin",
        help="serve it over NFS on 127.0.0.1 instead of FUSE (default on macOS); says the command where only root may mount",
    )  # fmt: skip
    parser.add_argument("--read-only", action="store_true", help="refuse every change made through the mount")
    parser.add_argument(
        "--profile", choices=("fast", "observed"), default="fast",
        help="fast (default), or observed: the daemon sees every open and close, at some cost",
    )  # fmt: skip
    parser.add_argument(
        "--no-siblings",
        action="store_true",
        help="show no texts beside PDFs, pictures, recordings and other files that are none; search finds them all the same",
    )
    parser.add_argument(
        "--traces", action="store_true",
        help="record what is done with the files, on this machine only (see `memdir traces`); implies --profile observed",
    )  # fmt: skip
    parser.add_argument(
        "--passthrough", action="store_true",
        help="let the kernel read and write large files by itself: root, Linux 6.9 or newer; implies --profile observed",
    )  # fmt: skip
    parser.add_argument(
        "--cache-size", metavar="SIZE", type=size_bytes, default=None,
        help="keep contents up to SIZE here (500M, 2G) and forget the longest unused past it (default: no limit)",
    )  # fmt: skip
    parser.add_argument(
        "--prefetch", metavar="SIZE", type=prefetch_bytes, default=_PREFETCH_DEFAULT,
        help="fetch contents in the background up to SIZE, all, or none: then each at its first read (default: 1G)",
    )  # fmt: skip
    parser.add_argument(
        "--fetch-timeout", metavar="S", type=seconds(), default=_FETCH_TIMEOUT_DEFAULT_S,
        help=f"a read fails when nothing comes from the server for S seconds (default: {_FETCH_TIMEOUT_DEFAULT_S:g})",
    )  # fmt: skip
    parser.add_argument(
        "--max-delete", metavar="N|P%", type=_max_delete, default="",
        help="ask before more than N files, or P percent of them, go at once because the server lacks them (default: 30%%)",
    )  # fmt: skip
    parser.add_argument(
        "--drain-timeout", metavar="S", type=seconds(), default=_DRAIN_DEFAULT_S,
        help=f"when it ends, push what is left for at most S seconds (default: {_DRAIN_DEFAULT_S:g})",
    )  # fmt: skip
    mount_settings.add_options(parser)


def _max_delete(text: str) -> str:
    from memdir.sync.push.max_delete import parse_max_delete

    try:
        parse_max_delete(text)
    except UsageError as error:
        raise argparse.ArgumentTypeError(f"{error.message}, {error.hint}") from None
    return text


def _run(args: argparse.Namespace, out: Output) -> int:
    from memdir.cli.targets import check_container_name, current_folder, open_registry
    from memdir.core.paths import app_paths, close_to_others
    from memdir.daemon.registry import resolve_outside

    name = check_container_name(args.name)
    if args.passthrough:
        from memdir.fs.fuse.backing import check_passthrough

        check_passthrough()
    if args.nfs and (args.passthrough or args.traces or args.profile != "fast"):
        raise UsageError("--traces, --profile and --passthrough are of FUSE mounts", hint="leave --nfs out, or them")
    if args.path == "":
        raise UsageError("--path is empty", hint="leave it out to mount at ./" + name)
    for sentence in close_to_others(app_paths()):
        out.note(sentence)
    registry = open_registry()
    records = registry.all()
    wanted = Path(current_folder(), args.path or name)
    place = resolve_outside(wanted, {record.path for record in records})
    existing = _mounted_here(records, name, place)
    if args.all and (args.foreground or args.read_only):
        raise UsageError("--all writes a pattern into the mount, once it is there", hint=f"`memdir ignore add '{EVERYTHING}'`")
    if existing is not None:
        if args.all:
            add_pattern(Path(place), EVERYTHING)
        return _say_already_mounted(existing, args, out)
    try:
        return _mount(registry, name, place, args, out)
    except MemdirError:
        # Somebody may have been faster: then it is mounted, which is what was asked for.
        existing = _mounted_here(registry.all(), name, place)
        if existing is None or args.import_:
            raise
        return _say_already_mounted(existing, args, out)


def _mount(registry: MountRegistry, name: str, place: str, args: argparse.Namespace, out: Output) -> int:
    from memdir.cli.mounts.unmount import remove_created_dir
    from memdir.cli.targets import current_folder
    from memdir.daemon.registry import MountSpec

    hint = mount_settings.hint_wish(args, current_folder())
    records = registry.all()
    others = [record.path for record in records if record.name == name and record.state == "alive"]
    _refuse_own_ground(place)
    created = _prepare_directory(records, name, place, wants_import=args.import_)
    spec = MountSpec(
        name=name,
        path=place,
        sync=not args.no_sync,
        read_only=args.read_only,
        profile="observed" if args.passthrough or args.traces else args.profile,
        traces=args.traces,
        nfs=args.nfs,
        passthrough=args.passthrough,
        siblings=not args.no_siblings,
        created_dir=created,
        drain_timeout_s=args.drain_timeout,
        cache_limit_bytes=args.cache_size,
        prefetch_bytes=None if args.prefetch == ALL else args.prefetch,
        fetch_timeout_s=max(args.fetch_timeout, _FETCH_TIMEOUT_MIN_S),
        memory_paths=args.memory_paths,
        **hint,
        max_delete=args.max_delete,
    )
    try:
        report, record = _start(registry, spec, args, out)
    except BaseException:
        if created:
            _remove_empty(place)
        raise
    if args.foreground:
        remove_created_dir(record)
    elif spec.sync and not any(old.id == record.id for old in records):
        _await_names(record, out)
    before = next((old for old in records if old.id == record.id and old.path != place), None)
    if args.all:
        add_pattern(Path(place), EVERYTHING)
    if before is not None:
        _leave_old_place(before, place, out)
    if others:
        out.note(f"{name} is also mounted at {', '.join(others)}; both show the same memory")
    _say_mounted(record, report, created=created, foreground=args.foreground, out=out)
    return EXIT_OK


def _await_names(record: MountRecord, out: Output) -> None:
    """A memory that was never here shows what its server has, where that runs: a script goes on with the files."""
    from memdir.cli.targets import control
    from memdir.client.local import running_server
    from memdir.core.paths import app_paths

    if running_server(app_paths()) is None:
        return  # it starts now, and has nothing yet that another machine wrote
    answer = control(record).call("listed", _NAMES_MAX_S + _ANSWER_S, timeout_s=_NAMES_MAX_S)
    if not answer["complete"]:
        out.note("not all names are here yet: `memdir status` says how far it is")


def _start(
    registry: MountRegistry, spec: MountSpec, args: argparse.Namespace, out: Output
) -> tuple[ImportReport | None, MountRecord]:
    from memdir.daemon.launch import start

    report = None
    if args.import_:
        spec, report = _import(registry, spec)
        _print_report(report, spec.path, out)
    if args.foreground:
        out.note(f"mounting {spec.name} at {spec.path}; Ctrl-C unmounts")
        out.flush()
    record = start(spec, foreground=args.foreground, timeout_s=_START_TIMEOUT_S)
    return report, record


def _mounted_here(records: list[MountRecord], name: str, place: str) -> MountRecord | None:
    """The running mount at `place` when it is this memory; UsageError when another one is there or around it."""
    from memdir.cli.targets import spoken

    for record in records:
        if record.state != "alive":
            continue
        if record.path == place:
            if record.detached:
                raise BusyError(
                    f"{record.name} was detached from {place}, and processes still have files of it open",
                    hint="end them, or take it away under them with `memdir unmount --force`",
                )
            if record.name == name:
                return record
            raise UsageError(
                f"{place} is the mount of another memory, {record.name}",
                hint=f"unmount it with `memdir unmount {spoken(record.name, place)}`, or choose another --path",
            )
        if place.startswith(record.path.rstrip("/") + "/"):
            raise UsageError(
                f"{place} is inside the mount of {record.name} at {record.path}", hint="choose a --path outside of every mount"
            )
    return None


def _leave_old_place(before: MountRecord, place: str, out: Output) -> None:
    """A crashed mount that went on at another place has left a dead mountpoint that is in no record any more."""
    from memdir.cli.mounts.unmount import remove_created_dir
    from memdir.fs.fuse.mounting import clear_dead_mount

    if clear_dead_mount(Path(before.path)):
        remove_created_dir(before)
        out.note(f"{before.name} goes on at {place}; its dead mount at {before.path} is cleared away")


def _refuse_own_ground(place: str) -> None:
    """A mount must not cover what its own daemon lives on: it would wait for itself, and its data would be out of reach."""
    from memdir import __file__ as package_file
    from memdir.core.paths import app_paths

    paths = app_paths()
    own = {
        "its data": [paths.config_dir, paths.data_dir, paths.state_dir, paths.cache_dir, paths.runtime_dir],
        "its program": [Path(package_file).parent, Path(sys.prefix), Path(sys.executable)],
    }
    for what, folders in own.items():
        for folder in folders:
            real = os.path.realpath(folder)
            if place == "/" or real == place or real.startswith(place + "/"):
                raise UsageError(f"{place} cannot be a mount: memdir has {what} in {real}", hint="choose another --path")


def _say_already_mounted(record: MountRecord, args: argparse.Namespace, out: Output) -> int:
    if args.import_:
        raise UsageError(
            f"{record.name} is already mounted at {record.path}",
            hint="copy files in with cp, or unmount it first to import what is underneath",
        )
    different = [
        option
        for option, differs in (
            ("--no-sync", args.no_sync == record.sync),
            ("--read-only", args.read_only != record.read_only),
            ("--profile", args.profile != record.profile and not (args.passthrough or record.traces)),
            ("--traces", args.traces != record.traces),
            ("--nfs", args.nfs != record.nfs),
            ("--passthrough", args.passthrough and not record.passthrough),
            ("--no-siblings", args.no_siblings and record.siblings),
            ("--cache-size", args.cache_size != record.cache_limit_bytes),
            ("--max-delete", args.max_delete != record.max_delete),
        )
        if differs
    ]
    if different:
        out.note(f"it runs with another {' and '.join(different)}; unmount it and mount it again to change that")
    if args.memory_paths is not None:
        mount_settings.change_memory_paths(record, args.memory_paths, out)
    if out.json:
        out.document(_document(record, None, created=False) | {"already_mounted": True})
    else:
        out.line(f"{record.name} is already mounted at {out.name(record.path)}")
    return EXIT_OK


def _prepare_directory(records: list[MountRecord], name: str, place: str, *, wants_import: bool) -> bool:
    """Make sure that `place` is a directory one can mount on; whether it was made just now."""
    from memdir.fs.fuse.mounting import clear_dead_mount
    from memdir.fs.fuse.mountpoint import mount_at

    folder = Path(place)
    clear_dead_mount(folder)
    if mount_at(folder) is not None:
        raise UsageError(f"another filesystem is mounted at {place}", hint="unmount it, or choose another --path")
    try:
        entries = os.listdir(folder)
    except FileNotFoundError:
        if wants_import:
            raise UsageError(f"{place} does not exist, so there is nothing to import", hint="check --path") from None
        _make(folder)
        return True
    except NotADirectoryError:
        raise UsageError(f"{place} is not a directory", hint="choose another --path") from None
    except PermissionError:
        raise UsageError(f"{place} cannot be read: permission denied", hint="choose a directory of yours") from None
    before = any(record.imported and record.name == name and record.path == place for record in records)
    if entries and not wants_import and not before:
        raise UsageError(
            f"{place} is not empty ({plural(len(entries), 'entry', 'entries')})",
            hint="choose an empty or new directory with --path, or copy its files into the memory with --import",
        )
    return False


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True)
    except FileExistsError:
        raise UsageError(f"{folder} is a dangling link", hint="remove it, or choose another --path") from None
    except OSError as error:
        raise UsageError(f"{folder} cannot be made: {error.strerror}", hint="choose another --path") from error


def _remove_empty(place: str) -> bool:
    """Whether the directory made a moment ago is gone again; it stays when something was put in it."""
    try:
        os.rmdir(place)
    except OSError:
        return False
    return True


def _import(registry: MountRegistry, spec: MountSpec) -> tuple[MountSpec, ImportReport]:
    """Copy what stands at the mountpoint into the memory's own folder, with that folder locked."""
    import dataclasses

    from memdir.daemon.importer import import_folder
    from memdir.daemon.registry import MountLock
    from memdir.fs.cache import SqliteFs

    with registry.exclusive():
        record = registry.allocate(spec)
        lock = MountLock.acquire(record.lock_file)
    try:
        filesystem = SqliteFs.open(Path(record.cache_dir), uid=os.geteuid(), gid=os.getegid(), sync=spec.sync)
        try:
            with Progress("importing", noun="file") as progress:

                def show(files: int, size_bytes: int, path: str) -> None:
                    progress.update(files, detail=f"{human_bytes(size_bytes)} {path}")

                report = import_folder(filesystem, Path(spec.path), progress=show)
        finally:
            filesystem.close()
    finally:
        lock.release()
    registry.save(dataclasses.replace(record, imported=True))
    return dataclasses.replace(spec, imported=True, mount_id=record.id), report


def _print_report(report: ImportReport, place: str, out: Output) -> None:
    if out.json:
        return
    what = [plural(report.files, "file"), plural(report.folders, "folder")]
    if report.symlinks:
        what.append(plural(report.symlinks, "link"))
    unchanged = f"; {plural(report.unchanged, 'file was', 'files were')} there already" if report.unchanged else ""
    out.line(f"imported {', '.join(what)} ({human_bytes(report.size_bytes)}) from {out.name(place)}{unchanged}")
    if report.skipped:
        out.line(f"skipped {plural(len(report.skipped), 'path')}; the originals stay where they are, below the mount:")
        _print_paths(report.skipped, out)
    if report.remarks:
        out.line("worth a look:")
        _print_paths(report.remarks, out)


def _print_paths(paths: list[Skipped], out: Output) -> None:
    for skipped in paths[:_LISTED_MAX]:
        out.line(f"  {visible(skipped.path)}: {visible(skipped.reason)}")
    if len(paths) > _LISTED_MAX:
        out.line(f"  … and {len(paths) - _LISTED_MAX:,} more (--json lists all)")


def _say_mounted(record: MountRecord, report: ImportReport | None, *, created: bool, foreground: bool, out: Output) -> None:
    hinted = mount_settings.say_hint(record, out)
    if out.json:
        out.document(_document(record, report, created=created) | {"already_mounted": False, "agent_hint": hinted})
    elif record.nfs_command:
        problem = visible(record.nfs_problem.partition("\n")[0])
        lacks_client = re.search("unknown filesystem type|bad option|need a /sbin/mount", problem) is not None
        who = "with an NFS client (Debian: apt install nfs-common) root can" if lacks_client else "root can"
        out.line(f"{record.name} is served over NFS and not mounted ({problem.rstrip('.')}); {who}:")
        out.line(f"  {record.nfs_command}")
    elif not foreground:
        out.line(f"{record.name} is mounted at {out.name(record.path)}")


def _document(record: MountRecord, report: ImportReport | None, *, created: bool) -> dict[str, Any]:
    import dataclasses

    return {
        "name": record.name,
        "path": record.path,
        "pid": record.pid,
        "id": record.id,
        "sync": record.sync,
        "read_only": record.read_only,
        "nfs": record.nfs,
        "nfs_command": record.nfs_command,
        "created_directory": created,
        "import": None if report is None else dataclasses.asdict(report),
    }


COMMAND = Command(
    name="mount",
    usage="[OPTIONS] NAME",
    description=(
        "Mount a memory as a directory, in the background. Returns when the directory can be used; the local server is\n"
        "started when none runs. Mounting again after a crash goes on where it was."
    ),
    examples=[
        ("memdir mount notes", "at ./notes"),
        ("memdir mount work --path ~/work --import", "take the files of ~/work along; lists what it leaves out"),
        ("memdir mount archive --cache-size 2G --prefetch none", "a large memory on a small disk"),
        ("memdir mount notes --memory-paths '/notes/,/journal.md'", "where facts for profile.md are read"),
        ("memdir mount notes --nfs", "where there is no FUSE"),
        ("memdir mount notes --foreground", "for service managers and debugging"),
    ],
    exit_codes=[(0, "mounted, or already mounted at that place")],
    configure=_configure,
    run=_run,
)
