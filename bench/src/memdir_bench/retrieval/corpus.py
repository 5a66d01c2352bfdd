"""A generated memory whose answers are known to the character: mail, notes, transcripts, code, tables, logs, prose.

Each file holds a dozen facts about different subjects between other sentences, so that finding the file is not enough: the line
that answers has to be told from eleven that look the same. Facts are rendered with the value between two marks; when the marks
are taken out, their places are the answer's span. Same seed and size, same bytes.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from memdir_bench.retrieval import layouts
from memdir_bench.retrieval.phrases import ENGLISH, HALVES, LANGUAGES, Attribute, proper_names, subjects

FACTS_PER_FILE: Final = 12
_MARK: Final = re.compile("[\ue000\ue001]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is asked, and where the answer stands: characters `start` to `end` of the file's text."""

    text: str
    path: str
    start: int
    end: int
    kind: str
    """The layout of the file, such as `mail-wrapped`."""
    half: str
    """`fit` or `held`: which templates the question, the statement and the layout are from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """The files by path, and the questions in order."""

    files: dict[str, str]
    questions: tuple[Question, ...]


def memory(*, seed: int = 7, files_per_layout: int = 4) -> Memory:
    """All layouts of both halves; `files_per_layout` times FACTS_PER_FILE questions of each."""
    rng = random.Random(seed)  # noqa: S311
    names = subjects()
    rng.shuffle(names)
    proper = proper_names()
    rng.shuffle(proper)
    english, foreign = _deal(names), _deal(proper)
    files: dict[str, str] = {}
    questions: list[Question] = []
    for number, half in enumerate(HALVES):
        for layout in layouts.LAYOUTS[half]:
            for copy in range(files_per_layout):
                language = layout.language
                facts = _facts(rng, number, language, english if language == "english" else foreign)
                path = f"/{half}/{layout.name}/{copy:03}.{layout.suffix}"
                pen = layouts.Pen(rng=rng, language=language)
                marked = layout.render(pen, [(fact.subject, fact.label, fact.said, fact.value) for fact in facts])
                text, spans = _unmarked(marked)
                files[path] = text
                for fact, (start, end) in zip(facts, spans, strict=True):
                    questions.append(Question(text=fact.asked, path=path, start=start, end=end, kind=layout.name, half=half))
    return Memory(files=files, questions=tuple(questions))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Fact:
    subject: str
    label: str
    said: str
    """With its value between marks."""
    value: str
    asked: str


def _deal(names: Sequence[str]) -> Iterator[str]:
    """The names one after another, those of a second round with a number, so that no two facts are about the same."""
    yield from names
    for turn in range(2, 1000):
        for name in names:
            yield f"{name} {_ROMAN[turn % len(_ROMAN)]}{turn // len(_ROMAN) or ''}"


_ROMAN: Final = ("A", "B", "C", "D", "E", "F", "G", "H", "K", "M", "P", "R", "T", "W", "X", "Z")


def _facts(rng: random.Random, half: int, language: str, names: Iterator[str]) -> list[_Fact]:
    attributes: Sequence[Attribute] = ENGLISH if language == "english" else LANGUAGES[language]
    facts = []
    for _ in range(FACTS_PER_FILE):
        attribute = rng.choice(attributes)
        subject, value = next(names), layouts.marked(attribute.value(rng))
        said = rng.choice(attribute.said[half]).format(s=subject, v=value).replace(f".{layouts.CLOSE}.", f".{layouts.CLOSE}")
        asked = rng.choice(attribute.asked[half]).format(s=subject)
        facts.append(_Fact(subject=subject, label=attribute.label, said=said, value=value, asked=asked))
    return facts


def _unmarked(marked: str) -> tuple[str, list[tuple[int, int]]]:
    """The text without marks, and the places between them in order."""
    places = [found.start() - number for number, found in enumerate(_MARK.finditer(marked))]
    return _MARK.sub("", marked), list(zip(places[::2], places[1::2], strict=True))
