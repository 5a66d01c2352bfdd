"""The block of fields at the beginning of a Markdown file, read as tolerantly as people write it.

A part of YAML, as the front matter of notes uses it: `key: value`, `key: [a, b]`, `key: {"a": 1}` and `key:` with `- item`
lines below; `#` and a space begin a comment. What is nested deeper, or no such line, is passed over; a text that does not begin
with `---`, or does not close it, has no fields.
A whole YAML parser would be a dependency, and one that reads `no` as false and 12:30 as 750.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

Value = str | list[str]

BOOKKEEPING: Final = frozenset({"tags", "tag", "project", "created", "date", "updated", "modified"})
_FENCE: Final = "---"
_LINES_MAX: Final = 1000
"""A longer block is no front matter."""
_FIELD: Final = re.compile(r"([A-Za-z_][A-Za-z0-9_ .-]{0,63}?)\s*:(?:\s+(.*))?$")
_ITEM: Final = re.compile(r"\s*-\s+(.*)$")
_PLAIN: Final = re.compile(r"[\w/(][^\x00-\x1f\x7f-\x9f\u2028\u2029]*")
_AMBIGUOUS: Final = frozenset({"true", "false", "yes", "no", "on", "off", "null", "~", ""})


def parse(text: str) -> tuple[dict[str, Value], str]:
    """The fields, and the text behind them without the empty line that parts them. Of a field given twice the last counts."""
    bare = text.removeprefix("\ufeff")
    lines = bare.split("\n", _LINES_MAX + 2)
    if lines[0].rstrip() != _FENCE:
        return {}, text
    end = next((at for at, line in enumerate(lines[1 : _LINES_MAX + 1], start=1) if line.rstrip() in (_FENCE, "...")), None)
    if end is None:
        return {}, text
    body = "\n".join(lines[end + 1 :])
    return _fields([line.rstrip() for line in lines[1:end]]), re.sub(r"\A\r?\n", "", body, count=1)


def render(fields: Mapping[str, str | int | Sequence[str] | Mapping[str, Any]], body: str) -> str:
    """A file with these fields, in their order, which `parse` reads back (numbers and objects as text)."""
    return "\n".join([_FENCE, *(f"{name}: {_shown(value)}" for name, value in fields.items()), _FENCE, "", body])


def listed(value: Value | None) -> list[str]:
    """A field that is a list, or a text with commas, as a list without empty items."""
    if value is None:
        return []
    items = value.split(",") if isinstance(value, str) else value
    return [item.strip() for item in items if item.strip()]


def single(value: Value | None) -> str | None:
    """A field that is one text; None for a list, an empty one and none."""
    return value.strip() or None if isinstance(value, str) else None


def mapping(value: Value | None) -> dict[str, Any]:
    """A field that is one JSON object; an empty one for anything else, YAML's own way to write one too."""
    if not isinstance(value, str) or not value.startswith("{"):
        return {}
    try:
        found = json.loads(value)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _shown(value: str | int | Sequence[str] | Mapping[str, Any]) -> str:
    if isinstance(value, str | int):
        return _scalar(str(value))
    if isinstance(value, Mapping):
        return json.dumps(dict(value), ensure_ascii=False, sort_keys=True)
    return f"[{', '.join(map(_item, value))}]"


def _fields(lines: list[str]) -> dict[str, Value]:
    fields: dict[str, Value] = {}
    open_list: list[str] | None = None
    for line in lines:
        item = _ITEM.match(line)
        if item is not None and open_list is not None:
            open_list.append(_unquoted(item[1]))
            continue
        found = _FIELD.match(line)
        if found is None:
            continue
        raw = (found[2] or "").strip()
        if raw:
            open_list = None
            fields[found[1]] = _split(raw[1:-1]) if raw[0] == "[" and raw[-1] == "]" else _unquoted(raw)
        else:
            open_list = []
            fields[found[1]] = open_list
    return fields


def _split(inner: str) -> list[str]:
    """The items of a flow list: commas inside quotes part nothing."""
    items = re.findall(r'\s*("(?:[^"\\]|\\.)*"|\'(?:[^\']|\'\')*\'|[^,]*)\s*(?:,|$)', inner)
    return [_unquoted(item) for item in items if item.strip()]


def _unquoted(raw: str) -> str:
    text = raw.strip()
    if len(text) >= 2 and text[0] == text[-1] == '"':
        try:
            return str(json.loads(text))
        except ValueError:
            return text[1:-1]
    if len(text) >= 2 and text[0] == text[-1] == "'":
        return text[1:-1].replace("''", "'")
    is_object = text.startswith("{") and text.endswith("}")
    return text if is_object else re.split(r"\s+#(?:\s|$)", text, maxsplit=1)[0]


def _scalar(text: str) -> str:
    plain = _PLAIN.fullmatch(text) and text == text.strip() and text.lower() not in _AMBIGUOUS
    return text if plain and not re.search(r":(\s|$)|\s#", text) else json.dumps(text, ensure_ascii=False)


def _item(text: str) -> str:
    return json.dumps(text, ensure_ascii=False) if set(text) & set(",[]{}\"'") else _scalar(text)
