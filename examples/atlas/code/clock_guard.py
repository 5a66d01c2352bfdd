"""Refuse dates that cannot be: used by the gateway before it passes a reading on."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta, timezone

BUILD_DATE = datetime(2026, 11, 17, tzinfo=timezone.utc)
FUTURE_TOLERANCE = timedelta(minutes=5)


@dataclass(frozen=True)
class Verdict:
    accepted: bool
    corrected: datetime
    reason: str


def judge(claimed: datetime, received: datetime) -> Verdict:
    """A station's clock is believed only between the image's build date and shortly after now."""
    if claimed < BUILD_DATE:
        return Verdict(False, received, "before the firmware existed: week counter rolled over")
    if claimed > received + FUTURE_TOLERANCE:
        return Verdict(False, received, "from the future")
    return Verdict(True, claimed, "")


def weeks_lost(claimed: datetime, received: datetime) -> int:
    """How many times the ten-bit counter wrapped; 1024 weeks each."""
    return round((received - claimed).days / 7 / 1024)
