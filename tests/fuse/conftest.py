"""Mounts for the tests of the driver. One mount serves many tests, each in a folder of its own."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest

from memdir.fs.cache.fsck import check
from memdir.fs.fuse.mounting import unmount_path
from memdir.fs.fuse.mountpoint import is_mountpoint
from tests.fuse.harness import MountProcess

KINDS = ["memory", "sqlite"]

_numbers = itertools.count()


@pytest.fixture(scope="session", params=[("memory", "fast"), ("sqlite", "fast"), ("memory", "observed")], ids="-".join)
def shared_mount(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[MountProcess]:
    """A mount without views. At the end it unmounts cleanly, its log is empty, and fsck finds nothing."""
    kind, profile = request.param
    base = tmp_path_factory.mktemp(f"mount-{kind}-{profile}")
    (base / "mnt").mkdir()
    (base / "data").mkdir()
    with MountProcess(base / "mnt", kind=kind, folder=base / "data", options={"profile": profile}) as mount:
        yield mount
    if kind == "sqlite":
        assert check(base / "data") == []


@pytest.fixture
def place(shared_mount: MountProcess) -> Path:
    """An empty folder in the shared mount."""
    folder = shared_mount.path / f"test-{next(_numbers)}"
    folder.mkdir()
    return folder


@pytest.fixture
def mountpoint(tmp_path: Path) -> Iterator[Path]:
    """An empty directory to mount on. What a failing test leaves mounted is detached, which also ends its serving process."""
    folder = tmp_path / "mnt"
    folder.mkdir()
    yield folder
    if is_mountpoint(folder):
        unmount_path(folder, lazy=True)


@pytest.fixture(params=KINDS)
def own_mount(request: pytest.FixtureRequest, tmp_path: Path, mountpoint: Path) -> Iterator[MountProcess]:
    """A mount of this test alone, with views."""
    (tmp_path / "data").mkdir()
    with MountProcess(mountpoint, kind=request.param, folder=tmp_path / "data", views=True) as mount:
        yield mount
    if request.param == "sqlite":
        assert check(tmp_path / "data") == []
