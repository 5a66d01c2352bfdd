"""Reading passages back: the same statements for every engine. Chunk stores build on it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from memdir.store.database import Database, Row, marks_for
from memdir.store.paths import below
from memdir.store.types import Chunk, Origin, Scope, StoredChunk

COLUMNS: Final = (
    "c.id, c.document_id, d.path, c.revision, d.updated_at_ms, "
    "c.ordinal, c.start_byte, c.end_byte, c.start_line, c.end_line, c.text, c.context"
)
FROM: Final = "from chunk c join document d on d.id = c.document_id "
IN_MAX: Final = 500
"""Values in one `in (…)`: statements stay short, and few different ones stay in the caches of statements."""


class PassageReader:
    """The reading half of a chunk store."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self._models: dict[str, int] = {}

    def chunks(self, chunk_ids: Sequence[int]) -> dict[int, StoredChunk]:
        """The stored chunks that still exist."""
        found: dict[int, StoredChunk] = {}
        for first in range(0, len(chunk_ids), IN_MAX):
            part = [int(chunk_id) for chunk_id in chunk_ids[first : first + IN_MAX]]
            marks = marks_for(part)
            rows = self._db.all(f"select {COLUMNS} {FROM} where c.id in ({marks})", part)
            found.update((row[0], self._stored(row)) for row in rows)
        return found

    def origins(self, chunk_ids: Sequence[int]) -> dict[int, Origin]:
        """The files of chunks that still exist."""
        found: dict[int, Origin] = {}
        for first in range(0, len(chunk_ids), IN_MAX):
            part = [int(chunk_id) for chunk_id in chunk_ids[first : first + IN_MAX]]
            rows = self._db.all(f"select c.id, d.id, d.path, d.searched_last {FROM} where c.id in ({marks_for(part)})", part)
            found.update((row[0], Origin(document_id=row[1], path=row[2], searched_last=row[3] is not None)) for row in rows)
        return found

    def document_chunks(self, document_id: str) -> Sequence[StoredChunk]:
        """All chunks of a document in order."""
        rows = self._db.all(f"select {COLUMNS} {FROM} where c.document_id = ? order by c.ordinal", (document_id,))
        return [self._stored(row) for row in rows]

    def missing_vectors(self, *, model: str, limit: int) -> Sequence[StoredChunk]:
        """Chunks without a vector of `model`, newest documents first, each document from its beginning."""
        rows = self._db.all(
            f"select {COLUMNS} {FROM} where not exists ("  # noqa: S608
            "select 1 from chunk_vector v where v.chunk_id = c.id "
            "and v.model_id = (select id from vector_model where name = ?)) "
            "order by d.updated_at_ms desc, d.id desc, c.ordinal limit ?",
            (model, limit),
        )
        return [self._stored(row) for row in rows]

    def line_vectors(self, chunk_ids: Sequence[int], *, model: str) -> dict[int, bytes]:
        """What `add_vectors` got as `lines`, for those chunks that have it."""
        model_id = self._known_model(model)
        found: dict[int, bytes] = {}
        for first in range(0, len(chunk_ids) if model_id is not None else 0, IN_MAX):
            part = [int(chunk_id) for chunk_id in chunk_ids[first : first + IN_MAX]]
            marks = marks_for(part)
            found.update(
                self._db.all(
                    f"select chunk_id, lines from chunk_vector where model_id = ? and chunk_id in ({marks}) "  # noqa: S608
                    "and lines is not null",
                    (model_id, *part),
                )
            )
        return found

    def _known_model(self, name: str) -> int | None:
        """The number of a model, None for one that no vector was stored of."""
        if name not in self._models:
            row = self._db.one("select id from vector_model where name = ?", (name,))
            if row is None:
                return None
            self._models[name] = int(row[0])
        return self._models[name]

    def _text(self, kept: str) -> str:
        """A text from what the engine keeps of it."""
        return kept

    def _stored(self, row: Row) -> StoredChunk:
        return StoredChunk(
            id=row[0],
            document_id=row[1],
            path=row[2],
            revision=row[3],
            updated_at_ms=row[4],
            chunk=Chunk(
                ordinal=row[5],
                start_byte=row[6],
                end_byte=row[7],
                start_line=row[8],
                end_line=row[9],
                text=self._text(row[10]),
                context=self._text(row[11]),
            ),
        )


def is_whole(scope: Scope) -> bool:
    """Whether a scope is its whole container."""
    return is_everywhere(scope) and scope.chosen is None


def is_everywhere(scope: Scope) -> bool:
    """Whether a scope leaves out no place (it may leave out documents)."""
    return scope.folder == "/" and not scope.exact


def in_place(path: str | None, scope: Scope) -> bool:
    """Whether `path` stands in the place of `scope`; documents without a path (None or '') do in the whole only."""
    if is_everywhere(scope):
        return True
    if not path:
        return False
    return path == scope.folder if scope.exact else path.startswith(below(scope.folder.rstrip("/"))[0])


def place_condition(scope: Scope) -> tuple[str, tuple[object, ...]]:
    """Join and condition that keep chunks `c` in the place of `scope`, whichever documents it takes there. Below a folder is
    the range from `folder/` to `folder0`."""
    if is_everywhere(scope):
        return "where c.container_id = ?", (scope.container_id,)
    join = "join document d on d.id = c.document_id where c.container_id = ? and "
    if scope.exact:
        return join + "d.path = ?", (scope.container_id, scope.folder)
    return join + "d.path >= ? and d.path < ?", (scope.container_id, *below(scope.folder.rstrip("/")))
