"""Whether the lines that a sentence cites bear it: its numbers, names and quoted code must stand in them. No model is asked."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from typing import Final

_NUMBER: Final = re.compile(
    r"(?<![\w.])\d{1,3}(?:[,  ' ’]\d{3})+(?:\.\d+)?(?![\d,])|(?:(?<![\w.])|(?<=[A-Za-z$€£#]))\d+(?:[.,]\d+)*"
)
_CODE: Final = re.compile(r"`([^`\n]{1,200})`")
_QUOTED: Final = re.compile(r"[\"“”„«]([^\"“”„«»\n]{3,300})[\"“”»]")
_WORD: Final = re.compile(r"[^\W\d_][\w'’.-]*[^\W_]|[^\W\d_]", re.UNICODE)
_WORD_NUMBERS: Final = {
    **dict.fromkeys(("zero", "none"), "0"),
    **dict.fromkeys(("one", "once", "first", "january"), "1"),
    **dict.fromkeys(("two", "twice", "second", "both", "february"), "2"),
    **dict.fromkeys(("three", "third", "march"), "3"),
    **dict.fromkeys(("four", "fourth", "april"), "4"),
    **dict.fromkeys(("five", "fifth", "may"), "5"),
    **dict.fromkeys(("six", "sixth", "june"), "6"),
    **dict.fromkeys(("seven", "seventh", "july"), "7"),
    **dict.fromkeys(("eight", "eighth", "august"), "8"),
    **dict.fromkeys(("nine", "ninth", "september"), "9"),
    **dict.fromkeys(("ten", "tenth", "october"), "10"),
    **dict.fromkeys(("eleven", "november"), "11"),
    **dict.fromkeys(("twelve", "dozen", "december"), "12"),
    **dict.fromkeys(("hundred", "hundreds"), "100"),
    **dict.fromkeys(("thousand", "thousands"), "1000"),
    **dict.fromkeys(("million", "millions"), "1000000"),
    **dict.fromkeys(("billion", "billions"), "1000000000"),
}
_CARDINALS: Final = frozenset(
    {"two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"}
    | {"hundred", "thousand", "million", "billion"}
)
"""Words that a sentence uses for nothing but a number."""
_COMMON: Final = frozenset(
    {"I", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday", "January", "February", "March", "April"}
    | {"May", "June", "July", "August", "September", "October", "November", "December"}
)
_FUNCTION_WORDS: Final = frozenset(
    {"the", "of", "and", "is", "are", "was", "to", "in", "that", "for", "with", "by", "as", "be", "a"}
)


def numbers(text: str) -> set[str]:
    """The numbers of a text in one form: `1,200`, `1 200` and `1200` are one, and so are `2.50` and `2.5`."""
    return {plain for match in _NUMBER.findall(text) if (plain := _plain_number(match))}


def spoken_numbers(text: str) -> set[str]:
    """`numbers`, and those that are written as words, months among them."""
    words = (one.casefold() for one in _WORD.findall(text))
    return numbers(text) | {_WORD_NUMBERS[word] for word in words if word in _WORD_NUMBERS}


def _plain_number(raw: str) -> str:
    text = re.sub(r"[  '’ −-]", "", raw)
    # A comma before three digits parts thousands; any other is a decimal point.
    text = re.sub(r",(?=\d{3}(?:\D|$))", "", text).replace(",", ".")
    whole, point, fraction = text.partition(".")
    if "." in fraction:  # a version or a date
        return text
    fraction = fraction.rstrip("0")
    return (whole.lstrip("0") or "0") + (point + fraction if fraction else "")


def names(text: str) -> list[str]:
    """Code in backticks, words with a digit or a capital inside, and capitalised words that do not begin the sentence (those
    only in English, where nothing else is capitalised)."""
    found = [match.strip() for match in _CODE.findall(text)]
    bare = _CODE.sub(" ", text)
    words = list(_WORD.finditer(bare))
    folded = [word[0].casefold() for word in words]
    english = sum(word in _FUNCTION_WORDS for word in folded) >= 0.12 * len(folded)
    for number, match in enumerate(words):
        word = match[0].strip(".'’-").removesuffix("'s").removesuffix("’s")
        if len(word) < 2 or word in _COMMON:
            continue
        inner = any(one.isupper() for one in word[1:]) or any(one.isdigit() for one in word)
        before = bare[: match.start()].rstrip(" \"'“‘(*_[")
        begins = number == 0 or not before or before[-1] in ".!?:|;"
        if inner or (english and word[0].isupper() and not begins):
            found.append(word)
    return found


def missing(sentence: str, spans: Iterable[str], known: str = "") -> list[str]:
    """What of a sentence its cited `spans` do not hold: its numbers, names and quotations. `known` is text that need not be
    cited: the topic, titles and addresses of the cited pages."""
    span = "\n".join(spans)
    allowed = _folded(f"{span}\n{known}")
    there = spoken_numbers(f"{span}\n{known}")
    bare = _CODE.sub(" ", sentence)
    said = numbers(bare) | {_WORD_NUMBERS[word] for word in map(str.casefold, _WORD.findall(bare)) if word in _CARDINALS}
    lost = sorted(one for one in said if one not in there and _is_no_part(one, allowed))
    for name in names(sentence):
        folded = _folded(name).strip()
        if folded and folded not in allowed and not _parts_stand(folded, allowed) and name not in lost:
            lost.append(name)
    quotations = (one for one in _QUOTED.findall(bare) if len(one.split()) >= 3)
    return lost + [one for one in quotations if not _holds(allowed, one)]


def _is_no_part(number: str, allowed: str) -> bool:
    """A number that stands inside a word (`utf8`, `3.11.2`) counts as there only when it is set off by no other digit."""
    return re.search(rf"(?<![\d.]){re.escape(number)}(?!\d|\.\d)", allowed) is None


def _parts_stand(folded: str, allowed: str) -> bool:
    """A name with hyphens or an inflected one: each part stands there, or the word without its last letter or two."""
    parts = [part for part in re.split(r"[-\s]+", folded) if part]
    if len(parts) > 1:
        return all(part in allowed for part in parts)
    is_inflected = len(folded) > 5 and folded.isalpha()
    return is_inflected and (folded[:-1] in allowed or (folded.endswith("es") and folded[:-2] in allowed))


def _holds(allowed: str, quote: str) -> bool:
    pieces = [piece for piece in re.split(r"\s*(?:\.\.\.|…|\[[^\]]*\])\s*", _folded(quote).strip(" .,;:!?")) if piece]
    return all(piece in allowed for piece in pieces)


def _folded(text: str) -> str:
    plain = unicodedata.normalize("NFKC", text).casefold()
    for typographic, typed in (("’", "'"), ("“", '"'), ("”", '"')):
        plain = plain.replace(typographic, typed)
    return re.sub(r"\s+", " ", re.sub(r"[*`\\]|(?<=\W)_|_(?=\W)", "", plain))


def is_factual(sentence: str) -> bool:
    """Whether a sentence says something that needs a source: it holds a number, a name or code, or it is longer than a
    transition from one part of a text to the next. Questions do not."""
    text = sentence.strip()
    if text.endswith("?") or not text:
        return False
    return len(text.split()) > 12 or bool(numbers(text)) or bool(names(text))
