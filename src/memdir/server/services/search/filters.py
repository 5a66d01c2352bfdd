"""Filters as `/v3` and `/v4` send them: leaves under AND and OR, made into a condition of the store."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, cast

from memdir.api.v3 import Filters
from memdir.store.errors import InvalidError
from memdir.store.tree.metadata_conditions import COMPARISONS, Condition, Group, Kind, Leaf, matches, number_of, text_of

DEPTH_MAX: Final = 8
LEAVES_MAX: Final = 200
_KINDS: Final = ("metadata", "numeric", "array_contains", "string_contains")
_BOOLEANS: Final[Mapping[object, bool]] = {True: True, False: False, "true": True, "false": False}


def condition_of(filters: Filters | None) -> Condition | None:
    """What metadata must fulfil; None when everything does. InvalidError for what is not a filter."""
    if filters is None or (filters.AND is None and filters.OR is None):
        return None
    return _node({"AND": filters.AND, "OR": filters.OR}, DEPTH_MAX, [LEAVES_MAX])


def fits(condition: Condition | None, metadata: Mapping[str, Any]) -> bool:
    """Whether metadata fulfils a filter."""
    return condition is None or matches(condition, metadata)


def _node(node: object, depth: int, budget: list[int]) -> Condition:
    if not isinstance(node, dict):
        raise InvalidError("a filter must be an object")
    if depth == 0:
        raise InvalidError(f"filters can nest at most {DEPTH_MAX} deep")
    budget[0] -= 1
    if budget[0] < 0:
        raise InvalidError(f"at most {LEAVES_MAX} conditions")
    groups = [(name, node[name]) for name in ("AND", "OR") if node.get(name) is not None]
    if not groups:
        return _leaf(node)
    parts = []
    for name, children in groups:
        if not isinstance(children, list):
            raise InvalidError(f"{name} must be a list")
        parts.append(Group(every=name == "AND", parts=tuple(_node(child, depth - 1, budget) for child in children)))
    return parts[0] if len(parts) == 1 else Group(every=True, parts=tuple(parts))


def _leaf(node: dict[str, Any]) -> Leaf:
    key, wanted = node.get("key"), text_of(node.get("value"))
    if not isinstance(key, str) or wanted is None:
        raise InvalidError("a condition needs key and value", hint="the value is text, a number, true or false")
    kind = node.get("filterType") or "metadata"
    if kind not in _KINDS:
        raise InvalidError(f"unknown filterType {str(kind)[:40]!r}", hint=" or ".join(_KINDS))
    number, comparison = None, node.get("numericOperator") or "="
    if kind == "numeric":
        number = number_of(node.get("value"))
        if number is None or comparison not in COMPARISONS:
            raise InvalidError("a numeric condition needs a number and one of > < >= <= =")
    return Leaf(
        key=key,
        kind=cast(Kind, kind),
        text=wanted,
        number=number,
        comparison=comparison if kind == "numeric" else "=",
        ignore_case=_boolean(node, "ignoreCase"),
        negate=_boolean(node, "negate"),
    )


def _boolean(node: dict[str, Any], name: str) -> bool:
    value = node.get(name)
    if value is None:
        return False
    if not isinstance(value, (bool, str)) or value not in _BOOLEANS:
        raise InvalidError(f"{name} is true or false")
    return _BOOLEANS[value]
