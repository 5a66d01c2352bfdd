"""Which paths of a container become memories: a setting of the container, which `memdir mount` may change also while the server
is away. What it has still to be told waits in the mount's record."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from memdir.sync.link import Link

log = logging.getLogger(__name__)

_KEY: Final = "memoryFilesystemPaths"
_FRESH_S: Final = 60.0
"""Another mount may change them; we look again when the profile is fetched, this often at most."""


class MemoryPaths:
    """Thread-safe."""

    def __init__(self, container: str, wanted: tuple[str, ...] | None, keep: Callable[[tuple[str, ...] | None], None]) -> None:
        self._container = container
        self._wanted = wanted
        self._keep = keep
        self._lock = threading.Lock()
        self._known: list[str] | None = None
        self._looked_s = -_FRESH_S
        self._problem: str | None = None

    def want(self, paths: tuple[str, ...]) -> None:
        """The server has to be told these."""
        with self._lock:
            self._wanted, self._problem = paths, None
        self._keep(paths)

    def view(self) -> dict[str, Any]:
        """For `memdir status`."""
        with self._lock:
            return {
                "memory_paths": self._known,
                "memory_paths_waiting": None if self._wanted is None else list(self._wanted),
                "memory_paths_problem": self._problem,
            }

    def settle(self, link: Link) -> None:
        """Tell the server what it has to be told, and look what it has. ClientError of a server that is away; one that refuses
        is asked again at the next start only."""
        from memdir.client.errors import AuthError, ClientError, OfflineError, RateLimitedError, ServerError

        with self._lock:
            wanted, refused = self._wanted, self._problem is not None
        try:
            if wanted is not None and not refused:
                answer = link.call(lambda client: client.change_settings(self._container, {_KEY: list(wanted)}))
                log.info("the memory paths are %s", ", ".join(wanted) or "none")
            elif time.monotonic() - self._looked_s >= _FRESH_S:
                answer = link.call(lambda client: client.container_settings(self._container))
            else:
                return
        except (AuthError, OfflineError, RateLimitedError, ServerError):
            raise
        except ClientError as error:
            log.warning("the memory paths: %s", error.message)
            with self._lock:
                self._problem = error.message
            self._looked_s = time.monotonic()
            return
        self._looked_s = time.monotonic()
        paths = answer.get(_KEY)
        with self._lock:
            self._known = [path for path in paths if isinstance(path, str)] if isinstance(paths, list) else None
            settled = wanted is not None and self._wanted == wanted and not refused
            if settled:
                self._wanted = None
        if settled:
            self._keep(None)
