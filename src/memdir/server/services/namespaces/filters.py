"""The filters of `/ns` in the words of `/v3`, whose service judges them."""

from __future__ import annotations

from typing import Any, Final

from memdir.api.v3 import Filters
from memdir.server.services.search.filters import DEPTH_MAX
from memdir.store.errors import InvalidError

_GROUPS: Final = {"and": "AND", "or": "OR"}
_NUMERIC: Final = {"gt": ">", "gte": ">=", "lt": "<", "lte": "<="}
_TEXTS: Final = {
    "eq": ("metadata", False),
    "neq": ("metadata", True),
    "contains": ("string_contains", False),
    "notContains": ("string_contains", True),
    "arrayContains": ("array_contains", False),
    "arrayNotContains": ("array_contains", True),
}


def filters_of(expression: dict[str, Any] | None) -> Filters | None:
    """An expression `{field, operator, value}` under `{operator: and|or, operands}`. InvalidError for what is none."""
    if expression is None:
        return None
    made = _node(expression, DEPTH_MAX)
    return Filters.model_validate(made if "AND" in made or "OR" in made else {"AND": [made]})


def _node(node: object, depth: int) -> dict[str, Any]:
    if not isinstance(node, dict) or not isinstance(node.get("operator"), str):
        raise InvalidError("a filter needs an operator", hint='as in {"field": "source", "operator": "eq", "value": "slack"}')
    if depth == 0:
        raise InvalidError(f"filters can nest at most {DEPTH_MAX} deep")
    operator = node["operator"]
    if operator in _GROUPS:
        operands = node.get("operands")
        if not isinstance(operands, list):
            raise InvalidError(f"the operands of {operator!r} must be a list")
        return {_GROUPS[operator]: [_node(operand, depth - 1) for operand in operands]}
    field, value = node.get("field"), node.get("value")
    if not isinstance(field, str) or not isinstance(value, (str, int, float)):
        raise InvalidError("a filter needs field and value", hint="the value is text, a number, true or false")
    if operator in _NUMERIC:
        if isinstance(value, (bool, str)):
            raise InvalidError(f"{operator} compares numbers")
        return {"key": field, "value": value, "filterType": "numeric", "numericOperator": _NUMERIC[operator]}
    if operator not in _TEXTS:
        known = ", ".join((*_GROUPS, *_NUMERIC, *_TEXTS))
        raise InvalidError(f"unknown operator {operator[:40]!r}", hint=f"one of {known}")
    kind, negate = _TEXTS[operator]
    case = node.get("caseSensitive")
    return {"key": field, "value": value, "filterType": kind, "negate": negate, "ignoreCase": case is False}
