"""The text that was read out of contents, by the hash of the contents: nothing is read twice, whoever has the same bytes."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from memdir.core.clock import Clock
from memdir.store.database import Database, Row, fetch, marks_for
from memdir.store.paths import below

_COLUMNS: Final = "content_hash, version, kind, media_type, title, size_bytes, error, needs, at_ms"
_MANY_MAX: Final = 500
_LEVEL: Final = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Extracted:
    """What is known about the text of some contents. `error` is None when there is one."""

    content_hash: str
    version: int
    kind: str
    media_type: str
    title: str
    size_bytes: int
    error: str | None = None
    needs: str = ""
    at_ms: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class SiblingRow:
    """A document that has text, or an error, beside it, or had one."""

    sibling_version: int
    path: str
    content_hash: str
    transcription: str | None
    extracted: Extracted | None


class ExtractionStore:
    """Texts by content hash, within the organisation that acts."""

    def __init__(self, db: Database, clock: Clock) -> None:
        self._db = db
        self._clock = clock

    def known(self, content_hashes: Sequence[str]) -> dict[str, Extracted]:
        """Those that were read, or tried, by their hash."""
        found: dict[str, Extracted] = {}
        for first in range(0, len(content_hashes), _MANY_MAX):
            part = content_hashes[first : first + _MANY_MAX]
            rows = self._db.all(
                f"select {_COLUMNS} from extraction where content_hash in ({marks_for(part)})",  # noqa: S608
                part,
            )
            found.update((row[0], _extracted(row)) for row in rows)
        return found

    def text(self, content_hash: str) -> str | None:
        """The text; None when there is none, or it could not be read."""
        row = self._db.one("select text from extraction where content_hash = ?", (content_hash,))
        return None if row is None or row[0] is None else zlib.decompress(bytes(row[0])).decode()

    def put(self, extracted: Extracted, text: str | None) -> bool:
        """Keep what was read, in the place of an older one. False when the contents are gone meanwhile."""
        data = None if text is None else zlib.compress(text.encode(), _LEVEL)
        with self._db.write() as connection:
            if not fetch(connection, "select 1 from blob where hash = ?", (extracted.content_hash,)):
                return False
            connection.execute("delete from extraction where content_hash = ?", (extracted.content_hash,))
            connection.execute(
                "insert into extraction (content_hash, version, kind, media_type, title, text, size_bytes, error, needs, "
                "at_ms) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) on conflict do nothing",
                (
                    *(extracted.content_hash, extracted.version, extracted.kind, extracted.media_type, extracted.title),
                    *(data, extracted.size_bytes, extracted.error, extracted.needs, self._clock.now_ns() // 1_000_000),
                ),
            )
        return True

    def beside(self, container_id: int, *, since: int, limit: int) -> list[SiblingRow]:
        """Documents whose text, or its absence, is newer than number `since`, in the order of these numbers."""
        rows = self._db.all(
            "select sibling_version, path, content_hash, transcription from document where container_id = ? "
            "and sibling_version > ? and sibling_version > 0 and path is not null order by sibling_version limit ?",
            (container_id, since, limit),
        )
        known = self.known([row[2] for row in rows])
        return [
            SiblingRow(
                sibling_version=row[0], path=row[1], content_hash=row[2], transcription=row[3], extracted=known.get(row[2])
            )
            for row in rows
        ]

    def is_beside(self, container_id: int, content_hash: str, folder: str) -> bool:
        """Whether a file with these contents, in the folder or below it, has a text beside it."""
        first, end = below(folder)
        row = self._db.one(
            "select 1 from document where content_hash = ? and container_id = ? and transcription is not null "
            "and (path = ? or (path >= ? and path < ?)) limit 1",
            (content_hash, container_id, folder, first, end),
        )
        return row is not None


def _extracted(row: Row) -> Extracted:
    return Extracted(
        content_hash=row[0],
        version=row[1],
        kind=row[2],
        media_type=row[3],
        title=row[4],
        size_bytes=row[5],
        error=row[6],
        needs=row[7],
        at_ms=row[8],
    )
