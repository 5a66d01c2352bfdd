"""`memdir bench traces`: what is measured on made-up users says something only when the same seed makes the same."""

from __future__ import annotations

from argparse import Namespace

from memdir_bench.traces.command import run


def test_the_same_seed_gives_the_same_figures() -> None:
    first, again = (run(Namespace(quick=True))["figures"] for _ in range(2))
    assert first == again
    assert {one["name"] for one in first} >= {"tiers", "who_did_it", "anomaly_robust_recall"}
