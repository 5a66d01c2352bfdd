"""Words that no memory has, read as ones that some have: written together or apart, or a slip of the keyboard.

Only words without any memory are read otherwise, so what is asked as memories write it is found as ever. Such a word stands
for the one that it makes with its neighbour ("time zone"), for two that it is made of ("timezone"), or, from LETTERS_MIN
letters on, for the commonest word that begins with the same letter and is a single slip away: a letter dropped, added, changed,
or swapped with the next. Four of five misspellings are such slips (F. J. Damerau, "A technique for computer detection and
correction of spelling errors", Communications of the ACM 7 (3), 1964).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from typing import Final

from memdir.retrieval.agents.expansion import EXPANSIONS
from memdir.retrieval.agents.stems import stem
from memdir.retrieval.agents.terms import Asked

LETTERS_MIN: Final = 5
MENDED_MAX: Final = 4
"""Words of a query that are read otherwise: 400 to 1,600 look-ups each."""
_LETTERS_MAX: Final = 24
_PART_LETTERS_MIN: Final = 3
_ENDINGS: Final = ("ication", "ation", "ion", "ing", "ment", "ed", "er")
_ALPHABET: Final = "abcdefghijklmnopqrstuvwxyz"

Holding = Callable[[str], int]
"""How many memories have a stem."""
Others = tuple[tuple[str, ...], ...]
"""Words that a word is read as, each by its stems."""


def mended(asked: Sequence[Asked], holding: Holding) -> list[Asked]:
    """The words of a query, those that no memory has replaced where they can be."""
    taken = {one for word in asked for one in word.stems}
    found: list[Asked] = []
    left = MENDED_MAX
    for at, one in enumerate(asked):
        if not left or not _is_unknown_word(one, holding):
            found.append(one)
            continue
        left -= 1
        other = _joined(asked, at, holding) or _parts(one.word, holding) or _slip(one.word, holding)
        for stems in other or (one.stems,):
            fresh = tuple(made for made in stems if made not in taken or not other)
            taken.update(fresh)
            if fresh:
                found.append(replace(one, stems=fresh))
    return found


def _is_unknown_word(one: Asked, holding: Holding) -> bool:
    """Whether there is a reason to read it otherwise; names with digits are nothing to guess about."""
    word = one.word
    is_plain = word.isascii() and word.isalpha() and len(word) <= _LETTERS_MAX and not one.is_everyday
    return is_plain and not any(map(holding, one.stems))


def _joined(asked: Sequence[Asked], at: int, holding: Holding) -> Others:
    pairs = [asked[first].word + asked[first + 1].word for first in (at, at - 1) if 0 <= first < len(asked) - 1]
    return next((((made,),) for made in map(stem, pairs) if holding(made)), ())


def _parts(word: str, holding: Holding) -> Others:
    """Two words: of several pairs the one whose rarer word is the commonest."""
    cuts = range(_PART_LETTERS_MIN, len(word) - _PART_LETTERS_MIN + 1)
    pairs = [pair for pair in ((stem(word[:at]), stem(word[at:])) for at in cuts) if all(map(holding, pair))]
    return tuple((part,) for part in max(pairs, key=lambda pair: (min(map(holding, pair)), pair), default=()))


def _slip(word: str, holding: Holding) -> Others:
    """By stems, as nothing has to be stemmed for hundreds of look-ups then. Of a misspelt word Porter's algorithm may leave an
    ending that it takes off the right one; and the ending itself is most often mistyped by a swap."""
    if len(word) < LETTERS_MIN:
        return ()
    short = {word.removesuffix(ending) for ending in _ENDINGS if word.endswith(ending) and len(word) > len(ending) + 3}
    likely = {made for base in {stem(word), *short} for made in (*_added_or_changed(base), *_dropped_or_swapped(base))}
    likely.update(map(stem, _dropped_or_swapped(word)))
    abbreviations = _abbreviations()
    made_of = {made: (made, *abbreviations.get(made, ())) for made in likely if made in abbreviations or holding(made)}
    known = {made: held for made, forms in made_of.items() if (held := tuple(filter(holding, forms)))}
    if not known:
        return ()
    return (max(known.items(), key=lambda pair: (max(map(holding, pair[1])), pair[0]))[1],)


@cache
def _abbreviations() -> dict[str, tuple[str, ...]]:
    return {stem(word): tuple(map(stem, others)) for word, others in EXPANSIONS.items()}


def _dropped_or_swapped(word: str) -> Iterator[str]:
    """With one letter fewer, or two neighbours swapped; the first letter stays."""
    for at in range(1, len(word)):
        yield word[:at] + word[at + 1 :]
        yield word[:at] + word[at : at + 2][::-1] + word[at + 2 :]


def _added_or_changed(word: str) -> Iterator[str]:
    for at in range(1, len(word) + 1):
        for tail in (word[at:], word[at + 1 :]):
            yield from [word[:at] + letter + tail for letter in _ALPHABET]
