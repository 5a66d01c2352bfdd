"""Headings of a PDF: lines of a page that its outline (ISO 32000-1, 12.3.3) says begin a section."""

from __future__ import annotations

from collections import defaultdict
from itertools import islice
from typing import Any, Final, TypeAlias

from pypdfium2 import PdfiumError

from memdir.ingest.extractors.output import clean

_TITLES_MAX: Final = 20_000
_DEPTH_MAX: Final = 6
_LINES_MAX: Final = 3
"""Of one heading."""
_NUMBER_MAX_CHARS: Final = 10
"""Letters and digits before a title that are its number: `Chapter 12`."""

Title: TypeAlias = tuple[int, str]
"""Its level, from 1, and its words."""


def titles(document: Any) -> dict[int, list[Title]]:
    """Those of each page, by the page's index. None of an outline that is damaged."""
    found: defaultdict[int, list[Title]] = defaultdict(list)
    try:
        for mark in islice(document.get_toc(max_depth=_DEPTH_MAX), _TITLES_MAX):
            place = mark.get_dest()
            page = place.get_index() if place is not None else None
            words = " ".join(clean(mark.get_title()).split())
            if page is not None and _plain(words):
                found[page].append((mark.level + 1, words))
    except PdfiumError:
        return {}
    return found


def with_headings(text: str, titles_here: list[Title]) -> str:
    """`text` of a page, a line for each line, with these titles as Markdown headings of level 3 and more; without those that
    do not stand in lines of their own."""
    lines = text.split("\n")
    plain = [_plain(line) for line in lines]
    begin = 0
    for level, title in titles_here:
        place = _found(plain, _plain(title), begin)
        if place is None:
            continue
        first, last = place
        words = " ".join(line.strip() for line in lines[first:last])
        lines[first:last] = [f"\n{'#' * min(level + 2, 6)} {words}\n", *[""] * (last - first - 1)]
        begin = last
    return "\n".join(lines)


def _found(plain: list[str], title: str, begin: int) -> tuple[int, int] | None:
    """The lines of a title. One that stands there twice is the second line: the first runs at the head of the page."""
    places = [
        (first, first + count)
        for first in range(begin, len(plain))
        for count in range(1, _LINES_MAX + 1)
        if plain[first] and _is_title("".join(plain[first : first + count]), title)
    ]
    return next((place for place in places if place[0] > 0), places[0] if places else None)


def _is_title(line: str, title: str) -> bool:
    return line.endswith(title) and len(line) - len(title) <= _NUMBER_MAX_CHARS


def _plain(words: str) -> str:
    return "".join(filter(str.isalnum, words.casefold()))
