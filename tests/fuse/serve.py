"""A child process that serves one mount for the tests: `python -m tests.fuse.serve CONFIG_JSON`.

It prints one JSON line when the mount is up (`{"ready": true}` or an error), then answers one JSON line for every command line
on its standard input, and ends when the mount is gone. A child, because a test that maps a file of a mount served by its own
process would deadlock on the GIL.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import logging
import os
import stat
import sys
import threading
from collections import deque
from pathlib import Path
from typing import Any

from memdir.core.errors import MemdirError
from memdir.fs.errors import FsError
from memdir.fs.fuse.mounting import clear_dead_mount
from memdir.fs.fuse.mountpoint import is_dead, is_mountpoint, mounts
from memdir.fs.fuse.session import FuseOptions, FuseSession, Profile
from memdir.fs.memory import MemoryFs
from memdir.fs.source import Brought
from memdir.fs.types import LocalFact, RemoteFile
from memdir.fs.views import ProfileView, StatusView, ViewVfs

_CLONE_NEWNS = 0x20000
_MS_BIND, _MS_REC, _MS_PRIVATE = 4096, 16384, 1 << 18
_MNT_DETACH, _UMOUNT_NOFOLLOW = 2, 8
_libc = ctypes.CDLL(None, use_errno=True)


EVENTS_MAX = 10_000
INTENTS_READ = 1000
"""At a time."""


class Observer:
    """Remembers the last EVENTS_MAX things that the observed profile told."""

    def __init__(self) -> None:
        self.events: deque[list[int]] = deque(maxlen=EVENTS_MAX)

    def opened(self, ino: int, pid: int, flags: int) -> None:
        self.events.append([1, ino, pid, flags & os.O_ACCMODE])

    def closed(self, ino: int) -> None:
        self.events.append([0, ino])


class Source:
    """A server that sends contents when a test says so: `fs.source.ContentSource`."""

    def __init__(self, fs: Any) -> None:
        self.fs = fs
        self.texts: dict[str, bytes] = {}
        """By hash: what the server has."""
        self.wanted: dict[int, list[Brought]] = {}
        self.asked: list[int] = []
        self.arrived: dict[int, int] = {}
        self.is_prompt = False
        self._changed = threading.Condition()

    def bring(self, ino: int, brought: Brought) -> None:
        with self._changed:
            self.asked.append(ino)
            self.wanted.setdefault(ino, []).append(brought)
            self._changed.notify_all()
        if self.is_prompt:
            threading.Thread(target=self.send, args=[ino], daemon=True).start()

    def arrived_bytes(self, ino: int) -> int:
        return self.arrived.get(ino, 0)

    def wait_asked(self, count: int) -> bool:
        with self._changed:
            return self._changed.wait_for(lambda: len(self.asked) >= count, timeout=30)

    def send(self, ino: int, number: int = 0) -> None:
        """Fill the file, or say why not."""
        error = FsError(number) if number else None
        fact = self.fs.fact_by_number(ino)
        if error is None and fact is not None and fact.absent_hash is not None:
            self.fs.fill(fact, [self.texts[fact.absent_hash]])
        for brought in self.wanted.pop(ino, []):
            brought(error)


class Server:
    """The filesystem, its mount and the commands on them."""

    def __init__(self, config: dict[str, Any], fs: Any) -> None:
        self.observer = Observer()
        self.fs = fs
        self.profile = ProfileView()
        self.errors: dict[str, str] = {}
        self.status: dict[str, object] = {"state": "fresh"}
        views = [self.profile, StatusView(status=lambda: self.status, queue=list, errors=lambda: self.errors)]
        vfs = ViewVfs(self.fs, views if config.get("views") else [])
        options = dict(config.get("options", {}))
        if "profile" in options:
            options["profile"] = Profile(options["profile"])
        self.source = Source(self.fs)
        if config.get("lazy"):
            options["contents"] = self.source
        if options.pop("passthrough", False):
            options["passthrough"] = self.fs
        self.session = FuseSession(vfs, Path(config["mountpoint"]), FuseOptions(observer=self.observer, **options))
        self.fs.connect(self.session.invalidator)
        vfs.connect(self.session.invalidator)
        if config.get("reads_intents"):
            self.fs.listen(self._read_intents)

    def _read_intents(self) -> None:
        """As the sync engine of a daemon does, so that they do not pile up."""
        if self.fs.intents_left(0) >= INTENTS_READ:
            self.fs.acknowledge(self.fs.newest_intent())

    def run_command(self, command: dict[str, Any]) -> object:
        """One command; its arguments are those of the method."""
        name = command.pop("op")
        return getattr(self, f"do_{name}")(**command)

    def _fact(self, path: str) -> LocalFact | None:
        return self.fs.fact(path)

    def _known(self, path: str) -> LocalFact:
        fact = self.fs.fact(path)
        assert fact is not None, path
        return fact

    def do_put(self, path: str, text: str, mode: int = 0o644) -> None:
        self.fs.put_file(path, [text.encode()], mode=mode, mtime_ns=1_000_000_000, expected=self._fact(path))
        self._settle()

    def do_put_absent(self, path: str, text: str) -> int:
        data = text.encode()
        content_hash = hashlib.sha256(data).hexdigest()
        self.source.texts[content_hash] = data
        file = RemoteFile(path=path, size=len(data), content_hash=content_hash, mode=0o644, mtime_ns=1_000_000_000)
        fact = self.fs.put_absent(path, file, expected=self._fact(path))
        self._settle()
        return int(fact.ino)

    def do_evict(self, path: str) -> None:
        fact = self._known(path)
        data = self.fs.read(fact, 0, fact.size)
        content_hash = hashlib.sha256(data).hexdigest()
        self.source.texts[content_hash] = data
        self.fs.evict(fact, content_hash)

    def do_prompt(self) -> None:
        self.source.is_prompt = True

    def do_asked(self, count: int) -> list[int]:
        """Wait until contents were asked for so often."""
        assert self.source.wait_asked(count)
        return list(self.source.asked)

    def do_arrived(self, ino: int, size: int) -> None:
        self.source.arrived[ino] = size

    def do_send(self, ino: int, errno: int = 0) -> None:
        self.source.send(ino, errno)

    def do_end_waiting(self) -> None:
        self.session.end_waiting()

    def do_inode_count(self) -> int:
        """Inodes in the tables of a cache, those without a name that somebody holds included."""
        self.fs.flush()
        return self.fs._tables.inode_count()

    def do_notice(self, ino: int) -> None:
        """As if the inode had changed on the server."""
        self.session.invalidator.inode_changed(ino)
        self._settle()

    def do_put_dir(self, path: str) -> None:
        self.fs.put_dir(path, mode=0o755, expected=self._fact(path))
        self._settle()

    def do_set_mode(self, path: str, mode: int) -> None:
        self.fs.set_mode(path, mode=mode, expected=self._known(path))
        self._settle()

    def do_delete(self, path: str) -> None:
        self.fs.delete(path, expected=self._known(path))
        self._settle()

    def do_move(self, source: str, path: str) -> None:
        self.fs.move(source, path, expected=self._known(source))
        self._settle()

    def do_put_many(self, folder: str, count: int, text: str) -> None:
        """Without waiting in between, so that notifications pile up."""
        for number in range(count):
            path = f"{folder}/{number}"
            self.fs.put_file(path, [text.encode()], mode=0o644, mtime_ns=0, expected=self._fact(path))
        self._settle()

    def do_delete_many(self, folder: str, count: int) -> None:
        for number in range(count):
            self.fs.delete(f"{folder}/{number}", expected=self._known(f"{folder}/{number}"))
        self._settle()

    def do_profile(self, text: str) -> None:
        self.profile.set_text(text)
        self._settle()

    def do_set_status(self, value: dict[str, object]) -> None:
        self.status = value

    def do_set_errors(self, value: dict[str, str]) -> None:
        self.errors = value

    def do_read(self, path: str) -> str | None:
        """What the filesystem itself holds."""
        fact = self.fs.fact(path)
        return None if fact is None else self.fs.read(fact, 0, fact.size).decode()

    def do_events(self) -> list[list[int]]:
        return list(self.observer.events)

    def do_stats(self) -> dict[str, object]:
        stats = self.session.stats()
        return {
            "requests": dict(stats.requests),
            "failures": stats.failures,
            "notifications": stats.notifications,
            "overflows": stats.overflows,
            "cpu_s": stats.cpu_s,
        }

    def do_unmount(self, lazy: bool = False) -> None:
        self.session.unmount(lazy=lazy)

    def do_is_mounted(self) -> bool:
        return is_mountpoint(self.session.mountpoint)

    def do_die_and_clear(self) -> list[bool]:
        """A second mount of the same user loses its connection, as it does when its process is killed."""
        place = Path(f"/tmp/memdir-dead-{os.getpid()}")
        place.mkdir()
        session = FuseSession(MemoryFs(), place)
        session.mount()
        os.close(session._fd)
        session._fd = -1
        seen = [is_mountpoint(place), is_dead(place), clear_dead_mount(place), is_mountpoint(place)]
        place.rmdir()
        return seen

    def _settle(self) -> None:
        """The change is in the filesystem; wait until the kernel knows."""
        assert self.session.wait_notified(30.0)


def _open(config: dict[str, Any]) -> Any:
    uid, gid = config.get("uid", os.getuid()), config.get("uid", os.getgid())
    if config["kind"] == "memory":
        return MemoryFs(uid=uid, gid=gid)
    from memdir.fs.cache import SqliteFs, large

    if "blob_min_bytes" in config:
        large.BLOB_MIN_BYTES = config["blob_min_bytes"]
    return SqliteFs.open(Path(config["folder"]), uid=uid, gid=gid)


def _become(uid: int, folder: Path | None) -> None:
    """Be an ordinary user from here on, and let the cache belong to it. Afterwards only what was imported is there: Python and
    this checkout may stand where that user cannot read."""
    for path in [folder, *folder.rglob("*")] if folder is not None else []:
        os.chown(path, uid, uid)
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)


def _bring_own_device(node: Path) -> None:
    """Put a /dev/fuse that everybody may open (what udev makes on most systems) into a mount namespace of this process, so that
    the machine's own stays as it is. The mount is then visible in this namespace only."""
    if _libc.unshare(_CLONE_NEWNS) != 0 or _libc.mount(b"none", b"/", None, _MS_REC | _MS_PRIVATE, None) != 0:
        raise OSError(ctypes.get_errno(), "unshare")
    _leave_other_mounts()
    os.mknod(node, stat.S_IFCHR | 0o666, os.stat("/dev/fuse").st_rdev)
    node.chmod(0o666)
    if _libc.mount(os.fsencode(node), b"/dev/fuse", None, _MS_BIND, None) != 0:
        raise OSError(ctypes.get_errno(), "bind mount of /dev/fuse")


def _leave_other_mounts() -> None:
    """The new namespace has a copy of every mount there is, and a FUSE mount lives as long as any copy: those of other tests,
    in other processes, must end when they are unmounted."""
    for entry in reversed(mounts()):
        if entry.fstype.startswith("fuse"):
            _libc.umount2(os.fsencode(entry.mountpoint), _MNT_DETACH | _UMOUNT_NOFOLLOW)


def _say(message: object) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def _commands(server: Server) -> None:
    for line in sys.stdin:
        try:
            _say({"result": server.run_command(json.loads(line))})
        except (MemdirError, AssertionError) as error:
            _say({"error": f"{type(error).__name__}: {error}"})


def main() -> None:
    config = json.loads(sys.argv[1])
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING)
    if config.get("private_device"):
        _bring_own_device(Path(config["private_device"]))
    try:
        fs = _open(config)
        if "uid" in config:
            _become(config["uid"], Path(config["folder"]) if config["kind"] == "sqlite" else None)
        server = Server(config, fs)
        server.session.mount()
    except MemdirError as error:
        _say({"ready": False, "error": error.message, "hint": error.hint, "type": type(error).__name__})
        sys.exit(3)
    threading.Thread(target=_commands, args=[server], daemon=True).start()
    _say({"ready": True})
    server.session.run()
    failures = server.session.stats().failures
    server.fs.close()
    sys.stdout.flush()
    os._exit(4 if failures else 0)  # the command thread may sit in a read of standard input


if __name__ == "__main__":
    main()
