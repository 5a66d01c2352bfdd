"""One JSON call to the server with the standard library alone, for commands that live for a moment.

Importing httpx and pydantic costs a process ten times what the call itself costs, so `memdir grep --container` goes this way.
Everything that stays longer uses `client.http`, which knows types, retries and connections.
"""

from __future__ import annotations

import http.client
import json
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlencode, urlsplit

from memdir.client.local import ServerInfo, connection_to
from memdir.core.errors import MemdirError
from memdir.core.limits import CONTROL_MESSAGE_MAX_BYTES

_ANSWER_MAX_BYTES: Final = CONTROL_MESSAGE_MAX_BYTES
_MESSAGE_MAX_CHARS: Final = 1000


class LightCallError(MemdirError):
    """The call failed. `status` is the HTTP status, 0 when the server was not reached."""

    def __init__(self, message: str, *, status: int, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.status = status


def call(
    server: ServerInfo,
    method: str,
    path: str,
    *,
    params: Mapping[str, str] | None = None,
    body: Mapping[str, Any] | None = None,
    timeout_s: float,
) -> dict[str, Any]:
    """The JSON object that the server answers; LightCallError for everything else. `timeout_s` bounds each wait for data."""
    parts = urlsplit(server.url)
    target = parts.path.rstrip("/") + path + (f"?{urlencode(params)}" if params else "")
    headers = {"Authorization": f"Bearer {server.api_key}", "Accept": "application/json", "User-Agent": "memdir"}
    content = None
    if body is not None:
        headers["Content-Type"] = "application/json"
        content = json.dumps(body).encode("ascii")
    connection = connection_to(server.url, ca_file=server.ca_file, pinned_file=server.pinned_file, timeout_s=timeout_s)
    try:
        connection.request(method, target, content, headers)
        response = connection.getresponse()
        raw = response.read(_ANSWER_MAX_BYTES + 1)
    except (OSError, http.client.HTTPException) as error:
        raise LightCallError(
            f"the server at {server.url} cannot be reached: {str(error) or type(error).__name__}",
            status=0,
            hint="`memdir server status` shows where it is, `memdir doctor` what is wrong",
        ) from error
    finally:
        connection.close()
    return _answer(server, method, path, response.status, raw)


def _answer(server: ServerInfo, method: str, path: str, status: int, raw: bytes) -> dict[str, Any]:
    answer: Any = None
    if len(raw) <= _ANSWER_MAX_BYTES:
        try:
            answer = json.loads(raw)
        except ValueError:  # told below, together with the status
            answer = None
    if status >= 300:
        said = answer.get("error") if isinstance(answer, dict) else None
        hint = "`memdir whoami` tells which key is used and what it opens" if status in (401, 403) else ""
        text = str(said)[:_MESSAGE_MAX_CHARS] if said else f"the server refused {method} {path}"
        raise LightCallError(f"{text} (HTTP {status})", status=status, hint=hint)
    if not isinstance(answer, dict):
        raise LightCallError(f"{server.url} did not answer {method} {path} with a JSON object", status=status)
    return answer
