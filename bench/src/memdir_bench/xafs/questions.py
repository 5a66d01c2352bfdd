"""Questions over a world: what is asked, through which facts it is answered, and how an answer is judged."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final, Literal

from memdir_bench.xafs.wording import RELATIONS, Kind
from memdir_bench.xafs.world import Fact, World

Family = Literal["single_hop", "multi_hop", "format_spanning"]

SHARES: Final[dict[Family, int]] = {"single_hop": 34, "multi_hop": 51, "format_spanning": 26}
"""The seed's counts; they sum to 111 where the seed says 110."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """`facts`: in the order in which they are needed; `sums`: the answer is the sum of their values."""

    prompt: str
    family: Family
    facts: tuple[Fact, ...]
    answer: str
    kind: Kind
    sums: bool = False


def wanted_families(count: int, rng: random.Random) -> list[Family]:
    """`count` families in the seed's proportions, shuffled."""
    names = [name for name, share in SHARES.items() for _ in range(share)]
    picked = [names[(number * len(names)) // count] for number in range(count)]
    rng.shuffle(picked)
    return picked


def make_question(rng: random.Random, world: World, family: Family, used: set[tuple[str, str]]) -> Question:
    """A question whose facts are not asked for yet."""
    for _ in range(2000):
        question = (
            _single(rng, world)
            if family == "single_hop"
            else _sum(rng, world)
            if rng.random() < 0.15
            else _chain(rng, world, family)
        )
        keys = {(fact.subject, fact.relation) for fact in question.facts}
        if not keys & used and len(keys) == len(question.facts):
            used |= keys
            return question
    raise ValueError("the world is too small for so many questions")


def _single(rng: random.Random, world: World) -> Question:
    fact = rng.choice([fact for fact in world.facts.values() if not fact.about.to])
    prompt = rng.choice(fact.about.questions).format(s=fact.subject)
    return Question(prompt=prompt, family="single_hop", facts=(fact,), answer=fact.value, kind=fact.about.kind)


def _chain(rng: random.Random, world: World, family: Family) -> Question:
    """One or two links, then a value."""
    links = [relation for relation in RELATIONS if relation.to and relation.name != "contact"]
    relation = rng.choice(links)
    first = world.fact(rng.choice(world.entities[relation.of]), relation.name)
    facts, phrase = [first], relation.phrase.format(s=first.subject)
    if first.relation == "client" and rng.random() < 0.35:
        second = world.fact(first.value, "contact")
        facts.append(second)
        phrase = second.about.phrase.format(s=phrase)
    entity_kind = facts[-1].about.to
    last = rng.choice([one for one in RELATIONS if one.of == entity_kind and not one.to])
    facts.append(world.fact(facts[-1].value, last.name))
    prompt = rng.choice(last.questions).format(s=phrase)
    return Question(prompt=prompt, family=family, facts=tuple(facts), answer=facts[-1].value, kind=last.kind)


def _sum(rng: random.Random, world: World) -> Question:
    """Two or three invoices together."""
    names = rng.sample(world.entities["invoice"], rng.choice((2, 3)))
    facts = tuple(world.fact(name, "invoice") for name in names)
    listed = ", ".join(names[:-1]) + f" and {names[-1]}"
    return Question(
        prompt=f"How much has to be paid for {listed} altogether?", family="multi_hop", facts=facts,
        answer=total(fact.value for fact in facts),
        kind="money", sums=True,
    )  # fmt: skip


def followed(question: Question, find: Callable[[str, Fact], str | None]) -> str | None:
    """The answer through the question's facts one after the other: `find` says what the relation of a fact is of a subject,
    which is the value before in a chain. None when it does not know one."""
    values: list[str] = []
    for fact in question.facts:
        value = find(values[-1] if values and not question.sums else fact.subject, fact)
        if value is None:
            return None
        values.append(value)
    return total(values) if question.sums else values[-1]


def total(amounts: Iterable[str]) -> str:
    """The sum of amounts of money."""
    return f"{sum(int(re.sub(r'[^0-9]', '', amount)) for amount in amounts):,} EUR"


def normalised(answer: str) -> str:
    """Case, punctuation, articles and the separators of numbers do not matter."""
    text = re.sub(r"(?<=\d)[,. ](?=\d{3}\b)", "", answer.casefold())
    return " ".join(word for word in re.findall(r"[\wäöüé]+", text) if word not in ("a", "an", "the", "eur"))


def is_right(given: str, question_answer: str) -> bool:
    """Whether the answer is the gold one."""
    return normalised(given) == normalised(question_answer)
