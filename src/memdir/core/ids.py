"""Identifiers: 128 bits, time-ordered, 26 characters of Crockford base 32 (the ULID layout, github.com/ulid/spec)."""

from __future__ import annotations

import os
import random
import secrets
import threading
import time
from typing import Final

_ALPHABET: Final = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_PAIRS: Final = tuple(first + second for first in _ALPHABET for second in _ALPHABET)

# An id has to be new, not secret; asking the system for 80 bits costs a busy process more than all the rest of an id.
_random: Final = random.Random(secrets.randbits(256))  # noqa: S311
_lock = threading.Lock()
_last = 0


def _after_fork() -> None:
    global _lock, _last
    _lock, _last = threading.Lock(), 0  # going on from the same number, both would come close to each other
    _random.seed(secrets.randbits(256))


os.register_at_fork(after_in_child=_after_fork)


def new_id() -> str:
    """A fresh id: 48 bits of milliseconds, then 80 random bits. Those of one process sort in the order in which they were made
    ("monotonicity" of the specification), so that what came together stays in its order. No secret: who has seen some ids might
    guess others."""
    global _last
    with _lock:
        value = (time.time_ns() // 1_000_000) << 80 | _random.getrandbits(80)
        if value >> 80 <= _last >> 80:  # the same millisecond, or a clock that was set back
            value = _last + 1 + _random.getrandbits(32)
        _last = value
    return "".join([_PAIRS[value >> shift & 1023] for shift in range(120, -1, -10)])


def new_secret(prefix: str) -> str:
    """An API key or token with 256 bits of randomness, e.g. `md_…`; `prefix` makes leaks greppable."""
    return f"{prefix}_{secrets.token_urlsafe(32)}"
