"""The life of a mount's process.

Up: lock, open the filesystem (replaying its journal), clear a dead mount, mount, answer requests, report ready; only then,
in the background, the sync engine with its heavy imports. Down (a signal, `memdir unmount`, or somebody's umount): drain,
unmount, stop the engine, close the filesystem. A kill at any moment is a legal way down too: everything acknowledged is in
the journal.
"""

from __future__ import annotations

import dataclasses
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, Final

from memdir import __version__
from memdir.core.clock import SystemClock
from memdir.core.errors import MemdirError
from memdir.core.paths import AppPaths
from memdir.core.processes import processes_inside
from memdir.daemon import agent_hint
from memdir.daemon.control_server import ControlServer
from memdir.daemon.recovery import lost_database
from memdir.daemon.registry import MountLock, MountRecord, MountRegistry
from memdir.daemon.service import MountService
from memdir.daemon.stopping import StopEvent
from memdir.daemon.syncing import Syncing
from memdir.fs.cache.filesystem import SqliteFs
from memdir.fs.cache.tables import is_missing
from memdir.fs.fuse.session import FuseOptions, FuseSession, FuseStats, MountBusyError, Profile, clear_dead_mount
from memdir.fs.views import ProfileFolder, ProfileView, SiblingVfs, StatusView, ViewVfs
from memdir.sync.untracked_changes import note_unseen_changes

if TYPE_CHECKING:
    from memdir.fs.fuse.tracing import Tracer
    from memdir.fs.nfs.session import NfsSession
    from memdir.fs.vfs import Vfs

log = logging.getLogger(__name__)

SWITCH_INTERVAL_S: Final = 0.0001
"""A sync thread gives the interpreter to the request loop within a tenth of a millisecond (5 ms by default). Beside one that
computes, a small answer takes 0.2 ms so, and 0.6 with 0.5 ms; the thread gets as much done for a second of processor."""
_UNMOUNT_TRIES: Final = 20
_LET_GO_TRIES: Final = 5
_UNMOUNT_PAUSE_S: Final = 0.1
_TELL_S: Final = 5.0
"""How long the end waits for the answer to whoever asked for it."""
_LOOP_END_S: Final = 5.0
_USERS_LOGGED_MAX: Final = 10


class MountDaemon:
    """One mount: `prepare`, then `serve`."""

    def __init__(self, paths: AppPaths, record: MountRecord) -> None:
        self._paths = paths
        self._record = record
        self._registry = MountRegistry(paths)
        self._stop = StopEvent()
        self._drain_timeout_s = record.drain_timeout_s
        self._users_timeout_s = _LOOP_END_S
        self._is_let_go = False
        self._is_told = threading.Event()
        """Not set while whoever asked for the end is still to be told how it went."""
        self._is_told.set()
        self._undo: list[Callable[[], None]] = []

    def prepare(self) -> None:
        """Everything up to the mount itself. On an error everything is given back, and it is raised."""
        try:
            self._prepare()
        except BaseException:
            self._give_back()
            raise

    def _prepare(self) -> None:
        record, folder = self._record, Path(self._record.cache_dir)
        self._lock = MountLock.acquire(record.lock_file)
        self._undo.append(self._lock.release)
        if clear_dead_mount(Path(record.path)):
            log.warning("cleared the dead mount at %s", record.path)
        if record.used and is_missing(folder):  # a new one would look like a memory whose files were all deleted
            raise lost_database(folder, record.name)
        self._fs = SqliteFs.open(folder, read_only=record.read_only, sync=record.sync)
        self._undo.append(self._fs.close)
        if not record.sync and not record.read_only:
            note_unseen_changes(folder)
        profile, pages = ProfileView(), ProfileFolder()
        self._syncing = Syncing(self._paths, record, self._fs, profile, pages=pages, on_memory_paths=self._keep_memory_paths)
        self._service = MountService(
            record,
            self._fs,
            self._syncing,
            started_s=time.monotonic(),
            control=self,
            disk_trouble=lambda: self._fs.trouble,
            clear_free_space=self._fs.clear_free_space,
        )
        status = StatusView(status=self._service.status_view, queue=self._service.queue_view, errors=self._service.errors_view)
        views = ViewVfs(self._fs, [profile, pages, status])
        siblings = SiblingVfs(views) if record.siblings else None
        self._syncing.siblings = siblings
        self._session = self._nfs(siblings or views) if record.nfs else self._fuse(siblings or views)
        self._fs.connect(self._session.invalidator)
        views.connect(self._session.invalidator)
        if siblings is not None:
            siblings.connect(self._session.invalidator)
        self._session.mount()
        self._undo.append(self._session.close)
        self._control = ControlServer(Path(record.socket_file), self._service.operations())
        self._control.start()
        self._undo.append(self._control.stop)
        self._record = dataclasses.replace(
            record,
            pid=os.getpid(),
            used=True,
            left=None,
            started_at_ms=time.time_ns() // 1_000_000,
            **self._served(),
        )
        self._registry.save(self._record)
        agent_hint.put(self._record, {record.path for record in self._registry.all() if record.state == "alive"})
        self._undo.append(self._take_out_hint)

    def _fuse(self, vfs: Vfs) -> FuseSession:
        record = self._record
        options = FuseOptions(
            tracer=self._tracer(vfs) if record.traces else None,
            profile=Profile(record.profile),
            passthrough=self._fs if record.passthrough else None,
            read_only=record.read_only,
            source=f"memdir:{record.name}",
            contents=self._syncing.contents,
            contents_timeout_s=record.fetch_timeout_s,
        )
        return FuseSession(vfs, Path(record.path), options)

    def _nfs(self, vfs: Vfs) -> NfsSession:
        from memdir.fs.nfs.session import NfsOptions, NfsSession

        record = self._record
        options = NfsOptions(
            key_folder=Path(record.cache_dir),
            port=record.nfs_port,
            read_only=record.read_only,
            contents=self._syncing.contents,
            contents_timeout_s=record.fetch_timeout_s,
        )
        return NfsSession(vfs, Path(record.path), options)

    def _served(self) -> dict[str, Any]:
        """Where NFS is served, and how it is mounted when it is not."""
        session = self._session
        if isinstance(session, FuseSession):
            return {}
        command = session.command if session.problem else ""
        return {"nfs_port": session.port, "nfs_command": command, "nfs_problem": session.problem}

    def _tracer(self, vfs: Vfs) -> Tracer:
        """What tells of the mount's operations; they are recorded from now on."""
        from memdir.daemon.tracing import MountTraces
        from memdir.fs.fuse.tracing import Tracer

        traces = MountTraces(self._paths.traces_dir, self._record.path, SystemClock())
        traces.start()
        self._undo.append(traces.stop)
        self._service.traces = traces
        self._syncing.working_style = traces.working_style
        return Tracer(vfs, self._fs.paths_of, traces, SystemClock())

    def serve(self, on_ready: Callable[[], None] = lambda: None) -> None:
        """Answer until the mount ends; call from the main thread."""
        sys.setswitchinterval(SWITCH_INTERVAL_S)
        self._stop.listen(self._on_signal, signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
        loop = threading.Thread(target=self._loop, name="fuse", daemon=True)
        loop.start()
        log.info("memdir %s: %s is mounted at %s (pid %d)", __version__, self._record.name, self._record.path, os.getpid())
        on_ready()
        self._syncing.start()
        self._stop.wait_for_signals()
        self._end(loop)

    def request_stop(self, *, drain_timeout_s: float, users_timeout_s: float = _LOOP_END_S) -> None:
        """End the mount soon, with `users_timeout_s` for those who still use it; returns at once."""
        self._drain_timeout_s, self._users_timeout_s = drain_timeout_s, users_timeout_s
        self._stop.set()

    def let_go(self, *, lazy: bool, drain_timeout_s: float) -> bool:
        """Unmount while everything goes on behind it; when that is done the daemon ends. False, and nothing has changed, while
        somebody uses the mount. With `lazy` it is out of the tree at once, and its users end the daemon by leaving."""
        before_s, self._drain_timeout_s = self._drain_timeout_s, drain_timeout_s
        if not lazy:
            self._is_told.clear()  # the daemon ends when the mount is gone, which is before anything can be told
        for _ in range(_LET_GO_TRIES):  # a look into the folder that is over in a moment is no reason to refuse
            try:
                self._session.unmount(lazy=lazy)
            except MountBusyError:
                self._stop.wait(_UNMOUNT_PAUSE_S)
            else:
                self._take_out_hint()
                self._is_let_go = True
                if lazy:
                    self._record = dataclasses.replace(self._record, detached=True)
                    self._registry.save(self._record)
                return True
        self._drain_timeout_s = before_s
        self._is_told.set()
        return False

    def told(self) -> None:
        """Whoever let the mount go has the answer; the daemon may close what it was made of."""
        self._is_told.set()

    def cut_drain(self) -> bool:
        """Whoever unmounted waits no longer for what is pushed: end now. False, and nothing happens, while it is mounted."""
        if self._is_let_go:
            self._drain_timeout_s = 0.0
            self._syncing.hurry_stop()
        return self._is_let_go

    def fuse_stats(self) -> FuseStats:
        """What the request loop did so far."""
        return self._session.stats()

    def _loop(self) -> None:
        try:
            self._session.run()
            log.info("the mount is gone")
        except Exception:
            log.exception("the request loop failed")
        finally:
            self._stop.set()

    def _on_signal(self, _number: int, _frame: FrameType | None) -> None:
        if self._stop.is_set():
            self._drain_timeout_s = 0.0  # asked twice: do not wait any longer
            self._syncing.hurry_stop()
        self._stop.set()

    def _keep_memory_paths(self, paths: tuple[str, ...] | None) -> None:
        self._record = dataclasses.replace(self._record, memory_paths=paths)
        try:
            self._registry.save(self._record)
        except OSError as error:
            log.warning("the record was not changed: %s", error)

    def _take_out_hint(self) -> None:
        agent_hint.take_out(Path(self._record.cache_dir))

    def _end(self, loop: threading.Thread) -> None:
        self._take_out_hint()
        self._syncing.drain(self._drain_timeout_s)
        self._is_told.wait(_TELL_S)
        self._session.end_waiting()
        self._unmount(loop)
        self._undo.remove(self._session.close)
        left = self._syncing.stop()
        if left:
            log.warning("%d changes are left for the next mount", left)
        if Path(self._record.cache_dir).is_dir():  # whoever deleted the data does not want the record back
            self._registry.save(dataclasses.replace(self._record, pid=None, detached=False, left=left))
        self._give_back()
        log.info("ended")

    def _unmount(self, loop: threading.Thread) -> None:
        """Unmount; when somebody still uses it after 2 s, take it out of the tree and let them finish for at most 5 s."""
        for _ in range(_UNMOUNT_TRIES if self._users_timeout_s else 1):
            try:
                self._session.unmount()
                break
            except MountBusyError:
                loop.join(timeout=_UNMOUNT_PAUSE_S)
            except (MemdirError, OSError) as error:
                log.warning("unmount: %s", error)
                break
        else:
            users = ", ".join(map(str, processes_inside(self._record.path, but=os.getpid())[:_USERS_LOGGED_MAX]))
            log.warning("%s is in use by %s; detaching it", self._record.path, users or "somebody else's process")
            try:
                self._session.unmount(lazy=True)
            except (MemdirError, OSError) as error:
                log.warning("unmount: %s", error)
        loop.join(timeout=self._users_timeout_s)
        if loop.is_alive():
            log.warning("files of the mount are still open; their users will see it disconnected")

    def _give_back(self) -> None:
        while self._undo:
            step = self._undo.pop()
            try:
                step()
            except (MemdirError, OSError) as error:
                log.warning("while ending: %s", error)
