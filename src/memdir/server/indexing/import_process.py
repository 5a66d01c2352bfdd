"""Imports are read by a process of their own, so that they take neither the interpreter nor the memory of the one that answers.

The server starts it when many documents wait and it ends when none do: cutting, finding names and running the models need both
processors for minutes, and what the models need of memory is given back. It runs at a lower priority of the system, and on no
more processors than it may have. Edits stay with the server, which finds them within milliseconds.

The two share the store. Over the pipe to its standard input the process learns that there is something new, and that the server
ends; over its standard output it names the containers in which it committed something.
"""

from __future__ import annotations

import argparse
import contextlib
import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Final

from memdir.core.errors import MemdirError, UsageError
from memdir.core.heap import give_back
from memdir.core.log import log_to_file
from memdir.core.paths import AppPaths, app_paths
from memdir.server.engine import Engine
from memdir.server.indexing.leases import owner_of
from memdir.server.indexing.worker import STOP_S, Worker, leave
from memdir.server.storage import ENV_DATABASE_URL, StorageOptions, shared_store
from memdir.store.contents.backends import ENV_BLOBS
from memdir.store.store import EVERY_CONTAINER, Store

log = logging.getLogger(__name__)

ENV_CORES: Final = "MEMDIR_INDEXING_CORES"
"""Processors that imports are read on; all of them when it is not set."""
JOBS_MIN: Final = 64
"""Jobs that are worth a process; fewer are done by the server before one has read its models."""
NICE: Final = 10
IDLE_S: Final = 10.0
"""How long the process waits for more before it ends."""
_LOOK_S: Final = 0.5
_RESTART_S: Final = 5.0
"""After one that could not start."""
_KILL_S: Final = STOP_S + 3.0


class ImportProcess:
    """Starts the process when it is needed."""

    def __init__(self, storage: StorageOptions, store: Store, engine: Engine, *, count: int, log_file: Path | None) -> None:
        """The indexes of `engine` follow what it writes. `count` as for `Worker`, 0: never."""
        self._storage = storage
        self._store = store
        self._engine = engine
        self._count = count
        self._log_file = log_file
        self._stopping = threading.Event()
        self._news = threading.Event()
        self._process: subprocess.Popen[bytes] | None = None
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._keep, name="memdir-imports", daemon=True)

    def start(self) -> None:
        """Begin to look whether it is needed."""
        if self._count:
            self._store.listen(self._noticed)
            self._news.set()
            self._thread.start()

    def at_work(self) -> bool:
        """Whether the process takes jobs now."""
        return self._ready.is_set()

    def stop(self) -> bool:
        """End it; what it was at is repeated after the next start."""
        self._stopping.set()
        self._news.set()
        process = self._process
        if process is not None and process.stdin is not None:
            with contextlib.suppress(OSError):
                process.stdin.close()
        if self._thread.is_alive():
            self._thread.join(_KILL_S)
        return not self._thread.is_alive()

    def _noticed(self, _container_id: int) -> None:
        self._news.set()
        process = self._process
        if process is not None and process.stdin is not None and threading.current_thread() is not self._thread:
            with contextlib.suppress(OSError, ValueError):  # full: it has enough to wake up for; closed: it is ending
                os.write(process.stdin.fileno(), b"\n")

    def _keep(self) -> None:
        while not self._stopping.is_set():
            self._news.clear()
            try:
                if self._store.jobs.imports(at_least=JOBS_MIN):
                    self._run()
                    continue
            except (MemdirError, OSError):
                log.exception("the process that reads imports could not be started; the server reads them itself")
                self._stopping.wait(_RESTART_S)
            self._news.wait()
            self._stopping.wait(_LOOK_S)  # a batch is posted in parts

    def _run(self) -> None:
        """One life of the process."""
        environment = os.environ | {ENV_DATABASE_URL: self._storage.url() or ""}
        if self._storage.blobs is not None:
            environment[ENV_BLOBS] = self._storage.blobs
        command = [sys.executable, "-m", "memdir.server.indexing.import_process", "--count", str(self._count)]
        if self._log_file is not None:
            command += ["--log-file", str(self._log_file)]
        began_s = time.monotonic()
        with subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            os.set_blocking(process.stdin.fileno(), False)
            self._process = process
            try:
                self._listen(process.stdout)
                if self._stopping.is_set():
                    process.wait(_KILL_S)
            except subprocess.TimeoutExpired:
                process.kill()
            finally:
                self._ready.clear()
                self._process = None
            code = process.wait()
        if code and not self._stopping.is_set():
            died = self._store.jobs.release_all(owner_of(process.pid))
            log.warning("the process that reads imports ended with %d over %d documents", code, died)
            if time.monotonic() - began_s < _RESTART_S:
                self._stopping.wait(_RESTART_S)
        self._store.notify(EVERY_CONTAINER)
        give_back()

    def _listen(self, told: IO[bytes]) -> None:
        for line in told:
            if line == b"ready\n":
                self._ready.set()
                continue
            container_id = int(line)
            self._engine.words.follow(container_id)
            self._store.notify(container_id)


def cores() -> int | None:
    """What ENV_CORES says, None when it says nothing. UsageError for anything but a whole number from 1 on."""
    said = os.environ.get(ENV_CORES, "").strip()
    if not said:
        return None
    if not said.isascii() or not said.isdigit() or not int(said):
        raise UsageError(f"{ENV_CORES} must be a number of processors from 1 on, not {said!r}")
    return int(said)


def _give_way() -> None:
    """Everything else on this machine goes first."""
    os.nice(NICE)
    wanted, allowed = cores(), sorted(os.sched_getaffinity(0))
    if wanted is not None and wanted < len(allowed):
        os.sched_setaffinity(0, allowed[-wanted:])


def _work(paths: AppPaths, count: int) -> None:
    stopping = threading.Event()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the server's
    signal.signal(signal.SIGTERM, lambda *_: stopping.set())
    told = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)  # whatever prints: the pipe is for containers
    lock = threading.Lock()

    def tell(line: str) -> None:
        with lock, contextlib.suppress(BrokenPipeError):
            told.write(f"{line}\n".encode())

    with shared_store(StorageOptions(), paths) as store:
        engine = Engine(store, paths.models_dir, searches=False)
        worker = Worker(store, engine, count=count, only_imports=True)
        store.listen(lambda container_id: tell(str(container_id)))
        threading.Thread(target=_wake, args=(worker, stopping), name="memdir-news", daemon=True).start()
        engine.start(worker.wake)
        worker.start()
        if engine.wait_settled(60.0) and engine.ready:
            tell("ready")
            idle_s = time.monotonic()
            while not stopping.wait(_LOOK_S) and time.monotonic() - idle_s < IDLE_S:
                if store.jobs.imports(at_least=1):
                    idle_s = time.monotonic()
        if not worker.stop():
            leave()
        engine.stop()
        engine.close()


def _wake(worker: Worker, stopping: threading.Event) -> None:
    while os.read(0, 4096):
        worker.wake()
    stopping.set()


def main(arguments: Sequence[str] | None = None) -> int:
    """Started by a server. The exit code is 0 after all was read or the server ended."""
    parser = argparse.ArgumentParser(
        prog="python -m memdir.server.indexing.import_process", description="Read what a server imports."
    )
    parser.add_argument("--count", type=int, default=1, help="threads that index, and as many that embed")
    parser.add_argument("--log-file", type=Path)
    options = parser.parse_args(arguments)
    if options.log_file is not None:
        log_to_file(options.log_file)
    logging.getLogger("memdir").propagate = False
    try:
        _give_way()
        _work(app_paths(), options.count)
    except MemdirError as error:
        log.error("%s", error.message)  # noqa: TRY400  no bug
        return 2
    return 0


if __name__ == "__main__":
    ended = main()
    logging.shutdown()
    os._exit(ended)  # the models' own threads are not waited for
