"""Identifiers: 128 bits, time-ordered, 26 characters of Crockford base 32 (the ULID layout, github.com/ulid/spec)."""

from __future__ import annotations

import os
import random
import secrets
import time
from typing import Final

_ALPHABET: Final = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_PAIRS: Final = tuple(first + second for first in _ALPHABET for second in _ALPHABET)

# An id has to be new, not secret; asking the system for 80 bits costs a busy process more than all the rest of an id.
_random: Final = random.Random(secrets.randbits(256))  # noqa: S311
os.register_at_fork(after_in_child=lambda: _random.seed(secrets.randbits(256)))


def new_id() -> str:
    """A fresh id: 48 bits of milliseconds, then 80 random bits. Sorts by creation time to the millisecond. No secret: who has
    seen some ids might guess others."""
    value = (time.time_ns() // 1_000_000) << 80 | _random.getrandbits(80)
    return "".join([_PAIRS[value >> shift & 1023] for shift in range(120, -1, -10)])


def new_secret(prefix: str) -> str:
    """An API key or token with 256 bits of randomness, e.g. `md_…`; `prefix` makes leaks greppable."""
    return f"{prefix}_{secrets.token_urlsafe(32)}"
