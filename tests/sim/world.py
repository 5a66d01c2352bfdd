"""Machines and their server under one scheduler: carries out decisions, then lets everything come to rest and judges.

A schedule is a configuration and a list of decisions, all of it JSON: the same list does the same.
"""

from __future__ import annotations

import hashlib
import json
import logging
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from memdir.client.errors import ClientError
from tests.sim.disk import Shelf
from tests.sim.machine import CrashError, Decision, Machine
from tests.sim.oracle import DIR, LINE_BYTES, Key, Oracle
from tests.sim.server import Life, SimServer

_ROUNDS_MAX: Final = 60
USER: Final = frozenset(
    {
        "append", "backup", "chmod", "cut", "edit", "exchange", "link", "mkdir", "mv", "read", "rm", "rmdir", "rmtree", "save",
        "symlink", "write",
    }
)  # fmt: skip
STEPS: Final = frozenset({"intake", "feed", "renames", "push", "keep"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """What a schedule begins with. One item a machine."""

    lazy: tuple[bool, ...] = (False, False)
    skew_s: tuple[int, ...] = (0, 0)
    page: int = 1000
    fragile: bool = False
    """Whether power cuts may come."""

    @classmethod
    def of(cls, values: dict[str, Any]) -> Config:
        return cls(
            lazy=tuple(values["lazy"]),
            skew_s=tuple(values["skew_s"]),
            page=values["page"],
            fragile=values.get("fragile", False),
        )


class ViolationError(AssertionError):
    """An invariant does not hold."""


class World:
    """Use as a context: the databases go back to the shelf."""

    def __init__(self, config: Config, shelf: Shelf) -> None:
        self.config = config
        self.server = SimServer(page=config.page)
        self.oracle = Oracle()
        self.trace: list[object] = []
        self._shelf = shelf
        self._lines = 0
        self._backup: Life | None = None
        self._known: dict[str, bytes] = {}
        self._nested = False
        self._acting = False
        """A client of the API is at it; what others bring arrives for him, not what he does."""
        self._alarm = _Alarm()
        self.machines: list[Machine] = []
        for number, (lazy, skew_s) in enumerate(zip(config.lazy, config.skew_s, strict=True)):
            self.machines.append(
                Machine(
                    number, self.server, shelf.take(), lazy=lazy, skew_s=skew_s, fragile=config.fragile,
                    meanwhile=self._meanwhile, applied=lambda machine, path: self.oracle.arrived(machine.host, path),
                )
            )  # fmt: skip
        self.server.changed = self._server_changed

    def __enter__(self) -> World:
        _ENGINE_LOG.addHandler(self._alarm)
        return self

    def __exit__(self, *exc: object) -> None:
        _ENGINE_LOG.removeHandler(self._alarm)
        for machine in self.machines:
            self._shelf.give_back(machine.database)

    # --- decisions -----------------------------------------------------------------------------------------------

    def run(self, decision: Decision) -> None:
        """Carry out one decision. A crash ends the whole daemon, also when it comes in the middle of another of its steps."""
        verb, *arguments = decision
        outcome: object
        try:
            outcome = self._run(verb, arguments)
        except CrashError:
            machine = self.machines[arguments[0]]
            if machine.is_busy:
                raise
            machine.crash()
            outcome = "crashed"
        self.trace.append((verb, arguments, outcome, self.server.life.seq))

    def _run(self, verb: str, arguments: Sequence[Any]) -> object:
        if verb.startswith("api_"):
            return self._api(verb, *arguments)
        if verb in ("wait", "prune", "forget", "backup", "restore", "wipe"):
            return self._happen(verb, *arguments)
        machine = self.machines[arguments[0]]
        if verb in USER:
            return self._operate(machine, verb, *arguments[1:])
        if verb in STEPS:
            machine.step(verb, arguments[1] if len(arguments) > 1 else 64)
        elif verb == "sync":
            for loop in ("intake", "feed", "renames", "push"):
                machine.step(loop, 64)
        elif verb == "trap":
            machine.set_trap(*arguments[1:])
        elif verb == "crash":
            raise CrashError
        elif verb in ("part", "join"):
            machine.connected = verb == "join"
        elif verb == "flush":
            machine.flush()
        elif verb == "power":
            machine.power_cut()
        elif verb == "jump":
            machine.clock.jump(arguments[1])
        else:
            raise ValueError(f"no decision {verb!r}")
        return None

    def _happen(self, verb: str, *arguments: Any) -> None:
        server = self.server
        match verb:
            case "wait":
                for machine in self.machines:
                    machine.clock.advance(arguments[0])
            case "prune":
                server.prune()
            case "forget":
                server.forget_answers()
            case "backup":
                self._backup = server.life.copy()
            case "restore" if self._backup is not None:
                server.restore(self._backup, new_epoch=arguments[0])
                self._lost_server()
            case "wipe":
                server.wipe()
                self._lost_server()

    def _lost_server(self) -> None:
        """What was deleted may return, and what only the server had is gone."""
        self.oracle.strict = False
        here = set(self._server_view().values())
        for machine in self.machines:
            here |= set(machine.view(lambda _: b"").values())
        self.oracle.excused |= {key for key in self.oracle.given_up if key not in here}

    def _meanwhile(self, decisions: list[Decision]) -> None:
        if self._nested:
            return
        self._nested = True
        try:
            for decision in decisions:
                self.run(decision)
        finally:
            self._nested = False

    def next_line(self) -> str:
        """One that nobody wrote before."""
        self._lines += 1
        return f"{self._lines:0{LINE_BYTES - 1}d}\n"

    # --- who changes things --------------------------------------------------------------------------------------

    def _operate(self, machine: Machine, verb: str, *arguments: Any) -> bool:
        before = machine.view(self._contents)
        if verb in _WRITING:
            arguments = (arguments[0], self.next_line(), *arguments[1:])
        done = machine.operate(verb, *arguments)
        after = machine.view(self._contents)
        if verb == "chmod" and done and arguments[0] in after:
            self.oracle.touched(machine.host, after[arguments[0]], after)
        self._noted(machine.host, verb, arguments, before, after)
        return done

    def _noted(self, actor: str, verb: str, arguments: Sequence[Any], before: dict[str, Key], after: dict[str, Key]) -> None:
        if verb in ("mv", "exchange", "link", "api_mv"):
            self.oracle.renamed(actor, arguments[0], arguments[1])
        if verb == "exchange":
            self.oracle.renamed(actor, arguments[1], arguments[0])
        if before != after:
            self.oracle.operated(actor, before, after)

    def _contents(self, content_hash: str) -> bytes:
        return self._known.get(content_hash) or self._remembered(content_hash)

    def _remembered(self, content_hash: str) -> bytes:
        """Contents by hash; the server had them all, in this life or an earlier one."""
        self._known.update(self.server.life.contents)
        return self._known[content_hash]

    def _api(self, verb: str, path: str, *arguments: Any) -> bool:
        """A client of the API, who looks before he acts."""
        before, server = self._server_view(), self.server
        found = server.life.entries.get(path)
        self._acting = True
        try:
            match verb:
                case "api_put":
                    old = server.content(path)[1] if arguments[0] and found is not None and found.kind == "file" else b""
                    server.put(path, old + self.next_line().encode())
                case "api_rm":
                    server.delete(path, recursive=arguments[0])
                case "api_mv":
                    server.move(path, arguments[0], replace=arguments[1])
        except ClientError:
            return False
        finally:
            self._acting = False
        self._noted("api", verb, (path, *arguments), before, self._server_view())
        return True

    def _server_changed(self, path: str) -> None:
        self.oracle.told(path)
        if not self._acting:
            self.oracle.arrived("api", path)

    def _server_view(self) -> dict[str, Key]:
        life = self.server.life
        found: dict[str, Key] = {}
        for path, entry in life.entries.items():
            found[path] = (entry.kind, life.contents.get(entry.content_hash, b""))
            above = path
            while above := above.rpartition("/")[0]:
                if above in found:
                    break
                found[above] = DIR
        return found

    # --- the end -------------------------------------------------------------------------------------------------

    def settle(self) -> None:
        """Faults end, time passes, until nobody has anything to do. ViolationError when that does not come."""
        for machine in self.machines:
            machine.calm()
        for _ in range(_ROUNDS_MAX):
            before = self.server.life.seq
            busy = False
            for machine in self.machines:
                machine.clock.advance(200.0)
                busy = machine.rest() or busy
            if (not busy and self.server.life.seq == before) or self._alarm.heard:
                return
        raise ViolationError("it does not come to rest")

    def judge(self) -> None:
        """All invariants, after `settle`. ViolationError."""
        server = self._server_view()
        modes = {path: entry.mode & 0o777 for path, entry in self.server.life.entries.items() if entry.kind != "symlink"}
        wrong = list(self._alarm.heard)
        for machine in self.machines:
            view = machine.view(self._contents)
            for path in machine.leftovers():
                if path not in server:
                    view.pop(path, None)
            if view != server:
                wrong.append(f"{machine.host} differs from the server: {_difference(view, server)}")
            here = machine.modes()
            wrong += [f"{machine.host}: mode of {path}" for path, mode in modes.items() if here.get(path, mode) != mode]
            wrong += machine.unsettled(self.server.life)
        wrong += self.oracle.violations(server)
        if wrong:
            raise ViolationError("\n".join(wrong))

    def still(self) -> None:
        """Resting once more changes nothing. ViolationError."""
        seq, views = self.server.life.seq, [machine.view(self._contents) for machine in self.machines]
        self.settle()
        if self.server.life.seq != seq or views != [machine.view(self._contents) for machine in self.machines]:
            raise ViolationError("it does not stay at rest")

    def digest(self) -> str:
        """Of everything that happened, and of what the server holds."""
        told = [(change.seq, change.kind, change.path, change.from_path) for change in self.server.life.changes]
        entries = [(path, entry.model_dump()) for path, entry in sorted(self.server.life.entries.items())]
        return hashlib.sha256(json.dumps([self.trace, told, entries], default=repr).encode()).hexdigest()


class _Alarm(logging.Handler):
    """Hears of exceptions that the engine did not expect: it goes on after them, which must not hide them."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.heard: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info and record.exc_info[1] is not None:
            self.heard.append("unexpected: " + "".join(traceback.format_exception(record.exc_info[1])))


_ENGINE_LOG: Final = logging.getLogger("memdir.sync")
_WRITING: Final = frozenset({"append", "backup", "edit", "save", "symlink", "write"})


def _difference(view: dict[str, Key], other: dict[str, Key]) -> str:
    paths = sorted(view.keys() | other.keys())
    return ", ".join(f"{path}: {view.get(path)} / {other.get(path)}" for path in paths if view.get(path) != other.get(path))


def run(config: Config, decisions: Sequence[Decision], shelf: Shelf) -> str:
    """A whole schedule; the digest of it. ViolationError."""
    with World(config, shelf) as world:
        for decision in decisions:
            world.run(decision)
        finish(world)
        return world.digest()


def finish(world: World) -> None:
    """The end of a schedule. ViolationError."""
    world.settle()
    world.judge()
    world.still()
