"""Worker processes beside the servers: they take documents through the pipeline and answer nobody.

For PostgreSQL only: an SQLite database belongs to the one server process, which works by itself. Each process loads the models
for itself. Several are children of one that starts those again that died; they end with it, however it ends.
"""

from __future__ import annotations

import argparse
import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from types import FrameType
from typing import Final

from memdir.core.errors import MemdirError, UsageError
from memdir.core.log import log_to_stderr
from memdir.core.paths import AppPaths, app_paths
from memdir.server.engine import Engine
from memdir.server.indexing.worker import STOP_S, Worker, leave
from memdir.server.storage import ENV_DATABASE_URL, StorageOptions, opened_store
from memdir.store.contents.backends import ENV_BLOBS

log = logging.getLogger(__name__)

RESTART_FIRST_S: Final = 0.5
RESTART_MAX_S: Final = 30.0
_LIVED_S: Final = 60.0
"""A child that lived this long did not die of how it was started: the next one starts at once."""
_KILL_S: Final = STOP_S + 5.0
_LOOK_S: Final = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerOptions:
    """How many processes, and over which store."""

    count: int = 1
    storage: StorageOptions = field(default_factory=StorageOptions)
    parent_fd: int | None = None
    """Closed by the system when the parent ends, however it ends."""


def run(options: WorkerOptions, paths: AppPaths | None = None) -> None:
    """Work until SIGTERM or SIGINT. UsageError on SQLite; StorageError when the database cannot be reached."""
    paths = paths or app_paths()
    url = options.storage.url()
    if url is None:
        raise UsageError(
            "separate workers need PostgreSQL: an SQLite database belongs to the one server process",
            hint=f"`memdir server run --workers N` works inside the server; {ENV_DATABASE_URL} names a PostgreSQL database",
        )
    log_to_stderr()
    logging.getLogger("memdir").propagate = False
    stopping = threading.Event()

    def stop(_number: int, _frame: FrameType | None) -> None:
        stopping.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    if options.count > 1:
        _supervise(options, url, stopping)
    else:
        _work(options, paths, stopping)


def _work(options: WorkerOptions, paths: AppPaths, stopping: threading.Event) -> None:
    """One worker, in this process."""
    if options.parent_fd is not None:
        threading.Thread(target=_end_with, args=(options.parent_fd, stopping), name="memdir-parent", daemon=True).start()
    with opened_store(options.storage, paths) as store:
        engine = Engine(store, paths.models_dir)
        worker = Worker(store, engine)
        engine.start(worker.models_changed)
        worker.start()
        log.info("worker %d takes jobs", os.getpid())
        broken = False
        while not stopping.wait(_LOOK_S) and not broken:
            broken = engine.settled and not engine.ready
        if not worker.stop() or not engine.settled:
            leave()
        engine.close()
        if broken:
            raise MemdirError("the models cannot be loaded, so nothing can be indexed", hint="run `memdir doctor`")
    log.info("stopped")


def _end_with(parent_fd: int, stopping: threading.Event) -> None:
    os.read(parent_fd, 1)
    log.info("the process that started this worker ended")
    stopping.set()


def _supervise(options: WorkerOptions, url: str, stopping: threading.Event) -> None:
    """Keep `count` workers alive, each a process of its own."""
    reading, writing = os.pipe()
    environment = os.environ | {ENV_DATABASE_URL: url}  # never among the arguments, which other users can read
    if options.storage.blobs is not None:
        environment[ENV_BLOBS] = options.storage.blobs
    children = [_Child(reading, environment, stopping) for _ in range(options.count)]
    try:
        stopping.wait()
        for child in children:
            child.terminate()
        deadline_s = time.monotonic() + _KILL_S
        for child in children:
            child.join(deadline_s)
    finally:
        os.close(writing)
        os.close(reading)
    log.info("stopped")


class _Child:
    """A worker process that is started again when it dies."""

    def __init__(self, parent_fd: int, environment: dict[str, str], stopping: threading.Event) -> None:
        self._parent_fd = parent_fd
        self._environment = environment
        self._stopping = stopping
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._thread = threading.Thread(target=self._keep, name="memdir-child", daemon=True)
        self._thread.start()

    def _keep(self) -> None:
        pause_s = RESTART_FIRST_S
        while True:
            began_s = time.monotonic()
            with self._lock:
                if self._stopping.is_set():
                    return
                self._process = subprocess.Popen(
                    [sys.executable, "-m", "memdir.server.indexing.worker_processes", "--parent-fd", str(self._parent_fd)],
                    pass_fds=(self._parent_fd,),
                    env=self._environment,
                    stdin=subprocess.DEVNULL,
                )
            code = self._process.wait()
            if self._stopping.is_set():
                return
            pause_s = RESTART_FIRST_S if time.monotonic() - began_s > _LIVED_S else pause_s
            log.error("worker %d ended with %d; another one starts in %g s", self._process.pid, code, pause_s)
            self._stopping.wait(pause_s)
            pause_s = min(RESTART_MAX_S, pause_s * 2)

    def terminate(self) -> None:
        """Ask it to end."""
        with self._lock:
            if self._process is not None:
                self._process.terminate()

    def join(self, deadline_s: float) -> None:
        """Wait for its end; past the deadline it is killed, which costs nothing but the step under way."""
        self._thread.join(max(0.0, deadline_s - time.monotonic()))
        if self._thread.is_alive() and self._process is not None:
            log.warning("worker %d did not end in time and is killed", self._process.pid)
            self._process.kill()
            self._thread.join()


def main(arguments: Sequence[str] | None = None) -> int:
    """A child of `_supervise`; the exit code is 0 after a signal, 2 when it could not start."""
    parser = argparse.ArgumentParser(
        prog="python -m memdir.server.indexing.worker_processes", description="One worker over MEMDIR_DATABASE_URL."
    )
    parser.add_argument("--parent-fd", type=int, help="a pipe that ends when the parent does")
    options = parser.parse_args(arguments)
    try:
        run(WorkerOptions(parent_fd=options.parent_fd))
    except MemdirError as error:
        sys.stderr.write(f"{error.message}{f' ({error.hint})' if error.hint else ''}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
