"""What the guard decides with: by which names the server may be called, which keys live, how often they may call."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from memdir.server.auditing import Auditor
from memdir.server.authenticate import Authenticator
from memdir.server.hub import Hub
from memdir.server.proxies import Proxies
from memdir.server.rates import Quotas, Rates
from memdir.store.store import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """`auditor` None: calls are not recorded (an application without a server around it)."""

    authenticator: Authenticator
    rates: Rates
    quotas: Quotas
    hosts: frozenset[str] = frozenset()
    """Further names under which the server may be called."""
    proxies: Proxies = field(default_factory=Proxies)
    auditor: Auditor | None = None

    @classmethod
    def over(
        cls,
        store: Store,
        hub: Hub,
        *,
        hosts: Iterable[str] = (),
        trusted_proxies: Iterable[str] = (),
        requests_per_minute: int | None = None,
        auditor: Auditor | None = None,
    ) -> Gate:
        """The gate of a store."""
        return cls(
            authenticator=Authenticator(store, hub),
            rates=Rates(default_per_minute=requests_per_minute),
            quotas=Quotas(store),
            hosts=frozenset(hosts),
            proxies=Proxies(trusted_proxies),
            auditor=auditor,
        )
