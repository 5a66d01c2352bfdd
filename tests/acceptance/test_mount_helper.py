"""mount(8) and fstab(5) call `memdir SOURCE DIR -o OPTIONS`."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from memdir.cli.mounts import mount_helper
from memdir.core.errors import UsageError
from tests.acceptance.driver import Memdir, is_mounted

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="mount(2) with MS_REMOUNT is for root")


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["notes", "/mnt", "-o", "ro"], True),
        (["memdir:notes", "/mnt", "-o", "rw,remount"], True),
        (["mount", "notes", "--path", "/mnt"], False),
        (["grep", "-o", "x", "y"], False),
        (["notes", "/mnt", "-o"], False),
    ],
)
def test_only_two_names_and_options_are_a_call_of_mount(arguments: list[str], expected: bool) -> None:
    assert mount_helper.is_helper_call(arguments) is expected


def test_what_fstab_adds_is_ignored_and_what_nobody_knows_refused() -> None:
    usual = "rw,nosuid,nodev,relatime,noauto,nofail,_netdev,x-systemd.automount,user_id=0,max_read=1048576"
    assert mount_helper._as_arguments(usual.split(",")) == []
    assert mount_helper._as_arguments(["ro", "no-sync", "cache-size=2G"]) == ["--read-only", "--no-sync", "--cache-size=2G"]
    for word in ("bogus", "cache-size", "remount=1"):
        with pytest.raises(UsageError, match="is not known"):
            mount_helper._as_arguments([word])


@pytest.mark.mount
@pytest.mark.promise("posix.mount-helper")
def test_a_line_of_fstab_mounts_a_memory(memdir: Memdir) -> None:
    place = memdir.folder / "via fstab"
    memdir.run("memdir:helped", place, "-o", "rw,noauto,no-sync")
    try:
        (place / "a").write_text("a")
        assert [entry["name"] for entry in memdir.run("list", "--json").json() if entry["path"] == str(place)] == ["helped"]
    finally:
        memdir.run("unmount", place)
    assert "hint:" in memdir.run("helped", place, "-o", "bogus", expect=2).err
    assert not is_mounted(place)


@pytest.mark.mount
@as_root
@pytest.mark.promise("posix.mount-helper")
def test_a_mount_is_remounted_read_only_and_back(memdir: Memdir, notes: Path) -> None:
    (notes / "a").write_text("a")
    memdir.run("memdir:any", notes, "-o", "rw,nosuid,nodev,noatime,remount,ro")
    with pytest.raises(OSError, match=os.strerror(errno.EROFS)):
        (notes / "a").write_text("b")
    assert (notes / "a").read_text() == "a"
    memdir.run("memdir:any", notes, "-o", "nosuid,nodev,noatime,remount,rw")
    (notes / "a").write_text("b")
    error = memdir.run("memdir:any", memdir.folder, "-o", "remount,ro", expect=2).err
    assert "cannot be remounted" in error
