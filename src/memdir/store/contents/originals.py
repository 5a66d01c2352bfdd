"""Files by their contents: what a search for exact text reads, and what its index is made of."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final, NamedTuple

from memdir.store.database import Database, marks_for
from memdir.store.paths import below
from memdir.store.tree.documents import SELECT_DOCUMENT, document_of
from memdir.store.types import Document, Scope

_PAGE: Final = 2000
_ASKED_AT_ONCE: Final = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """Numbers of the last change in a container, and of the last text that was read out of one of its files."""

    seq: int
    texts: int


class Text(NamedTuple):
    """The text beside files with these contents. Another `version` or `at_ms`: another text."""

    content_hash: str
    version: int
    at_ms: int
    size_bytes: int


class OriginalStore:
    """Reads only."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def containers(self) -> list[int]:
        """All of them."""
        return [row[0] for row in self._db.all("select id from container order by id")]

    def position(self, container_id: int) -> Position | None:
        """How far a container is; None when it is gone."""
        row = self._db.one("select last_seq, siblings_version from container where id = ?", (container_id,))
        return None if row is None else Position(seq=row[0], texts=row[1])

    def contents(self, container_id: int) -> dict[str, int]:
        """Hash and size of the contents of all files that have a path."""
        found: dict[str, int] = {}
        after = ""
        while rows := self._db.all(
            "select path, content_hash, size_bytes from document where container_id = ? and kind = 'file' and path > ? "
            "order by path limit ?",
            (container_id, after, _PAGE),
        ):
            found.update((row[1], row[2]) for row in rows)
            after = rows[-1][0]
        return found

    def texts(self, container_id: int) -> list[Text]:
        """The texts beside the files, each once."""
        found: dict[str, Text] = {}
        after = ""
        while rows := self._db.all(
            "select d.path, e.content_hash, e.version, e.at_ms, e.size_bytes from document d "
            "join extraction e on e.content_hash = d.content_hash where d.container_id = ? and d.kind = 'file' "
            "and d.transcription is not null and e.error is null and d.path > ? order by d.path limit ?",
            (container_id, after, _PAGE),
        ):
            found.update((row[1], Text(*row[1:])) for row in rows)
            after = rows[-1][0]
        return [*found.values()]

    def texts_since(self, container_id: int, version: int) -> set[str]:
        """Hashes of the contents of files whose text was read after number `version`."""
        rows = self._db.all(
            "select content_hash from document where container_id = ? and sibling_version > ? and sibling_version > 0",
            (container_id, version),
        )
        return {row[0] for row in rows}

    def changed_since(self, container_id: int, seq: int) -> set[str] | None:
        """Hashes of the contents of files that were put after change `seq`; None when the history does not go back so far."""
        row = self._db.one(
            "select k.last_seq, (select min(c.seq) from change c where c.container_id = k.id) from container k where k.id = ?",
            (container_id,),
        )
        if row is None or row[0] <= seq:
            return set()
        if row[1] is None or row[1] > seq + 1:
            return None
        rows = self._db.all(
            "select distinct d.content_hash from change c join document d on d.id = c.document_id "
            "where c.container_id = ? and c.seq > ? and d.container_id = c.container_id and d.kind = 'file'",
            (container_id, seq),
        )
        return {row[0] for row in rows}

    def with_contents(self, scope: Scope, hashes: Iterable[str]) -> list[Document]:
        """Files in scope with one of these contents, in path order."""
        condition, bindings = _inside(scope)
        found: list[Document] = []
        waiting = iter(sorted(hashes))
        while some := list(islice(waiting, _ASKED_AT_ONCE)):
            rows = self._db.all(
                f"{SELECT_DOCUMENT} where d.content_hash in ({marks_for(some)}) and d.container_id = ? "
                f"and d.kind = 'file' and {condition}",
                (*some, scope.container_id, *bindings),
            )
            found += map(document_of, rows)
        return sorted(found, key=lambda document: document.path or "")

    def ids(self, scope: Scope) -> set[str]:
        """The documents of the files in scope."""
        condition, bindings = _inside(scope)
        rows = self._db.all(
            f"select d.id from document d where d.container_id = ? and d.kind = 'file' and {condition}",  # noqa: S608
            (scope.container_id, *bindings),
        )
        return {row[0] for row in rows}

    def files(self, scope: Scope, *, with_text: bool = False) -> Iterator[Document]:
        """Files in scope in path order, a page at a time; or only those that have a text, or an error, beside them."""
        condition, bindings = _inside(scope)
        if with_text:
            condition += " and d.transcription is not null"
        after = ""
        while rows := self._db.all(
            f"{SELECT_DOCUMENT} where d.container_id = ? and d.kind = 'file' and {condition} and d.path > ? "
            "order by d.path limit ?",
            (scope.container_id, *bindings, after, _PAGE),
        ):
            page = [document_of(row) for row in rows]
            yield from page
            after = page[-1].path or after


def _inside(scope: Scope) -> tuple[str, Sequence[str]]:
    if scope.exact:
        return "d.path = ?", (scope.folder,)
    if scope.folder == "/":
        return "d.path is not null", ()
    first, end = below(scope.folder)
    return "(d.path = ? or (d.path >= ? and d.path < ?))", (scope.folder, first, end)
