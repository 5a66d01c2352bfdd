"""Which documents of a container a condition on metadata lets pass: a set that every search index respects before it cuts.

A container counts the changes of its documents' metadata (`facets_version`), and every document carries the number of its last
one. What was chosen for a condition is kept with the number it was true at; when others were written since, only those are
asked again. Writers of one container go one after the other (its row is locked), so no number is seen before a smaller one.

A document without any metadata has no number and is never looked at: it passes or not, as all of its kind do, and the set names
only what is different (`Chosen.but`). A set may name documents that are gone; their ids are not used again.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from memdir.store.database import Database, Transaction, fetch, first
from memdir.store.tree.metadata_conditions import Condition, Group, matches, sql_of
from memdir.store.types import Chosen

_KEPT_MAX: Final = 64
"""Sets held at a time, over all containers; the least used go first."""
_IDS_MAX: Final = 4_000_000
"""Ids in all of them together; one set alone may be larger."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Known:
    version: int
    chosen: Chosen


class Chooser:
    """Sets by container and condition. Any thread may call."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self._lock = threading.Lock()
        self._known: OrderedDict[tuple[int, Condition], _Known] = OrderedDict()

    def chosen(self, container_id: int, condition: Condition) -> Chosen:
        """The documents that fulfil `condition`, as of every commit before this call; the same object as before when none of
        them changed."""
        key = (container_id, condition)
        with self._lock:
            known = self._known.get(key)
        with self._db.snapshot() as reader:
            row = first(reader, "select facets_version from container where id = ?", (container_id,))
            version = 0 if row is None else int(row[0])
            if known is not None and known.version <= version:
                chosen = known.chosen if known.version == version else _again(reader, container_id, condition, known)
            else:  # none yet; or the container was replaced by an older copy of itself
                chosen = _from_the_start(reader, container_id, condition)
        with self._lock:
            self._known[key] = _Known(version=version, chosen=chosen)
            self._known.move_to_end(key)
            total = sum(len(item.chosen.ids) for item in self._known.values())
            while len(self._known) > 1 and (len(self._known) > _KEPT_MAX or total > _IDS_MAX):
                _, oldest = self._known.popitem(last=False)
                total -= len(oldest.chosen.ids)
        return chosen


def _from_the_start(reader: Transaction, container_id: int, condition: Condition) -> Chosen:
    but = matches(condition, {})
    sql, bindings = sql_of(condition, (container_id,))
    with_metadata = (
        " and exists (select 1 from document_facet o where o.document_id = d.id)" if but else ""  # the others pass all alike
    )
    place = "d.container_id" if but or _negates(condition) else "+d.container_id"  # or all documents are read, and not the few
    rows = fetch(
        reader,
        f"select d.id from document d where {place} = ? and {'not ' if but else ''}({sql}){with_metadata}",  # noqa: S608
        (container_id, *bindings),
    )
    return Chosen(ids=_ids(rows), but=but)


def _negates(condition: Condition) -> bool:
    """Whether documents may pass that no entry of the index speaks for."""
    if isinstance(condition, Group):
        return not condition.parts or any(map(_negates, condition.parts))
    return condition.negate


def _again(reader: Transaction, container_id: int, condition: Condition, known: _Known) -> Chosen:
    """`known` with the documents whose metadata was written since."""
    sql, bindings = sql_of(condition, (container_id,))
    changed = "from document d where d.container_id = ? and d.facets_version > ?"
    since = (container_id, known.version)
    every = _ids(fetch(reader, f"select d.id {changed}", since))
    passing = _ids(fetch(reader, f"select d.id {changed} and ({sql})", (*since, *bindings)))
    chosen = known.chosen
    named = every - passing if chosen.but else passing
    if every & chosen.ids == named:
        return chosen
    return Chosen(ids=(chosen.ids - every) | named, but=chosen.but)


def _ids(rows: Iterable[tuple[Any, ...]]) -> frozenset[str]:
    return frozenset(row[0] for row in rows)
