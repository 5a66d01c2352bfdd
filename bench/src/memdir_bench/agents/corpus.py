"""A thousand memories of twenty-five projects, and questions about them and about what none of them says.

Everything follows from one seed. A memory is a subject in a project, as a decision, a bug, a setting, a command or a
preference; the questions have wordings of their own. Kinds of questions:

    words        the words of the memory, in the project it was made in
    reworded     as a person asks it days later: inflected, with words around, without some of them
    chatty       `reworded`, as one sentence of a prompt of some 170 words
    paraphrase   the subject by another name: hardly a word in common
    typo         `words`, with one letter wrong in one of them
    elsewhere    `words`, with no project: any project's answer is right

And of such as nothing may be found for:

    negative         about something that no memory is about
    sharing          the same, with words that many memories have
    everyday         what agents are told besides: small talk, general knowledge, "continue"
    chatty_negative  `sharing`, as one sentence of a long prompt
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from memdir_bench.agents import prompts
from memdir_bench.agents.subjects import Project, Subject, projects, subjects

KINDS: Final = ("words", "reworded", "chatty", "paraphrase", "typo", "elsewhere")
NEGATIVE_KINDS: Final = ("negative", "sharing", "everyday", "chatty_negative")
_COUNTS: Final = {"words": 60, "reworded": 60, "chatty": 60, "paraphrase": 60, "typo": 60, "elsewhere": 40}
_CHATTER: Final = 10
"""Sentences around a question."""
_SORTS: Final = ("decision", "bug", "setting", "command", "preference")
_SEED: Final = 20
_AGE_MAX_DAYS: Final = 400
_TYPO_LETTERS_MIN: Final = 5
_EXTENSIONS: Final = {
    "TypeScript": "ts", "Python": "py", "Go": "go", "Ruby": "rb", "Java": "java", "Kotlin": "kt", "Elixir": "ex", "Rust": "rs",
    "PHP": "php", "Swift": "swift", "C#": "cs",
}  # fmt: skip
_TAGS: Final = {
    "decision": ("decision", "architecture"), "bug": ("bug-fix",), "setting": ("config",), "command": ("command", "tooling"),
    "preference": ("preferences",),
}  # fmt: skip

_TOLD: Final[dict[str, tuple[str, ...]]] = {
    "decision": (
        "For {name} we use {choice}, not {other}: {why}. See src/{file}.{ext}.",
        "{Name}: decided on {choice} over {other}, because {why}. Lives in src/{file}.{ext}.",
        "We went with {choice} for {name}. {Why}; {other} was the alternative.",
    ),
    "bug": (
        "Bug in {name}: {symptom}. Cause: {cause}. Fix: {remedy}.",
        "{Symptom} because {cause}. Fixed in src/{file}.{ext}: {remedy}. Topic: {name}.",
        "Fixed a bug of {name} ({symptom}): {remedy}, since {cause}.",
    ),
    "setting": (
        "{Name} is configured by {setting} in .env; code in src/{file}.{ext}.",
        "{setting} controls {name} in {project}. {Why}.",
        "Config of {name}: {setting}. Read at start by src/{file}.{ext}.",
    ),
    "command": (
        "To work on {name}, run `{command}`. It needs src/{file}.{ext} to compile.",
        "`{command}` is the command for {name} in {project}; CI runs it every night.",
        "{Name}: `{command}` from the repository root. Takes about a minute.",
    ),
    "preference": (
        "The user wants {name} done with {choice}, never with {other}.",
        "Preference about {name}: {choice}, because {why}. Ask before changing src/{file}.{ext}.",
        "When touching {name}, keep to {choice} and add a test beside src/{file}.{ext}.",
    ),
}

_ASKED: Final[dict[str, dict[str, tuple[str, ...]]]] = {
    "words": {
        "decision": ("{choice} {name}", "{name} decision", "why {choice} for {name}"),
        "bug": ("{symptom}", "bug {name} {cause}", "{name} fix: {remedy}"),
        "setting": ("{key}", "{name} config {key}", "which setting controls {name}"),
        "command": ("{command}", "command for {name}", "run {name}"),
        "preference": ("{name} preference {choice}", "{choice} or {other} for {name}", "{name} user wants"),
    },
    "reworded": {
        "decision": ("what did we end up choosing for {name}?", "I forgot: which one was picked for {name}, and why",
                     "add another {name} case, stick to what was decided"),
        "bug": ("didn't we have a problem with {name} once? something like {symptom}", "has {name} ever been broken before",
                "a customer says that {symptom}, please look into it"),
        "setting": ("where do I change how {name} is configured", "raise the value for {name} on staging please",
                    "what is {key} set to"),
        "command": ("how do I start the thing for {name} again", "which command was it that you run for {name}",
                    "please execute what is usual for {name} before you push"),
        "preference": ("how do I like {name} to be done", "refactor {name}, and mind what I told you about it",
                       "am I for or against {other} in {name}"),
    },
    "paraphrase": {
        "decision": ("what do we do about {otherwise}", "{otherwise}: what was chosen"),
        "bug": ("there was trouble with {otherwise}", "{otherwise}, it broke once"),
        "setting": ("configure {otherwise}", "where is the value for {otherwise}"),
        "command": ("what do I type for {otherwise}", "run the thing about {otherwise}"),
        "preference": ("my taste in {otherwise}", "how should {otherwise} be done"),
    },
}  # fmt: skip

_REWORDED_HELD: Final[dict[str, tuple[str, ...]]] = {
    "decision": ("remind me which way we went with {name}", "was there a reason for how {name} works here?",
                 "before I touch {name}: is there a decision I should know of"),
    "bug": ("{symptom}, does that ring a bell", "did {name} give us trouble in the past", "I see it again: {symptom}"),
    "setting": ("which variable do I set to tune {name}", "what is the current default of {key}",
                "can {name} be turned down for the demo"),
    "command": ("what do I need to type to get {name} going", "show me the command line for {name}",
                "start {name} on my machine"),
    "preference": ("do it for {name} the way I usually want it", "any taste of mine regarding {name}?",
                   "which of {choice} and {other} do I favour for {name}"),
}  # fmt: skip
"""Of held subjects: written when the search had been fitted to the others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """A memory. `sort` is what it is about its subject."""

    content: str
    tags: tuple[str, ...]
    project: str
    age_days: float
    subject: int
    sort: str
    choice: str
    template: int
    fields: dict[str, str]

    def item(self, now: datetime) -> dict[str, Any]:
        """An `ImportItem` of the wire."""
        made = (now - timedelta(days=self.age_days)).astimezone(UTC).isoformat()
        return {"content": self.content, "tags": list(self.tags), "project": self.project, "createdAt": made}


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """`relevant` are places in `memories()`; none: nothing may be found. `same`: those and what other projects say alike.
    `held`: about a subject, and in a wording, that nothing was tuned to."""

    kind: str
    text: str
    project: str | None
    relevant: frozenset[int] = frozenset()
    same: frozenset[int] = frozenset()
    held: bool


def memories() -> list[Told]:
    """Every subject in every project, once: a thousand."""
    random_ = random.Random(_SEED)  # noqa: S311  no secret
    everything = subjects()
    made = []
    for at, project in enumerate(projects()):
        for number, subject in enumerate(everything):
            made.append(_told(random_, project, subject, number, _SORTS[(at * 2 + number * 3) % len(_SORTS)]))
    return made


def questions(told: Sequence[Told]) -> list[Question]:
    """All of them, kind by kind."""
    random_ = random.Random(_SEED + 1)  # noqa: S311  no secret
    made = []
    for kind, count in _COUNTS.items():
        for place, at in enumerate(_spread(random_, told, count)):
            one = told[at]
            same = _alike(told, one)
            made.append(
                Question(
                    kind=kind, text=_text(random_, kind, one, place), project=None if kind == "elsewhere" else one.project,
                    relevant=same if kind == "elsewhere" else frozenset([at]), same=same, held=_is_held(one),
                )
            )  # fmt: skip
    names = [project.name for project in projects()]
    return made + [
        Question(kind=kind, text=text, project=random_.choice(names), held=held) for kind, text, held in _negatives(random_)
    ]


def _negatives(random_: random.Random) -> Iterator[tuple[str, str, bool]]:
    """Kind, text, whether it is held."""
    absent = [topic for line in prompts.ABSENT.strip().split("\n") for topic in line.split("|")]
    for at, topic in enumerate(absent):
        held = at % 2 == 1
        for turn in (at, at + 1):
            yield "negative", prompts.NEGATIVE[turn % len(prompts.NEGATIVE)].format(absent=topic), held
            texts = prompts.SHARING[held]
            text = texts[(at // 2 + turn) % len(texts)].format(absent=topic)
            yield "sharing", text, held
            if turn == at:
                yield "chatty_negative", _among_chatter(random_, text, held=held), held
    for held in (False, True):
        for text in prompts.EVERYDAY[held].strip().split("\n"):
            yield "everyday", text, held


def _among_chatter(random_: random.Random, text: str, *, held: bool) -> str:
    sentences = random_.sample(prompts.CHATTER[held], _CHATTER)
    sentences.insert(random_.randrange(_CHATTER + 1), _capital(text) + ("" if text.endswith("?") else "."))
    return " ".join(sentences)


def _is_held(one: Told) -> bool:
    return subjects()[one.subject].held


def _told(random_: random.Random, project: Project, subject: Subject, number: int, sort: str) -> Told:
    choice, other = random_.sample(subject.choices, 2)
    why = random_.choice(subject.why)
    template = random_.randrange(len(_TOLD[sort]))
    fields = {
        "name": subject.name, "Name": _capital(subject.name), "choice": choice, "other": other, "why": why,
        "Why": _capital(why),
        "symptom": subject.symptom, "Symptom": _capital(subject.symptom), "cause": subject.cause, "remedy": subject.remedy,
        "file": subject.file, "ext": _EXTENSIONS[project.language], "setting": subject.setting, "command": subject.command,
        "project": project.name, "otherwise": subject.otherwise, "key": subject.setting.partition("=")[0],
    }  # fmt: skip
    return Told(
        content=_TOLD[sort][template].format(**fields), tags=(*_TAGS[sort], subject.file.partition("/")[0]),
        project=project.name, age_days=random_.random() * _AGE_MAX_DAYS, subject=number, sort=sort, choice=choice,
        template=template, fields=fields,
    )  # fmt: skip


def _spread(random_: random.Random, told: Sequence[Told], count: int) -> list[int]:
    """Places of memories of as many subjects as possible, and different sorts."""
    places = list(range(len(told)))
    random_.shuffle(places)
    by_turn: dict[int, list[int]] = {}
    taken: dict[int, int] = {}
    for at in places:
        turn = taken.get(told[at].subject, 0)
        taken[told[at].subject] = turn + 1
        by_turn.setdefault(turn, []).append(at)
    return [at for turn in sorted(by_turn) for at in by_turn[turn]][:count]


def _text(random_: random.Random, kind: str, one: Told, place: int) -> str:
    """A question whose words a memory can answer: about what this very memory says."""
    held = _is_held(one)
    asked = {"typo": "words", "elsewhere": "words", "chatty": "reworded"}.get(kind, kind)
    texts = _REWORDED_HELD if asked == "reworded" and held else _ASKED[asked]
    wordings = [text for text in texts[one.sort] if _answerable(text, one)]
    text = wordings[place % len(wordings)].format(**one.fields)
    if kind == "chatty":
        return _among_chatter(random_, text, held=held)
    return _misspelt(random_, text) if kind == "typo" else text


def _answerable(wording: str, one: Told) -> bool:
    """Whether what the wording asks with stands in the memory."""
    named = [part.partition("}")[0] for part in wording.split("{")[1:]]
    content = one.content.casefold()
    return all(name == "otherwise" or one.fields[name].casefold() in content for name in named)


def _alike(told: Sequence[Told], one: Told) -> frozenset[int]:
    """Memories of any project that answer the same question."""
    chosen = one.sort in ("decision", "preference")
    return frozenset(
        at for at, other in enumerate(told)
        if (other.subject, other.sort) == (one.subject, one.sort) and (not chosen or other.choice == one.choice)
    )  # fmt: skip


def _misspelt(random_: random.Random, text: str) -> str:
    """One letter inside one long word dropped, doubled, swapped with the next or replaced."""
    words = text.split(" ")
    long = [at for at, word in enumerate(words) if len(word) >= _TYPO_LETTERS_MIN and word.isalpha()]
    if not long:
        long = [max(range(len(words)), key=lambda at: len(words[at]))]
    at = random_.choice(long)
    word = words[at]
    place = random_.randrange(1, len(word) - 1)
    ways = (
        word[:place] + word[place + 1 :], word[:place] + word[place] + word[place:],
        word[:place] + word[place + 1] + word[place] + word[place + 2 :],
        word[:place] + random_.choice("aeioustrn") + word[place + 1 :],
    )  # fmt: skip
    changed = [way for way in ways if way != word]
    words[at] = random_.choice(changed)
    return " ".join(words)


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
