"""A sample of the changes of `tests/mutants.py`, in this process and with short forms of the tests that notice them.

`make mutants` makes all of them, with all the tests. The short form for the queue leaves out what the other tests look at.
"""

from __future__ import annotations

import importlib
import itertools
import random
from collections.abc import Callable

import pytest

from tests import mutants
from tests.sync import test_planner, trees
from tests.sync.test_queue_model import drive


def try_planner() -> None:
    """The table, a part of the small trees in both orders, and some hundred perturbed ones."""
    for local, remote, base, step in test_planner.TABLE:
        assert test_planner.plan(local, remote, base).step is step
    for order in itertools.permutations(("/a", "/a/x")):
        for case in itertools.islice(trees.family(), 0, None, 7):
            case.settle(order=order)
    for seed in range(2500):
        rng = random.Random(seed)
        trees.draw(rng).settle(rng)


def try_queue() -> None:
    """Some runs against the model."""
    for seed in range(6):
        drive(seed, 200)


def is_noticed(mutant: mutants.Mutant, attempt: Callable[[], None]) -> bool:
    with mutants.put_in(mutant):
        try:
            attempt()
        except Exception:  # noqa: BLE001  an assertion or whatever the changed code makes of it
            return True
    return False


@pytest.mark.promise("simulated.mutants")
@pytest.mark.parametrize(
    ("module", "attempt", "sample", "least"),
    [("memdir.sync.planner", try_planner, 30, 0.9), ("memdir.sync.push.queue", try_queue, 20, 0.7)],
    ids=["planner", "queue"],
)
def test_most_changes_of_the_code_are_noticed(module: str, attempt: Callable[[], None], sample: int, least: float) -> None:
    attempt()
    chosen = mutants.mutants(importlib.import_module(module), sample=sample, seed=5)
    missed = [str(mutant) for mutant in chosen if not is_noticed(mutant, attempt)]
    assert len(chosen) >= sample - 2
    assert len(missed) <= (1 - least) * sample, missed
    attempt()
