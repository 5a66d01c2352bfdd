"""Lines that are broken where the page was full, and those that begin something."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Final

from memdir.store.text.sentences import sentences

_STARTS_ANEW: Final = re.compile(
    r"\s*(?:[-–*+•▪▸‣◦●■>|#\[{}@\uf000-\uf0ff]|<(?!https?:)|\d{1,3}[.)]\s|//|--|/\*"
    r"|\S{1,30}:(?:\s|$)|[A-Z\u00c0-\u00de][\w.'-]*(?: [A-Z\u00c0-\u00de][\w.'-]*){1,3}:\s"
    r"|\d{4}-\d\d-\d\d[T ]\d|\d\d?:\d\d(?::\d\d|\s+[-–]|\s+[^:]{1,30}:\s)|[^\s,;]+,[^\s,;][^,]*,\S|[\w.]+ (?:=|:=|<-) )"
)
_RULE: Final = re.compile(r"([=~^*+#_-])\1{2,}|([\"'`:.])\2{3,}")
"""Three of the signs of the second kind close a docstring, a fence or a doctest."""
_TITLE_MAX_CHARS: Final = 120
_ENDS: Final = re.compile(r"[.!?:;…{}][\"'”’)\]]*$")
_LEADERS: Final = re.compile(r"\.{4,}|(?:\. ){3,}")
_CAPITALS: Final = re.compile(r"[^\Wa-zß-ÿ\d_]{4,}(?:[ &/-]+[^\Wa-zß-ÿ\d_]+){0,3}:?")
"""A line in capitals heads what follows."""
_SPAN_OF_YEARS: Final = re.compile(
    r"(?:19|20)\d\d\)? ?[-–—] ?(?:[A-Z]\w{2,8}\.? )?(?:(?:19|20)\d\d|[Pp]resent|[Nn]ow|[Tt]oday|[Cc]urrent|heute)\)?$"
)
"""At the end of an entry in a curriculum vitae, at the right edge of the page."""
_FULL_MIN_CHARS: Final = 40
"""Of a full line of prose: narrower ones are slides, labels and addresses."""
_WIDTH_RANK: Final = 0.9
"""Of a page's lines by length, the one that shows how wide it is."""
_WIDTH_SHARE: Final = 0.9
"""Letters differ in width: a line counts as full when the next word would have reached so far."""
_SHORT_CHARS: Final = 20
_NUMBERS_MIN: Final = 0.4
"""Share of the words with a digit in a row of a table."""


def starts_anew(line: str) -> bool:
    """Whether a line cannot be the rest of the one above: list items, keys, speakers, times, rows, code."""
    return _STARTS_ANEW.match(line) is not None


def is_rule(line: str) -> bool:
    """Whether a line is what stands below a title, and perhaps above it, in reStructuredText and plain text: `=====`."""
    return _RULE.fullmatch(line.rstrip(" \t")) is not None


def is_title(line: str, below: str) -> bool:
    """Whether a line is a title, by the rule `below` it."""
    return is_rule(below) and not is_rule(line) and len(line) <= _TITLE_MAX_CHARS and any(map(str.isalnum, line))


def unwrapped(page: str) -> str:
    """The text of a page with a sentence a line where it is prose: a line that was broken because the next word had no room
    goes on, and ends with its sentence. Headings, items, code, rows of tables and of tables of contents stay as they are."""
    lines = [line.rstrip() for line in page.split("\n")]
    lengths = sorted(len(line) for line in lines if len(line) > _SHORT_CHARS)
    width = lengths[int(_WIDTH_RANK * (len(lengths) - 1))] if lengths else 0
    if width < _FULL_MIN_CHARS:
        return page
    paragraphs = [lines[:1]]
    for before, after in pairwise(lines):
        if _goes_on(before, after, width):
            paragraphs[-1].append(after)
        else:
            paragraphs.append([after])
    return "\n".join(_by_sentence(" ".join(lines)) if len(lines) > 1 else lines[0] for lines in paragraphs)


def by_sentence(markdown: str) -> str:
    """Markdown with a sentence a line in its paragraphs, unless a sentence would begin as an item, a heading or code does."""
    lines: list[str] = []
    is_code = False
    for line in markdown.split("\n"):
        is_code ^= line.startswith("```")
        is_prose = not (is_code or line[:1] in (" ", "\t", "|", "`") or starts_anew(line))
        lines.append(_by_sentence(line) if is_prose else line)
    return "\n".join(lines)


def _by_sentence(paragraph: str) -> str:
    pieces = [paragraph[start:end] for start, end in sentences(paragraph)]
    return paragraph if len(pieces) < 2 or any(map(starts_anew, pieces)) else "\n".join(pieces)


def _goes_on(before: str, after: str, width: int) -> bool:
    if not (before and after) or len(before) + 1 + len(after.split(" ", 1)[0]) <= _WIDTH_SHARE * width:
        return False
    is_headed = _CAPITALS.fullmatch(after.strip()) is not None and not before.isupper()
    if is_headed or (_SPAN_OF_YEARS.search(before) and after[:1].isupper()):
        return False
    if _ENDS.search(before) or starts_anew(after) or _LEADERS.search(before) or _LEADERS.search(after):
        return False
    return not (_is_of_numbers(before) and _is_of_numbers(after))


def _is_of_numbers(line: str) -> bool:
    words = line.split()
    return sum(any(map(str.isdigit, word)) for word in words) >= _NUMBERS_MIN * len(words)
