"""Files of derived indexes are there whole or not at all, wherever the process that writes them ends."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from memdir.retrieval import derived_index as index


class DiedError(BaseException):
    """The process ended here."""


class Steps:
    """Lets a number of steps happen; then the process ends."""

    def __init__(self) -> None:
        self.taken: list[str] = []
        self.allowed = 1_000_000

    def __call__(self, what: str) -> None:
        if len(self.taken) >= self.allowed:
            raise DiedError(what)
        self.taken.append(what)


@pytest.fixture
def steps() -> Iterator[Steps]:
    counted = Steps()
    index.BEFORE_STEP.append(counted)
    yield counted
    index.BEFORE_STEP.remove(counted)


def test_a_file_is_the_old_or_the_new_one_at_every_step(tmp_path: Path, steps: Steps) -> None:
    path = tmp_path / "manifest.json"
    for allowed in range(4):
        steps.allowed, steps.taken = 100, []
        index.write_synced(path, [b"old"])
        steps.allowed, steps.taken = allowed, []
        if allowed < 3:
            with pytest.raises(DiedError):
                index.write_synced(path, [b"n", memoryview(b"ew")])
        else:
            assert index.write_synced(path, [b"n", memoryview(b"ew")]) == 3
        assert path.read_bytes() == (b"old" if allowed < 2 else b"new")


def test_what_was_not_finished_is_swept_away_and_nothing_else(tmp_path: Path, steps: Steps) -> None:
    index.write_synced(tmp_path / "kept", [b"1"])
    whole = tmp_path / "generation-2.tmp"
    whole.mkdir()
    (whole / "half").write_bytes(b"2")
    steps.allowed, steps.taken = 1, []
    with pytest.raises(DiedError):
        index.write_synced(tmp_path / "lost", [b"3"])
    steps.allowed = 100
    assert index.sweep(tmp_path) == 2
    assert [entry.name for entry in tmp_path.iterdir()] == ["kept"]
    assert index.sweep(tmp_path / "never made") == 0


def test_a_folder_that_is_taken_away_is_gone_at_once(tmp_path: Path, steps: Steps) -> None:
    for container_id in (12, 3):
        folder = index.folder_of(tmp_path, container_id, "words")
        folder.mkdir(parents=True)
        (folder / "segment").write_bytes(b"x")
    assert index.containers_in(tmp_path, "words") == [3, 12]
    assert index.containers_in(tmp_path, "other") == []
    index.remove(index.folder_of(tmp_path, 12, "words"))
    assert index.containers_in(tmp_path, "words") == [3]
    assert steps.taken == ["remove words"]
    assert not list((tmp_path / "indexes" / "12").iterdir())
