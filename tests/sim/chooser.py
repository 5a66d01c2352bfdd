"""From a seed to a schedule: who does what next. It looks at the world, so that most operations find something to work on."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any, Final

from memdir.fs.localonly import is_local_only
from memdir.fs.path import join, split
from tests.sim.machine import Decision, Machine
from tests.sim.world import Config, World

NAMES: Final = ("a", "b", "A", "d", "e", "x.md", "y.md", "old~")
_TEMPORARY: Final = ("t.tmp", ".x.swp", "4913")
_MODES: Final = (0o644, 0o600, 0o755)
_DAY_S: Final = 86_400
_DEPTH_MAX: Final = 3

_USER: Final = {
    "write": 8, "append": 5, "edit": 3, "cut": 2, "save": 3, "backup": 1, "mkdir": 4, "rm": 4, "rmdir": 1, "rmtree": 2, "mv": 8,
    "swap": 1, "cycle": 1, "exchange": 1, "link": 1, "symlink": 1, "chmod": 2, "replace": 2, "read": 1,
}  # fmt: skip
_ENGINE: Final = {"sync": 6, "intake": 3, "feed": 3, "renames": 2, "push": 4, "keep": 1, "rest": 2}
_TROUBLE: Final = {"crash": 2, "trap": 8, "part": 1, "join": 1, "flush": 1, "power": 1, "jump": 1}
_SERVER: Final = {"api_put": 4, "api_rm": 2, "api_mv": 2, "prune": 1, "forget": 1}
_POINTS: Final = ("call", "answer", "tree", "commit", "committed")


class Chooser:
    """Each schedule has its own taste: some verbs are left out, others come often, so that rare mixtures happen too."""

    def __init__(self, seed: int) -> None:
        self._random = rng = random.Random(seed)
        count = rng.choice((2, 2, 2, 3, 3, 4))
        self.config = Config(
            lazy=tuple(rng.random() < 0.3 for _ in range(count)),
            skew_s=tuple(rng.choice((0, 0, -_DAY_S, _DAY_S, 3600)) for _ in range(count)),
            page=rng.choice((1, 2, 5, 1000)),
            fragile=rng.random() < 0.25,
        )
        self.length = rng.choice((8, 15, 15, 25, 25, 40))
        self._user = self._taste(_USER)
        self._engine = self._taste(_ENGINE)
        self._trouble = self._taste(_TROUBLE | ({"power": 6} if self.config.fragile else {"power": 0, "flush": 0}))
        self._server = self._taste(_SERVER)
        self._kinds = {
            "user": 10, "engine": 10, "wait": 4, "trouble": rng.choice((0, 2, 5)), "server": rng.choice((0, 1, 4)),
        }  # fmt: skip
        self._names = rng.sample(NAMES, rng.choice((2, 3, 4)))

    def _taste(self, weights: dict[str, int]) -> dict[str, float]:
        rng = self._random
        tasted = {verb: weight * rng.choice((0.0, 0.5, 1.0, 3.0)) for verb, weight in weights.items()}
        return tasted if any(tasted.values()) else dict(weights)

    def next(self, world: World) -> list[Decision]:
        """What is done next; some things are done in several steps."""
        match self._one_of(self._kinds):
            case "user":
                return self.user(self._machine(world))
            case "engine":
                return self._step(self._machine(world))
            case "wait":
                return [["wait", self._random.choice((0.1, 0.3, 3.0, 60.0, 400.0))]]
            case "server":
                return [self._of_server(world)]
            case _:
                return self._some_trouble(world)

    def _machine(self, world: World) -> Machine:
        return self._random.choice(world.machines)

    def _one_of(self, weights: dict[str, float] | dict[str, int]) -> str:
        return self._random.choices(list(weights), list(weights.values()))[0]

    # --- people --------------------------------------------------------------------------------------------------

    def user(self, machine: Machine) -> list[Decision]:
        """An operation on what the user sees."""
        rng, number = self._random, machine.number
        verb = self._one_of(self._user)
        paths = machine.paths()
        path = self._existing(paths) if rng.random() < 0.75 else self._any(paths)
        match verb:
            case "save":
                return [["save", number, path, rng.choice(_TEMPORARY)]]
            case "cut":
                return [["cut", number, path, rng.choice((0, 8, 16))]]
            case "chmod":
                return [["chmod", number, path, rng.choice(_MODES)]]
            case "mkdir" | "symlink":
                return [[verb, number, self._any(paths)]]
            case "mv" | "link" | "exchange":
                target = self._existing(paths) if rng.random() < 0.4 or verb == "exchange" else self._any(paths)
                return [[verb, number, path, target]]
            case "swap" | "cycle":
                return self._round(number, path, paths, verb)
            case "replace":
                end = rng.choice((["mkdir", number, path], ["symlink", number, path], ["write", number, path]))
                return [[rng.choice(("rm", "rmtree")), number, path], end]
        return [[verb, number, path]]

    def _round(self, number: int, path: str, paths: Sequence[str], verb: str) -> list[Decision]:
        """Names change places: two through a third one, or three in a circle."""
        second = self._existing(paths) if verb == "swap" else self._any(paths)
        third = self._any(paths)
        if verb == "swap":
            return [["mv", number, path, third], ["mv", number, second, path], ["mv", number, third, second]]
        return [["mv", number, path, second], ["mv", number, second, third], ["mv", number, third, path]]

    def _existing(self, paths: Sequence[str]) -> str:
        return self._random.choice(paths) if paths else "/" + self._random.choice(self._names)

    def _any(self, paths: Sequence[str]) -> str:
        """Where something might be put: in a folder or, as it may turn out, not."""
        rng = self._random
        folder = "/"
        if paths and rng.random() < 0.6:
            folder = rng.choice(paths)
            if folder.count("/") >= _DEPTH_MAX:
                folder = split(folder)[0]
        return join(folder, rng.choice(self._names))

    def _of_server(self, world: World) -> Decision:
        verb = self._one_of(self._server)
        paths = sorted(world.server.life.entries)
        path = self._existing(paths) if self._random.random() < 0.6 else self._any(paths)
        target = self._any(paths)
        if is_local_only(path) or is_local_only(target):
            return ["forget"]  # a client that puts such names has them at the server for itself
        match verb:
            case "api_put":
                return [verb, path, self._random.random() < 0.5]
            case "api_rm":
                return [verb, path, self._random.random() < 0.5]
            case "api_mv":
                return [verb, path, target, self._random.random() < 0.5]
        return [verb]

    # --- machines ------------------------------------------------------------------------------------------------

    def _step(self, machine: Machine) -> list[Decision]:
        verb, number = self._one_of(self._engine), machine.number
        if verb == "rest":
            return [["wait", 3.0], ["sync", number], ["wait", 3.0], ["sync", number]]
        if verb == "push":
            return [["push", number, self._random.choice((1, 2, 64))]]
        return [[verb, number]]

    def _some_trouble(self, world: World) -> list[Decision]:
        machine = self._machine(world)
        verb, number = self._one_of(self._trouble), machine.number
        if verb == "jump":
            return [["jump", number, self._random.choice((-_DAY_S, _DAY_S, -7200, 60))]]
        if verb == "trap":
            return [self._trap(machine, world)]
        return [[verb, number]]

    def _trap(self, machine: Machine, world: World) -> Decision:
        rng = self._random
        point = rng.choice(_POINTS)
        effects: list[list[Any]] = [["crash"], ["meanwhile", self._meanwhile(machine, world)]]
        if point == "call":
            effects += [["lose"], ["status", rng.choice((500, 503, 429, 401, 408))]]
        elif point == "answer":
            effects += [["lose"], ["lose"], ["status", 503], ["repeat"]]
        return ["trap", machine.number, point, rng.choice((1, 1, 2, 3, 5, 8)), rng.choice(effects)]

    def _meanwhile(self, machine: Machine, world: World) -> list[Decision]:
        """The same user goes on, others do, other machines sync, other threads of the same daemon work."""
        rng = self._random
        found: list[Decision] = []
        for _ in range(rng.choice((1, 1, 2, 3))):
            other = self._machine(world)
            match rng.randrange(5):
                case 0 | 1:
                    found += self.user(machine)
                case 2:
                    found += self.user(other)
                case 3:
                    found += [["wait", 3.0], *self._step(other)]
                case _:
                    found.append(self._of_server(world))
        return found
