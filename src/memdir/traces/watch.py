"""What happens in ordinary folders, by inotify(7), and for root by fanotify(7) beside it: who it was, what was read and listed.

inotify says little: that something was made, closed after writing, moved or deleted, and not by whom: without that, what people
read is not to be told from what indexers do. What a file was before is known from a copy in memory of the small text files of
the folder, made when watching begins.
"""

from __future__ import annotations

import ctypes
import errno
import os
import stat
import struct
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Final, Literal

from memdir.core.descriptors import wait_readable
from memdir.core.errors import UsageError
from memdir.fs.operations import CONTENT_MAX_BYTES, COPY_MS, Kind, OpenedLast, Operation
from memdir.traces import fanotify
from memdir.traces.actors import Actors
from memdir.traces.collect import Collector
from memdir.traces.events import Event
from memdir.traces.fanotify import Fanotify, waiting_in
from memdir.traces.log import is_ignored

_IGNORED: Final = 0x8000
_MASK: Final = fanotify.CHANGES | 0x01000000  # IN_ONLYDIR
_HEAD: Final = struct.Struct("=iIII")
_BUFFER_BYTES: Final = 1 << 20
_HELD_MAX_BYTES: Final = 128 << 20
FOLDERS_MAX: Final = 60_000
"""Below what /proc/sys/fs/inotify/max_user_watches usually allows."""
_CHANGES_MAX: Final = 16_384
"""Of which it is known who made them: as many as the system keeps until they are read."""
_OPENED_MAX: Final = 512
"""Files that a process opened last, and may have copied: to the same name, or, of the _LATEST, to another one."""
_LATEST: Final = 8
_SAMPLE_BYTES: Final = 64 << 10


class Watcher:
    """Some folders and all below them. `step` gives events; close it at the end."""

    def __init__(self, roots: Sequence[Path], patterns: Sequence[str]) -> None:
        """UsageError for what is no folder, and for more folders than FOLDERS_MAX or than the system lets us watch."""
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._fd = self._libc.inotify_init1(os.O_CLOEXEC | os.O_NONBLOCK)
        if self._fd < 0:
            raise UsageError(f"inotify is not available: {os.strerror(ctypes.get_errno())}")
        self._patterns = patterns
        self._folders: dict[int, tuple[Path, Path]] = {}
        """By watch: the root and the folder."""
        self._held: OrderedDict[Path, bytes] = OrderedDict()
        self._held_bytes = 0
        self._made: set[Path] = set()
        """Files that were made and not closed yet."""
        self._moved: dict[int, tuple[Path, Path, bool]] = {}
        self._collectors = {root: Collector(str(root)) for root in roots}
        self._fanotify = _for_root()
        self._actors = Actors()
        self._changed_by: OrderedDict[Path, int] = OrderedDict()
        """Who changed what last."""
        self._opened: OpenedLast[Path, tuple[str, int]] = OpenedLast(_OPENED_MAX)
        """The file's name, and when."""
        self._sessions: dict[Path, str] = {}
        """Of each root the last one."""
        self.folders_without_reads = 0
        """Those on filesystems that fanotify does not tell of."""
        self._missed = 0
        for root in roots:
            if not root.is_dir():
                raise UsageError(f"{root} is no folder")
            self._add(root, root, fresh=False)

    @property
    def sees_reads(self) -> bool:
        """Whether reads and listings are seen, and who it was."""
        return self._fanotify is not None

    @property
    def missed(self) -> int:
        """How often the system had more to say than it kept."""
        return self._missed + (0 if self._fanotify is None else self._fanotify.missed)

    def close(self) -> None:
        os.close(self._fd)
        if self._fanotify is not None:
            self._fanotify.close()

    def step(self, timeout_s: float) -> list[Event]:
        """Wait for something to happen; events that have settled."""
        reads = [] if self._fanotify is None else [self._fanotify.fd]
        if wait_readable(self._fd, *reads, timeout_s=timeout_s):
            happened = list(self._read())
            self._read_fanotify()  # between: who made a change that was read is told by now
            for watch, mask, cookie, name in happened:
                self._happened(watch, mask, cookie, name)
            self._vanished()
        return self._settled(everything=False)

    def finish(self) -> list[Event]:
        """Everything that is left, when watching ends."""
        return self._settled(everything=True)

    def _settled(self, *, everything: bool) -> list[Event]:
        now_ms = _now_ms()
        return [one for collector in self._collectors.values() for one in collector.settled(now_ms, everything=everything)]

    # what fanotify says

    def _read_fanotify(self) -> None:
        if self._fanotify is not None:
            for pid, mask, watch, name in self._fanotify.read():
                self._told_by_fanotify(pid, mask, watch, name)

    def _told_by_fanotify(self, pid: int, mask: int, watch: int, name: str) -> None:
        if watch not in self._folders or pid == os.getpid():
            return
        self._actors.who(pid)  # while it is there
        root, folder = self._folders[watch]
        if mask & fanotify.ON_FOLDER and name == ".":
            if mask & fanotify.ACCESS:
                self._tell(root, "browse", folder, pid=pid, size_bytes=_count(folder))
            return
        path = folder / name
        if mask & fanotify.CHANGES:
            self._changed_by[path] = pid
            self._changed_by.move_to_end(path)
            if len(self._changed_by) > _CHANGES_MAX:
                self._changed_by.popitem(last=False)
        if mask & fanotify.ON_FOLDER:
            return
        if mask & fanotify.OPEN:
            self._opened.note(pid, path, (name, _now_ms()))
        found = _status(path) if mask & fanotify.CLOSE_NOWRITE else None
        if found is not None and stat.S_ISREG(found.st_mode):
            self._tell(root, "read", path, pid=pid, size_bytes=found.st_size)

    def _source_of(self, path: Path, maker: int, after: bytes | None, size: int) -> Path | None:
        """A file that whoever made `path` had opened, with the same contents (of a large one: as long, with the same ends)."""
        if not maker or not size:
            return None
        since_ms = _now_ms() - COPY_MS
        opened = self._opened.of(maker)
        latest = list(islice(reversed(opened), _LATEST))
        alike = [one for one, (name, _) in opened.items() if name == path.name]
        for source in dict.fromkeys((*latest, *alike)):
            found = _status(source) if source != path and opened[source][1] >= since_ms else None
            if found is not None and found.st_size == size:
                held = self._held.get(source)
                if (held == after) if held is not None else _are_alike(source, path, size):
                    return source
        return None

    # what inotify says

    def _read(self) -> Iterator[tuple[int, int, int, str]]:
        data, at = waiting_in(self._fd, _BUFFER_BYTES), 0
        while at < len(data):
            watch, mask, cookie, size = _HEAD.unpack_from(data, at)
            at += _HEAD.size
            name = os.fsdecode(data[at : at + size].rstrip(b"\0"))
            at += size
            if mask & fanotify.OVERFLOW:
                self._missed += 1
            else:
                yield watch, mask, cookie, name

    def _happened(self, watch: int, mask: int, cookie: int, name: str) -> None:
        if watch not in self._folders:
            return
        root, folder = self._folders[watch]
        if mask & _IGNORED:
            del self._folders[watch]
            if self._fanotify is not None:
                self._fanotify.forget(watch)
            return
        path, is_dir = folder / name, bool(mask & fanotify.ON_FOLDER)
        if mask & fanotify.MOVED_FROM:
            self._moved[cookie] = (root, path, is_dir)
        elif mask & fanotify.MOVED_TO:
            self._arrived(root, path, cookie, is_dir=is_dir)
        elif mask & fanotify.CREATE and is_dir:
            self._add(root, path, fresh=True)
        elif mask & fanotify.CREATE and not path.is_symlink():
            if path in self._held:  # it was told when its new folder was looked through
                return
            found = _status(path)
            if found is not None and found.st_nlink > 1:  # by link(2): nobody closes it
                self._made.add(path)
                self._written(root, path)
            elif len(self._made) < FOLDERS_MAX:
                self._made.add(path)
        elif mask & fanotify.CLOSE_WRITE:
            self._written(root, path)
        elif mask & fanotify.DELETE:
            before = self._drop(path)
            self._tell(root, "rmdir" if is_dir else "delete", path, before=before)

    def _written(self, root: Path, path: Path) -> None:
        created = path in self._made
        self._made.discard(path)
        before = None if created else self._held.get(path)
        after, size = self._contents(path)
        self._hold(path, after)
        if created:
            self._new(root, path, self._changed_by.get(path, 0), after, size)
        else:
            self._tell(root, "write", path, before=before, after=after, size_bytes=size)

    def _new(self, root: Path, path: Path, pid: int, content: bytes | None, size: int) -> None:
        """A file that was not there before, made by `pid` (0: not known)."""
        source = self._source_of(path, pid, content, size)
        if source is not None and root in source.parents:
            self._tell(root, "copy", source, target=path, pid=pid, after=content, size_bytes=size)
        else:
            self._tell(root, "write", path, pid=pid, after=content, created=True, size_bytes=size)

    def _arrived(self, root: Path, path: Path, cookie: int, *, is_dir: bool) -> None:
        moved = self._moved.pop(cookie, None)
        replaced, before = path in self._held, self._held.get(path)
        if moved is None:  # from a place that is not watched
            if is_dir:
                self._add(root, path, fresh=True)
                return
            after, size = self._contents(path)
            self._hold(path, after)
            self._tell(root, "write", path, before=before, after=after, created=not replaced, size_bytes=size)
            return
        old_root, old, _ = moved
        after = self._drop(old)
        if after is None and not is_dir:  # it was renamed before it could be read
            after = self._contents(path)[0]
        self._made.discard(old)
        self._tell(old_root, "rename", old, target=path, before=before, after=after, replaced=replaced)
        if not is_dir:
            self._hold(path, after)
        elif not self._renamed_folder(old, path):
            self._add(root, path, fresh=True, is_told=True)  # it was renamed before it could be watched

    def _vanished(self) -> None:
        """Moved out of sight: what was not heard of again in the same reading went away."""
        for root, path, is_dir in self._moved.values():
            self._tell(root, "rmdir" if is_dir else "delete", path, before=self._drop(path))
        self._moved.clear()

    def _renamed_folder(self, old: Path, new: Path) -> bool:
        """Whether it was watched."""
        known = False
        for watch, (root, folder) in list(self._folders.items()):
            if folder == old or old in folder.parents:
                self._folders[watch] = (root, new / folder.relative_to(old))
                known = True
        for path in [one for one in self._held if old in one.parents]:
            self._held[new / path.relative_to(old)] = self._held.pop(path)
        return known

    # folders and contents

    def _add(self, root: Path, folder: Path, *, fresh: bool, is_told: bool = False) -> None:
        """Watch a folder and all below it. `fresh`: it was just made, what is in it is new; `is_told`: but not itself."""
        maker = self._changed_by.get(folder, 0)
        waiting = [folder]
        while waiting:
            place = waiting.pop()
            if place != root and self._is_left_out(root, place):
                continue
            state = self._watch(root, place)
            if state == "known":
                continue
            if fresh and (place != folder or not is_told):
                self._tell(root, "mkdir", place, pid=maker)
            if state == "gone":
                continue
            listed = _listed(place)  # after it is watched: what is made later is told
            if fresh:
                self._read_fanotify()  # what was opened to fill it
            for path, is_folder in listed:
                if is_folder:
                    waiting.append(path)
                    continue
                content, size = self._contents(path)
                self._hold(path, content)
                if fresh:
                    self._new(root, path, maker, content, size)

    def _watch(self, root: Path, folder: Path) -> Literal["new", "known", "gone"]:
        """`known`: it was watched before; `gone`: it is no more, or is not for us to see."""
        watch = self._libc.inotify_add_watch(self._fd, os.fsencode(folder), ctypes.c_uint32(_MASK))
        if watch < 0:
            number = ctypes.get_errno()
            if number in (errno.ENOENT, errno.ENOTDIR) or (number == errno.EACCES and folder != root):
                return "gone"
            hint = "raise fs.inotify.max_user_watches, or watch fewer folders" if number == errno.ENOSPC else ""
            raise UsageError(f"{folder} cannot be watched: {os.strerror(number)}", hint=hint)
        if self._folders.get(watch) == (root, folder):
            return "known"
        self._folders[watch] = (root, folder)
        if len(self._folders) > FOLDERS_MAX:
            raise UsageError(f"more than {FOLDERS_MAX:,} folders", hint="watch fewer, or name some in the ignore file")
        self._see_reads(folder, watch)
        return "new"

    def _see_reads(self, folder: Path, watch: int) -> None:
        if self._fanotify is not None:
            try:
                self._fanotify.add(folder, watch)
            except FileNotFoundError:
                return
            except OSError:
                self.folders_without_reads += 1

    def _contents(self, path: Path) -> tuple[bytes | None, int]:
        """Of a small file, and its size."""
        try:
            size = path.stat().st_size
            if not path.is_file() or path.is_symlink() or size > CONTENT_MAX_BYTES:
                return None, size
            return path.read_bytes(), size
        except OSError:
            return None, 0

    def _hold(self, path: Path, content: bytes | None) -> None:
        self._drop(path)
        if content is not None and b"\0" not in content:
            self._held[path] = content
            self._held_bytes += len(content)
            while self._held_bytes > _HELD_MAX_BYTES:
                self._held_bytes -= len(self._held.popitem(last=False)[1])

    def _drop(self, path: Path) -> bytes | None:
        held = self._held.pop(path, None)
        self._held_bytes -= len(held or b"")
        return held

    def _is_left_out(self, root: Path, path: Path) -> bool:
        return is_ignored(_inside(root, path), self._patterns)

    def _tell(
        self, root: Path, kind: Kind, path: Path, *, target: Path | None = None, pid: int | None = None, **more: object
    ) -> None:
        pid = self._changed_by.get(path, 0) if pid is None else pid
        if self._is_left_out(root, path) or (pid and self._actors.is_left_out(pid)):
            return
        actor, session = self._actors.who(pid) if pid else ("", "")
        # Who is gone before it could be asked is taken for whoever was at work last.
        session = self._sessions[root] = session or self._sessions.get(root, "")
        inside = target is None or root in target.parents
        operation = Operation(
            kind=kind,
            at_ms=_now_ms(), pid=pid, actor=actor, session_key=f"{root} {session}",
            path=_inside(root, path),
            target="" if target is None else _inside(root, target) if inside else str(target),
            raw=f"{'fanotify' if kind in ('read', 'browse') else 'inotify'} {kind}", **more,  # type: ignore[arg-type]
        )  # fmt: skip
        self._collectors[root].take(operation)


def _for_root() -> Fanotify | None:
    """None for others, and where the kernel does not let us."""
    try:
        return Fanotify()
    except OSError:
        return None


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _inside(root: Path, path: Path) -> str:
    return "/" if path == root else f"/{path.relative_to(root)}"


def _status(path: Path) -> os.stat_result | None:
    """Of the file itself, links not followed; None when it is gone."""
    try:
        return path.lstat()
    except OSError:
        return None


def _listed(folder: Path) -> list[tuple[Path, bool]]:
    """What stands in a folder, and whether it is one; nothing of one that cannot be read."""
    try:
        with os.scandir(folder) as found:
            return [(folder / one.name, one.is_dir(follow_symlinks=False)) for one in found]
    except OSError:
        return []


def _count(folder: Path) -> int:
    try:
        return len(os.listdir(folder))
    except OSError:
        return 0


def _are_alike(one: Path, other: Path, size: int) -> bool:
    """Whether two files of this size begin and end alike."""
    try:
        with one.open("rb") as first, other.open("rb") as second:
            for place in (0, max(0, size - _SAMPLE_BYTES)):
                first.seek(place)
                second.seek(place)
                if first.read(_SAMPLE_BYTES) != second.read(_SAMPLE_BYTES):
                    return False
    except OSError:
        return False
    return True


def watch(watcher: Watcher, add: Callable[[list[Event]], None], stopped: Callable[[], bool]) -> None:
    """Until `stopped`; then the watcher is closed."""
    try:
        while not stopped():
            events = watcher.step(0.5)
            if events:
                add(events)
        add(watcher.finish())
    finally:
        watcher.close()
