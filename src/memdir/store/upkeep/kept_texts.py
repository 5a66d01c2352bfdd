"""Every text that the database keeps of a container beside its files: former contents, facts, passages, answers to be repeated.
For forgetting, which takes them away, and proves that they are gone."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from memdir.store.acting import narrowed_to
from memdir.store.contents.blobs import BlobStore
from memdir.store.database import Database, Transaction, fetch, marks_for, repeated
from memdir.store.passages.reading import IN_MAX
from memdir.store.types import Container

_PAGE: Final = 1000
_PASSAGES: Final = (
    "select c.id, d.path, c.context || ' ' || c.text from chunk c join document d on d.id = c.document_id "
    "where c.container_id = ? and c.id > ? order by c.id limit ?"
)
_NOTES: Final = (
    "select a.number, d.path, a.content || ' ' || a.tags || ' ' || a.metadata from agent_memory a "
    "join document d on d.id = a.document_id where a.container_id = ? and a.number > ? order by a.number limit ?"
)
_LOOSE: Final = "select id from document where container_id = ? and path is null and id > ? order by id limit ?"
_FACTS: Final = "select id, null, text from memory where container_id = ? and id > ? order by id limit ?"
_FORMER: Final = (
    "select id, path, content_hash from document_version where container_id = ? and id > ? and kind = 'file' "
    "order by id limit ?"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Former:
    """A former content: the number of its version, where it stood, and its contents' hash."""

    version: int
    path: str | None
    content_hash: str


class KeptTexts:
    """Reads, and deletes for good."""

    def __init__(self, db: Database, blobs: BlobStore) -> None:
        self._db = db
        self._blobs = blobs

    def derived(self, container_id: int) -> Iterator[tuple[str, str]]:
        """What was made of files, and where: `passage of /a.md`, `memory /memory/x.md`."""
        for name, statement in (("passage of", _PASSAGES), ("memory", _NOTES)):
            for _, path, text in self._pages(statement, container_id, 0):
                yield f"{name} {path or 'a document without a place'}", text

    def facts(self, container_id: int) -> Iterator[tuple[str, str]]:
        """Ids and texts of all facts, superseded and forgotten ones too."""
        for fact_id, _, text in self._pages(_FACTS, container_id, ""):
            yield str(fact_id), text

    def former(self, container_id: int) -> Iterator[Former]:
        """All former contents."""
        for version, path, content_hash in self._pages(_FORMER, container_id, 0):
            assert isinstance(version, int)
            yield Former(version=version, path=path, content_hash=content_hash)

    def loose(self, container_id: int) -> Iterator[list[str]]:
        """Ids of documents without a place, in pages."""
        after = ""
        while rows := self._db.all(_LOOSE, (container_id, after, IN_MAX)):
            yield [row[0] for row in rows]
            after = rows[-1][0]

    def _pages(self, statement: str, container_id: int, first: int | str) -> Iterator[tuple[int | str, str | None, str]]:
        after = first
        while rows := self._db.all(statement, (container_id, after, _PAGE)):
            yield from ((row[0], row[1], row[2]) for row in rows)
            after = rows[-1][0]

    def drop_facts(self, container: Container, ids: Sequence[str]) -> None:
        """Versions of facts go, with their vectors and sources."""

        def drop(connection: Transaction) -> None:
            for begin in range(0, len(ids), IN_MAX):
                some = ids[begin : begin + IN_MAX]
                connection.execute(f"delete from memory where id in ({marks_for(some)})", some)  # noqa: S608
            connection.execute("update container set profile_version = profile_version + 1 where id = ?", (container.id,))

        with narrowed_to(container.org_id):
            repeated(self._db, drop)

    def drop_former(self, container: Container, versions: Sequence[int]) -> None:
        """Former contents go."""

        def drop(connection: Transaction) -> list[str]:
            rows = []
            for begin in range(0, len(versions), IN_MAX):
                some = versions[begin : begin + IN_MAX]
                rows += fetch(
                    connection,
                    f"delete from document_version where id in ({marks_for(some)}) returning content_hash",  # noqa: S608
                    some,
                )
            return self._blobs.release(connection, [row[0] for row in rows])

        with narrowed_to(container.org_id):
            orphans = repeated(self._db, drop)
        self._blobs.tidy(orphans)

    def drop_answers(self, container: Container, matches: Callable[[str], bool]) -> None:
        """Answers that would be repeated to who asks again, and say it."""

        def drop(connection: Transaction) -> None:
            for key, answer in fetch(connection, "select key, answer from idempotency where container_id = ?", (container.id,)):
                if matches(answer):
                    connection.execute("delete from idempotency where container_id = ? and key = ?", (container.id, key))
            for caller, key, body in fetch(
                connection, "select caller, key, body from answer where org_id = ? and body is not null", (container.org_id,)
            ):
                if matches(bytes(body).decode("utf-8", "replace")):
                    connection.execute(
                        "delete from answer where org_id = ? and caller = ? and key = ?", (container.org_id, caller, key)
                    )

        with narrowed_to(container.org_id):
            repeated(self._db, drop)
