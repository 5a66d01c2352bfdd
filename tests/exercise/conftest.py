"""Mounts for the exercises, each served by a process of its own. Where one is on disk, fsck looks at it at the end."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from memdir.fs.cache.fsck import check
from memdir.fs.fuse.mounting import unmount_path
from memdir.fs.fuse.mountpoint import is_mountpoint
from tests.exercise.difference import OwnMount

BLOB_MIN_BYTES = 5000
"""Small, so that contents become files of their own and chunks again within a few operations."""


@pytest.fixture(params=["fast", "observed", "fast-blobs"])
def own(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[OwnMount]:
    """A mount of this test, in each profile and form of storage. At the end it has unmounted well, and fsck finds nothing."""
    profile, _, blobs = request.param.partition("-")
    more = {"blob_min_bytes": BLOB_MIN_BYTES} if blobs else {}
    mount = OwnMount(tmp_path, profile=profile, reads_intents=True, **more)
    try:
        yield mount
        mount.stop()
        assert check(mount.data) == []
    finally:
        if is_mountpoint(mount.path):  # a failed test
            unmount_path(mount.path, lazy=True)
