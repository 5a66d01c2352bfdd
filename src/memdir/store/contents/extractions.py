"""The text that was read out of contents, by the hash of the contents: nothing is read twice, whoever has the same bytes."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from memdir.core.clock import Clock
from memdir.store.database import Database, fetch, marks_for

_COLUMNS: Final = "content_hash, version, kind, media_type, title, size_bytes, error, needs"
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


@dataclass(frozen=True, slots=True, kw_only=True)
class SiblingRow:
    """A document that has text, or an error, beside it."""

    sibling_version: int
    path: str
    content_hash: str
    transcription: str
    size_bytes: int
    error: str | None


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
            for row in rows:
                found[row[0]] = Extracted(
                    content_hash=row[0],
                    version=row[1],
                    kind=row[2],
                    media_type=row[3],
                    title=row[4],
                    size_bytes=row[5],
                    error=row[6],
                    needs=row[7],
                )
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
            "select d.sibling_version, d.path, d.content_hash, d.transcription, e.size_bytes, e.error from document d "
            "join extraction e on e.content_hash = d.content_hash where d.container_id = ? and d.sibling_version > ? "
            "and d.sibling_version > 0 and d.path is not null and d.transcription is not null "
            "order by d.sibling_version limit ?",
            (container_id, since, limit),
        )
        return [
            SiblingRow(
                sibling_version=row[0], path=row[1], content_hash=row[2], transcription=row[3], size_bytes=row[4], error=row[5]
            )
            for row in rows
        ]

    def last_version(self, container_id: int) -> int:
        """The number of the last change of any text beside a file."""
        row = self._db.one("select siblings_version from container where id = ?", (container_id,))
        return 0 if row is None else int(row[0])
