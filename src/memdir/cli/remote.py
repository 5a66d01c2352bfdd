"""Talking to the server without a mount: searching a container, forgetting one, where the local one logs."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from memdir.core.errors import NotFoundError
from memdir.core.paths import app_paths


def server_log_file() -> Path:
    """The local server's log (written by `client.local` and the server itself)."""
    return app_paths().state_dir / "server.log"


def search_container(
    name: str,
    *,
    query: str,
    scope: str,
    limit: int,
    literal: bool,
    explain: bool,
    wait_ms: int,
    note: Callable[[str], None],
) -> dict[str, Any]:
    """Search on the server, started when none runs. The answer has the shape of the daemon's `grep`.

    NotFoundError when the server has no such container; other errors of `client.errors` pass through.
    """
    from memdir.api import v1
    from memdir.client.errors import NotFoundError as MissingError
    from memdir.client.http import Client
    from memdir.client.local import ensure_server, running_server

    paths = app_paths()
    server = running_server(paths)
    if server is None:
        note("starting the local server")
        server = ensure_server(paths)
    began_s = time.monotonic()
    with Client(server.url, server.api_key) as client:
        try:
            client.container_settings(name)  # so that a misspelt name is an error and does not become a new memory
            newest = client.list_files(name, prefix=scope, limit=1).last_seq if wait_ms else 0
            response = client.search(
                v1.SearchRequest(
                    container_tag=name,
                    q=query,
                    filepath=scope,
                    limit=limit,
                    mode="literal" if literal else "semantic",
                    wait_seq=newest,
                    wait_ms=wait_ms,
                    explain=explain,
                )
            )
        except MissingError as error:
            raise NotFoundError(f"the server has no memory called {name}", hint="`memdir list --all` shows yours") from error
    return {
        "hits": [hit.model_dump() for hit in response.results],
        "pending": response.pending,
        "timing_ms": (time.monotonic() - began_s) * 1000,
    }
