"""Every byte of two files stays what a model in memory says, through writes, mappings, holes, copies, kills and remounts."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from memdir.core.errors import UsageError
from memdir.fs.cache.fsck import check
from memdir.fs.fuse.backing import check_passthrough
from tests.exercise.difference import OwnMount
from tests.exercise.fsx import Exerciser

pytestmark = pytest.mark.mount


@pytest.mark.promise("exercise.fsx")
def test_no_byte_differs_from_the_model(own: OwnMount) -> None:
    Exerciser(own, 1).run(20_000 if own.label == "fast" else 3_000, remounts=4 if own.label == "fast" else 2)


def test_a_copy_sees_what_the_kernel_wrote_to_a_lent_file_a_moment_ago(tmp_path: Path) -> None:
    try:
        check_passthrough()
    except UsageError as error:
        pytest.skip(error.message)
    own = OwnMount(tmp_path, profile="observed", passthrough=True, blob_min_bytes=5000)
    fd = os.open(own.path / "f", os.O_RDWR | os.O_CREAT, 0o644)
    try:
        os.pwrite(fd, b"x" * 300_000, 0)
        os.ftruncate(fd, 130)
        os.pwrite(fd, b"Z", 12_079)
        assert os.copy_file_range(fd, fd, 1, 12_079, 20_000) == 1
        assert os.pread(fd, 10, 20_000) == b"Z"
    finally:
        os.close(fd)
        own.stop()
    assert check(own.data) == []


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


@pytest.mark.long
@pytest.mark.timeout(7200)
@pytest.mark.promise("exercise.fsx")
def test_no_byte_differs_when_the_kernel_reads_and_writes_blobs_by_itself(tmp_path: Path) -> None:
    try:
        check_passthrough()
    except UsageError as error:
        pytest.skip(error.message)
    own = OwnMount(tmp_path, profile="observed", passthrough=True, blob_min_bytes=5000)
    try:
        Exerciser(own, 30).run(100_000, remounts=10)
    finally:
        own.stop()
    assert check(own.data) == []
