"""Moments in the past, as people type them. Times without a zone are of this machine's zone."""

from __future__ import annotations

import argparse
import re
from datetime import UTC, datetime, timedelta
from typing import Final

_AGO: Final = re.compile(r"(\d{1,6})\s*(s|sec|seconds?|m|min|minutes?|h|hours?|d|days?|w|weeks?)(?:\s+ago)?", re.IGNORECASE)
_UNIT_S: Final = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 7 * 86_400}
_CLOCK: Final = re.compile(r"(\d{1,2}):(\d{2})(?::(\d{2}))?")
_EXAMPLES: Final = "for example 2026-11-20, '2026-11-20 18:30', 2026-11-20T18:30:00Z, 10:30, '2h ago', yesterday"


def past_moment(text: str, *, now: datetime | None = None) -> datetime:
    """An argparse type: a moment that is over, with its zone. A day means its beginning; a time of day the last one that was;
    `yesterday` this time a day ago, unless a time of day follows."""
    now = (now or datetime.now(UTC)).astimezone()
    found = _moment(" ".join(text.split()), now)
    if found is None:
        raise argparse.ArgumentTypeError(f"{text!r} is no time; {_EXAMPLES}")
    if found > now:
        raise argparse.ArgumentTypeError(f"{text!r} is still to come")
    return found


def _moment(text: str, now: datetime) -> datetime | None:
    ago = _AGO.fullmatch(text)
    if ago is not None:
        return now - timedelta(seconds=int(ago[1]) * _UNIT_S[ago[2][0].lower()])
    day, _, rest = text.partition(" ")
    days = {"now": 0, "today": 0, "yesterday": 1}.get(day.lower())
    if days is not None:
        that_day = now - timedelta(days=days)
        if rest:
            return _at(rest, that_day)
        return that_day if day.lower() != "today" else that_day.replace(hour=0, minute=0, second=0, microsecond=0)
    clock = _at(text, now)
    if clock is not None:
        return clock if clock <= now else clock - timedelta(days=1)
    try:
        return datetime.fromisoformat(text).astimezone()
    except (ValueError, OverflowError):
        return None


def _at(text: str, day: datetime) -> datetime | None:
    """A time of that day."""
    found = _CLOCK.fullmatch(text)
    if found is None:
        return None
    try:
        naive = day.replace(hour=int(found[1]), minute=int(found[2]), second=int(found[3] or 0), microsecond=0, tzinfo=None)
    except ValueError:
        return None
    return naive.astimezone()


def here(iso: str | None) -> str:
    """A time of the wire as a person reads it: this machine's zone, to the second."""
    if iso is None:
        return "?"
    return datetime.fromisoformat(iso).astimezone().strftime("%Y-%m-%d %H:%M:%S")
