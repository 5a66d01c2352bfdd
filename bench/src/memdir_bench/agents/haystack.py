"""Any number of memories of the design's size, about 25 tokens each, a hundred of them needles, and questions of four kinds.

Words, topics and frequencies are those of `bench.scale.material`. A needle is a sentence of its own, with a word that stands
nowhere else, and is asked for in its own project. Kinds of questions: `needle`; `rare`, two words of the far end of the
vocabulary; `common`, three that a text is full of; `mixed`, two of each. A word that no memory has, as happens among few, is
the next commoner one that some have: a search would read it otherwise. The same number gives the same memories in every
process of a run.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache, cached_property
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from memdir_bench.scale.material import Material

WORDS: Final = 14
"""Of a memory: with their spaces 25 tokens of four characters."""
NEEDLES: Final = 100
PROJECTS: Final = 50
TAGS: Final = 40
KINDS: Final = ("needle", "rare", "common", "mixed")
_AGE_MAX_DAYS: Final = 700.0
_MATERIAL: Final = {"rare": "needle", "common": "common", "mixed": "mixed"}

Ids = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """A question. `words` are numbers in the vocabulary; `needle` is the place of the only right answer."""

    kind: str
    text: str
    project: str
    words: tuple[int, ...] = ()
    needle: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """Consecutive memories from `first` on. Rows of `words` and `facts` belong together."""

    first: int
    words: Ids
    """Shape (rows, WORDS); a needle's count for nothing."""
    projects: Ids
    tags: Ids
    """Shape (rows, 2); the second may be the first."""
    ages_days: npt.NDArray[np.float64]
    accesses: Ids


class Haystack:
    """`count` memories."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.material = _material()
        needles = min(NEEDLES, count // 2)
        self.needles = {number * count // needles: number for number in range(needles)}
        """Place and number of each needle."""

    def blocks(self) -> Iterator[Block]:
        """All of them, some thousand at a time."""
        first = 0
        for number, rows in self.material.blocks(self.count):
            words = self.material.block(number, rows)
            random = np.random.default_rng((number, 77))
            tags = np.stack([words.topics % TAGS, random.integers(0, TAGS, rows)], axis=1)
            projects = words.topics % PROJECTS
            for place, needle in self.needles.items():
                if first <= place < first + rows:
                    projects[place - first] = needle % PROJECTS
            yield Block(
                first=first, words=words.words[:, :WORDS], projects=projects, tags=tags,
                ages_days=random.random(rows) * _AGE_MAX_DAYS,
                accesses=np.minimum(random.geometric(0.5, rows) - 1, 20),
            )  # fmt: skip
            first += rows

    def texts(self, block: Block) -> list[str]:
        """The contents of a block."""
        words = self.material.words
        made = [" ".join(words[word] for word in row) for row in block.words.tolist()]
        for place, number in self.needles.items():
            if block.first <= place < block.first + len(made):
                made[place - block.first] = needle_text(number)
        return made

    def items(self, block: Block, now: datetime) -> list[dict[str, Any]]:
        """`ImportItem` of the wire."""
        return [
            {
                "content": text, "tags": sorted({tag_of(tag) for tag in tags}), "project": project_of(project),
                "createdAt": (now - timedelta(days=age)).isoformat(timespec="milliseconds"), "accessCount": accesses,
            }
            for text, tags, project, age, accesses in zip(
                self.texts(block), block.tags.tolist(), block.projects.tolist(), block.ages_days.tolist(),
                block.accesses.tolist(), strict=True,
            )
        ]  # fmt: skip

    def asks(self, kind: str, count: int) -> list[Ask]:
        """Questions of a kind, at most `NEEDLES` of `needle`."""
        if kind == "needle":
            return [
                Ask(kind=kind, text=needle_question(number), project=project_of(number % PROJECTS), needle=place)
                for place, number in list(self.needles.items())[:count]
            ]
        made = []
        for at, query in enumerate(self.material.queries(_MATERIAL[kind], count)):
            places = np.maximum(0, np.searchsorted(self._present, query.words, side="right") - 1)
            words = tuple(self._present[places].tolist())
            text = " ".join(self.material.words[word] for word in words)
            made.append(Ask(kind=kind, text=text, project=project_of(at % PROJECTS), words=words))
        return made

    @cached_property
    def _present(self) -> Ids:
        """Numbers of the words that some memory has, ascending."""
        stands = np.zeros(len(self.material.words), dtype=bool)
        for block in self.blocks():
            inside = [place - block.first for place in self.needles if block.first <= place < block.first + len(block.words)]
            stands[np.delete(block.words, inside, axis=0)] = True
        return np.flatnonzero(stands)


@cache
def _material() -> Material:
    """A second of work, and the same for every size."""
    return Material(dense_dim=1, static_dim=1)


def needle_text(number: int) -> str:
    """What only one memory says."""
    return (
        f"Remember: the recovery phrase of vault zq{number:03d}x lies in drawer {number}, behind the blue binder of accounting."
    )


def needle_question(number: int) -> str:
    """What a person asks for it."""
    return f"where is the recovery phrase of zq{number:03d}x"


def project_of(number: int) -> str:
    return f"project-{number:02d}"


def tag_of(number: int) -> str:
    return f"topic{number:02d}"
