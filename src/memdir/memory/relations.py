"""Words for who somebody is to somebody else. English."""

from __future__ import annotations

from typing import Final

from memdir.store.text.words import words

KIN: Final = (
    r"wife|husband|partner|girlfriend|boyfriend|fianc[eé]e?|son|daughter|mother|father|mum|mom|dad|parents|brother|sister|"
    r"grandmother|grandfather|grandma|grandpa|granny|grandad|aunt|uncle|cousin|niece|nephew|boss|manager|flatmate|roommate"
)
RELATIVES: Final = frozenset(KIN.replace("[eé]e?", "e").split("|"))
"""Subjects of claims that are somebody of the one who speaks: "my sister"."""
_IN_FULL: Final = {
    **dict.fromkeys(("mother", "mum", "mom", "mummy", "mommy", "mama"), "mother"),
    **dict.fromkeys(("father", "dad", "daddy", "papa"), "father"),
    **dict.fromkeys(("grandmother", "grandma", "granny", "gran"), "grandmother"),
    **dict.fromkeys(("grandfather", "grandpa", "grandad", "granddad"), "grandfather"),
}
"""Who is the same in other words."""
FAMILY: Final = (
    r"(?:[a-z]+ )?(?:(?:god|grand|step|half-)?(?:sister|brother|son|daughter|mother|father|mum|mom|dad|parents?|child|ma|pa)|"
    r"aunt|uncle|cousin|niece|nephew|twin|friend)(?:-in-law)?"
)
"""A pattern, for whom one stays related to, with friends: no partners, and nobody of work or of the house."""
FEMALE: Final = frozenset(
    {"wife", "girlfriend", "daughter", "mother", "mum", "mom", "sister", "landlady", "aunt", "niece", "grandmother", "nanny"}
)
MALE: Final = frozenset(
    {"husband", "boyfriend", "son", "father", "dad", "brother", "landlord", "uncle", "nephew", "grandfather"}
)
_OTHERS: Final = frozenset(
    {"partner", "friend", "best friend", "boss", "manager", "colleague", "neighbour", "neighbor", "cousin", "flatmate"}
) | {"roommate", "dentist", "doctor", "therapist", "mentor", "dog", "cat"}
PEOPLE: Final = _OTHERS | FEMALE | MALE
"""What somebody is whom "she" or "he" may mean."""
TRUSTED: Final = RELATIVES | frozenset(
    """
    doctor doctors dentist vet gp physio physiotherapist nurse therapist surgeon midwife pharmacist optician landlord landlady
    teacher coach tutor professor supervisor accountant lawyer notary colleague colleagues friend friends neighbour neighbours
    neighbor mechanic team lead client customer employer school wife kids user
    """.split()  # noqa: SIM905
)
"""Who knows of the user what they say."""


def in_full(word: str) -> str:
    """ "mother" for "mum", in small letters; any other word as it is."""
    return _IN_FULL.get(word, word)


def parents_in(text: str) -> frozenset[str]:
    """Parents and theirs who are named in a statement."""
    return frozenset(_IN_FULL[word] for word in words(text) if word in _IN_FULL)


def parent_in(text: str) -> str | None:
    """Which of them a statement begins with: "My dad …", "Mum …"."""
    return _IN_FULL.get(text.casefold().removeprefix("my ").removeprefix("our ").partition(" ")[0])
