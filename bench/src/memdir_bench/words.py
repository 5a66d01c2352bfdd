"""Do a query and a text share a word? The check behind "found by meaning": a hit counts only when they do not.

Strict on purpose: accents and case are folded, endings are cut off more eagerly than a search engine's stemmer does, and a
word that begins with another (from five letters on) counts as the same. So a pair that passes here cannot be found by words.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final

_WORD: Final = re.compile(r"[^\W_]+(?:['’][^\W_]+)?")
_SHARED_PREFIX_MIN: Final = 5

_STOP_WORDS_TEXT: Final = """
    a about above after again all also am an and any are as at be because been before being below between both but by can
    could did do does doing down during each every few for from further get had has have having he her here him his how i if
    in into is it its just let like may me might more most must my no nor not now of off on once one only or other our out
    over own per please she should so some somebody someone something such than that the their them then there these they
    thing this those through to too under until up us very was we were what when where which while who whom whose why will
    with without would you your
"""
STOP_WORDS: Final = frozenset(_STOP_WORDS_TEXT.split())

_ENDINGS: Final = (
    "izations", "ization", "ations", "ation", "ingly", "ments", "ment", "ness", "ions", "ion", "ings", "ing", "edly", "ers",
    "ies", "ied", "ity", "able", "ible", "ally", "ly", "ed", "er", "es", "or", "al", "s", "e", "y",
)  # fmt: skip


def stem(word: str) -> str:
    """The word without accents, case and its commonest English endings; at least three letters stay."""
    folded = unicodedata.normalize("NFKD", word.casefold())
    plain = "".join(letter for letter in folded if not unicodedata.combining(letter)).replace("’", "'").removesuffix("'s")
    for ending in _ENDINGS:
        if plain.endswith(ending) and len(plain) - len(ending) >= 3:
            plain = plain[: -len(ending)]
            break
    if len(plain) > 3 and plain[-1] == plain[-2]:
        plain = plain[:-1]
    return plain


def content_stems(text: str) -> set[str]:
    """The stems of a text's words, stop words left out."""
    return {stem(word) for word in _WORD.findall(text) if word.casefold() not in STOP_WORDS}


def shared_stems(query: str, text: str) -> set[str]:
    """The stems of the query that occur in the text, also as the beginning of a longer word (or the other way round)."""
    of_text = content_stems(text)
    return {wanted for wanted in content_stems(query) if any(_same(wanted, other) for other in of_text)}


def _same(left: str, right: str) -> bool:
    if left == right:
        return True
    short, long = sorted((left, right), key=len)
    return len(short) >= _SHARED_PREFIX_MIN and long.startswith(short)
