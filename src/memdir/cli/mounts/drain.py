"""Asking a daemon to end, and showing how it pushes what is left. Ctrl-C ends the wait; what is left is said all the same."""

from __future__ import annotations

import threading
from typing import Any, Final

from memdir.cli.output import Progress
from memdir.cli.text import stderr_is_terminal
from memdir.core.errors import MemdirError
from memdir.daemon.control import ControlClient
from memdir.daemon.registry import MountRecord

_ANSWER_EXTRA_S: Final = 15.0
_LOOK_S: Final = 0.2
_LOOK_TIMEOUT_S: Final = 2.0


class Asking:
    """One `stop`, asked in a thread of its own, so that meanwhile others can be."""

    def __init__(self, record: MountRecord, *, drain_timeout_s: float, force: bool, lazy: bool) -> None:
        self._control = ControlClient(record.socket_file)
        self._arguments: dict[str, Any] = {"drain_timeout_s": drain_timeout_s, "force": force, "lazy": lazy}
        self._timeout_s = drain_timeout_s + _ANSWER_EXTRA_S
        self._answered = threading.Event()
        self._answer: dict[str, Any] = {}
        self._error: Exception | None = None
        self.interrupted = False

    def wait(self) -> dict[str, Any]:
        """The daemon's answer; MemdirError when it refuses or is gone. A second Ctrl-C is a KeyboardInterrupt."""
        threading.Thread(target=self._ask, name="stop", daemon=True).start()
        with Progress("pushing:", noun="change") as progress:
            try:
                self._watch(progress)
            except KeyboardInterrupt:
                self.interrupted = True
                self._cut()
        if self._error is not None:
            raise self._error
        return self._answer

    def _ask(self) -> None:
        try:
            self._answer = self._control.call("stop", self._timeout_s, **self._arguments)
        except Exception as error:  # noqa: BLE001  raised where it is waited for
            self._error = error
        self._answered.set()

    def _watch(self, progress: Progress) -> None:
        before: int | None = None
        while not self._answered.wait(_LOOK_S if stderr_is_terminal() else None):
            state = self._look("draining")
            if state is None:
                continue
            pushed = int(state.get("pushed") or 0)
            before = pushed if before is None else before
            progress.update(pushed - before, pushed - before + int(state.get("left") or 0))

    def _cut(self) -> None:
        """Repeated until it is taken: before the mount is let go there is no drain to end."""
        while not self._answered.is_set():
            cut = self._look("cut_drain")
            self._answered.wait(None if cut is not None and cut.get("cut") else _LOOK_S)

    def _look(self, op: str) -> dict[str, Any] | None:
        """A question beside; None when it is not answered, which the answer to `stop` will explain."""
        try:
            return self._control.call(op, _LOOK_TIMEOUT_S)
        except MemdirError:
            return None
