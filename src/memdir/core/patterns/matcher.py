"""The lines of a file that a pattern matches, as GNU grep finds them, in time that grows with the file and no faster.

Matching is RE2's (automata, no backtracking; Russ Cox, "Regular Expression Matching in the Wild", 2010). A file that is
UTF-8 is matched by characters, as grep does in a UTF-8 locale; any other by bytes, as grep does in the C locale.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from memdir.core.errors import UsageError
from memdir.core.patterns import syntax
from memdir.core.patterns.syntax import Alternatives, Among, At, Char, Node, Repeat, Series

BINARY_LOOK_BYTES: Final = 32_768
"""A NUL in so many first bytes makes a file binary, as for grep (which looks at its first buffer)."""
_AUTOMATON_MAX_BYTES: Final = 16 << 20

_TEXT_CLASSES: Final = {
    "alpha": r"\p{L}\p{M}\p{Nl}", "digit": "0-9", "alnum": r"\p{L}\p{M}\p{N}", "upper": r"\p{Lu}\p{Lt}", "lower": r"\p{Ll}",
    "space": r"\t\v\f\r\p{Z}", "blank": r"\t\p{Zs}", "punct": r"\p{P}\p{S}", "print": r"\p{L}\p{M}\p{N}\p{P}\p{S}\p{Z}",
    "graph": r"\p{L}\p{M}\p{N}\p{P}\p{S}", "cntrl": r"\x00-\x09\x0b-\x1f\x7f", "xdigit": "0-9A-Fa-f",
    "word": r"\p{L}\p{M}\p{N}_",
}  # fmt: skip
_BYTE_CLASSES: Final = {
    "alpha": "A-Za-z", "digit": "0-9", "alnum": "A-Za-z0-9", "upper": "A-Z", "lower": "a-z", "space": r"\t\v\f\r ",
    "blank": r"\t ", "punct": r"!-/:-@\[-`{-~", "print": r" -~", "graph": "!-~", "cntrl": r"\x00-\x09\x0b-\x1f\x7f",
    "xdigit": "0-9A-Fa-f", "word": "A-Za-z0-9_",
}  # fmt: skip
_EDGES: Final = {
    "line start": "^", "line end": "$", "edge": r"\b", "no edge": r"\B", "word start": r"\b", "word end": r"\b",
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Pattern:
    """What is looked for. `regex` None: `text` is taken literally."""

    text: str
    regex: bool = False
    ignore_case: bool = False
    whole_words: bool = False


@dataclass(frozen=True, slots=True)
class Line:
    """A line that matches; the bytes are the first match in it, half open, in the file."""

    number: int
    start_byte: int
    end_byte: int
    line_start: int
    line_end: int


class Matcher:
    """One pattern, ready to use. Thread-safe."""

    def __init__(self, pattern: Pattern) -> None:
        """UsageError for what is no pattern."""
        read = syntax.parsed if pattern.regex else syntax.literal
        tree = read(pattern.text)
        # As grep in the C locale reads it: each byte is a character.
        raw = read(pattern.text.encode("utf-8", "surrogateescape").decode("latin-1"))
        self.pattern: Final = pattern
        self.tree: Final = tree
        self._raw_only = any("\ud800" <= character <= "\udfff" for character in pattern.text)
        plain = not (pattern.regex or pattern.ignore_case or pattern.whole_words)
        self._needle = pattern.text.encode("utf-8", "surrogateescape") if plain and "\n" not in pattern.text else None
        self._bytes = _compiled(_Writer(pattern, by_bytes=True).whole(raw), by_bytes=True)
        self._text = self._bytes if self._raw_only else _compiled(_Writer(pattern, by_bytes=False).whole(tree), by_bytes=False)

    def lines(self, data: bytes) -> Iterator[Line]:
        """The lines of `data` that match, in order, each once."""
        if self._needle is not None:
            yield from self._needle_lines(data, self._needle)
            return
        compiled = self._compiled_for(data)
        number, counted, at, end = 1, 0, 0, len(data)
        while at < end:
            found = compiled.search(data, at)
            if found is None:
                return
            first, last = found.span(1)
            if first == end and data.endswith(b"\n"):
                return  # behind the last line end there is no line
            line_start = data.rfind(b"\n", 0, first) + 1
            line_end = data.find(b"\n", first)
            line_end = end if line_end < 0 else line_end
            number += data.count(b"\n", counted, line_start)
            counted = line_start
            yield Line(number, first, last, line_start, line_end)
            at = line_end + 1

    def parts(self, data: bytes, lines: Iterable[Line]) -> Iterator[Line]:
        """The matches in lines of `data` that are not empty, from left to right, each the longest at its place, as grep -o
        prints them: as lines of their own."""
        compiled = self._compiled_for(data)
        for line in lines:
            at = line.line_start
            while at < line.line_end and (found := compiled.search(data, at, line.line_end)) is not None:
                first, last = found.span(1)
                if last > first:
                    yield Line(line.number, first, last, first, last)
                at = max(last, first + 1)

    def _compiled_for(self, data: bytes) -> Any:
        return self._text if is_utf8(data) else self._bytes

    def _needle_lines(self, data: bytes, needle: bytes) -> Iterator[Line]:
        number, counted, at, end = 1, 0, 0, len(data)
        while at < end and (first := data.find(needle, at)) >= 0 and not (first == end and data.endswith(b"\n")):
            line_start = data.rfind(b"\n", 0, first) + 1
            line_end = data.find(b"\n", first)
            line_end = end if line_end < 0 else line_end
            number += data.count(b"\n", counted, line_start)
            counted = line_start
            yield Line(number, first, first + len(needle), line_start, line_end)
            at = line_end + 1

    def matches(self, data: bytes) -> bool:
        """Whether any line does."""
        return next(self.lines(data), None) is not None


def is_binary(data: bytes) -> bool:
    """As grep decides it."""
    return b"\0" in data[:BINARY_LOOK_BYTES]


def is_utf8(data: bytes) -> bool:
    if data.isascii():
        return True
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _compiled(pattern: str, *, by_bytes: bool) -> Any:
    import re2

    options = re2.Options()
    options.log_errors = False
    options.max_mem = _AUTOMATON_MAX_BYTES
    options.longest_match = True  # POSIX: the leftmost, and of those the longest
    if by_bytes:
        options.encoding = re2.Options.Encoding.LATIN1
    try:
        return re2.compile(pattern.encode("latin-1" if by_bytes else "utf-8"), options)
    except re2.error as error:
        reason = error.args[0].decode("utf-8", "replace") if error.args and isinstance(error.args[0], bytes) else str(error)
        raise UsageError(
            f"the regular expression cannot be searched: {reason}", hint="use fewer or smaller repetitions"
        ) from None


class _Writer:
    """A tree in RE2's own syntax, in which `^` and `$` are at lines and nothing matches a line end."""

    def __init__(self, pattern: Pattern, *, by_bytes: bool) -> None:
        self._by_bytes = by_bytes
        self._classes = _BYTE_CLASSES if by_bytes else _TEXT_CLASSES
        self._fold = pattern.ignore_case
        self._words = pattern.whole_words

    def whole(self, node: Node) -> str:
        inner = f"({self.write(node)})"
        if self._words:
            no_word = f"[^{self._classes['word']}\\n]"
            inner = f"(?:^|{no_word}){inner}(?:$|{no_word})"
        return ("(?m)" if self._by_bytes or not self._fold else "(?mi)") + inner

    def write(self, node: Node) -> str:
        if isinstance(node, Char):
            return self._one_of([(node.code, node.code)], (), negated=False)
        if isinstance(node, Among):
            return self._one_of(list(node.ranges), node.classes, negated=node.negated)
        if isinstance(node, At):
            return _EDGES[node.edge]
        if isinstance(node, Series):
            return "".join(map(self.write, node.parts))
        if isinstance(node, Alternatives):
            return f"(?:{'|'.join(map(self.write, node.parts))})"
        assert isinstance(node, Repeat)
        count = f"{{{node.low},{'' if node.high is None else node.high}}}"
        return f"(?:{self.write(node.part)}){count}"

    def _one_of(self, ranges: list[tuple[int, int]], classes: tuple[str, ...], *, negated: bool) -> str:
        if self._fold:
            ranges = ranges + [pair for low, high in ranges for pair in self._other_case(low, high)]
            if "upper" in classes or "lower" in classes:
                classes = (*classes, "upper", "lower")
        items = "".join(_code(low) if low == high else f"{_code(low)}-{_code(high)}" for low, high in ranges)
        items += "".join(self._classes[name] for name in classes)
        if negated:
            return f"[^{items}\\n]"
        return f"[{items}]"

    def _other_case(self, low: int, high: int) -> list[tuple[int, int]]:
        """The other case of the ASCII letters in a range. RE2 folds the rest of Unicode by itself, but for the dotless i, whose
        capital is I."""
        found = []
        for first, last, apart in ((65, 90, 32), (97, 122, -32)):
            if low <= last and high >= first:
                found.append((max(low, first) + apart, min(high, last) + apart))
        if not self._by_bytes and (low <= ord("i") <= high or low <= ord("I") <= high):
            found.append((0x131, 0x131))
        return found


def _code(code: int) -> str:
    return f"\\x{{{code:x}}}"
