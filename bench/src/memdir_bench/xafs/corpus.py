"""Makes one corpus: the files that answer its questions, and around them everything else that such a drive holds."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from memdir.ingest.extractors.formats import HEAD_BYTES, family_of
from memdir.ingest.extractors.output import ExtractionError
from memdir.ingest.sandbox import Sandbox
from memdir_bench.xafs.questions import Question, make_question, wanted_families
from memdir_bench.xafs.render import FORMATS, GOLD, MIX, Writer
from memdir_bench.xafs.solver import proved
from memdir_bench.xafs.wording import PERSONAS
from memdir_bench.xafs.world import Fact, World, make_world, other_value

SIZES: Final = (5, 10, 20, 30, 50, 100, 200, 299, 480, 991, 1998, 4998, 9988)
QUESTIONS: Final = 110
_DRAFTS: Final = 0.5
"""The share of asked facts of which a draft says something else, where there is room."""
_TRIES: Final = 12
_KINDS: Final = ("project", "client", "person", "contact", "incident", "decision", "invoice")
_KIND_WEIGHTS: Final = (34, 18, 20, 6, 8, 8, 6)
"""What documents are about."""
QUESTIONS_FILE: Final = "questions.json"
PLANS_FILE: Final = "plans.json"
"""Through which facts each question goes: for the scripted agent and the audits, and not for an agent that is measured."""


@dataclass(slots=True)
class Gold:
    """A question with the files that answer it: path -> bytes."""

    question: Question
    files: dict[str, bytes]


def questions_of(sizes: Sequence[int], total: int) -> dict[int, int]:
    """How many questions each corpus has: evenly, as far as its files can hold them."""
    counts = {size: total // len(sizes) for size in sizes}
    counts = {size: max(2, min(count, size // 3 + 1)) for size, count in counts.items()}
    while sum(counts.values()) < total:
        largest = [size for size in sizes if size >= 50] or list(sizes)
        for size in largest:
            counts[size] += sum(counts.values()) < total
    return counts


class Readings:
    """The text of files as the product reads them; kept, as pictures take long."""

    def __init__(self) -> None:
        self._sandbox = Sandbox()

    def text(self, path: str, data: bytes) -> str:
        """ "" for what cannot be read."""
        found = family_of(data[:HEAD_BYTES], path)
        if found is None:
            return data.decode("utf-8", "replace")
        try:
            return self._sandbox.extract([data], found).text
        except ExtractionError:
            return ""

    def close(self) -> None:
        self._sandbox.close()


def make_corpus(
    folder: Path, *, seed: int, size: int, count: int, readings: Readings, progress: Callable[[int], None] = lambda _: None
) -> dict[str, Any]:
    """Write `size` files into `folder`/files and the questions beside it; what was made, as `questions.json` has it."""
    rng = random.Random(f"{seed}:{size}")  # noqa: S311
    persona = PERSONAS[SIZES.index(size) % len(PERSONAS)] if size in SIZES else rng.choice(PERSONAS)
    world = make_world(rng, persona=persona, size=size)
    writer = Writer(rng, world)
    used: set[tuple[str, str]] = set()
    names = _names(rng)
    golds, room = [], size
    for family in wanted_families(count, rng):
        gold = _gold(rng, world, writer, family if room >= 2 else "single_hop", used, names, readings)
        if len(gold.files) > room:
            gold = _gold(rng, world, writer, "single_hop", used, names, readings)
        golds.append(gold)
        room -= len(gold.files)
        if room <= 0:
            break
    files = folder / "files"
    written = 0
    for path, data in [(path, data) for gold in golds for path, data in gold.files.items()]:
        _write(files / path, data)
        written += 1
    asked = {(fact.subject, fact.relation) for gold in golds for fact in gold.question.facts}
    for path, data in _others(rng, world, writer, names, asked, size - written):
        _write(files / path, data)
        written += 1
        progress(written)
    questions = [_told(seed, size, number, gold) for number, gold in enumerate(golds)]
    report = {
        "seed": seed,
        "corpus": size,
        "persona": persona,
        "files": written,
        "size_bytes": sum(file.stat().st_size for file in files.rglob("*") if file.is_file()),
        "questions": questions,
    }
    (folder / QUESTIONS_FILE).write_text(json.dumps(report, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    plans = {
        told["id"]: {
            "facts": [[fact.subject, fact.relation, fact.value] for fact in gold.question.facts],
            "sums": gold.question.sums,
        }
        for told, gold in zip(questions, golds, strict=True)
    }
    (folder / PLANS_FILE).write_text(json.dumps(plans, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return report


def _told(seed: int, size: int, number: int, gold: Gold) -> dict[str, Any]:
    question = gold.question
    return {
        "id": f"s{seed}-c{size}-q{number + 1}",
        "corpus": size,
        "prompt": question.prompt,
        "family": question.family,
        "kind": question.kind,
        "gold_file_ids": sorted(gold.files),
        "gold_answer": question.answer,
    }


def _gold(
    rng: random.Random,
    world: World,
    writer: Writer,
    family: Any,
    used: set[tuple[str, str]],
    names: Iterator[str],
    readings: Readings,
) -> Gold:
    """A question and its files, proved by what can be read in them."""
    for _ in range(_TRIES):
        question = make_question(rng, world, family, used)
        kinds = _kinds(rng, question, spans=family == "format_spanning")
        files = {}
        for fact, kind in zip(question.facts, kinds, strict=True):
            path = f"{FORMATS[kind].folder}/{next(names)}{FORMATS[kind].suffix}"
            files[path] = writer.document(kind, _title(rng, fact.subject), [fact])
        if proved(question, {path: readings.text(path, data) for path, data in files.items()}):
            return Gold(question, files)
    raise ValueError(f"no provable question of {family} in {_TRIES} tries")


def _kinds(rng: random.Random, question: Question, *, spans: bool) -> list[str]:
    names, weights = list(GOLD), list(GOLD.values())
    while True:
        kinds = rng.choices(names, weights, k=len(question.facts))
        if not spans or len({FORMATS[kind].family for kind in kinds}) > 1:
            return kinds


def _others(
    rng: random.Random, world: World, writer: Writer, names: Iterator[str], asked: set[tuple[str, str]], count: int
) -> Iterator[tuple[str, bytes]]:
    """Drafts of what is asked, then every other fact, then talk."""
    drafts = [fact for key, fact in world.facts.items() if key in asked and rng.random() < _DRAFTS and not fact.about.to]
    others = [fact for key, fact in world.facts.items() if key not in asked]
    rng.shuffle(others)
    kinds, weights = list(MIX), list(MIX.values())
    for number in range(count):
        kind = rng.choices(kinds, weights)[0]
        shape = FORMATS[kind]
        if drafts and number % 3 == 0:
            fact = drafts.pop()
            old = Fact(fact.subject, fact.relation, other_value(rng, world, fact))
            data = writer.document(
                "md",
                f"Draft: {old.subject}",
                [old],
                warning="DRAFT from last year, no longer valid; the current figures are elsewhere.",
            )
            yield f"drafts/{next(names)}.md", data
            continue
        about = rng.choices(_KINDS, _KIND_WEIGHTS)[0]
        subject = writer.one(about)
        own = [fact for fact in others if fact.subject == subject][: rng.randint(0, 2)] if rng.random() < 0.6 else []
        for fact in own:
            others.remove(fact)
        folder = shape.folder if rng.random() < 0.7 else f"archive/{rng.randint(2019, 2026)}/{shape.folder}"
        yield f"{folder}/{next(names)}{shape.suffix}", writer.document(kind, _title(rng, subject), own, about=(about, subject))


def _title(rng: random.Random, subject: str) -> str:
    """Half of them say what it is about."""
    return (
        subject.capitalize()
        if subject.startswith("the ")
        else subject
        if rng.random() < 0.5
        else rng.choice(("Minutes", "Update", "Notes", "For the files"))
    )


def _names(rng: random.Random) -> Iterator[str]:
    """Names of files that say nothing of what is in them."""
    words = (
        "minutes",
        "notes",
        "update",
        "summary",
        "weekly",
        "export",
        "memo",
        "letter",
        "overview",
        "copy",
        "list",
        "report",
        "thread",
        "file",
    )
    number = rng.randint(100, 900)
    while True:
        number += rng.randint(1, 7)
        yield f"{rng.choice(words)}-{number}"


def _write(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
