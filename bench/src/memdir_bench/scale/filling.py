"""A store with a container of any size, in minutes: many files a transaction, and no model at work.

On SQLite the rows of passages are written straight into its tables, ten thousand passages a transaction, by the statements
that the store itself uses; its triggers keep words and logs as ever. That is twice as fast as file by file, and what no user
does: the rate is of filling, not of the pipeline (`pipeline_rate` is).
"""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from memdir.core.errors import MemdirError
from memdir.store.database import fetch
from memdir.store.passages.entity_links import tied
from memdir.store.text.passage_text import text_hash
from memdir.store.tree.operations import Put
from memdir.store.types import Chunk, Container, Document, Matrix
from memdir_bench.scale.material import PASSAGES_PER_FILE, Block, Material, path_of

if TYPE_CHECKING:
    from memdir.store.store import Store

ORG: Final = "local"
"""The organisation that the key of a server's own user opens."""
TAG: Final = "scale"
TEAMS: Final = 20
"""A filter for one of them leaves a twentieth."""


def fill(store: Store, material: Material, passages: int, *, static: str, dense: str, told: Callable[[int], None]) -> int:
    """A container with so many passages; returns its id. What the pipeline would do is done: no work is left."""
    container = store.containers.ensure(ORG, TAG)
    for number, rows in material.blocks(passages):
        block = material.block(number, rows)
        texts = material.texts(block)
        documents = _files(store, container, block, texts)
        vectors = {static: material.static(number, block), dense: material.dense(number, block)}
        if store.upkeep().engine == "sqlite":
            _written(store, documents, texts, vectors)
        else:
            _indexed(store, documents, texts, vectors)
        told(number * len(block) + rows)
    with store.upkeep().alone() as connection:
        connection.execute("delete from job where container_id = ?", (container.id,))
        connection.execute(
            "update document set status = 'done', indexed_hash = content_hash where container_id = ? and kind = 'file'",
            (container.id,),
        )
    return container.id


def _files(store: Store, container: Container, block: Block, texts: list[str]) -> list[Document]:
    operations = []
    for at in range(0, len(texts), PASSAGES_PER_FILE):
        file = block.first_file + at // PASSAGES_PER_FILE
        data = io.BytesIO("\n".join(texts[at : at + PASSAGES_PER_FILE]).encode())
        with store.blobs.upload() as upload:
            upload.write(data.getvalue())
            blob = upload.finish()
        operations.append(Put(path=path_of(file), blob=blob, metadata={"team": f"t{file % TEAMS}"}))
    documents = []
    for outcome in store.files.apply_all(container, operations):
        if isinstance(outcome, MemdirError):
            raise outcome
        assert outcome.document is not None
        documents.append(outcome.document)
    return documents


def _indexed(store: Store, documents: list[Document], texts: list[str], vectors: Mapping[str, Matrix]) -> None:
    """Through the store's own way."""
    chunks = store.chunks()
    (static, first), *others = vectors.items()
    ids: list[int] = []
    for number, document in enumerate(documents):
        rows = slice(number * PASSAGES_PER_FILE, (number + 1) * PASSAGES_PER_FILE)
        ids += chunks.replace_chunks(document, cut(texts[rows]), model=static, vectors=first[rows])
    for model, matrix in others:
        chunks.add_vectors(ids, model=model, vectors=matrix)


def _written(store: Store, documents: list[Document], texts: list[str], vectors: Mapping[str, Matrix]) -> None:
    """Straight into the tables."""
    made = [
        (document, chunk)
        for number, document in enumerate(documents)
        for chunk in cut(texts[number * PASSAGES_PER_FILE : (number + 1) * PASSAGES_PER_FILE])
    ]
    with store.upkeep().alone() as connection:
        ((last,),) = fetch(connection, "select coalesce(max(id), 0) from chunk")
        connection.executemany(_CHUNK, [_row(last + 1 + at, *pair) for at, pair in enumerate(made)])
        for model, matrix in vectors.items():
            connection.execute("insert or ignore into vector_model (name) values (?)", (model,))
            packed = matrix.astype("<f2")
            connection.executemany(
                "insert into chunk_vector select id, ?, ?, null from vector_model where name = ?",
                [(last + 1 + at, packed[at].tobytes(), model) for at in range(len(made))],
            )
        connection.executemany(
            "insert into chunk_tie (container_id, number, chunk_id) values (?, ?, ?)",
            sorted(
                (document.container_id, number, last + 1 + at)
                for at, ((document, _), numbers) in enumerate(zip(made, tied([chunk for _, chunk in made]), strict=True))
                for number in numbers
            ),
        )


_CHUNK: Final = (
    "insert into chunk (id, document_id, container_id, revision, ordinal, start_byte, end_byte, start_line, end_line, "
    "text, context, text_hash) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)


def _row(chunk_id: int, document: Document, chunk: Chunk) -> tuple[object, ...]:
    place = (chunk.ordinal, chunk.start_byte, chunk.end_byte, chunk.start_line, chunk.end_line)
    said = (chunk.text, chunk.context, text_hash(chunk))
    return (chunk_id, document.id, document.container_id, document.revision, *place, *said)


def cut(texts: list[str]) -> list[Chunk]:
    """A passage for each line."""
    made = []
    start = 0
    for ordinal, text in enumerate(texts):
        end = start + len(text)
        line = ordinal + 1
        made.append(
            Chunk(
                ordinal=ordinal, start_byte=start, end_byte=end, start_line=line, end_line=line, text=text, context=""
            )
        )  # fmt: skip
        start = end + 1
    return made
