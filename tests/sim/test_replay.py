"""A seed does the same again: in this process, in another one, and from its written schedule. What fails is cut short."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from memdir.sync.model import Action, Fact, Step
from memdir.sync.push import pusher as pusher_module
from memdir.sync.push.renames import Renames
from tests.sim.disk import Shelf
from tests.sim.runner import Failure, attempt, chosen, replay, shrunk
from tests.sim.world import Config, World, finish, run

REGRESSIONS = sorted((Path(__file__).parent / "regressions").glob("*.json"))


@pytest.mark.promise("simulated.replay")
@pytest.mark.parametrize("first", range(0, 100, 25))
def test_a_seed_replays_byte_for_byte(first: int, shelf: Shelf) -> None:
    for seed in range(first, first + 25):
        config, decisions, digest = chosen(seed, shelf)
        assert chosen(seed, shelf) == (config, decisions, digest)
        assert run(config, json.loads(json.dumps(decisions)), shelf) == digest, f"seed {seed} from its written schedule"


@pytest.mark.long
@pytest.mark.timeout(0)
def test_a_thousand_seeds_replay_byte_for_byte(shelf: Shelf) -> None:
    for seed in range(1_000):
        assert chosen(seed, shelf) == chosen(seed, shelf)


@pytest.mark.promise("simulated.replay")
def test_a_seed_replays_byte_for_byte_in_another_process(shelf: Shelf) -> None:
    seeds = range(200, 215)
    told = subprocess.run(
        [sys.executable, "-m", "tests.sim", "--digest", "--seed", str(seeds[0]), "--count", str(len(seeds))],
        cwd=Path(__file__).parents[2], env=os.environ | {"PYTHONHASHSEED": "77"}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert told.stdout.split() == [chosen(seed, shelf)[2] for seed in seeds]


@pytest.mark.promise("sync.renames")
@pytest.mark.parametrize("kept", REGRESSIONS, ids=lambda path: path.stem)
def test_what_once_broke_something_does_not_any_more(kept: Path, shelf: Shelf) -> None:
    failure = replay(json.loads(kept.read_text()), shelf)
    assert failure is None, str(failure)


@pytest.mark.parametrize("kept", [path for path in REGRESSIONS if path.stem.startswith("own-")], ids=lambda path: path.stem)
def test_an_own_write_that_was_replaced_while_its_answer_was_lost_leaves_no_copy(kept: Path, shelf: Shelf) -> None:
    schedule = json.loads(kept.read_text())
    with World(Config.of(schedule["config"]), shelf) as world:
        for decision in schedule["decisions"]:
            world.run(decision)
        finish(world)
        assert not [path for path in world.server.life.entries if "(conflict " in path]


def _failure(shelf: Shelf, first: int) -> Failure:
    """Of one of 600 schedules; `first` is the seed of one that fails today, or of one shortly before."""
    for seed in range(first, first + 600):
        failure = attempt(seed, shelf)
        if failure is not None:
            return failure
    raise AssertionError("600 schedules did not notice it")


def _without_conflicts(plan: Callable[..., Action]) -> Callable[..., Action]:
    def planned(local: Fact | None, remote: Fact | None, *rest: object, **more: object) -> Action:
        action = plan(local, remote, *rest, **more)
        if action.step is Step.CONFLICT and remote is not None:
            return Action(step=Step.PULL, mode=remote.mode)
        return action

    return planned


def _deletes_win(plan: Callable[..., Action]) -> Callable[..., Action]:
    def planned(local: Fact | None, remote: Fact | None, base: Fact | None, **more: object) -> Action:
        if remote is None and base is not None and local is not None and local.kind == "file":
            return Action(step=Step.DELETE_LOCAL)
        return plan(local, remote, base, **more)

    return planned


def _forgets_deletes(plan: Callable[..., Action]) -> Callable[..., Action]:
    def planned(local: Fact | None, remote: Fact | None, base: Fact | None, **more: object) -> Action:
        if local is None and remote is not None and remote.kind == "file":
            return Action(step=Step.PULL, mode=remote.mode)
        return plan(local, remote, base, **more)

    return planned


@pytest.mark.promise("simulated.shrinks")
@pytest.mark.parametrize(
    ("break_it", "first", "kind"),
    [(_without_conflicts, 0, "is nowhere"), (_deletes_win, 240, "is nowhere"), (_forgets_deletes, 140, "took it away")],
)
def test_a_planner_that_loses_is_caught_and_the_schedule_is_cut_down_to_what_matters(
    break_it: Callable[..., Callable[..., Action]], first: int, kind: str, monkeypatch: pytest.MonkeyPatch, shelf: Shelf
) -> None:
    monkeypatch.setattr(pusher_module, "plan_in_tree", break_it(pusher_module.plan_in_tree))
    failure = _failure(shelf, first)
    short = shrunk(failure, shelf)
    assert short.kind == failure.kind == kind
    assert len(short.decisions) <= min(8, len(failure.decisions))
    again = replay(json.loads(short.to_json()), shelf)
    assert again is not None
    assert (again.kind, again.text) == (short.kind, short.text)
    for left_out in range(len(short.decisions)):
        less = json.loads(short.to_json())
        del less["decisions"][left_out]
        fails = replay(less, shelf)
        assert fails is None or fails.kind != short.kind, "one more could be left out"


@pytest.mark.promise("simulated.schedules")
def test_a_rename_that_forgets_what_waited_below_it_is_caught(monkeypatch: pytest.MonkeyPatch, shelf: Shelf) -> None:
    monkeypatch.setattr(Renames, "fall_apart", lambda self, tx, move: self._ctx.queue.drop_move(tx, move))
    assert _failure(shelf, 570).kind
