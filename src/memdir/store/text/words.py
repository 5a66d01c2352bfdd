"""Words as they are compared: folded, taken apart, and with a light stem. For queries, lines and paths.

An index of passages does its own Porter stemming.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from typing import Final

from memdir.store.text.passage_text import bigrams, name_parts, unspaced_runs

_WORD: Final = re.compile(r"\w+")
_ACCENTS: Final = re.compile("[\u0300-\u036f]")
_SPLIT: Final = re.compile(r"[^\w]+|_+")
_FOLDER_SHARE: Final = 0.5
"""Of a word in a folder's name beside one in the file's."""


def fold(text: str) -> str:
    """Case folded, accents of letters taken off, as the index does it; marks that make another letter (ガ, Hangul) stay."""
    if text.isascii():
        return text.lower()
    decomposed = unicodedata.normalize("NFD", text.casefold())
    return unicodedata.normalize("NFC", _ACCENTS.sub("", decomposed))


def words(text: str) -> list[str]:
    """Folded words; runs of unspaced scripts as bigrams; parts of camelCase names beside the whole."""
    found: list[str] = _WORD.findall(fold(text.replace("_", " ")))
    if not text.isascii() and unspaced_runs(text):
        found = [part for word in found for part in _parts(word)]
    found.extend(fold(part) for part in name_parts(text))
    return found


def _parts(word: str) -> list[str]:
    """The bigrams of a word in an unspaced script; a word in another script itself."""
    runs = unspaced_runs(word)
    return [pair for run in runs for pair in bigrams(run)] if runs else [word]


@lru_cache(maxsize=65_536)
def stem(word: str) -> str:
    """A light English stem (the plural rules of Harman's S-stemmer, then -ing, -ed, -ly); short words stay."""
    if len(word) > 4 and word.endswith("ies"):
        word = word[:-3] + "y"
    elif len(word) > 4 and word.endswith(("sses", "shes", "ches", "xes")):
        word = word[:-2]
    elif len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")):
        word = word[:-1]
    for suffix in ("ing", "ed", "ly"):
        if word.endswith(suffix) and len(word) - len(suffix) >= 4:
            word = word[: -len(suffix)]
            break
    if len(word) > 4 and word[-1] == word[-2] and word[-1] not in "lsz":
        word = word[:-1]
    return word[:-1] if len(word) > 4 and word.endswith("e") else word


@lru_cache(maxsize=50_000)
def path_shares(path: str) -> tuple[tuple[str, float], ...]:
    """What each word of a path counts, by stem: those of the file's name 1, those of its folders less."""
    folders, _, name = path.rpartition("/")
    base = name.rsplit(".", 1)[0] if "." in name[1:] else name
    shares = dict.fromkeys(_stems(folders), _FOLDER_SHARE) | dict.fromkeys(_stems(base), 1.0)
    return tuple(sorted(shares.items()))


def _stems(text: str) -> list[str]:
    return [stem(word) for word in words(_SPLIT.sub(" ", text)) if len(word) > 1]
