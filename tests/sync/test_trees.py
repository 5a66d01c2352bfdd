"""The planner over whole trees: every case of a small one, and a great many perturbed ones, in every order of the paths."""

from __future__ import annotations

import itertools
import random

import pytest

from tests.sync import trees

RANDOM_CASES = 90_000
LONG_CASES = 1_000_000


def settle(seed: int) -> trees.Case:
    """One random case, by its number; a violation names it."""
    rng = random.Random(seed)
    case = trees.draw(rng)
    begun = f"local {case.local}\nremote {case.remote}\nbase {case.base}\nleftovers {set(case.leftovers)}"
    try:
        case.settle(rng)
    except trees.Violation as violation:
        raise AssertionError(f"seed {seed}: {violation}\n{begun}") from violation
    return case


@pytest.mark.promise("sync.planner")
def test_every_three_facts_of_a_folder_and_a_name_in_it_settle_in_both_orders_and_lose_nothing() -> None:
    count = 0
    for order in itertools.permutations(("/a", "/a/x")):
        for case in trees.family():
            case.settle(order=order)
            count += 1
    assert count > 10_000


@pytest.mark.promise("sync.planner")
def test_perturbed_trees_settle_in_a_bounded_number_of_rounds_and_lose_nothing() -> None:
    rounds = max(settle(seed).rounds for seed in range(RANDOM_CASES))
    assert 3 <= rounds <= trees.ROUNDS_MAX


@pytest.mark.long
@pytest.mark.parametrize("part", range(1, 11))
def test_millions_of_perturbed_trees_settle_and_lose_nothing(part: int) -> None:
    for seed in range(part * LONG_CASES, (part + 1) * LONG_CASES):
        settle(seed)
