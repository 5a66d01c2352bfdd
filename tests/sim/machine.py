"""One machine: a filesystem that a user works in, an engine that syncs it, and what may happen to both.

Every operation of the user is acknowledged or refused at once, as the kernel would. What the engine does comes in steps, and at
every point of a step a trap may be waiting: the end of the daemon, a fault of the network, others who act meanwhile.
"""

from __future__ import annotations

import errno
import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from memdir.client.errors import ClientError, OfflineError, from_status
from memdir.core.clock import FakeClock
from memdir.core.errors import MemdirError
from memdir.fs.errors import ContentsAbsentError, FsError
from memdir.fs.localonly import is_local_only
from memdir.fs.memory import MemoryFs
from memdir.fs.path import encode, split
from memdir.fs.types import RENAME_EXCHANGE, ROOT_INO, AttrChange, Owner, joined
from memdir.sync.contents.retention import KeepingPolicy
from memdir.sync.engine import Engine
from memdir.sync.push.intake import take_in
from tests.sim.disk import SimDatabase, SimTree, reopened
from tests.sim.oracle import DIR
from tests.sim.server import CONTAINER, Life, SimServer
from tests.sim.wire import SimRemote

ME: Final = Owner(1000, 1000)
HOSTS: Final = ("ant", "bee", "cat", "dog")
_CACHE_BYTES: Final = 64
_STEPS_MAX: Final = 400
_OWN_STEPS_IN: Final = frozenset({"batch", "put", "move", "delete"})
"""Calls during which other threads of the same daemon may work: those that hold nothing the others wait for."""

Decision = list[Any]
"""A verb and its arguments, as JSON holds them."""


class CrashError(BaseException):
    """The daemon dies here. Nobody may catch it but the world."""


class SimClock(FakeClock):
    """Its wall clock may be wrong, and be set."""

    def jump(self, seconds: float) -> None:
        self._now_ns += int(seconds * 1e9)


@dataclass(slots=True)
class Trap:
    """Something that will happen when the machine comes to the `left`-th point of this kind from now."""

    point: str
    """`call`, `answer`, `tree`, `commit` or `committed`."""
    left: int
    effect: Decision


class Machine:
    """`meanwhile` carries out decisions that come due in the middle of a step; `applied` hears of paths the engine changed."""

    def __init__(
        self, number: int, server: SimServer, database: SimDatabase, *, lazy: bool, skew_s: float,
        fragile: bool, meanwhile: Callable[[list[Decision]], None], applied: Callable[[Machine, str], None],
    ) -> None:  # fmt: skip
        self.number, self.host, self.server, self.database = number, HOSTS[number], server, database
        self.clock = SimClock()
        self.clock.jump(skew_s)
        self.fs = MemoryFs(clock=self.clock, uid=ME.uid, gid=ME.gid)
        self.tree = SimTree(self.fs, lambda name: self.at("tree", name), lambda path: applied(self, path))
        self.traps: list[Trap] = []
        self.connected = True
        self.fired = 0
        self._lazy = lazy
        self._meanwhile = meanwhile
        self._calls: list[str] = []
        """Exchanges under way, the outermost first."""
        self._stepping = 0
        self._lives = 0
        database.moment, database.is_fragile = self.at, fragile
        self.engine = self._open()

    def _open(self) -> Engine:
        self._lives += 1
        return Engine(
            folder=Path(), container=CONTAINER, tree=self.tree, factory=self._dial, clock=self.clock,  # type: ignore[arg-type]
            rng=random.Random(self.number * 1000 + self._lives), host=self.host,
            keeping=KeepingPolicy(cache_bytes=_CACHE_BYTES) if self._lazy else None, database=self.database,
        )  # fmt: skip

    def _dial(self) -> SimRemote:
        return SimRemote(self.server, self._reach)

    # --- what may happen -----------------------------------------------------------------------------------------

    def at(self, point: str, name: str = "") -> None:
        """The machine comes to a point of a step."""
        del name
        if not self.traps or not self._stepping:
            return
        for trap in self.traps:
            if trap.point == point:
                trap.left -= 1
                if trap.left <= 0:
                    self.traps.remove(trap)
                    self._spring(trap)
                return

    def _spring(self, trap: Trap) -> None:
        self.fired += 1
        what, *arguments = trap.effect
        match what:
            case "crash":
                raise CrashError
            case "lose":
                raise OfflineError("lost on the way")
            case "status":
                raise from_status(arguments[0], "on purpose", retry_after="1")
            case "repeat":
                raise _RepeatError
            case "meanwhile":
                self._meanwhile(arguments[0])
            case _:
                raise ValueError(f"no effect {what!r}")

    def _reach(self, name: str, action: Callable[[], object]) -> object:
        self._calls.append(name)
        try:
            self._one_way("call")
            if not self.connected:
                raise OfflineError("no network")
            answer = action()
            try:
                self._one_way("answer")
            except _RepeatError:
                answer = action()
            return answer
        finally:
            self._calls.pop()

    def _one_way(self, point: str) -> None:
        try:
            self.at(point)
        except _RepeatError:
            if point == "answer":
                raise

    def crash(self) -> None:
        """The daemon dies and a new one starts. What is committed stays."""
        self.traps.clear()
        self._calls.clear()
        self._stepping = 0
        reopened(self.fs)
        self.engine = self._open()

    def flush(self) -> None:
        """The system writes the records to the disk."""
        self.database.settle()

    def power_cut(self) -> None:
        """Commits after the last flush are lost. The filesystem has a journal of its own, which was synced."""
        self.database.power_cut()
        self.crash()

    # --- the engine ----------------------------------------------------------------------------------------------

    def step(self, loop: str, limit: int) -> None:
        """One turn of one loop; of our own engine only where a thread of its own could have come to it."""
        if self._stepping and (not self._calls or self._calls[-1] not in _OWN_STEPS_IN):
            return
        self._stepping += 1
        try:
            if loop == "keep":
                if self._lazy:
                    self.engine.keeper.work_once()
            else:
                self._turn(loop, limit)
        finally:
            self._stepping = max(0, self._stepping - 1)

    def _turn(self, loop: str, limit: int) -> None:
        """What a thread of the daemon does once in its loop."""
        engine = self.engine
        match loop:
            case "intake":
                take_in(engine._ctx)
            case "feed":
                try:
                    engine._puller.read_page(wait_s=0.0)
                except ClientError as error:
                    engine.link.fail(error)
            case "renames":
                engine._renames.work_once()
            case "push":
                engine._pusher.work_once(limit)
            case _:
                raise ValueError(f"no loop {loop!r}")

    @property
    def is_busy(self) -> bool:
        """Whether the daemon is in the middle of a step."""
        return self._stepping > 0

    def set_trap(self, point: str, left: int, effect: Decision) -> None:
        """Let `effect` happen at the `left`-th such point of the engine from now on."""
        self.traps.append(Trap(point, left, effect))

    def calm(self) -> None:
        """Nothing happens any more."""
        self.traps.clear()
        self.connected = True

    def view(self, contents: Callable[[str], bytes]) -> dict[str, tuple[str, bytes]]:
        """Every path that is synced with its kind and contents. `contents` knows them by hash: those of absent files."""
        found: dict[str, tuple[str, bytes]] = {}
        pending = list(self.fs.children("/"))
        while pending:
            fact = pending.pop()
            if is_local_only(fact.path):
                continue
            if fact.kind == "dir":
                pending.extend(self.fs.children(fact.path))
                found[fact.path] = DIR
            elif fact.kind == "symlink":
                found[fact.path] = ("symlink", fact.target or b"")
            elif fact.absent_hash is not None:
                found[fact.path] = ("file", contents(fact.absent_hash))
            else:
                found[fact.path] = ("file", joined(self.fs.read(fact.ino, 0, 1 << 20)))
        return found

    def paths(self) -> list[str]:
        """Every path there is, folders before what is in them."""
        found: list[str] = []
        pending = list(self.fs.children("/"))
        while pending:
            fact = pending.pop()
            found.append(fact.path)
            if fact.kind == "dir":
                pending.extend(self.fs.children(fact.path))
        return found

    def leftovers(self) -> set[str]:
        """Folders that hold something that stays on this machine: they stay with it."""
        found: set[str] = set()
        for path in self.paths():
            if is_local_only(path):
                while (path := split(path)[0]) != "/":
                    found.add(path)
        return found

    def modes(self) -> dict[str, int]:
        """The permission bits that are synced, of files and folders."""
        found: dict[str, int] = {}
        pending = list(self.fs.children("/"))
        while pending:
            fact = pending.pop()
            if not is_local_only(fact.path) and fact.kind != "symlink":
                found[fact.path] = fact.mode & 0o777
                pending.extend(self.fs.children(fact.path))
        return found

    def rest(self) -> bool:
        """Work until there is nothing to do at this time. Whether something waits for a later one."""
        self._stepping = 0
        self.engine.run_until_idle()
        return self.engine.status().queue_length > 0

    def unsettled(self, life: Life) -> list[str]:
        """What is not agreed on, although everything is at rest."""
        wrong = [f"{self.host}: {row.path} is parked: {row.error}" for row in self.engine.parked_rows(10)]
        epoch, watermark = (self._one("select value from meta where key = ?", key) for key in ("epoch", "watermark"))
        if (epoch, int(watermark or 0)) != (life.epoch, life.seq):
            wrong.append(f"{self.host}: the watermark is {watermark} of {epoch}, the server's {life.seq} of {life.epoch}")
        wanted = {
            path: (entry.kind, entry.content_hash, entry.mode & 0o777, entry.revision) for path, entry in life.entries.items()
        }
        for table in ("base", "remote"):
            rows = self.database.all(f"select path, kind, content_hash, mode & 511, revision from {table}")
            known = {row[0].decode(): row[1:] for row in rows if row[1]}  # without tombstones, which agree on nothing
            wrong += [
                f"{self.host}: {table} of {path} is {known.get(path)}, not {wanted.get(path)}"
                for path in sorted(known.keys() | wanted.keys())
                if known.get(path) != wanted.get(path)
            ]
        return wrong

    def _one(self, sql: str, *bindings: object) -> Any:
        found = self.database.one(sql, bindings)
        return None if found is None else found[0]

    # --- a user --------------------------------------------------------------------------------------------------

    def operate(self, verb: str, *arguments: Any) -> bool:
        """One operation of the user. False when it was refused."""
        stepping, self._stepping = self._stepping, 0
        try:
            getattr(self, f"_do_{verb}")(*arguments)
        except (FsError, MemdirError) as error:
            if isinstance(error, ContentsAbsentError):
                return False  # the server is away: EIO
            if isinstance(error, FsError) and error.errno not in _REFUSALS:
                raise
            return False
        finally:
            self._stepping = stepping
        return True

    def _ino(self, path: str) -> int:
        ino = ROOT_INO
        for part in path.split("/")[1:]:
            if part:
                ino = self.fs.lookup(ino, encode(part)).ino
        return ino

    def _place(self, path: str) -> tuple[int, bytes]:
        folder, name = split(path)
        return self._ino(folder), encode(name)

    def _file(self, path: str, *, make: bool = True) -> int:
        """The number of the file at `path`, which is made when nothing stands there."""
        parent, name = self._place(path)
        found = self.fs.find(parent, name)
        if found is None:
            if not make:
                raise FsError(errno.ENOENT)
            return self.fs.create(parent, name, 0o100644, ME).ino
        if not found.is_file:
            raise FsError(errno.EISDIR)
        return found.ino

    def _with_contents(self, ino: int, action: Callable[[], object]) -> None:
        """As the kernel's side does: what is absent is fetched, then the operation is tried again."""
        try:
            action()
        except ContentsAbsentError:
            if self._calls:
                raise
            try:
                self.engine.fetcher.fetch(ino)
            except MemdirError as error:
                raise FsError(errno.EIO, "the contents cannot be had") from error
            action()

    def read(self, ino: int) -> bytes:
        """All bytes; FsError when they cannot be had."""
        held: list[bytes] = []
        self._with_contents(ino, lambda: held.append(joined(self.fs.read(ino, 0, 1 << 20))))
        return held[-1]

    def _do_read(self, path: str) -> None:
        self.read(self._file(path, make=False))

    def _do_write(self, path: str, content: str) -> None:
        ino = self._file(path)
        self.fs.setattr(ino, AttrChange(size=0))
        self.fs.write(ino, 0, content.encode())

    def _do_append(self, path: str, content: str) -> None:
        ino = self._file(path)
        self._with_contents(ino, lambda: self.fs.write(ino, self.fs.get(ino).size, content.encode()))

    def _do_edit(self, path: str, content: str) -> None:
        """The first line becomes another of the same length."""
        ino = self._file(path, make=False)
        if self.fs.get(ino).size < len(content):
            raise FsError(errno.EINVAL)
        self._with_contents(ino, lambda: self.fs.write(ino, 0, content.encode()))

    def _do_cut(self, path: str, size: int) -> None:
        """Truncate to the first lines."""
        ino = self._file(path, make=False)
        if self.fs.get(ino).size > size:
            self._with_contents(ino, lambda: self.fs.setattr(ino, AttrChange(size=size)))

    def _do_save(self, path: str, content: str, temporary: str) -> None:
        """As editors do: a new file beside it, then renamed over it."""
        folder = split(path)[0]
        beside = folder.rstrip("/") + "/" + temporary
        ino = self._file(beside)
        self.fs.setattr(ino, AttrChange(size=0))
        self.fs.write(ino, 0, content.encode())
        self._do_mv(beside, path)

    def _do_backup(self, path: str, content: str) -> None:
        """As vim does: the old file goes aside under a name that stays local, a new one is written, the old one deleted."""
        aside = path + "~"
        self._do_mv(path, aside)
        self._do_write(path, content)
        self.fs.unlink(*self._place(aside))

    def _do_mkdir(self, path: str) -> None:
        self.fs.mkdir(*self._place(path), 0o755, ME)

    def _do_rmdir(self, path: str) -> None:
        self.fs.rmdir(*self._place(path))

    def _do_rm(self, path: str) -> None:
        self.fs.unlink(*self._place(path))

    def _do_rmtree(self, path: str) -> None:
        for fact in self.fs.children(path):
            if fact.kind == "dir":
                self._do_rmtree(fact.path)
            else:
                self._do_rm(fact.path)
        self._do_rmdir(path)

    def _do_mv(self, source: str, path: str) -> None:
        self.fs.rename(*self._place(source), *self._place(path))

    def _do_exchange(self, source: str, path: str) -> None:
        self.fs.rename(*self._place(source), *self._place(path), RENAME_EXCHANGE)

    def _do_link(self, source: str, path: str) -> None:
        self.fs.link(self._file(source, make=False), *self._place(path))

    def _do_symlink(self, path: str, target: str) -> None:
        self.fs.symlink(*self._place(path), target.encode(), ME)

    def _do_chmod(self, path: str, mode: int) -> None:
        self.fs.setattr(self._ino(path), AttrChange(mode=mode))


class _RepeatError(Exception):
    """The network delivers the request twice."""


_REFUSALS: Final = frozenset(
    {
        errno.ENOENT, errno.EEXIST, errno.EISDIR, errno.ENOTDIR, errno.ENOTEMPTY, errno.EINVAL, errno.EPERM, errno.EIO,
        errno.EBUSY,
    }
)  # fmt: skip
