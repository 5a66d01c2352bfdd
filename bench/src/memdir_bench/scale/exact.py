"""What the right answers are: every passage scored, without any index. And plain FTS5, as it comes."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from memdir.store.types import Matrix
from memdir_bench.scale.material import PASSAGES_PER_FILE, Material, Query

_K1: Final = 1.2
_BLOCK_ROWS: Final = 100_000
_SAME: Final = 1e-6
TOP: Final = 10

Scores = npt.NDArray[np.float64]


class Exhaustive:
    """Words and vectors of every passage, in memory: 860 MB for a million."""

    def __init__(self, material: Material, passages: int) -> None:
        words, vectors = [], []
        for number, rows in material.blocks(passages):
            block = material.block(number, rows)
            words.append(block.words.astype(np.int32))
            vectors.append(material.dense(number, block).astype(np.float16))
        self._words = np.concatenate(words)
        self._vectors = np.concatenate(vectors)

    def bm25(self, query: Query, *, fts5: bool = False) -> Scores:
        """BM25 of each passage (Robertson, Zaragoza 2009, with the idf of `retrieval.lexical` or of FTS5). All have the same
        length, so that its part of the formula is 1."""
        total = np.zeros(len(self._words))
        for word in dict.fromkeys(query.words):
            times = (self._words == word).sum(axis=1)
            having = int((times > 0).sum())
            odds = (len(times) - having + 0.5) / (having + 0.5)
            idf = max(1e-6, float(np.log(odds))) if fts5 else float(np.log1p(odds))
            total += idf * times * (_K1 + 1) / (times + _K1)
        return total

    def equal(self, query: Query, found: Sequence[int], *, fts5: bool = False) -> bool:
        """Whether the rows that were found have the scores of the best ten. Which of several that score the same is not
        asked."""
        scores = self.bm25(query, fts5=fts5)
        count = min(TOP, int((scores > 0).sum()))
        best = np.sort(np.partition(scores, -count)[-count:]) if count else np.zeros(0)
        rows = np.array(found[:TOP], dtype=np.int64)
        return len(rows) == count and bool(np.allclose(np.sort(scores[rows]), best, rtol=_SAME, atol=0))

    def nearest(self, queries: Matrix) -> list[set[int]]:
        """The ten closest rows to each query."""
        best = [(np.zeros(0), np.zeros(0, dtype=np.int64)) for _ in queries]
        for first in range(0, len(self._vectors), _BLOCK_ROWS):
            block = self._vectors[first : first + _BLOCK_ROWS].astype(np.float32)
            cosines = block @ queries.T
            for at in range(len(queries)):
                scores = np.concatenate((best[at][0], cosines[:, at]))
                rows = np.concatenate((best[at][1], np.arange(first, first + len(block))))
                top = np.argsort(-scores, kind="stable")[:TOP]
                best[at] = (scores[top], rows[top])
        return [set(rows.tolist()) for _, rows in best]


@contextmanager
def plain_fts5(folder: Path, material: Material, passages: int) -> Iterator[PlainFts5]:
    """The same words in a table of their own, of the SQLite that comes with Python."""
    path = folder / "plain-fts5.db"
    with closing(sqlite3.connect(path)) as connection:
        began = time.perf_counter()
        connection.execute("pragma journal_mode=off")
        connection.execute("create virtual table passage using fts5(text, content='', tokenize='porter unicode61')")
        for number, rows in material.blocks(passages):
            block = material.block(number, rows)
            first = block.first_file * PASSAGES_PER_FILE
            numbered = enumerate(material.texts(block), start=first)
            connection.executemany("insert into passage (rowid, text) values (?, ?)", numbered)
        connection.execute("insert into passage (passage) values ('optimize')")
        connection.commit()
        yield PlainFts5(connection, time.perf_counter() - began, path.stat().st_size)
    path.unlink()


class PlainFts5:
    """One query after the other, every word joined by OR, ranked by its own bm25."""

    def __init__(self, connection: sqlite3.Connection, built_s: float, size_bytes: int) -> None:
        self._connection = connection
        self.built_s = built_s
        self.size_bytes = size_bytes

    def search(self, text: str, limit: int) -> list[int]:
        """Rows, best first."""
        match = " OR ".join(f'"{word}"' for word in text.split())
        statement = "select rowid from passage where passage match ? order by rank limit ?"
        return [row[0] for row in self._connection.execute(statement, (match, limit))]


def timed_ms(work: Callable[[], Any], *, of: Callable[[], float] = time.perf_counter) -> tuple[float, Any]:
    """How long it took by the clock `of`, and what came of it."""
    began = of()
    result = work()
    return (of() - began) * 1000, result
