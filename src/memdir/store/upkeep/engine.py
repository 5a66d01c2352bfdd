"""What looking after a store needs of its engine: which tables there are, whether they are sound, giving space back.

`check`, `backup` and `restore` are written once over this and `database`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Final, Protocol

from memdir.store.database import Transaction

DERIVED: Final = frozenset(
    {"chunk", "chunk_words", "chunk_tie", "document_words", "document_name", "chunk_vector", "vector_model", "vector_event"}
    | {"extraction"}
)
"""Made again from the documents; neither backed up nor restored."""
RUNNING: Final = frozenset({"job_clock", "blob_trash", "blob_hold", "schema_version"})
"""About the running store and nobody's data: a restored store has its own."""
PASSING: Final = frozenset({"job", "idempotency", "answer", "export_hold"})
"""Work, which is asked for again, answers that are kept a day, and what exports under way hold: not backed up."""
BLOB_HOLDERS: Final = {"document": "kind <> 'dir'", "document_version": "true", "export_hold": "true"}
"""Tables whose `content_hash` is a reference to a blob, and which of their rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table of the store."""

    name: str
    columns: tuple[str, ...]
    key: tuple[str, ...]
    """Primary key: every row has another one, and rows are read in its order."""
    bytes_columns: frozenset[str]
    required: frozenset[str]
    """Columns that an insert must name."""
    numbered: str | None
    """The column that the engine counts up by itself."""


@dataclass(slots=True, kw_only=True)
class Finding:
    """Something that is not as it must be. `kind` is a fixed word, `detail` a sentence."""

    kind: str
    detail: str
    repaired: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Versions:
    """Numbers of schemas: of the store as it is, and of the one that this memdir makes."""

    current: int
    known: int


class Upkeep(Protocol):
    """An engine from its caretaker's side. Any number of processes may read; what else is said of each method."""

    @property
    def engine(self) -> str:
        """`sqlite` or `postgres`."""
        ...

    @property
    def blob_owner(self) -> str:
        """Columns, each followed by a comma, that come before `hash` in the key of `blob`: contents are shared within them."""
        ...

    def tables(self) -> list[Table]:
        """Every table, those that others refer to first."""
        ...

    def alone(self) -> AbstractContextManager[Transaction]:
        """A transaction during which nobody else writes, and in which every row of everybody can be written."""
        ...

    def owning(self, transaction: Transaction, owner: Sequence[Any]) -> AbstractContextManager[None]:
        """Inside the block rows of `blob` are written for that owner: its values of the columns of `blob_owner`."""
        ...

    def reading(self) -> AbstractContextManager[Transaction]:
        """Reads of one moment, of every row of everybody."""
        ...

    def damage(self) -> Iterator[Finding]:
        """What the engine itself finds wrong with its files, indexes and references."""
        ...

    def mend(self, finding: Finding) -> bool:
        """Repair what `damage` found. Returns whether it could."""
        ...

    def renumber(self, transaction: Transaction, table: Table) -> None:
        """Rows with numbers of their own were put into a numbered table: count on behind the largest."""
        ...

    def compact(self, *, full: bool) -> bool:
        """Give space back, and bring the planner's statistics up to date. `full` also rewrites what is only partly used; nobody
        else can write meanwhile. Returns whether nothing that was deleted is kept for somebody who still reads: in SQLite's
        write-ahead log, in PostgreSQL's tables (there with `full` only)."""
        ...

    def empty_log(self) -> bool:
        """What was deleted is not in the engine's log any more. False: a reader keeps it; try again. An engine that several
        processes share does that by itself, later."""
        ...

    def size_bytes(self) -> int:
        """What the database takes, its log included."""
        ...
