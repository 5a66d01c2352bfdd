"""One entry into a JSON text of somebody else, and out of it again: every other byte stays, comments and odd forms included.

JSON (RFC 8259) with what hosts allow in their settings: `//` and `/* */` comments, commas behind the last entry. Pure.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from memdir.core.errors import MemdirError

_DEPTH_MAX: Final = 100
_SPACE: Final = re.compile(r"(?:[ \t\r\n]+|//[^\r\n]*|/\*.*?\*/)*", re.DOTALL)
_STRING: Final = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*"')
_PLAIN: Final = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null")
_SAME_LINE: Final = re.compile(r"[ \t]*(?:/\*[^\r\n]*?\*/[ \t]*)*(?://[^\r\n]*)?(?=\r|\n)")
_INDENT: Final = re.compile(r"^([ \t]+)\S", re.MULTILINE)


class JsonTextError(MemdirError):
    """The text is no JSON, or holds something else where the entry belongs."""


@dataclass(slots=True, kw_only=True)
class Node:
    """A value and where it stands: `text[start:end]`."""

    start: int
    end: int
    value: Any
    entries: list[Entry] | None
    """Of an object or array; None for anything else."""


@dataclass(slots=True, kw_only=True)
class Entry:
    key: str | None
    """None in an array."""
    start: int
    """Where the key, or the value, begins."""
    node: Node
    comma: int
    """Just behind the comma that follows; -1 without one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Put:
    """An entry that was put in, so that it can be taken out: `value` under `key` (None: appended) of what `path` leads to."""

    path: tuple[str, ...]
    key: str | None
    value: Any
    there: int
    """How much of `path` was there before; the rest was made."""
    interior: str | None
    """What stood between the brackets of an empty object or array that got its first entry."""


def parse(text: str) -> Node:
    """The tree of a whole text. JsonTextError with line and column."""
    try:
        node = _value(text, _space(text, 0), 0)
    except RecursionError:
        raise JsonTextError(f"it is nested deeper than {_DEPTH_MAX}") from None
    if _space(text, node.end) != len(text):
        _fail(text, _space(text, node.end), "something follows the value")
    return node


def found(text: str, path: tuple[str, ...], key: str | None, is_ours: Callable[[Any], bool]) -> bool:
    """Whether the entry is there."""
    at = _at(parse(text), path)
    return at is not None and any(_is(entry, key, is_ours) for entry in at.entries or ())


def put(text: str, path: tuple[str, ...], key: str | None, value: Any) -> tuple[str, Put]:
    """`text` with the entry behind the others, in the text's own style, objects on the way made. JsonTextError when something
    else than an object (or, for an entry without a key, an array) is in the way."""
    root = parse(text)
    there, node = 0, root
    while True:
        wanted_list = there == len(path) and key is None
        if not isinstance(node.value, list if wanted_list else dict):
            shown = ".".join(path[:there]) or "the whole"
            raise JsonTextError(f"{shown} is no {'list' if wanted_list else 'object'}", hint="mend it by hand")
        following = _last(node, path[there]) if there < len(path) else None
        if following is None:
            break
        there, node = there + 1, following
    added: Any = value
    name = key
    if there < len(path):
        added = [value] if key is None else {key: value}
        for step in reversed(path[there + 1 :]):
            added = {step: added}
        name = path[there]
    interior = text[node.start + 1 : node.end - 1] if not node.entries else None
    result = _with_entry(text, node, name, added)
    if parse(result).value != _expected(root.value, path, key, value):
        raise JsonTextError("the entry cannot be put in without changing something else", hint="mend the file by hand")
    return result, Put(path=path, key=key, value=value, there=there, interior=interior)


def take_out(text: str, done: Put, is_ours: Callable[[Any], bool]) -> str:
    """`text` without the entry, and without what was made for it and is empty now. The same text when it is not there."""
    for depth in range(len(done.path), done.there - 1, -1):
        node = _at(parse(text), done.path[:depth])
        if node is None or node.entries is None:
            continue
        whole = depth == len(done.path)
        for number in reversed(range(len(node.entries))):
            entry = node.entries[number]
            if whole:
                ours = _is(entry, done.key, is_ours)
            else:
                ours = entry.key == done.path[depth] and entry.node.entries == [] and not entry.node.value
            if ours:
                text = _without_entry(text, node, number, done.interior if depth == done.there else None)
                break
    return text


def _expected(value: Any, path: tuple[str, ...], key: str | None, added: Any) -> Any:
    if not path:
        return [*value, added] if key is None else {**value, key: added}
    below = value.get(path[0], [] if key is None and len(path) == 1 else {})
    return {**value, path[0]: _expected(below, path[1:], key, added)}


def _at(node: Node | None, path: tuple[str, ...]) -> Node | None:
    for step in path:
        node = None if node is None else _last(node, step)
    return node


def _last(node: Node, key: str) -> Node | None:
    """Of several entries with one name the last counts, as for every JSON parser."""
    return next((entry.node for entry in reversed(node.entries or []) if entry.key == key), None)


def _is(entry: Entry, key: str | None, is_ours: Callable[[Any], bool]) -> bool:
    return entry.key == key and is_ours(entry.node.value)


# --- writing -----------------------------------------------------------------------------------------------------------


def _with_entry(text: str, node: Node, name: str | None, value: Any) -> str:
    end = "\r\n" if text.count("\r\n") * 2 > text.count("\n") else "\n"
    label = "" if name is None else json.dumps(name, ensure_ascii=False) + ": "
    entries = node.entries or []
    inside = text[node.start : node.end]
    if entries and "\n" not in inside:
        at = entries[-1].comma if entries[-1].comma >= 0 else entries[-1].node.end
        comma = " " if entries[-1].comma >= 0 else ", "
        return text[:at] + comma + label + json.dumps(value, ensure_ascii=False) + text[at:]
    outer = _indent_of_line(text, node.start)
    step = _step(text)
    inner = _own_indent(text, entries[-1].start, outer + step) if entries else outer + step
    shown = json.dumps(value, indent=step, ensure_ascii=False).replace("\n", end + inner)
    line = f"{end}{inner}{label}{shown}"
    if not entries:
        kept = text[node.start + 1 : node.end - 1].rstrip(" \t\r\n")  # comments, if there is anything
        return text[: node.start + 1] + kept + line + end + outer + text[node.end - 1 :]
    last = entries[-1]
    if last.comma >= 0:
        at = _line_rest(text, last.comma)
        return text[:at] + line + "," + text[at:]
    at = _line_rest(text, last.node.end)
    return text[: last.node.end] + "," + text[last.node.end : at] + line + text[at:]


def _without_entry(text: str, node: Node, number: int, interior: str | None) -> str:
    entries = node.entries or []
    entry = entries[number]
    stop = entry.comma if entry.comma >= 0 else entry.node.end
    if len(entries) == 1:
        if interior is not None:
            return text[: node.start + 1] + interior + text[node.end - 1 :]
        before = text[node.start + 1 : entry.start].rstrip(" \t\r\n")
        after = text[stop : node.end - 1]
        return text[: node.start + 1] + before + (after if after.strip() else "") + text[node.end - 1 :]
    if number == 0:
        return text[: entry.start] + text[entries[1].start :]
    former = entries[number - 1]
    begin = _line_rest(text, former.comma)
    if number < len(entries) - 1 or entry.comma >= 0:
        return text[:begin] + text[stop:]
    return text[: former.comma - 1] + text[former.comma : begin] + text[entry.node.end :]


def _line_rest(text: str, at: int) -> int:
    """Behind a comment that belongs to the entry before `at`: on the same line, and the last thing there."""
    found_rest = _SAME_LINE.match(text, at)
    return found_rest.end() if found_rest and found_rest[0].strip() else at


def _indent_of_line(text: str, at: int) -> str:
    line = text[text.rfind("\n", 0, at) + 1 : at]
    return line[: len(line) - len(line.lstrip(" \t"))]


def _own_indent(text: str, at: int, otherwise: str) -> str:
    line = text[text.rfind("\n", 0, at) + 1 : at]
    return otherwise if line.strip(" \t") else line


def _step(text: str) -> str:
    """What the text indents by: its least indented line tells."""
    indents = sorted(_INDENT.findall(text), key=len)
    return indents[0] if indents and len(indents[0]) <= 8 else "  "


# --- reading -----------------------------------------------------------------------------------------------------------


def _space(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return at if match is None else match.end()


def _fail(text: str, at: int, what: str) -> None:
    line = text.count("\n", 0, at) + 1
    column = at - text.rfind("\n", 0, at)
    raise JsonTextError(f"it is no JSON: line {line}, column {column}: {what}", hint="mend it by hand; nothing was changed")


def _value(text: str, at: int, depth: int) -> Node:
    opening = text[at : at + 1]
    if opening in ("{", "[") and depth < _DEPTH_MAX:
        return _container(text, at, depth)
    match = (_STRING if opening == '"' else _PLAIN).match(text, at)
    if match is None:
        _fail(text, at, "a value is missing" if depth < _DEPTH_MAX else f"it is nested deeper than {_DEPTH_MAX}")
    assert match is not None
    try:
        value = json.loads(match[0])
    except ValueError as error:
        raise JsonTextError(f"it is no JSON: {error}", hint="mend it by hand; nothing was changed") from None
    return Node(start=at, end=match.end(), value=value, entries=None)


def _container(text: str, start: int, depth: int) -> Node:
    is_object = text[start] == "{"
    closing = "}" if is_object else "]"
    entries: list[Entry] = []
    at = _space(text, start + 1)
    while text[at : at + 1] != closing:
        if entries and entries[-1].comma < 0:
            _fail(text, at, f"a comma or {closing} is missing")
        entry = _entry(text, at, depth, named=is_object)
        at = _space(text, entry.node.end)
        if text[at : at + 1] == ",":
            entry.comma = at + 1
            at = _space(text, at + 1)
        entries.append(entry)
    if is_object:
        value: Any = {entry.key: entry.node.value for entry in entries}
    else:
        value = [entry.node.value for entry in entries]
    return Node(start=start, end=at + 1, value=value, entries=entries)


def _entry(text: str, at: int, depth: int, *, named: bool) -> Entry:
    if not named:
        return Entry(key=None, start=at, node=_value(text, at, depth + 1), comma=-1)
    match = _STRING.match(text, at)
    if match is None:
        _fail(text, at, "a name in double quotes is missing")
    assert match is not None
    colon = _space(text, match.end())
    if text[colon : colon + 1] != ":":
        _fail(text, colon, "a colon is missing")
    node = _value(text, _space(text, colon + 1), depth + 1)
    try:
        return Entry(key=json.loads(match[0]), start=at, node=node, comma=-1)
    except ValueError as error:
        raise JsonTextError(f"it is no JSON: {error}", hint="mend it by hand; nothing was changed") from None
