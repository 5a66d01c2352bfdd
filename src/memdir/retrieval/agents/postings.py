"""Which memories hold which words: rows in memory that are only ever added, and marks for those that are gone.

A posting is a row and the number of a pair (frequency, length): what BM25 makes of it is one look into a small table. Words
of a single memory, most words of a large collection, take one number and no array.
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
from memdir.store.agentmemories import Indexed

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
_NO_ROWS: Final = np.zeros(0, dtype=np.int32)


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
        if self.size == len(self._values):
            grown = np.zeros(int(self.size * _GROW), dtype=self._values.dtype)
            grown[: self.size] = self._values
            self._values = grown
        self._values[self.size] = value
        self.size += 1

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
    """By stem; of a single memory: row << 32 | code."""
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
    _work: npt.NDArray[np.float32] = field(default_factory=lambda: np.zeros(0, dtype=np.float32))
    _whole: OrderedDict[str, Values] = field(default_factory=OrderedDict)
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
    def has_dead(self) -> bool:
        """Whether some rows are of memories that went."""
        return self.live < self.size

    @property
    def size_bytes(self) -> int:
        """About: arrays, and 100 bytes for each word and memory that Python keeps."""
        columns = (
            self.numbers, self.lengths, self.created_days, self.accesses, self.project_of, self.tag_counts, self.alive
        )  # fmt: skip
        lists = sum(
            8 * len(one.rows) for table in (self.words, self.tags) for one in table.values() if isinstance(one, Postings)
        )
        return lists + sum(one.values.nbytes for one in columns) + 100 * (len(self.words) + len(self.row_of))

    def add(self, memories: Iterable[Indexed]) -> None:
        """New rows; a memory that has one already gets another."""
        self._whole.clear()
        codes = self.code_of
        for memory in memories:
            self.remove(memory.number)
            row = self.size
            stems, length = counted(memory.content, memory.tags)
            for stem, frequency in stems.items():
                code = codes.get(frequency << 32 | length)
                _append(self.words, stem, row, self._code(frequency, length) if code is None else code)
            keys = dict.fromkeys(map(tag_key, memory.tags))
            for key in keys:
                _append(self.tags, key, row, 0)
            self.numbers.append(memory.number)
            self.lengths.append(length)
            days = memory.created_at_ms / DAY_MS
            self.created_days.append(days)
            self.created_max_days = max(self.created_max_days, days)
            from_days = min(max(days - DECAY_FROM_DAYS, _DECAYED_MIN_DAYS), _DECAYED_MAX_DAYS)
            self.growth.append(math.exp(DECAY_PER_DAY * from_days))
            self.access_logs.append(math.log1p(memory.access_count))
            self.accesses.append(memory.access_count)
            self.project_of.append(
                -1 if memory.project is None else self.projects.setdefault(memory.project, len(self.projects))
            )
            self.tag_counts.append(len(keys))
            self.alive.append(True)
            self.row_of[memory.number] = row
            self.live_words += length
            self.accesses_max = max(self.accesses_max, memory.access_count)

    def remove(self, number: int) -> None:
        """The memory is gone; nothing for one that is not here."""
        row = self.row_of.pop(number, None)
        if row is not None:
            self._whole.clear()
            self.alive[row] = False
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

    def workspace(self) -> Values:
        """A number for each row, for one search at a time: zero, and to be left so."""
        if len(self._work) < self.size:
            self._work = np.zeros(int(self.size * _GROW), dtype=np.float32)
        return self._work[: self.size]

    def whole(self, name: str, made: Callable[[], npt.NDArray[Any]]) -> Values:
        """What something is worth in each row, kept until a memory comes, changes or goes; at most WHOLE_MAX_BYTES."""
        found = self._whole.get(name)
        if found is None:
            found = self._whole[name] = made().astype(np.float32, copy=False)
            while len(self._whole) > 1 and len(self._whole) * found.nbytes > WHOLE_MAX_BYTES:
                self._whole.popitem(last=False)
        self._whole.move_to_end(name)
        return found

    def postings(self, stem: str) -> tuple[Rows, Rows]:
        """Live rows of a word and their codes."""
        return self._live(self.words.get(stem))

    def holding(self, stem: str) -> int:
        """How many live memories have a word."""
        return len(self.postings(stem)[0]) if stem in self.words else 0

    def tagged(self, key: str) -> Rows:
        """Live rows of a tag."""
        return self._live(self.tags.get(key))[0]

    def _live(self, found: Postings | int | None) -> tuple[Rows, Rows]:
        if found is None:
            return _NO_ROWS, _NO_ROWS
        if isinstance(found, int):
            rows = np.array([found >> 32], dtype=np.int32)
            codes = np.array([found & 0xFFFF_FFFF], dtype=np.int32)
        else:
            rows, codes = np.frombuffer(found.rows, dtype=np.int32), np.frombuffer(found.codes, dtype=np.int32)
        if self.has_dead:
            alive = self.alive.values[rows]
            if not alive.all():
                return rows[alive], codes[alive]
        return rows, codes

    def _code(self, frequency: int, length: int) -> int:
        """The number of a pair that is new."""
        code = self.code_of[frequency << 32 | length] = self.code_tf.size
        self.code_tf.append(frequency)
        self.code_length.append(length)
        return code


def _append(table: dict[str, Postings | int], key: str, row: int, code: int) -> None:
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
