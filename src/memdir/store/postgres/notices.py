"""Telling the other server processes that a container changed, and hearing it from them: NOTIFY and LISTEN.

A notice is sent right after the commit, by a thread of its own that puts those of several commits into one message: inside
the transactions a NOTIFY would make all commits of the database wait for each other. A notice that is lost with its process
costs time and nothing else: who waits looks for itself before long. After a broken connection everybody is woken.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable
from typing import Final

import psycopg

from memdir.core.descriptors import wait_readable
from memdir.core.ids import new_id
from memdir.store.postgres.database import KEEP_ALIVE
from memdir.store.store import EVERY_CONTAINER

log = logging.getLogger(__name__)

CHANNEL: Final = "memdir_change"
_IDS_MAX: Final = 300
"""Of one message, which has at most 8,000 bytes; more of them wake everybody."""
_GATHER_S: Final = 0.01
"""The least time between two messages: a process that is busy sends at most a hundred a second, and others hear of a commit
later by no more than this."""
_RETRY_FIRST_S: Final = 0.1
_RETRY_MAX_S: Final = 5.0
_STOP_S: Final = 5.0


class Notices:
    """One connection that listens, one that speaks, a thread for each; `heard` is called on the first one's."""

    def __init__(self, url: str, heard: Callable[[int], None]) -> None:
        self._url = url
        self._heard = heard
        self._own = new_id()
        self._waiting: set[int] = set()
        self._condition = threading.Condition()
        self._stopping = threading.Event()
        self._wake_read, self._wake_write = os.pipe()
        self._speaker: threading.Thread | None = None
        self._listener: threading.Thread | None = None
        self.listening = threading.Event()
        """Set while notices of others arrive."""

    def listen(self) -> None:
        """Begin to hear the others. Calling it twice is allowed."""
        with self._condition:
            if self._listener is None:
                self._listener = threading.Thread(target=self._listen, name="memdir-listen", daemon=True)
                self._listener.start()

    def say(self, container_id: int) -> None:
        """Tell the others about a commit. Does not wait."""
        with self._condition:
            if self._stopping.is_set():
                return
            self._waiting.add(container_id if len(self._waiting) < _IDS_MAX else EVERY_CONTAINER)
            if self._speaker is None:
                self._speaker = threading.Thread(target=self._speak, name="memdir-notify", daemon=True)
                self._speaker.start()
            self._condition.notify_all()

    def close(self) -> None:
        """Say what is still to be said, and end the threads. Calling it twice is allowed."""
        with self._condition:
            if self._stopping.is_set():
                return
            self._stopping.set()
            self._condition.notify_all()
        os.write(self._wake_write, b"x")
        for thread in (self._speaker, self._listener):
            if thread is not None:
                thread.join(_STOP_S)
        if self._listener is None or not self._listener.is_alive():
            os.close(self._wake_read)
            os.close(self._wake_write)

    def _connected(self) -> psycopg.Connection[tuple[object, ...]]:
        return psycopg.connect(self._url, autocommit=True, **KEEP_ALIVE)

    def _speak(self) -> None:
        pause_s = _RETRY_FIRST_S
        while True:
            try:
                with self._connected() as connection:
                    while self._await_words():
                        self._say_waiting(connection)
                        pause_s = _RETRY_FIRST_S
                        self._stopping.wait(_GATHER_S)
                    return
            except psycopg.Error as error:
                log.info("other server processes cannot be told of changes: %s", error)
                if self._stopping.wait(pause_s):
                    return
                pause_s = min(_RETRY_MAX_S, pause_s * 2)

    def _await_words(self) -> bool:
        """Wait until there is something to say; False when there is not and we stop."""
        with self._condition:
            self._condition.wait_for(lambda: self._waiting or self._stopping.is_set())
            return bool(self._waiting)

    def _say_waiting(self, connection: psycopg.Connection[tuple[object, ...]]) -> None:
        with self._condition:
            ids, self._waiting = self._waiting, set()
        try:
            connection.execute("select pg_notify(%s, %s)", (CHANNEL, f"{self._own} {' '.join(map(str, sorted(ids)))}"))
        except BaseException:
            with self._condition:
                self._waiting |= ids
            raise

    def _listen(self) -> None:
        pause_s = _RETRY_FIRST_S
        while not self._stopping.is_set():
            try:
                with self._connected() as connection:
                    connection.execute(f"listen {CHANNEL}")
                    pause_s = _RETRY_FIRST_S
                    self.listening.set()
                    self._heard(EVERY_CONTAINER)  # whatever was missed
                    self._hear(connection)
            except psycopg.Error as error:
                log.info("changes made by other server processes are not heard: %s", error)
                if self._stopping.wait(pause_s):
                    return
                pause_s = min(_RETRY_MAX_S, pause_s * 2)
            finally:
                self.listening.clear()

    def _hear(self, connection: psycopg.Connection[tuple[object, ...]]) -> None:
        while not self._stopping.is_set():
            wait_readable(connection.fileno(), self._wake_read)
            for notice in connection.notifies(timeout=0):
                own, _, ids = notice.payload.partition(" ")
                if own != self._own:
                    for container_id in ids.split():
                        self._heard(int(container_id))
