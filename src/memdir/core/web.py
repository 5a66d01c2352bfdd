"""Pages of the web: bounded, polite to each host, tried again when that helps, and never from an address inside the house."""

from __future__ import annotations

import ipaddress
import socket
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final
from urllib.parse import urljoin, urlsplit

import httpx

from memdir.core.errors import FetchError, UnreachableError
from memdir.core.limits import MIB

USER_AGENT: Final = "memdir/1 (+https://pypi.org/project/memdir/)"
PAGE_MAX_BYTES: Final = 32 * MIB
_TIMEOUT: Final = httpx.Timeout(30.0, connect=10.0)
_TOTAL_S: Final = 120.0
"""Of one answer: a page that drips is given up."""
_REDIRECTS_MAX: Final = 6
_TRIES: Final = 4
_WAIT_MAX_S: Final = 60.0
_PER_HOST: Final = 2
_URL_MAX_CHARS: Final = 4000
_PASSING: Final = frozenset({408, 425, 429, 500, 502, 503, 504})


@dataclass(frozen=True, slots=True, kw_only=True)
class _Request:
    url: str
    params: Mapping[str, str] | None
    headers: Mapping[str, str]
    json: Any
    max_bytes: int
    trusted: bool


class Http:
    """Thread-safe. `private_allowed` opens addresses of this machine and network, for a server of one's own and for tests."""

    def __init__(self, *, private_allowed: bool = False, wait: Callable[[float], None] = time.sleep) -> None:
        self._private_allowed = private_allowed
        self._wait = wait
        # No proxy of the environment: it would resolve names where this check does not look.
        self._client = httpx.Client(timeout=_TIMEOUT, trust_env=False, headers={"User-Agent": USER_AGENT})
        self._lock = threading.Lock()
        self._hosts: dict[str, threading.Semaphore] = defaultdict(lambda: threading.Semaphore(_PER_HOST))

    def close(self) -> None:
        self._client.close()

    def get(
        self,
        url: str,
        *,
        params: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        json: Any = None,
        max_bytes: int = PAGE_MAX_BYTES,
        trusted: bool = False,
    ) -> tuple[str, str, bytes]:
        """(final address, media type, content) of a page; a POST where `json` is given. `trusted` addresses are the user's own
        and may be private. FetchError with the reason."""
        asked = _Request(url=url, params=params, headers=headers or {}, json=json, max_bytes=max_bytes, trusted=trusted)
        for _hop in range(_REDIRECTS_MAX):
            try:
                elsewhere, media_type, content = self._tried(asked)
                if elsewhere is None:
                    return asked.url, media_type, content
                target = urljoin(asked.url, elsewhere)
                if (asked.headers or asked.json is not None) and not _same_place(asked.url, target):
                    raise FetchError(f"{asked.url}: leads to {target[:200]}, which is sent neither the key nor the question")
                asked = replace(asked, url=target, params=None, trusted=False)
            except (ValueError, httpx.InvalidURL) as error:
                raise FetchError(f"{asked.url[:200]}: {error}") from error
        raise FetchError(f"{asked.url}: more than {_REDIRECTS_MAX} redirects")

    def _tried(self, asked: _Request) -> tuple[str | None, str, bytes]:
        host = urlsplit(asked.url).hostname or ""
        with self._lock:
            turn = self._hosts[host]
        for attempt in range(_TRIES):
            pause_s = min(2.0**attempt, _WAIT_MAX_S)
            try:
                with turn:
                    status, said, answer = self._once(asked)
                if status not in _PASSING:
                    return answer
                why = f"{asked.url}: HTTP {status}"
                pause_s = min(said, _WAIT_MAX_S) if said is not None else pause_s
            except (httpx.TransportError, httpx.StreamError) as error:
                why = f"{asked.url}: {type(error).__name__}: {error}"
            if attempt < _TRIES - 1:
                self._wait(pause_s)
        raise UnreachableError(why)

    def _once(self, asked: _Request) -> tuple[int, float | None, tuple[str | None, str, bytes]]:
        """Status, how long to wait, and (where it leads instead, media type, content)."""
        target, extra, extensions = self._target(asked.url, trusted=asked.trusted)
        request = self._client.build_request(
            "GET" if asked.json is None else "POST",
            target,
            params=None if asked.params is None else dict(asked.params),
            headers={**extra, **asked.headers},
            json=asked.json,
            extensions=extensions,
        )
        answer = self._client.send(request, stream=True)
        try:
            if answer.status_code in _PASSING:
                return answer.status_code, _seconds(answer.headers.get("retry-after")), (None, "", b"")
            if answer.is_redirect:
                return answer.status_code, None, (answer.headers["location"], "", b"")
            if answer.is_error:
                raise FetchError(f"{asked.url}: HTTP {answer.status_code}")
            content = _content(asked.url, answer, asked.max_bytes)
            return answer.status_code, None, (None, answer.headers.get("content-type", ""), content)
        finally:
            answer.close()

    def _target(self, url: str, *, trusted: bool = False) -> tuple[str, dict[str, str], dict[str, Any]]:
        """The request to make: to the very address that was checked, so that a name cannot be another one a moment later."""
        parts = urlsplit(url) if len(url) <= _URL_MAX_CHARS else urlsplit("")
        try:
            port = parts.port
        except ValueError:
            raise FetchError(f"{url[:200]}: no port number") from None
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.username is not None:
            raise FetchError(f"{url[:200]}: only plain http and https addresses are fetched")
        try:
            resolved = socket.getaddrinfo(parts.hostname, port or parts.scheme, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError) as error:
            raise FetchError(f"{url[:200]}: {parts.hostname} is not found ({error})") from error
        addresses = [str(one[4][0]) for one in resolved]
        if not (self._private_allowed or trusted) and not all(map(is_public, addresses)):
            raise FetchError(
                f"{url[:200]}: {parts.hostname} is an address of this machine or network, which research does not fetch"
            )
        address = f"[{addresses[0]}]" if ":" in addresses[0] else addresses[0]
        netloc = f"{address}:{port}" if port else address
        named = f"{parts.hostname}:{port}" if port else parts.hostname
        return parts._replace(netloc=netloc, fragment="").geturl(), {"Host": named}, {"sni_hostname": parts.hostname}


def _same_place(url: str, target: str) -> bool:
    """Whether both are of one host, and what is said to the second can be read by nobody who could not read the first."""
    ours, theirs = urlsplit(url), urlsplit(target)
    if ours.hostname != theirs.hostname:
        return False
    return (ours.scheme, ours.port) == (theirs.scheme, theirs.port) or (
        (ours.scheme, theirs.scheme) == ("http", "https") and ours.port in (None, 80) and theirs.port in (None, 443)
    )


def is_public(address: str) -> bool:
    """Whether an IP address is one of the open internet; the IPv4 address inside an IPv6 one counts as itself."""
    ip = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(ip, ipaddress.IPv6Address):
        inner = ip.ipv4_mapped or ip.sixtofour or (ip.teredo[1] if ip.teredo else None)
        if inner is not None:
            ip = inner
        elif ip in _NAT64:
            ip = ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF)
    return ip.is_global and not ip.is_multicast


_NAT64: Final = ipaddress.ip_network("64:ff9b::/96")


def too_large(url: str, max_bytes: int = PAGE_MAX_BYTES) -> FetchError:
    """The one wording of that."""
    return FetchError(f"{url}: larger than {max_bytes >> 20} MiB")


def _content(url: str, answer: httpx.Response, max_bytes: int) -> bytes:
    data = bytearray()
    end_s = time.monotonic() + _TOTAL_S
    for piece in answer.iter_bytes():
        data += piece
        if len(data) > max_bytes:
            raise too_large(url, max_bytes)
        if time.monotonic() > end_s:
            raise FetchError(f"{url}: not there after {_TOTAL_S:.0f} s")
    return bytes(data)


def _seconds(header: str | None) -> float | None:
    try:
        return max(float(header), 0.0) if header else None
    except ValueError:
        return None
