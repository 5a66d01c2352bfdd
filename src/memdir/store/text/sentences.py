"""Where sentences end, for everything that cuts prose: passages, lines, facts.

A stop ends a sentence unless it belongs to an abbreviation, an initial, or a date; what follows decides the doubtful ones.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

_END: Final = re.compile(r"(?<![.!?…])[.!?…]+[\"'”’»)\]*_]*(?=\s|$)|[。！？]+[」』”）]*|\n[ \t]*\n")
_LAST_WORD: Final = re.compile(r"[^\s(\[\"'“‘«„]+\Z")
_WORD_MAX_CHARS: Final = 40
"""Looked at before a stop; no abbreviation is longer."""

_NEVER_LAST_TEXT: Final = """
    dr mr mrs ms mx prof st lt gen col capt cpt sgt maj rev hon pres gov sen rep fr hr sr sra srta dña mme mlle mgr m.d dipl
    ing e.g i.e eg ie cf vs v viz z.b d.h u.a o.ä s.o s.u bzw ca vgl sog inkl exkl p.ex par.ex p.ej bijv d.w.z т.е г им ул tel
    approx resp
"""
_NEVER_LAST: Final = frozenset(_NEVER_LAST_TEXT.split())
"""Something always follows these."""
_BEFORE_NUMBER_TEXT: Final = """
    no nos nr nº fig figs eq vol pp p pg art arts abs sec sect ch chap ex ed app par § str lit kap abb bd s n b c geb
"""
_BEFORE_NUMBER: Final = frozenset(_BEFORE_NUMBER_TEXT.split())
"""These are abbreviations when a number follows; else words that may end a sentence ("No.")."""
_MONTHS: Final = re.compile(
    r"(?:jan|feb|m[aä]r|apr|ma[iy]|jun|jul|aug|sep|o[ck]t|nov|de[zc]|juin|juillet|ao[uû]t|f[eé]v|avr|"
    r"jahrhundert|september|klasse|stock|etage|oktober|januar)",
    re.IGNORECASE,
)
_DOTTED: Final = re.compile(r"(?:[^\W\d_]\.)+[^\W\d_]\Z")
_SHORT_NAMES_TEXT: Final = "jr inc ltd co corp etc usw dept bros assn a.m p.m a.d b.c ph.d b.a m.a"
_SHORT_NAMES: Final = frozenset(_SHORT_NAMES_TEXT.split())
"""These may end a sentence: they do when the next word is capitalised."""


def sentences(text: str, start: int = 0, end: int | None = None) -> Iterator[tuple[int, int]]:
    """The sentences of `text[start:end]` as spans without white space at their ends; nothing but white space is left out."""
    stop = len(text) if end is None else end
    position = start
    for found in _END.finditer(text, start, stop):
        if found.group(0)[0] in ".…!?" and not _ends(text, position, found.start(), found.end(), stop):
            continue
        yield from _trimmed(text, position, found.end())
        position = found.end()
    yield from _trimmed(text, position, stop)


def _trimmed(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    part = text[start:end]
    first = start + len(part) - len(part.lstrip())
    last = end - (len(part) - len(part.rstrip()))
    if last > first:
        yield first, last


def _ends(text: str, start: int, dot: int, after: int, stop: int) -> bool:
    """Whether the stop at `dot` ends the sentence that began at `start`."""
    found = _LAST_WORD.search(text, max(start, dot - _WORD_MAX_CHARS), dot)
    word = found.group(0) if found is not None else ""
    following = text[after : min(stop, after + 60)].lstrip()
    if not following:
        return True
    if after - dot == 1 and text[dot] == ".":
        plain = word.lower().strip("*_")
        is_abbreviation = plain in _NEVER_LAST and word != "CA"  # "ca." is about, "CA" California
        if is_abbreviation or (plain in _BEFORE_NUMBER and following[0].isdigit()):
            return False
        if len(word) == 1 and word.isalpha() and (word.isupper() or following[1:2] == ".") and following[0].isupper():
            return word == "I"  # Which ends a sentence as often as it is an initial.
        if word.isdigit() and len(word) <= 2:
            alone = text[start:dot].strip() == word
            return not (alone or following[0].islower() or _MONTHS.match(following))
        if plain not in _SHORT_NAMES and _DOTTED.match(word) and following[0].isupper():
            return False
    return not following[0].islower()
