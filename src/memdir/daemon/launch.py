"""Starting the daemon of a mount: in the background (a detached process that reports over a pipe) or in this process."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Final

from memdir.client.credentials import pinned
from memdir.core.background import start_background
from memdir.core.errors import MemdirError
from memdir.core.paths import app_paths
from memdir.daemon.registry import MountRecord, MountRegistry, MountSpec

__all__ = ["MountSpec", "StartError", "start"]

START_TIMEOUT_S: Final = 20.0


class StartError(MemdirError):
    """The daemon did not come up; the message is its own."""

    said_why = False
    """Whether it explained itself, so that its log is not needed."""


def start(spec: MountSpec, *, foreground: bool, timeout_s: float = START_TIMEOUT_S) -> MountRecord:
    """Mount `spec`. In the background it returns once the directory is usable; in the foreground when the mount has ended.

    BusyError when something is mounted there, StartError with the daemon's words when it fails.
    """
    registry = MountRegistry(app_paths())
    if foreground:
        return _run_here(registry, spec)
    with registry.exclusive():
        known = {record.id for record in registry.all()}
        record = registry.allocate(spec)
        try:
            _spawn(record, time.monotonic() + timeout_s)
        except BaseException as error:
            if record.id not in known and isinstance(error, StartError) and error.said_why:
                registry.discard(record)  # its log holds nothing that the error does not say
            elif record.id not in known:
                registry.remove(record.id)
            raise
        return registry.get(record.id)


def _run_here(registry: MountRegistry, spec: MountSpec) -> MountRecord:
    from memdir.core.log import log_to_stderr
    from memdir.daemon.lifecycle import MountDaemon

    os.environ.update(pinned(app_paths()))
    with registry.exclusive():
        known = {record.id for record in registry.all()}
        record = registry.allocate(spec)
        try:
            daemon = MountDaemon(app_paths(), record)
            daemon.prepare()
        except (MemdirError, OSError):
            if record.id not in known:
                registry.discard(record)
            raise
    log_to_stderr()
    daemon.serve()
    return registry.get(record.id)


def _spawn(record: MountRecord, deadline: float) -> None:
    log_file = Path(record.log_file)
    started = start_background(
        "memdir.daemon", (record.id,), log_file=log_file, deadline=deadline, environment=pinned(app_paths())
    )
    if started.ready:
        return
    if started.text is None:
        raise StartError("the mount did not come up in time", hint=f"look into {log_file}")
    message, _, hint = started.text.partition("\n")
    error = StartError(message or f"the daemon ended with exit code {started.exit_code}", hint=hint or f"look into {log_file}")
    error.said_why = bool(message and hint)
    raise error
