"""Mounts and workers for the conformance table; each is started once and serves all cases."""

from __future__ import annotations

import itertools
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from memdir.fs.cache.fsck import check
from tests.fuse.harness import MountProcess
from tests.posix.sides import NOBODY, Side, Worker, native_kind

REFERENCES = {"ext4", "xfs", "btrfs"}
"""Filesystems whose answers count as those of Linux. Elsewhere (overlayfs in a container, say) only the table counts."""


@pytest.fixture(scope="session")
def base() -> Iterator[Path]:
    """A folder that other users can reach: pytest's own are 0700."""
    folder = Path(tempfile.mkdtemp(prefix="memdir-posix-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


_numbers = itertools.count()


def _native(stack: ExitStack, base: Path, uid: int | None) -> Worker | None:
    """A worker in a native directory that belongs to `uid`."""
    if native_kind(base) not in REFERENCES:
        return None
    folder = Path(tempfile.mkdtemp(prefix="native-", dir=base))
    folder.chmod(0o755)
    if uid is not None:
        os.chown(folder, uid, uid)
    return stack.enter_context(Worker(folder, base / f"{folder.name}.log", uid=uid))


def _serve(base: Path, name: str, uid: int | None) -> Iterator[Side]:
    """A mount of the SQLite cache with its worker. At the end it unmounts cleanly, its log is empty and fsck finds nothing."""
    number = next(_numbers)  # pytest may end a side and start it again for another module
    place, data = base / f"mnt-{name}-{number}", base / f"data-{name}-{number}"
    place.mkdir()
    data.mkdir(mode=0o700)
    config: dict[str, object] = {"options": {"profile": "observed" if name == "observed" else "fast"}}
    if uid is not None:
        for folder in (place, data):
            os.chown(folder, uid, uid)
        config |= {"uid": uid, "private_device": str(base / "fuse-device")}
    with ExitStack() as stack:
        mount = stack.enter_context(MountProcess(place, kind="sqlite", folder=data, **config))
        if uid is not None:  # the harness does not see that mount: it stands in the serving process's mount namespace
            stack.callback(mount.send, "unmount")
        pid = mount.pid if uid is not None else None
        worker = stack.enter_context(Worker(place, base / f"worker-{name}.log", uid=uid, pid=pid))
        yield Side(name=name, mount=mount, worker=worker, native=_native(stack, base, uid))
    assert check(data) == []


@pytest.fixture(scope="session", params=["fast", "observed"])
def side(request: pytest.FixtureRequest, base: Path) -> Iterator[Side]:
    """A mount of the user who runs the tests, in both profiles."""
    yield from _serve(base, request.param, None)


@pytest.fixture(scope="session")
def user_side(base: Path) -> Iterator[Side]:
    """A mount that an ordinary user made through fusermount3, when the tests run as root. It stands in a mount namespace of its
    own, in which everybody may open /dev/fuse."""
    yield from _serve(base, "user", NOBODY)


@pytest.fixture
def place(side: Side) -> Path:
    """An empty folder in the mount, in both profiles."""
    folder = side.mount.path / f"test-{next(_numbers)}"
    folder.mkdir()
    return folder
