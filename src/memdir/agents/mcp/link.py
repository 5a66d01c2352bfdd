"""The way of an MCP server to the memory server: found, or started in the background while the handshake is answered.

Calls run in worker threads and wait for the start. A server that went away meanwhile is looked for, or started, once again:
an agent's session lives longer than a server does.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Final, TypeVar

from memdir.agents.service import CONTAINER_DEFAULT, AgentMemories
from memdir.client.light import LightCallError
from memdir.client.local import ServerInfo, ensure_server
from memdir.core.errors import MemdirError
from memdir.core.paths import AppPaths

log = logging.getLogger(__name__)

START_WAIT_S: Final = 25.0
"""How long one call waits for a server that is being started; hosts give a tool call a minute or more."""
CALL_TIMEOUT_S: Final = 20.0
_GONE: Final = frozenset({0, 401})
"""Not reached, or another server with other keys at the old address: what a look at the present one may mend."""

_T = TypeVar("_T")


class MemoryLink:
    """Calls of one container of the memory server. Safe to use from several threads."""

    def __init__(self, paths: AppPaths, *, container: str = CONTAINER_DEFAULT) -> None:
        self._paths = paths
        self._lock = threading.Lock()
        self._server: ServerInfo | None = None
        self._container = container

    def start(self) -> None:
        """Find or start the memory server in the background. A failure is told by the first call, which tries again."""
        threading.Thread(target=self._warm, name="memory server", daemon=True).start()

    def ask(self, work: Callable[[AgentMemories], _T]) -> _T:
        """What `work` gets from the memories. It must bear being done twice: after a lost answer the server is asked again."""
        return self._again(lambda server: work(self._memories(server)))

    def _memories(self, server: ServerInfo) -> AgentMemories:
        return AgentMemories(server=server, container=self._container, timeout_s=CALL_TIMEOUT_S)

    def _again(self, work: Callable[[ServerInfo], _T]) -> _T:
        server = self._found()
        try:
            return work(server)
        except LightCallError as error:
            if error.status not in _GONE:
                raise
            log.info("looking for the memory server again: %s", error.message)
        return work(self._found(instead_of=server))

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
