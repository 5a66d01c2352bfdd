"""The files of the index of words: whole after a death anywhere, made again when they are damaged or gone."""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from memdir.core.errors import CorruptError
from memdir.retrieval.derived_index import folder_of
from memdir.retrieval.lexical import container as container_module
from memdir.retrieval.lexical import index as index_module
from memdir.retrieval.lexical.files import WORDS as WORDS_FIELD
from memdir.retrieval.lexical.files import verify, waste
from memdir.retrieval.lexical.index import NAME, WordIndexes
from memdir.store.types import Scope
from tests.retrieval.lexical_killed import filled
from tests.retrieval.lexical_world import WORDS, FakeLog
from tests.retrieval.test_lexical import agree

ROOT = Path(__file__).parent.parent.parent
WHOLE = Scope(container_id=1)


@pytest.mark.promise("retrieved.killed")
@pytest.mark.parametrize("turns", [1, 2, 3, 5, 8, 13])
def test_a_death_at_any_moment_leaves_an_index_that_answers_right(tmp_path: Path, turns: int) -> None:
    """The log that the survivor sees is that of the beginning: what the dead process had indexed since is not in the store."""
    with subprocess.Popen(
        [sys.executable, "-m", "tests.retrieval.lexical_killed", str(tmp_path)], cwd=ROOT, stdout=subprocess.PIPE
    ) as child:
        assert child.stdout is not None
        for turn in range(turns):
            assert child.stdout.readline() == b"%d\n" % turn
        child.kill()
    log = filled(random.Random(3))
    index = WordIndexes(log, tmp_path)
    agree(index, log, random.Random(1), 1)
    assert index.check(1, full=True) == []
    index.settle(1)
    index.close()
    again = WordIndexes(log, tmp_path)
    assert again.check(1, full=True) == []
    again.close()


def segment_files(folder: Path) -> list[Path]:
    return sorted((file for file in folder.iterdir() if not file.name.startswith(".")), key=lambda file: file.stat().st_size)


def flipped(folder: Path) -> None:
    largest = segment_files(folder)[-1]
    data = bytearray(largest.read_bytes())
    data[len(data) // 3] ^= 0xFF
    largest.write_bytes(data)


def shortened(folder: Path) -> None:
    largest = segment_files(folder)[-1]
    largest.write_bytes(largest.read_bytes()[:-100])


def lost(folder: Path) -> None:
    next(folder.glob("*.idx")).unlink()


def garbled(folder: Path) -> None:
    (folder / "meta.json").write_text('{"segments": [1]}')


def older(folder: Path) -> None:
    """Made by another analysis of words."""
    meta = folder / "meta.json"
    meta.write_text(meta.read_text().replace(WORDS_FIELD, "words7"))


@pytest.fixture
def built(tmp_path: Path) -> FakeLog:
    """An index in files below `tmp_path`."""
    log = filled(random.Random(4))
    index = WordIndexes(log, tmp_path)
    index.settle(1)
    index.close()
    assert list(folder_of(tmp_path, 1, NAME).glob("*.idx"))
    return log


@pytest.mark.parametrize("damage", [flipped, shortened, lost, garbled, older])
def test_damaged_files_are_found_and_made_again(tmp_path: Path, built: FakeLog, damage: Callable[[Path], None]) -> None:
    damage(folder_of(tmp_path, 1, NAME))
    index = WordIndexes(built, tmp_path)
    assert [finding.kind for finding in index.check(1)] == ([] if damage is older else ["index-damaged"])
    agree(index, built, random.Random(1), 1)
    index.close()
    again = WordIndexes(built, tmp_path)
    assert again.check(1, full=True) == []
    again.close()


def test_a_few_bytes_overwritten_anywhere_are_found(tmp_path: Path, built: FakeLog) -> None:
    folder = folder_of(tmp_path, 1, NAME)
    for path in [file for file in segment_files(folder) if file.name != "meta.json"]:
        whole = path.read_bytes()
        for at in range(0, max(1, len(whole) - 64), max(1, len(whole) // 20)):
            path.write_bytes(whole[:at] + b"overwritten     " * 4 + whole[at + 64 :])
            with pytest.raises(CorruptError):
                verify(folder)
        path.write_bytes(whole)
    assert WordIndexes(built, tmp_path).check(1, full=True) == []


def test_deleted_files_come_back(tmp_path: Path, built: FakeLog) -> None:
    shutil.rmtree(tmp_path / "indexes")
    index = WordIndexes(built, tmp_path)
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
    index = WordIndexes(other, tmp_path)
    agree(index, other, random.Random(3), 1)
    assert index.check(1, full=True) == []
    index.close()
    assert built.held.keys() == other.held.keys()


def test_an_index_that_disagrees_is_found_by_its_check(tmp_path: Path, built: FakeLog) -> None:
    """Passages that vanish without a word in the log, as no store of ours lets them."""
    index = WordIndexes(built, tmp_path)
    assert index.check(1) == []
    del built.held[7]
    (finding,) = index.check(1)
    assert finding.kind == "index-differs"
    assert "1 that are gone" in finding.detail
    assert index.rebuild(1) == len(built.held)
    assert index.check(1) == []
    index.close()


def test_a_large_container_is_made_ready_in_the_background(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index_module, "LOADED_AT_ONCE", 5)
    followed: list[int] = []
    monkeypatch.setattr(WordIndexes, "follow", lambda self, container_id: followed.append(container_id))
    log = filled(random.Random(6))
    index = WordIndexes(log, tmp_path)
    assert index.search(WHOLE, WORDS[:3], 5) == []
    assert followed == [1]
    index.settle(1)
    answer = index.search(WHOLE, WORDS[:3], 5)
    agree(index, log, random.Random(4), 1)
    index.close()
    again = WordIndexes(log, tmp_path)
    assert again.search(WHOLE, WORDS[:3], 5) == answer, "what files hold is there after a start"
    again.close()


def test_of_many_new_passages_a_search_reads_the_newest(monkeypatch: pytest.MonkeyPatch) -> None:
    log = filled(random.Random(6))
    monkeypatch.setattr(container_module, "FRESH_PASSAGES", 5)
    monkeypatch.setattr(WordIndexes, "follow", lambda self, container_id: None)
    index = WordIndexes(log, None)
    index.search(WHOLE, WORDS[:3], 5)
    log.put(1, "few", "/few", [(f"zebra {number}", "") for number in range(4)])
    assert len(index.search(WHOLE, ["zebra"], 50)) == 4, "little is read by the search itself"
    index.settle(1)
    log.put(1, "many", "/many", [(f"quokka {number}", "") for number in range(20)])
    log.move(1, "few", "/moved")
    reads = log.reads
    found = index.search(WHOLE, ["quokka"], 50)
    assert sorted(chunk_id for chunk_id, _ in found) == sorted(log.held)[-5:]
    assert log.reads == reads + 5
    assert len(index.search(Scope(container_id=1, folder="/moved", exact=True), ["zebra"], 50)) == 4
    index.settle(1)
    assert len(index.search(WHOLE, ["quokka"], 50)) == 20
    agree(index, log, random.Random(4), 1)
    index.close()


def test_an_index_of_which_most_is_gone_is_made_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was deleted is not kept in files for long."""
    monkeypatch.setattr(container_module, "WASTE_MIN", 10)
    log = filled(random.Random(6))
    index = WordIndexes(log, tmp_path)
    index.settle(1)
    for number in range(25):
        log.delete(1, f"d{number}")
    index.settle(1)
    assert waste(folder_of(tmp_path, 1, NAME)) == (0, 5)
    agree(index, log, random.Random(4), 1)
    index.close()
