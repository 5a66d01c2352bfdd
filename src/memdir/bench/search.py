"""`memdir bench search`: how a search grows with its container, on SQLite and on PostgreSQL, side by side in one run.

Works on the stores themselves, without a server around them. Passages are made of words with the frequencies of a natural
language (Zipf). The static vectors are real; those of the transformer would take an hour for 100,000 passages and are drawn
from a mixture of clusters in a space of few dimensions, as embeddings of text lie. Their recall is measured against the
comparison of all.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from memdir.bench.figures import Figure, machine, p50_p95

if TYPE_CHECKING:
    from memdir.store.protocols import ChunkStore
    from memdir.store.store import Store
    from memdir.store.types import Chunk, Document, Matrix

CHUNKS_PER_FILE: Final = 20
WORDS_PER_CHUNK: Final = 90
FILES_PER_FOLDER: Final = 25
VOCABULARY: Final = 30_000
DIM: Final = 384
_LATENT: Final = 40
_CLUSTERS: Final = 500
_LIMIT: Final = 150
_QUERIES: Final = 30
_RECALL_AT: Final = 10
_MODEL: Final = "bench-dense"


@dataclass(frozen=True, slots=True, kw_only=True)
class Material:
    """The same for every store and run: a vocabulary, and a space of vectors."""

    words: tuple[str, ...]
    chances: np.ndarray[Any, np.dtype[np.float64]]
    centres: Matrix
    projection: Matrix

    @staticmethod
    def of(seed: int = 1) -> Material:
        random = np.random.default_rng(seed)
        letters = np.array(list("bcdfghklmnprstvwz")), np.array(list("aeiou"))
        words = [
            "".join(random.choice(letters[place % 2]) for place in range(int(random.integers(4, 10))))
            for _ in range(VOCABULARY)
        ]
        chances = 1 / np.arange(1, VOCABULARY + 1) ** 0.95
        return Material(
            words=tuple(words),
            chances=np.cumsum(chances / chances.sum()),
            centres=random.normal(size=(_CLUSTERS, _LATENT)).astype(np.float32),
            projection=random.normal(size=(_LATENT, DIM)).astype(np.float32),
        )

    def text(self, random: np.random.Generator, count: int) -> str:
        places = np.minimum(np.searchsorted(self.chances, random.random(count)), VOCABULARY - 1)
        return " ".join(self.words[place] for place in places)

    def vectors(self, random: np.random.Generator, count: int) -> Matrix:
        centres = self.centres[random.integers(0, _CLUSTERS, count)]
        latent = centres + 0.7 * random.normal(size=(count, _LATENT)).astype(np.float32)
        made = latent @ self.projection + 2.0 * random.normal(size=(count, DIM)).astype(np.float32)
        unit: Matrix = (made / np.linalg.norm(made, axis=1, keepdims=True)).astype(np.float32)
        return unit


def fill(store: Store, material: Material, count: int, *, tag: str = "bench", seed: int = 1) -> int:
    """A container with `count` passages; returns its id."""
    from memdir.retrieval.embed import StaticEmbedder
    from memdir.store.operations import Put
    from memdir.store.texts import embedded_text

    static = StaticEmbedder()
    random = np.random.default_rng(seed)
    container = store.containers.ensure("bench", tag)
    chunks = store.chunks()
    for number in range(count // CHUNKS_PER_FILE):
        path = f"/folder-{number // FILES_PER_FOLDER:04d}/file-{number:06d}.txt"
        made = _passages(material, random)
        with store.blobs.upload() as upload:
            upload.write("\n".join(chunk.text for chunk in made).encode())
            outcome = store.files.apply(container, Put(path=path, blob=upload.finish()))
        document: Document | None = outcome.document
        assert document is not None
        texts = [embedded_text(chunk) for chunk in made]
        ids = chunks.replace_chunks(document, made, model=static.name, vectors=static.embed_passages(texts))
        chunks.add_vectors(ids, model=_MODEL, vectors=material.vectors(random, len(ids)))
    return container.id


def _passages(material: Material, random: np.random.Generator) -> list[Chunk]:
    from memdir.store.types import Chunk

    made = []
    start = 0
    for ordinal in range(CHUNKS_PER_FILE):
        text = material.text(random, WORDS_PER_CHUNK)
        end = start + len(text)
        made.append(
            Chunk(
                ordinal=ordinal,
                start_byte=start,
                end_byte=end,
                start_line=ordinal + 1,
                end_line=ordinal + 1,
                text=text,
                context="",
            )
        )
        start = end + 1
    return made


def measure(name: str, chunks: ChunkStore, container_id: int, material: Material, *, count: int) -> list[Figure]:
    """Latencies of what a search is made of, in the whole container and in a folder."""
    from memdir.store.types import Scope

    random = np.random.default_rng(7)
    whole = Scope(container_id=container_id)
    folder = Scope(container_id=container_id, folder="/folder-0001")
    queries = material.vectors(random, _QUERIES)
    phrases = [material.text(random, 6).split() for _ in range(_QUERIES)]
    rare = [[material.words[int(random.integers(1000, VOCABULARY))] for _ in range(4)] for _ in range(_QUERIES)]
    nearest: Callable[[Scope, Matrix], Any] = lambda scope, query: chunks.nearest(  # noqa: E731
        scope, query, model=_MODEL, limit=_LIMIT
    )
    note = f"{count} passages"
    parts: tuple[tuple[str, Callable[[int], Any]], ...] = (
        ("words", lambda at: chunks.lexical(whole, phrases[at], _LIMIT)),
        ("rare_words", lambda at: chunks.lexical(whole, rare[at], _LIMIT)),
        ("words_in_folder", lambda at: chunks.lexical(folder, phrases[at], _LIMIT)),
        ("vectors", lambda at: nearest(whole, queries[at])),
        ("vectors_in_folder", lambda at: nearest(folder, queries[at])),
    )
    figures: list[Figure] = []
    for part, work in parts:
        work(0)
        times = [_timed_ms(work, at) for at in range(_QUERIES)]
        figures += p50_p95(f"{name}_{part}", times, unit="ms", note=note)
    return figures


def recall(chunks: ChunkStore, exact: ChunkStore, container_id: int, exact_id: int, material: Material) -> float:
    """Share of the nearest ten by comparison that the other store finds; both were filled alike, and number alike."""
    from memdir.store.types import Scope

    random = np.random.default_rng(7)
    shares = []
    for query in material.vectors(random, _QUERIES):
        found = []
        for store, number in ((chunks, container_id), (exact, exact_id)):
            near = store.nearest(Scope(container_id=number), query, model=_MODEL, limit=_LIMIT)
            best = near.ids[np.argsort(-near.cosines, kind="stable")[:_RECALL_AT]].tolist()
            rows = store.chunks(best)
            found.append({(rows[chunk_id].path, rows[chunk_id].chunk.ordinal) for chunk_id in best})
        shares.append(len(found[0] & found[1]) / _RECALL_AT)
    return float(np.mean(shares))


def _timed_ms(work: Callable[[int], Any], at: int) -> float:
    began = time.perf_counter()
    work(at)
    return (time.perf_counter() - began) * 1000


@contextmanager
def _stores(database: str | None) -> Iterator[dict[str, Store]]:
    """A new SQLite store, and one in the empty database at `database`."""
    from memdir.store.acting import SYSTEM
    from memdir.store.sqlite.store import SqliteStore

    with tempfile.TemporaryDirectory(prefix="memdir-bench-") as folder:
        stores: dict[str, Store] = {"sqlite": SqliteStore.open(Path(folder) / "sqlite")}
        try:
            if database is not None:
                from memdir.store.postgres.store import PostgresStore

                stores["postgres"] = PostgresStore.open(database, Path(folder) / "postgres", acting=SYSTEM)
            yield stores
        finally:
            for store in stores.values():
                store.close()


def run(count: int, database: str | None) -> dict[str, Any]:
    """Fill, measure, compare."""
    material = Material.of()
    figures: list[Figure] = []
    with _stores(database) as stores:
        ids = {}
        for name, store in stores.items():
            _say(f"filling {name} with {count} passages …")
            began = time.perf_counter()
            ids[name] = fill(store, material, count)
            rate = count / (time.perf_counter() - began)
            figures.append(Figure(name=f"{name}_indexed", value=rate, unit="passages/s", samples=1, better="higher"))
        for name, store in stores.items():
            _say(f"searching in {name} …")
            figures += measure(name, store.chunks(), ids[name], material, count=count)
        if "postgres" in stores:
            _say("comparing what was found …")
            both = (stores["postgres"].chunks(), stores["sqlite"].chunks())
            share = recall(*both, ids["postgres"], ids["sqlite"], material)
            figures.append(
                Figure(
                    name="postgres_vectors_recall_at_10",
                    value=share,
                    unit="share",
                    samples=_QUERIES,
                    goal=0.95,
                    better="higher",
                    note="of what the comparison of all finds",
                )
            )
            figures += _ratios(figures)
    return {"machine": machine(), "figures": [figure.as_json() for figure in figures]}


def _ratios(figures: Sequence[Figure]) -> list[Figure]:
    """How much longer PostgreSQL takes than SQLite, for each median."""
    medians = {figure.name: figure.value for figure in figures if figure.name.endswith("_p50")}
    return [
        Figure(
            name=f"ratio_{name.removeprefix('postgres_').removesuffix('_p50')}",
            value=value / medians["sqlite_" + name.removeprefix("postgres_")],
            unit="times",
            samples=_QUERIES,
            note="PostgreSQL's median by SQLite's",
        )
        for name, value in medians.items()
        if name.startswith("postgres_")
    ]


def main(count: int, *, database: str | None, as_json: bool) -> int:
    """Exit 0 when measured."""
    report = run(count, database)
    if as_json:
        sys.stdout.write(json.dumps(report, indent=2) + "\n")
    else:
        for figure in report["figures"]:
            sys.stdout.write(f"{figure['name']:<36}{figure['value']!s:>12}  {figure['unit']:<12}{figure.get('note', '')}\n")
    return 0


def _say(text: str) -> None:
    sys.stderr.write(f"bench: {text}\n")
    sys.stderr.flush()
