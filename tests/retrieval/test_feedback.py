"""What is like the best passages rises, and says no more surely than before that it is an answer."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from memdir.retrieval.embed.port import CosineScale
from memdir.retrieval.fuse import Scales, Signals, Tuning, fed_back, fuse

SCALE = CosineScale(unrelated=0.05, close=0.5, middle=0.34, slope=23.5)
NEAR = np.array([[1.0, 0, 0], [0.8, 0.6, 0], [0.6, 0.8, 0], [0.6, 0.8, 0], [0, 0, 1.0]], dtype=np.float32)


def signals(cosines: list[float]) -> Signals:
    count = len(cosines)
    nothing = np.zeros(count)
    return fuse(
        ids=np.arange(1, count + 1),
        lexical=nothing,
        static=nothing,
        dense=np.array(cosines),
        path=nothing,
        scales=Scales(static=SCALE, dense=SCALE),
        tuning=Tuning(),
    )


def test_of_two_that_are_as_near_the_one_like_the_best_comes_first_and_none_is_surer() -> None:
    before = signals([0.6, 0.5, 0.4, 0.3, 0.31])
    after = fed_back(before, NEAR, Tuning())
    assert after.fused[3] > after.fused[4], "it is what the best three are about"
    assert before.fused[3] < before.fused[4]
    assert after.semantic.tolist() == before.semantic.tolist()
    assert np.argsort(-after.fused)[:3].tolist() == [0, 1, 2]


def test_a_passage_without_vectors_of_its_lines_counts_as_the_mean_of_the_others() -> None:
    gists = NEAR.copy()
    gists[4] = np.nan
    before = signals([0.6, 0.5, 0.4, 0.3, 0.3])
    assert fed_back(before, gists, Tuning()).fused[4] > fed_back(before, NEAR, Tuning()).fused[4]


@pytest.mark.parametrize("missing", [0, 1, 2])
def test_without_the_vectors_of_one_of_the_best_nothing_changes(missing: int) -> None:
    gists = NEAR.copy()
    gists[missing] = np.nan
    before = signals([0.6, 0.5, 0.4, 0.3, 0.31])
    assert fed_back(before, gists, Tuning()) is before
    assert fed_back(before, NEAR, replace(Tuning(), feedback=0.0)) is before


def test_what_is_no_answer_itself_brings_no_others_up() -> None:
    before = signals([0.2, 0.19, 0.18, 0.1, 0.11])
    after = fed_back(before, NEAR, Tuning())
    assert after.fused[3] < after.fused[4]
    assert np.abs(after.fused - before.fused).max() < 0.05


def test_the_nearest_of_what_is_nowhere_near_gets_no_full_score_for_it() -> None:
    near, far = signals([0.5, 0.3, 0.1]).dense, signals([0.10, 0.08, 0.06]).dense
    assert near is not None
    assert far is not None
    assert near.max() == 1.0
    assert far.max() < 0.5
    assert np.argsort(-far).tolist() == [0, 1, 2]
