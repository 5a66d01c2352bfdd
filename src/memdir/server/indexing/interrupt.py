"""Ending a computation on another thread: a time limit, and cancellation, for code that never looks up.

Cutting a document into passages or reading facts in it is plain Python over text that strangers wrote. It holds no lock and
writes nothing, so it may be ended between any two instructions: CPython raises an exception in a thread of our choice
(docs.python.org/3/c-api/threads.html, PyThreadState_SetAsyncExc). What stays inside one call of a C function, such as one
regular expression, ends no sooner than that call; only a process of its own could be ended there.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


class _Interrupted(BaseException):
    """Raised in the thread by `Interruptible.stop`; never leaves `Interruptible.run`."""


class Interruptible:
    """Runs one computation that any other thread may end. Used once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._thread_id = 0
        self._error: Exception | None = None

    def run(self, compute: Callable[[], T]) -> T:
        """`compute()`, which must neither hold a lock nor write anything; raises what `stop` was given when it was stopped."""
        try:
            with self._lock:
                self._thread_id = threading.get_ident()
            try:
                result = compute()
            finally:
                self._end()
        except _Interrupted:
            self._end()
            assert self._error is not None
            raise self._error from None
        if self._error is not None:
            raise self._error
        return result

    def stop(self, error: Exception) -> bool:
        """End the computation with `error`. Returns whether it was under way; the first one counts."""
        with self._lock:
            if not self._thread_id or self._error is not None:
                return False
            self._error = error
            _raise_in(self._thread_id, _Interrupted)
            return True

    def _end(self) -> None:
        """From here on nobody interrupts this thread, and what is still on its way is taken back."""
        with self._lock:
            thread_id, self._thread_id = self._thread_id, 0
        if thread_id and self._error is not None:
            _raise_in(thread_id, None)


def _raise_in(thread_id: int, exception: type[BaseException] | None) -> None:
    """Have CPython raise `exception` in a thread soon; None takes back one that was not raised yet."""
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread_id), ctypes.py_object(exception) if exception else None)
