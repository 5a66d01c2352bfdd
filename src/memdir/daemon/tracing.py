"""The traces of one mount: what is done in it becomes events in the log of this machine."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from memdir.core.clock import Clock
from memdir.fs.operations import Operation
from memdir.traces.actors import Actors
from memdir.traces.collect import Collector, Workers
from memdir.traces.log import TraceLog, is_ignored

log = logging.getLogger(__name__)

QUEUE_MAX: Final = 100_000
"""Operations that wait; more are left out, and the log of the mount says how many."""
HELD_MAX_BYTES: Final = 64 << 20
"""Contents in the queue; of what comes beyond, nothing but the operation is kept."""
_STEP_S: Final = 0.5
_QUIET_S: Final = 0.2
_URGENT: Final = 20_000
"""So many operations are made into events also while the mount is busy: the thread would make every caller wait."""
_STYLE_SHARE: Final = 0.01
"""Of the time at most goes into reading the log for the profile: it runs beside the requests of the mount."""
QUERY_MAX_CHARS: Final = 200


class MountTraces:
    """`take` is called in the request loop; a thread makes events of what it was told. OSError of the log is said once."""

    def __init__(self, folder: Path, root: str, clock: Clock) -> None:
        self._log = TraceLog(folder)
        self._root = root
        self._clock = clock
        self._queue: deque[Operation] = deque()
        self._actors = Actors()
        self._workers = Workers()
        self._collector = Collector(root)
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._work, name="memdir-traces", daemon=True)
        self._is_failing = False
        self._lock = threading.Lock()
        """Of the queue and the next two."""
        self._held_bytes = 0
        self._missed = 0
        self._style: tuple[str, ...] = ()
        self._style_due_s = 0.0
        self._last_s = 0.0
        self._last_session = root
        """Searches go through another door; they are of whoever was at work last."""

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """What is waiting becomes events."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join(5.0)

    def who(self, pid: int) -> tuple[str, str] | None:
        """See `fs.fuse.tracing.Recorder`."""
        if self._actors.is_left_out(pid):
            return None
        actor, session = self._actors.who(pid)
        return actor, f"{self._root} {session}"

    def keeps_contents(self, actor: str, session_key: str) -> bool:
        """See `fs.fuse.tracing.Recorder`."""
        return not self._workers.is_bulk(session_key, actor)

    def take(self, operation: Operation) -> None:
        """One that the mount tells of."""
        self._workers.note(operation)
        self._put(operation)
        self._last_s = time.monotonic()

    def _put(self, operation: Operation) -> None:
        with self._lock:
            if len(self._queue) >= QUEUE_MAX:
                self._missed += 1
                return
            if self._held_bytes + _size(operation) > HELD_MAX_BYTES:
                operation = replace(operation, before=None, after=None)
            self._held_bytes += _size(operation)
            self._queue.append(operation)

    def _got(self) -> Operation:
        with self._lock:
            operation = self._queue.popleft()
            self._held_bytes -= _size(operation)
            return operation

    def searched(self, query: str, mode: str, path: str, matched: int) -> None:
        """A `memdir grep` in the mount."""
        self._put(
            Operation(
                kind="search", at_ms=self._clock.now_ns() // 1_000_000, pid=0, actor="memdir grep",
                session_key=self._last_session, path=path, raw="memdir grep",
                fields={"search_type": mode, "query": query[:QUERY_MAX_CHARS], "files_matched": matched},
            )
        )  # fmt: skip

    def working_style(self) -> Sequence[str]:
        """Lines of the profile, from what was done in this mount. Of a long log not at every change of the profile."""
        from memdir.traces.consolidate import consolidate
        from memdir.traces.engram import engrams
        from memdir.traces.habits import working_style

        began_s = time.monotonic()
        if began_s < self._style_due_s:
            return self._style
        try:
            memory = consolidate(engrams(one for one in self._log.events() if one.root == self._root))
            self._style = tuple(working_style(memory))
        except OSError as error:
            log.warning("what was done in the mount cannot be read: %s", error)
        ended_s = time.monotonic()
        self._style_due_s = ended_s + (ended_s - began_s) / _STYLE_SHARE
        return self._style

    def _work(self) -> None:
        while not self._stopping.wait(_STEP_S):
            if self._may_work():
                self._step(everything=False)
        self._step(everything=True)

    def _may_work(self) -> bool:
        """Nobody waits for the mount, or too much has come together."""
        is_quiet = time.monotonic() - self._last_s > _QUIET_S
        return is_quiet or len(self._queue) > _URGENT or self._held_bytes > HELD_MAX_BYTES // 2

    def _step(self, *, everything: bool) -> None:
        try:
            patterns = self._log.ignored
            while self._queue and (everything or self._may_work()):
                operation = self._got()
                self._last_session = operation.session_key
                if not is_ignored(operation.path, patterns):
                    self._collector.take(operation)
            if self._queue and not everything:
                return
            events = self._collector.settled(self._clock.now_ns() // 1_000_000, everything=everything)
            self._log.add(events)
            self._is_failing = False
            if self._missed:
                log.warning("%d operations came faster than they could be recorded, and are missing", self._missed)
                self._missed = 0
        except OSError as error:
            if not self._is_failing:
                log.warning("what is done in the mount cannot be recorded: %s", error)
            self._is_failing = True
        except Exception:
            log.exception("what was done in the mount was not recorded")


def _size(operation: Operation) -> int:
    return len(operation.before or b"") + len(operation.after or b"")
