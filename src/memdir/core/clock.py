"""Time as a dependency, so that tests and the simulator can own it."""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime
from typing import Final, Protocol

ENV_OFFSET: Final = "MEMDIR_CLOCK_OFFSET_S"
"""For tests with real processes: seconds by which this process's wall clock is wrong. Timers are not touched."""
_OFFSET_NS: Final = int(float(os.environ.get(ENV_OFFSET) or 0) * 1e9)


class Clock(Protocol):
    """Wall time for what people read, monotonic time for what loops wait on."""

    def now_ns(self) -> int:
        """Wall clock, nanoseconds since the epoch."""
        ...

    def monotonic_s(self) -> float:
        """Seconds from an arbitrary start; never goes backwards."""
        ...


def _shifted_ns() -> int:
    return time.time_ns() + _OFFSET_NS


class SystemClock:
    """The machine's clocks."""

    now_ns = staticmethod(_shifted_ns if _OFFSET_NS else time.time_ns)  # itself, without a frame of ours: every write asks

    def monotonic_s(self) -> float:
        return time.monotonic()


class FakeClock:
    """A clock that moves only when told to."""

    def __init__(self, *, now_ns: int = 1_700_000_000_000_000_000) -> None:
        self._now_ns = now_ns
        self._monotonic_s = 0.0

    def now_ns(self) -> int:
        return self._now_ns

    def monotonic_s(self) -> float:
        return self._monotonic_s

    def advance(self, seconds: float) -> None:
        self._now_ns += int(seconds * 1e9)
        self._monotonic_s += seconds


def iso_ms(at_ms: int) -> str:
    """Milliseconds since the epoch as the wire writes time: ISO 8601, UTC, milliseconds, `Z`."""
    moment = datetime.fromtimestamp(at_ms / 1000, tz=UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.") + f"{at_ms % 1000:03d}Z"
