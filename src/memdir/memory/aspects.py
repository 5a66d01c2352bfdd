"""What of a thing a value tells: "My desk is white" contradicts "My desk is red" and not "My desk is on the third floor".
English. Pure."""

from __future__ import annotations

import re
from typing import Final

from memdir.memory.dates import MONTH, WEEKDAY

MINE: Final = "my|our|meine?|mi|mon|ma"
"""Before the key of a line, whose it is: "My address: …"."""
NEW: Final = "new|current|neue[rs]?|nuev[oa]|nouvelle|nouveau"
"""Before the key of a line, which one: "New address: …"."""
CONDITION: Final = (
    r"(?:vegan|vegetarian|pescatarian|c(?:o?e|œ)liac|diabetic|(?:lactose|gluten)[ -]intolerant|asthmatic|epileptic|dyslexic|"
    r"left-handed|colou?r-?blind|(?:deaf|blind)(?! to\b)|teetotal|autistic)"
)
"""How somebody is for long, that others have to know."""
_PAIR: Final = re.compile(
    rf"(?:[^:]{{1,40}} – )?(?:(?:{MINE}|{NEW}) )*(?P<key>[^:]{{1,40}}): +(?P<value>\S.*)", re.IGNORECASE | re.DOTALL
)
PLACES: Final = frozenset({"lives in", "from", "raised in"})
"""Attributes."""
_NO_HOME: Final = re.compile(
    rf"(?:{WEEKDAY}s?|{MONTH})\b.*|(?:(?:on|at) )?(?:the|an?|our|my|another) (?:[\w-]+ ){{0,2}}(?:floor|room|desk|seat|row|"
    r"team|department|office|shift|project|folder|repo\w*|couch|sofa|caf[eé]|library|table|form|list)|(?:room|floor|desk) \w+",
    re.IGNORECASE,
)
_WHEN: Final = re.compile(
    rf"(?:(?:on|at|in|from|until|till|by|before|after|every|due|next|this)\b[^.]*?)?\b(?:{WEEKDAY}s?|{MONTH}|\d{{1,2}}:\d\d|"
    r"(?:19|20)\d\d|(?:at|from|until|till|by) \d{1,2}|noon|midnight|mornings?|evenings?|afternoons?|weekends?|tomorrow|"
    r"tonight|(?:first|second|last|end) of)\b",
    re.IGNORECASE,
)
_WHERE: Final = re.compile(
    r"(?:now )?(?:in|on|at|near|behind|next to|under|above|below|opposite|from|around|between|inside|outside|upstairs|"
    r"downstairs|abroad|close to|by the|across)\b(?! (?:time|sale|hold|order|fire|strike|track|budget|risk|average)\b)",
    re.IGNORECASE,
)
_HOW_MANY: Final = re.compile(
    r"(?:about |around |only |now )?(?:[€$£]? ?\d|(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|twenty|"
    r"thirty|hundred) )(?!.*\b(?:street|road|strasse|straße)\b)",
    re.IGNORECASE,
)
HOW: Final = "how:"
"""What aspects that describe begin with."""
_SCALES: Final = {
    word: f"{HOW}{scale}"
    for scale, words in {
        "colour": "black white grey gray red green blue yellow brown orange purple pink beige turquoise",
        "size": "big small large tiny huge little spacious cramped",
        "length": "long short tall high low",
        "age": "old new young ancient",
        "speed": "slow fast quick",
        "price": "cheap expensive dear",
        "sound": "loud noisy quiet",
        "warmth": "hot warm cold cool",
        "weather": "dry wet",
        "tidiness": "clean dirty",
        "effort": "easy hard",
        "brightness": "dark bright",
        "weight": "light heavy",
        "strength": "weak strong",
        "body": "fat slim thin thick",
        "wealth": "rich poor",
        "contents": "empty full",
        "time": "late early",
        "mood": "sad happy angry calm",
        "state": (
            "good bad great nice fine ok okay sick ill sore open free busy ready broken dead alive safe wrong right valid paid "
            "due made gone away back remote flat down up off over ruined"
        ),
    }.items()
    for word in words.split()
}
"""Two words of one scale contradict each other: a desk is white or red, and old besides."""
_STATE: Final = _SCALES["broken"]
"""Of participles, too: "signed", "cancelled"."""
_DESCRIBES: Final = re.compile(
    r"(?:(?:very|so|too|quite|really|pretty|rather|a bit|still|always|often|mostly|completely|almost|now|all|not|never|"
    r"no longer) )*"
    rf"(?:(?P<word>{'|'.join(_SCALES)}|strict|kind|friendly|funny|lazy|rude|mean|shy|sweet|bitter|spicy|deep|"
    r"[a-z]{3,}(?:ful|ous|less|able|ible|ive|proof))|[a-z]{3,}(?:ed|ing))(?: |$)"
)
_ASPECTS: Final = (
    ("when", _WHEN),
    ("where", _WHERE),
    ("how many", _HOW_MANY),
    ("aim", re.compile(r"(?:not )?to [a-z]")),
    ("kind", re.compile(r"(?:now )?an? (?!(?:Dr|Mrs?|Ms|Prof)\b)")),
)
_RELATIONS: Final = frozenset({"with", "for", "about", "against", "without"})
_NAMED: Final = re.compile(r"(?:called|named) ")
_THING: Final = re.compile(r"(?:an?|the|my|our|some|this) (?!.*\b[A-ZÀ-Þ])", re.DOTALL)
_OCCASION: Final = re.compile(
    r" (?:(?:in the|at|on|before|after|with|every|during) (?:morning|afternoon|evening|night|noon|lunch|dinner|breakfast|bed|"
    rf"work|home|weekends?|holidays?|meals?|{WEEKDAY}s?)|in (?:summer|winter|autumn|spring)|when .*)$",
    re.IGNORECASE,
)


SEVERAL_OF: Final = frozenset(
    """
    hobby goal client customer project language allergy medication interest skill subject course colleague teammate instrument
    sport pronoun son daughter child brother sister aunt uncle cousin niece nephew grandmother grandfather friend neighbour
    neighbor roommate flatmate dog cat pet
    """.split()  # noqa: SIM905
)
"""What somebody may have more than one of."""
_ONE_OF_MANY: Final = frozenset(
    """
    hours pronouns keys glasses headphones earphones shoes days status address business settings rates news times bus gas class
    glass pass access process dress lens dns gps tyres tires boss
    """.split()  # noqa: SIM905
)
"""Words with the end of a plural that have one value: "Opening hours: 9 to 5"."""
_DOMAINS: Final = frozenset(
    """
    work home house household family health food travel garden school kitchen money finance car fun misc general personal
    shopping packing food child wishlist bucket list pet
    """.split()  # noqa: SIM905
)
"""Headings of lists that are no attributes."""


def key_and_value(fact: str) -> tuple[str, str] | None:
    """Of a line `key: value`, the key in lower case, without MINE and NEW, and the value as it is written; None for others."""
    pair = _PAIR.match(fact)
    return None if pair is None else (pair["key"].strip().casefold(), pair["value"])


def has_several(key: str) -> bool:
    """Whether lines with a key, in lower case, may hold beside each other: "Allergies: nuts" and "Allergies: cats"."""
    last = key.rpartition(" ")[2]
    return last in SEVERAL_OF or last in _DOMAINS or (last.endswith("s") and last not in _ONE_OF_MANY)


def topic_of(subject: str, attribute: str, aspect: str) -> tuple[str, str]:
    """Under which statements contradict each other, where something has one value of an aspect."""
    return subject, f"{attribute}, {aspect}"


def aspect_of(value: str, attribute: str) -> str:
    """One of `when`, `where`, `how many`, `aim`, `kind`, `how:` and a scale or the word, a word like `with`, or nothing for
    what it is; of a `value` as it was written. Of a place `what` ("a flat with a balcony" is no other place than Porto) and
    `how:`, of what somebody drinks the occasion."""
    if attribute in PLACES:
        return "what" if _THING.match(value) else _how(value)
    if attribute == "drinks":
        occasion = _OCCASION.search(value)
        return "" if occasion is None else occasion[0].strip().casefold()
    if _NAMED.match(value):
        return ""
    first = value.partition(" ")[0]
    if first in _RELATIONS:
        return first
    return next((aspect for aspect, pattern in _ASPECTS if pattern.match(value)), "") or _how(value)


def _how(value: str) -> str:
    found = _DESCRIBES.match(value)
    if found is None:
        return ""
    word = found["word"]
    return _STATE if word is None else _SCALES.get(word, f"{HOW}{word}")


def is_home(place: str) -> bool:
    """Whether somebody may live there: "Practice moved to Sundays", "Priya moved to the third floor" say nothing of that."""
    return _NO_HOME.fullmatch(place) is None
