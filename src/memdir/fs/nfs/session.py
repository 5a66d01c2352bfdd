"""A filesystem served over NFS at a directory: the same life as `fs.fuse.session`, for kernels with an NFS client and no FUSE.

The server always listens; the kernel is asked to mount it when this process may (root). Where it may not, `command` is what a
user who may has to type, and everything else works all the same.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import select
import shutil
import subprocess
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from memdir.core.clock import Clock
from memdir.fs.fuse.errors import MountBusyError, MountError
from memdir.fs.fuse.mountpoint import check_mountable, is_mountpoint, mounts
from memdir.fs.fuse.session import FuseStats
from memdir.fs.nfs.handles import Handles
from memdir.fs.nfs.procedures import Nfs3
from memdir.fs.nfs.server import NfsServer
from memdir.fs.source import ContentSource
from memdir.fs.vfs import Invalidator, Vfs

_log = logging.getLogger(__name__)

_MOUNT_TIMEOUT_S: Final = 30.0
_MOUNT_TABLE: Final = "/proc/self/mountinfo"
_LOOK_S: Final = 5.0
"""How often the end of a mount is looked for where the system tells nobody of it."""
_ATTRIBUTES_S: Final = 3
"""How long a client may believe attributes: changes of other machines are seen after that."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NfsOptions:
    """`key_folder` keeps what makes handles hold over restarts. `port` 0: any."""

    key_folder: Path
    port: int = 0
    read_only: bool = False
    contents: ContentSource | None = None
    contents_timeout_s: float = 30.0


class _NobodyToTell:
    """Clients of NFS version 3 ask again; they cannot be told."""

    def inode_changed(self, ino: int) -> None:
        pass

    def entry_changed(self, parent: int, name: bytes) -> None:
        pass


class NfsSession:
    """`vfs` at `mountpoint`. The filesystem is not closed here: its owner does that after `run` has returned."""

    def __init__(self, vfs: Vfs, mountpoint: Path, options: NfsOptions, *, clock: Clock | None = None) -> None:
        self._vfs = vfs
        self._mountpoint = mountpoint
        self._options = options
        self._clock = clock
        self._server: NfsServer | None = None
        self._stopping, self._stop = os.pipe()
        self._pipe_lock = threading.Lock()
        self._is_mounted = False
        self.port = 0
        self.command = ""
        """What mounts it, for whoever may."""
        self.problem = ""
        """Why it is not mounted; empty when it is."""

    @property
    def invalidator(self) -> Invalidator:
        return _NobodyToTell()

    def mount(self) -> None:
        """Listen, and mount when this process may. MountError when the place is none."""
        clear_left_mount(self._mountpoint)
        self._mountpoint = check_mountable(self._mountpoint)
        handles = Handles(self._options.key_folder)
        nfs = Nfs3(self._vfs, handles, read_only=self._options.read_only, clock=self._clock)
        self._server = NfsServer(
            nfs,
            handles,
            owner_uid=os.geteuid(),
            source=self._options.contents,
            contents_timeout_s=self._options.contents_timeout_s,
        )
        self.port = self._listening(self._server)
        words = mount_words(self._mountpoint, handles.export, self.port, read_only=self._options.read_only)
        self.command = " ".join(words)
        self.problem = _mounted(words) if os.geteuid() == 0 else "only root may mount"
        self._is_mounted = not self.problem
        if self.problem:
            _log.warning("it is served and not mounted: %s", self.problem)

    def _listening(self, server: NfsServer) -> int:
        """At the port that was asked for, or at any when somebody else has it."""
        try:
            return server.start(self._options.port)
        except OSError as error:
            if not self._options.port or error.errno not in (errno.EADDRINUSE, errno.EACCES):
                raise
            return server.start(0)

    def run(self) -> None:
        """Serve until `unmount`, or until somebody else unmounted it."""
        if self._server is None:
            raise MountError("mount first", hint="call mount() before run()")
        try:
            self._wait()
        finally:
            self._server.stop()
            with self._pipe_lock:
                os.close(self._stopping)
                os.close(self._stop)
                self._stop = -1

    def _wait(self) -> None:
        """Woken by `unmount`, and by the kernel when its table of mounts changes (proc_pid_mountinfo(5))."""
        waiting = select.poll()
        waiting.register(self._stopping, select.POLLIN)
        table = -1
        with contextlib.suppress(OSError):
            table = os.open(_MOUNT_TABLE, os.O_RDONLY)
            waiting.register(table, select.POLLERR | select.POLLPRI)
        try:
            while True:
                for descriptor, _events in waiting.poll(_LOOK_S * 1000):
                    if descriptor == self._stopping:
                        return
                if self._is_mounted and not is_mountpoint(self._mountpoint):
                    return
        finally:
            if table >= 0:
                os.close(table)

    def unmount(self, *, lazy: bool = False) -> None:
        """Unmount and end `run`. MountBusyError while somebody uses the mount."""
        if self._is_mounted and is_mountpoint(self._mountpoint):
            words = [_program("umount"), *(["-l"] if lazy and sys.platform == "linux" else []), str(self._mountpoint)]
            done = subprocess.run(words, capture_output=True, text=True, timeout=_MOUNT_TIMEOUT_S, check=False)
            if done.returncode and is_mountpoint(self._mountpoint):
                if "busy" in done.stderr:
                    raise MountBusyError(f"{self._mountpoint} is in use", hint="end who uses it, then unmount again")
                raise MountError(f"{self._mountpoint}: {done.stderr.strip()[:300]}", hint=f"umount {self._mountpoint}")
        with self._pipe_lock:
            if self._stop >= 0:
                os.write(self._stop, b"x")

    def close(self) -> None:
        """Give up a mount whose `run` was never called."""
        with contextlib.suppress(MountError, OSError):
            self.unmount(lazy=True)
        if self._server is not None:
            self._server.stop()

    def stats(self) -> FuseStats:
        server = self._server
        return FuseStats(
            requests={} if server is None else dict(server.counts),
            failures=0 if server is None else server.failures,
            notifications=0,
            overflows=0,
            cpu_s=0.0 if server is None else server.cpu_s(),
        )

    def end_waiting(self) -> None:
        """Calls that wait for contents are told to come again."""
        if self._server is not None:
            self._server.stop_waiting()


def clear_left_mount(mountpoint: Path) -> None:
    """Take a mount away that a former server left at `mountpoint`. Only the table of mounts is looked at: touching the
    directory would wait for a server that is gone."""
    if any(entry.mountpoint == str(mountpoint) and entry.fstype.startswith("nfs") for entry in mounts()):
        subprocess.run(
            [_program("umount"), "-f", "-l", str(mountpoint)], capture_output=True, timeout=_MOUNT_TIMEOUT_S, check=False
        )


def mount_words(mountpoint: Path, export: str, port: int, *, read_only: bool) -> list[str]:
    """The command that mounts it on this system."""
    options = ["vers=3", f"port={port}", f"mountport={port}", "ro" if read_only else "rw"]
    if sys.platform == "darwin":
        options += ["tcp", "nolocks", "locallocks", "resvport", "soft", f"actimeo={_ATTRIBUTES_S}"]
        return ["mount_nfs", "-o", ",".join(options), f"127.0.0.1:{export}", str(mountpoint)]
    # Not for ever: where the server does not come back, callers get an error after some minutes.
    options += [
        "soft",
        "timeo=600",
        "retrans=3",
        "proto=tcp",
        "mountproto=tcp",
        "nolock",
        "noacl",
        f"actimeo={_ATTRIBUTES_S}",
        "noatime",
        "nosuid",
        "nodev",
    ]
    return ["mount", "-t", "nfs", "-o", ",".join(options), f"127.0.0.1:{export}", str(mountpoint)]


def _program(name: str) -> str:
    found = shutil.which(name) or shutil.which(name, path="/sbin:/usr/sbin:/bin:/usr/bin")
    return found or name


def _mounted(words: list[str]) -> str:
    """Run the command; why it failed, or nothing."""
    try:
        done = subprocess.run(
            [_program(words[0]), *words[1:]], capture_output=True, text=True, timeout=_MOUNT_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)[:300]
    return "" if done.returncode == 0 else (done.stderr.strip() or f"{words[0]} failed")[:300]
