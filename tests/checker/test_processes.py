"""Three real mounts, an API client, a rough network, kill -9 of daemons and of the server: `tests.checker.run`."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tests.acceptance.driver import mounts_below
from tests.checker.run import Result, Run

pytestmark = pytest.mark.mount
LONG_S = float(os.environ.get("MEMDIR_CHECKER_SECONDS", "600"))
"""How long the long run goes wrong; hours are fine, too."""
SEED = int(os.environ.get("MEMDIR_CHECKER_SEED", "1"))


def run(folder: Path, *, seed: int, seconds: float) -> Result:
    """What is left behind is looked at when something was wrong; mounts and processes are never left."""
    folder.mkdir()
    result = Run(folder, seed=seed, seconds=seconds).run()
    assert not result.findings, result.report()
    assert not result.complaints, result.report()
    assert mounts_below(folder) == []
    shutil.rmtree(folder)
    return result


@pytest.mark.long
@pytest.mark.promise("simulated.processes")
@pytest.mark.timeout(700)  # a dozen seconds of faults; the rest depends on who else uses the machine
def test_nothing_is_lost_between_three_mounts_that_are_killed_and_cut_off(tmp_path: Path) -> None:
    result = run(tmp_path / "run", seed=SEED, seconds=8)
    assert {"daemon killed", "server killed", "network cut"} <= result.deeds.keys()
    assert len(result.history.ops) > 50, "somebody worked"
    assert len(result.history.steps) > 50


@pytest.mark.long
@pytest.mark.promise("simulated.processes")
@pytest.mark.timeout(LONG_S * 2 + 900)
def test_nothing_is_lost_for_a_long_time(tmp_path: Path) -> None:
    result = run(tmp_path / "run", seed=SEED, seconds=LONG_S)
    assert sum(result.deeds.values()) > LONG_S / 20
