"""`memdir cost`: the paper's tables come out of the paper's formulas, and a user's own numbers count."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from memdir.agents.cost import SCENARIOS, CostModel

Run = Callable[..., tuple[int, str, str]]


@pytest.mark.promise("agent.cost")
def test_the_tables_of_the_paper_come_out(run: Run) -> None:
    code, out, err = run("cost", "--no-usage", "--tables", "--json")
    assert (code, err) == (0, "")
    tables = json.loads(out)["tables"]
    assert [(row["break_even"], row["turn"]) for row in tables["break_even"]] == [(6.12, 7), (3.56, 4), (3.56, 4), (2.54, 3)]
    assert [(row["tokens"], row["amplification"]) for row in tables["capacity"]] == [
        (6_400_000, 32), (64_000_000, 320), (640_000_000, 3200)
    ]  # fmt: skip


def test_the_window_of_the_paper_is_budgeted_as_there() -> None:
    assert CostModel().response_tokens() == 190_440
    assert CostModel().amplification(25.3e6) == pytest.approx(126.5)


@pytest.mark.parametrize(("name", "model"), SCENARIOS)
def test_the_sums_are_those_of_turn_after_turn(name: str, model: CostModel) -> None:
    turns = range(1, model.turns + 1)
    assert model.baseline_total == pytest.approx(sum(model.baseline_at(turn) for turn in turns)), name
    assert model.with_memory_total == pytest.approx(sum(model.with_memory_at for _ in turns))
    assert next(turn for turn in turns if model.ratio_at(turn) < 1) == model.break_even_turn
    assert model.baseline_at(model.window_full_turn) > model.window_tokens >= model.baseline_at(model.window_full_turn - 1)


def test_a_turn_that_costs_the_same_is_not_yet_cheaper() -> None:
    model = CostModel(tokens_per_turn=512, top_k=2, chunk_tokens=512)
    assert (model.break_even, model.ratio_at(3), model.break_even_turn) == (3, 1, 4)


def test_ones_own_numbers_are_computed_without_a_server(run: Run) -> None:
    code, out, err = run("cost", "--tokens-per-turn", "2000", "--top-k", "10", "--turns", "3", "--window", "6000")
    assert code == 0
    assert "no server runs" in err
    assert "break-even       3.56: cheaper from turn 4 on" in out
    assert "window           full at turn 4" in out
    report = json.loads(run("cost", "--no-usage", "--turns", "3", "--json")[1])
    assert report["reduction"] < 0, "three turns are too few to save anything"
    assert [row["turn"] for row in report["by_turn"]] == [1, 2, 3]


@pytest.mark.parametrize("option", [("--tokens-per-turn", "0"), ("--top-k", "nan"), ("--turns", "0"), ("--window", "many")])
def test_numbers_that_mean_nothing_are_refused(run: Run, option: tuple[str, str]) -> None:
    code, _, err = run("cost", "--no-usage", *option)
    assert code == 2
    assert option[0] in err
