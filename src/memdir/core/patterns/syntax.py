"""POSIX extended regular expressions as GNU grep -E reads them, without back-references, to a tree.

Both the matcher and the trigrams are made of this tree, so they cannot disagree on what a pattern means. See IEEE 1003.1,
chapter 9.4, and the GNU grep manual, section "Regular Expressions", for `\\w`, `\\s`, `\\b`, `\\<` and the like.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from memdir.core.errors import UsageError

REPEAT_MAX: Final = 1000
"""The largest count in `{m,n}`: RE2's own bound."""
_DEPTH_MAX: Final = 100

CLASSES: Final = frozenset(
    ("alpha", "digit", "alnum", "upper", "lower", "space", "blank", "punct", "print", "graph", "cntrl", "xdigit")
)
Edge = Literal["line start", "line end", "edge", "no edge", "word start", "word end"]


@dataclass(frozen=True, slots=True)
class Char:
    """One character."""

    code: int


@dataclass(frozen=True, slots=True)
class Among:
    """One character of a set: ranges (both ends belong to it) and names of CLASSES, or `word`. Never a line end."""

    ranges: tuple[tuple[int, int], ...]
    classes: tuple[str, ...]
    negated: bool


@dataclass(frozen=True, slots=True)
class At:
    """A place between characters."""

    edge: Edge


@dataclass(frozen=True, slots=True)
class Series:
    """One after the other; () matches the empty text."""

    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Alternatives:
    """One of several."""

    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    """`low` to `high` times; None: any number."""

    part: Node
    low: int
    high: int | None


Node = Char | Among | At | Series | Alternatives | Repeat
ANY_CHARACTER: Final = Among((), (), True)
_EDGES: Final[dict[str, Edge]] = {
    "b": "edge",
    "B": "no edge",
    "<": "word start",
    ">": "word end",
    "`": "line start",
    "'": "line end",
}


def literal(text: str) -> Node:
    """The characters as they are; several lines: any of them, as grep -F takes them."""
    lines = [Series(tuple(Char(ord(character)) for character in line)) for line in text.split("\n")]
    return lines[0] if len(lines) == 1 else Alternatives(tuple(lines))


def parsed(pattern: str) -> Node:
    """The tree of a pattern; several lines: any of them. UsageError."""
    lines = [_Parser(line).whole() for line in pattern.split("\n")]
    return lines[0] if len(lines) == 1 else Alternatives(tuple(lines))


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._depth = 0

    def whole(self) -> Node:
        return self._either()

    def _peek(self) -> str:
        return self._text[self._at : self._at + 1]

    def _either(self) -> Node:
        parts = [self._sequence()]
        while self._peek() == "|":
            self._at += 1
            parts.append(self._sequence())
        return parts[0] if len(parts) == 1 else Alternatives(tuple(parts))

    def _sequence(self) -> Node:
        parts: list[Node] = []
        self._pass_over_repetitions()
        while (head := self._peek()) and head != "|" and not (head == ")" and self._depth):
            part = self._atom()
            if head == "^" and self._bounds() is not None:
                self._pass_over_repetitions()
                continue  # an anchor that may be there or not
            parts.append(self._repeated(part))
        _check_word_edges(parts, self._text)
        return Series(tuple(parts))

    def _pass_over_repetitions(self) -> None:
        """At the start of an expression they repeat nothing and count for nothing, as GNU grep warns and does."""
        while self._bounds() is not None:
            pass

    def _repeated(self, node: Node) -> Node:
        depth = 0
        while True:
            bounds = self._bounds()
            if bounds is None:
                return node
            depth += 1
            if isinstance(node, At):
                if node.edge not in ("line start", "line end"):
                    raise _wrong("the edge of a word cannot be repeated", self._text)
                node = node if bounds[0] else Series(())  # an anchor that may be there or not
                continue
            if depth > _DEPTH_MAX:
                raise _wrong("it repeats a repetition too often", self._text)
            node = Repeat(node, *bounds)

    def _bounds(self) -> tuple[int, int | None] | None:
        head = self._peek()
        simple: dict[str, tuple[int, int | None]] = {"*": (0, None), "+": (1, None), "?": (0, 1)}
        if head and head in simple:
            self._at += 1
            return simple[head]
        if head != "{":
            return None
        end = self._text.find("}", self._at)
        inner = self._text[self._at + 1 : end] if end > 0 else ""
        low, comma, high = inner.partition(",")
        if (
            not inner
            or inner == ","
            or not all(part == "" or (part.isascii() and part.isdigit()) for part in (low, high))
            or (not comma and not low)
        ):
            return None  # a brace that is no repetition stands for itself
        bounds = (int(low or 0), int(high) if high else None) if comma else (int(low), int(low))
        if max(bounds[0], bounds[1] or 0) > REPEAT_MAX:
            raise _wrong(f"a repetition has more than {REPEAT_MAX} times", self._text)
        if bounds[1] is not None and bounds[1] < bounds[0]:
            raise _wrong(f"the repetition {{{inner}}} ends before it begins", self._text)
        self._at = end + 1
        return bounds

    def _atom(self) -> Node:
        head = self._peek()
        self._at += 1
        if head == "(":
            self._depth += 1
            if self._depth > _DEPTH_MAX:
                raise _wrong(f"more than {_DEPTH_MAX} groups are inside each other", self._text)
            node = self._either()
            if self._peek() != ")":
                raise _wrong("there is a ( without its )", self._text)
            self._at += 1
            self._depth -= 1
            return node
        if head == "[":
            return self._among()
        if head == ".":
            return ANY_CHARACTER
        if head == "^":
            return At("line start")
        if head == "$":
            return At("line end")
        if head == "\\":
            return self._escaped()
        return Char(ord(head))

    def _escaped(self) -> Node:
        head = self._peek()
        self._at += 1
        if not head:
            raise _wrong("it ends with a backslash", self._text)
        if head in "wW":
            return Among((), ("word",), head == "W")
        if head in "sS":
            return Among((), ("space",), head == "S")
        if head in _EDGES:
            return At(_EDGES[head])
        if head in "123456789":
            raise _wrong("back-references are not supported", self._text, hint="they cannot be matched in bounded time")
        if head.isascii() and head.isalnum():
            raise _wrong(f"\\{head} means nothing", self._text, hint="this is POSIX extended syntax: [0-9] for a digit")
        return Char(ord(head))

    def _among(self) -> Node:
        text, start = self._text, self._at
        negated = self._peek() == "^"
        self._at += negated
        ranges: list[tuple[int, int]] = []
        classes: list[str] = []
        first = True
        while True:
            head = self._peek()
            if not head:
                raise _wrong("there is a [ without its ]", text)
            if head == "]" and not first:
                self._at += 1
                within = text[start : self._at - 1]
                if len(within) > 1 and within[0] == within[-1] == ":":
                    raise _wrong(f"[{within}] is a class only within brackets", text, hint=f"[[{within}]]")
                return Among(tuple(ranges), tuple(classes), negated)
            first = False
            if head == "[" and text[self._at + 1 : self._at + 2] in (":", ".", "="):
                named = self._class(text, start)
                if len(named) == 1:
                    ranges.append((ord(named), ord(named)))
                else:
                    classes.append(named)
                continue
            self._at += 1
            low = high = ord(head)
            if self._peek() == "-" and text[self._at + 1 : self._at + 2] not in ("", "]"):
                high = ord(text[self._at + 1])
                self._at += 2
                if high < low:
                    raise _wrong(f"the range {chr(low)}-{chr(high)} ends before it begins", text)
            ranges.append((low, high))

    def _class(self, text: str, start: int) -> str:
        kind = text[self._at + 1]
        end = text.find(kind + "]", self._at + 2)
        name = text[self._at + 2 : end] if end >= 0 else ""
        if name not in CLASSES if kind == ":" else len(name) != 1:  # collating elements of several characters are no C locale's
            raise _wrong(f"{text[start - 1 : end + 2 if end >= 0 else None]} names no class of characters", text)
        self._at = end + 2
        return name


def _check_word_edges(parts: Sequence[Node], text: str) -> None:
    """`\\<` and `\\>` are what `\\b` is beside a character that is part of a word, which RE2 can find."""
    for number, part in enumerate(parts):
        if not isinstance(part, At) or part.edge not in ("word start", "word end"):
            continue
        beside = number + 1 if part.edge == "word start" else number - 1
        if not 0 <= beside < len(parts) or not _in_word(parts[beside]):
            raise _wrong("\\< has to stand before, and \\> behind, a character of a word", text, hint="use \\b")


def _in_word(node: Node) -> bool:
    if isinstance(node, Char):
        return _is_word_code(node.code)
    if isinstance(node, Among):
        named = all(name in ("digit", "xdigit", "word", "alpha", "alnum", "upper", "lower") for name in node.classes)
        return (
            not node.negated
            and named
            and all(high < 128 and all(map(_is_word_code, range(low, high + 1))) for low, high in node.ranges)
        )
    if isinstance(node, Repeat):
        return node.low > 0 and _in_word(node.part)
    return False


def _is_word_code(code: int) -> bool:
    return code < 128 and (chr(code).isalnum() or code == ord("_"))


def _wrong(what: str, pattern: str, *, hint: str = "see the examples of `memdir grep --help`") -> UsageError:
    return UsageError(f"{pattern!r} is no regular expression that can be searched: {what}", hint=hint)
