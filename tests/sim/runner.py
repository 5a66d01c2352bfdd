"""One seed or one kept schedule: does it hold, and if not, what is the shortest one that fails in the same way?"""

from __future__ import annotations

import json
import traceback
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

from tests.sim.chooser import Chooser
from tests.sim.disk import Shelf
from tests.sim.machine import Decision
from tests.sim.world import Config, ViolationError, World, finish

_TRIES_MAX: Final = 3000


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """A schedule that broke something. `kind` is the same for failures that look alike."""

    config: Config
    decisions: list[Decision]
    kind: str
    text: str
    seed: int | None = None

    def __str__(self) -> str:
        lines = "\n".join("  " + json.dumps(decision) for decision in self.decisions)
        return f"seed {self.seed}, {self.config}\n{lines}\n{self.kind}: {self.text}"

    def to_json(self) -> str:
        """As `tests/sim/regressions` holds them."""
        lines = ",\n".join("  " + json.dumps(decision) for decision in self.decisions)
        return (
            f'{{"seed": {json.dumps(self.seed)}, "kind": {json.dumps(self.kind)},\n'
            f'"config": {json.dumps(asdict(self.config))},\n"decisions": [\n{lines}\n]}}\n'
        )


def attempt(seed: int, shelf: Shelf) -> Failure | None:
    """Choose a schedule and carry it out; None when all invariants hold."""
    chooser = Chooser(seed)
    decisions: list[Decision] = []
    with World(chooser.config, shelf) as world:
        try:
            while len(decisions) < chooser.length:
                for decision in chooser.next(world):
                    decisions.append(decision)
                    world.run(decision)
            finish(world)
        except Exception as error:  # noqa: BLE001  whatever it is, it is the finding
            return _failure(chooser.config, decisions, error, seed)
    return None


def chosen(seed: int, shelf: Shelf) -> tuple[Config, list[Decision], str]:
    """The schedule of a seed, and the digest of all that happens in it. Raises what it breaks."""
    chooser = Chooser(seed)
    decisions: list[Decision] = []
    with World(chooser.config, shelf) as world:
        while len(decisions) < chooser.length:
            for decision in chooser.next(world):
                decisions.append(json.loads(json.dumps(decision)))
                world.run(decision)
        finish(world)
        return chooser.config, decisions, world.digest()


def replay(kept: dict[str, Any], shelf: Shelf) -> Failure | None:
    """A schedule of `to_json` once more."""
    return _again(Config.of(kept["config"]), kept["decisions"], shelf)


def _again(config: Config, decisions: Sequence[Decision], shelf: Shelf, seed: int | None = None) -> Failure | None:
    copied = json.loads(json.dumps(list(decisions)))
    with World(config, shelf) as world:
        try:
            for decision in copied:
                world.run(decision)
            finish(world)
        except Exception as error:  # noqa: BLE001
            return _failure(config, list(decisions), error, seed)
    return None


def _failure(config: Config, decisions: list[Decision], error: Exception, seed: int | None) -> Failure:
    if isinstance(error, ViolationError):
        text = str(error)
        kind = _shape(text)
    else:
        text = "".join(traceback.format_exception(error))
        kind = f"{type(error).__name__} in {traceback.extract_tb(error.__traceback__)[-1].name}"
    return Failure(config=config, decisions=list(decisions), kind=kind, text=text, seed=seed)


def _shape(text: str) -> str:
    """What kind of violation: its first words that say so."""
    for words in (
        "unexpected",
        "is nowhere",
        "took it away",
        "parked",
        "does not stay",
        "does not come",
        "differs",
        "mode of",
        "watermark",
    ):
        if words in text:
            return words
    return "not agreed on"


def shrunk(failure: Failure, shelf: Shelf) -> Failure:
    """Delta debugging (Zeller and Hildebrandt 2002) on the decisions, then on those inside of traps, then on the number of
    machines."""
    best, tries = failure, 0
    improved = True
    while improved and tries < _TRIES_MAX:
        improved = False
        size = max(1, len(best.decisions) // 2)
        while size and tries < _TRIES_MAX:
            start = 0
            while start < len(best.decisions) and tries < _TRIES_MAX:
                tries += 1
                shorter = best.decisions[:start] + best.decisions[start + size :]
                found = _again(best.config, shorter, shelf, failure.seed)
                if found is not None and found.kind == failure.kind:
                    best, improved = found, True
                else:
                    start += size
            size //= 2
        for simpler in _simpler(best):
            tries += 1
            found = _again(simpler[0], simpler[1], shelf, failure.seed)
            if found is not None and found.kind == failure.kind:
                best, improved = found, True
                break
    return best


def _simpler(failure: Failure) -> list[tuple[Config, list[Decision]]]:
    """The same with something smaller in it."""
    found: list[tuple[Config, list[Decision]]] = []
    config, decisions = failure.config, failure.decisions
    plain = Config(lazy=(False,) * len(config.lazy), skew_s=(0,) * len(config.skew_s), page=1000, fragile=config.fragile)
    if config != plain:
        found.append((plain, decisions))
        found.append((replace(config, skew_s=plain.skew_s), decisions))
        found.append((replace(config, lazy=plain.lazy, skew_s=plain.skew_s), decisions))
    if len(config.lazy) > 2:
        fewer = replace(config, lazy=config.lazy[:-1], skew_s=config.skew_s[:-1])
        last = len(config.lazy) - 1
        found.append((fewer, [each for each in decisions if not _concerns(each, last)]))
    for index, decision in enumerate(decisions):
        if decision[0] == "trap" and decision[4][0] == "meanwhile":
            inner = decision[4][1]
            for left_out in range(len(inner)):
                less = [*decision[:4], ["meanwhile", inner[:left_out] + inner[left_out + 1 :]]]
                found.append((config, [*decisions[:index], less, *decisions[index + 1 :]]))
    return found


def _concerns(decision: Decision, machine: int) -> bool:
    if decision[0] == "trap" and decision[4][0] == "meanwhile" and any(_concerns(each, machine) for each in decision[4][1]):
        return True
    return len(decision) > 1 and decision[1] == machine and not decision[0].startswith("api_") and decision[0] != "wait"
