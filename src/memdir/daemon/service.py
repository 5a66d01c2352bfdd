"""What the control socket and `/.memdir/` can ask of a mount: status, counters, grep, sync, queue, retry, stop."""

from __future__ import annotations

import os
import shlex
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

from memdir import __version__
from memdir.core.clock import iso_ms
from memdir.core.errors import BusyError, UsageError
from memdir.daemon.arguments import number
from memdir.daemon.grep import Grep
from memdir.daemon.pending_work import QUEUE_VIEW_MAX, PendingWork
from memdir.daemon.registry import MountRecord
from memdir.daemon.syncing import Syncing

if TYPE_CHECKING:
    from memdir.daemon.control_server import Operation
    from memdir.daemon.tracing import MountTraces
    from memdir.fs.fuse.session import FuseStats
    from memdir.fs.tree import SyncTree
    from memdir.sync.engine import Engine
    from memdir.sync.engine_status import EngineStatus

Json = dict[str, Any]

_SECTOR_BYTES: Final = 512
"""What st_blocks counts in, whatever the filesystem (stat(2)). A sparse file takes less than its size."""
_SYNC_TIMEOUT_MAX_S: Final = 24 * 3600.0
_SYNC_TIMEOUT_S: Final = 60.0
_POLL_S: Final = 0.1
_LOOK_S: Final = 0.02
_FLUSH_SHOWN_MAX: Final = 20
_STATUS_WAIT_S: Final = 2.0
_DRAIN_MAX_S: Final = 24 * 3600.0


class MountControl(Protocol):
    """Ending the mount and asking its driver, as `lifecycle.MountDaemon` does it."""

    def fuse_stats(self) -> FuseStats: ...

    def let_go(self, *, lazy: bool, drain_timeout_s: float) -> bool: ...

    def told(self) -> None: ...

    def cut_drain(self) -> bool: ...

    def request_stop(self, *, drain_timeout_s: float, users_timeout_s: float = ...) -> None: ...


class MountService:
    """Thread-safe: every operation may run in several threads at once."""

    def __init__(
        self,
        record: MountRecord,
        tree: SyncTree,
        syncing: Syncing,
        *,
        started_s: float,
        control: MountControl,
        disk_trouble: Callable[[], str | None] = lambda: None,
        clear_free_space: Callable[[], None] = lambda: None,
    ) -> None:
        """`disk_trouble` says what keeps the mount itself from writing; `clear_free_space` is the filesystem's."""
        self._clear = clear_free_space
        self._record = record
        self._syncing = syncing
        self._started_s = started_s
        self._control = control
        self._disk_trouble = disk_trouble
        self._pending_work = PendingWork(syncing)
        self._grep = Grep(record.name, tree, syncing)
        self._tree = tree
        self.traces: MountTraces | None = None
        """Where searches are recorded, when what is done in the mount is."""
        self._waiting = threading.Event()
        """Never set: something to wait on with a bound while asking the server again."""

    def operations(self) -> dict[str, Operation]:
        """By the names of the protocol."""
        return {
            "status": self._status,
            "counters": self._counters,
            "grep": self._searched,
            "sync": self._sync,
            "ignored": self._ignored,
            **self._pending_work.operations(),
            "confirm": self._confirm,
            "memory_paths": self._memory_paths,
            "upload_again": self._upload_again,
            "flush": self._flush,
            "listed": self._listed,
            "clear_free_space": self._clear_free_space,
            "stop": self._stop,
            "draining": self._draining,
            "cut_drain": lambda _: {"cut": self._control.cut_drain()},
        }

    # --- status --------------------------------------------------------------------------------------------------

    def _status(self, args: Json) -> Json:
        """With `kept_here` also how much stays on this machine, which walks those folders."""
        engine = self._syncing.wait_engine(_STATUS_WAIT_S)  # before, nobody knows what waits
        answer = self.status_view() | {"fuse": self._counters({})}
        if args.get("kept_here"):
            found = _kept(engine)
            files = sum(one["files"] for one in found)
            answer["kept_here"] = {"folders": len(found), "files": files, "special": self._tree.special_count()}
        return answer

    def _ignored(self, args: Json) -> Json:
        """What stays on this machine: the folders (`folders`), or why one path does (`path`)."""
        engine = self._syncing.wait_engine(_STATUS_WAIT_S)
        if engine is None:
            return {"folders": [], "reason": None}
        engine.take_back_released()
        path = args.get("path")
        if path is None:
            return {"folders": _kept(engine), "reason": None}
        held = engine.artifacts.holding(str(path))
        reason = None if held is None else f"{held.reason}: {held.path}"
        if reason is None and self._tree.is_local_only(str(path)):
            reason = "a name that the system or an editor leaves behind, or a pattern of .memdirignore"
        return {"folders": [], "reason": reason}

    def _counters(self, _: Json) -> Json:
        """What the kernel asked since the mount started; cheap, for measurements."""
        stats = self._control.fuse_stats()
        return {
            "requests": dict(stats.requests),
            "failures": stats.failures,
            "notifications": stats.notifications,
            "overflows": stats.overflows,
            "cpu_s": round(stats.cpu_s, 6),
        }

    def status_view(self) -> Json:
        """The mount at a glance; quick, asks nobody."""
        record = self._record
        answer: Json = {
            "name": record.name,
            "path": record.path,
            "pid": os.getpid(),
            "uptime_s": round(time.monotonic() - self._started_s, 3),
            "version": __version__,
            "log_file": record.log_file,
            "sync": record.sync,
            "read_only": record.read_only,
            "profile": record.profile,
            "passthrough": record.passthrough,
            "cache_bytes": _folder_bytes(Path(record.cache_dir)),
            "queue_length": 0,
            "parked": 0,
            "conflicts": 0,
            "processing": 0,
            "passages_left": None,
            "passages_per_s": None,
            "processing_left_s": None,
            "failed": 0,
            "merged": 0,
            "held_deletions": 0,
            "other_life": False,
            "last_synced_at": None,
            "profile_version": 0,
            "trouble": self._disk_trouble(),
            "absent_files": 0,
            "absent_bytes": 0,
            "prefetching": False,
            "lost": 0,
            "cache_limit_bytes": record.cache_limit_bytes,
            **self._syncing.memory_paths.view(),
            "server": {"url": None, "online": False, "since": None, "error": self._syncing.error},
        }
        if answer["cache_bytes"] is None:
            answer["trouble"] = f"the data folder {record.cache_dir} was deleted: this mount has all that is left, copy it out"
        engine = self._syncing.engine
        if engine is not None:
            status = engine.status()
            link = status.link
            answer |= {
                "queue_length": status.queue_length,
                "parked": status.parked,
                "conflicts": status.conflicts,
                "processing": status.progress.files,
                "passages_left": status.progress.passages_left,
                "passages_per_s": _rounded(status.progress.passages_per_s),
                "processing_left_s": _rounded(status.progress.left_s),
                "failed": status.failed,
                "merged": status.merged,
                "last_synced_at": iso_ms(status.last_synced_ms) if status.last_synced_ms else None,
                "profile_version": status.profile_version,
                "trouble": answer["trouble"] or status.trouble,
                "absent_files": status.absent.files,
                "absent_bytes": status.absent.size_bytes,
                "prefetching": status.prefetching,
                "lost": status.lost,
                "server": {
                    "url": link.url,
                    "online": link.online,
                    "since": iso_ms(link.since_ms) if link.since_ms else None,
                    "error": link.error,
                    "hint": link.hint,
                    "api": status.api,
                },
            } | _held_json(status)
        return answer

    def queue_view(self) -> Json:
        return self._pending_work.queue_view()

    def errors_view(self) -> Mapping[str, str]:
        """Parked paths, and those the server could not read, and why."""
        engine = self._syncing.engine
        if engine is None:
            return {}
        failed = {
            file.path: f"the server keeps it and cannot search it: {file.error}\n`memdir retry` lets it try again"
            for file in engine.inflight.failed(QUEUE_VIEW_MAX)
        }
        return failed | {row.path: row.error for row in engine.parked_rows(QUEUE_VIEW_MAX)}

    # --- sync ----------------------------------------------------------------------------------------------------

    def _confirm(self, _: Json) -> Json:
        """Delete here what is missing at the server and was held back; how many paths that are."""
        engine = self._syncing.wait_engine()
        return {"confirmed": 0 if engine is None else engine.confirm_deletions()}

    def _upload_again(self, _: Json) -> Json:
        """Put at the server again what is missing there and was held back; how many paths that are."""
        engine = self._syncing.wait_engine()
        return {"uploaded": 0 if engine is None else engine.upload_again()}

    def _searched(self, args: Json) -> Json:
        answer = self._grep.run(args)
        if self.traces is not None:
            paths = args.get("paths") or ["/"]
            self.traces.searched(str(args.get("q")), str(args.get("mode", "semantic")), str(paths[0]), len(answer["hits"]))
        return answer

    def _clear_free_space(self, _: Json) -> Json:
        """What was deleted is nowhere in the files of this mount any more."""
        self._clear()
        return {}

    def _listed(self, args: Json) -> Json:
        """Whether all names that the server has are here, waited for unless it cannot be reached."""
        timeout_s = number(args, "timeout_s", 0.0, 0.0, _SYNC_TIMEOUT_MAX_S)
        engine = self._syncing.wait_engine(timeout_s)
        return {"complete": engine is not None and engine.wait_caught_up(timeout_s)}

    def _flush(self, args: Json) -> Json:
        """Push what waits at and below a path; with `seq` also wait until what the server did up to there is shown."""
        path, timeout_s = args.get("path", "/"), number(args, "timeout_s", _SYNC_TIMEOUT_S, 0.0, _SYNC_TIMEOUT_MAX_S)
        if not (isinstance(path, str) and path.startswith("/")):
            raise UsageError(f"{path!r} is no path in the mount")
        seq = number(args, "seq", 0, 0, float(1 << 62))
        engine = self._syncing.wait_engine()
        if engine is None:
            raise BusyError(self._syncing.error or "sync is still starting", hint=f"see `memdir logs {self._record.name}`")
        self._syncing.bring_server()
        deadline_s = time.monotonic() + timeout_s
        while engine.seen_seq < seq and time.monotonic() < deadline_s and engine.link.state().online:
            self._waiting.wait(_LOOK_S)
        waiting = engine.flush(path, max(0.0, deadline_s - time.monotonic()), limit=_FLUSH_SHOWN_MAX)
        problem = self._disk_trouble() or engine.status().trouble or engine.link.state().error
        return {"waiting": waiting, "seen": engine.seen_seq >= seq and not waiting, "problem": problem}

    def _memory_paths(self, args: Json) -> Json:
        """Read facts in these paths from now on; the server is told as soon as it is there."""
        paths = args.get("paths")
        if not (isinstance(paths, list) and all(isinstance(path, str) and path.startswith("/") for path in paths)):
            raise UsageError("paths must be a list of absolute paths")
        self._syncing.want_memory_paths(tuple(paths))
        return {}

    def _sync(self, args: Json) -> Json:
        """Push what waits at and below `path`; with `wait` until it is pushed and all of the container is indexed."""
        scope = args.get("path") or "/"
        if not (isinstance(scope, str) and scope.startswith("/")):
            raise UsageError(f"{scope!r} is no path in the mount")
        timeout_s = number(args, "timeout_s", _SYNC_TIMEOUT_S, 0.0, _SYNC_TIMEOUT_MAX_S)
        engine = self._syncing.wait_engine()
        if engine is None and not self._syncing.enabled:
            raise UsageError(f"{self._record.name} is mounted without sync", hint="mount it again without --no-sync")
        if engine is None:
            logs = f"memdir logs {shlex.quote(self._record.path)}"
            raise BusyError(self._syncing.error or "sync is still starting", hint=f"see `{logs}`")
        self._syncing.bring_server()
        deadline_s = time.monotonic() + timeout_s
        waiting = engine.flush(scope, timeout_s if args.get("wait") else 0.0)
        searchable = False
        while args.get("wait") and not waiting:
            searchable = self._all_done(engine)
            if searchable or time.monotonic() >= deadline_s or not engine.link.state().online:
                break
            self._waiting.wait(_POLL_S)
            waiting = engine.flush(scope, max(0.0, deadline_s - time.monotonic()))
        status = engine.status()
        return {
            "queue_length": status.queue_length,
            "parked": status.parked,
            "drained": status.queue_length == 0 if scope == "/" else not waiting,
            "parked_here": engine.left.parked_under(scope),
            "pushed": engine.left.progress()[1],
            "searchable": searchable,
            "online": status.link.online,
            "problem": self._disk_trouble() or status.trouble or status.link.error,
        } | _held_json(status)

    def _all_done(self, engine: Engine) -> bool:
        from memdir.client.errors import ClientError

        try:
            return engine.link.call(lambda client: client.processing_count(self._record.name)) == 0
        except ClientError:
            return False

    # --- stop ----------------------------------------------------------------------------------------------------

    def _stop(self, args: Json) -> Json:
        """Unmount, push what is left, say how much that is; the daemon ends right after the answer.

        `busy` says that somebody uses the mount: nothing has changed then. With `lazy` it is out of the tree, and ends with
        its last user (`left` is not known before). With `force` nothing is waited for.
        """
        default_s = self._record.drain_timeout_s
        drain_timeout_s = number(args, "drain_timeout_s", default_s, 0.0, _DRAIN_MAX_S)
        if args.get("force"):
            left = self._syncing.drain(0.0)
            self._control.request_stop(drain_timeout_s=0.0, users_timeout_s=0.0)
            return {"left": left}
        lazy = bool(args.get("lazy"))
        if not self._control.let_go(lazy=lazy, drain_timeout_s=drain_timeout_s):
            return {"left": None, "busy": True}
        if lazy:
            return {"left": None, "detached": True}
        try:
            left, told = self._drained(drain_timeout_s)
        finally:
            self._control.told()
        self._control.request_stop(drain_timeout_s=0.0)
        return {"left": left} | told

    def _drained(self, timeout_s: float) -> tuple[int | None, Json]:
        """Push what is left: how much still is then, and what there is to say of it."""
        before = self._draining({})["pushed"]
        left = self._syncing.drain(timeout_s)
        engine = self._syncing.engine
        told: Json = {"pushed": self._draining({})["pushed"] - before}
        if engine is not None:
            status = engine.status()
            told |= _held_json(status) | {"parked": status.parked, "why_left": _why_left(status) if left else None}
        return left, told

    def _draining(self, _: Json) -> Json:
        """How far a drain is: what waits, and what was pushed since the mount began."""
        engine = self._syncing.engine
        left, pushed = (0, 0) if engine is None else engine.left.progress()
        return {"left": left, "pushed": pushed}


def _why_left(status: EngineStatus) -> str | None:
    """What keeps changes from being pushed; None for nothing but the time."""
    link = status.link
    if not link.online:
        since = f" since {iso_ms(link.since_ms)}" if link.since_ms else ""
        return f"offline{since}: {link.error or 'the server was not reached'}"
    return status.trouble


def _held_json(status: EngineStatus) -> Json:
    return {"held_deletions": status.held_deletions, "other_life": status.other_life}


def _kept(engine: Engine | None) -> list[Json]:
    """The folders that stay on this machine, and how many files each holds."""
    if engine is None:
        return []
    artifacts = engine.artifacts
    return [{"path": one.path, "reason": one.reason, "files": artifacts.files_in(one)} for one in artifacts.met()]


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 1)


def _folder_bytes(folder: Path) -> int | None:
    """What the files of a cache take on the disk; None when somebody deleted the folder."""
    total = 0
    try:
        scan = os.scandir(folder)
    except FileNotFoundError:
        return None
    with scan as entries:
        for entry in entries:
            try:
                if entry.is_dir(follow_symlinks=False):
                    total += _folder_bytes(Path(entry.path)) or 0
                else:
                    total += entry.stat(follow_symlinks=False).st_blocks * _SECTOR_BYTES
            except FileNotFoundError:
                continue  # a journal segment that was just retired
    return total
