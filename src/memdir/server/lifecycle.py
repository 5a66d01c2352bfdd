"""One server process: lock the folder, open the store, listen, say so, work until a signal, close in order."""

from __future__ import annotations

import asyncio
import ipaddress
import json
import logging
import os
import signal
import socket
import ssl
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

import uvicorn

import memdir
from memdir.core.descriptors import raise_descriptor_limit
from memdir.core.errors import BusyError, MemdirError, UsageError
from memdir.core.heap import few_arenas
from memdir.core.log import log_to_file, log_to_stderr
from memdir.core.paths import AppPaths, app_paths, write_private
from memdir.core.weights import told_weights
from memdir.memory.model_reader import from_environment as memory_reader
from memdir.retrieval.embed.choice import check_environment
from memdir.retrieval.rerank import reranker_from_environment
from memdir.server.app import create_app
from memdir.server.background.blob_collector import BlobCollector
from memdir.server.background.housekeeping import Housekeeper
from memdir.server.background.reread_facts import ask_when_rules_changed
from memdir.server.background.trigram_indexes import FOLDER_NAME, TrigramIndexes
from memdir.server.dispatcher import SWITCH_INTERVAL_S, Dispatcher
from memdir.server.engine import Engine
from memdir.server.http.audit_log import Auditor
from memdir.server.http.guard_policy import GuardPolicy
from memdir.server.http.protocol import BoundedProtocol
from memdir.server.indexing.import_process import ImportProcess
from memdir.server.indexing.import_process import cores as check_cores
from memdir.server.indexing.worker import Worker, leave
from memdir.server.storage import StorageOptions, opened_store
from memdir.store.store import Store

log = logging.getLogger(__name__)

PORT_DEFAULT: Final = 8848
ORG_LOCAL: Final = "local"
GRACE_S: Final = 5
"""How long requests under way may take to end after SIGTERM; long polls end at once."""
CONCURRENCY_MAX: Final = 512
BACKLOG: Final = 128
KEEP_ALIVE_S: Final = 75


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerOptions:
    """How to run. `port` None: the default one, or any free one when it is taken."""

    host: str = "127.0.0.1"
    port: int | None = None
    ready_fd: int | None = None
    foreground: bool = False
    hosts: Sequence[str] = ()
    storage: StorageOptions = field(default_factory=StorageOptions)
    trusted_proxies: Sequence[str] = ()
    """Addresses or networks whose `X-Forwarded-*` are believed."""
    workers: int = 1
    """Threads that index, and as many that embed; 0: other processes do that work."""
    requests_per_minute: int | None = None
    """For keys without a limit of their own; None: unlimited."""
    tls_cert: str | None = None
    """A PEM file with the certificate and those above it; with `tls_key` the server speaks TLS alone."""
    tls_key: str | None = None


def run(options: ServerOptions, paths: AppPaths | None = None) -> None:
    """Run until SIGTERM or SIGINT. BusyError when another server owns the data folder or the wanted port is taken."""
    paths = paths or app_paths()
    few_arenas()
    raise_descriptor_limit()
    with _report(options.ready_fd) as ready, _tls_checked(options):
        _logging(options, paths)
        sys.setswitchinterval(SWITCH_INTERVAL_S)
        with opened_store(options.storage, paths) as store, _listening(options) as listener:
            bootstrap(store, paths, _url(options, listener))
            asyncio.run(_serve(options, paths, store, listener, ready))


def is_loopback(host: str) -> bool:
    """Whether nobody but this machine reaches a server that listens on `host`."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


@contextmanager
def _tls_checked(options: ServerOptions) -> Iterator[None]:
    """UsageError when certificate and key cannot be used, before anything else happens."""
    if (options.tls_cert is None) != (options.tls_key is None):
        raise UsageError("TLS needs a certificate and its key", hint="give both --tls-cert and --tls-key")
    if options.tls_cert is not None:
        try:
            ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(options.tls_cert, options.tls_key, lambda: "")
        except (OSError, ssl.SSLError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise UsageError(
                f"the certificate {options.tls_cert} with the key {options.tls_key} cannot be used: {reason}",
                hint="both are PEM files, the key without a passphrase",
            ) from error
    yield


class _Ready:
    """The pipe to whoever started us: `ready`, or the text of an error."""

    def __init__(self, fd: int | None) -> None:
        self._fd = fd

    def say(self, text: str) -> None:
        """Write and close; only the first call counts."""
        if self._fd is None:
            return
        fd, self._fd = self._fd, None
        try:
            os.write(fd, text.encode("utf-8", "replace") + b"\n")
        except BrokenPipeError:
            log.info("whoever started the server did not wait for it")
        finally:
            os.close(fd)


@contextmanager
def _report(fd: int | None) -> Iterator[_Ready]:
    ready = _Ready(fd)
    try:
        yield ready
    except MemdirError as error:
        ready.say(f"{error.message} ({error.hint})" if error.hint else error.message)
        raise
    except Exception as error:
        ready.say(f"{type(error).__name__}: {error}")
        raise


def _logging(options: ServerOptions, paths: AppPaths) -> None:
    if options.foreground:
        log_to_stderr()
    else:
        log_to_file(paths.state_dir / "server.log")
    ours = logging.getLogger("memdir")
    ours.propagate = False  # a library that configures the root logger must not print our lines a second time
    framework = logging.getLogger("uvicorn.error")
    framework.setLevel(logging.WARNING)
    framework.handlers = list(ours.handlers)
    framework.propagate = False


@contextmanager
def _listening(options: ServerOptions) -> Iterator[socket.socket]:
    """A bound socket; without a wanted port the default one, else any free one."""
    family = socket.AF_INET6 if ":" in options.host else socket.AF_INET
    wanted = [options.port] if options.port is not None else [PORT_DEFAULT, 0]
    # asyncio switches Nagle's algorithm off only for sockets that say they are TCP; with it, each answer costs 40 ms.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        for port in wanted:
            try:
                listener.bind((options.host, port))
                listener.listen(BACKLOG)
                break
            except OSError as error:
                if port == wanted[-1]:
                    raise BusyError(
                        f"cannot listen on {options.host} port {port}: {error.strerror}", hint="choose another --port"
                    ) from error
        yield listener
    finally:
        listener.close()


def _url(options: ServerOptions, listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    if host in ("0.0.0.0", "::"):  # noqa: S104
        host = "127.0.0.1"
    scheme = "https" if options.tls_cert else "http"
    return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"


def bootstrap(store: Store, paths: AppPaths, url: str) -> None:
    """Make sure that this user's credentials file holds a key that works here, and says where."""
    secret = _stored_key(paths)
    if secret is None or store.keys.authenticate(secret) is None:
        _, secret = store.keys.create(org_id=ORG_LOCAL, name="local user")
        log.info("made a new API key and wrote it to %s", paths.credentials_file)
    text = json.dumps({"url": url, "api_key": secret}, indent=2) + "\n"
    write_private(paths.credentials_file, text.encode())


def _stored_key(paths: AppPaths) -> str | None:
    try:
        stored = json.loads(paths.credentials_file.read_bytes())
    except FileNotFoundError:
        return None
    except ValueError:
        log.warning("%s is not JSON and is written anew", paths.credentials_file)
        return None
    key = stored.get("api_key") if isinstance(stored, dict) else None
    return key if isinstance(key, str) and key else None


class _Uvicorn(uvicorn.Server):
    """Says when it answers and when it is going to end, and ends long polls before it waits for requests under way. Signals are
    the caller's. Sleeps while nobody asks: uvicorn's own loop looks ten times a second whether it should end."""

    def __init__(
        self, config: uvicorn.Config, dispatcher: Dispatcher, started: Callable[[], None], ending: Callable[[], None]
    ) -> None:
        super().__init__(config)
        self._dispatcher = dispatcher
        self._started = started
        self._ending = ending
        self._stopped = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._started()

    async def main_loop(self) -> None:
        await self.on_tick(0)  # for the headers of each answer
        await self._stopped.wait()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        # First: who finds a server.json and nobody who answers takes that for a crash, and starts the server again.
        self._ending()
        self._dispatcher.close()
        await super().shutdown(sockets)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Uvicorn would raise the signal again when it is done, and end the process before the store is closed."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stop)
        try:
            yield
        finally:
            for number in (signal.SIGTERM, signal.SIGINT):
                loop.remove_signal_handler(number)
                signal.signal(number, signal.SIG_IGN)

    def _stop(self) -> None:
        self.should_exit = True
        self._stopped.set()


async def _serve(options: ServerOptions, paths: AppPaths, store: Store, listener: socket.socket, ready: _Ready) -> None:
    dispatcher = Dispatcher()
    dispatcher.attach()
    check_environment()
    with_model = memory_reader() is not None  # one that is named wrong ends the start and not every document
    told_weights()
    engine = Engine(store, paths.models_dir, reranker=reranker_from_environment())
    check_cores()
    imports = ImportProcess(
        options.storage, store, engine, count=options.workers,
        log_file=None if options.foreground else paths.state_dir / "imports.log",
    )  # fmt: skip
    worker = Worker(store, engine, count=options.workers, crowded=lambda: dispatcher.crowded, imports_elsewhere=imports.at_work)
    collector = BlobCollector(store)
    housekeeper = Housekeeper(store, lambda: ask_when_rules_changed(store, paths.server_dir, with_model=with_model))
    trigrams = TrigramIndexes(store, paths.server_dir / FOLDER_NAME)
    engine.trigrams = trigrams
    store.listen(dispatcher.notify)
    hosts = [*options.hosts, *([] if options.host in ("0.0.0.0", "::") else [options.host])]  # noqa: S104
    auditor = Auditor(store)
    policy = GuardPolicy.over(
        store,
        dispatcher,
        hosts=hosts,
        trusted_proxies=options.trusted_proxies,
        requests_per_minute=options.requests_per_minute,
        auditor=auditor,
    )
    config = uvicorn.Config(
        create_app(store, dispatcher, engine, policy=policy),
        http=BoundedProtocol,
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=False,
        proxy_headers=False,
        limit_concurrency=CONCURRENCY_MAX,
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=GRACE_S,
        ssl_certfile=options.tls_cert,
        ssl_keyfile=options.tls_key,
    )
    server = _Uvicorn(config, dispatcher, lambda: _announce(options, paths, listener, ready), lambda: _withdraw(paths))
    engine.start(worker.models_changed)
    worker.start()
    imports.start()
    collector.start()
    housekeeper.start()
    trigrams.start()
    auditor.start()
    try:
        await server.serve(sockets=[listener])
    finally:
        _withdraw(paths)
        stopped = [
            await asyncio.to_thread(thread.stop)
            for thread in (auditor, imports, worker, collector, housekeeper, engine, trigrams)
        ]
        if not all(stopped) or not engine.settled:
            leave()
        dispatcher.shutdown()
        await asyncio.to_thread(engine.close)
        log.info("stopped")


def _announce(options: ServerOptions, paths: AppPaths, listener: socket.socket, ready: _Ready) -> None:
    """Requests are answered now: server.json, then the ready pipe."""
    url = _url(options, listener)
    if not options.tls_cert and not is_loopback(options.host):
        log.warning(
            "listening on %s without TLS: keys and contents can be read on the way; use --tls-cert and --tls-key, or a proxy "
            "that speaks TLS",
            options.host,
        )
    state = {
        "url": url,
        "pid": os.getpid(),
        "data_dir": str(paths.server_dir),
        "version": memdir.__version__,
        "started_at_ms": time.time_ns() // 1_000_000,
    }
    if options.tls_cert:
        state["cert_file"] = os.path.abspath(options.tls_cert)
    write_private(paths.server_state_file, (json.dumps(state, indent=2) + "\n").encode())
    log.info("listening on %s, data in %s", url, paths.server_dir)
    ready.say("ready")


def _withdraw(paths: AppPaths) -> None:
    """Take server.json away if it is ours."""
    try:
        state = json.loads(paths.server_state_file.read_bytes())
    except (FileNotFoundError, ValueError):
        return
    if isinstance(state, dict) and state.get("pid") == os.getpid():
        paths.server_state_file.unlink(missing_ok=True)
