"""One thread for what is done behind searches: each thing once, at its time, in the order of their times."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Final

log = logging.getLogger(__name__)

_ASKED_MAX: Final = 10_000
"""Things that wait at a time; more are refused. What is refused is asked again by the next search."""
_JOIN_S: Final = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Task:
    due_s: float
    work: Callable[[], None]


class Worker:
    """The thread begins with the first thing to do and ends with `close`."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._changed = threading.Condition()
        self._tasks: dict[Hashable, _Task] = {}
        self._running: Hashable | None = None
        self._thread: threading.Thread | None = None
        self.closed = False

    def ask(self, key: Hashable, work: Callable[[], None], *, after_s: float = 0.0) -> None:
        """Do `work` once, `after_s` from now. What is asked again while it waits is done once."""
        with self._changed:
            if self.closed or key in self._tasks or len(self._tasks) >= _ASKED_MAX:
                return
            self._tasks[key] = _Task(due_s=time.monotonic() + after_s, work=work)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
                self._thread.start()
            self._changed.notify_all()

    def asked(self, key: Hashable) -> bool:
        """Whether it waits or is being done."""
        with self._changed:
            return key in self._tasks or self._running == key

    def settle(self, timeout_s: float) -> bool:
        """Wait until there is nothing to do; False when that took longer."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._tasks and self._running is None, timeout_s)

    def close(self) -> bool:
        """End after what is being done, which learns from `closed` to end soon. What waits is not done. Returns whether it
        ended in time."""
        with self._changed:
            self.closed = True
            self._tasks.clear()
            self._changed.notify_all()
            thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(_JOIN_S)
        return thread is None or not thread.is_alive()

    def _run(self) -> None:
        while True:
            with self._changed:
                task = self._next()
                if task is None:
                    return
            try:
                task.work()
            except Exception:
                if not self.closed:
                    log.exception("%s cannot do its work", self._name)
            with self._changed:
                self._running = None
                self._changed.notify_all()

    def _next(self) -> _Task | None:
        """Waits for the next thing to do; None after `close`. Holds the condition."""
        while not self.closed:
            now_s = time.monotonic()
            key = min(self._tasks, key=lambda one: self._tasks[one].due_s, default=None)
            if key is not None and self._tasks[key].due_s <= now_s:
                self._running = key
                return self._tasks.pop(key)
            self._changed.wait(None if key is None else self._tasks[key].due_s - now_s)
        return None
