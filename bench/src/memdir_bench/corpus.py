"""A generated memory for measurements: the same files for the same seed, of several kinds, in sentences and not in noise.

Each file is made of sections about one of the subjects below, so that searches have something to tell apart and chunkers meet
headings, turns, rows and functions. `FACTS` are sentences with a question that shares no word with them.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

SECTIONS_MIN: Final = 3
SECTIONS_MAX: Final = 5
SENTENCES_PER_SECTION: Final = 11


@dataclass(frozen=True, slots=True, kw_only=True)
class CorpusFile:
    """One generated file; `path` is relative."""

    path: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """The words of one field of work."""

    name: str
    actors: Sequence[str]
    things: Sequence[str]
    acts: Sequence[str]
    places: Sequence[str]


SUBJECTS: Final = (
    Subject(
        name="harbour",
        actors=("the pilot", "the crane driver", "the harbour master", "a deckhand", "the customs officer", "the tug crew"),
        things=("the container", "the mooring line", "the manifest", "the ballast pump", "the gangway", "the tide table"),
        acts=("inspected", "lashed down", "signed for", "repaired", "weighed", "moved"),
        places=("at the north quay", "in the dry dock", "beside berth four", "on the breakwater", "under the bridge"),
    ),
    Subject(
        name="orchard",
        actors=("the grower", "the beekeeper", "a picker", "the agronomist", "the press foreman", "the neighbour"),
        things=("the plum trees", "the drip hose", "the graft", "the cider barrel", "the frost fan", "the hive"),
        acts=("pruned", "watered", "harvested", "covered", "tasted", "counted"),
        places=("on the south slope", "behind the barn", "along the fence", "in the cold store", "by the well"),
    ),
    Subject(
        name="clinic",
        actors=("the nurse", "the physiotherapist", "the receptionist", "a locum", "the pharmacist", "the night porter"),
        things=("the blood samples", "the referral", "the vaccine fridge", "the wheelchair", "the ward list", "the dosage"),
        acts=("checked", "relabelled", "ordered", "handed over", "double-signed", "postponed"),
        places=("in room twelve", "at the desk", "on the second floor", "in the laboratory", "during the morning round"),
    ),
    Subject(
        name="theatre",
        actors=("the director", "the lighting designer", "an understudy", "the prompter", "the carpenter", "the violinist"),
        things=(
            "the second act",
            "the trapdoor",
            "the costume rail",
            "the dimmer board",
            "the programme notes",
            "the backdrop",
        ),
        acts=("rehearsed", "rewired", "repainted", "shortened", "borrowed", "applauded"),
        places=("on the main stage", "in the wings", "at the workshop", "in the foyer", "during the preview"),
    ),
    Subject(
        name="datacentre",
        actors=(
            "the on-call engineer",
            "the auditor",
            "the storage team",
            "a contractor",
            "the release manager",
            "the operator",
        ),
        things=("the replica", "the backup tape", "the load balancer", "the disk shelf", "the access log", "the cooling loop"),
        acts=("failed over", "rotated", "patched", "benchmarked", "decommissioned", "restarted"),
        places=("in rack seven", "in the second region", "behind the firewall", "during the change window", "on staging"),
    ),
    Subject(
        name="school",
        actors=("the maths teacher", "the caretaker", "a parent", "the head of year", "the librarian", "the exchange pupil"),
        things=("the timetable", "the science fair", "the reading list", "the minibus", "the report cards", "the choir folder"),
        acts=("rearranged", "announced", "graded", "lent out", "cancelled", "praised"),
        places=("in the assembly hall", "on sports day", "at the open evening", "in the library", "after lunch"),
    ),
)

_REASONS: Final = (
    "because the earlier arrangement had failed twice",
    "although nobody had asked for it",
    "so that the next shift would lose no time",
    "after a long discussion about money",
    "since the rules changed in spring",
    "which surprised everyone except the oldest colleague",
    "and wrote the result down for once",
    "while the rain made everything slower",
)
_MONTHS: Final = ("January", "March", "April", "June", "July", "September", "October", "December")


def generate(count: int, *, seed: int = 1) -> Iterator[CorpusFile]:
    """`count` files; the first n of a longer run are the same as a run of n."""
    makers: tuple[Callable[[random.Random, Subject, int], CorpusFile], ...] = (
        _note,
        _mail,
        _transcript,
        _table,
        _code,
        _records,
    )
    for number in range(count):
        rng = random.Random(f"{seed}/{number}")  # noqa: S311  reproducible text, not a secret
        subject = SUBJECTS[number % len(SUBJECTS)]
        yield makers[(number // len(SUBJECTS)) % len(makers)](rng, subject, number)


def write(folder: Path, files: Iterator[CorpusFile]) -> int:
    """Write the files below `folder`; returns how many bytes."""
    total = 0
    for file in files:
        path = folder / file.path
        path.parent.mkdir(parents=True, exist_ok=True)
        total += path.write_bytes(file.text.encode("utf-8"))
    return total


def sentence(rng: random.Random, subject: Subject) -> str:
    """One plausible statement with a number or a date in it now and then."""
    actor, thing, act = rng.choice(subject.actors), rng.choice(subject.things), rng.choice(subject.acts)
    core = f"{actor} {act} {thing} {rng.choice(subject.places)} {rng.choice(_REASONS)}"
    if rng.random() < 0.4:
        core = f"on {rng.randint(1, 28)} {rng.choice(_MONTHS)} {core}"
    return core[0].upper() + core[1:] + "."


def _paragraph(rng: random.Random, subject: Subject) -> str:
    return " ".join(sentence(rng, subject) for _ in range(SENTENCES_PER_SECTION))


def _sections(rng: random.Random) -> range:
    return range(rng.randint(SECTIONS_MIN, SECTIONS_MAX))


def _note(rng: random.Random, subject: Subject, number: int) -> CorpusFile:
    parts = [f"# {subject.name.capitalize()} notes, page {number}"]
    parts += [f"## {rng.choice(subject.things).capitalize()}\n\n{_paragraph(rng, subject)}" for _ in _sections(rng)]
    return CorpusFile(path=f"notes/{subject.name}/page-{number:05d}.md", text="\n\n".join(parts) + "\n")


def _mail(rng: random.Random, subject: Subject, number: int) -> CorpusFile:
    head = (
        f"From: office@{subject.name}.example\nTo: archive@{subject.name}.example\n"
        f"Subject: {rng.choice(subject.things)} ({number})\n"
        f"Date: Mon, {rng.randint(1, 28):02d} Jun 2026 09:{rng.randint(0, 59):02d}:00 +0000\n"
        "Content-Type: text/plain; charset=utf-8\n"
    )
    body = "\n\n".join(_paragraph(rng, subject) for _ in _sections(rng))
    return CorpusFile(path=f"mail/{subject.name}/{number:05d}.eml", text=f"{head}\n{body}\n")


def _transcript(rng: random.Random, subject: Subject, number: int) -> CorpusFile:
    voices = ("Ada", "Ben", "Carla")
    turns = [f"{voices[turn % 3]}: {_paragraph(rng, subject)}" for turn in _sections(rng)]
    return CorpusFile(path=f"meetings/{subject.name}-{number:05d}.txt", text="\n".join(turns) + "\n")


def _table(rng: random.Random, subject: Subject, number: int) -> CorpusFile:
    rows = ["day,who,what,amount,remark"]
    rows += [
        f"2026-{rng.randint(1, 12):02d}-{rng.randint(1, 28):02d},{rng.choice(subject.actors)},{rng.choice(subject.things)},"
        f'{rng.randint(1, 900)},"{sentence(rng, subject)}"'
        for _ in range(rng.randint(22, 32))
    ]
    return CorpusFile(path=f"tables/{subject.name}-{number:05d}.csv", text="\n".join(rows) + "\n")


def _code(rng: random.Random, subject: Subject, number: int) -> CorpusFile:
    parts = [f'"""Helpers for the {subject.name}, module {number}."""\n']
    for index in _sections(rng):
        notes = "\n    ".join(f"# {sentence(rng, subject)}" for _ in range(7))
        parts.append(
            f"def step_{index}(amount: int) -> int:\n"
            f'    """{sentence(rng, subject)}"""\n    {notes}\n'
            f"    return amount * {rng.randint(2, 99)} + {rng.randint(1, 999)}\n"
        )
    return CorpusFile(path=f"code/{subject.name}_{number:05d}.py", text="\n\n".join(parts))


def _records(rng: random.Random, subject: Subject, number: int) -> CorpusFile:
    entries = [
        {"id": f"{subject.name}-{number}-{index}", "who": rng.choice(subject.actors), "text": sentence(rng, subject)}
        for index in range(rng.randint(22, 32))
    ]
    return CorpusFile(path=f"exports/{subject.name}-{number:05d}.json", text=json.dumps(entries, indent=1) + "\n")


FACTS: Final = (
    ("My dentist moved to the house with the green door.", "where is the tooth doctor"),
    ("The parrot learned to imitate the telephone.", "a talking bird copies ringing sounds"),
    ("Grandmother knits socks for the whole football team.", "handmade footwear from wool for athletes"),
    ("The volcano erupted and ash covered the cars.", "molten rock explosion dirtied vehicles"),
    ("Our train was late because of a fallen tree.", "railway delay caused by a branch on the track"),
    ("He proposed to her on a hot air balloon.", "romantic marriage offer in the sky"),
    ("The bakery sells croissants until they run out.", "French pastry shop opening times"),
    ("A whale swam up the river and had to be guided back.", "giant marine mammal lost in fresh water"),
    ("The piano must be tuned twice a year.", "keyboard instrument maintenance interval"),
    ("They found dinosaur bones under the car park.", "prehistoric fossil discovery beneath the asphalt"),
    ("The astronaut grew lettuce on the space station.", "vegetables cultivated in orbit"),
    ("My bicycle was stolen from the cellar.", "theft of a two-wheeler"),
    ("The judge fined the factory for dumping waste.", "court penalty against a polluter"),
    ("She speaks Finnish with her cat.", "foreign language conversation with a pet"),
    ("The snowman survived until Easter.", "frozen figure lasted into spring"),
    ("Firefighters rescued a kitten from the chimney.", "emergency crew saved a young feline"),
    ("The chess champion lost to a schoolgirl.", "board game master beaten by a child"),
    ("Solar panels on the church pay for its heating.", "photovoltaic energy finances warmth in a chapel"),
    ("The marathon was cancelled because of the heat.", "long distance race called off due to hot weather"),
    ("A magician sawed a laptop in half.", "illusionist cut a computer in two"),
    ("The surgeon operated for eleven hours.", "a very long medical procedure"),
    ("Our landlord wants to raise the rent again.", "apartment becomes more expensive"),
    ("The submarine found the wreck of a galleon.", "underwater vessel discovered a sunken ship"),
    ("Wolves have returned to the valley.", "wild predators are back"),
    ("The poet reads in the tram every Thursday.", "verses recited on public transport"),
    ("A drone delivered insulin to the island.", "unmanned aircraft brought diabetes medicine"),
    ("The bride arrived on a tractor.", "wedding guest of honour came by farm machine"),
    ("The museum's mummy has a toothache, says the scan.", "ancient Egyptian corpse dental problem x-ray"),
    ("They taught the robot to fold shirts.", "machine learns laundry"),
    ("The comet will be visible before sunrise.", "celestial object to be seen at dawn"),
    ("Thieves took the copper roof of the chapel.", "metal robbery from a religious building"),
    ("The goalkeeper broke his finger during training.", "injured hand of a soccer player"),
)  # fmt: skip
"""(what is written into a fresh file, what is asked): the question shares no word with the sentence."""
