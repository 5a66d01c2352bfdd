"""Questions whose answer needs two files, in a generated memory where every file of a kind looks like the others.

Of each kind there are many pairs: the first file has what the question describes, and leads to the second, which has what is
asked for and nothing of the description. All seconds of a kind have the same attribute: only the connection tells them apart.
Kinds and wordings of the half `fit` are for development, those of the half `held` are others and for reporting only.
Same seed and size, same bytes.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from memdir_bench.corpus import generate
from memdir_bench.retrieval.hops_words import FILLER, FIRST, GERMAN, LAST, MONTHS, PLANS, TRIPS, TROUBLES, WORD_PARTS, WORKS

FIT: Final = "fit"
HELD: Final = "held"
HALVES: Final = (FIT, HELD)


@dataclass(frozen=True, slots=True, kw_only=True)
class TwoHop:
    """A question and the two files it needs. `second` has none of the words that describe what the question starts from."""

    text: str
    first: str
    second: str
    kind: str
    half: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """Templates of one kind. `{topic}` is what the question describes; `{key}` is in both files and not in the question."""

    name: str
    half: str
    topics: Sequence[str]
    key: str
    """How the key is made: `person`, `ticket`, `reference`, `hash`, `function`, `title`, `message`, `word`."""
    first_path: str
    first: Sequence[str]
    second_path: str
    second: Sequence[str]
    questions: Sequence[str]


def pairs(kinds: Sequence[Kind], *, seed: int, per_kind: int) -> tuple[dict[str, str], list[TwoHop]]:
    """Files by path and questions: `per_kind` of each kind, as many as it has topics at most."""
    rng = random.Random(seed)  # noqa: S311
    people = [f"{first} {last}" for first in FIRST for last in LAST]
    rng.shuffle(people)
    files: dict[str, str] = {}
    questions = []
    for kind in kinds:
        keys = _keys(kind.key, rng, people)
        for number, topic in enumerate(kind.topics[:per_kind]):
            key = next(keys)
            values = {
                "topic": topic,
                "Topic": topic[0].upper() + topic[1:],
                "key": key,
                "slug": key.lower().replace(" ", "-"),
                "other": people.pop(),
                "another": people.pop(),
                "n": rng.randrange(11, 99),
                "m": rng.randrange(1000, 9999),
                "day": rng.randrange(2, 28),
                "number": number,
                "month": rng.choice(MONTHS),
            }
            first, second = (template.format(**values) for template in (kind.first_path, kind.second_path))
            files[first] = _text(rng, rng.choice(kind.first).format(**values))
            files[second] = _text(rng, rng.choice(kind.second).format(**values))
            question = kind.questions[number % len(kind.questions)].format(**values)
            questions.append(TwoHop(text=question, first=first, second=second, kind=kind.name, half=kind.half))
    return files, questions


def distractors(count: int, *, seed: int = 11) -> dict[str, str]:
    """Files about other things."""
    return {f"/other/{file.path}": file.text for file in generate(count, seed=seed)}


def _text(rng: random.Random, core: str) -> str:
    """The core with lines around it; a mail's header, or code, keeps its place at the top."""
    before, after = (rng.sample(FILLER, rng.randrange(1, 4)) for _ in range(2))
    if core.startswith(("From:", "Message-ID:", "def ", "# ", "import ")):
        return core + "\n" + ("" if core.startswith("def ") else "\n" + "\n".join(after) + "\n")
    return "\n".join((*before, core, *after)) + "\n"


def _keys(kind: str, rng: random.Random, people: list[str]) -> Iterator[str]:
    seen: set[str] = set()
    while True:
        if kind == "person":
            made = people.pop()
        elif kind == "ticket":
            made = f"{rng.choice(('INC', 'OPS', 'REQ'))}-{rng.randrange(1000, 9999)}"
        elif kind == "reference":
            made = "".join(rng.choice("ABCDEFGHKLMNPQRSTUVWXYZ") for _ in range(3)) + f"{rng.randrange(100, 999)}"
        elif kind == "hash":
            made = f"{rng.getrandbits(44):011x}a1"
        elif kind == "function":
            made = f"{rng.choice(WORD_PARTS)}_{rng.choice(WORD_PARTS)}_{rng.choice(('guard', 'sweep', 'gate', 'probe'))}"
        elif kind == "message":
            made = f"{rng.getrandbits(40):010x}@mail.example.org"
        elif kind == "word":
            made = _made_word(rng)
        else:
            made = f"{_made_word(rng).capitalize()} {rng.choice(('Agreement', 'Annex', 'Terms', 'Schedule'))}"
        if made not in seen:
            seen.add(made)
            yield made


def _made_word(rng: random.Random) -> str:
    return "".join(rng.choice("bdfgklmnprstv") + rng.choice("aeiou") for _ in range(rng.randrange(3, 5))) + rng.choice("nrlt")


KINDS: Final = (
    Kind(
        name="incident-person",
        half=FIT,
        topics=TROUBLES,
        key="person",
        first_path="/incidents/{number:03}.md",
        first=(
            "# Incident {number}\n\n{Topic} was reported by {key} on {day} {month}. {other} took over the night shift.",
            "Incident log: {topic}. First noticed by {key}. Handed to {other} the next morning.",
        ),
        second_path="/people/{slug}.md",
        second=(
            "# {key}\n\nDesk 4.{n}, telephone extension {m}. Joined in {month}. Likes to work early.",
            "{key}\nTelephone extension: {m}\nDesk: 4.{n}\nFirst aider since {month}.",
        ),
        questions=(
            "What is the telephone extension of the person who reported {topic}?",
            "telephone extension of whoever noticed {topic}",
        ),
    ),
    Kind(
        name="meeting-link",
        half=FIT,
        topics=PLANS,
        key="title",
        first_path="/meetings/m{number:03}.md",
        first=(
            "# Minutes\n\nPresent: {other}, {another}.\nWe settled who does {topic}; conditions are in [[{key}]].",
            "Minutes of {day} {month}\n{Topic}: settled, see [the paper](../contracts/{slug}.md). {other} informs the others.",
        ),
        second_path="/contracts/{slug}.md",
        second=(
            "# {key}\n\nThe notice period is {n} days. Payment within thirty days. Signed by {another}.",
            "{key}\n\nEither side may leave with a notice period of {n} days. Prices are fixed for two years.",
        ),
        questions=("What is the notice period of the contract for {topic}?", "{topic}: which notice period did we agree on"),
    ),
    Kind(
        name="mail-reply",
        half=FIT,
        topics=TROUBLES[::-1],
        key="message",
        first_path="/mail/a{number:03}.eml",
        first=(
            (
                "From: {other} <box{m}@example.org>\nTo: office@example.org\nSubject: a request\nMessage-ID: <{key}>\n\n"
                "Could somebody look after {topic}? A part has to be ordered, I think."
            ),
        ),
        second_path="/mail/b{number:03}.eml",
        second=(
            (
                "From: {another} <desk{m}@example.org>\nTo: office@example.org\nSubject: Re: a request\nIn-Reply-To: <{key}>\n"
                "Message-ID: <r{key}>\n\nOrdered. The part arrives on {day} {month} and costs {m}."
            ),
        ),
        questions=("When does the part for {topic} arrive?", "how much does the part ordered for {topic} cost"),
    ),
    Kind(
        name="changelog-code",
        half=FIT,
        topics=TROUBLES[6:] + TROUBLES[:6],
        key="function",
        first_path="/repo/changes/{number:03}.md",
        first=("## 2.{n}.{number}\n\n- Fixed {topic}: it is caught by `{key}` now. Thanks to {other}.",),
        second_path="/repo/src/part_{number:03}.py",
        second=(
            "def {key}(items):\n    retries_max = {n}\n    timeout_s = {m}\n    return [item for item in items if item.due]\n",
        ),
        questions=("How many retries does the code that fixed {topic} allow?", "timeout in the code against {topic}"),
    ),
    Kind(
        name="trip-booking",
        half=HELD,
        topics=TRIPS,
        key="reference",
        first_path="/travel/plan-{number:03}.md",
        first=(
            "Trip to {topic}: the train is booked under {key}. {other} comes along.",
            "# {topic}\n\n- out on {day} {month}\n- rail booking {key}\n- hotel still open\n- back with {other}",
        ),
        second_path="/inbox/ticket-{m}.txt",
        second=(
            "Booking {key}\nCoach 7, seat {n}, window. Departure 08:{n}.",
            "Your reservation code is {key}. You sit in coach 3, seat {n}. Boarding closes five minutes earlier.",
        ),
        questions=("Which seat do I have on the train to {topic}?", "{topic} trip: coach and seat"),
    ),
    Kind(
        name="project-leave",
        half=HELD,
        topics=WORKS,
        key="person",
        first_path="/projects/p{number:03}.md",
        first=(
            "Association no. {number}: it {topic}. At its head stands {key}; the books are kept by {other}.",
            "The group that {topic} is run by {key}. Treasurer: {other}. They meet on Mondays.",
        ),
        second_path="/calendar/{slug}.txt",
        second=(
            "{key} is on holiday from {day} {month}, back three weeks later.",
            "Absences\n{key}: on holiday from {day} {month} for {n} days",
        ),
        questions=("When is the head of the group that {topic} on holiday?", "holiday of whoever runs what {topic}"),
    ),
    Kind(
        name="note-file",
        half=HELD,
        topics=PLANS[::-1],
        key="reference",
        first_path="/notes/n{number:03}.txt",
        first=("For {topic} everything is in scans/guarantee-{slug}.txt, {other} has the paper.",),
        second_path="/archive/scans/guarantee-{slug}.txt",
        second=(
            "Guarantee. Valid until {month} 20{n}. Claims in writing, with a photograph.",
            "This guarantee ends in {month} 20{n}. It does not cover wear. Keep the receipt.",
        ),
        questions=("Until when is the guarantee for {topic} valid?", "end of guarantee, {topic}"),
    ),
    Kind(
        name="chat-hash",
        half=HELD,
        topics=TROUBLES[12:] + TROUBLES[:12],
        key="hash",
        first_path="/chat/c{number:03}.txt",
        first=("{other}: any news on {topic}?\n{another}: yes, gone since {key}, we can close it",),
        second_path="/ci/build-{number:03}.log",
        second=("commit {key}\nrunner osprey-{n}\nduration {m} s\nartifacts kept for {day} days",),
        questions=("How long did the build take that solved {topic}?", "on which runner was the fix for {topic} built"),
    ),
    Kind(
        name="ticket-german",
        half=HELD,
        topics=GERMAN,
        key="ticket",
        first_path="/de/protokoll-{number:03}.md",
        first=("# Protokoll\n\n{Topic} wird unter {key} geführt. {other} kümmert sich darum.",),
        second_path="/de/kosten-{m}.md",
        second=("Zu {key}: Die Versicherung zahlt {m} Euro, der Selbstbehalt beträgt {n} Euro.",),
        questions=("Wie hoch ist der Selbstbehalt für {topic}?", "Wie viel zahlt die Versicherung für {topic}?"),
    ),
    Kind(
        name="rare-word",
        half=HELD,
        topics=PLANS[8:] + PLANS[:8],
        key="word",
        first_path="/diary/d{number:03}.txt",
        first=("Talked about {topic}. They use {key} for it, said {other}.",),
        second_path="/shop/s{number:03}.txt",
        second=("{key}: sold in drums, {m} a drum, shelf life {n} months.",),
        questions=("What is the shelf life of the stuff used for {topic}?", "price of a drum of what {topic} needs"),
    ),
)
"""`{slug}` of a person's page or a paper is in its path, as people name files."""
