"""From the secret in a header to a key, without asking the database for every request.

A key that was found is believed for CACHE_S. What this process revokes it forgets at once; what another process revokes
(several servers on one PostgreSQL) it hears of within CACHE_S. A secret that is not known is never kept.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from memdir.server.dispatcher import Dispatcher
from memdir.server.errors import AuthenticationError
from memdir.store.accounts.keys import ApiKey, secret_hash
from memdir.store.store import Store

CACHE_S: Final = 2.0
CACHE_MAX: Final = 4096
_HEADER_MAX_CHARS: Final = 512


class Authenticator:
    """Lives on the event loop."""

    def __init__(self, store: Store, dispatcher: Dispatcher, *, monotonic_s: Callable[[], float] = time.monotonic) -> None:
        self._store = store
        self._dispatcher = dispatcher
        self._monotonic_s = monotonic_s
        self._known: OrderedDict[bytes, tuple[ApiKey, float]] = OrderedDict()
        """By the hash of the secret, so that no secret stays in memory."""

    async def key_of(self, authorization: str) -> ApiKey:
        """The living key of an `Authorization` header, or AuthenticationError."""
        scheme, _, secret = authorization.partition(" ")
        secret = secret.strip()
        if scheme.lower() != "bearer" or not secret or len(secret) > _HEADER_MAX_CHARS:
            raise AuthenticationError("an API key is needed", hint="send the header 'Authorization: Bearer <key>'")
        key = await self._find(secret)
        if key is None:
            raise AuthenticationError("this API key is not known here", hint="take the key of this server")
        if key.expired(self._store.now_ms()):
            raise AuthenticationError("this API key has expired", hint="ask for a new one: `memdir server key rotate`")
        return key

    def forget(self) -> None:
        """Keys have changed: believe nothing."""
        self._known.clear()

    async def _find(self, secret: str) -> ApiKey | None:
        digest = secret_hash(secret)
        kept = self._known.get(digest)
        if kept is not None and self._monotonic_s() < kept[1]:
            return kept[0]
        key = await self._dispatcher.run(self._store.keys.authenticate, secret)
        self._known.pop(digest, None)
        if key is not None:
            self._known[digest] = (key, self._monotonic_s() + CACHE_S)
            if len(self._known) > CACHE_MAX:
                self._known.popitem(last=False)
        return key
