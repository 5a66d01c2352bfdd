"""Made-up lives: notes of a person over months, in wording of two families, with what is true kept apart.

Statements in `lives/`: `tuned.txt` is what rules may be fitted on, `held.txt` what they never were. Values come from lists,
so that no rule can know them. The same seed gives the same life.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date, timedelta
from importlib.resources import files
from typing import Final

_CITIES: Final = [
    "Lisbon",
    "Porto",
    "Ghent",
    "Graz",
    "Turku",
    "Leeds",
    "Basel",
    "Malmö",
    "Gdańsk",
    "Trieste",
    "Bergen",
    "Utrecht",
    "Brno",
    "Vilnius",
    "Ljubljana",
    "Aarhus",
]
_EMPLOYERS: Final = [
    "Helvar Robotics",
    "Nordlicht AG",
    "Kestrel Labs",
    "Brightpath",
    "Quorum Pay",
    "Tessera",
    "Linden Works",
    "Aurora Bank",
]
VALUES: Final = {
    "city": _CITIES,
    "friend.city": _CITIES,
    "employer": _EMPLOYERS,
    "friend.employer": _EMPLOYERS,
    "birthday": ["3 May", "17 November", "29 February", "8 August", "12 January"],
    "allergy": ["peanuts", "shellfish", "hazelnuts", "penicillin", "celery"],
    "editor": ["Neovim", "Helix", "Emacs", "VS Code", "Zed", "Sublime Text"],
    "drink": ["oolong", "espresso", "buttermilk", "rooibos", "lemonade", "cocoa"],
    "partner": ["Ines", "Tomás", "Priya", "Marek", "Chiara", "Jonas"],
    "friend.diet": ["Hillside", "Oakmoor", "Fernley"],
    "project.database": ["PostgreSQL", "MongoDB", "SQLite", "DuckDB", "Cassandra", "ClickHouse"],
    "project.deadline": ["3 March 2027", "14 June 2027", "1 October 2027", "9 December 2027", "20 January 2028"],
    "decision": ["ship every second Friday", "drop the mobile app", "hire a designer", "rewrite the importer", "move house"],
    "prefers": ["window seats", "short meetings", "printed books", "night trains", "dark themes"],
    "habit": ["walk to work", "write a plan", "read the news", "water the plants", "answer all mail"],
}  # fmt: skip
RUMOURED: Final = ("Xanadu", "Zembla", "Ruritania", "Brobdingnag", "Lilliput")
"""Values that no note of somebody's own says."""
NAMES: Final = ("Ana Ruiz", "Ben Okafor", "Clara Vogt", "Dmitri Sokolov", "Elif Kaya")
PROJECTS: Final = ("Heron", "Basalt", "Juniper")
CHANGES: Final = (
    "city",
    "employer",
    "editor",
    "drink",
    "friend.city",
    "friend.employer",
    "project.database",
    "project.deadline",
)
NOISE_PER_NOTE: Final = 3
_EVERY: Final = 4
"""So many notes apart somebody else says something, and the note is a conversation."""
_LINE: Final = re.compile(r"([\w.]+) (first|later): (.+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Truth:
    """A value of an attribute of somebody: `words` of who must be said beside the value; none for the user."""

    attribute: str
    who: str
    value: str


@dataclass(slots=True, kw_only=True)
class Life:
    """Notes by their paths in the order in which they were written, each with what it states; what holds at the end, and what
    held before. `rumours`: texts by their paths of what others say, or want to be believed, with the value in them."""

    notes: list[tuple[str, str, list[Truth]]] = field(default_factory=list)
    rumours: list[tuple[str, str, str]] = field(default_factory=list)
    current: dict[tuple[str, str], str] = field(default_factory=dict)
    former: list[Truth] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class Wording:
    """Templates of one family: of statements by attribute and turn; noise; what others say; conversations, in which the user
    says {s} and somebody else {t}, on {d}."""

    statements: dict[tuple[str, str], list[str]] = field(default_factory=dict)
    noise: list[str] = field(default_factory=list)
    rumours: list[str] = field(default_factory=list)
    chats: list[str] = field(default_factory=list)


def wording(family: str) -> Wording:
    """As the file of the family says."""
    found = Wording()
    for line in files("memdir_bench.memory").joinpath("lives", f"{family}.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("noise: "):
            found.noise.append(line.removeprefix("noise: "))
        elif line.startswith("rumour: "):
            found.rumours.append(line.removeprefix("rumour: ").replace("\\n", "\n"))
        elif line.startswith("chat: "):
            found.chats.append(line.removeprefix("chat: ").replace("\\n", "\n"))
        elif matched := _LINE.fullmatch(line):
            found.statements.setdefault((matched[1], matched[2]), []).append(matched[3])
        elif not line.startswith("#"):
            raise ValueError(f"{family}.txt: {line!r}")
    return found


def life(family: str, seed: int, *, days: int = 40) -> Life:
    """One note a day or so, some of them conversations; each states one or two things among noise."""
    chance = random.Random(f"{family} {seed}")  # noqa: S311
    rumoured = random.Random(f"rumours {family} {seed}")  # noqa: S311
    words = wording(family)
    name, project = chance.choice(NAMES), chance.choice(PROJECTS)
    made = Life()
    for number, (attribute, later) in enumerate(_events(chance, days)):
        who = name if attribute.startswith("friend.") else project if attribute.startswith("project.") else "user"
        before = made.current.get((who, attribute))
        value = chance.choice(
            [one for one in VALUES[attribute] if one != before and (who, one) not in _used(made, attribute)]
            or VALUES[attribute]
        )
        text = chance.choice(words.statements[attribute, "later" if later else "first"])
        text = text.format(v=value, o=before, n=name, p=project)
        if before is not None:
            made.former.append(Truth(attribute=attribute, who=who, value=before))
        made.current[who, attribute] = value
        others = chance.sample(words.noise, NOISE_PER_NOTE)
        sentences = [text, *others]
        chance.shuffle(sentences)
        day = date(2026, 1, 5) + timedelta(days=number)
        path, note = f"/memory/diary/{day}.md", " ".join(sentences)
        if number % _EVERY == 1:
            chat = words.chats[number // _EVERY % len(words.chats)]
            path, note = f"/memory/chats/{day}.md", chat.format(s=text, t=others[0], d=day)
        made.notes.append((path, note + "\n", [Truth(attribute=attribute, who=who, value=value)]))
        if number % _EVERY == 0:
            said = rumoured.choice(RUMOURED)
            text = words.rumours[number // _EVERY % len(words.rumours)].format(x=said, n=name)
            made.rumours.append((f"/memory/clippings/{number}.md", text + "\n", said))
    return made


def _used(made: Life, attribute: str) -> set[tuple[str, str]]:
    """Values that somebody had before: what comes back would make stale and current alike."""
    return {(one.who, one.value) for one in made.former if one.attribute == attribute}


def _events(chance: random.Random, days: int) -> Iterator[tuple[str, bool]]:
    """Every attribute once, in any order; then changes."""
    first = list(VALUES)
    chance.shuffle(first)
    for attribute in first:
        yield attribute, False
    for _ in range(max(0, days - len(first))):
        yield chance.choice(CHANGES), True
