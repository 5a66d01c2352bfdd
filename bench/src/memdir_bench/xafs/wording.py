"""The words of the made-up drives: names, and for each relation how files state it and how questions ask for it.

Questions and statements share no content words on purpose: whoever asks does not know how it was written.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from importlib.resources import files
from typing import Final, Literal

Kind = Literal["money", "date", "number", "person", "place", "thing", "organisation"]

VALUES: Final[dict[Kind, str]] = {
    "money": r"\d{1,3}(?:,\d{3})+ EUR",
    "date": r"\d{1,2} (?:January|February|March|April|May|June|July|August|September|October|November|December) 20\d\d",
    "number": r"\d{1,5}",
    "person": r"[A-Z][a-zé]+ [A-Z][a-z]+",
    "place": r"[A-Z][a-zäöüé]+(?: [A-Z][a-zäöüé]+)?",
    "thing": r"[a-z][a-z -]{2,40}",
    "organisation": r"[A-Z][A-Za-z&' ]{3,40}",
}
"""What a value of a kind looks like, as a regular expression."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Relation:
    """`statements` have {s} and {v}, `questions` {s}; `phrase` names the value inside another question, `label` in a table."""

    name: str
    of: str
    """What kind of entity has it."""
    kind: Kind
    statements: tuple[str, ...]
    questions: tuple[str, ...]
    label: str
    phrase: str = ""
    to: str = ""
    """The kind of entity that the value is, when it is one."""


RELATIONS: Final = (
    Relation(
        name="budget",
        of="project",
        kind="money",
        label="ceiling",
        statements=("The ceiling for {s} is {v}.", "{s} was signed off at {v}.", "Sum set aside, {s}: {v}."),
        questions=("What is the most that may be spent on {s}?", "How much money was approved for {s}?"),
    ),
    Relation(
        name="deadline",
        of="project",
        kind="date",
        label="handover",
        statements=("{s} has to be handed over on {v}.", "The last day for {s} is {v}."),
        questions=("When is {s} due?", "Until when must {s} be finished?"),
    ),
    Relation(
        name="client",
        of="project",
        kind="organisation",
        to="client",
        label="done for",
        phrase="the organisation that commissioned {s}",
        statements=("{s} is done on behalf of {v}.", "We took on {s} for {v}."),
        questions=("Who commissioned {s}?",),
    ),
    Relation(
        name="lead",
        of="project",
        kind="person",
        to="person",
        label="in the hands of",
        phrase="the person responsible for {s}",
        statements=("{s} is in the hands of {v}.", "{v} runs {s}."),
        questions=("Who is responsible for {s}?",),
    ),
    Relation(
        name="city",
        of="client",
        kind="place",
        label="head office",
        statements=("The head office of {s} is in {v}.", "{s} sits in {v}."),
        questions=("Where is {s} based?", "In which town would one visit {s}?"),
    ),
    Relation(
        name="notice",
        of="client",
        kind="number",
        label="days of warning",
        statements=(
            "The agreement with {s} can be ended with {v} days of warning.",
            "Either side may leave {s} after {v} days of warning.",
        ),
        questions=("How long beforehand must one cancel with {s}, counted in days?",),
    ),
    Relation(
        name="contact",
        of="client",
        kind="person",
        to="contact",
        label="talk to",
        phrase="whom we call at {s}",
        statements=("At {s}, talk to {v}.", "Our counterpart at {s} is {v}."),
        questions=("Whom do we call at {s}?",),
    ),
    Relation(
        name="extension",
        of="person",
        kind="number",
        label="desk phone",
        statements=("{s} sits at desk phone {v}.", "Desk phone of {s}: {v}."),
        questions=("What is the internal telephone number of {s}?",),
    ),
    Relation(
        name="joined",
        of="person",
        kind="date",
        label="first day",
        statements=("The first day of {s} was {v}.", "{s} came on board on {v}."),
        questions=("Since when has {s} been an employee?",),
    ),
    Relation(
        name="diet",
        of="person",
        kind="thing",
        label="cannot eat",
        statements=("{s} cannot eat {v}.", "Careful with {v}: {s} gets ill from it."),
        questions=("Which food should be avoided when {s} is invited to dinner?",),
    ),
    Relation(
        name="journey",
        of="person",
        kind="place",
        label="flies to",
        statements=("In spring {s} flies to {v}.", "{s} has a ticket to {v} for the spring."),
        questions=("What is the destination of the trip that {s} takes this year?",),
    ),
    Relation(
        name="cause",
        of="incident",
        kind="thing",
        label="came from",
        statements=("{s} came from {v}.", "Root of {s}: {v}."),
        questions=("What was the reason for {s}?",),
    ),
    Relation(
        name="duration",
        of="incident",
        kind="number",
        label="minutes down",
        statements=("{s} kept us down for {v} minutes.", "After {v} minutes {s} was over."),
        questions=("How long were users affected by {s}, in minutes?",),
    ),
    Relation(
        name="handler",
        of="incident",
        kind="person",
        to="person",
        label="on call",
        phrase="the colleague who dealt with {s}",
        statements=("{v} was on call during {s}.", "On call, {s}: {v}."),
        questions=("Who dealt with {s}?",),
    ),
    Relation(
        name="choice",
        of="decision",
        kind="thing",
        label="settled on",
        statements=("For {s} we settled on {v}.", "It is final for {s}: {v}."),
        questions=("What was picked in the end for {s}?",),
    ),
    Relation(
        name="invoice",
        of="invoice",
        kind="money",
        label="amount",
        statements=("{s} comes to {v}.", "Amount payable under {s}: {v}."),
        questions=("How much has to be paid for {s}?",),
    ),
    Relation(
        name="mobile",
        of="contact",
        kind="number",
        label="mobile, last digits",
        statements=("The mobile of {s} ends in {v}.", "{s} answers the mobile that ends in {v}."),
        questions=("With which digits does the cell phone number of {s} finish?",),
    ),
)
BY_NAME: Final = {relation.name: relation for relation in RELATIONS}


def _sections() -> dict[str, list[str]]:
    """Section of `words.txt` -> its lines; of the first seven its words."""
    found: dict[str, list[str]] = {}
    text = (files("memdir_bench.xafs") / "words.txt").read_text(encoding="utf-8")
    for block in re.split(r"^\[", text, flags=re.MULTILINE)[1:]:
        name, _, body = block.partition("]\n")
        found[name] = body.split() if name in _ONE_WORD_EACH else body.rstrip("\n").split("\n")
    return found


_ONE_WORD_EACH: Final = ("first", "last", "adjectives", "nouns", "firms", "cities", "things")
_WORDS: Final = _sections()
FIRST, LAST, ADJECTIVES, NOUNS, FIRMS, CITIES, THINGS = (_WORDS[name] for name in _ONE_WORD_EACH)
FORMS, FOODS, CAUSES, CHOICES, TOPICS, PERSONAS, GENERAL = (
    _WORDS[name] for name in ("forms", "foods", "causes", "choices", "topics", "personas", "general")
)
ABOUT: Final = {name.removeprefix("about "): lines for name, lines in _WORDS.items() if name.startswith("about ")}
"""Sentences about a thing of a kind, {s}, that say nothing that is asked for; {q} is a person, {n} a thing of every day.
GENERAL are those about everyday things alone."""
