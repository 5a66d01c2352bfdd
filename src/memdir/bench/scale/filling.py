"""A store with a container of any size, in minutes: many files a transaction, and no model at work."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from memdir.bench.scale.material import PASSAGES_PER_FILE, Block, Material, path_of
from memdir.core.errors import MemdirError
from memdir.store.operations import Put
from memdir.store.types import Chunk, Container, Document, Matrix

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
        _indexed(store, documents, texts, (static, material.static(number, block)), (dense, material.dense(number, block)))
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


def _indexed(
    store: Store, documents: list[Document], texts: list[str], static: tuple[str, Matrix], dense: tuple[str, Matrix]
) -> None:
    chunks = store.chunks()
    ids: list[int] = []
    for number, document in enumerate(documents):
        rows = slice(number * PASSAGES_PER_FILE, (number + 1) * PASSAGES_PER_FILE)
        ids += chunks.replace_chunks(document, cut(texts[rows]), model=static[0], vectors=static[1][rows])
    chunks.add_vectors(ids, model=dense[0], vectors=dense[1])


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
