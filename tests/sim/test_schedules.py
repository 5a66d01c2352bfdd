"""Schedules of both lanes: all machines end up equal, and nothing that was acknowledged is lost."""

from __future__ import annotations

import os
from typing import Any, Final

import pytest

from tests.sim.disk import Shelf
from tests.sim.lane import hold
from tests.sim.runner import replay

_CHUNK = 500
_LONG_CHUNK = 10_000
_TEST_LANE_SCHEDULES = 1_500
"""The long lane goes on from there."""
LONG_SCHEDULES = int(os.environ.get("MEMDIR_SIM_SCHEDULES", "1000000"))


@pytest.mark.promise("simulated.schedules", "sync.conflict-both", "sync.clock")
@pytest.mark.parametrize("first", range(0, _TEST_LANE_SCHEDULES, _CHUNK))
def test_whatever_happens_all_machines_end_up_equal_and_nothing_is_lost(first: int, shelf: Shelf) -> None:
    hold(first, _CHUNK, shelf)


RARE: Final[dict[str, dict[str, Any]]] = {
    "a put that is done behind a delete that is refused": {
        "seed": 106825, "kind": "took it away",
        "config": {"lazy": [False, False], "skew_s": [0, 0], "page": 1000, "fragile": True},
        "decisions": [
            ["mkdir", 0, "/d"], ["save", 0, "/d", "t.tmp"], ["sync", 0], ["rm", 0, "/t.tmp"], ["symlink", 0, "/t.tmp"],
            ["sync", 0], ["api_rm", "/t.tmp", True], ["wait", 60.0], ["push", 0, 1], ["api_rm", "/t.tmp", False],
        ],
    },
}  # fmt: skip
"""What one of ten thousand schedules met, cut down: each failed on the engine of its day."""


@pytest.mark.parametrize("kept", list(RARE))
def test_what_seldom_happens_is_borne_too(kept: str, shelf: Shelf) -> None:
    assert replay(RARE[kept], shelf) is None


@pytest.mark.long
@pytest.mark.timeout(0)
@pytest.mark.parametrize("first", range(_TEST_LANE_SCHEDULES, _TEST_LANE_SCHEDULES + LONG_SCHEDULES, _LONG_CHUNK))
def test_whatever_happens_in_the_long_lane_all_machines_end_up_equal(first: int, shelf: Shelf) -> None:
    hold(first, min(_LONG_CHUNK, _TEST_LANE_SCHEDULES + LONG_SCHEDULES - first), shelf)
