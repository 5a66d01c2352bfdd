"""How often a key may call, and how much its containers may hold.

Rates are token buckets in the memory of this process: one that holds a minute's requests and fills evenly. Several servers on
one database each allow the full rate. Quotas bound what the containers in a key's scope hold, and what an organisation holds;
used up, they refuse every change but deletions. What is held is counted again every USAGE_S, so that writers at once may
exceed a quota by what they send in that time.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from memdir.server.errors import QuotaError, RateError
from memdir.store.accounts.keys import ApiKey
from memdir.store.store import Store

BUCKETS_MAX: Final = 10_000
USAGE_S: Final = 2.0
_MINUTE_S: Final = 60.0


@dataclass(slots=True)
class _Bucket:
    tokens: float
    at_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """What is left to a key, as the answer's headers say it (draft-ietf-httpapi-ratelimit-headers)."""

    limit: int
    remaining: int
    full_in_s: int

    def headers(self) -> list[tuple[bytes, bytes]]:
        """`RateLimit-*`."""
        values = {"limit": self.limit, "remaining": self.remaining, "reset": self.full_in_s}
        return [(f"ratelimit-{name}".encode(), str(value).encode()) for name, value in values.items()]


class Rates:
    """Token buckets by key. On the event loop only."""

    def __init__(self, *, default_per_minute: int | None = None, monotonic_s: Callable[[], float] = time.monotonic) -> None:
        """`default_per_minute` is for keys that have no limit of their own; None: unlimited."""
        self._default = default_per_minute
        self._monotonic_s = monotonic_s
        self._buckets: OrderedDict[str, _Bucket] = OrderedDict()

    def take(self, key: ApiKey) -> Standing | None:
        """Count one request. None without a limit; RateError when the bucket is empty."""
        limit = key.limits.get("requestsPerMinute", self._default)
        if limit is None:
            return None
        now_s = self._monotonic_s()
        bucket = self._buckets.pop(key.id, None) or _Bucket(float(limit), now_s)
        self._buckets[key.id] = bucket
        if len(self._buckets) > BUCKETS_MAX:  # the one that was asked for longest ago; it is full again soon anyway
            self._buckets.popitem(last=False)
        per_second = limit / _MINUTE_S
        bucket.tokens = min(float(limit), bucket.tokens + (now_s - bucket.at_s) * per_second)
        bucket.at_s = now_s
        if bucket.tokens < 1:
            wait_s = max(1, int((1 - bucket.tokens) / per_second + 0.999))
            raise RateError(f"this API key may call {limit} times a minute", retry_after_s=wait_s)
        bucket.tokens -= 1
        return Standing(limit=limit, remaining=int(bucket.tokens), full_in_s=int((limit - bucket.tokens) / per_second + 0.999))


@dataclass(slots=True)
class _Usage:
    documents: int
    size_bytes: int
    until_s: float


class Quotas:
    """Any thread may ask."""

    def __init__(self, store: Store, *, monotonic_s: Callable[[], float] = time.monotonic) -> None:
        self._store = store
        self._monotonic_s = monotonic_s
        self._lock = threading.Lock()
        self._usage: OrderedDict[str, _Usage] = OrderedDict()
        self._org_limits: OrderedDict[str, tuple[dict[str, int], float]] = OrderedDict()

    def check(self, key: ApiKey, incoming_bytes: int) -> None:
        """QuotaError when what a write brings does not fit the key's quota or its organisation's."""
        limits = {name: value for name, value in key.limits.items() if name in ("documents", "bytes")}
        if limits:
            self._check(f"key {key.id}", "this API key", limits, incoming_bytes, lambda: self._of_key(key))
        limits = self._limits_of(key.org_id)
        if limits:
            usage = self._store.orgs.usage
            self._check(f"org {key.org_id}", "the organisation", limits, incoming_bytes, lambda: usage(key.org_id))

    def _check(
        self, name: str, whose: str, limits: dict[str, int], incoming_bytes: int, count: Callable[[], tuple[int, int]]
    ) -> None:
        used = self._current(name, count)
        if "documents" in limits and used.documents >= limits["documents"]:
            raise _used_up(f"the quota of {whose} is {limits['documents']} documents, and they are there")
        if "bytes" in limits and used.size_bytes + incoming_bytes > limits["bytes"]:
            raise _used_up(f"the quota of {whose} is {limits['bytes']} bytes, {used.size_bytes} are used")
        used.documents += 1
        used.size_bytes += incoming_bytes

    def _current(self, name: str, count: Callable[[], tuple[int, int]]) -> _Usage:
        with self._lock:
            found = self._usage.get(name)
        if found is None or self._monotonic_s() >= found.until_s:
            found = _Usage(*count(), self._monotonic_s() + USAGE_S)
            with self._lock:
                self._usage.pop(name, None)
                self._usage[name] = found
                if len(self._usage) > BUCKETS_MAX:
                    self._usage.popitem(last=False)
        return found

    def _of_key(self, key: ApiKey) -> tuple[int, int]:
        held = [usage for tag, usage in self._store.orgs.usage_by_tag(key.org_id, key.prefix).items() if key.opens(tag)]
        return sum(count for count, _ in held), sum(size for _, size in held)

    def _limits_of(self, org_id: str) -> dict[str, int]:
        with self._lock:
            kept = self._org_limits.get(org_id)
        if kept is not None and self._monotonic_s() < kept[1]:
            return kept[0]
        org = self._store.orgs.find(org_id)
        limits = {} if org is None else org.limits
        with self._lock:
            self._org_limits[org_id] = (limits, self._monotonic_s() + USAGE_S)
            if len(self._org_limits) > BUCKETS_MAX:
                self._org_limits.popitem(last=False)
        return limits


def _used_up(text: str) -> QuotaError:
    return QuotaError(text, hint="deleting makes room, and is always allowed")
