"""`memdir server run|start|stop|status`: the local server, one per user."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from memdir.cli.command import EXIT_NOTHING, EXIT_OK, Command, Parser, bounded_int
from memdir.cli.output import Output
from memdir.core.errors import BusyError

if TYPE_CHECKING:
    from memdir.client.local import ServerInfo
    from memdir.server.storage import StorageOptions

WORKERS_MAX: Final = 16


def _no_options(_parser: Parser) -> None:
    """The common ones are enough."""


def _configure_run(parser: Parser) -> None:
    parser.add_argument("--host", metavar="ADDRESS", default="127.0.0.1", help="the address to listen on (default: 127.0.0.1)")
    parser.add_argument(
        "--port", metavar="N", type=bounded_int(0, 65535), help="the port to listen on (default: 8848, or a free one)"
    )
    parser.add_argument(
        "--allowed-host", metavar="NAME", action="append", default=[], help="a further host name to be called by"
    )
    parser.add_argument(
        "--workers", metavar="N", type=bounded_int(0, WORKERS_MAX), default=1,
        help="threads that take documents through the pipeline (default: 1; 0: `memdir server worker` does it)",
    )  # fmt: skip
    parser.add_argument("--tls-cert", metavar="FILE", help="speak TLS with this certificate (PEM, with those above it)")
    parser.add_argument("--tls-key", metavar="FILE", help="the certificate's key (PEM, without a passphrase)")
    parser.add_argument(
        "--trusted-proxy", metavar="ADDRESS", action="append", default=[],
        help="believe X-Forwarded-For and -Host of this address or network; repeatable",
    )  # fmt: skip
    parser.add_argument(
        "--rate-limit", metavar="N", type=bounded_int(1, 10**9), help="requests a minute for keys without a limit of their own"
    )
    add_storage_options(parser)


def add_storage_options(parser: Parser) -> None:
    """Which store a command works on."""
    parser.add_argument(
        "--blobs", metavar="URL", help="where large contents are kept: s3://bucket/prefix or file:///folder (or MEMDIR_BLOBS)"
    )
    parser.add_argument(
        "--database-url",
        metavar="URL",
        help="a PostgreSQL database, instead of SQLite in the data folder (or MEMDIR_DATABASE_URL, which no other user sees)",
    )
    parser.add_argument("--database-url-file", metavar="FILE", type=Path, help="a file that holds this URL with its password")


def storage_of(args: argparse.Namespace) -> StorageOptions:
    """What `add_storage_options` got."""
    from memdir.server.storage import StorageOptions

    return StorageOptions(database_url=args.database_url, database_url_file=args.database_url_file, blobs=args.blobs)


def _start(_args: argparse.Namespace, out: Output) -> int:
    from memdir.client.local import ensure_server, running_server
    from memdir.core.paths import app_paths

    paths = app_paths()
    before = running_server(paths)
    server = before or ensure_server(paths)
    if out.json:
        out.document(describe(server) | {"started": before is None})
    else:
        out.line(f"{'already running' if before else 'started'} at {server.url} (pid {server.pid})")
    return EXIT_OK


def _stop(_args: argparse.Namespace, out: Output) -> int:
    from memdir.client.local import stop_server
    from memdir.core.paths import app_paths

    stopped = stop_server(app_paths())
    if out.json:
        out.document({"stopped": stopped, "running": False})
    elif stopped:
        out.line("stopped; mounts go on offline until a search, `memdir sync` or the next mount starts it again")
    else:
        out.note("the server was not running")
    return EXIT_OK if stopped else EXIT_NOTHING


def _status(_args: argparse.Namespace, out: Output) -> int:
    from memdir.cli.search.remote import server_log_file
    from memdir.client.credentials import configured
    from memdir.client.local import running_server
    from memdir.core.paths import app_paths

    paths = app_paths()
    server = running_server(paths)
    if out.json:
        out.document(describe(server))
    elif server is None:
        out.line("not running; a mount, a search or `memdir server start` starts it")
        out.line(f"  data  {out.name(str(paths.server_dir))}")
        out.line(f"  log   {out.name(str(server_log_file()))}")
    else:
        out.line(f"running at {server.url}" + (f" (pid {server.pid}, version {server.version})" if server.is_local else ""))
        if server.is_local:
            out.line(f"  data  {out.name(server.data_dir)}")
            out.line(f"  log   {out.name(str(server_log_file()))}")
        else:
            chosen = configured(paths)
            out.line(f"  chosen by {chosen.source if chosen else 'login'}; `memdir whoami` says who you are there")
    return EXIT_OK if server is not None else EXIT_NOTHING


def describe(server: ServerInfo | None) -> dict[str, Any]:
    """The server for `--json`; never the key."""
    from memdir import __version__
    from memdir.cli.search.remote import server_log_file
    from memdir.core.paths import app_paths

    local = {"data_dir": str(app_paths().server_dir), "log_file": str(server_log_file())}
    if server is None:
        return {"running": False, "url": None, "pid": None, "version": None, "client_version": __version__} | local
    if not server.is_local:
        remote = {"data_dir": None, "log_file": None}
        return {"running": True, "url": server.url, "pid": None, "version": None, "client_version": __version__} | remote
    answer = {"running": True, "url": server.url, "pid": server.pid, "version": server.version, "client_version": __version__}
    return answer | {"data_dir": server.data_dir or local["data_dir"], "log_file": local["log_file"]}


def _run(args: argparse.Namespace, out: Output) -> int:
    from memdir.client.local import running_server
    from memdir.core.heap import frozen_imports
    from memdir.core.paths import app_paths

    running = running_server(app_paths())
    if running is not None and running.is_local:
        raise BusyError(
            f"the server already runs at {running.url} (pid {running.pid})", hint="stop it with `memdir server stop`"
        )
    with frozen_imports():
        from memdir.server.lifecycle import ServerOptions, run

    out.flush()
    run(
        ServerOptions(
            host=args.host,
            port=args.port,
            foreground=True,
            hosts=args.allowed_host,
            tls_cert=args.tls_cert,
            tls_key=args.tls_key,
            trusted_proxies=args.trusted_proxy,
            requests_per_minute=args.rate_limit,
            workers=args.workers,
            storage=storage_of(args),
        )
    )
    return EXIT_OK


RUN = Command(
    name="server run",
    usage="[OPTIONS]",
    description="Run the local server in the foreground, logging to standard error, until Ctrl-C or SIGTERM.",
    examples=[
        ("memdir server run --port 8848", "for service managers and debugging"),
        ("memdir server run --blobs s3://bucket/memdir", "large contents in S3; keys from the usual AWS variables"),
        ("memdir server run --database-url postgresql://memdir@db/memdir", "on PostgreSQL, beside any number of others"),
    ],
    exit_codes=[(0, "it ended as asked")],
    configure=_configure_run,
    run=_run,
)
START = Command(
    name="server start",
    usage="[OPTIONS]",
    description="Start the local server in the background, when it does not run yet. Mounts do this by themselves.",
    examples=[("memdir server start", "returns when it answers")],
    exit_codes=[(0, "it runs")],
    configure=_no_options,
    run=_start,
)
STOP = Command(
    name="server stop",
    usage="[OPTIONS]",
    description=(
        "Stop the local server. Mounts stay usable; what they change waits in their queue. They do not start it again by\n"
        "themselves, but a search by meaning, `memdir sync`, the next mount and `memdir server start` do."
    ),
    examples=[("memdir server stop", "returns when it has ended")],
    exit_codes=[(0, "stopped"), (1, "it was not running")],
    configure=_no_options,
    run=_stop,
)
STATUS = Command(
    name="server status",
    usage="[OPTIONS]",
    description="Show whether the local server runs, its address, process, version and data folder.",
    examples=[("memdir server status --json", "running, url, pid, data_dir, version")],
    exit_codes=[(0, "it runs"), (1, "it does not run")],
    configure=_no_options,
    run=_status,
)
