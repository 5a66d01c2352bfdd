"""What an index of words counts for a passage, and what a query looks up in it. Every index and engine cuts words here.

Words are normalised (NFKC), stemmed in the language of the passage (Snowball), case folded and freed of accents. Names of
programs are there whole and in parts (`retry_backoff_s`, `parseHTTPResponse`), numbers whole and in parts (`1.2.3`,
`2024-05-03`), scripts without spaces as pairs of syllables or characters. A query offers for each of its words the forms it may
have in the index: as written, and the stems of the languages it may be in.

Stemming: Porter, "An algorithm for suffix stripping", 1980, and its successors at https://snowballstem.org, which need accents
to see endings; therefore accents are taken off after the stem and not before.
"""

from __future__ import annotations

import re
import sys
import unicodedata
from functools import lru_cache
from itertools import pairwise
from typing import Final

import Stemmer

from memdir.store.text import languages
from memdir.store.text.passage_text import unspaced_runs
from memdir.store.text.words import fold

ANALYSIS_VERSION: Final = 1
"""Of the words an index holds: one built with another version is built anew."""
TOKEN_MAX_CHARS: Final = 64
"""Of one word; what is longer (base64, minified code) is cut, in texts and queries alike."""
CACHE_MAX: Final = 100_000
"""Words of one language (or pair) whose terms are remembered; then it begins anew."""
CACHES_MAX: Final = 40
"""Languages and pairs of languages that are remembered."""
PARTS_MAX: Final = 8
"""Of one compound; one with more stands for its parts only."""


def _marks() -> str:
    """Combining marks, which `\\w` leaves out and without which Hindi or Thai words fall to pieces. As ranges for a class."""
    found = [
        code
        for low, high in ((0x0300, 0x2000), (0x302A, 0x3030), (0x3099, 0x309B), (0xA640, 0xAC00), (0xFE20, 0xFE30))
        for code in range(low, high)
        if unicodedata.category(chr(code)) in {"Mn", "Mc"}
    ]
    ranges: list[list[int]] = []
    for code in [*found, 0x200C, 0x200D]:
        if ranges and ranges[-1][1] == code - 1:
            ranges[-1][1] = code
        else:
            ranges.append([code, code])
    return "".join(f"{chr(low)}-{chr(high)}" for low, high in ranges)


_MARKS: Final = _marks()
_W: Final = rf"[\w{_MARKS}]"
_TOKEN: Final = re.compile(
    rf"[cCfF](?:\+\+|#)(?!\w)|{_W}+(?:(?:['’\-‐‑]|(?<=\d)[.,:/](?=\d)){_W}+)*|[\u2600-\u27bf\U0001f300-\U0001faff]"
)
_ASCII_TOKEN: Final = re.compile(r"[cCfF](?:\+\+|#)(?!\w)|\w+(?:(?:['\-]|(?<=\d)[.,:/](?=\d))\w+)*")
_JOINT: Final = re.compile(r"[_\-‐‑'’.,:/]+")
_HUMPS: Final = re.compile(r"[^\W\d_]+|\d+")
_CASE: Final = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+")
_CLUSTER: Final = re.compile(rf"[^{_MARKS}][{_MARKS}]*|[{_MARKS}]+")
_HAN: Final = re.compile("[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")
_NUMBER: Final = re.compile(r"v?\d+(?:[.,:/\-]\d+)*\Z", re.IGNORECASE)
_THOUSANDS: Final = re.compile(r"\d{1,3}(?:[.,]\d{3})+\Z")
_ELIDED: Final = frozenset(
    ("l", "d", "j", "m", "t", "s", "n", "c", "qu", "jusqu", "lorsqu", "puisqu", "quoiqu", "all", "dall", "dell", "nell", "sull")
)
_SUFFIXED: Final = frozenset({"s", "t", "d", "m", "re", "ve", "ll"})
_LETTERS: Final = str.maketrans(
    {
        "ø": "o",
        "æ": "ae",
        "œ": "oe",
        "ł": "l",
        "đ": "d",
        "ð": "d",
        "þ": "th",
        "ı": "i",
        "ħ": "h",
        "ŧ": "t",
        "\u200c": "",
        "\u200d": "",
    }
)
_UMLAUTS: Final = (("ae", "a"), ("oe", "o"), ("ue", "u"))
_STEMMERS: Final = {name: Stemmer.Stemmer(name, 0) for name in Stemmer.algorithms()}
"""Without their own caches. A call holds the interpreter's lock from beginning to end, so threads may share them."""

_caches: dict[tuple[str, ...], dict[str, tuple[str, ...]]] = {}


def index_terms(text: str) -> list[str]:
    """All terms of a passage in order, with repeats: what its length and the frequency of each term are counted from."""
    tokens = _tokens(text)
    own = languages.of_passage(text, tokens)
    if len(_caches) > CACHES_MAX:
        _caches.clear()
    cache = _caches.setdefault(own, {})
    terms: list[str] = []
    for token in tokens:
        found = cache.get(token)
        if found is None:
            if len(cache) >= CACHE_MAX:
                cache.clear()
            found = cache[token] = tuple(sys.intern(term) for part in _parts(token) for term in _stems(part, own) if term)
        terms.extend(found)
    return terms


def query_terms(text: str) -> list[tuple[str, ...]]:
    """For each word of a query (in order, distinct) the terms that stand for it in the index, the likeliest first."""
    return list(dict.fromkeys(forms for _, forms in query_words(text)))


def query_words(text: str) -> list[tuple[str, tuple[str, ...]]]:
    """The words of a query in order, folded, each with the terms that stand for it in the index."""
    own = languages.of_query(" ".join(text.split()))
    found: list[tuple[str, tuple[str, ...]]] = []
    for token in _tokens(text):
        for part in _parts(token, asked=True):
            forms = dict.fromkeys((*_stems(part, own), *_umlauts(part), folded(part)))
            forms.pop("", None)
            if forms:
                found.append((folded(part), tuple(forms)))
    return found


def forms_in(text: str, own: tuple[str, ...]) -> set[str]:
    """The terms of a piece of a passage that is in the languages `own`, and its words as they are written."""
    found: set[str] = set()
    for token in _tokens(text):
        found.update(_forms(token, own))
    found.discard("")
    return found


@lru_cache(maxsize=CACHE_MAX)
def _forms(token: str, own: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(form for part in _parts(token) for form in (*_stems(part, own), folded(part)))


def languages_of(text: str) -> tuple[str, ...]:
    """The languages whose stems `index_terms` takes for a passage."""
    return languages.of_passage(text, _tokens(text))


def folded(word: str) -> str:
    """Case folded, without accents, letters like ø and ł as the plain letters people type for them."""
    return word.lower() if word.isascii() else fold(word).translate(_LETTERS)


def stem_in(word: str, language: str) -> str:
    """The folded stem of a word in a language; of one without a stemmer the folded word."""
    stemmer = _STEMMERS.get(language)
    return folded(stemmer.stemWord(word.lower()) if stemmer is not None else word)


def _tokens(text: str) -> list[str]:
    if text.isascii():
        return _ASCII_TOKEN.findall(text)
    return _TOKEN.findall(unicodedata.normalize("NFKC", text))


def _stems(part: str, own: tuple[str, ...]) -> list[str]:
    """The stem of a word in each of some languages, distinct; a number, a pair of characters or a sign is itself."""
    if not part[0].isalpha() or (not part.isalpha() and any(char.isdigit() for char in part)) or len(part) < 3:
        return [folded(part)]
    if len(own) == 1:
        return [stem_in(part, own[0])]
    return list(dict.fromkeys(stem_in(part, language) for language in own))


def _parts(token: str, *, asked: bool = False) -> list[str]:
    """What a token stands for: itself, or its parts and the whole. `asked`: of a query."""
    token = token[:TOKEN_MAX_CHARS]
    if token.isalpha() and (token.islower() or token[1:].islower()) and token.isascii():
        return [token]
    if not token.isascii() and unspaced_runs(token):
        return _unspaced(token, asked=asked)
    if _NUMBER.match(token):
        return _number(token)
    pieces = [piece for piece in _JOINT.split(token) if piece]
    if not pieces:
        return [] if token.strip("_") == "" else [token]
    apostrophe = _apostrophe(pieces) if len(pieces) == 2 and ("'" in token or "’" in token) else None
    if apostrophe is not None:
        return apostrophe
    parts = [part for piece in pieces for part in _humps(piece)]
    if len(parts) == 1 or len(parts) > PARTS_MAX:
        return parts
    return [*(part for part in parts if len(part) > 1 or len(parts) == 2), "".join(parts)]


def _humps(piece: str) -> list[str]:
    """The words inside camelCase and PascalCase names, letters and digits apart; a hash or a plain word stays whole."""
    if piece.isascii() and piece.isalnum() and not piece.isdigit():
        hump = any(a.islower() and b.isupper() for a, b in pairwise(piece))
        if hump:
            return [part for run in _HUMPS.findall(piece) for part in (_CASE.findall(run) or [run])]
    return [piece]


def _apostrophe(pieces: list[str]) -> list[str] | None:
    """l'eau → eau, John's → John, don't → dont; None for others (O'Brien)."""
    first, last = pieces
    if last.lower() in _SUFFIXED:
        return [first] if last.lower() in {"s", "d", "m", "re", "ve", "ll"} else [first + last]
    return [last] if first.lower() in _ELIDED else None


def _number(token: str) -> list[str]:
    """A number, date, time or version whole, then its parts of two and more digits."""
    plain = token.lower().removeprefix("v")
    if "," in plain and "." in plain:  # The sign that comes first parts thousands.
        plain = plain.replace(min(",", ".", key=plain.index), "")
    pieces = _JOINT.split(plain)
    if len(pieces) == 1:
        return [plain]
    found = [plain.replace(",", ".")]
    if _THOUSANDS.match(plain):
        found.append("".join(pieces))
    if plain.count(".") > 1:
        found.append(".".join(pieces[:2]))
    return list(dict.fromkeys([*found, *(piece for piece in pieces if len(piece) > 1)]))


def _unspaced(token: str, *, asked: bool) -> list[str]:
    """Pairs of characters (with their marks); single Chinese characters beside, unless a query has more of them."""
    found: list[str] = []
    position = 0
    for run in unspaced_runs(token):
        start = token.index(run, position)
        found.extend(_spaced(token[position:start]))
        position = start + len(run)
        clusters = _CLUSTER.findall(run)
        if len(clusters) == 1:
            found.append(run)
            continue
        found.extend(left + right for left, right in pairwise(clusters))
        if not asked:
            found.extend(cluster for cluster in clusters if _HAN.match(cluster))
    return [*found, *_spaced(token[position:])]


def _spaced(between: str) -> list[str]:
    return [part for piece in _JOINT.split(between) if piece for part in _humps(piece)]


def _umlauts(part: str) -> list[str]:
    """How Germans write a word without umlauts, and what one so written stands for."""
    lowered = part.lower()
    if any(letter in lowered for letter in "äöü"):
        return [stem_in(lowered.replace("ä", "ae").replace("ö", "oe").replace("ü", "ue"), "german")]
    found = lowered
    for written, letter in _UMLAUTS:
        found = found.replace(written, letter)
    return [stem_in(found, "german")] if found != lowered else []
