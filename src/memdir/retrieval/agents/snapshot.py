"""A table as arrays, without the memories that went: what is written to a file, and a table over it.

The file is derived: its event says up to where the store was followed, and who opens it compares its memories with the store.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from itertools import compress
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from memdir.core.errors import CorruptError
from memdir.retrieval.agents.arrays import Arrays, MemorySink, Sink
from memdir.retrieval.agents.postings import Column, Frozen, Postings, Rows, Table, growth, listed
from memdir.retrieval.agents.terms import TERMS_VERSION
from memdir.retrieval.hashes import key_of

FORMAT: Final = 1
_PIECE: Final = 2_000
"""Words that are copied at a time; searches wait for no more."""
_COLUMNS: Final = ("numbers", "folded", "lengths", "created_days", "accesses", "project_of", "tag_counts")
"""What is kept by row; the others are made of these."""
_CODES: Final = ("code_tf", "code_length")

_Source = Postings | int | tuple[Rows, Rows]


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """What a table held at one moment. It may change meanwhile: rows that came later are known by their numbers."""

    table: Table
    event: int
    size: int
    live: npt.NDArray[np.intp]
    """Rows."""
    words: dict[str, Postings | int]
    tags: dict[str, Postings | int]
    projects: list[str]
    columns: dict[str, npt.NDArray[Any]]

    @classmethod
    def of(cls, table: Table, event: int) -> Moment:
        """Copies. Nobody changes the table meanwhile."""
        live = np.flatnonzero(table.alive.values)
        columns = {name: getattr(table, name).values[live] for name in _COLUMNS}
        columns |= {name: getattr(table, name).values.copy() for name in _CODES}
        return cls(
            table=table,
            event=event,
            size=table.size,
            live=live,
            words=dict(table.words),
            tags=dict(table.tags),
            projects=list(table.projects),
            columns=columns,
        )


def written(
    moment: Moment, sink: Sink, *, quiet: AbstractContextManager[Any], checkpoint: Callable[[], None] = lambda: None
) -> Arrays:
    """The arrays of a moment. Nobody changes the table inside `quiet`, which is held for a piece at a time; `checkpoint` is
    called between pieces and may raise."""
    about = np.array([FORMAT, TERMS_VERSION, moment.event], dtype=np.int64)
    first: dict[str, npt.NDArray[Any]] = {"about": about, "projects": _json(moment.projects), **moment.columns}
    for name, values in first.items():
        sink.reserve(name, values.dtype.str, values.size)
        sink.append(name, values)
    place = np.full(max(1, moment.size), -1, dtype=np.int32)
    place[moment.live] = np.arange(len(moment.live), dtype=np.int32)
    lists = _Lists(sink, place, quiet, checkpoint)
    for name, (names, sources) in {"words": _words(moment), "tags": _ordered(moment.tags)}.items():
        kept = lists.put(name, sources)
        left = _json(list(compress(names, kept)))
        sink.reserve(name, left.dtype.str, left.size)
        sink.append(name, left)
    return sink.finish()


def _json(names: Sequence[str]) -> npt.NDArray[np.uint8]:
    return np.frombuffer(json.dumps(names).encode(), dtype=np.uint8)


def _names(arrays: Arrays, name: str) -> list[str]:
    found: list[str] = json.loads(arrays[name].tobytes())
    return found


def _words(moment: Moment) -> tuple[list[str], list[_Source]]:
    """All of them in order, and where their postings are."""
    sources: dict[str, _Source] = {**moment.words}
    frozen = moment.table.frozen
    if frozen is not None:
        sources |= {name: frozen.at(place) for name, place in frozen.places.items() if name not in sources}
    return _ordered(sources)


def _ordered(sources: Mapping[str, _Source]) -> tuple[list[str], list[_Source]]:
    names = sorted(sources)
    return names, [sources[name] for name in names]


@dataclass(frozen=True, slots=True)
class _Lists:
    """Writes lists of postings one behind the other."""

    sink: Sink
    place: Rows
    """The new row of each old one, -1: the memory went."""
    quiet: AbstractContextManager[Any]
    checkpoint: Callable[[], None]

    def put(self, name: str, sources: Sequence[_Source]) -> npt.NDArray[np.bool_]:
        """`{name}_rows`, `{name}_codes`, `{name}_starts`. Returns which of the lists have something left; the others go."""
        most = sum(map(_length, sources))
        for part, dtype, size in (("rows", "<i4", most), ("codes", "<i4", most), ("starts", "<i8", len(sources) + 1)):
            self.sink.reserve(f"{name}_{part}", dtype, size)
        counts = [np.zeros(0, dtype=np.int64)]
        for rows, codes, own in self._pieces(sources):
            self.sink.append(f"{name}_rows", rows)
            self.sink.append(f"{name}_codes", codes)
            counts.append(own)
            self.checkpoint()
        held = np.concatenate(counts)
        starts = np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(held[held > 0])))
        self.sink.append(f"{name}_starts", starts)
        kept: npt.NDArray[np.bool_] = held > 0
        return kept

    def _pieces(self, sources: Sequence[_Source]) -> Iterator[tuple[Rows, Rows, npt.NDArray[np.int64]]]:
        """Rows, codes, and how many of them each list has."""
        for first in range(0, len(sources), _PIECE):
            some = sources[first : first + _PIECE]
            with self.quiet:
                lists = [one if isinstance(one, tuple) else listed(one) for one in some]
                sizes = [len(rows) for rows, _ in lists]
                rows, codes = (np.concatenate(column) for column in zip(*lists, strict=True))
                del lists  # they are views of what grows
            known = rows < len(self.place)
            places = self.place[np.where(known, rows, 0)]
            kept = known & (places >= 0)
            of_list = np.repeat(np.arange(len(some)), sizes)[kept]
            yield places[kept], codes[kept], np.bincount(of_list, minlength=len(some))


def _length(source: _Source) -> int:
    if isinstance(source, int):
        return 1
    return len(source[0] if isinstance(source, tuple) else source.rows)


def opened(arrays: Arrays, described: str) -> tuple[Table, int]:
    """A table over arrays, and up to which event it was followed. CorruptError for those of another version."""
    try:
        return _opened(arrays)
    except (KeyError, ValueError, IndexError) as error:
        raise CorruptError(f"{described} is of another version", hint="it is made again from the store by itself") from error


def _opened(arrays: Arrays) -> tuple[Table, int]:
    version, terms, event = arrays["about"].tolist()
    if (version, terms) != (FORMAT, TERMS_VERSION):
        raise ValueError
    table = Table(
        frozen=Frozen(
            places={name: place for place, name in enumerate(_names(arrays, "words"))},
            starts=arrays["words_starts"],
            rows=arrays["words_rows"],
            codes=arrays["words_codes"],
        ),
    )
    for name in (*_COLUMNS, *_CODES):
        column: Column = getattr(table, name)
        setattr(table, name, Column(column.values.dtype.str, arrays[name]))
    table.alive = Column("?", np.ones(table.size, dtype=bool))
    table.growth = Column("f4", growth(table.created_days.values))
    table.created_max_days = float(table.created_days.values.max(initial=0.0))
    table.code_of = {
        int(tf) << 32 | int(length): code
        for code, (tf, length) in enumerate(zip(table.code_tf.values, table.code_length.values, strict=True))
    }
    table.row_of = dict(zip(table.numbers.values.tolist(), range(table.size), strict=True))
    table.projects = {name: number for number, name in enumerate(_names(arrays, "projects"))}
    tags = Frozen(places={}, starts=arrays["tags_starts"], rows=arrays["tags_rows"], codes=arrays["tags_codes"])
    table.tags = {name: Postings.of(*tags.at(place)) for place, name in enumerate(_names(arrays, "tags"))}
    table.live_words = int(table.lengths.values.sum(dtype=np.int64))
    table.count_accesses(arrays["accesses"])
    return table, event


def marks(table: Table) -> dict[int, int]:
    """By the number of each memory a number of 64 bits that shows every change of its words, tags, project or time."""
    arrays = written(Moment.of(table, 0), MemorySink(), quiet=nullcontext())
    made: npt.NDArray[np.uint64] = arrays["created_days"].view(np.uint64) ^ arrays["lengths"].astype(np.uint64)
    projects = [*map(key_of, _names(arrays, "projects")), 0]
    made += np.array(projects, dtype=np.uint64)[arrays["project_of"]]
    for name in ("words", "tags"):
        keys = np.array([key_of(f"{name} {one}") for one in _names(arrays, name)], dtype=np.uint64)
        key = np.repeat(keys, np.diff(arrays[f"{name}_starts"]))
        often = arrays["code_tf"].astype(np.uint64)[arrays[f"{name}_codes"]] if name == "words" else np.uint64(0)
        np.add.at(made, arrays[f"{name}_rows"], key * (np.uint64(2) * often + np.uint64(1)))
    return dict(zip(arrays["numbers"].tolist(), made.tolist(), strict=True))
