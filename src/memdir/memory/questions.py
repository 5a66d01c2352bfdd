"""Which attributes a question asks for: "where do I live" is answered by "New address: …". English. Pure."""

from __future__ import annotations

import re
from typing import Final

from memdir.memory.aspects import key_and_value
from memdir.memory.claims import claim_of

_ASKED: Final = tuple(
    (re.compile(rf"\b(?:{words})\b", re.IGNORECASE), frozenset(attributes))
    for words, attributes in (
        (
            r"where\b.*\b(?:lives?|living|based|resides?|home)|address|lives? now",
            ("lives in", "address", "city", "home", "adresse", "dirección"),
        ),
        (
            r"where\b.*\bworks?|who\b.*\bworks? for|employer|company|jobs?|occupation|profession|for a living|works? as",
            ("works at", "role", "job", "employer"),
        ),
        (r"how old|age|born|birthdays?|birth", ("birthday", "born", "age")),
        (r"married|wife|husband|spouse|partner|girlfriend|boyfriend", ("partner", "married")),
        (r"kids?|child|children|sons?|daughters?", ("child", "children", "kids", "son", "daughter")),
        (r"boss|manager|reports? to", ("manager", "boss", "reports to")),
        (r"eats?|diet|vegetarian|vegan", ("diet",)),
        (r"allerg(?:y|ies|ic)|intoleran(?:t|ce)", ("allergy", "allergies", "allergic to")),
        (r"phone|mobile|call", ("phone", "mobile", "phone number", "number")),
    )
)
_HOME_OR_WORK: Final = re.compile(r"^(?:(?:home|work) )+")
"""Before "address" and "phone"."""


def attributes_asked(question: str) -> frozenset[str]:
    """Of all that it may ask for; empty where nothing is known of it."""
    return frozenset().union(*(attributes for words, attributes in _ASKED if words.search(question)))


def attribute_of(fact: str) -> str:
    """What a fact tells of whom it is about, in lower case; empty where it is no such."""
    claim = claim_of(fact)
    if claim is not None:
        return claim.attribute
    pair = key_and_value(fact)
    return "" if pair is None else _HOME_OR_WORK.sub("", pair[0])
