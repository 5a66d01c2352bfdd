"""Half of the test lane's schedules; the other half is in a file of its own, so that two workers share them."""

from __future__ import annotations

import pytest

from tests.sim.disk import Shelf
from tests.sim.lane import hold

_CHUNK = 500


@pytest.mark.promise("simulated.schedules", "sync.conflict-both", "sync.clock")
@pytest.mark.parametrize("first", range(0, 3_000, _CHUNK))
def test_whatever_happens_all_machines_end_up_equal_and_nothing_is_lost(first: int, shelf: Shelf) -> None:
    hold(first, _CHUNK, shelf)
