"""Directories on a real mount."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

pytestmark = pytest.mark.mount

_MANY = 5000


def test_a_large_folder_is_listed_completely_and_only_once(place: Path) -> None:
    expected = {f"file-{number:05d}" for number in range(_MANY)}
    for name in expected:
        os.close(os.open(place / name, os.O_CREAT | os.O_WRONLY))
    names = os.listdir(place)
    assert len(names) == _MANY
    assert set(names) == expected
    with os.scandir(place) as entries:
        assert {entry.name for entry in entries if entry.is_file(follow_symlinks=False)} == expected
    assert sum(1 for entry in os.scandir(place) if entry.stat().st_size == 0) == _MANY


def test_a_listing_survives_changes_made_while_it_runs(place: Path) -> None:
    """POSIX: names that are there from start to end appear exactly once, whatever happens to the others."""
    stable = {f"stable-{number:04d}" for number in range(1500)}
    doomed = [f"doomed-{number:04d}" for number in range(1500)]
    for name in (*stable, *doomed):
        (place / name).touch()
    seen = []
    with os.scandir(place) as entries:
        for number, entry in enumerate(entries):
            seen.append(entry.name)
            if number < len(doomed):
                (place / doomed[number]).unlink()
                (place / f"new-{number:04d}").touch()
    assert len(seen) == len(set(seen))
    assert stable <= set(seen)
    left = set(os.listdir(place))
    assert left == stable | {f"new-{number:04d}" for number in range(1500)}


def test_removing_while_listing_empties_a_folder(place: Path) -> None:
    for number in range(1000):
        (place / str(number)).touch()
    with os.scandir(place) as entries:
        for entry in entries:
            os.unlink(entry.path)
    assert os.listdir(place) == []


def test_types_in_a_listing_are_right(place: Path) -> None:
    (place / "file").touch()
    (place / "folder").mkdir()
    os.symlink("file", place / "link")
    with os.scandir(place) as entries:
        kinds = {entry.name: (entry.is_file(follow_symlinks=False), entry.is_dir(), entry.is_symlink()) for entry in entries}
    assert kinds == {"file": (True, False, False), "folder": (False, True, False), "link": (False, False, True)}


def test_a_listing_can_start_again(place: Path) -> None:
    (place / "a").touch()
    fd = os.open(place, os.O_RDONLY | os.O_DIRECTORY)
    try:
        assert os.listdir(fd) == ["a"]
        (place / "b").touch()
        assert sorted(os.listdir(fd)) == ["a", "b"]
        (place / "a").unlink()
        assert os.listdir(fd) == ["b"]
    finally:
        os.close(fd)


def test_inode_numbers_in_a_listing_are_those_of_stat(place: Path) -> None:
    (place / "sub").mkdir()
    (place / "sub" / "f").touch()
    with os.scandir(place / "sub") as entries:
        (entry,) = entries
        assert entry.inode() == os.stat(place / "sub" / "f").st_ino
    assert os.stat(place / "sub" / ".").st_ino == os.stat(place / "sub").st_ino
    assert os.stat(place / "sub" / "..").st_ino == os.stat(place).st_ino
