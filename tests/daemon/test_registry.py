"""The registry of mounts: who owns a path, which folder a new start gets, what is alive."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys
from pathlib import Path

import pytest

from memdir.core.errors import BusyError, NotFoundError
from memdir.core.paths import AppPaths, app_paths
from memdir.daemon.registry import MountLock, MountRecord, MountRegistry, MountSpec, lock_holder_exists, resolve_outside


@pytest.fixture
def paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AppPaths:
    monkeypatch.setenv("MEMDIR_HOME", str(tmp_path / "home"))
    return app_paths()


@pytest.fixture
def registry(paths: AppPaths) -> MountRegistry:
    return MountRegistry(paths)


def running(registry: MountRegistry, record: MountRecord) -> MountLock:
    """Make `record` look like a running mount: this process, holding the lock."""
    lock = MountLock.acquire(record.lock_file)
    registry.save(dataclasses.replace(record, pid=os.getpid()))
    return lock


def test_a_saved_record_comes_back_equal_with_odd_names(registry: MountRegistry, tmp_path: Path) -> None:
    record = registry.allocate(MountSpec(name="notes", path=str(tmp_path / "naïve \udcff dir"), sync=False, profile="observed"))
    assert registry.all() == [record]
    assert registry.get(record.id) == record


def test_the_record_and_its_folder_are_private(registry: MountRegistry, tmp_path: Path) -> None:
    record = registry.allocate(MountSpec(name="notes", path=str(tmp_path / "n")))
    assert Path(record.cache_dir).stat().st_mode & 0o777 == 0o700
    assert (Path(record.cache_dir) / "mount.json").stat().st_mode & 0o777 == 0o600


def test_the_same_name_at_the_same_place_keeps_its_folder(registry: MountRegistry, tmp_path: Path) -> None:
    first = registry.allocate(MountSpec(name="notes", path=str(tmp_path / "a"), imported=True))
    again = registry.allocate(MountSpec(name="notes", path=str(tmp_path / "a")))
    assert again.id == first.id
    assert again.imported


def test_an_unused_folder_of_the_name_moves_to_the_new_place(registry: MountRegistry, tmp_path: Path) -> None:
    first = registry.allocate(MountSpec(name="notes", path=str(tmp_path / "a"), created_dir=True))
    moved = registry.allocate(MountSpec(name="notes", path=str(tmp_path / "b")))
    assert moved.id == first.id
    assert moved.path == str(tmp_path / "b")
    assert not moved.created_dir, "the new mountpoint was not made by us"


def test_a_second_mount_of_a_running_name_gets_its_own_folder(registry: MountRegistry, tmp_path: Path) -> None:
    first = registry.allocate(MountSpec(name="notes", path=str(tmp_path / "a")))
    lock = running(registry, first)
    try:
        second = registry.allocate(MountSpec(name="notes", path=str(tmp_path / "b")))
    finally:
        lock.release()
    assert second.id != first.id


def test_another_name_at_a_running_mounts_place_is_refused(registry: MountRegistry, tmp_path: Path) -> None:
    lock = running(registry, registry.allocate(MountSpec(name="notes", path=str(tmp_path / "a"))))
    try:
        with pytest.raises(BusyError, match="already mounted as notes"):
            registry.allocate(MountSpec(name="other", path=str(tmp_path / "a")))
    finally:
        lock.release()


def test_a_pinned_folder_is_used_even_when_another_is_newer(registry: MountRegistry, tmp_path: Path) -> None:
    first = registry.allocate(MountSpec(name="notes", path=str(tmp_path / "a")))
    lock = running(registry, first)
    newer = registry.allocate(MountSpec(name="notes", path=str(tmp_path / "b")))
    lock.release()
    pinned = registry.allocate(MountSpec(name="notes", path=str(tmp_path / "c"), mount_id=first.id))
    assert pinned.id == first.id != newer.id


def test_alive_needs_the_process_and_the_lock(registry: MountRegistry, tmp_path: Path) -> None:
    record = registry.allocate(MountSpec(name="notes", path=str(tmp_path / "a")))
    assert record.state == "stopped"
    lock = running(registry, record)
    assert registry.get(record.id).state == "alive"
    lock.release()
    assert registry.get(record.id).state == "dead", "the pid lives, but nobody holds the lock"


def test_the_lock_dies_with_its_process(tmp_path: Path) -> None:
    code = (
        "import sys, pathlib\nfrom memdir.daemon.registry import MountLock\n"
        "lock = MountLock.acquire(pathlib.Path(sys.argv[1]))\nprint('held', flush=True)\nsys.stdin.read()"
    )
    child = subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path / "lock")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with child:
        assert child.stdout is not None
        assert child.stdout.readline() == "held\n"
        assert lock_holder_exists(tmp_path / "lock")
        with pytest.raises(BusyError):
            MountLock.acquire(tmp_path / "lock")
        child.kill()
        child.wait(timeout=10)
    assert not lock_holder_exists(tmp_path / "lock")
    MountLock.acquire(tmp_path / "lock").release()


def test_asking_for_the_lock_never_takes_it(tmp_path: Path) -> None:
    (tmp_path / "lock").touch()
    assert not lock_holder_exists(tmp_path / "lock")
    lock = MountLock.acquire(tmp_path / "lock")
    assert lock_holder_exists(tmp_path / "lock")
    lock.release()


def test_a_path_inside_a_mount_is_found_with_its_path_in_the_mount(registry: MountRegistry, tmp_path: Path) -> None:
    record = registry.allocate(MountSpec(name="notes", path=str(tmp_path / "notes")))
    for path, inside in (("notes", "/"), ("notes/", "/"), ("notes/a/../b.md", "/b.md"), ("x/../notes/not there", "/not there")):
        found = registry.find_by_path(Path(f"{tmp_path}/{path}"))
        assert found is not None
        assert (found[0].id, found[1]) == (record.id, inside)


def test_neighbours_and_escapes_are_outside(registry: MountRegistry, tmp_path: Path) -> None:
    registry.allocate(MountSpec(name="notes", path=str(tmp_path / "notes")))
    for path in ("notes2/a", "note", "notes/../a.md", "notes/a/../../b", ""):
        assert registry.find_by_path(Path(f"{tmp_path}/{path}")) is None


def test_symlinks_outside_the_mount_lead_into_it(registry: MountRegistry, tmp_path: Path) -> None:
    record = registry.allocate(MountSpec(name="notes", path=str(tmp_path / "real" / "notes")))
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    (tmp_path / "deep").symlink_to(tmp_path / "link" / "notes" / "sub")
    found = registry.find_by_path(tmp_path / "deep" / "a.md")
    assert found is not None
    assert (found[0].id, found[1]) == (record.id, "/sub/a.md")


def test_resolving_never_follows_anything_below_a_mountpoint(tmp_path: Path) -> None:
    mountpoint = tmp_path / "notes"
    mountpoint.mkdir()
    (mountpoint / "link").symlink_to("/etc")
    assert resolve_outside(mountpoint / "link" / "passwd", {str(mountpoint)}) == f"{mountpoint}/link/passwd"


def test_a_symlink_loop_ends(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    assert resolve_outside(tmp_path / "a" / "x", set()).endswith("/x")


def test_a_running_mount_wins_over_a_stopped_one_with_a_longer_path(registry: MountRegistry, tmp_path: Path) -> None:
    registry.allocate(MountSpec(name="old", path=str(tmp_path / "m" / "old")))
    lock = running(registry, registry.allocate(MountSpec(name="new", path=str(tmp_path / "m"))))
    found = registry.find_by_path(tmp_path / "m" / "old" / "a")
    lock.release()
    assert found is not None
    assert (found[0].name, found[1]) == ("new", "/old/a")


def test_a_damaged_record_is_reported_and_hides_no_other(registry: MountRegistry, tmp_path: Path) -> None:
    good = registry.allocate(MountSpec(name="good", path=str(tmp_path / "g")))
    for name, text in (("bad1", "{"), ("bad2", "[]"), ("bad3", '{"id": "bad3"}'), ("bad4", '{"id": "other"}')):
        folder = Path(good.cache_dir).parent / name
        folder.mkdir()
        (folder / "mount.json").write_text(text)
    assert registry.all() == [good]
    assert len(registry.damaged()) == 4


def test_a_removed_record_is_not_found(registry: MountRegistry, tmp_path: Path) -> None:
    record = registry.allocate(MountSpec(name="notes", path=str(tmp_path / "a")))
    registry.remove(record.id)
    registry.remove(record.id)
    assert registry.all() == []
    with pytest.raises(NotFoundError):
        registry.get(record.id)


def test_two_starters_wait_for_each_other(registry: MountRegistry) -> None:
    with registry.exclusive(), pytest.raises(BusyError, match="another memdir mount"), registry.exclusive(timeout_s=0.05):
        pytest.fail("both were let in")
