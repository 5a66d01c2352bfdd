"""Who is calling, and by which name, when a reverse proxy stands in between.

`X-Forwarded-*` can be written by anybody, so it is believed from the addresses alone that were named at the start, and ignored
from all others. Of `X-Forwarded-For` the last entry counts that no such proxy added.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from memdir.core.errors import UsageError
from memdir.store.errors import InvalidError

_Network = ipaddress.IPv4Network | ipaddress.IPv6Network
_CHAIN_MAX = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    """`address` is the client's, `host` what it called the server."""

    address: str
    host: str


class Proxies:
    """The proxies that are believed."""

    def __init__(self, addresses: Iterable[str] = ()) -> None:
        """Addresses or networks (`10.0.0.0/8`); UsageError for anything else."""
        networks: list[_Network] = []
        for text in addresses:
            try:
                networks.append(ipaddress.ip_network(text, strict=False))
            except ValueError:
                raise UsageError(f"{text!r} is no address of a proxy", hint="for example 127.0.0.1 or 10.0.0.0/8") from None
        self._networks = tuple(networks)

    def peer(self, scope: Any, headers: dict[str, str]) -> Peer:
        """Who sent a request."""
        client = scope.get("client")
        address = str(client[0]) if client else "unknown"
        host = headers.get("host", "")
        if not self._is_proxy(address):
            return Peer(address=address, host=host)
        chain = [part.strip() for part in headers.get("x-forwarded-for", "").split(",") if part.strip()]
        if len(chain) > _CHAIN_MAX:
            raise InvalidError("X-Forwarded-For has too many entries")
        for entry in reversed(chain):
            address = _plain(entry)
            if not self._is_proxy(address):
                break
        return Peer(address=address, host=headers.get("x-forwarded-host", host))

    def _is_proxy(self, address: str) -> bool:
        if not self._networks:
            return False
        try:
            found = ipaddress.ip_address(address)
        except ValueError:
            return False
        return any(found in network for network in self._networks)


def _plain(entry: str) -> str:
    """An address without port and brackets; what is no address is not handed on."""
    text = entry[1 : entry.find("]")] if entry.startswith("[") else entry
    for candidate in (text, text.rpartition(":")[0]):
        try:
            return str(ipaddress.ip_address(candidate))
        except ValueError:
            continue
    return "unknown"
