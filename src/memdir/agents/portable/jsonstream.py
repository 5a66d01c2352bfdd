"""The entries of a large JSON file one after the other, in bounded memory.

The files are an array, or an object whose members are arrays and single values: entries of such arrays, and single members,
are decoded one by one. What is held is one entry and a piece of the file.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, Any, Final

from memdir.agents.portable.item import PortableError

PIECE_CHARS: Final = 1 << 18
ENTRY_MAX_CHARS: Final = 16 << 20
_SPACE: Final = " \t\n\r"
_decoder: Final = json.JSONDecoder()


@dataclass(frozen=True, slots=True)
class Entry:
    """One value. `key` is the member of the object it stands in, "" in an array; `index` its place there, None for a single
    member; `line` is 1-based."""

    key: str
    index: int | None
    line: int
    value: Any


def entries(source: IO[str]) -> Iterator[Entry]:
    """All values of the file, in their order. PortableError with the line of what is no JSON."""
    reader = _Reader(source)
    opening = reader.peek()
    if opening == "[":
        yield from _elements(reader, "")
    elif opening == "{":
        yield from _members(reader)
    else:
        raise reader.error("the file is no JSON: it begins with neither { nor [")
    if reader.peek() != "":
        raise reader.error("there is more behind the end of the JSON")


def _members(reader: _Reader) -> Iterator[Entry]:
    reader.take("{")
    if reader.peek() == "}":
        reader.take("}")
        return
    while True:
        key = reader.value()
        if not isinstance(key, str):
            raise reader.error("a member has no name")
        reader.take(":")
        line = reader.line
        if reader.peek() == "[":
            yield from _elements(reader, key)
        else:
            yield Entry(key, None, line, reader.value())
        if reader.peek() != ",":
            reader.take("}")
            return
        reader.take(",")


def _elements(reader: _Reader, key: str) -> Iterator[Entry]:
    reader.take("[")
    if reader.peek() == "]":
        reader.take("]")
        return
    index = 0
    while True:
        reader.peek()
        line = reader.line
        yield Entry(key, index, line, reader.value())
        index += 1
        if reader.peek() != ",":
            reader.take("]")
            return
        reader.take(",")


class _Reader:
    """A window on the file that moves on."""

    def __init__(self, source: IO[str]) -> None:
        self._source = source
        self._buffer = ""
        self._at = 0
        self._ended = False
        self.line = 1

    def peek(self) -> str:
        """The next character that is no space, "" at the end."""
        while True:
            while self._at < len(self._buffer):
                character = self._buffer[self._at]
                if character not in _SPACE and character != "\ufeff":
                    return character
                self._at += 1
                self.line += character == "\n"
            if not self._more():
                return ""

    def take(self, character: str) -> None:
        found = self.peek()
        if found != character:
            raise self.error(f"{character} is expected, and there is {found or 'the end of the file'}")
        self._at += 1

    def value(self) -> Any:
        """The next value, whole."""
        if self.peek() == "":
            raise self.error("the file ends too early")
        while True:
            try:
                found, end = _decoder.raw_decode(self._buffer, self._at)
            except json.JSONDecodeError as error:
                line = self.line + self._buffer.count("\n", self._at, error.pos)
                if len(self._buffer) - self._at > ENTRY_MAX_CHARS:
                    raise PortableError(f"line {line}: no whole entry within {ENTRY_MAX_CHARS >> 20} MiB") from None
                if not self._more():
                    raise PortableError(f"line {line}: {error.msg}") from None
                continue
            except RecursionError:
                raise self.error("it is nested too deeply") from None
            if self._may_go_on(end) and self._more():
                continue
            self.line += self._buffer.count("\n", self._at, end)
            self._at = end
            return found

    def error(self, why: str) -> PortableError:
        return PortableError(f"line {self.line}: {why}")

    def _may_go_on(self, end: int) -> bool:
        """Whether what ends here could be the beginning of a longer number."""
        rest = self._buffer[end : end + 3]
        return not rest or (len(rest) < 3 and rest[0] in ".eE")

    def _more(self) -> bool:
        if self._ended:
            return False
        try:
            piece = self._source.read(PIECE_CHARS)
        except UnicodeDecodeError as error:
            raise self.error(f"it is no UTF-8: {error.reason}") from None
        self._buffer = self._buffer[self._at :] + piece
        self._at = 0
        self._ended = not piece
        return bool(piece)
