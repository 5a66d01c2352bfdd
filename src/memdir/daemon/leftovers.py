"""What is left in memdir's own folders when something ended in the middle: records that cannot be read, folders without one,
sockets nobody listens on, half-written files, folders of a doctor that was killed."""

from __future__ import annotations

import os
import re
import socket
import stat
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from memdir.core.errors import BusyError, MemdirError
from memdir.core.paths import AppPaths
from memdir.core.processes import lock_holders, process
from memdir.daemon.control import ControlClient
from memdir.daemon.recovery import ANSWER_TIMEOUT_S, Trouble
from memdir.daemon.registry import MountRegistry, lock_holder_exists

OLD_S: Final = 600.0
"""A half-written file this old is written by nobody any more: writing one takes milliseconds."""
DOCTOR_PREFIX: Final = "memdir-doctor-"
_LOG_TAIL_BYTES: Final = 1 << 20
_RECORD_MAX_BYTES: Final = 1 << 20
_MOUNTED_LINE: Final = re.compile(r": ([A-Za-z0-9_.:-]{1,100}) is mounted at (/.*) \(pid \d+\)$", re.MULTILINE)
"""What `lifecycle` logs when a mount is up."""
_NAME_FIELD: Final = re.compile(rb'"name":\s*"([A-Za-z0-9_.:-]{1,100})"')
_PATH_FIELD: Final = re.compile(rb'"path":\s*("(?:[^"\\]|\\.)*")')
_TEMPORARY: Final = re.compile(
    r"\.(?:mount\.json|agent-hint\.json|server\.json|profile\.md|credentials\.json|cli-error\.log)\.[a-z0-9_]{8}"
)
"""The names of `core.paths.write_private` before the rename."""


def find(paths: AppPaths, registry: MountRegistry, *, adopt_as: str | None = None) -> Iterator[Trouble]:
    """Everything of this home that belongs to no readable record. `adopt_as` names a memory that lost its name."""
    unreadable = registry.unreadable()
    for folder, error in unreadable.items():
        yield _without_record(registry, folder, f"its record cannot be read: {error.message}", adopt_as)
    for folder in registry.nameless():
        if any(folder.iterdir()):
            yield _without_record(registry, folder, "the record of this folder is gone", adopt_as)
    known = {record.id for record in registry.all()} | {folder.name for folder in (*unreadable, *registry.nameless())}
    yield from _sockets(paths, registry, known)
    yield from _server(paths, registry)
    yield from _files(paths)


def _without_record(registry: MountRegistry, folder: Path, what: str, adopt_as: str | None) -> Trouble:
    kind = "damaged-record"
    if not _holds_files(folder):
        return Trouble(
            kind="empty-folder", name=None, path=str(folder), plan="remove it",
            sentence=f"{folder} is left of a mount that never came up; no file is in it",
            mend=lambda: _remove_empty(folder),
        )  # fmt: skip
    name, place = _remembered(folder)
    name = adopt_as or name
    if name is None:
        return Trouble(
            kind=kind, name=None, path=str(folder), sentence=f"{what}; nothing says what the memory is called", plan="",
            hint=f"its files are safe; `memdir recover {folder} --as NAME` gives it a name",
        )  # fmt: skip
    known = name
    wanted = place or str(Path.home() / name)

    def mend() -> list[str]:
        holders = lock_holders(folder / "lock")
        registry.adopt(folder, name=known, path=wanted, pid=holders[0].pid if holders else None)
        return [f"wrote a new record: {known} at {wanted}"]

    return Trouble(kind=kind, name=name, path=str(folder), sentence=what, plan=f"write a new record for {name}", mend=mend)


def _holds_files(folder: Path) -> bool:
    """Whether there is anything in the folder that somebody could miss."""
    from memdir.fs.cache.fsck import is_empty
    from memdir.fs.cache.tables import DATABASE_NAME

    if lock_holder_exists(folder / "lock"):
        return True
    try:
        return (folder / DATABASE_NAME).exists() and not is_empty(folder)
    except (MemdirError, OSError):
        return True  # damaged or locked: then it is not for us to say that it is empty


def _remove_empty(folder: Path) -> list[str]:
    import shutil

    if _holds_files(folder):
        raise BusyError(f"{folder} is in use now", hint="run `memdir recover` again")
    shutil.rmtree(folder)
    return [f"removed {folder}"]


def _remembered(folder: Path) -> tuple[str | None, str | None]:
    """Name and place: from what is left of the record, else from the log's last mount."""
    name = place = None
    try:
        with open(folder / "mount.json", "rb") as handle:
            text = handle.read(_RECORD_MAX_BYTES)
    except OSError:
        text = b""
    found = _NAME_FIELD.search(text)
    if found is not None:
        name = found[1].decode("ascii")
        place = _json_path(_PATH_FIELD.search(text))
    for log in (folder / "daemon.log", folder / "daemon.log.1"):
        if name is None or place is None:
            lines = _MOUNTED_LINE.findall(_tail(log))
            name, place = (name or lines[-1][0], place or lines[-1][1]) if lines else (name, place)
    return name, place


def _json_path(found: re.Match[bytes] | None) -> str | None:
    import json

    try:
        value: Any = json.loads(found[1]) if found is not None else None
    except ValueError:
        return None
    return value if isinstance(value, str) and value.startswith("/") else None


def _tail(file: Path) -> str:
    try:
        with open(file, "rb") as handle:
            handle.seek(max(0, os.fstat(handle.fileno()).st_size - _LOG_TAIL_BYTES))
            return handle.read(_LOG_TAIL_BYTES).decode("utf-8", "surrogateescape")
    except OSError:
        return ""


# --- sockets, the server's state, half-written files ------------------------------------------------------------------


def _sockets(paths: AppPaths, registry: MountRegistry, known: set[str]) -> Iterator[Trouble]:
    """Sockets of daemons that are gone; and of one that runs on although its folder was deleted."""
    for file in sorted(paths.runtime_dir.glob("m-*.sock")) if paths.runtime_dir.is_dir() else []:
        mount_id = file.name[2:-5]
        if mount_id in known and lock_holder_exists(paths.mounts_dir / mount_id / "lock"):
            continue  # its memory is looked at by name
        if not _listens(file):
            if mount_id not in known or registry.get(mount_id).state == "stopped":
                yield Trouble(
                    kind="stale-socket", name=None, path=str(file), plan="remove it",
                    sentence=f"{file} is the socket of a daemon that is gone", mend=lambda file=file: _unlink(file),  # type: ignore[misc]
                )  # fmt: skip
        elif mount_id not in known:
            yield _without_folder(file)


def _without_folder(file: Path) -> Trouble:
    hint = "copy out of the mount what you need: its data folder was deleted, so it is all that is left"
    name, place, pid = None, str(file), 0
    try:
        answer = ControlClient(file).call("status", ANSWER_TIMEOUT_S)
        name, place, pid = str(answer.get("name")), str(answer.get("path")), int(answer.get("pid") or 0)
        hint += f"; then `kill {pid}` ends it"
    except MemdirError as error:
        hint += f"; its daemon does not answer ({error.message})"
    return Trouble(
        kind="folder-gone", name=name, path=place, plan="", hint=hint,
        sentence=f"a daemon (pid {pid or 'unknown'}) serves {place}, but its data folder is gone",
    )  # fmt: skip


def _listens(file: Path) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(ANSWER_TIMEOUT_S)
        try:
            probe.connect(str(file))
        except (ConnectionRefusedError, FileNotFoundError):
            return False
        except OSError:
            return True  # full, or not ours: somebody is there
    return True


def _server(paths: AppPaths, registry: MountRegistry) -> Iterator[Trouble]:
    """`server.json` of a server that was killed. While mounts sync it tells them to start the server again, so it stays."""
    from memdir.client.local import recorded_pid

    pid = recorded_pid(paths)
    if pid is None or process(pid) is not None or any(record.sync and record.is_alive() for record in registry.all()):
        return
    yield Trouble(
        kind="stale-server", name=None, path=str(paths.server_state_file), plan="remove its file",
        sentence=f"the local server (pid {pid}) ended without saying so", mend=lambda: _unlink(paths.server_state_file),
    )  # fmt: skip


def _files(paths: AppPaths) -> Iterator[Trouble]:
    folders = [paths.state_dir, paths.config_dir, *(paths.mounts_dir.iterdir() if paths.mounts_dir.is_dir() else [])]
    for folder in folders:
        for file in sorted(folder.iterdir()) if folder.is_dir() else []:
            if _TEMPORARY.fullmatch(file.name) and _is_old(file):
                yield Trouble(
                    kind="half-written", name=None, path=str(file), plan="remove it",
                    sentence=f"{file} was being written when something ended", mend=lambda file=file: _unlink(file),  # type: ignore[misc]
                )  # fmt: skip
    for folder in sorted(Path(tempfile.gettempdir()).glob(DOCTOR_PREFIX + "*")):
        if _is_old(folder):
            yield Trouble(
                kind="temporary-folder", name=None, path=str(folder), plan="remove it when it is empty",
                sentence=f"{folder} is left of a `memdir doctor` that was ended", mend=lambda folder=folder: _rmdir(folder),  # type: ignore[misc]
            )  # fmt: skip


def _is_old(path: Path) -> bool:
    try:
        info = path.lstat()
    except OSError:
        return False
    kind_fits = stat.S_ISREG(info.st_mode) or stat.S_ISDIR(info.st_mode)
    return kind_fits and info.st_uid == os.getuid() and time.time() - info.st_mtime > OLD_S


def _unlink(file: Path) -> list[str]:
    file.unlink(missing_ok=True)
    return ["removed it"]


def _rmdir(folder: Path) -> list[str]:
    """Never deletes a file: a mount that is still there must survive this."""
    from memdir.fs.fuse.mounting import clear_dead_mount

    place = folder / "mount"
    clear_dead_mount(place)
    if place.exists():
        place.rmdir()
    folder.rmdir()
    return ["removed it"]
