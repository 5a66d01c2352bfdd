"""What answers are compared with: every memory scored by the formulas as they stand in the design, and plain FTS5."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from memdir_bench.agents.haystack import TAGS, WORDS, Ask, Haystack

TOP: Final = 10
K1: Final = 1.2
B: Final = 0.75
WEIGHTS: Final = {"bm25": 0.55, "recency": 0.15, "frequency": 0.05, "tags": 0.15, "project": 0.10}
DECAY_PER_DAY: Final = 0.01
_SAME: Final = 3e-6
"""Between scores: those of the wire have six digits, and recency moves by 2e-8 in a second."""
_NEEDLE_WORDS: Final = 17
Scores = npt.NDArray[np.float64]


class Exhaustive:
    """Words and facts of every memory, in memory; about 90 bytes for each. Written from the formulas and sharing no code with
    what is judged. Questions of this benchmark have no tags, no abbreviations and no stop words."""

    def __init__(self, haystack: Haystack, *, older_days: float = 0.0) -> None:
        """`older_days`: from filling to searching."""
        blocks = list(haystack.blocks())
        self._words = np.concatenate([block.words.astype(np.int32) for block in blocks])
        self._projects = np.concatenate([block.projects for block in blocks])
        self._ages_days = np.concatenate([block.ages_days for block in blocks]) + older_days
        self._accesses = np.concatenate([block.accesses for block in blocks])
        tags = np.concatenate([block.tags for block in blocks])
        self._lengths = WORDS + 1.0 + (tags[:, 0] != tags[:, 1])
        for place in haystack.needles:
            self._words[place] = -1
            self._lengths[place] += _NEEDLE_WORDS - WORDS

    def scores(self, ask: Ask) -> Scores:
        """Of every memory; -1 for those without any word of the question. The weights of signals that are 0 count, too."""
        total = np.zeros(len(self._words))
        norm = 1 - B + B * self._lengths / self._lengths.mean()
        for word in dict.fromkeys(ask.words):
            times = (self._words == word).sum(axis=1)
            having = int((times > 0).sum())
            idf = np.log((len(times) - having + 0.5) / (having + 0.5) + 1)
            total += idf * times * (K1 + 1) / (times + K1 * norm)
        best = total.max()
        signals = {
            "bm25": total / best if best else total,
            "recency": np.exp(-DECAY_PER_DAY * self._ages_days),
            "frequency": np.log1p(self._accesses) / max(1e-12, float(np.log1p(self._accesses.max()))),
            "tags": np.zeros(len(total)),
            "project": (self._projects == int(ask.project.removeprefix("project-"))).astype(np.float64),
        }
        found: Scores = sum((WEIGHTS[name] * signal for name, signal in signals.items()), np.zeros(len(total)))
        return np.where(total > 0, found, -1.0)

    def equal(self, ask: Ask, found: Sequence[tuple[int, float]]) -> bool:
        """Whether (place, score) are those of the best ten. Which of several of the same score is not asked."""
        scores = self.scores(ask)
        count = min(TOP, int((scores >= 0).sum()))
        best = np.sort(np.partition(scores, -count)[-count:])[::-1] if count else np.zeros(0)
        places = np.array([place for place, _ in found], dtype=np.int64)
        told = np.array([score for _, score in found])
        return (
            len(places) == count
            and bool(np.allclose(told, best, rtol=0, atol=_SAME))
            and bool(np.allclose(scores[places], best, rtol=0, atol=_SAME))
        )


class PlainFts5:
    """The same texts in a table of the SQLite that comes with Python: words joined by OR, `order by bm25`."""

    def __init__(self, connection: sqlite3.Connection, built_s: float, size_bytes: int) -> None:
        self._connection = connection
        self.built_s = built_s
        self.size_bytes = size_bytes

    def search(self, text: str, limit: int = TOP) -> list[int]:
        """Places, best first."""
        match = " OR ".join(f'"{word}"' for word in text.split())
        statement = "select rowid from memory where memory match ? order by bm25(memory), rowid limit ?"
        return [row[0] for row in self._connection.execute(statement, (match, limit))]


@contextmanager
def plain_fts5(folder: Path, haystack: Haystack) -> Iterator[PlainFts5]:
    """Columns content and tags, as the design's schema has them."""
    path = folder / "plain-fts5.db"
    with closing(sqlite3.connect(path)) as connection:
        began = time.perf_counter()
        connection.execute("pragma journal_mode=off")
        connection.execute("create virtual table memory using fts5(content, tags, tokenize='porter unicode61')")
        names = [f"topic{number:02d}" for number in range(TAGS)]
        for block in haystack.blocks():
            rows = zip(haystack.texts(block), block.tags.tolist(), strict=True)
            connection.executemany(
                "insert into memory (rowid, content, tags) values (?, ?, ?)",
                (
                    (place, text, " ".join(sorted({names[tag] for tag in tags})))
                    for place, (text, tags) in enumerate(rows, start=block.first)
                ),
            )
        connection.execute("insert into memory (memory) values ('optimize')")
        connection.commit()
        yield PlainFts5(connection, time.perf_counter() - began, path.stat().st_size)
    path.unlink()
