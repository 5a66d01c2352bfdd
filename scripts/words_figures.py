"""Indexes of words side by side in one run: SQLite's FTS5 as it is, FTS5 with a budget, tantivy, and memdir's own.

    uv run --group bench python scripts/words_figures.py --passages 100000 --words 22

Made-up words with the frequencies of a natural language (Zipf). Every engine gets the same texts and queries. Times are of this
thread's processor and the least of three rounds, because the machine may be busy with other things; visible_ms is wall-clock
time. `equal` is the share of queries whose ten best score as the ten best of an exhaustive comparison with the same formula.
"""

from __future__ import annotations

import argparse
import json
import math
import resource
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import apsw
import numpy as np

from memdir.retrieval.lexical.index import SegmentedIndex
from memdir.store.passages.log import IndexedPassage, ListedPassage, PassageEvent
from memdir.store.text.analysis import index_terms
from memdir.store.types import Scope

VOCABULARY: Final = 200_000
PER_FILE: Final = 5
FILES_PER_FOLDER: Final = 10
QUERIES: Final = 40
LIMIT: Final = 150
ROUNDS: Final = 3
UPDATES: Final = 15
BUDGET: Final = 20_000
"""Postings that FTS5 with a budget may look at."""
Search = Callable[[Sequence[str], str], list[int]]


class Texts:
    """Passages 1 to N as a log that an index follows."""

    def __init__(self, count: int, words: int) -> None:
        random = np.random.default_rng(1)
        letters = "bcdfghklmnprstvwz", "aeiou"
        self.vocabulary = [
            "".join(letters[place % 2][at // 7**place % len(letters[place % 2])] for place in range(5)) + f"x{at % 97:02d}"
            for at in range(VOCABULARY)
        ]
        chances = np.cumsum(1 / np.arange(1, VOCABULARY + 1))
        self.texts: list[str] = []
        for _ in range(count):
            length = max(3, int(random.poisson(words)))
            places = np.searchsorted(chances, random.random(length) * chances[-1])
            self.texts.append(" ".join([self.vocabulary[place] for place in places]))
        self.told: list[PassageEvent] = []

    def path(self, chunk_id: int) -> str:
        file = chunk_id // PER_FILE
        return f"/folder-{file // FILES_PER_FOLDER:06d}/file-{file}.md"

    def add(self, text: str) -> int:
        self.texts.append(text)
        self.told.append(PassageEvent(kind="add", chunk_id=len(self.texts), document_id=None))
        return len(self.texts)

    def bounds(self) -> tuple[int, int]:
        return 1, len(self.told)

    def events(self, container_id: int, *, after: int, until: int) -> Sequence[PassageEvent]:
        del container_id
        return self.told[after:until]

    def count(self, container_id: int) -> int:
        del container_id
        return len(self.texts)

    def passages(self, container_id: int, chunk_ids: Sequence[int]) -> Sequence[IndexedPassage]:
        del container_id
        return [
            IndexedPassage(
                chunk_id=at,
                document_id=f"d{at // PER_FILE}",
                path=self.path(at),
                text=self.texts[at - 1],
                context="",
                digest=at,
            )
            for at in chunk_ids
        ]

    def listing(self, container_id: int, *, after: int, limit: int) -> Sequence[ListedPassage]:
        del container_id
        ids = range(max(1, after + 1), min(len(self.texts), max(0, after) + limit) + 1)
        return [ListedPassage(chunk_id=at, document_id=f"d{at // PER_FILE}", path=self.path(at), digest=at) for at in ids]

    def paths(self, document_ids: Sequence[str]) -> dict[str, str | None]:
        del document_ids
        return {}


class Own:
    name = "own"

    def __init__(self, texts: Texts, folder: Path) -> None:
        self._texts, self._folder = texts, folder
        self._index = SegmentedIndex(texts, folder)
        self._index.settle(1)

    def search(self, words: Sequence[str], folder: str) -> list[int]:
        return [chunk_id for chunk_id, _ in self._index.search(Scope(container_id=1, folder=folder), words, LIMIT)]

    def update(self, text: str, word: str) -> bool:
        chunk_id = self._texts.add(text)
        return self.search([word], "/") == [chunk_id]

    def size_bytes(self) -> int:
        return sum(path.stat().st_size for path in self._folder.rglob("*") if path.is_file())


class Fts5:
    """External content, Porter, bm25: as memdir's server had it."""

    name = "fts5"

    def __init__(self, texts: Texts, folder: Path) -> None:
        self._path = folder / "fts5.db"
        self._db = apsw.Connection(str(self._path))
        self._db.execute("pragma journal_mode=wal; pragma synchronous=normal; pragma cache_size=-65536")
        self._db.execute(
            "create table chunk (id integer primary key, path text, text text); create index by_path on chunk (path)"
        )
        self._db.execute(
            "create virtual table words using fts5 (text, content='chunk', content_rowid='id', tokenize='porter unicode61')"
        )
        self._db.execute("create virtual table vocabulary using fts5vocab (words, row)")
        self._next = 1
        with self._db:
            for text in texts.texts:
                self._put(text, texts.path(self._next))
        self._db.execute("insert into words (words) values ('optimize')")

    def _put(self, text: str, path: str) -> None:
        self._db.execute("insert into chunk values (?, ?, ?)", (self._next, path, text))
        self._db.execute("insert into words (rowid, text) values (?, ?)", (self._next, text))
        self._next += 1

    def search(self, words: Sequence[str], folder: str) -> list[int]:
        where = "" if folder == "/" else "and c.path >= ? and c.path < ?"
        bindings = () if folder == "/" else (folder + "/", folder + "0")
        sql = (
            f"select c.id from words join chunk c on c.id = words.rowid where words match ? {where} "  # noqa: S608
            "order by bm25(words), c.id limit ?"
        )
        return [row[0] for row in self._db.execute(sql, (" OR ".join(f'"{word}"' for word in words), *bindings, LIMIT))]

    def update(self, text: str, word: str) -> bool:
        with self._db:
            self._put(text, "/new.md")
        return self.search([word], "/") == [self._next - 1]

    def size_bytes(self) -> int:
        pages = "select sum(pgsize) from dbstat where name like 'words%'"
        return int(next(iter(self._db.execute(pages)))[0])


class Fts5Budget(Fts5):
    """The rarest words first, until BUDGET postings are looked at; exact only while that is enough."""

    name = "fts5 with a budget"

    def search(self, words: Sequence[str], folder: str) -> list[int]:
        marks = ",".join("?" * len(words))
        rows = dict(self._db.execute(f"select term, doc from vocabulary where term in ({marks})", tuple(words)))  # noqa: S608
        kept, total = [], 0
        for word in sorted(words, key=lambda word: rows.get(word, 0)):
            if kept and total + rows.get(word, 0) > BUDGET:
                break
            kept.append(word)
            total += rows.get(word, 0)
        return super().search(kept, folder)


class Tantivy:
    name = "tantivy"

    def __init__(self, texts: Texts, folder: Path) -> None:
        import tantivy

        self._tantivy = tantivy
        self._folder = folder
        builder = tantivy.SchemaBuilder()
        builder.add_text_field("text", stored=False, tokenizer_name="default", index_option="freq")
        builder.add_text_field("path", stored=False, tokenizer_name="raw", fast=False)
        builder.add_integer_field("id", stored=True, indexed=True, fast=True)
        self._index = tantivy.Index(builder.build(), path=str(folder))
        self._writer = self._index.writer(256 << 20, 1)
        self._next = 1
        for text in texts.texts:
            self._put(text, texts.path(self._next))
        self._writer.commit()
        self._writer.wait_merging_threads()
        self._writer = self._index.writer(64 << 20, 1)
        self._index.reload()
        self._searcher = self._index.searcher()

    def _put(self, text: str, path: str) -> None:
        self._writer.add_document(self._tantivy.Document(text=[text], path=[path.rsplit("/", 1)[0]], id=[self._next]))
        self._next += 1

    def search(self, words: Sequence[str], folder: str) -> list[int]:
        query, schema = self._tantivy.Query, self._index.schema
        occur = self._tantivy.Occur
        wanted = query.boolean_query([(occur.Should, query.term_query(schema, "text", word, "freq")) for word in words])
        if folder != "/":
            inside = query.const_score_query(query.term_query(schema, "path", folder), 0.0)
            wanted = query.boolean_query([(occur.Must, wanted), (occur.Must, inside)])
        hits = self._searcher.search(wanted, LIMIT, count=False).hits
        return [self._searcher.doc(address)["id"][0] for _, address in hits]

    def update(self, text: str, word: str) -> bool:
        self._put(text, "/new.md")
        self._writer.commit()
        self._index.reload()
        self._searcher = self._index.searcher()
        return self.search([word], "/") == [self._next - 1]

    def size_bytes(self) -> int:
        return sum(path.stat().st_size for path in self._folder.iterdir())


def queries(texts: Texts) -> dict[str, list[tuple[list[str], str]]]:
    """By kind: words, and where."""
    random = np.random.default_rng(2)

    def some(low: int, high: int, count: int) -> list[str]:
        return [texts.vocabulary[int(at)] for at in random.integers(low, high, count)]

    kinds: dict[str, list[tuple[list[str], str]]] = {"needle": [], "common": [], "mixed": [], "scoped": []}
    for _ in range(QUERIES):
        kinds["needle"].append((some(5_000, VOCABULARY, 4), "/"))
        kinds["common"].append((some(5, 200, 5), "/"))
        kinds["mixed"].append((some(5, 200, 3) + some(3_000, 100_000, 2), "/"))
        chunk_id = int(random.integers(1, len(texts.texts)))
        kinds["scoped"].append((some(5, 200, 3) + some(200, 5_000, 2), texts.path(chunk_id).rsplit("/", 1)[0]))
    return kinds


def exhaustive(texts: Texts, asked: Sequence[tuple[list[str], str]]) -> list[list[float]]:
    """The ten best scores of each query, every passage compared."""
    wanted = {index_terms(word)[0] for words, _ in asked for word in words}
    held: dict[str, list[tuple[int, int]]] = {word: [] for word in wanted}
    lengths = np.zeros(len(texts.texts))
    for row, text in enumerate(texts.texts):
        counted = Counter(index_terms(text))
        lengths[row] = sum(counted.values())
        for word in wanted & counted.keys():
            held[word].append((row, counted[word]))
    norm = 1.2 * (0.25 + 0.75 * lengths / lengths.mean())
    best = []
    for words, _ in asked:
        scores = np.zeros(len(lengths))
        for word in dict.fromkeys(index_terms(word)[0] for word in words):
            if held[word]:
                rows, often = np.array(held[word]).T
                idf = math.log(1 + (len(lengths) - len(rows) + 0.5) / (len(rows) + 0.5))
                scores[rows] += idf * often * 2.2 / (often + norm[rows])
        best.append([*np.sort(scores)[::-1][:10].tolist(), scores])
    return best


def share_equal(search: Search, asked: Sequence[tuple[list[str], str]], best: Sequence[list[Any]]) -> float:
    """Ten passages are the best when their scores are, in order: equal scores may stand in any order."""
    equal = 0
    for (words, folder), (*scores, every) in zip(asked, best, strict=True):
        found = [every[at - 1] for at in search(words, folder)[:10] if at <= len(every)]
        held = [score for score in scores if score > 0]
        equal += len(found) == len(held) and bool(np.allclose(found, held, rtol=1e-9))
    return equal / len(asked)


def measured(engine: Any, kinds: dict[str, list[tuple[list[str], str]]]) -> dict[str, list[float]]:
    figures = {}
    for kind, asked in kinds.items():
        times = np.full(len(asked), np.inf)
        for _ in range(ROUNDS):
            for at, (words, folder) in enumerate(asked):
                began = time.thread_time()
                engine.search(words, folder)
                times[at] = min(times[at], (time.thread_time() - began) * 1000)
        figures[kind] = [round(float(np.percentile(times, at)), 2) for at in (50, 95)]
    return figures


def resident_mib() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 2**20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("--passages", type=int, default=100_000)
    parser.add_argument("--words", type=int, default=22)
    parser.add_argument("--only", nargs="*")
    arguments = parser.parse_args()
    texts = Texts(arguments.passages, arguments.words)
    kinds = queries(texts)
    asked = kinds["needle"] + kinds["common"] + kinds["mixed"]
    best = exhaustive(texts, asked)
    for kind in (Own, Tantivy, Fts5, Fts5Budget):
        if arguments.only and kind.name not in arguments.only:
            continue
        with tempfile.TemporaryDirectory() as folder:
            before, wall, began = resident_mib(), time.perf_counter(), time.process_time()
            engine = kind(texts, Path(folder))
            line: dict[str, Any] = {
                "engine": kind.name,
                "build_cpu_s": round(time.process_time() - began, 1),
                "build_wall_s": round(time.perf_counter() - wall, 1),
                "disk_mib": round(engine.size_bytes() / 2**20, 1),
                "ms_p50_p95": measured(engine, kinds),
                "equal": round(share_equal(engine.search, asked, best), 3),
                "resident_mib": round(resident_mib() - before, 1),
            }
            took = []
            for number in range(UPDATES):
                began = time.perf_counter()
                word = f"fresh{number}zzq"
                if not engine.update(f"{word} {texts.vocabulary[number]}", word):
                    raise AssertionError(f"{kind.name} does not find what was added")
                took.append((time.perf_counter() - began) * 1000)
            del texts.texts[arguments.passages :]
            texts.told.clear()
            line["visible_ms"] = [round(float(np.percentile(took, at)), 2) for at in (50, 95)]
            sys.stdout.write(json.dumps(line) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
