"""What the guard decides with: by which names the server may be called, which keys live, how often they may call."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from memdir.server.dispatcher import Dispatcher
from memdir.server.http.audit_log import Auditor
from memdir.server.http.authentication import Authenticator
from memdir.server.http.proxies import Proxies
from memdir.server.http.rate_limits import Quotas, Rates
from memdir.store.store import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardPolicy:
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
        dispatcher: Dispatcher,
        *,
        hosts: Iterable[str] = (),
        trusted_proxies: Iterable[str] = (),
        requests_per_minute: int | None = None,
        auditor: Auditor | None = None,
    ) -> GuardPolicy:
        """The policy of a store."""
        return cls(
            authenticator=Authenticator(store, dispatcher),
            rates=Rates(default_per_minute=requests_per_minute),
            quotas=Quotas(store),
            hosts=frozenset(hosts),
            proxies=Proxies(trusted_proxies),
            auditor=auditor,
        )
