"""Conditions on a document's metadata, as `/v3` and `/v4` send them: leaves under AND and OR."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any, Final

from memdir.api.v3 import Filters
from memdir.store.errors import InvalidError

Predicate = Callable[[Mapping[str, Any]], bool]

DEPTH_MAX: Final = 8
LEAVES_MAX: Final = 200
_NUMERIC: Final[Mapping[str, Callable[[float, float], bool]]] = {
    ">": operator.gt,
    "<": operator.lt,
    ">=": operator.ge,
    "<=": operator.le,
    "=": operator.eq,
}


def predicate(filters: Filters | None) -> Predicate | None:
    """What a document's metadata must fulfil; None when everything does. InvalidError for what is not a filter."""
    if filters is None or (filters.AND is None and filters.OR is None):
        return None
    budget = [LEAVES_MAX]
    return _node({"AND": filters.AND, "OR": filters.OR}, DEPTH_MAX, budget)


def _node(node: object, depth: int, budget: list[int]) -> Predicate:
    if not isinstance(node, dict):
        raise InvalidError("a filter must be an object")
    if depth == 0:
        raise InvalidError(f"filters can nest at most {DEPTH_MAX} deep")
    groups = [(name, node[name]) for name in ("AND", "OR") if node.get(name) is not None]
    if not groups:
        budget[0] -= 1
        if budget[0] < 0:
            raise InvalidError(f"at most {LEAVES_MAX} conditions")
        return _leaf(node)
    parts: list[tuple[bool, list[Predicate]]] = []
    for name, children in groups:
        if not isinstance(children, list):
            raise InvalidError(f"{name} must be a list")
        parts.append((name == "AND", [_node(child, depth - 1, budget) for child in children]))
    return lambda metadata: all(
        all(part(metadata) for part in group) if is_and else any(part(metadata) for part in group) for is_and, group in parts
    )


def _leaf(node: dict[str, Any]) -> Predicate:
    key, wanted = node.get("key"), node.get("value")
    if not isinstance(key, str) or wanted is None:
        raise InvalidError("a condition needs key and value")
    negate = node.get("negate") in (True, "true")
    fold = node.get("ignoreCase") in (True, "true")
    test = _test(str(node.get("filterType") or "metadata"), wanted, node, fold=fold)
    return lambda metadata: (key in metadata and test(metadata[key])) != negate


def _test(kind: str, wanted: object, node: dict[str, Any], *, fold: bool) -> Callable[[Any], bool]:
    if kind == "numeric":
        symbol = str(node.get("numericOperator") or "=")
        compare = _NUMERIC.get(symbol)
        number = _number(wanted)
        if compare is None or number is None:
            raise InvalidError("a numeric condition needs a number and one of > < >= <= =")
        return lambda value: (found := _number(value)) is not None and compare(found, number)
    text = _text(wanted, fold=fold)
    if kind == "metadata":
        return lambda value: _text(value, fold=fold) == text
    if kind == "array_contains":
        return lambda value: isinstance(value, list) and any(_text(item, fold=fold) == text for item in value)
    if kind == "string_contains":
        return lambda value: text in _text(value, fold=fold)
    raise InvalidError(f"unknown filterType {kind[:40]!r}", hint="metadata, numeric, array_contains or string_contains")


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    try:
        return float(value)
    except (ValueError, OverflowError):
        return None


def _text(value: object, *, fold: bool) -> str:
    """Values compare as text, `true` and `1` as JSON spells them: clients send numbers and booleans as strings."""
    text = ("true" if value else "false") if isinstance(value, bool) else str(value)
    return text.casefold() if fold else text
