"""`python -m memdir.server`: the local server as a process of its own."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path


def main(arguments: Sequence[str] | None = None) -> int:
    """Run; the exit code is 0 after a signal, 2 when it could not start."""
    parser = argparse.ArgumentParser(prog="python -m memdir.server", description="Run the local memory server.")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: %(default)s)")
    parser.add_argument("--port", type=int, help="port to listen on (default: 8848, or a free one when it is taken)")
    parser.add_argument("--allowed-host", action="append", default=[], help="a further host name to be called by; repeatable")
    parser.add_argument("--blobs", help="where large contents are kept: s3://bucket/prefix or file:///folder")
    parser.add_argument("--database-url", help="a PostgreSQL database, instead of SQLite in the data folder")
    parser.add_argument("--database-url-file", type=Path, help="a file that holds this URL")
    parser.add_argument("--tls-cert", help="certificate to speak TLS with (PEM)")
    parser.add_argument("--tls-key", help="its key (PEM)")
    parser.add_argument(
        "--trusted-proxy", action="append", default=[], help="a proxy whose X-Forwarded-* are believed; repeatable"
    )
    parser.add_argument("--rate-limit", type=int, help="requests a minute for keys without a limit of their own")
    parser.add_argument("--workers", type=int, default=1, help="threads that index documents (default: 1; 0: none)")
    parser.add_argument("--ready-fd", type=int, help="file descriptor that gets 'ready' or an error text")
    parser.add_argument("--foreground", action="store_true", help="log to standard error instead of the log file")
    options = parser.parse_args(arguments)
    os.umask(0o077)  # for files that a library makes: those of the index of words

    from memdir.core.heap import frozen_imports

    with frozen_imports():
        from memdir.core.errors import MemdirError
        from memdir.server.lifecycle import ServerOptions, run
        from memdir.server.storage import StorageOptions

    try:
        run(
            ServerOptions(
                host=options.host,
                port=options.port,
                ready_fd=options.ready_fd,
                foreground=options.foreground,
                workers=options.workers,
                hosts=options.allowed_host,
                storage=StorageOptions(
                    database_url=options.database_url, database_url_file=options.database_url_file, blobs=options.blobs
                ),
                tls_cert=options.tls_cert,
                tls_key=options.tls_key,
                trusted_proxies=options.trusted_proxy,
                requests_per_minute=options.rate_limit,
            )
        )
    except MemdirError as error:
        sys.stderr.write(f"{error.message}{f' ({error.hint})' if error.hint else ''}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
