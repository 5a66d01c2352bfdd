"""The connection to the server as the loops see it: one place that knows whether calls make sense now, and since when not.

Any caller may try; a failed call closes the link for a while, so that a dead server is asked once in a while and not by every
row. The client is made by a factory each time the link opens again: the local server may have come back at another
address, and a repaired key is read again.
"""

from __future__ import annotations

import logging
import random
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, TypeVar

from memdir.client.errors import AuthError, ClientError, ForbiddenError, OfflineError, RateLimitedError, ServerError
from memdir.client.remote import Remote
from memdir.core.clock import Clock
from memdir.core.errors import MemdirError
from memdir.sync.compute_lock import ComputeLock

log = logging.getLogger(__name__)
T = TypeVar("T")

RETRY_BASE_S: Final = 0.5
RETRY_MAX_S: Final = 30.0
AUTH_RETRY_S: Final = 15.0
_LOOK_S: Final = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkState:
    """`since_ms` (wall clock) says since when the link is closed; None while it is open."""

    url: str | None
    online: bool
    since_ms: int | None
    error: str | None
    hint: str


class Link:
    """Thread-safe. `on_open` is called (without locks) whenever a call succeeds after the link was closed."""

    def __init__(
        self, factory: Callable[[], Remote], *, clock: Clock, rng: random.Random, stamp: Callable[[], object] | None = None
    ) -> None:
        """`stamp` tells by another value that the credentials were changed since."""
        self._factory = factory
        self._stamp = stamp or _nothing
        self._stamped: object = None
        self._look_due_s = 0.0
        self._clock = clock
        self._rng = rng
        self._lock = threading.Lock()
        self._client: Remote | None = None
        self._url: str | None = None
        self._online = False
        self._since_ms: int | None = clock.now_ns() // 1_000_000
        self._error: str | None = "not connected yet"
        self._hint = ""
        self._failures = 0
        self._next_try_s = 0.0
        self._paused_until_s = 0.0
        self._closed = False
        self.on_open: Callable[[], None] = _nothing
        self.turn = ComputeLock()
        """Of the engine's threads: given up for the time of a call."""

    def call(self, action: Callable[[Remote], T]) -> T:
        """Run `action` with a client; see `lend`."""
        with self.lend() as client:
            return action(client)

    @contextmanager
    def lend(self) -> Iterator[Remote]:
        """A client for one exchange. What the exchange raises passes through, after drawing the consequences for the link;
        OfflineError at once while the link is closed and its next try is not due. Meanwhile another thread computes."""
        with self.turn.given_up(), self._lend() as client:
            yield client

    @contextmanager
    def _lend(self) -> Iterator[Remote]:
        client = self._ready_client()
        try:
            yield client
        except OfflineError as error:
            self._close(client, error)
            raise
        except ForbiddenError:
            raise  # says something of this call only; a feed that may not be read is reported by `fail`
        except AuthError as error:
            self._close(client, error)
            raise
        except RateLimitedError as error:
            self.pause(error.retry_after_s)
            raise
        except ServerError:
            raise
        except ClientError:
            self._opened(client)
            raise
        self._opened(client)

    def pause(self, seconds: float) -> None:
        """Send nothing for a while: the server asked for it."""
        with self._lock:
            self._paused_until_s = max(self._paused_until_s, self._clock.monotonic_s() + seconds)

    def fail(self, error: ClientError) -> None:
        """The feed cannot be read although the server answers (5xx, 403): the mount is offline all the same."""
        with self._lock:
            client = self._client
        if client is not None:
            self._close(client, error)

    def is_open(self) -> bool:
        """Whether work for the server should be taken up now."""
        with self._lock:
            return self._online and self._clock.monotonic_s() >= self._paused_until_s

    def wait_s(self) -> float:
        """How long until a try makes sense; 0 for now."""
        with self._lock:
            now_s = self._clock.monotonic_s()
            until_s = self._paused_until_s if self._online else max(self._next_try_s, self._paused_until_s)
            return max(0.0, until_s - now_s)

    def hurry(self) -> None:
        """Somebody waits: let the next call try at once."""
        with self._lock:
            self._next_try_s = 0.0

    def look_at_credentials_if_due(self) -> None:
        """`look_at_credentials`, every two seconds at most."""
        with self._lock:
            now_s = self._clock.monotonic_s()
            if now_s < self._look_due_s:
                return
            self._look_due_s = now_s + _LOOK_S
        self.look_at_credentials()

    def look_at_credentials(self) -> bool:
        """Begin anew with the next call when the credentials are others than those the client was made with. Whether they are:
        asked a few times in a minute, so that a repaired key is used at once."""
        stamp = self._stamp()
        with self._lock:
            if self._stamped is None or stamp == self._stamped:
                return False
            self._stamped = stamp
            client, self._client = self._client, None
            self._next_try_s, self._paused_until_s, self._failures = 0.0, 0.0, 0
            if self._online:
                self._online, self._since_ms, self._error = False, self._clock.now_ns() // 1_000_000, "the credentials changed"
        log.info("the credentials changed: connecting anew")
        if client is not None:
            client.close()
        return True

    def state(self) -> LinkState:
        with self._lock:
            return LinkState(url=self._url, online=self._online, since_ms=self._since_ms, error=self._error, hint=self._hint)

    def close(self) -> None:
        """End: calls under way fail, later ones raise OfflineError."""
        with self._lock:
            self._closed = True
            client, self._client = self._client, None
        if client is not None:
            client.close()

    def _ready_client(self) -> Remote:
        with self._lock:
            if self._closed:
                raise OfflineError("the connection is closed")
            now_s = self._clock.monotonic_s()
            if now_s < self._paused_until_s:
                raise OfflineError("the server asked to wait")
            if self._client is not None:
                return self._client
            if now_s < self._next_try_s:
                raise OfflineError(self._error or "the server was not reached")
        try:
            fresh = self._made()
        except ClientError as error:
            self._close(None, error)
            raise
        except (MemdirError, OSError) as error:
            offline = OfflineError(str(error), hint=error.hint if isinstance(error, MemdirError) else "")
            self._close(None, offline)
            raise offline from error
        return self._install(fresh)

    def _made(self) -> Remote:
        """A client, and the stamp of what it was made with. Making it may change the credentials (it starts the local server,
        whose address is among them): then it is made once more, or it would be taken for one of old credentials."""
        for last in (False, False, True):
            stamp = self._stamp()
            with self._lock:
                self._stamped = stamp
            fresh = self._factory()
            if last or self._stamp() == stamp:
                break
            fresh.close()
        return fresh

    def _install(self, fresh: Remote) -> Remote:
        """Make `fresh` the client, unless another thread was first or the link was closed."""
        with self._lock:
            current, closed = self._client, self._closed
            if current is None and not closed:
                self._client, self._url = fresh, fresh.base_url
                return fresh
        fresh.close()
        if current is None:
            raise OfflineError("the connection is closed")
        return current

    def _opened(self, client: Remote) -> None:
        with self._lock:
            if self._client is not client or self._online:
                return
            self._online, self._since_ms, self._error, self._hint, self._failures = True, None, None, "", 0
        log.info("connected to %s", client.base_url)
        self.on_open()

    def _close(self, client: Remote | None, error: ClientError) -> None:
        retry_s = AUTH_RETRY_S if isinstance(error, AuthError) else None
        with self._lock:
            if client is not self._client:
                return  # another thread was first, or this failure is of an older connection
            self._client = None
            delay_s = min(RETRY_MAX_S, RETRY_BASE_S * 2.0 ** min(self._failures, 10))
            self._failures += 1
            self._next_try_s = self._clock.monotonic_s() + (retry_s or self._rng.uniform(delay_s / 2, delay_s))
            if self._since_ms is None:
                self._since_ms = self._clock.now_ns() // 1_000_000
            first = self._online or self._failures == 1
            self._online, self._error, self._hint = False, error.message, error.hint
        if first:
            log.warning("offline: %s%s", error.message, f"; {error.hint}" if error.hint else "")
        if client is not None:
            client.close()


def _nothing() -> None:
    return
