"""Reading the arguments of a control operation."""

from __future__ import annotations

from typing import Any

from memdir.core.errors import UsageError


def number(args: dict[str, Any], name: str, default: float, low: float, high: float) -> float:
    """`args[name]`, or `default` when it is missing or null. UsageError when it is no number from `low` to `high`."""
    value = args.get(name, default)
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not low <= value <= high:
        raise UsageError(f"{name} must be a number from {low:g} to {high:g}")
    return value
