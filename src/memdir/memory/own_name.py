"""What the user is called, and what is said of them by that name: an agent that was told it writes "Tobi moved to Halle", and
chats that were exported call everybody by name. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from memdir.memory.claims import USER
from memdir.memory.claims_other_languages import LANGUAGES
from memdir.memory.personal import is_first_person
from memdir.memory.reports import ADVERBS
from memdir.store.types import MemoryCandidate

NAMES_MAX: Final = 8
"""Of one user."""
_NAME: Final = r"(?P<name>[A-ZÀ-Þ][\w'’-]+(?: (?:[a-zà-ÿ]{2,3} ){0,2}[A-ZÀ-Þ][\w'’-]+){0,3})"
_PAIR: Final = re.compile(
    r"(?:(?i:(?:(?:full|first|given|preferred|user|display|nick|real|my|user['’]s)[ -]?)*name|what to call them|"
    r"call (?:me|them|him|her)|goes by|vorname|rufname|nombre|prénom|nom)): "
    rf"{_NAME}(?=[\s,.;(]|$)"
)
_SAYS: Final = re.compile(
    r"(?:(?:My|(?:The )?[Uu]ser['’]s) (?:(?:first|full|given|real|preferred) )?name is|"
    r"(?:I['’]m|I am|(?:The )?[Uu]ser is) called|(?:Please )?[Cc]all me|"
    r"(?:I['’]m|I am)(?= [A-ZÀ-Þ][a-zß-ÿ]+ (?!\w+(?:ic|ox|ican|ish|ian|ean|ese)\b)[A-ZÀ-Þ][a-zß-ÿ]+\.?$)|"
    r"User:|(?:I|(?:The )?[Uu]ser) goe?s? by|Goes by|Ich heiße|Mein Name ist|Je m['’]appelle|Me llamo|Mi nombre es) "
    rf"(?:just )?{_NAME}(?=[\s,.;(]|$)"
)
_ALSO: Final = re.compile(rf"\b(?:goes by|aka|a\.k\.a\.|known as|called|call (?:me|him|her|them)|genannt) (?:just )?{_NAME}")
_BIOGRAPHY: Final = re.compile(
    rf"(?=\S+ (?:[a-zà-ÿ]{{2,3}} )*[A-ZÀ-Þ]){_NAME} (?:\([^()]{{1,40}}\) )?"
    r"(?:is|was|grew|has|works|worked|lives|leads|studied|builds|writes|teaches|runs|designs|spent|holds|joined|started)\b"
)
"""How a text for others begins to tell of its writer."""
_OUR: Final = re.compile(r"\b(?:[Mm]y|[Oo]ur|[Mm]e|[Uu]s|[Ww]e)\b")
_TELLS_OF_ONE: Final = re.compile(
    rf"['’]s [a-z]| {ADVERBS}"
    r"(?!(?:this|its|as|at|that|not|but|it|must)\b)(?:[a-zà-ÿ]+(?:s|ed|t|ó)|has|went|got|bought|sold|took|made|gave|became|began|"
    r"chose|came|lives?|would|will|can|could|plans?|n['’]t|mag|hat|habite|aime|tiene|vive|trabaja|prefiere)(?:n['’]t)?\b"
)
"""Behind a name: with "Will be late" or "Mark the tests" no Will and no Mark is meant."""
_OF_PERSON: Final = re.compile(r"\b(?:[Ss]?[Hh]e|[Hh]ers?|[Hh]is|grew up|born|studied|graduated|lives (?:in|with))\b")
"""What is said of a person, and of no project."""
_GOES_ON: Final = re.compile(r" (?:\([^()]{1,40}\) )?[a-z]")
"""Behind a name and a surname."""
_NOT_ENGLISH: Final = re.compile(r" (?:ist|hat|war|mag|wird|kann|es|tiene|está|era|fue|est|a|était|aime)\b")
_NOT_NAMES: Final = frozenset(
    """
    User The Unknown None Owner Admin Root Human My He She They May April June August Summer Autumn Today Tomorrow
    Monday Tuesday Wednesday Thursday Friday Saturday Sunday
    """.split()  # noqa: SIM905
)
"""Nor are what is a day or a month, too."""


def names_in(candidate: MemoryCandidate, *, is_own: bool) -> frozenset[str]:
    """What a fact says that the user is called, in lower case: names whole, and their first words. `is_own`: it stands in a
    file about the user, where a line `Name: …` is theirs."""
    if candidate.subject != USER:
        return frozenset()
    found = _SAYS.match(candidate.text) or (_PAIR.match(candidate.text) if is_own else None)
    if found is None:
        return frozenset()
    also = _ALSO.search(candidate.text, found.end())
    names = [one["name"] for one in (found, also) if one is not None]
    names += [name.split()[0] for name in names]
    return frozenset(name.casefold() for name in names if name.split()[0] not in _NOT_NAMES)


def are_of_one_name(one: MemoryCandidate, other: MemoryCandidate) -> bool:
    """Whether two facts say what the user is called, one in short: "Tobi", "Tobias Renner"."""
    first, second = names_in(one, is_own=True), names_in(other, is_own=True)
    return any(a.startswith(b) or b.startswith(a) for a in first for b in second)


def told_by_name(statements: Sequence[str]) -> str | None:
    """The full name of whom a text begins to tell of and nobody else speaks in, as people write of themselves for others:
    "Nadia Rahman grew up in Dhaka. …"."""
    found = _BIOGRAPHY.match(statements[0]) if statements else None
    is_own = any(is_first_person(one) or _OUR.search(one) for one in statements)
    return None if found is None or is_own or not any(map(_OF_PERSON.search, statements)) else found["name"]


def as_user(statement: str, called: frozenset[str]) -> str:
    """A statement that begins with a name of the user, of the user."""
    for name in sorted(called, key=len, reverse=True):
        if statement[: len(name)].casefold() == name:
            rest = statement[len(name) :]
            if _TELLS_OF_ONE.match(rest) is not None or (" " in name and _GOES_ON.match(rest) is not None):
                is_english = _NOT_ENGLISH.match(rest) is None and not any(one.marks.search(statement) for one in LANGUAGES)
                return f"The user{rest}" if is_english else f"User{rest}"
    return statement
