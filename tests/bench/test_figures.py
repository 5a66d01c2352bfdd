"""Figures say whether they reached their goal, and the corpus they are measured on is always the same."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from memdir_bench.corpus import FACTS, generate, write
from memdir_bench.figures import Figure, p50_p95, percentile, processor, ratio_to_native
from memdir_bench.smoke import count_chunks, table
from memdir_bench.words import shared_stems


@pytest.mark.parametrize(("share", "expected"), [(0.0, 1.0), (0.5, 5.0), (0.95, 10.0), (1.0, 10.0)])
def test_a_percentile_is_a_measured_value(share: float, expected: float) -> None:
    assert percentile([10, 9, 8, 7, 6, 5, 4, 3, 2, 1], share) == expected


def test_no_samples_never_meet_a_goal() -> None:
    _, p95 = p50_p95("nothing", [], unit="ms", goal_p95=10)
    assert math.isnan(p95.value)
    assert p95.met is False
    assert p95.as_json()["value"] is None


@pytest.mark.parametrize(
    ("value", "goal", "better", "met"),
    [
        (5, 10, "lower", True),
        (10, 10, "lower", True),
        (11, 10, "lower", False),
        (0.5, 0.42, "higher", True),
        (0.4, 0.42, "higher", False),
    ],
)
def test_a_goal_is_met_on_the_right_side(value: float, goal: float, better: str, met: bool) -> None:
    figure = Figure(name="x", value=value, unit="u", samples=1, goal=goal, better="lower" if better == "lower" else "higher")
    assert figure.met is met


def test_without_a_goal_nothing_is_claimed() -> None:
    assert "met" not in Figure(name="x", value=1, unit="u", samples=1).as_json()


def test_a_ratio_is_native_time_over_mount_time_round_by_round() -> None:
    figure = ratio_to_native("create", [1.0, 2.0, 3.0], [2.0, 2.0, 12.0], goal=0.4)
    assert (figure.value, figure.spread, figure.met) == (0.5, (0.25, 1.0), True)


def test_the_corpus_is_the_same_for_the_same_seed_and_grows_at_its_end() -> None:
    assert list(generate(40)) == list(generate(60))[:40]
    assert list(generate(40)) != list(generate(40, seed=2))


def test_the_corpus_has_many_kinds_and_unique_paths(tmp_path: Path) -> None:
    files = list(generate(72))
    assert {Path(file.path).suffix for file in files} == {".md", ".eml", ".txt", ".csv", ".py", ".json"}
    assert len({file.path for file in files}) == len(files)
    assert write(tmp_path, iter(files)) == sum(len(file.text.encode()) for file in files)
    assert count_chunks(tmp_path) >= 5 * len(files)


def test_the_generated_code_is_code() -> None:
    for file in generate(72):
        if file.path.endswith(".py"):
            compile(file.text, file.path, "exec")


@pytest.mark.parametrize(("fact", "question"), FACTS)
def test_a_fresh_fact_cannot_be_found_by_its_words(fact: str, question: str) -> None:
    assert shared_stems(question, fact) == set()


def test_the_table_names_what_was_not_measured() -> None:
    report = {
        "figures": [Figure(name="grep", value=1.5, unit="ms", samples=3, goal=1).as_json()],
        "failed": {"search": "no server"},
    }
    assert "NO" in table(report)
    assert "not measured: search: no server" in table(report)


def test_the_processor_is_named_with_its_generation(tmp_path: Path) -> None:
    told = tmp_path / "cpuinfo"
    first = "processor\t: 0\ncpu family\t: 26\nmodel\t\t: 2\nmodel name\t: AMD EPYC\nflags\t\t: fpu: vme\n"
    told.write_text(f"{first}\nprocessor\t: 1\nmodel name\t: another\n", encoding="utf-8")
    assert processor(told) == "AMD EPYC, family 26, model 2"
    told.write_text("Hardware : something else\n", encoding="utf-8")
    assert processor(told) == ""
    assert processor(tmp_path / "none") == ""
