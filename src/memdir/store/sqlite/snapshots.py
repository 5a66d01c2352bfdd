"""The vectors of a container in memory, brought up to date from `vector_event` and not read anew.

A snapshot that was handed out never changes: rows are only appended to the shared matrix behind its end, and the ids and
paths of a newer snapshot are new arrays. A chunk that is gone leaves a row with id -1 until a quarter of the rows are such.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Final

import apsw
import numpy as np
import numpy.typing as npt

from memdir.core.sqlite import Database, Row
from memdir.store.sqlite.vectors import VectorSnapshot
from memdir.store.types import Matrix

_EVENTS_KEPT: Final = 20_000
"""Events older than this many are dropped; a cache that is further behind loads its container anew."""
_PRUNE_EVERY: Final = 5_000
_ENTRIES_MAX: Final = 256


@dataclass(slots=True, kw_only=True)
class _Entry:
    """One container and model. `matrix` has spare rows behind `size`."""

    model_id: int
    event_id: int
    size: int
    dead: int
    matrix: Matrix
    ids: npt.NDArray[np.int64]
    paths: list[str]
    documents: list[str]
    row_of: dict[int, int] = field(default_factory=dict)
    rows_of_document: dict[str, set[int]] = field(default_factory=dict)
    snapshot: VectorSnapshot | None = None

    def index(self) -> None:
        for row, (chunk_id, document_id) in enumerate(zip(self.ids[: self.size].tolist(), self.documents, strict=True)):
            self.row_of[chunk_id] = row
            self.rows_of_document.setdefault(document_id, set()).add(row)

    @property
    def size_bytes(self) -> int:
        return int(self.matrix.nbytes) + 300 * self.size


class SnapshotCache:
    """Snapshots by container and model, bounded by bytes. Any thread may call `get`; one at a time works."""

    def __init__(self, db: Database, *, max_bytes: int) -> None:
        self._db = db
        self._max_bytes = max_bytes
        self._lock = threading.Lock()
        self._entries: OrderedDict[tuple[int, str], _Entry] = OrderedDict()
        self._pruned_at = 0

    def get(self, container_id: int, model: str) -> VectorSnapshot:
        """The vectors as of every commit before this call."""
        key = (container_id, model)
        with self._lock:
            reader = self._db.reader
            reader.execute("begin")
            try:
                entry = self._refreshed(reader, container_id, model)
            finally:
                reader.execute("rollback")
            if entry is None:
                self._entries.pop(key, None)
                return _EMPTY
            self._entries[key] = entry
            self._entries.move_to_end(key)
            self._shrink()
            if entry.snapshot is None:
                entry.snapshot = VectorSnapshot(
                    ids=entry.ids[: entry.size].copy(),
                    matrix=entry.matrix[: entry.size],
                    paths=tuple(entry.paths),
                    documents=tuple(entry.documents),
                )
            return entry.snapshot

    def prune(self, connection: apsw.Connection) -> None:
        """Inside a write transaction: drop old events now and then."""
        rows: list[Row] = connection.execute("select coalesce(max(id), 0) from vector_event").fetchall()
        last = rows[0][0]
        if last - self._pruned_at >= _PRUNE_EVERY:
            connection.execute("delete from vector_event where id <= ?", (last - _EVENTS_KEPT,))
            self._pruned_at = last

    def _shrink(self) -> None:
        total = sum(entry.size_bytes for entry in self._entries.values())
        while len(self._entries) > 1 and (total > self._max_bytes or len(self._entries) > _ENTRIES_MAX):
            _, oldest = self._entries.popitem(last=False)
            total -= oldest.size_bytes

    def _refreshed(self, reader: apsw.Connection, container_id: int, model: str) -> _Entry | None:
        bounds: list[Row] = reader.execute(
            "select coalesce(min(id), 0), coalesce((select seq from sqlite_sequence where name = 'vector_event'), 0) "
            "from vector_event"
        ).fetchall()
        first, last = bounds[0]
        entry = self._entries.get((container_id, model))
        if entry is not None:
            if entry.event_id == last:
                return entry
            if first <= entry.event_id + 1 and _apply_events(reader, entry, container_id, last):
                return entry
        row = reader.execute("select id from vector_model where name = ?", (model,)).fetchone()
        return None if row is None else _load(reader, container_id, int(row[0]), last)


def _load(reader: apsw.Connection, container_id: int, model_id: int, event_id: int) -> _Entry | None:
    ids: list[int] = []
    blobs: list[bytes] = []
    paths: list[str] = []
    documents: list[str] = []
    rows = reader.execute(
        "select c.id, v.vector, coalesce(d.path, ''), d.id from chunk c join document d on d.id = c.document_id "
        "join chunk_vector v on v.chunk_id = c.id and v.model_id = ? where c.container_id = ? order by c.id",
        (model_id, container_id),
    )
    for chunk_id, blob, path, document_id in rows:
        ids.append(chunk_id)
        blobs.append(blob)
        paths.append(path)
        documents.append(document_id)
    if not ids:
        return None
    entry = _Entry(
        model_id=model_id,
        event_id=event_id,
        size=len(ids),
        dead=0,
        matrix=_matrix(blobs),
        ids=np.array(ids, dtype=np.int64),
        paths=paths,
        documents=documents,
    )
    entry.index()
    return entry


def _matrix(blobs: list[bytes]) -> Matrix:
    return np.frombuffer(b"".join(blobs), dtype="<f2").reshape(len(blobs), -1).astype(np.float32)


def _apply_events(reader: apsw.Connection, entry: _Entry, container_id: int, last: int) -> bool:
    """Bring `entry` to event `last`; False when loading anew is the better way."""
    added: dict[int, None] = {}
    changed = False
    events: list[Row] = reader.execute(
        "select kind, chunk_id, model_id, document_id from vector_event "
        "where id > ? and id <= ? and container_id = ? order by id",
        (entry.event_id, last, container_id),
    ).fetchall()
    for kind, chunk_id, model_id, document_id in events:
        if kind == "add" and model_id == entry.model_id:
            added[chunk_id] = None
        elif kind == "drop":
            added.pop(chunk_id, None)
            changed |= _drop(entry, chunk_id)
        elif kind == "path":
            changed |= _repath(reader, entry, document_id)
    if entry.dead * 4 > entry.size:
        return False
    changed |= _append(reader, entry, list(added))
    entry.event_id = last
    if changed:
        entry.snapshot = None
    return True


def _drop(entry: _Entry, chunk_id: int) -> bool:
    row = entry.row_of.pop(chunk_id, None)
    if row is None:
        return False
    entry.ids[row] = -1
    entry.rows_of_document.get(entry.documents[row], set()).discard(row)
    entry.dead += 1
    return True


def _repath(reader: apsw.Connection, entry: _Entry, document_id: str) -> bool:
    rows = entry.rows_of_document.get(document_id)
    found = reader.execute("select coalesce(path, '') from document where id = ?", (document_id,)).fetchone()
    if not rows or found is None:
        return False
    for row in rows:
        entry.paths[row] = found[0]
    return True


def _append(reader: apsw.Connection, entry: _Entry, chunk_ids: list[int]) -> bool:
    changed = False
    for chunk_id in chunk_ids:
        if chunk_id in entry.row_of:
            continue
        found = reader.execute(
            "select v.vector, coalesce(d.path, ''), d.id from chunk c join document d on d.id = c.document_id "
            "join chunk_vector v on v.chunk_id = c.id and v.model_id = ? where c.id = ?",
            (entry.model_id, chunk_id),
        ).fetchone()
        if found is None:
            continue
        blob, path, document_id = found
        if entry.size == len(entry.matrix):
            _grow(entry)
        entry.matrix[entry.size] = np.frombuffer(blob, dtype="<f2")
        entry.ids[entry.size] = chunk_id
        entry.paths.append(path)
        entry.documents.append(document_id)
        entry.row_of[chunk_id] = entry.size
        entry.rows_of_document.setdefault(document_id, set()).add(entry.size)
        entry.size += 1
        changed = True
    return changed


def _grow(entry: _Entry) -> None:
    spare = max(256, len(entry.matrix) // 2)
    entry.matrix = np.concatenate((entry.matrix, np.zeros((spare, entry.matrix.shape[1]), dtype=np.float32)))
    entry.ids = np.concatenate((entry.ids, np.full(spare, -1, dtype=np.int64)))


_EMPTY: Final = VectorSnapshot(
    ids=np.zeros(0, dtype=np.int64), matrix=np.zeros((0, 0), dtype=np.float32), paths=(), documents=()
)
