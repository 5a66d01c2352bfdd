"""Whom and what facts are about, and how these are linked: subject, relation, object. Pure, by the claims of single facts.

Names are in lower case; `user` is the user. A short name ("Ana") is the one known longer name that begins with it ("Ana
Ruiz"); where there are two, it stays itself.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

from memdir.memory.claims import USER, claim_of
from memdir.memory.claims_other_languages import NAME
from memdir.memory.own_name import names_in
from memdir.memory.personal import certain_person
from memdir.memory.relations import in_full
from memdir.store.types import Memory, MemoryCandidate

HOPS_MAX: Final = 5
_NAME: Final = re.compile(NAME)
_PERSONS: Final = frozenset(
    (
        *("partner", "son", "daughter", "mother", "father", "mum", "mom", "dad", "brother", "sister", "boss", "manager"),
        *("dentist", "doctor", "landlord", "landlady", "neighbour", "neighbor", "mentor", "roommate", "accountant"),
        *("therapist", "friend", "colleague"),
    )
)
"""Attributes whose values are people."""
_OF_PERSONS: Final = frozenset(
    (
        *("birthday", "allergy", "prefers", "dislikes", "speaks", "habit", "diet", "role", "drinks", "lives in", "works at"),
        "partner",
    )
)
_OF_PROJECTS: Final = frozenset({"uses", "due"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Relation:
    """One edge, and the fact that says it."""

    subject: str
    relation: str
    object: str
    memory_id: str


class Entities:
    """Of some facts."""

    def __init__(self, memories: Iterable[Memory]) -> None:
        self._links: list[Relation] = []
        names: set[str] = set()
        self._statements: list[str] = []
        self._called: set[str] = set()
        for memory in memories:
            self._statements.append(memory.candidate.text)
            self._called |= names_in(memory.candidate, is_own=True)
            claim = claim_of(memory.candidate.text)
            names |= _mentioned(memory.candidate)
            if claim is not None and claim.attribute:
                self._links.append(
                    Relation(subject=claim.subject, relation=claim.attribute, object=claim.value, memory_id=memory.id)
                )
        self._by_first: dict[str, set[str]] = {}
        for name in names:
            first, _, rest = name.partition(" ")
            if rest and "'s" not in name and "’s" not in name:
                self._by_first.setdefault(first, set()).add(name)
        self._subjects = {self.named(link.subject) for link in self._links} - {USER}

    def names_in(self, candidate: MemoryCandidate) -> set[str]:
        """Whom and what a fact is about, by their longest names."""
        return {self.named(name) for name in _mentioned(candidate)}

    def asked_about(self, question: str) -> set[str]:
        """Known names in a question; the user, for "I", "our", "the user" and, where nobody else has it, their own name."""
        words = re.findall(r"\w[\w-]*", re.sub(r"['’]s\b", "", question.casefold()))
        runs = {" ".join(words[at : at + size]) for size in (1, 2, 3) for at in range(len(words))}
        found = {name for run in runs if (name := self.named(run)) in self._subjects}
        own = {"i", "my", "me", "mine", "user", "we", "our"} | (self._called - found)
        return found | ({USER} if own & runs else set())

    def named(self, text: str) -> str:
        """The name that is meant: "ana" is "ana ruiz" where only one is called so; "I" and "me" are the user, "my mum" is the
        mother."""
        name = in_full(" ".join(text.casefold().split()).removeprefix("my "))
        if name in ("i", "me", "myself", "user"):
            return USER
        longer = self._by_first.get(name, set())
        return next(iter(longer)) if len(longer) == 1 else name

    def around(self, name: str, *, hops: int) -> Iterator[Relation]:
        """Links from and to a name, then those of what is reached, each once."""
        by_name: dict[str, list[Relation]] = {}
        for said in self._links:
            link = replace(said, subject=self.named(said.subject), object=self.named(said.object))
            by_name.setdefault(link.subject, []).append(link)
            by_name.setdefault(link.object, []).append(link)
        given: set[Relation] = set()
        seen = {name}
        waiting = deque([(name, 0)])
        while waiting:
            at, far = waiting.popleft()
            for link in by_name.get(at, ()):
                if link not in given:
                    given.add(link)
                    yield link
                other = link.object if link.subject == at else link.subject
                if other not in seen and far + 1 < min(hops, HOPS_MAX):
                    seen.add(other)
                    waiting.append((other, far + 1))

    def people(self) -> set[str]:
        """Who has or does what only a person does, or is a person to somebody."""
        doing = {self.named(name) for one in self._statements if (name := certain_person(one)) is not None}
        return self._related_people | (doing - self.projects() - {USER})

    def projects(self) -> set[str]:
        """What is due, or uses something, and is nobody."""
        found = {self.named(link.subject) for link in self._links if link.relation in _OF_PROJECTS}
        return found - self._related_people - {USER}

    @cached_property
    def _related_people(self) -> set[str]:
        found = {self.named(link.subject) for link in self._links if link.relation in _OF_PERSONS}
        found |= {self.named(link.object) for link in self._links if link.relation in _PERSONS}
        return found - {USER}


def subject_of(candidate: MemoryCandidate) -> str:
    """Whom a fact is about, in lower case."""
    claim = claim_of(candidate.text)
    return candidate.subject.casefold() if claim is None else claim.subject


def _mentioned(candidate: MemoryCandidate) -> set[str]:
    claim = claim_of(candidate.text)
    own = {candidate.subject.casefold()} if claim is None else {claim.subject, claim.value}
    return own | {name.casefold() for name in _NAME.findall(candidate.text)}
