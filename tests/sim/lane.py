"""What the tests of the lanes share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.sim.disk import Shelf
from tests.sim.runner import attempt, shrunk


@pytest.fixture(scope="module")
def shelf() -> Iterator[Shelf]:
    made = Shelf()
    yield made
    made.close()


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> None:
    """Conflicts and lost connections are what these tests are about; the world itself listens for errors."""
    caplog.set_level("ERROR", logger="memdir")


def hold(first: int, count: int, shelf: Shelf) -> None:
    """All invariants hold for these seeds; else the shortest schedule that breaks one is shown."""
    for seed in range(first, first + count):
        failure = attempt(seed, shelf)
        if failure is not None:
            pytest.fail(
                f"{shrunk(failure, shelf)}\n\nto see it again: python -m tests.sim --seed {seed} --shrink", pytrace=False
            )
