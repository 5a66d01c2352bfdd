"""Identifiers: 128 bits, time-ordered, 26 characters of Crockford base 32 (the ULID layout, github.com/ulid/spec)."""

from __future__ import annotations

import secrets
import time
from typing import Final

_ALPHABET: Final = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"


def new_id() -> str:
    """A fresh id: 48 bits of milliseconds, then 80 random bits. Sorts by creation time to the millisecond."""
    value = (time.time_ns() // 1_000_000) << 80 | secrets.randbits(80)
    digits = []
    for _ in range(26):
        digits.append(_ALPHABET[value & 31])
        value >>= 5
    return "".join(reversed(digits))


def new_secret(prefix: str) -> str:
    """An API key or token with 256 bits of randomness, e.g. `md_…`; `prefix` makes leaks greppable."""
    return f"{prefix}_{secrets.token_urlsafe(32)}"
