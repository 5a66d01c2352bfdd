"""Talking to the server without a mount: searching a container, forgetting one, where the local one logs."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from memdir.core.errors import NotFoundError, UsageError
from memdir.core.paths import app_paths
from memdir.core.search_waits import SEARCH_WAIT_SOON_MS, is_worth_waiting
from memdir.core.siblings import sibling_of

if TYPE_CHECKING:
    from memdir.client.http import Client

_TIMEOUT_S: Final = 30.0


def server_log_file() -> Path:
    """The local server's log (written by `client.local` and the server itself)."""
    return app_paths().state_dir / "server.log"


def connected(note: Callable[[str], None]) -> Client:
    """A client of the server, which is started when none runs."""
    from memdir.client.http import Client
    from memdir.client.local import ensure_server, running_server

    paths = app_paths()
    server = running_server(paths)
    if server is None:
        note("starting the local server")
        server = ensure_server(paths)
    return Client(server.url, server.api_key)


def place_of(path: str | None, container: str | None) -> tuple[str, str]:
    """The container and the path in it that a person means: a path in a mount, running or not, or with `container` a path
    in that memory. UsageError for a path outside every mount."""
    from memdir.cli.targets import check_container_name, current_folder, describe_mounts, open_registry
    from memdir.fs.path import checked

    if container is not None:
        given = path or "/"
        return check_container_name(container), checked(given if given.startswith("/") else f"/{given}")
    registry = open_registry()
    found = registry.find_by_path(Path(current_folder(), path or "."))
    if found is None:
        hint = f"give a path in a mount, or use --container NAME; {describe_mounts(registry)}"
        raise UsageError(f"{path or current_folder()} is not inside a mounted memory", hint=hint)
    return found[0].name, found[1]


def search_container(
    name: str,
    *,
    query: str,
    scopes: list[str],
    limit: int,
    wait_ms: int,
    options: dict[str, Any],
    note: Callable[[str], None],
) -> dict[str, Any]:
    """Search on the server, started when none runs; `options` are further fields of `api.v1.SearchRequest`. The answer has the
    shape of the daemon's `grep`; `missing` are those of `scopes` where nothing stands.

    NotFoundError when the server has no such container; other errors of `client.errors` pass through.
    """
    from memdir.client.light import LightCallError, call
    from memdir.client.local import ensure_server, running_server

    paths = app_paths()
    server = running_server(paths)
    if server is None:
        note("starting the local server")
        server = ensure_server(paths)
    began_s = time.monotonic()
    try:
        # Asked first, so that a misspelt name is an error and does not become a new memory.
        call(server, "GET", f"/v3/container-tags/{quote(name, safe='')}", timeout_s=_TIMEOUT_S)
    except LightCallError as error:
        if error.status == 404:
            raise NotFoundError(f"the server has no memory called {name}", hint="`memdir list --all` shows yours") from error
        raise
    newest, missing = 0, []
    for scope in scopes if wait_ms or scopes != ["/"] else ():
        files = {"containerTag": name, "prefix": scope, "limit": "1"}
        page = call(server, "GET", "/v1/files", params=files, timeout_s=_TIMEOUT_S)
        newest = int(page.get("lastSeq") or 0)
        if not page.get("entries") and scope != "/":
            missing.append(scope)
    scopes = [scope for scope in scopes if scope not in missing]
    if not scopes:
        return {"missing": missing}
    if options["mode"] == "semantic":
        scopes += [beside for scope in scopes if (beside := sibling_of(scope)) is not None]

    def ask(wait_ms: int) -> dict[str, Any]:
        body = {
            "containerTag": name,
            "q": query,
            "filepath": os.path.commonpath(scopes),
            **({"filepaths": scopes} if len(scopes) > 1 else {}),
            "limit": limit,
            "waitSeq": newest,
            "waitMs": wait_ms,
            **{_camel(name): value for name, value in options.items()},
        }
        return call(server, "POST", "/v1/search", body=body, timeout_s=wait_ms / 1000 + _TIMEOUT_S)

    response = ask(min(wait_ms, SEARCH_WAIT_SOON_MS))
    is_worth_it = is_worth_waiting(0, len(response.get("pending") or ()), response.get("halfRead") or 0)
    if wait_ms > SEARCH_WAIT_SOON_MS and is_worth_it and not _is_sure(response):
        response = ask(wait_ms - SEARCH_WAIT_SOON_MS)
    return {
        "missing": missing,
        "hits": [_hit(result) for result in response.get("results") or []],
        "pending": response.get("pending") or [],
        "searched_in_place": False,
        "note": response.get("note"),
        "binary": response.get("binary") or [],
        "counts": [(one["path"], one["count"]) for one in response.get("counts") or ()],
        "not_reranked": (response.get("reranking") or {}).get("reason"),
        "left_out": response.get("leftOut"),
        "tokens": response.get("tokens"),
        "stages_ms": response.get("stagesMs"),
        "timing_ms": (time.monotonic() - began_s) * 1000,
    }


def _is_sure(response: dict[str, Any]) -> bool:
    """Whether a hit is more than weak, in a file that is not about to be read anew."""
    return any(not hit.get("weak") and hit["path"] not in response["pending"] for hit in response.get("results") or ())


def _hit(result: dict[str, Any]) -> dict[str, Any]:
    """A search hit of the wire (`api.v1.SearchHit`) as the daemon would hand it on."""
    return {
        "path": result["path"],
        "document_id": result["documentId"],
        "kind": result["kind"],
        "start_line": result["startLine"],
        "end_line": result["endLine"],
        "text": result["text"],
        "score": result["score"],
        "signals": result.get("signals"),
        "matched": [[one["startLine"], one["endLine"]] for one in result.get("matched") or ()] or None,
        "why": result.get("why"),
        "sibling": result.get("sibling"),
        "sibling_lines": [result["startLine"], result["endLine"]],
        "place": result.get("place"),
    }


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(map(str.capitalize, others))
