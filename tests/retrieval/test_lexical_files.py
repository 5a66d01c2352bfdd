"""The files of the index of words: whole after a death anywhere, made again when they are damaged or gone."""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from memdir.retrieval.derived_index import folder_of
from memdir.retrieval.lexical import container as container_module
from memdir.retrieval.lexical.index import NAME, SegmentedIndex
from memdir.store.types import Scope
from tests.retrieval.lexical_killed import DIED, filled
from tests.retrieval.lexical_world import WORDS, FakeLog, exhaustive
from tests.retrieval.test_lexical import agree

ROOT = Path(__file__).parent.parent.parent
WHOLE = Scope(container_id=1)


@pytest.mark.promise("retrieved.killed")
def test_a_death_at_any_step_leaves_an_index_that_answers_right(tmp_path: Path) -> None:
    """The log that the survivor sees is that of the beginning: what the dead process had indexed since is not in the store."""
    run = subprocess.run(
        [sys.executable, "-m", "tests.retrieval.lexical_killed", str(tmp_path)],
        cwd=ROOT, capture_output=True, text=True, check=True, timeout=120,
    )  # fmt: skip
    codes = [int(line.split()[1]) for line in run.stdout.splitlines()]
    assert len(codes) > 12
    assert codes == [*[DIED] * (len(codes) - 1), 0]
    log = filled(random.Random(3))
    expected = exhaustive(log, WHOLE, WORDS[:5], 30)
    for allowed in range(len(codes)):
        index = SegmentedIndex(log, tmp_path / str(allowed))
        assert index.check(1) == [], allowed
        assert [chunk_id for chunk_id, _ in index.search(WHOLE, WORDS[:5], 30)] == [chunk_id for chunk_id, _ in expected], (
            allowed
        )
        folder = folder_of(tmp_path / str(allowed), 1, NAME)
        assert not list(folder.glob("*.tmp")) if folder.is_dir() else True
        index.close()


def flipped(folder: Path) -> None:
    segment = max(folder.glob("*.segment"), key=lambda path: path.stat().st_size)
    data = bytearray(segment.read_bytes())
    data[-1000] ^= 0xFF
    segment.write_bytes(data)


def shortened(folder: Path) -> None:
    segment = next(folder.glob("*.segment"))
    segment.write_bytes(segment.read_bytes()[:-100])


def lost(folder: Path) -> None:
    next(folder.glob("*.segment")).unlink()


def garbled(folder: Path) -> None:
    (folder / "manifest.json").write_text('{"segments": [1]}')


def older(folder: Path) -> None:
    manifest = folder / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"terms": ', '"terms": 9'))


@pytest.fixture
def built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeLog:
    """An index in files below `tmp_path`."""
    monkeypatch.setattr(container_module, "FLUSH_AT_CLOSE_WORDS", 1)
    log = filled(random.Random(4))
    index = SegmentedIndex(log, tmp_path)
    index.settle(1)
    index.close()
    assert list(folder_of(tmp_path, 1, NAME).glob("*.segment"))
    return log


@pytest.mark.parametrize("damage", [flipped, shortened, lost, garbled, older])
def test_damaged_files_are_found_and_made_again(tmp_path: Path, built: FakeLog, damage: Callable[[Path], None]) -> None:
    damage(folder_of(tmp_path, 1, NAME))
    index = SegmentedIndex(built, tmp_path)
    assert [finding.kind for finding in index.check(1)] == ["index-damaged"]
    agree(index, built, random.Random(1), 1)
    index.close()
    again = SegmentedIndex(built, tmp_path)
    assert again.check(1, full=True) == []
    again.close()


def test_a_few_bytes_overwritten_anywhere_are_found(tmp_path: Path, built: FakeLog) -> None:
    for path in folder_of(tmp_path, 1, NAME).iterdir():
        whole = path.read_bytes()
        for at in range(0, len(whole) - 64, max(1, len(whole) // 50)):
            path.write_bytes(whole[:at] + b"overwritten     " * 4 + whole[at + 64 :])
            index = SegmentedIndex(built, tmp_path)
            assert [finding.kind for finding in index.check(1)] == ["index-damaged"], (path.name, at)
            index.close()
            path.write_bytes(whole)
    assert SegmentedIndex(built, tmp_path).check(1, full=True) == []


def test_deleted_files_come_back(tmp_path: Path, built: FakeLog) -> None:
    shutil.rmtree(tmp_path / "indexes")
    index = SegmentedIndex(built, tmp_path)
    assert index.containers() == []
    agree(index, built, random.Random(2), 1)
    index.close()
    assert index.containers() == [1]
    index.drop(1)
    assert index.containers() == []
    agree(index, built, random.Random(2), 1)
    index.close()


def test_a_store_that_went_back_in_time_is_believed(tmp_path: Path, built: FakeLog) -> None:
    """Restored from a backup: the same ids stand for other texts."""
    other = filled(random.Random(5))
    index = SegmentedIndex(other, tmp_path)
    agree(index, other, random.Random(3), 1)
    assert index.check(1, full=True) == []
    index.close()
    assert built.held.keys() == other.held.keys()


def test_an_index_that_disagrees_is_found_by_its_check(tmp_path: Path, built: FakeLog) -> None:
    """Passages that vanish without a word in the log, as no store of ours lets them."""
    index = SegmentedIndex(built, tmp_path)
    assert index.check(1) == []
    del built.held[7]
    (finding,) = index.check(1)
    assert finding.kind == "index-differs"
    assert "1 that are gone" in finding.detail
    assert index.rebuild(1) == len(built.held)
    assert index.check(1) == []
    index.close()


def test_a_large_container_is_answered_by_the_database_until_its_index_is_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from memdir.retrieval.lexical import container
    from memdir.retrieval.lexical import index as index_module

    monkeypatch.setattr(index_module, "LOADED_AT_ONCE", 5)
    monkeypatch.setattr(container, "FLUSH_AT_CLOSE_WORDS", 1)
    log = filled(random.Random(6))
    index = SegmentedIndex(log, tmp_path, fallback=lambda scope, phrases, limit: [(-1, 1.0)])
    assert index.search(WHOLE, WORDS[:3], 5) == [(-1, 1.0)]
    index.settle(1)
    answer = index.search(WHOLE, WORDS[:3], 5)
    agree(index, log, random.Random(4), 1)
    index.close()
    again = SegmentedIndex(log, tmp_path, fallback=lambda scope, phrases, limit: [(-1, 1.0)])
    assert again.search(WHOLE, WORDS[:3], 5) == answer, "what files hold is not answered by others after a start"
    again.close()


def test_a_search_does_not_wait_for_the_many_passages_of_another_change(monkeypatch: pytest.MonkeyPatch) -> None:
    from memdir.retrieval.lexical import index as index_module

    log = filled(random.Random(6))
    asked: list[int] = []

    def newer(_scope: Scope, _phrases: Sequence[str], _limit: int, above: int) -> list[tuple[int, float]]:
        asked.append(above)
        return [(above + 1, 1e6)]

    index = SegmentedIndex(log, None, newer=newer)
    answer = index.search(WHOLE, WORDS[:3], 5)
    monkeypatch.setattr(index_module, "AT_ONCE_PASSAGES", 5)
    monkeypatch.setattr(SegmentedIndex, "follow", lambda self, container_id: None)
    log.put(1, "few", "/few", [(f"zebra {number}", "") for number in range(4)])
    answer = index.search(WHOLE, WORDS[:3], 5)
    assert asked == [], "little is read by the search itself"
    newest = max(log.held)
    log.put(1, "many", "/many", [(f"boiler {number}", "") for number in range(20)])
    reads = log.reads
    assert index.search(WHOLE, WORDS[:3], 5) == [(newest + 1, 1e6), *answer[:4]], "the store answers for what is new"
    assert asked == [newest]
    assert log.reads == reads
    index.settle(1)
    assert index.search(WHOLE, WORDS[:3], 5) != answer
    agree(index, log, random.Random(4), 1)
    index.close()
