"""Which mounts this user has: one folder each, `mounts/<id>/`, with `mount.json` and a lock that its daemon holds for life.

Imports the standard library and `core` only, because every `memdir grep` starts with it. Nothing here touches a mounted
filesystem: a path is resolved outside mounts and read lexically inside, so a hung or dead mount cannot block a command.

The lock is an open-file-description lock (fcntl(2), F_OFD_SETLK): it dies with the process, however that ends, and others can
ask for it (F_OFD_GETLK) without taking it for a moment, so that a `memdir list` can never make a starting daemon fail.
"""

from __future__ import annotations

import dataclasses
import errno
import fcntl
import json
import logging
import os
import secrets
import shlex
import shutil
import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from memdir.core.errors import BusyError, CorruptError, NotFoundError
from memdir.core.filelock import locked_file
from memdir.core.paths import AppPaths, ensure_dir, ensure_private_dir, write_private
from memdir.core.processes import process_exists

log = logging.getLogger(__name__)

_RECORD_FILE: Final = "mount.json"
_LOCK_FILE: Final = "lock"
_REGISTRY_LOCK_FILE: Final = ".registry.lock"
_SYMLINKS_MAX: Final = 40
"""As the kernel: more symlinks in one path is ELOOP."""
_RECORD_MAX_BYTES: Final = 1 << 20
PREFETCH_DEFAULT_BYTES: Final = 1 << 30
FETCH_TIMEOUT_DEFAULT_S: Final = 30.0
_RECORD_HINT: Final = "`memdir recover` writes a new one; the files in the memory are safe"

_FLOCK = struct.Struct("hhqqi4x")
"""struct flock of fcntl(2) on 64-bit Linux: l_type, l_whence, l_start, l_len, l_pid."""

State = Literal["alive", "dead", "stopped"]


@dataclass(frozen=True, slots=True, kw_only=True)
class MountSpec:
    """What the user asked for. `mount_id` pins a folder that was allocated before (after an import)."""

    name: str
    path: str
    sync: bool = True
    read_only: bool = False
    profile: str = "fast"
    passthrough: bool = False
    siblings: bool = True
    traces: bool = False
    nfs: bool = False
    imported: bool = False
    created_dir: bool = False
    drain_timeout_s: float = 30.0
    cache_limit_bytes: int | None = None
    prefetch_bytes: int | None = PREFETCH_DEFAULT_BYTES
    fetch_timeout_s: float = FETCH_TIMEOUT_DEFAULT_S
    max_delete: str = ""
    mount_id: str | None = None
    hint_folder: str | None = None
    hint_create: bool = False
    memory_paths: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MountRecord:
    """One mount as `mount.json` holds it. `path` is absolute with its symlinks resolved; `pid` is None after a clean end."""

    id: str
    name: str
    path: str
    pid: int | None
    started_at_ms: int
    sync: bool
    log_file: str
    socket_file: str
    cache_dir: str
    read_only: bool = False
    profile: str = "fast"
    passthrough: bool = False
    siblings: bool = True
    traces: bool = False
    """What is done in the mount is recorded."""
    nfs: bool = False
    nfs_port: int = 0
    nfs_command: str = ""
    nfs_problem: str = ""
    """Over NFS and not by FUSE: the port (the same after a restart, so that clients go on); what mounts it, and why that was
    not possible, while it is served and not mounted."""
    imported: bool = False
    created_dir: bool = False
    """The mountpoint was made by `memdir mount`, and may be removed again when it is empty after the unmount."""
    drain_timeout_s: float = 30.0
    cache_limit_bytes: int | None = None
    """How many bytes of contents may stay here; None: any number."""
    prefetch_bytes: int | None = PREFETCH_DEFAULT_BYTES
    """How many are fetched before anybody asks; None: all."""
    fetch_timeout_s: float = FETCH_TIMEOUT_DEFAULT_S
    hint_folder: str | None = None
    """Where agents are told of the mount (`agenthint`), with `hint_create` also where no file is yet; None: nowhere."""
    hint_create: bool = False
    memory_paths: tuple[str, ...] | None = None
    """What the container's memory paths shall be, until the server has been told; None: as they are there."""
    max_delete: str = ""
    used: bool = False
    """It was mounted at least once, so a filesystem must be in its folder."""
    detached: bool = False
    """Taken out of the tree by `memdir unmount --lazy`; its daemon ends with the last process that has something open in it."""
    left: int | None = None
    """After a clean end: how many changes wait for the next mount."""

    @property
    def lock_file(self) -> Path:
        return Path(self.cache_dir) / _LOCK_FILE

    def is_alive(self) -> bool:
        """Whether its daemon runs: the process exists and the lock of the mount folder is held."""
        return self.pid is not None and process_exists(self.pid) and lock_holder_exists(self.lock_file)

    @property
    def state(self) -> State:
        """`alive`, `dead` (the daemon was killed; the mountpoint may hang in ENOTCONN) or `stopped` (ended cleanly)."""
        if self.pid is None:
            return "stopped"
        return "alive" if self.is_alive() else "dead"


class MountLock:
    """The lock of one mount folder, held until `release` or the end of the process."""

    def __init__(self, fd: int) -> None:
        self._fd = fd

    @classmethod
    def acquire(cls, path: Path) -> MountLock:
        """Take the lock or raise BusyError at once."""
        ensure_dir(path.parent)
        fd = os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        try:
            fcntl.fcntl(fd, fcntl.F_OFD_SETLK, _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0))
        except OSError as error:
            os.close(fd)
            if error.errno in (errno.EAGAIN, errno.EACCES):
                raise BusyError(f"another process uses {path.parent}", hint="`memdir list` shows what is mounted") from error
            raise
        return cls(fd)

    def release(self) -> None:
        """Give the lock back. Calling it twice is allowed."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def lock_holder_exists(path: Path) -> bool:
    """Whether some open file description holds the lock. Takes nothing."""
    try:
        fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        asked = _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
        answer = _FLOCK.unpack(fcntl.fcntl(fd, fcntl.F_OFD_GETLK, asked))
        return bool(answer[0] != fcntl.F_UNLCK)
    finally:
        os.close(fd)


_AS_ASKED: Final = (
    "name", "sync", "read_only", "profile", "passthrough", "siblings", "traces", "nfs", "drain_timeout_s", "cache_limit_bytes",
    "prefetch_bytes", "fetch_timeout_s", "hint_folder", "hint_create", "max_delete",
)  # fmt: skip
"""What a record takes from what was asked for as it is."""


class MountRegistry:
    """The mounts of one user. Every method reads the disk anew; records are replaced atomically."""

    def __init__(self, paths: AppPaths) -> None:
        self._paths = paths

    def all(self) -> list[MountRecord]:
        """Every readable record, by name, then newest first. Unreadable ones are logged and listed by `damaged`."""
        records = []
        for folder in self._folders():
            try:
                records.append(_load(folder))
            except CorruptError as error:
                log.warning("%s", error)
        return sorted(records, key=lambda record: (record.name, -record.started_at_ms, record.id))

    def damaged(self) -> list[CorruptError]:
        """Why records could not be read; empty when all is well."""
        return list(self.unreadable().values())

    def unreadable(self) -> dict[Path, CorruptError]:
        """The mount folders whose record cannot be read, and why."""
        found = {}
        for folder in self._folders():
            try:
                _load(folder)
            except CorruptError as error:
                found[folder] = error
        return found

    def nameless(self) -> list[Path]:
        """Mount folders without a record: whose mount never came up, or that lost it."""
        try:
            entries = sorted(self._paths.mounts_dir.iterdir())
        except FileNotFoundError:
            return []
        return [entry for entry in entries if entry.is_dir() and not (entry / _RECORD_FILE).exists()]

    def adopt(self, folder: Path, *, name: str, path: str, pid: int | None) -> MountRecord:
        """Give a mount folder a new record; an unreadable old one is kept beside it as `mount.json.damaged`."""
        with suppress(FileNotFoundError):
            (folder / _RECORD_FILE).rename(folder / f"{_RECORD_FILE}.damaged")
        record = MountRecord(
            id=folder.name, name=name, path=path, pid=pid, started_at_ms=time.time_ns() // 1_000_000, sync=True,
            log_file=str(folder / "daemon.log"), socket_file=str(self._paths.runtime_dir / f"m-{folder.name}.sock"),
            cache_dir=str(folder), used=True,
        )  # fmt: skip
        self.save(record)
        return record

    def get(self, mount_id: str) -> MountRecord:
        """The record of an id; NotFoundError."""
        folder = self._paths.mounts_dir / mount_id
        if not (folder / _RECORD_FILE).is_file():
            raise NotFoundError(f"there is no mount with the id {mount_id}", hint="`memdir list` shows the mounts")
        return _load(folder)

    def find_by_name(self, name: str) -> list[MountRecord]:
        """Every record of a container name: running ones first, then crashed, then stopped; newest first in each."""
        found = [record for record in self.all() if record.name == name]
        return sorted(found, key=lambda record: _STATE_RANK[record.state])

    def find_by_path(self, path: Path) -> tuple[MountRecord, str] | None:
        """The mount that contains `path` and the path inside it (`/…`), or None.

        `path` need not exist. A running mount wins over a crashed one, that one over a stopped one (check `.state`); among
        equals the longest mountpoint wins.
        """
        records = self.all()
        if not records:
            return None
        resolved = resolve_outside(path, {record.path for record in records})
        best: tuple[tuple[int, int, int], MountRecord] | None = None
        for record in records:
            if not _within(resolved, record.path):
                continue
            rank = (_STATE_RANK[record.state], -len(record.path), -record.started_at_ms)
            if best is None or rank < best[0]:
                best = (rank, record)
        if best is None:
            return None
        inside = resolved[len(best[1].path.rstrip("/")) :]
        return best[1], inside or "/"

    def save(self, record: MountRecord) -> None:
        """Write the record (0600, atomically)."""
        data = json.dumps(dataclasses.asdict(record), indent=1).encode("ascii")
        ensure_dir(self._paths.mounts_dir)
        file = Path(record.cache_dir) / _RECORD_FILE
        try:
            write_private(file, data)
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT) or not _write_in_place(file, data):
                raise

    def remove(self, mount_id: str) -> None:
        """Forget the record. The cache files in its folder stay where they are."""
        (self._paths.mounts_dir / mount_id / _RECORD_FILE).unlink(missing_ok=True)

    def allocate(self, spec: MountSpec) -> MountRecord:
        """The record for a new start of `spec`, saved: the same name at the same place keeps its folder; else a folder of
        that name that nobody uses is adopted, with what it holds (see `_movable`); else a new one.

        BusyError when a running mount stands at that place under another name, or the pinned folder is in use. Callers
        that go on to start a daemon hold `exclusive()` around both.
        """
        path = resolve_outside(Path(spec.path), {record.path for record in self.all()})
        for record in self.all():
            if record.path == path and record.state == "alive":
                raise BusyError(f"{path} is already mounted as {record.name}", hint=f"memdir unmount {shlex.quote(path)}")
        chosen = self._choose_folder(spec, path)
        folder = ensure_private_dir(self._paths.mounts_dir / (chosen.id if chosen else _new_mount_id()))
        ours = chosen is not None and chosen.path == path
        record = MountRecord(
            **{name: getattr(spec, name) for name in _AS_ASKED},
            id=folder.name,
            path=path,
            pid=None,
            started_at_ms=time.time_ns() // 1_000_000,
            log_file=str(folder / "daemon.log"),
            socket_file=str(ensure_private_dir(self._paths.runtime_dir) / f"m-{folder.name}.sock"),
            cache_dir=str(folder),
            imported=spec.imported or (chosen is not None and chosen.imported and ours),
            created_dir=spec.created_dir or (chosen is not None and chosen.created_dir and ours),
            memory_paths=chosen.memory_paths if spec.memory_paths is None and chosen is not None else spec.memory_paths,
            used=chosen is not None and chosen.used,
            nfs_port=0 if chosen is None else chosen.nfs_port,
        )
        try:
            self.save(record)
        except BaseException:
            if chosen is None:
                self.discard(record)
            raise
        return record

    def discard(self, record: MountRecord) -> None:
        """Take away what a first start that failed has left: the folder of a memory that was never mounted. One that is in
        use, or was mounted before, stays."""
        folder = Path(record.cache_dir)
        if record.used or lock_holder_exists(record.lock_file):
            return
        shutil.rmtree(folder)

    def _choose_folder(self, spec: MountSpec, path: str) -> MountRecord | None:
        if spec.mount_id is not None:
            pinned = self.get(spec.mount_id)
            if lock_holder_exists(pinned.lock_file):
                raise BusyError(f"the memory {pinned.name} is already mounted at {pinned.path}")
            return pinned
        free = [record for record in self.find_by_name(spec.name) if not lock_holder_exists(record.lock_file)]
        same_place = [record for record in free if record.path == path]
        candidates = same_place or self._movable(spec.name, free)
        return max(candidates, key=lambda record: record.started_at_ms) if candidates else None

    def _movable(self, name: str, free: list[MountRecord]) -> list[MountRecord]:
        """Folders that may be taken to another place: of mounts that ended in order, else of crashed ones. But while the memory
        is mounted elsewhere, a crashed mount is one of several, and its folder waits for the mount that comes back there."""
        stopped = [record for record in free if record.state == "stopped"]
        is_mounted = any(record.name == name and record.state == "alive" for record in self.all())
        return stopped or ([] if is_mounted else free)

    @contextmanager
    def exclusive(self, timeout_s: float = 20.0) -> Iterator[None]:
        """One starter of mounts at a time. BusyError after `timeout_s`."""
        lock = ensure_private_dir(self._paths.mounts_dir) / _REGISTRY_LOCK_FILE
        busy = "another memdir mount is starting and does not finish"
        with locked_file(lock, deadline=time.monotonic() + timeout_s, busy=busy, hint="try again, or see `memdir list`"):
            yield

    def _folders(self) -> list[Path]:
        try:
            entries = sorted(self._paths.mounts_dir.iterdir())
        except FileNotFoundError:
            return []
        return [entry for entry in entries if (entry / _RECORD_FILE).is_file()]


_STATE_RANK: Final[dict[State, int]] = {"alive": 0, "dead": 1, "stopped": 2}


def resolve_outside(path: Path, mountpoints: set[str]) -> str:
    """`path` absolute, with symlinks resolved up to the first of `mountpoints` it enters; lexical from there on.

    Like realpath(3) for paths that may not exist, but it makes no system call on anything at or below a mountpoint. More than
    40 symlinks, or one that cannot be read, are left as they are.
    """
    pending = os.path.join(os.getcwd(), os.fspath(path)).split("/")[::-1]
    done: list[str] = []
    links = 0
    while pending:
        part = pending.pop()
        if part in ("", "."):
            continue
        if part == "..":
            if done:
                done.pop()
            continue
        done.append(part)
        here = "/" + "/".join(done)
        if links >= _SYMLINKS_MAX or any(_within(here, mountpoint) for mountpoint in mountpoints):
            continue
        try:
            target = os.readlink(here)
        except OSError:
            continue  # not a symlink, not there, or not readable: the name stands for itself
        links += 1
        done.pop()
        if target.startswith("/"):
            done.clear()
        pending.extend(reversed(target.split("/")))
    return "/" + "/".join(done)


def _within(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def _new_mount_id() -> str:
    """12 hex digits: short, because the id is part of a socket's path (107 bytes at most)."""
    return secrets.token_hex(6)


def _write_in_place(file: Path, data: bytes) -> bool:
    """Over the old record, in the room that it has: how a mount ends in order on a full disk. False when that is too small.
    A kill in the middle leaves a record that cannot be read, which `memdir recover` mends."""
    try:
        with open(file, "r+b") as handle:
            if len(data) > os.fstat(handle.fileno()).st_size:
                data = json.dumps(json.loads(data)).encode("ascii")  # without indentation
            if len(data) > os.fstat(handle.fileno()).st_size:
                return False
            handle.write(data)
            handle.truncate()
    except FileNotFoundError:
        return False
    return True


def _load(folder: Path) -> MountRecord:
    file = folder / _RECORD_FILE
    try:
        with open(file, "rb") as handle:
            fields: Any = json.loads(handle.read(_RECORD_MAX_BYTES))
        known = {field.name for field in dataclasses.fields(MountRecord)}
        record = MountRecord(**{key: value for key, value in fields.items() if key in known})
    except (OSError, ValueError, TypeError, AttributeError) as error:
        raise CorruptError(f"{file} cannot be read: {error}", hint=_RECORD_HINT) from error
    if record.id != folder.name:
        raise CorruptError(f"{file} says that it is mount {record.id!r}", hint=_RECORD_HINT)
    for field, kind in (("name", str), ("path", str), ("log_file", str), ("socket_file", str), ("started_at_ms", int)):
        if not isinstance(getattr(record, field), kind):
            raise CorruptError(f"{file}: {field} is missing or of the wrong type", hint=_RECORD_HINT)
    pid: Any = fields.get("pid")
    if pid is not None and (not isinstance(pid, int) or pid <= 0):
        raise CorruptError(f"{file}: pid {pid!r} is no process id", hint=_RECORD_HINT)
    paths: Any = fields.get("memory_paths")
    if paths is not None and not (isinstance(paths, list) and all(isinstance(path, str) for path in paths)):
        raise CorruptError(f"{file}: memory_paths is no list of paths", hint=_RECORD_HINT)
    return dataclasses.replace(record, cache_dir=str(folder), memory_paths=None if paths is None else tuple(paths))
