"""Smooth the radar's raw distance: waves and driftwood make single echoes useless."""

from __future__ import annotations

from collections import deque
from statistics import median


class MedianWindow:
    """Median over the last `size` echoes; spikes from floating branches vanish, a real rise passes after size/2."""

    def __init__(self, size: int = 9) -> None:
        if size % 2 == 0:
            raise ValueError("size must be odd")
        self._echoes: deque[float] = deque(maxlen=size)

    def push(self, distance_cm: float) -> float:
        self._echoes.append(distance_cm)
        return median(self._echoes)


def level_cm(arm_height_cm: float, distance_cm: float) -> float:
    """Water above the gauge's zero."""
    return arm_height_cm - distance_cm
