"""A database with containers and documents made by hand, the real models, and a small memory to search in."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest

from memdir.core.clock import FakeClock
from memdir.ingest.chunker import chunk
from memdir.ingest.text import decode
from memdir.retrieval.embed import Embedder, LineEmbedder, MiniLmEmbedder, StaticEmbedder
from memdir.retrieval.lexical.choice import word_indexes, words_among
from memdir.store.acting import SYSTEM
from memdir.store.postgres.store import PostgresStore
from memdir.store.sqlite.store import SqliteStore
from memdir.store.text.passage_text import embedded_text
from memdir.store.types import Document
from tests.postgres import Postgres

ENGINES: Final = ("sqlite", "postgres")
AnyStore = SqliteStore | PostgresStore


@pytest.fixture(scope="session")
def static() -> StaticEmbedder:
    return StaticEmbedder()


@pytest.fixture(scope="session")
def minilm(models_dir: Path) -> MiniLmEmbedder:
    return MiniLmEmbedder(models_dir)


class World:
    """The tables of a server with the stores over them, and documents put by hand."""

    def __init__(self, store: AnyStore, clock: FakeClock) -> None:
        self._over(store, clock)
        for container_id in (1, 2):
            self.container(container_id)

    @classmethod
    def again(cls, store: AnyStore) -> World:
        """Over a store that has its containers."""
        made = cls.__new__(cls)
        made._over(store, FakeClock())
        return made

    def _over(self, store: AnyStore, clock: FakeClock) -> None:
        self.store = store
        self.clock = clock
        self.db = store.db
        self.chunks = store.chunks()
        beside = word_indexes(store)
        self.words = words_among(() if beside is None else (beside,), self.chunks)
        self.memories = store.memories
        self.documents: dict[tuple[int, str], Document] = {}
        self.sequence: dict[tuple[int, str], int] = {}

    def container(self, container_id: int) -> None:
        """A container with that number."""
        self.sql(
            "insert into container (id, org_id, tag, epoch, created_at_ms, updated_at_ms) values (?, 'o', ?, 'e', 0, 0)",
            container_id,
            f"c{container_id}",
        )

    def sql(self, statement: str, *bindings: object) -> None:
        with self.db.write() as connection:
            connection.execute(statement, bindings)

    def _new_id(self, container_id: int, path: str) -> str:
        """A document that once stood there may have moved on, with its id."""
        number = self.sequence.setdefault((container_id, path), 0)
        self.sequence[container_id, path] += 1
        return f"d{container_id}{path}" + (f"#{number}" if number else "")

    def document(self, path: str, data: bytes, *, container_id: int = 1) -> Document:
        """A new document, or the next revision of the one at `path`."""
        digest = hashlib.sha256(data).hexdigest()
        known = self.documents.get((container_id, path))
        if known is None:
            document = Document(
                id=self._new_id(container_id, path),
                container_id=container_id,
                container_tag=f"c{container_id}",
                custom_id=None,
                path=path,
                kind="file",
                title=None,
                media_type="text/plain",
                status="done",
                error=None,
                content_hash=digest,
                size_bytes=len(data),
                mode=0o644,
                mtime_ns=0,
                revision=1,
                metadata={},
                created_at_ms=0,
                updated_at_ms=len(self.documents),
            )
            self.sql(
                "insert into document (id, container_id, path, kind, status, content_hash, size_bytes, mode, mtime_ns, "
                "revision, created_at_ms, updated_at_ms) values (?, ?, ?, 'file', 'done', ?, ?, 420, 0, 1, 0, ?)",
                document.id,
                container_id,
                path,
                digest,
                len(data),
                document.updated_at_ms,
            )
        else:
            document = replace(known, content_hash=digest, size_bytes=len(data), revision=known.revision + 1)
            self.sql("update document set content_hash = ?, revision = ? where id = ?", digest, document.revision, document.id)
        self.documents[container_id, path] = document
        return document

    def put(self, path: str, data: bytes | str, static: Embedder, *, container_id: int = 1) -> Document:
        """Put a document and index it with the static model."""
        raw = data.encode() if isinstance(data, str) else data
        document = self.document(path, raw, container_id=container_id)
        text = decode(raw)
        chunks = chunk(text, path) if text is not None else ()
        vectors = static.embed_passages([embedded_text(item) for item in chunks])
        self.chunks.replace_chunks(document, chunks, model=static.name, vectors=vectors)
        return document

    def embed(self, model: LineEmbedder, *, rounds_max: int = 100) -> int:
        """Give every chunk its vector of `model`; returns how many were made."""
        made = 0
        for _ in range(rounds_max):
            missing = self.chunks.missing_vectors(model=model.name, limit=64)
            if not missing:
                return made
            vectors, lines = model.embed_chunks([stored.chunk for stored in missing])
            made += self.chunks.add_vectors([stored.id for stored in missing], model=model.name, vectors=vectors, lines=lines)
        raise AssertionError("the queue of missing vectors does not end")

    def move(self, path: str, to: str, *, container_id: int = 1) -> None:
        document = self.documents.pop((container_id, path))
        self.documents[container_id, to] = replace(document, path=to)
        self.sql("update document set path = ? where id = ?", to, document.id)

    def delete(self, path: str, *, container_id: int = 1) -> None:
        self.sql("delete from document where id = ?", self.documents.pop((container_id, path)).id)


@contextmanager
def world_on(engine: str, folder: Path, request: pytest.FixtureRequest) -> Iterator[World]:
    """A new store of that kind, closed at the end."""
    clock = FakeClock()
    with ExitStack() as stack:
        store: AnyStore
        if engine == "sqlite":
            store = SqliteStore.open(folder, clock=clock)
        else:
            server: Postgres = request.getfixturevalue("postgres")
            url = stack.enter_context(server.database())
            store = PostgresStore.open(url, folder, clock=clock, acting=SYSTEM)
        stack.callback(store.close)
        made = World(store, clock)
        stack.callback(made.words.close)
        yield made


@contextmanager
def world_of(
    files: Mapping[str, str], folder: Path, request: pytest.FixtureRequest, static: StaticEmbedder, minilm: MiniLmEmbedder
) -> Iterator[World]:
    """Files by path that both models have read, on the engine of the request."""
    with world_on(request.param, folder, request) as made:
        for path, text in files.items():
            made.put(path, text, static)
        made.embed(minilm)
        yield made


@pytest.fixture(params=ENGINES)
def world(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[World]:
    """Every test that takes it runs over both engines."""
    with world_on(request.param, tmp_path, request) as made:
        yield made


@pytest.fixture
def sqlite_world(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[World]:
    """For what is SQLite's own."""
    with world_on("sqlite", tmp_path, request) as made:
        yield made
