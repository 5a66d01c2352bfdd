"""How long a call to the server is waited for, by somebody who waits for an answer."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, wait
from typing import TYPE_CHECKING, Final, TypeVar

if TYPE_CHECKING:
    from memdir.client.errors import ClientError

R = TypeVar("R")

ANSWER_S: Final = 2.0
"""A server that has not answered by then is taken for hanging …"""
STARTING_S: Final = 20.0
"""… but one that was started for this search reads its models first."""


class HangingError(Exception):
    """The server takes connections and answers nothing."""

    def __str__(self) -> str:
        return f"the server does not answer in {ANSWER_S:g} s"

    @property
    def told(self) -> ClientError:
        from memdir.client.errors import OfflineError

        return OfflineError("the server takes connections and does not answer", hint="`memdir server status`, `memdir logs`")


class Patience:
    """How long a server is waited for; whoever asks it says when that is longer."""

    def __init__(self) -> None:
        self._deadline_s = time.monotonic() + ANSWER_S

    def result(self, search: Future[R]) -> R:
        """What comes of the call; HangingError when nothing does in time."""
        while not search.done() and (left_s := self._deadline_s - time.monotonic()) > 0:
            wait([search], timeout=left_s)
        if not search.done():
            raise HangingError
        return search.result()

    def starting(self) -> None:
        """It is being started."""
        self._deadline_s = time.monotonic() + STARTING_S

    def more(self, wait_s: float) -> None:
        """It was asked to wait."""
        self._deadline_s = time.monotonic() + wait_s + ANSWER_S


def in_background(call: Callable[[], R]) -> Future[R]:
    """Run `call` in a thread that may outlive whoever asked; it ends with the time limit of the call."""
    future: Future[R] = Future()

    def run() -> None:
        try:
            future.set_result(call())
        except BaseException as error:  # noqa: BLE001  handed to whoever asks for the result
            future.set_exception(error)

    threading.Thread(target=run, name="grep-call", daemon=True).start()
    return future
