"""Patterns of an ignore file, byte for byte as git reads them (git-scm.com/docs/gitignore; git's dir.c and wildmatch.c).

The last pattern that matches decides; nothing below an ignored folder comes back, whatever a later `!pattern` says. A pattern
becomes one regular expression over bytes, as git matches bytes: `?` is one byte. Stars never backtrack into each other (each
stretch between two stars takes the first place where it fits, which is as good as any), so no pattern is slow.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

PATTERNS_MAX: Final = 1000
"""Lines of one file that count; every name is held against all of them."""
PATTERN_MAX_BYTES: Final = 1000
_FOLDERS_CACHED_MAX: Final = 4096
_BOM: Final = b"\xef\xbb\xbf"
_LITERAL: Final = re.compile(rb"[^*?\[\\]*")
_NOT_SLASH: Final = rb"[^/]"
_CLASSES: Final = {
    b"alpha": rb"a-zA-Z", b"digit": rb"0-9", b"alnum": rb"a-zA-Z0-9", b"upper": rb"A-Z", b"lower": rb"a-z",
    b"space": rb" \t\n\r\f\v", b"blank": rb" \t", b"punct": rb"!-/:-@\[-`{-~", b"xdigit": rb"0-9a-fA-F",
    b"cntrl": rb"\x00-\x1f\x7f", b"print": rb"\x20-\x7e", b"graph": rb"\x21-\x7e",
}  # fmt: skip

_SLASH: Final = b"/"
_STAR: Final = b"*"
_STARS: Final = b"**"
"""Tokens that are no expression of one byte; `**` only where it stands for whole folders."""


class PatternError(ValueError):
    """A line that can never match anything."""


@dataclass(frozen=True, slots=True)
class Pattern:
    """One line."""

    text: str
    """As written."""
    negated: bool
    only_folders: bool
    only_name: bool
    """Without a slash: held against the last component alone."""
    expression: re.Pattern[bytes]

    def matches(self, path: bytes, *, is_dir: bool) -> bool:
        """`path` is relative to the ignore file, without a slash at either end."""
        if self.only_folders and not is_dir:
            return False
        return self.expression.match(path.rpartition(b"/")[2] if self.only_name else path) is not None


class GitIgnore:
    """One ignore file. Immutable."""

    def __init__(self, data: bytes) -> None:
        self.problems: list[str] = []
        """Lines that cannot match and lines beyond the bound, in sentences."""
        self.patterns: tuple[Pattern, ...] = tuple(reversed(list(self._parse(data))))
        """The last one first: it decides."""
        self._folder = lru_cache(maxsize=_FOLDERS_CACHED_MAX)(lambda folder: self._is_named(folder, is_dir=True))

    def decide(self, path: bytes, *, is_dir: bool) -> Pattern | None:
        """The pattern that decides on exactly this path; folders above it are not asked."""
        return next((pattern for pattern in self.patterns if pattern.matches(path, is_dir=is_dir)), None)

    def ignores(self, path: bytes, *, is_dir: bool) -> bool:
        """Whether `path`, relative to the ignore file, is ignored, by itself or with a folder above it."""
        at = path.find(b"/")
        while at >= 0:
            if self._folder(path[:at]):
                return True
            at = path.find(b"/", at + 1)
        return self._is_named(path, is_dir=is_dir)

    def _is_named(self, path: bytes, *, is_dir: bool) -> bool:
        decided = self.decide(path, is_dir=is_dir)
        return decided is not None and not decided.negated

    def _parse(self, data: bytes) -> Iterator[Pattern]:
        lines = data.removeprefix(_BOM).split(b"\n")
        count = 0
        for number, line in enumerate(lines, start=1):
            if not line or line.startswith(b"#"):
                continue
            text = _without_trailing_spaces(line.removesuffix(b"\r"))
            if not text.strip(b"!/"):
                continue
            count += 1
            if count > PATTERNS_MAX:
                self.problems.append(f"line {number} and everything behind it is left out: more than {PATTERNS_MAX:,} patterns")
                return
            try:
                yield _compiled(text)
            except PatternError as error:
                self.problems.append(f"line {number} matches nothing: {error}")


def _without_trailing_spaces(line: bytes) -> bytes:
    """Spaces at the end go, unless a backslash stands before one."""
    end = at = 0
    while at < len(line):
        escaped = line[at] == ord("\\")
        at += 2 if escaped else 1
        if escaped or line[at - 1] != ord(" "):
            end = at
    return line[:end]


def _compiled(line: bytes) -> Pattern:
    if len(line) > PATTERN_MAX_BYTES:
        raise PatternError(f"it is longer than {PATTERN_MAX_BYTES} bytes")
    text = line.removeprefix(b"!")
    only_folders = text.endswith(b"/")
    text = text.removesuffix(b"/")
    only_name = b"/" not in text
    if only_name:
        expression = _component(list(_tokens(text)))
    else:
        # Git compares what stands before the first special character by itself, so that in "b**/a" the stars begin a pattern.
        literal = _LITERAL.match(text.removeprefix(b"/"))[0]  # type: ignore[index]
        expression = re.escape(literal) + _path(list(_tokens(text.removeprefix(b"/")[len(literal) :])))
    return Pattern(
        text=line.decode("utf-8", "surrogateescape"), negated=line.startswith(b"!"), only_folders=only_folders,
        only_name=only_name, expression=re.compile(expression + rb"\Z", re.DOTALL),
    )  # fmt: skip


def _tokens(text: bytes) -> Iterator[bytes]:
    """`/`, `*`, `**` (whole folders), or an expression that matches one byte."""
    at = 0
    while at < len(text):
        byte = text[at : at + 1]
        if byte == b"*":
            end = at
            while text[end : end + 1] == b"*":
                end += 1
            opens = at == 0 or text[at - 1 : at] == b"/"
            closes = end == len(text) or text[end : end + 1] == b"/" or text[end : end + 2] == b"\\/"
            yield _STARS if end - at > 1 and opens and closes else _STAR
            at = end
        elif byte == b"[":
            expression, at = _bracket(text, at + 1)
            yield expression
        elif byte == b"\\":
            if at + 1 == len(text):
                raise PatternError("it ends in a backslash")
            literal = text[at + 1 : at + 2]
            yield _SLASH if literal == b"/" else re.escape(literal)
            at += 2
        else:
            yield _SLASH if byte == b"/" else _NOT_SLASH if byte == b"?" else re.escape(byte)
            at += 1


def _bracket(text: bytes, at: int) -> tuple[bytes, int]:
    """A set of bytes; a slash is never in it, even when the set is a negated one."""
    negated = text[at : at + 1] in (b"!", b"^")
    at += negated
    members: list[bytes] = []
    first = True
    while first or text[at : at + 1] != b"]":
        first = False
        if text[at : at + 2] == b"[:":
            end = text.find(b":]", at)
            if end < 0 or text[at + 2 : end] not in _CLASSES:
                raise PatternError("a [: :] that is no class of characters")
            members.append(_CLASSES[text[at + 2 : end]])
            at = end + 2
            continue
        low, at = _member(text, at)
        if text[at : at + 1] == b"-" and text[at + 1 : at + 2] not in (b"", b"]"):
            high, at = _member(text, at + 1)
            if low <= high:
                members.append(_byte(low) + b"-" + _byte(high))
        else:
            members.append(_byte(low))
    inside = b"".join(members)
    if negated:
        return b"[^/" + inside + b"]", at + 1
    return (b"(?!/)[" + inside + b"]" if inside else b"(?!)"), at + 1


def _member(text: bytes, at: int) -> tuple[int, int]:
    if text[at : at + 1] == b"\\":
        at += 1
    if at >= len(text):
        raise PatternError("a [ without its ]")
    return text[at], at + 1


def _byte(value: int) -> bytes:
    return b"\\x%02x" % value


def _component(tokens: list[bytes]) -> bytes:
    """Tokens without a slash. Between two stars the first place that fits is taken for good (an atomic group)."""
    stretches: list[bytes] = [b""]
    for token in tokens:
        if token in (_STAR, _STARS):
            stretches.append(b"")
        else:
            stretches[-1] += token
    first, *rest = stretches
    if not rest:
        return first
    middle = b"".join(b"(?>[^/]*?" + stretch + b")" for stretch in rest[:-1])
    return first + middle + b"[^/]*" + rest[-1]


def _path(tokens: list[bytes]) -> bytes:
    """Components, and between runs of them any number of folders where `**` stands."""
    runs: list[list[bytes]] = [[]]
    component: list[bytes] = []
    for token in [*tokens, _SLASH]:
        if token != _SLASH:
            component.append(token)
            continue
        if component == [_STARS]:
            runs.append([])
        else:
            runs[-1].append(_component(component))
        component = []
    first, *rest = [b"/".join(run) for run in runs]
    if not rest:
        return first
    begin = first + b"/" if runs[0] else b""
    middle = b"".join(b"(?>(?:[^/]*+/)*?" + run + b"/)" for run in rest[:-1] if run)
    return begin + middle + (b"(?:.*/)?" + rest[-1] if runs[-1] else b".*")
