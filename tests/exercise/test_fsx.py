"""Every byte of two files stays what a model in memory says, through writes, mappings, holes, copies, kills and remounts."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.exercise.difference import OwnMount
from tests.exercise.fsx import Exerciser

pytestmark = pytest.mark.mount


@pytest.mark.promise("exercise.fsx")
def test_no_byte_differs_from_the_model(own: OwnMount) -> None:
    Exerciser(own, 1).run(20_000 if own.label == "fast" else 3_000, remounts=4 if own.label == "fast" else 2)


def test_a_byte_that_changed_by_itself_is_found_and_told_with_its_seed(tmp_path: Path) -> None:
    nowhere: Any = SimpleNamespace(path=tmp_path, process=SimpleNamespace(call=lambda *_, **__: None))
    exerciser = Exerciser(nowhere, 77)
    try:
        exerciser.run(300)
        exerciser.fds = [os.open(path, os.O_RDWR) for path in exerciser.paths]
        place = len(exerciser.models[0]) // 2
        os.pwrite(exerciser.fds[0], bytes([exerciser.models[0][place] ^ 1]), place)
        with pytest.raises(AssertionError, match=rf"seed 77, operation 300, file 0: byte {place}\n(\d+: .*\n?)+"):
            exerciser.check()
    finally:
        exerciser.close()


@pytest.mark.long
@pytest.mark.timeout(7200)
@pytest.mark.promise("exercise.fsx")
def test_no_byte_differs_from_the_model_in_a_million_operations(own: OwnMount) -> None:
    for seed in range(10, 20):
        Exerciser(own, seed).run(100_000, remounts=10)
