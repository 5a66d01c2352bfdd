"""What arrives from a server is visible at once, although the kernel caches for days."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.fuse.harness import MountProcess
from tests.fuse.test_names import refused

pytestmark = pytest.mark.mount


@pytest.fixture
def mount(own_mount: MountProcess) -> MountProcess:
    return own_mount


@pytest.mark.promise("parts.invalidation")
def test_new_contents_reach_whoever_has_read_the_old_ones(mount: MountProcess) -> None:
    mount.call("put", path="/f", text="first contents")
    assert (mount.path / "f").read_text() == "first contents"
    mount.call("put", path="/f", text="other contents")
    assert (mount.path / "f").read_text() == "other contents"
    mount.call("put", path="/f", text="short")
    assert (mount.path / "f").read_text() == "short"
    assert os.stat(mount.path / "f").st_size == 5


def test_new_contents_reach_an_open_process_that_looks_again(mount: MountProcess) -> None:
    mount.call("put", path="/f", text="one")
    with (mount.path / "f").open() as reader:
        assert reader.read() == "one"
        mount.call("put", path="/f", text="two, longer")
        assert os.stat(mount.path / "f").st_size == 11
        with (mount.path / "f").open() as again:
            assert again.read() == "two, longer"


@pytest.mark.promise("parts.invalidation")
def test_a_name_that_was_missing_appears(mount: MountProcess) -> None:
    assert not (mount.path / "later").exists()
    assert not (mount.path / "folder").exists()
    mount.call("put", path="/later", text="x")
    mount.call("put", path="/folder/inner", text="y")
    assert (mount.path / "later").read_text() == "x"
    assert (mount.path / "folder" / "inner").read_text() == "y"


@pytest.mark.promise("parts.invalidation")
def test_a_deleted_name_is_gone(mount: MountProcess) -> None:
    mount.call("put", path="/f", text="x")
    assert (mount.path / "f").read_text() == "x"
    mount.call("delete", path="/f")
    with refused(2):
        os.stat(mount.path / "f")
    assert "f" not in os.listdir(mount.path)


def test_listings_that_were_cached_change(mount: MountProcess) -> None:
    (mount.path / "d").mkdir()
    for number in range(5):
        mount.call("put", path=f"/d/{number}", text="x")
        assert sorted(os.listdir(mount.path / "d")) == [str(name) for name in range(number + 1)]
    mount.call("delete", path="/d/2")
    assert sorted(os.listdir(mount.path / "d")) == ["0", "1", "3", "4"]


def test_a_move_is_seen_at_both_ends(mount: MountProcess) -> None:
    mount.call("put", path="/a/f", text="x")
    assert (mount.path / "a" / "f").read_text() == "x"
    assert not (mount.path / "b").exists()
    mount.call("move", source="/a", path="/b")
    assert not (mount.path / "a").exists()
    assert (mount.path / "b" / "f").read_text() == "x"


def test_a_mode_that_changed_is_seen(mount: MountProcess) -> None:
    mount.call("put", path="/f", text="x", mode=0o644)
    assert os.stat(mount.path / "f").st_mode & 0o777 == 0o644
    mount.call("set_mode", path="/f", mode=0o600)
    assert os.stat(mount.path / "f").st_mode & 0o777 == 0o600


def test_a_remote_change_while_a_folder_is_busy_does_not_deadlock(mount: MountProcess) -> None:
    """Invalidating a name needs the folder's lock, which a listing in progress holds."""
    mount.call("put_many", folder="/d", count=300, text="x")
    with os.scandir(mount.path / "d") as entries:
        for number, entry in enumerate(entries):
            if number % 50 == 0:
                mount.call("put", path=f"/d/{entry.name}", text="changed")
    assert len(os.listdir(mount.path / "d")) == 300


def test_a_local_edit_and_a_remote_one_end_in_one_state(mount: MountProcess) -> None:
    (mount.path / "f").write_text("local")
    assert mount.call("read", path="/f") == "local"
    mount.call("put", path="/f", text="remote")
    with (mount.path / "f").open("a") as handle:
        handle.write(" and local")
    assert (mount.path / "f").read_text() == "remote and local"
    assert mount.call("read", path="/f") == "remote and local"


def test_a_flood_of_changes_becomes_one_invalidation_of_everything(mountpoint: Path) -> None:
    """The queue holds ten notifications here; deletions, changes and new names are visible all the same."""
    with MountProcess(mountpoint, options={"notify_queue_max": 10}) as mount:
        mount.call("put_many", folder="/d", count=200, text="old contents")
        contents = [(mountpoint / "d" / str(number)).read_text() for number in range(200)]
        assert contents == ["old contents"] * 200
        before = mount.call("stats")["overflows"]
        mount.call("put_many", folder="/d", count=200, text="new contents")
        assert mount.call("stats")["overflows"] >= before
        contents = [(mountpoint / "d" / str(number)).read_text() for number in range(200)]
        assert contents == ["new contents"] * 200
        assert not (mountpoint / "d" / "300").exists()
        mount.call("put_many", folder="/d", count=301, text="x")
        assert (mountpoint / "d" / "300").exists()
        assert mount.call("stats")["overflows"] > 0
