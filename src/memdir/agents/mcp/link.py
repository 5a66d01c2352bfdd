"""The way of an MCP server to the memory server: found, or started in the background while the handshake is answered.

Calls run in worker threads and wait for the start. A server that went away meanwhile is looked for, or started, once again:
an agent's session lives longer than a server does.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping
from typing import Any, Final

from memdir.api.agents import AGENT_CONTAINER_DEFAULT
from memdir.client.light import LightCallError, call
from memdir.client.local import ServerInfo, ensure_server
from memdir.core.errors import MemdirError
from memdir.core.paths import AppPaths

log = logging.getLogger(__name__)

START_WAIT_S: Final = 25.0
"""How long one call waits for a server that is being started; hosts give a tool call a minute or more."""
CALL_TIMEOUT_S: Final = 20.0
_GONE: Final = frozenset({0, 401})
"""Not reached, or another server with other keys at the old address: what a look at the present one may mend."""


class MemoryLink:
    """Calls of one container of the memory server. Safe to use from several threads."""

    def __init__(self, paths: AppPaths, *, container: str = AGENT_CONTAINER_DEFAULT) -> None:
        self._paths = paths
        self._lock = threading.Lock()
        self._server: ServerInfo | None = None
        self.container = container

    def start(self) -> None:
        """Find or start the memory server in the background. A failure is told by the first call, which tries again."""
        threading.Thread(target=self._warm, name="memory server", daemon=True).start()

    def get(self, path: str, **params: str) -> dict[str, Any]:
        """GET below `/v1/agents`; the container is added."""
        return self._call("GET", path, params={"containerTag": self.container, **params})

    def post(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """POST a JSON body below `/v1/agents`; the container is added. What is posted must bear being sent twice."""
        return self._call("POST", path, body={"containerTag": self.container, **body})

    def delete(self, path: str) -> dict[str, Any]:
        """DELETE below `/v1/agents`."""
        return self._call("DELETE", path, params={"containerTag": self.container})

    def profile(self) -> dict[str, Any]:
        """The facts of the container's profile: `static` and `dynamic`, lists of sentences."""
        answer = self._call("POST", "/v4/profile", body={"containerTag": self.container}, prefix="")
        profile = answer.get("profile")
        return profile if isinstance(profile, dict) else {}

    def _call(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str] | None = None,
        body: Mapping[str, Any] | None = None,
        prefix: str = "/v1/agents",
    ) -> dict[str, Any]:
        server = self._found()
        try:
            return call(server, method, prefix + path, params=params, body=body, timeout_s=CALL_TIMEOUT_S)
        except LightCallError as error:
            if error.status not in _GONE:
                raise
            log.info("looking for the memory server again: %s", error.message)
        server = self._found(instead_of=server)
        return call(server, method, prefix + path, params=params, body=body, timeout_s=CALL_TIMEOUT_S)

    def _found(self, *, instead_of: ServerInfo | None = None) -> ServerInfo:
        with self._lock:
            if self._server is None or self._server is instead_of:
                self._server = ensure_server(self._paths, timeout_s=START_WAIT_S)
            return self._server

    def _warm(self) -> None:
        try:
            self._found()
        except MemdirError as error:
            log.warning("%s", error.message)
