"""Weights as people write them."""

from __future__ import annotations

import pytest

from memdir.api.agents import Weights
from memdir.core.errors import UsageError
from memdir.core.weights import ENV_WEIGHTS, WEIGHT_MAX, parsed_weights, told_weights


def test_names_that_are_given_are_taken_and_no_others() -> None:
    assert parsed_weights(" bm25=0.6, recency = .1,decay-per-day=2 ") == {"bm25": 0.6, "recency": 0.1, "decay_per_day": 2.0}
    assert parsed_weights("") == {}


@pytest.mark.parametrize("text", ["speed=1", "bm25", "bm25=", "bm25=2", "tags=-1", "project=nan", "frequency=inf", "=1"])
def test_anything_else_is_refused(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError):
        parsed_weights(text)
    monkeypatch.setenv(ENV_WEIGHTS, text)
    with pytest.raises(UsageError, match=ENV_WEIGHTS):
        told_weights()


def test_the_bounds_are_those_of_the_wire() -> None:
    assert set(WEIGHT_MAX) == set(Weights.model_fields)
    for name, most in WEIGHT_MAX.items():
        assert getattr(Weights(**{name: most}), name) == most
        with pytest.raises(ValueError, match="less than or equal"):
            Weights(**{name: most + 0.1})
