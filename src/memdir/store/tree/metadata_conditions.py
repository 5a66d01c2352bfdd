"""Conditions on metadata: as a tree, as a test in Python, and as SQL over `document_facet`. The two agree, a test says so.

Values compare as text, as JSON spells them (`true`, `12`): clients send numbers and booleans as strings.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from memdir.store.database import Transaction, first, run_many
from memdir.store.errors import InvalidError

FACETS_MAX: Final = 1000
"""Values in the metadata of one document."""
KEY_MAX_CHARS: Final = 512
"""What an index entry of every engine has room for."""
HEAD_CHARS: Final = 64
Kind = Literal["metadata", "numeric", "array_contains", "string_contains"]
COMPARISONS: Final[Mapping[str, Callable[[float, float], bool]]] = {
    ">": operator.gt,
    "<": operator.lt,
    ">=": operator.ge,
    "<=": operator.le,
    "=": operator.eq,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Facet:
    """One value of a key: `ordinal` 0 for a plain value, from 1 for the items of a list."""

    key: str
    ordinal: int
    text: str
    number: float | None

    @property
    def folded(self) -> str:
        return self.text.casefold()

    @property
    def head(self) -> str:
        return self.folded[:HEAD_CHARS]


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaf:
    """A condition on one key. Negated, it also holds where the key is missing."""

    key: str
    kind: Kind
    text: str
    number: float | None = None
    comparison: str = "="
    ignore_case: bool = False
    negate: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """All of `parts`, or any of them. No parts: all holds, any does not."""

    every: bool
    parts: tuple[Condition, ...]


Condition = Leaf | Group


def text_of(value: object) -> str | None:
    """A value as conditions see it; None for what they cannot see (null, objects, lists)."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and math.isfinite(value) and value.is_integer():
        return str(int(value))
    if isinstance(value, str):
        return value.replace("\0", "\ufffd")  # PostgreSQL keeps no NUL in text
    return str(value) if isinstance(value, (int, float)) else None


def number_of(value: object) -> float | None:
    """A finite number, also one spelled as text."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def facets(metadata: Mapping[str, Any]) -> list[Facet]:
    """What conditions see of metadata. InvalidError when it holds more than FACETS_MAX values, or a
    key longer than KEY_MAX_CHARS."""
    found: list[Facet] = []
    for key, value in metadata.items():
        if len(key) > KEY_MAX_CHARS:
            raise InvalidError(f"a key of the metadata can have at most {KEY_MAX_CHARS} characters")
        items: Iterable[tuple[int, object]] = enumerate(value, start=1) if isinstance(value, list) else ((0, value),)
        for ordinal, item in items:
            text = text_of(item)
            if text is not None:
                found.append(Facet(key=key.replace("\0", "\ufffd"), ordinal=ordinal, text=text, number=number_of(item)))
        if len(found) > FACETS_MAX:
            raise InvalidError(f"metadata can hold at most {FACETS_MAX} values")
    return found


def record(transaction: Transaction, *, document_id: str, container_id: int, metadata: Mapping[str, Any]) -> None:
    """Write the facets of a document's metadata in place of those it had, as the container's next change of metadata (see
    `store.tree.metadata_filters`). The container's row is, or stays, locked."""
    found = facets(metadata)
    version = first(
        transaction,
        "update container set facets_version = facets_version + 1 where id = ? returning facets_version",
        (container_id,),
    )
    if version is not None:
        transaction.execute("update document set facets_version = ? where id = ?", (version[0], document_id))
    transaction.execute("delete from document_facet where document_id = ?", (document_id,))
    run_many(
        transaction,
        "insert into document_facet (document_id, key, ordinal, container_id, head, text, folded, number) "
        "values (?, ?, ?, ?, ?, ?, ?, ?) on conflict (document_id, key, ordinal) do nothing",
        [(document_id, f.key, f.ordinal, container_id, f.head, f.text, f.folded, f.number) for f in found],
    )


def matches(condition: Condition, metadata: Mapping[str, Any]) -> bool:
    """Whether metadata fulfils a condition."""
    by_key: dict[str, list[Facet]] = {}
    for facet in facets(metadata):
        by_key.setdefault(facet.key, []).append(facet)
    return _matches(condition, by_key)


def _matches(condition: Condition, by_key: Mapping[str, Sequence[Facet]]) -> bool:
    if isinstance(condition, Group):
        results = (_matches(part, by_key) for part in condition.parts)
        return all(results) if condition.every else any(results)
    return any(_fits(condition, facet) for facet in by_key.get(condition.key, ())) != condition.negate


def _fits(leaf: Leaf, facet: Facet) -> bool:
    if (facet.ordinal > 0) != (leaf.kind == "array_contains"):
        return False
    if leaf.kind == "numeric":
        assert leaf.number is not None
        return facet.number is not None and COMPARISONS[leaf.comparison](facet.number, leaf.number)
    have, wanted = (facet.folded, leaf.text.casefold()) if leaf.ignore_case else (facet.text, leaf.text)
    return wanted in have if leaf.kind == "string_contains" else wanted == have


def sql_of(condition: Condition, container_ids: Sequence[int]) -> tuple[str, tuple[Any, ...]]:
    """A condition on `document d` and its bindings. Each leaf is a lookup in the index of `document_facet`."""
    if isinstance(condition, Leaf):
        return _sql_of_leaf(condition, container_ids)
    if not condition.parts:
        return ("1 = 1" if condition.every else "1 = 0"), ()
    rendered = [sql_of(part, container_ids) for part in condition.parts]
    joined = (" and " if condition.every else " or ").join(sql for sql, _ in rendered)
    return f"({joined})", tuple(value for _, bindings in rendered for value in bindings)


def _sql_of_leaf(leaf: Leaf, container_ids: Sequence[int]) -> tuple[str, tuple[Any, ...]]:
    marks = ",".join("?" * len(container_ids))
    folded = leaf.text.casefold()
    column, wanted = ("f.folded", folded) if leaf.ignore_case else ("f.text", leaf.text)
    bindings: tuple[Any, ...]
    if leaf.kind == "numeric":
        test, bindings = f"f.number {leaf.comparison} ?", (leaf.number,)
    elif leaf.kind == "string_contains":
        # `replace` regards case on every engine, `like` does not.
        test, bindings = ("1 = 1", ()) if not wanted else (f"replace({column}, ?, '') <> {column}", (wanted,))
    else:
        test, bindings = f"f.head = ? and {column} = ?", (folded[:HEAD_CHARS], wanted)
    place = "f.ordinal > 0" if leaf.kind == "array_contains" else "f.ordinal = 0"
    sql = (
        f"d.id {'not ' if leaf.negate else ''}in (select f.document_id from document_facet f "  # noqa: S608
        f"where f.container_id in ({marks}) and f.key = ? and {place} and {test})"
    )
    return sql, (*container_ids, leaf.key, *bindings)
