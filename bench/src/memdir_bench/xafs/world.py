"""The hidden world of one drive: who and what there is, and every fact about them, from which files are written."""

from __future__ import annotations

import calendar
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final

from memdir_bench.xafs import wording
from memdir_bench.xafs.wording import BY_NAME, RELATIONS, Relation

MONTHS: Final = tuple(calendar.month_name)[1:]


@dataclass(frozen=True, slots=True)
class Fact:
    """`relation` of `subject` is `value`."""

    subject: str
    relation: str
    value: str

    @property
    def about(self) -> Relation:
        return BY_NAME[self.relation]


@dataclass(slots=True)
class World:
    """`entities`: kind -> names. `facts` by subject and relation."""

    persona: str
    entities: dict[str, list[str]] = field(default_factory=dict)
    facts: dict[tuple[str, str], Fact] = field(default_factory=dict)

    def fact(self, subject: str, relation: str) -> Fact:
        return self.facts[subject, relation]


def make_world(rng: random.Random, *, persona: str, size: int) -> World:
    """The world of a drive of `size` files: twice as many people and things for four times as many files, so that what is
    important is mentioned often where there is much. Names and numbers occur once."""
    world = World(persona)
    each = max(5, round(1.2 * size**0.5))
    people = _distinct(lambda: f"{rng.choice(wording.FIRST)} {rng.choice(wording.LAST)}", 3 * each, limit=1800)
    half = len(people) * 2 // 3
    world.entities = {
        "person": people[:half],
        "contact": people[half:],
        "project": _distinct(lambda: f"{rng.choice(wording.ADJECTIVES)} {rng.choice(wording.NOUNS)}", 2 * each, limit=1100),
        "client": _distinct(lambda: f"{rng.choice(wording.FIRMS)} {rng.choice(wording.FORMS)}", each, limit=250),
        "incident": _distinct(lambda: f"incident {rng.randint(1000, 9999)}", each, limit=4000),
        "decision": rng.sample(wording.TOPICS, min(len(wording.TOPICS), each)),
        "invoice": _distinct(lambda: f"invoice {rng.randint(10_000, 99_999)}", 2 * each, limit=8000),
    }
    numbers = iter(rng.sample(range(101, 99_999), 60_000))
    for relation in RELATIONS:
        for subject in world.entities[relation.of]:
            world.facts[subject, relation.name] = Fact(subject, relation.name, _value(rng, world, relation, numbers))
    return world


def _distinct(make: Callable[[], str], count: int, *, limit: int) -> list[str]:
    """`count` different ones, at most `limit`: there must be more."""
    found: dict[str, None] = {}
    count = min(count, limit)
    while len(found) < count:
        found[make()] = None
    return list(found)


def _value(rng: random.Random, world: World, relation: Relation, numbers: Iterator[int]) -> str:
    if relation.to:
        return rng.choice(world.entities[relation.to])
    match relation.kind:
        case "money":
            return f"{rng.randint(3, 940)},{rng.randint(1, 99) * 10:03d} EUR"
        case "date":
            return f"{rng.randint(1, 28)} {rng.choice(MONTHS)} {rng.randint(2019, 2027)}"
        case "number":
            return str(next(numbers))
        case "place":
            return rng.choice(wording.CITIES)
        case _:
            choices = {"diet": wording.FOODS, "cause": wording.CAUSES, "choice": wording.CHOICES}
            return rng.choice(choices[relation.name])


def other_value(rng: random.Random, world: World, fact: Fact) -> str:
    """A value that the fact has not, for drafts and former versions."""
    numbers = iter(rng.sample(range(101, 99_999), 50))
    for _ in range(50):
        value = _value(rng, world, fact.about, numbers)
        if value != fact.value:
            return value
    raise ValueError(f"there is no other value for {fact}")
