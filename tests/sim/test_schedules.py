"""Schedules of both lanes: all machines end up equal, and nothing that was acknowledged is lost."""

from __future__ import annotations

import os

import pytest

from tests.sim.disk import Shelf
from tests.sim.lane import hold

_CHUNK = 500
_LONG_CHUNK = 10_000
_TEST_LANE_SCHEDULES = 1_500
"""The long lane goes on from there."""
LONG_SCHEDULES = int(os.environ.get("MEMDIR_SIM_SCHEDULES", "1000000"))


@pytest.mark.promise("simulated.schedules", "sync.conflict-both", "sync.clock")
@pytest.mark.parametrize("first", range(0, _TEST_LANE_SCHEDULES, _CHUNK))
def test_whatever_happens_all_machines_end_up_equal_and_nothing_is_lost(first: int, shelf: Shelf) -> None:
    hold(first, _CHUNK, shelf)


@pytest.mark.long
@pytest.mark.timeout(0)
@pytest.mark.parametrize("first", range(_TEST_LANE_SCHEDULES, _TEST_LANE_SCHEDULES + LONG_SCHEDULES, _LONG_CHUNK))
def test_whatever_happens_in_the_long_lane_all_machines_end_up_equal(first: int, shelf: Shelf) -> None:
    hold(first, min(_LONG_CHUNK, _TEST_LANE_SCHEDULES + LONG_SCHEDULES - first), shelf)
