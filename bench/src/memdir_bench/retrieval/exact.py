"""How often the printed range holds the answer: the generated corpus cut, searched inside the passage, and compared.

Finding the passage is measured elsewhere; here the passage that holds the answer is given, as it is for a hit in the right
place, and the lines that the search prints for it are compared with the answer's span. A range counts when the whole span is
in it.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from memdir.ingest.chunker import chunk
from memdir.ingest.text import decode
from memdir.retrieval import lines
from memdir.retrieval.embed import Embedder, LineEmbedder
from memdir.retrieval.embed.port import unpack_lines
from memdir.retrieval.query import STATIC_LINE_SHARE
from memdir.retrieval.units import units_of
from memdir.retrieval.words import prepare
from memdir.store.passages.vectors import dots
from memdir.store.types import Chunk, Matrix
from memdir_bench.figures import Figure
from memdir_bench.retrieval.corpus import Memory, Question, memory
from memdir_bench.retrieval.metrics import wilson
from memdir_bench.retrieval.phrases import HALVES

BATCH: Final = 32
GOAL: Final = 0.99
"""Of the hits in text."""
SEED: Final = 57
"""Another memory than those (7, 21, 33) whose failures were looked at."""
FILES_PER_LAYOUT: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Printed:
    """One question: the range that is printed, and whether the answer is in it."""

    question: Question
    exact: bool
    lines: int
    text: str
    passage: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Exactness:
    """Of some questions: the share whose printed range holds the answer, and how long the ranges are."""

    questions: int
    share: float
    median_lines: float
    mean_lines: float


def summed(printed: Sequence[Printed]) -> Exactness:
    """The figures of at least one answer."""
    counts = [one.lines for one in printed]
    return Exactness(
        questions=len(printed),
        share=sum(one.exact for one in printed) / len(printed),
        median_lines=statistics.median(counts),
        mean_lines=statistics.fmean(counts),
    )


def figures(static: Embedder, dense: LineEmbedder, say: Callable[[str], None]) -> list[Figure]:
    """Exactness before the transformer's vectors are there (`lines.static`) and with them (`lines.dense`), of all questions and
    of each half."""
    made: list[Figure] = []
    generated = memory(seed=SEED, files_per_layout=FILES_PER_LAYOUT)
    for way, model in (("static", None), ("dense", dense)):
        say(f"lines: {len(generated.questions)} questions, {way} …")
        found = list(printed(generated, static, model))
        made.append(_share(f"lines.{way}", found, goal=GOAL))
        made += [_share(f"lines.{way}.{half}", [one for one in found if one.question.half == half]) for half in HALVES]
    return made


def _share(name: str, found: Sequence[Printed], *, goal: float | None = None) -> Figure:
    of = summed(found)
    return Figure(
        name=name,
        value=of.share,
        unit="share",
        samples=of.questions,
        goal=goal,
        better="higher",
        spread=wilson(round(of.share * of.questions), of.questions),
        note=f"{of.mean_lines:.1f} lines are printed",
    )


def printed(memory: Memory, static: Embedder, dense: LineEmbedder | None) -> Iterator[Printed]:
    """Each question in each passage that holds its whole answer, in order; `dense` None: as before its vectors are there."""
    by_path: dict[str, list[Question]] = {}
    for question in memory.questions:
        by_path.setdefault(question.path, []).append(question)
    for path, questions in by_path.items():
        text = decode(memory.files[path].encode())
        assert text is not None
        passages = list(chunk(text, path))
        states = _line_states(passages, dense)
        for question in questions:
            start, end = (len(memory.files[path][:place].encode()) for place in (question.start, question.end))
            for passage, packed in zip(passages, states, strict=True):
                if passage.start_byte <= start and end <= passage.end_byte:
                    yield _one(question, passage, (start, end), static, dense, packed)
                    break


def _line_states(passages: Sequence[Chunk], dense: LineEmbedder | None) -> list[bytes | None]:
    if dense is None:
        return [None] * len(passages)
    found: list[bytes | None] = []
    for first in range(0, len(passages), BATCH):
        found.extend(dense.embed_chunks(passages[first : first + BATCH])[1])
    return found


def _one(
    question: Question,
    passage: Chunk,
    span: tuple[int, int],
    static: Embedder,
    dense: LineEmbedder | None,
    packed: bytes | None,
) -> Printed:
    units = units_of(passage.text)
    query = prepare(question.text)
    cosines = dots(
        static.embed_passages([passage.text[unit.start : unit.end] for unit in units]), static.embed_query(query.text)
    )
    if dense is not None and packed is not None:
        vector: Matrix = dense.embed_query(query.text)
        cosines = STATIC_LINE_SHARE * cosines + dots(unpack_lines(packed, dim=len(vector)), vector)
    first, last = lines.choose(passage.text, units, query, cosines) if len(units) > 1 else (0, 0)
    place = lines.extent(passage, units[first].start, units[last].end)
    exact = place.start_byte <= span[0] and span[1] <= place.end_byte
    return Printed(
        question=question,
        exact=exact,
        lines=place.end_line - place.start_line + 1,
        text=place.text,
        passage=passage.text,
    )
