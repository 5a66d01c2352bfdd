"""What the scripts beside this one share; they run with a published client in an interpreter of its own."""

from __future__ import annotations

import select
import time
from collections.abc import Callable
from typing import Any

WAIT_S = 90.0


def until(ask: Callable[[], Any], what: str) -> Any:
    """Ask until there is an answer: the pipeline works behind the calls."""
    deadline = time.monotonic() + WAIT_S
    while time.monotonic() < deadline:
        if found := ask():
            return found
        select.select([], [], [], 0.2)
    raise AssertionError(f"never: {what}")
