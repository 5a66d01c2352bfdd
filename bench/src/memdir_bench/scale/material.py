"""What the containers are made of: the same passages, vectors and queries for the same number, in every process of a run.

Words have the frequencies of a natural language (Zipf), and each file is about one of some hundred topics: half of its words
are drawn from the topic's own. Vectors of a million real passages would take ten hours; they are drawn from a mixture of
clusters, one for each topic, in a space of few dimensions that is turned into the model's, as embeddings of text lie, and
noise around. A query has words, and a vector of the same mixture.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import Stemmer

from memdir.store.types import Matrix

PASSAGES_PER_FILE: Final = 20
WORDS_PER_PASSAGE: Final = 22
FILES_PER_FOLDER: Final = 10
"""A scoped query is about ten files."""
BLOCK_FILES: Final = 500
"""Files that are drawn together, from one seed."""
VOCABULARY: Final = 60_000
TOPICS: Final = 500
_TOPIC_WORDS: Final = 200
_TOPIC_SHARE: Final = 0.5
_LATENT: Final = 40
_ZIPF: Final = 0.95
_CENTRE_SHARE: Final = 0.7
KINDS: Final = ("needle", "common", "mixed")
_COMMON: Final = (10, 300)
"""Ranks of words that queries call common: below are those that a text cannot do without."""
_RARE: Final = (8_000, VOCABULARY)
_NAMES: Final = 50_000
"""Words from this rank on are names and begin with a capital: two in a passage, and each in 20 of 100,000 passages. What
mentions the same name is connected."""
_LETTERS: Final = ("bcdfghklmnprstvwz", "aeiou")

Ids = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """What is asked: `words` are numbers in the vocabulary."""

    kind: str
    words: tuple[int, ...]
    text: str
    dense: Matrix
    static: Matrix


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """Passages of `BLOCK_FILES` files (the last block: fewer), in order. Row `i` is passage `i % PASSAGES_PER_FILE` of file
    `first_file + i // PASSAGES_PER_FILE`."""

    first_file: int
    words: Ids
    """Shape (rows, WORDS_PER_PASSAGE)."""
    topics: Ids

    def __len__(self) -> int:
        return len(self.words)


class Material:
    """A vocabulary, topics and a space for each model."""

    def __init__(self, *, dense_dim: int, static_dim: int, seed: int = 1) -> None:
        random = np.random.default_rng(seed)
        self.seed = seed
        self.words = _vocabulary(random)
        chances = 1 / np.arange(1, VOCABULARY + 1) ** _ZIPF
        self._chances = np.cumsum(chances / chances.sum())
        self._topic_words = random.integers(_COMMON[0], VOCABULARY, (TOPICS, _TOPIC_WORDS))
        self._centres = random.normal(size=(TOPICS, _LATENT)).astype(np.float32)
        self._turns = {dim: random.normal(size=(_LATENT, dim)).astype(np.float32) for dim in {dense_dim, static_dim}}
        self._dense_dim, self._static_dim = dense_dim, static_dim

    @cached_property
    def _text_of(self) -> npt.NDArray[np.object_]:
        return np.array([word if rank < _NAMES else word.capitalize() for rank, word in enumerate(self.words)], dtype=object)

    def blocks(self, passages: int) -> list[tuple[int, int]]:
        """Number and rows of each block of a container with so many passages."""
        rows = BLOCK_FILES * PASSAGES_PER_FILE
        return [(number, min(rows, passages - number * rows)) for number in range(-(-passages // rows))]

    def block(self, number: int, rows: int) -> Block:
        """Words and topics of a block. A smaller number of rows is the beginning of a larger one."""
        random = np.random.default_rng((self.seed, number))
        files = np.random.default_rng((self.seed, number, 1)).integers(0, TOPICS, BLOCK_FILES)
        topics = np.repeat(files, PASSAGES_PER_FILE)[:rows]
        shape = (BLOCK_FILES * PASSAGES_PER_FILE, WORDS_PER_PASSAGE)
        words = self._drawn(random, shape)[:rows]
        own = self._topic_words[topics[:, None], random.integers(0, _TOPIC_WORDS, shape)[:rows]]
        about = random.random(shape)[:rows] < _TOPIC_SHARE
        return Block(first_file=number * BLOCK_FILES, words=np.where(about, own, words), topics=topics)

    def texts(self, block: Block) -> list[str]:
        """One text for each row."""
        return [" ".join(row) for row in self._text_of[block.words].tolist()]

    def dense(self, number: int, block: Block) -> Matrix:
        """The transformer's vectors of a block."""
        return self._of_block(np.random.default_rng((self.seed, number, 2)), block, self._dense_dim)

    def static(self, number: int, block: Block) -> Matrix:
        """The static model's vectors of a block."""
        return self._of_block(np.random.default_rng((self.seed, number, 3)), block, self._static_dim)

    def queries(self, kind: str, count: int) -> list[Query]:
        """Two rare words, three common ones, or two of each; about one topic."""
        random = np.random.default_rng((self.seed, KINDS.index(kind), 4))
        topics = random.integers(0, TOPICS, count)
        dense = self._vectors(random, topics, self._dense_dim)
        static = self._vectors(random, topics, self._static_dim)
        made = []
        for number in range(count):
            rare, common = {"needle": (2, 0), "common": (0, 3), "mixed": (2, 2)}[kind]
            words = (*random.integers(*_RARE, rare).tolist(), *random.integers(*_COMMON, common).tolist())
            text = " ".join(self.words[word] for word in words)
            made.append(Query(kind=kind, words=words, text=text, dense=dense[number], static=static[number]))
        return made

    def _drawn(self, random: np.random.Generator, shape: tuple[int, ...]) -> Ids:
        return np.minimum(np.searchsorted(self._chances, random.random(shape)), VOCABULARY - 1)

    def _of_block(self, random: np.random.Generator, block: Block, dim: int) -> Matrix:
        """Always of a whole block: sums of another shape are rounded in another way."""
        topics = np.zeros(BLOCK_FILES * PASSAGES_PER_FILE, dtype=np.int64)
        topics[: len(block)] = block.topics
        return self._vectors(random, topics, dim)[: len(block)]

    def _vectors(self, random: np.random.Generator, topics: Ids, dim: int) -> Matrix:
        latent = self._centres[topics] + _CENTRE_SHARE * random.standard_normal((len(topics), _LATENT), dtype=np.float32)
        made = latent @ self._turns[dim] + 2.0 * random.standard_normal((len(topics), dim), dtype=np.float32)
        unit: Matrix = (made / np.linalg.norm(made, axis=1, keepdims=True)).astype(np.float32)
        return unit


def path_of(file: int) -> str:
    """Where a file stands."""
    return f"{folder_of(file)}/file-{file:06d}.txt"


def folder_of(file: int) -> str:
    """The folder that it shares with nine others."""
    return f"/folder-{file // FILES_PER_FOLDER:05d}"


def _vocabulary(random: np.random.Generator) -> tuple[str, ...]:
    """Different words, syllable by syllable. They end in a letter that stemmers leave alone, and words that any stemmer
    changes all the same are left out, so that no two become one."""
    made: dict[str, None] = {}
    while len(made) < VOCABULARY * 5 // 4:
        count = int(random.integers(2, 5))
        picks: list[Any] = random.integers(0, 85, count).tolist()
        made["".join(_LETTERS[0][pick % 17] + _LETTERS[1][pick // 17] for pick in picks) + "q"] = None
    drawn = list(made)
    for language in Stemmer.algorithms():
        stems = Stemmer.Stemmer(language, 0).stemWords(drawn)
        drawn = [word for word, stem in zip(drawn, stems, strict=True) if word == stem]
    return tuple(drawn[:VOCABULARY])
