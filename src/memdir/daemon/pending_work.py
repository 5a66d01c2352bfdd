"""What the control socket can ask about work that is left: the queue, what is parked, conflicts that wait for a decision."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

from memdir.core.clock import iso_ms
from memdir.core.errors import UsageError
from memdir.daemon.arguments import number
from memdir.daemon.syncing import Syncing

if TYPE_CHECKING:
    from memdir.daemon.control_server import Operation
    from memdir.sync.conflicts.copies import Conflict
    from memdir.sync.push.pending import Waiting

Json = dict[str, Any]

QUEUE_VIEW_MAX: Final = 200
_QUEUE_MAX: Final = 10_000
_CONFLICTS_MAX: Final = 1000
_SETTLE_TIMEOUT_MAX_S: Final = 60.0


class PendingWork:
    """Thread-safe: every operation may run in several threads at once."""

    def __init__(self, syncing: Syncing) -> None:
        self._syncing = syncing

    def operations(self) -> dict[str, Operation]:
        return {
            "queue": self._queue,
            "retry": self._retry,
            "conflicts": self._conflicts,
            "keep_both": self._keep_both,
            "push": self._push,
        }

    def queue_view(self, limit: int = QUEUE_VIEW_MAX) -> Json:
        """What waits, since when and why; quick, asks nobody."""
        engine = self._syncing.engine
        if engine is None:
            return {"rows": [], "waiting": 0, "parked": 0, "server": None, "problem": self._syncing.error}
        status = engine.status()
        link = status.link
        return {
            "rows": [_row_json(row) for row in engine.left.waiting(limit)],
            "waiting": status.queue_length,
            "parked": status.parked,
            "server": {
                "url": link.url,
                "online": link.online,
                "since": iso_ms(link.since_ms) if link.since_ms else None,
                "error": link.error,
                "hint": link.hint,
            },
            "problem": status.trouble,
        }

    def _queue(self, args: Json) -> Json:
        limit = number(args, "limit", QUEUE_VIEW_MAX, 1, _QUEUE_MAX)
        self._syncing.wait_engine()
        return self.queue_view(int(limit))

    def _retry(self, args: Json) -> Json:
        path = _path(args, default=None)
        engine = self._syncing.wait_engine()
        return {"requeued": 0 if engine is None else engine.retry(path)}

    def _conflicts(self, args: Json) -> Json:
        limit = number(args, "limit", _CONFLICTS_MAX, 1, _CONFLICTS_MAX)
        engine = self._syncing.wait_engine()
        return {"rows": [] if engine is None else [_conflict_json(one) for one in engine.left.conflicts(int(limit))]}

    def _keep_both(self, args: Json) -> Json:
        path = _path(args)
        engine = self._syncing.wait_engine()
        return {"settled": engine is not None and path is not None and engine.left.keep_both(path)}

    def _push(self, args: Json) -> Json:
        """Push what stands at and below some paths now; which of them the server has."""
        paths = args.get("paths")
        if not isinstance(paths, list):
            raise UsageError("paths must be a list")
        checked = [path for each in paths if (path := _path({"path": each})) is not None]
        timeout_s = number(args, "timeout_s", _SETTLE_TIMEOUT_MAX_S, 0.0, _SETTLE_TIMEOUT_MAX_S)
        engine = self._syncing.wait_engine()
        deadline_s = time.monotonic() + timeout_s
        pushed = []
        for path in checked if engine is not None else []:
            assert engine is not None
            engine.flush(path, max(0.0, deadline_s - time.monotonic()))
            if engine.left.is_pushed(path):
                pushed.append(path)
        return {"pushed": pushed}


def _path(args: Json, default: str | None = "/") -> str | None:
    path = args.get("path", default)
    if path is not None and not (isinstance(path, str) and path.startswith("/")):
        raise UsageError(f"{path!r} is no path in the mount")
    return path


def _row_json(row: Waiting) -> Json:
    return {
        "path": row.path,
        "from": row.source,
        "op": row.op,
        "state": row.state,
        "attempts": row.attempts,
        "since": iso_ms(row.since_ms) if row.since_ms else None,
        "waits_s": round(max(0.0, time.time() - row.since_ms / 1000), 3) if row.since_ms else None,
        "next_try_s": None if row.next_try_s is None else round(row.next_try_s, 3),
        "why": row.why,
    }


def _conflict_json(one: Conflict) -> Json:
    return {
        "copy": one.copy,
        "original": one.original,
        "when": iso_ms(one.at_ms) if one.at_ms else one.day,
        "host": one.host,
        "base_revision": one.base_revision,
        "remote_revision": one.remote_revision,
    }
