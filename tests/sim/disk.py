"""What a machine keeps: its records (`sync.db`) and its filesystem, with a moment before and behind every step that writes.

The records are a real database file, on a disk in memory where the system has one. It is emptied and used again by the next
schedule: making it costs more than a schedule does. A death of the daemon leaves what is committed; a power cut goes back to
what was last flushed.
"""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from memdir.core.sqlite import Connection, Database
from memdir.fs.memory import MemoryFs
from memdir.sync.untracked_changes import SYNC_FILE
from tests.memory_folder import memory_folder

Moment = Callable[[str], None]
"""Told that the machine is at a point of the named kind; may raise, or let others act."""

Rows = dict[str, list[tuple[Any, ...]]]


class SimDatabase(Database):
    """`sync.db` with a moment before and behind each commit."""

    def __init__(self, folder: Path) -> None:
        self.moment: Moment = _nothing
        self.is_fragile = False
        """Whether a power cut may come: only then it is worth noting what survives one."""
        super().__init__(folder / SYNC_FILE, migrations="memdir.sync.schema", reads_own_writes=True)
        self._tables = [
            row[0] for row in self.all("select name from sqlite_schema where type = 'table' and name not like 'sqlite%'")
        ]
        self._fresh = self._durable = self.dump()

    @contextmanager
    def write(self, *, durable: bool = False) -> Iterator[Connection]:
        with super().write(durable=durable) as connection:
            yield connection
            self.moment("commit")
        self.moment("committed")

    def dump(self) -> Rows:
        """Every row."""
        return {table: self.all(f"select * from {table}") for table in self._tables}

    def settle(self) -> None:
        """What is committed survives a power cut."""
        super().settle()
        if self.is_fragile:
            self._durable = self.dump()

    def power_cut(self) -> None:
        """What was committed since is lost."""
        if self.is_fragile:
            self.load(self._durable)

    def load(self, rows: Rows) -> None:
        """Go back to what `dump` gave."""
        with super().write() as connection:
            for table in self._tables:
                connection.execute(f"delete from {table}")
                if rows[table]:
                    marks = ",".join("?" * len(rows[table][0]))
                    connection.executemany(f"insert into {table} values ({marks})", rows[table])

    def clear(self) -> None:
        """As new."""
        self.moment = _nothing
        self.is_fragile = False
        self.load(self._fresh)
        self._durable = self._fresh


class Shelf:
    """Databases to use again; the files go with the shelf."""

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="memdir-sim-", dir=memory_folder()))
        self._free: list[SimDatabase] = []
        self._made: list[SimDatabase] = []
        self._end = weakref.finalize(self, _remove, self._made, self._folder)

    def take(self) -> SimDatabase:
        if self._free:
            return self._free.pop()
        folder = self._folder / str(len(self._made))
        folder.mkdir()
        self._made.append(SimDatabase(folder))
        return self._made[-1]

    def give_back(self, database: SimDatabase) -> None:
        database.clear()
        self._free.append(database)

    def close(self) -> None:
        self._end()


def _remove(made: Sequence[Database], folder: Path) -> None:
    for database in made:
        database.close()
    shutil.rmtree(folder, ignore_errors=True)


_HOOKED: Final = frozenset(
    {
        "acknowledge", "children", "delete", "evict", "fact", "fill", "intents", "move", "put_absent", "put_dir", "put_file",
        "put_new_absent", "put_symlink", "read", "set_mode",
    }
)  # fmt: skip

_PLACES: Final = {"move": 1, "put_absent": 0, "put_file": 0, "put_symlink": 0, "put_dir": 0}
"""Which argument says the path that is another afterwards."""


class SimTree:
    """`fs.tree.SyncTree` of a MemoryFs, with a moment before each call that looks or changes; `applied` hears of every path
    that was changed."""

    def __init__(self, fs: MemoryFs, moment: Moment, applied: Callable[[str], None]) -> None:
        self._fs = fs
        self._moment = moment
        self._applied = applied

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._fs, name)
        if name not in _HOOKED:
            return found
        moment, applied, place = self._moment, self._applied, _PLACES.get(name)

        def hooked(*args: Any, **kwargs: Any) -> Any:
            moment(name)
            done = found(*args, **kwargs)
            if place is not None:
                applied(args[place])
            elif name == "put_new_absent":
                for file in args[0]:
                    applied(file.path)
            return done

        setattr(self, name, hooked)
        return hooked


def reopened(fs: MemoryFs) -> None:
    """The daemon died and another one opened the filesystem: no intent it finds there absorbs a later one."""
    log = fs._intents
    log.restore(list(log._pending.values()), log.next_seq)


def _nothing(kind: str) -> None:
    del kind
