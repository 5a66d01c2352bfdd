"""A disk that can lose its power: records what a filesystem writes and makes the folders that a power cut may leave.

Everything that SQLite does goes through a recording VFS, everything that the house's own code does through recording versions
of the functions of `os`. The rules are those that POSIX gives and no better: bytes and the size of a file are safe after a sync
of that file, names after a sync of their folder; everything else may be there or not, in any order, by sectors.

`verify_complete` compares the recorded end with the real folder, so that a write which nobody recorded fails a test.
"""

from __future__ import annotations

import contextlib
import errno
import os
import random
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import apsw

from memdir.fs.cache import tables

SECTORS = (512, 4096)
BASE_VFS = tables.VFS
_SHADOW = "-shm"
"""SQLite's index of the log in shared memory: made again at open, never synced."""


@dataclass(frozen=True, slots=True)
class Write:
    file: int
    offset: int
    data: bytes


@dataclass(frozen=True, slots=True)
class Truncate:
    file: int
    size: int


@dataclass(frozen=True, slots=True)
class Sync:
    file: int


@dataclass(frozen=True, slots=True)
class Name:
    """In `folder`, `name` stands for `file` from now on; 0 for nothing. `old` is the name that a rename takes away with it."""

    folder: int
    name: str
    file: int
    old: tuple[int, str] | None = None


@dataclass(frozen=True, slots=True)
class SyncNames:
    folder: int


Event = Write | Truncate | Sync | Name | SyncNames
ROOT = 1
SHORT = -1


class Disk:
    """What was done to the folder `root`, in order. Inode numbers are ours."""

    def __init__(self, root: Path) -> None:
        self.root = str(root)
        self.life = 0
        """Grows when the process that wrote so far is dead: what its objects still do is not recorded."""
        self.events: list[Event] = []
        self.shows_old_blocks = True
        """Whether bytes that were lost may read as what stood there before the file did. No filesystem in use does that to a
        file (ext4 with data=ordered, XFS, Btrfs), but a journal must not depend on it."""
        self.adopted = 0
        """Events that belong to what it began with."""
        self.lock = threading.RLock()
        self.calls = 0
        """Calls that change the disk, so far."""
        self.fault: Callable[[int], int] = lambda _call: 0
        """The errno with which a call is refused; 0 lets it pass; SHORT lets half of a write pass."""
        self._tree: dict[int, dict[str, int]] = {ROOT: {}}
        self._last = ROOT
        self._descriptors: dict[int, tuple[int, bool]] = {}
        self._sizes: dict[int, int] = {}

    # ---- paths

    def _split(self, path: Any) -> tuple[int, str] | None:
        """(folder, name) of a path below the root; None for others."""
        text = os.path.abspath(os.fsdecode(path))
        if not text.startswith(self.root + "/") or text.endswith(_SHADOW):
            return None
        at = ROOT
        *folders, name = text[len(self.root) + 1 :].split("/")
        for folder in folders:
            at = self._tree[at][folder]
        return at, name

    def file_at(self, path: Any) -> int:
        """The number of an existing path; 0 for none."""
        if os.path.abspath(os.fsdecode(path)) == self.root:
            return ROOT
        place = self._split(path)
        return 0 if place is None else self._tree[place[0]].get(place[1], 0)

    # ---- what happened; called with the lock held

    def make(self, path: Any, *, folder: bool = False) -> int:
        place = self._split(path)
        assert place is not None
        self._last += 1
        self._tree[place[0]][place[1]] = self._last
        if folder:
            self._tree[self._last] = {}
        self._sizes[self._last] = 0
        self.events.append(Name(*place, self._last))
        return self._last

    def drop(self, path: Any) -> None:
        place = self._split(path)
        if place is not None and self._tree[place[0]].pop(place[1], 0):
            self.events.append(Name(*place, 0))

    def rename(self, source: Any, target: Any) -> None:
        old, new = self._split(source), self._split(target)
        if old is None or new is None:
            assert old is new, "a rename over the border of the disk"
            return
        file = self._tree[old[0]].pop(old[1])
        self._tree[new[0]][new[1]] = file
        self.events.append(Name(*new, file, old))

    def link(self, source: Any, target: Any) -> None:
        place = self._split(target)
        if place is not None:
            self._tree[place[0]][place[1]] = self.file_at(source)
            self.events.append(Name(*place, self.file_at(source)))

    def write(self, file: int, offset: int, data: bytes) -> None:
        if data:
            self.events.append(Write(file, offset, data))
            self._sizes[file] = max(self._sizes[file], offset + len(data))

    def truncate(self, file: int, size: int) -> None:
        if self._sizes[file] != size:
            self.events.append(Truncate(file, size))
            self._sizes[file] = size

    def sync(self, file: int) -> None:
        self.events.append(SyncNames(file) if file in self._tree else Sync(file))

    def sync_folder_of(self, path: Any) -> None:
        place = self._split(path)
        assert place is not None
        self.events.append(SyncNames(place[0]))

    # ---- refusing

    def refuse(self) -> bool:
        """Raise what the fault says about this call; True when half of it may pass."""
        self.calls += 1
        number = self.fault(self.calls)
        if number == SHORT:
            return True
        if number:
            raise OSError(number, os.strerror(number))
        return False

    def refuse_sqlite(self) -> None:
        """The same in the words of SQLite, which takes a short write for a full disk."""
        try:
            short = self.refuse()
        except OSError as error:
            if error.errno == errno.ENOSPC:
                raise apsw.FullError("injected") from error
            raise apsw.IOError("injected") from error
        if short:
            raise apsw.FullError("injected")

    # ---- recording

    @contextlib.contextmanager
    def recording(self) -> Iterator[None]:
        """Until the end of the block; SQLite connections opened in it must be closed in it."""
        name = f"recording-{id(self)}"
        vfs = _RecordingVfs(name, self)
        try:
            with mock.patch.object(tables, "VFS", name), mock.patch.multiple(os, **_recorded_calls(self)):
                yield
        finally:
            vfs.unregister()

    def moved(self, root: Path) -> None:
        """The folder goes on elsewhere: what was not synced still is not."""
        self.root = str(root)
        self.life += 1
        self._descriptors.clear()

    def adopt(self, image: dict[str, bytes | None]) -> None:
        """Begin with these files, all of them safe."""
        for path, data in image.items():
            file = self.make(f"{self.root}/{path}", folder=data is None)
            if data:
                self.write(file, 0, data)
            if data is not None:
                self.sync(file)
        for folder in self._tree:
            self.sync(folder)
        self.adopted = len(self.events)

    def verify_complete(self) -> None:
        """Nothing was written past the recorder."""
        recorded = {path: data for path, data in self.image(len(self.events), None).items() if data is not None}
        real = {
            str(path.relative_to(self.root)): path.read_bytes()
            for path in Path(self.root).rglob("*")
            if path.is_file() and not path.name.endswith(_SHADOW)
        }
        assert recorded.keys() == real.keys()
        for path, data in real.items():
            assert recorded[path] == data, f"{path} was changed behind the recorder's back"

    # ---- images

    def image(self, end: int, rng: random.Random | None) -> dict[str, bytes | None]:
        """Files (None: a folder) by path, as a power cut after `end` events may leave them; without `rng` with all in place."""
        events = self.events[:end]
        names = _names(events, rng)
        found: dict[str, bytes | None] = {}
        contents = _contents_by_file(events)
        style = _Style(rng, garbage=self.shows_old_blocks) if rng is not None else None

        def descend(folder: int, prefix: str) -> None:
            for name, file in names.get(folder, {}).items():
                if file in self._tree:
                    found[prefix + name] = None
                    descend(file, f"{prefix}{name}/")
                else:
                    found[prefix + name] = _settled(contents.get(file, []), style)

        descend(ROOT, "")
        return found

    def write_image(self, image: dict[str, bytes | None], root: Path) -> None:
        for path, data in image.items():
            if data is None:
                (root / path).mkdir(parents=True)
            else:
                (root / path).write_bytes(data)


class _Style:
    """How one power cut treats what was not synced."""

    def __init__(self, rng: random.Random, *, garbage: bool) -> None:
        self.rng = rng
        self.share = rng.choice((0.0, 0.1, 0.5, 0.9, 1.0))
        self.by_sector = rng.choice((0, *SECTORS))
        self.in_order = rng.random() < 0.3
        self.loses_size = rng.random() < 0.3
        self.garbage = rng.random() < 0.2 and garbage


def _names(events: list[Event], rng: random.Random | None) -> dict[int, dict[str, int]]:
    """The names of every folder: all that were synced, and a choice of the others (in order, or any)."""
    synced_at: dict[int, int] = {}
    for number, event in enumerate(events):
        if isinstance(event, SyncNames):
            synced_at[event.folder] = number
    in_order = rng is not None and rng.random() < 0.5
    share = 1.0 if rng is None else rng.choice((0.0, 0.5, 1.0))
    stopped: set[int] = set()
    names: dict[int, dict[str, int]] = {}
    for number, event in enumerate(events):
        if not isinstance(event, Name):
            continue
        unsafe = rng is not None and synced_at.get(event.folder, -1) < number
        if unsafe and rng is not None and (event.folder in stopped or rng.random() >= share):
            if in_order:
                stopped.add(event.folder)
            continue
        held = names.setdefault(event.folder, {})
        if event.old is not None:
            names.setdefault(event.old[0], {}).pop(event.old[1], None)
        if event.file:
            held[event.name] = event.file
        else:
            held.pop(event.name, None)
    return names


def _contents_by_file(events: list[Event]) -> dict[int, list[Write | Truncate | Sync]]:
    found: dict[int, list[Write | Truncate | Sync]] = {}
    for event in events:
        if isinstance(event, Write | Truncate | Sync):
            found.setdefault(event.file, []).append(event)
    return found


def _settled(events: list[Write | Truncate | Sync], style: _Style | None) -> bytes:
    """The bytes of one file."""
    last_sync = max((number for number, event in enumerate(events) if isinstance(event, Sync)), default=-1)
    data = bytearray()
    _do_all(data, events[: last_sync + 1])
    pending = events[last_sync + 1 :]
    if style is None:
        _do_all(data, pending)
        return bytes(data)
    rng, sizes = style.rng, [len(data)]
    if style.in_order:  # everything up to some moment
        _do_all(data, pending[: rng.randrange(len(pending) + 1)])
        return bytes(data)
    for event in pending:
        if isinstance(event, Truncate):
            if rng.random() < style.share:
                _do(data, event)
        elif isinstance(event, Write):
            for piece in _pieces(event, style.by_sector):
                if rng.random() < style.share:
                    _do(data, piece)
                elif style.garbage and piece.offset >= len(data):
                    _do(data, Write(piece.file, piece.offset, rng.randbytes(len(piece.data))))
        sizes.append(len(data))
    if style.loses_size:
        del data[max(sizes[0], rng.choice(sizes)) :]
    return bytes(data)


def _pieces(event: Write, sector: int) -> Iterator[Write]:
    """A write in parts that end at sector boundaries; in one part without a sector size."""
    if not sector:
        yield event
        return
    at, end = event.offset, event.offset + len(event.data)
    while at < end:
        stop = min((at // sector + 1) * sector, end)
        yield Write(event.file, at, event.data[at - event.offset : stop - event.offset])
        at = stop


def _do_all(data: bytearray, events: list[Write | Truncate | Sync]) -> None:
    for event in events:
        _do(data, event)


def _do(data: bytearray, event: Write | Truncate | Sync) -> None:
    if isinstance(event, Write):
        if len(data) < event.offset:
            data.extend(bytes(event.offset - len(data)))
        data[event.offset : event.offset + len(event.data)] = event.data
    elif isinstance(event, Truncate):
        if len(data) < event.size:
            data.extend(bytes(event.size - len(data)))
        del data[event.size :]


# ---- SQLite


class _RecordingVfs(apsw.VFS):
    def __init__(self, name: str, disk: Disk) -> None:
        super().__init__(name, BASE_VFS)
        self.disk = disk

    def xOpen(self, name: Any, flags: list[int]) -> apsw.VFSFile:
        disk = self.disk
        path = name.filename() if isinstance(name, apsw.URIFilename) else name
        if path is None or disk._split(path) is None:
            return super().xOpen(name, flags)
        with disk.lock:
            opened = _RecordingFile(name, flags, disk)
            file = disk.file_at(path)
            opened.file = file or disk.make(path)
            # SQLite syncs the folder together with the first sync of a log or journal that it may have made (UNIXFILE_DIRSYNC).
            logs = apsw.SQLITE_OPEN_WAL | apsw.SQLITE_OPEN_MAIN_JOURNAL
            opened.names_path = path if flags[0] & logs and flags[0] & apsw.SQLITE_OPEN_CREATE else None
            return opened

    def xDelete(self, path: str, sync_folder: bool) -> None:
        with self.disk.lock:
            super().xDelete(path, sync_folder)
            self.disk.drop(path)
            if sync_folder and self.disk._split(path):
                self.disk.sync_folder_of(path)


class _RecordingFile(apsw.VFSFile):
    def __init__(self, name: Any, flags: list[int], disk: Disk) -> None:
        super().__init__(BASE_VFS, name, flags)
        self.disk = disk
        self.life = disk.life
        self.file = 0
        self.names_path: str | None = None

    def xWrite(self, data: Any, offset: int) -> None:
        with self.disk.lock:
            self.disk.refuse_sqlite()
            super().xWrite(data, offset)
            if self.life == self.disk.life:
                self.disk.write(self.file, offset, bytes(data))

    def xTruncate(self, size: int) -> None:
        with self.disk.lock:
            self.disk.refuse_sqlite()
            super().xTruncate(size)
            if self.life == self.disk.life:
                self.disk.truncate(self.file, size)

    def xSync(self, flags: int) -> None:
        """The disk under the test is not asked: its power stays on."""
        with self.disk.lock:
            if self.life != self.disk.life:
                return
            self.disk.refuse_sqlite()
            self.disk.sync(self.file)
            if self.names_path is not None:
                self.disk.sync_folder_of(self.names_path)
                self.names_path = None


# ---- os


def _recorded_calls(disk: Disk) -> dict[str, Callable[..., Any]]:
    """Versions of the functions of `os` that write."""
    real = {name: getattr(os, name) for name in (
        "open", "close", "write", "writev", "pwrite", "pwritev", "ftruncate", "truncate", "fsync", "fdatasync", "unlink",
        "remove", "rename", "replace", "link", "mkdir", "rmdir", "lseek", "posix_fallocate", "sendfile", "copy_file_range",
    )}  # fmt: skip

    def opened(path: Any, flags: int, mode: int = 0o777, **more: Any) -> int:
        with disk.lock:
            if flags & os.O_CREAT and not isinstance(path, int) and not more and disk._split(path):
                disk.refuse()
            known = not isinstance(path, int) and not more and (disk.file_at(path) or disk._split(path))
            fd: int = real["open"](path, flags, mode, **more)
            if known:
                file = disk.file_at(path) or disk.make(path)
                if flags & os.O_TRUNC:
                    disk.truncate(file, 0)
                disk._descriptors[fd] = (file, bool(flags & os.O_APPEND))
            return fd

    def closed(fd: int) -> None:
        with disk.lock:
            disk._descriptors.pop(fd, None)
            real["close"](fd)

    def written_at(name: str) -> Callable[..., int]:
        def call(fd: int, data: Any, *more: Any) -> int:
            held = disk._descriptors.get(fd)
            if held is None:
                return int(real[name](fd, data, *more))
            with disk.lock:
                if disk.refuse():
                    whole = b"".join(data) if name.endswith("v") else bytes(data)
                    data = [whole[: len(whole) // 2]] if name.endswith("v") else whole[: len(whole) // 2]
                file, appends = held
                offset = more[0] if more else disk._sizes[file] if appends else real["lseek"](fd, 0, os.SEEK_CUR)
                count = int(real[name](fd, data, *more))
                whole = b"".join(data) if name.endswith("v") else bytes(data)
                disk.write(file, offset, whole[:count])
                return count

        return call

    def resized(fd: int, size: int) -> None:
        with disk.lock:
            if fd in disk._descriptors:
                disk.refuse()
            real["ftruncate"](fd, size)
            if fd in disk._descriptors:
                disk.truncate(disk._descriptors[fd][0], size)

    def resized_path(path: Any, size: int) -> None:
        with disk.lock:
            real["truncate"](path, size)
            file = disk._descriptors[path][0] if isinstance(path, int) else disk.file_at(path)
            if file:
                disk.truncate(file, size)

    def allocated(fd: int, offset: int, length: int) -> None:
        with disk.lock:
            real["posix_fallocate"](fd, offset, length)
            if fd in disk._descriptors:
                file = disk._descriptors[fd][0]
                disk.truncate(file, max(disk._sizes[file], offset + length))

    def synced(name: str) -> Callable[[int], None]:
        def call(fd: int) -> None:
            with disk.lock:
                if fd in disk._descriptors:
                    disk.refuse()
                    disk.sync(disk._descriptors[fd][0])
                else:
                    real[name](fd)

        return call

    def named(name: str, note: Callable[..., Any]) -> Callable[..., None]:
        def call(*args: Any, **more: Any) -> None:
            with disk.lock:
                if disk._split(args[0]):
                    disk.refuse()
                real[name](*args, **more)
                note(*args)

        return call

    def made(path: Any, mode: int = 0o777, **more: Any) -> None:
        with disk.lock:
            real["mkdir"](path, mode, **more)
            if disk._split(path) is not None:
                disk.make(path, folder=True)

    def unrecorded(name: str) -> Callable[..., Any]:
        def call(*args: Any) -> Any:
            assert not any(isinstance(arg, int) and arg in disk._descriptors for arg in args[:2]), f"{name} is not recorded"
            return real[name](*args)

        return call

    return {
        "open": opened, "close": closed, "write": written_at("write"), "writev": written_at("writev"),
        "pwrite": written_at("pwrite"), "pwritev": written_at("pwritev"), "ftruncate": resized, "truncate": resized_path,
        "posix_fallocate": allocated, "fsync": synced("fsync"), "fdatasync": synced("fdatasync"),
        "unlink": named("unlink", disk.drop), "remove": named("remove", disk.drop), "rmdir": named("rmdir", disk.drop),
        "rename": named("rename", disk.rename), "replace": named("replace", disk.rename), "link": named("link", disk.link),
        "mkdir": made, "sendfile": unrecorded("sendfile"), "copy_file_range": unrecorded("copy_file_range"),
    }  # fmt: skip
