"""Mounts for the exercises, each served by a process of its own. Where one is on disk, fsck looks at it at the end."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from memdir.fs.cache.fsck import check
from memdir.fs.fuse.mounting import unmount_path
from memdir.fs.fuse.mountpoint import is_mountpoint
from tests.exercise.difference import OwnMount


@pytest.fixture(params=["fast", "observed"])
def own(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[OwnMount]:
    """A mount of this test, in each profile; at the end it has unmounted without a failure, and fsck finds nothing."""
    mount = OwnMount(tmp_path, profile=request.param)
    try:
        yield mount
        mount.stop()
        assert check(mount.data) == []
    finally:
        if is_mountpoint(mount.path):  # a failed test
            unmount_path(mount.path, lazy=True)
