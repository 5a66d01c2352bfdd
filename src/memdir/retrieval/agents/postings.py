"""Which memories hold which words: rows that are only ever added, and marks for those that are gone.

A posting is a row and the number of a pair (frequency, length): what BM25 makes of it is one look into a small table. Words of
a single memory, most words of a large collection, take one number and no array.
"""

from __future__ import annotations

import math
from array import array
from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from memdir.retrieval.agents.terms import counted, tag_key
from memdir.store.agents.feed import Indexed

Rows = npt.NDArray[np.int32]
Values = npt.NDArray[np.float32]

DAY_MS: Final = 86_400_000.0
DECAY_PER_DAY: Final = 0.01
"""The seed's: for it the recency of every memory is kept, up to a factor that all have in common."""
DECAY_FROM_DAYS: Final = 20_000.0
_DECAYED_MIN_DAYS: Final = -8_000.0
_DECAYED_MAX_DAYS: Final = 8_000.0
WHOLE_MAX_BYTES: Final = 96 << 20
_GROW: Final = 1.5
_ROWS_FIRST: Final = 1024
NO_ROWS: Final = np.zeros(0, dtype=np.int32)
_NO_WORK: Final = np.zeros(0)
DRIFT_MAX: Final = 2e-5
"""Arrays of what a word is worth are kept while the mean length is within this share of what it was when they were made."""
_FEW: Final = 16
"""One row that is gone for so many of a word: each is looked for; of more, all rows of the word are looked at."""


class Column:
    """Numbers by row; grows by half."""

    def __init__(self, dtype: str) -> None:
        self._values: npt.NDArray[Any] = np.zeros(_ROWS_FIRST, dtype=dtype)
        self.size = 0

    def __setitem__(self, row: int, value: float) -> None:
        """One that is there."""
        self._values[row] = value

    def append(self, value: float) -> None:
        """The next row's."""
        self._make_room(1)
        self._values[self.size] = value
        self.size += 1

    def extend(self, values: npt.NDArray[Any]) -> None:
        """The next rows'."""
        self._make_room(len(values))
        self._values[self.size : self.size + len(values)] = values
        self.size += len(values)

    def _make_room(self, count: int) -> None:
        if self.size + count > len(self._values):
            grown = np.zeros(max(int(len(self._values) * _GROW), self.size + count), dtype=self._values.dtype)
            grown[: self.size] = self._values[: self.size]
            self._values = grown

    @property
    def values(self) -> npt.NDArray[Any]:
        """All of them; what is added later does not show."""
        return self._values[: self.size]


@dataclass(slots=True)
class Postings:
    """Of one word, rows ascending."""

    rows: array[int]
    codes: array[int]


@dataclass(slots=True)
class Table:
    """The memories of a container. One thread at a time changes it, and nobody reads meanwhile."""

    words: dict[str, Postings | int] = field(default_factory=dict)
    """By stem. Of a single memory: row << 32 | code."""
    tags: dict[str, Postings | int] = field(default_factory=dict)
    """By `terms.tag_key`."""
    projects: dict[str, int] = field(default_factory=dict)
    code_of: dict[int, int] = field(default_factory=dict)
    """By frequency << 32 | length."""
    code_tf: Column = field(default_factory=lambda: Column("f8"))
    code_length: Column = field(default_factory=lambda: Column("f8"))
    numbers: Column = field(default_factory=lambda: Column("i8"))
    lengths: Column = field(default_factory=lambda: Column("i4"))
    created_days: Column = field(default_factory=lambda: Column("f8"))
    accesses: Column = field(default_factory=lambda: Column("i8"))
    project_of: Column = field(default_factory=lambda: Column("i4"))
    """Number of the project, -1: none."""
    tag_counts: Column = field(default_factory=lambda: Column("i2"))
    alive: Column = field(default_factory=lambda: Column("?"))
    growth: Column = field(default_factory=lambda: Column("f4"))
    """e^(DECAY_PER_DAY days since DECAY_FROM_DAYS): recency is this times one number that is the same for all."""
    access_logs: Column = field(default_factory=lambda: Column("f4"))
    """ln(1 + accesses)."""
    _work: npt.NDArray[np.float64] = field(default_factory=lambda: _NO_WORK)
    _whole: OrderedDict[str, tuple[float, Column]] = field(default_factory=OrderedDict)
    _dead: Column = field(default_factory=lambda: Column("i4"))
    created_max_days: float = 0.0
    row_of: dict[int, int] = field(default_factory=dict)
    """Of each live memory, by its number."""
    live_words: int = 0
    accesses_max: int = 0

    @property
    def size(self) -> int:
        """Rows, dead ones too."""
        return self.numbers.size

    @property
    def live(self) -> int:
        """Memories."""
        return len(self.row_of)

    @property
    def mean_words(self) -> float:
        """Of a memory, 0 when there is none."""
        return self.live_words / self.live if self.live else 0.0

    @property
    def dead(self) -> Rows:
        """Rows of memories that went."""
        gone: Rows = self._dead.values
        return gone

    @property
    def size_bytes(self) -> int:
        """About: arrays, and 100 bytes for each word and memory that Python keeps."""
        columns = (
            self.numbers, self.lengths, self.created_days, self.accesses, self.project_of, self.tag_counts, self.alive,
            self.growth, self.access_logs,
        )  # fmt: skip
        lists = sum(
            8 * len(one.rows) for table in (self.words, self.tags) for one in table.values() if isinstance(one, Postings)
        )
        return lists + sum(one.values.nbytes for one in columns) + 100 * (len(self.words) + len(self.row_of))

    def add(self, memories: Iterable[Indexed]) -> None:
        """New rows; a memory that has one already gets another."""
        codes = self.code_of
        for memory in memories:
            self.remove(memory.number)
            row = self.size
            stems, length = counted(memory.content, memory.tags)
            for stem, frequency in stems.items():
                code = codes.get(frequency << 32 | length)
                self._append(self.words, stem, row, self._code(frequency, length) if code is None else code)
            keys = dict.fromkeys(map(tag_key, memory.tags))
            for key in keys:
                self._append(self.tags, key, row, 0)
            self.numbers.append(memory.number)
            self.lengths.append(length)
            days = memory.created_at_ms / DAY_MS
            self.created_days.append(days)
            self.created_max_days = max(self.created_max_days, days)
            self.accesses.append(memory.access_count)
            self.project_of.append(
                -1 if memory.project is None else self.projects.setdefault(memory.project, len(self.projects))
            )
            self.tag_counts.append(len(keys))
            self.alive.append(True)
            self.row_of[memory.number] = row
            self.live_words += length
            self.accesses_max = max(self.accesses_max, memory.access_count)
        self.growth.extend(growth(self.created_days.values[self.growth.size :]))
        self.access_logs.extend(np.log1p(self.accesses.values[self.access_logs.size :]))

    def remove(self, number: int) -> None:
        """The memory is gone; nothing for one that is not here."""
        row = self.row_of.pop(number, None)
        if row is not None:
            for _, column in self._whole.values():
                if row < column.size:
                    column[row] = 0
            self.alive[row] = False
            self._dead.append(row)
            self.live_words -= int(self.lengths.values[row])
            if self.accesses_max and self.accesses.values[row] == self.accesses_max:
                self.accesses[row] = 0
                self.accesses_max = int((self.accesses.values * self.alive.values).max())

    def touch(self, numbers: Iterable[int]) -> None:
        """Count one access of each memory."""
        accesses = self.accesses.values
        for number in numbers:
            row = self.row_of.get(number)
            if row is not None:
                accesses[row] += 1
                self.access_logs[row] = math.log1p(int(accesses[row]))
                self.accesses_max = max(self.accesses_max, int(accesses[row]))

    def take_accesses(self, older: Table) -> None:
        """Those of an older table, of which the store may not have heard yet."""
        for number, row in older.row_of.items():
            own, count = self.row_of.get(number), int(older.accesses.values[row])
            if own is not None and count > self.accesses.values[own]:
                self.accesses[own] = count
                self.access_logs[own] = math.log1p(count)
                self.accesses_max = max(self.accesses_max, count)

    def workspace(self) -> npt.NDArray[np.float64]:
        """Zeros, at least one for each row, to be given back as zeros by `keep_workspace`. Who fails meanwhile keeps it."""
        work, self._work = self._work, _NO_WORK
        return work if len(work) >= self.size else np.zeros(int(self.size * _GROW))

    def keep_workspace(self, zeros: npt.NDArray[np.float64]) -> None:
        """For the next search."""
        self._work = zeros

    def whole(self, name: str, made: Callable[[int], npt.NDArray[Any]], *, mean: float = 0.0) -> Values:
        """What something is worth in each row, 0 in those of memories that went; at most WHOLE_MAX_BYTES are kept. `made` gives
        the values from a row on. With a `mean` length that has moved by more than DRIFT_MAX all are made again."""
        known = self._whole.get(name)
        if known is None or abs(known[0] - mean) > DRIFT_MAX * mean:
            known = self._whole[name] = (mean, Column("f4"))
        self._whole.move_to_end(name)
        while len(self._whole) > 1 and 4 * len(self._whole) * self.size > WHOLE_MAX_BYTES:
            self._whole.popitem(last=False)
        column = known[1]
        if column.size < self.size:
            column.extend(made(column.size))
            column.values[self.dead] = 0
        return column.values

    def postings(self, stem: str) -> tuple[Rows, Rows]:
        """Rows of a word and their codes; some may be of memories that went."""
        found = self.words.get(stem)
        return (NO_ROWS, NO_ROWS) if found is None else listed(found)

    def holding(self, stem: str) -> int:
        """How many memories have a word."""
        return self.living(self.postings(stem)[0])

    def tagged(self, key: str) -> Rows:
        """Rows of a tag; some may be of memories that went."""
        found = self.tags.get(key)
        return NO_ROWS if found is None else listed(found)[0]

    def living(self, rows: Rows) -> int:
        """How many of these rows, ascending, are of memories that are there."""
        dead = self.dead
        if not len(dead) or not len(rows):
            return len(rows)
        if len(dead) * _FEW > len(rows):
            return int(np.count_nonzero(self.alive.values[rows]))
        at = np.minimum(rows.searchsorted(dead), len(rows) - 1)
        return len(rows) - int(np.count_nonzero(rows[at] == dead))

    def _append(self, table: dict[str, Postings | int], key: str, row: int, code: int) -> None:
        found = table.get(key)
        if isinstance(found, Postings):
            try:
                found.rows.append(row)
            except BufferError:  # an error's traceback still holds what a search looked at
                table[key] = found = Postings(array("i", found.rows), array("i", found.codes))
                found.rows.append(row)
            found.codes.append(code)
        elif found is None:
            table[key] = row << 32 | code
        else:
            table[key] = Postings(array("i", (found >> 32, row)), array("i", (found & 0xFFFF_FFFF, code)))

    def _code(self, frequency: int, length: int) -> int:
        """The number of a pair that is new."""
        code = self.code_of[frequency << 32 | length] = self.code_tf.size
        self.code_tf.append(frequency)
        self.code_length.append(length)
        return code


def listed(found: Postings | int) -> tuple[Rows, Rows]:
    """Rows and codes. While they are looked at, nothing can be appended."""
    if isinstance(found, int):
        return np.array([found >> 32], dtype=np.int32), np.array([found & 0xFFFF_FFFF], dtype=np.int32)
    return np.frombuffer(found.rows, dtype=np.int32), np.frombuffer(found.codes, dtype=np.int32)


def growth(days: Any) -> Any:
    """See `Table.growth`: of a moment in days since 1970, or of many."""
    return np.exp(DECAY_PER_DAY * np.clip(days - DECAY_FROM_DAYS, _DECAYED_MIN_DAYS, _DECAYED_MAX_DAYS))
