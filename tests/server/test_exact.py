"""Exact search over the store: which files are read, and that the index is never in the way of what is there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from memdir.api import v1
from memdir.server.background import trigram_indexes as trigrams
from memdir.server.background.trigram_indexes import TrigramIndexes
from memdir.server.services.search import exact
from memdir.server.services.search.exact import Found
from memdir.store.store import Store
from memdir.store.tree.operations import Delete, Move
from memdir.store.types import Container, Scope
from tests.server.conftest import Putting, until


@pytest.fixture
def indexes(store: Store, tmp_path: Path) -> Iterator[TrigramIndexes]:
    """Not on its thread: a test says when it looks."""
    (tmp_path / "trigrams").mkdir()
    return TrigramIndexes(store, tmp_path / "trigrams")


@pytest.fixture
def look(store: Store, container: Container, indexes: TrigramIndexes) -> Any:
    def search(q: str, folder: str = "/", *, indexed: bool = True, **options: Any) -> Found:
        request = v1.SearchRequest(container_tag="notes", q=q, **({"mode": "literal", "limit": 200} | options))
        scopes = [Scope(container_id=container.id, folder=folder)]
        return exact.search(store, indexes if indexed else None, scopes, request)

    return search


def lines(found: Found) -> list[tuple[str, int]]:
    return [(hit.path, hit.start_line) for hit in found.hits]


@pytest.mark.promise("retrieval.literal-index")
def test_only_files_that_can_match_are_read(put: Putting, look: Any, indexes: TrigramIndexes) -> None:
    for number in range(50):
        put(f"/f{number:02}.txt", f"common\nneedle{number:02}x\n".encode())
    everything = look("needle07x", indexed=False)
    assert (lines(everything), everything.files_read) == ([("/f07.txt", 2)], 50)
    indexes.bring_up_to_date()
    found = look("needle07x")
    assert (lines(found), found.files_read) == ([("/f07.txt", 2)], 1)
    found = look("needle(07|08)x$", mode="regex")
    assert (lines(found), found.files_read) == ([("/f07.txt", 2), ("/f08.txt", 2)], 2)
    assert look("not there").files_read == 0
    assert len(lines(look("needle", limit=10))) == 10
    assert look("NEEDLE07X", ignore_case=True).files_read == 1
    assert lines(look("needle", whole_words=True)) == []


def test_searches_use_what_is_indexed_of_an_import_and_read_the_rest(
    container: Container, put: Putting, look: Any, indexes: TrigramIndexes, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(10):
        put(f"/f{number}.txt", f"common\nneedle{number}x\n".encode())
    monkeypatch.setattr(trigrams, "BUILD_CONTENTS", 4)
    read: list[int] = []

    def rest(timeout_s: float | None = None) -> bool:
        """Called between two steps."""
        assert timeout_s is not None
        assert timeout_s > 0
        for number in range(10):
            assert lines(look(f"needle{number}x")) == [(f"/f{number}.txt", 2)]
        read.append(look("not there").files_read)
        return False

    monkeypatch.setattr(indexes._stopping, "wait", rest)
    indexes.bring_up_to_date()
    assert [*read, look("not there").files_read] == [6, 2, 0]
    indexes.notify(container.id)
    indexes.bring_up_to_date()
    assert len(read) == 2, "nothing is left to do"


def test_what_was_put_moved_or_deleted_since_is_found_as_it_is(
    store: Store, container: Container, put: Putting, look: Any, indexes: TrigramIndexes
) -> None:
    put("/a/old.txt", b"the old needle\n")
    put("/a/kept.txt", b"a kept needle\n")
    indexes.bring_up_to_date()
    put("/a/old.txt", b"something else\n")
    put("/a/new.txt", b"a new needle\n")
    store.files.apply(container, Move(from_path="/a/kept.txt", path="/b/kept.txt"))
    for _ in range(2):
        assert lines(look("needle")) == [("/a/new.txt", 1), ("/b/kept.txt", 1)]
        assert lines(look("needle", "/a")) == [("/a/new.txt", 1)]
        assert lines(look("old needle")) == []
        indexes.bring_up_to_date()
        indexes.notify(container.id)
    store.files.apply(container, Delete(path="/a/new.txt"))
    assert lines(look("needle")) == [("/b/kept.txt", 1)]


def test_what_was_deleted_leaves_nothing_in_the_files(
    store: Store, container: Container, put: Putting, indexes: TrigramIndexes, tmp_path: Path
) -> None:
    put("/a.txt", b"zzyzx\n")
    put("/b.txt", b"other\n")
    indexes.bring_up_to_date()

    def size() -> int:
        return sum(path.stat().st_size for path in (tmp_path / "trigrams" / str(container.id)).glob("*.tri"))

    both = size()
    store.files.apply(container, Delete(path="/a.txt"))
    indexes.notify(container.id)
    indexes.bring_up_to_date()
    assert 0 < size() < both
    store.files.delete_container(container)
    indexes.notify(container.id)
    indexes.bring_up_to_date()
    assert not (tmp_path / "trigrams" / str(container.id)).exists()


def test_a_new_process_takes_the_index_over_and_throws_out_what_is_of_nobody(
    store: Store, container: Container, put: Putting, indexes: TrigramIndexes, tmp_path: Path
) -> None:
    put("/a.txt", b"needle\n")
    indexes.bring_up_to_date()
    (tmp_path / "trigrams" / "987654").mkdir()
    again = TrigramIndexes(store, tmp_path / "trigrams")
    again.bring_up_to_date()
    ready = again.ready(container.id)
    assert ready is not None
    assert len(ready.view.known) == 1
    assert ready.view.generation == 1
    assert not (tmp_path / "trigrams" / "987654").exists()


def test_a_server_that_starts_uses_the_index_on_the_disk_at_once(
    store: Store, container: Container, put: Putting, indexes: TrigramIndexes, tmp_path: Path
) -> None:
    """For a minute every search read every file."""
    put("/a.txt", b"needle\n")
    indexes.bring_up_to_date()
    again = TrigramIndexes(store, tmp_path / "trigrams")
    again.start()
    try:
        until(lambda: again.ready(container.id), 20)
    finally:
        assert again.stop()


def test_a_check_finds_damage_anywhere_and_a_rebuild_makes_the_index_anew(
    container: Container, put: Putting, look: Any, indexes: TrigramIndexes, tmp_path: Path
) -> None:
    for number in range(20):
        put(f"/{number}.txt", f"a needle, number {number}\n".encode())
    indexes.bring_up_to_date()
    assert indexes.containers() == [container.id]
    assert indexes.check(container.id, full=True) == []
    for path in (tmp_path / "trigrams" / str(container.id)).iterdir():
        whole = path.read_bytes()
        for at in range(0, len(whole) - 16, max(1, len(whole) // 20)):
            path.write_bytes(whole[:at] + b"overwritten here" + whole[at + 16 :])
            assert [finding.kind for finding in indexes.check(container.id)] == ["index-damaged"], (path.name, at)
            path.write_bytes(whole)
    put("/new.txt", b"a needle that nobody knows yet\n")
    assert indexes.check(container.id, full=True) == []
    assert indexes.rebuild(container.id) == 21
    assert indexes.check(container.id, full=True) == []
    found = look("needle, number 7")
    assert (lines(found), found.files_read) == ([("/7.txt", 1)], 1)
    again = TrigramIndexes(indexes._store, tmp_path / "trigrams")
    again.bring_up_to_date()
    ready = again.ready(container.id)
    assert ready is not None
    assert (len(ready.view.known), ready.view.generation) == (21, 1)
    indexes.drop(container.id)
    assert indexes.containers() == []
    assert lines(look("needle, number 7")) == [("/7.txt", 1)]


def test_an_entry_that_is_not_its_content_s_is_found(
    store: Store, container: Container, put: Putting, indexes: TrigramIndexes, monkeypatch: pytest.MonkeyPatch
) -> None:
    put("/a.txt", b"first\n")
    put("/b.txt", b"second\n")
    with monkeypatch.context() as patch:
        patch.setattr(store.blobs, "content", lambda digest: b"something else\n")
        indexes.bring_up_to_date()
    found = indexes.check(container.id, full=True)
    assert [(finding.kind, "2 contents" in finding.detail) for finding in found] == [("index-differs", True)]


def test_a_large_container_collects_changes_and_still_finds_them(
    container: Container, put: Putting, look: Any, indexes: TrigramIndexes, monkeypatch: pytest.MonkeyPatch
) -> None:
    put("/a.txt", b"a needle\n")
    indexes.bring_up_to_date()
    monkeypatch.setattr(trigrams, "LARGE", 1)
    put("/b.txt", b"b needle\n")
    indexes.notify(container.id)
    indexes.bring_up_to_date()
    first = indexes.ready(container.id)
    assert first is not None
    assert len(first.view.known) == 1
    assert lines(look("needle")) == [("/a.txt", 1), ("/b.txt", 1)]
    monkeypatch.setattr(trigrams, "COLLECT_S", 0.0)
    indexes.bring_up_to_date()
    then = indexes.ready(container.id)
    assert then is not None
    assert len(then.view.known) == 2


def test_a_large_file_is_not_indexed_and_still_read(
    put: Putting, look: Any, indexes: TrigramIndexes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trigrams, "CONTENT_MAX_BYTES", 10)
    put("/large.txt", b"x" * 100 + b" needle\n")
    put("/small.txt", b"other\n")
    indexes.bring_up_to_date()
    found = look("needle")
    assert (lines(found), found.files_read) == ([("/large.txt", 1)], 1)


def test_a_short_text_is_looked_for_in_every_file_within_bounds_that_it_speaks_of(
    put: Putting, look: Any, indexes: TrigramIndexes, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(5):
        put(f"/{number}.txt", b"an ox\n" + b"%d" % number)
    indexes.bring_up_to_date()
    found = look("ox")
    assert (len(found.hits), found.files_read, found.note) == (5, 5, None)
    monkeypatch.setattr(exact, "FILES_MAX", 3)
    found = look("ox")
    assert len(found.hits) == 3
    assert "stopped after 3 files" in found.note
    assert "before /3.txt" in found.note


def test_binary_files_that_match_are_named_and_not_shown(put: Putting, look: Any) -> None:
    put("/a.bin", b"\0needle")
    put("/b.bin", b"\0other")
    put("/c.txt", b"a needle\nneedle\n")
    found = look("needle")
    assert (lines(found), found.binary) == ([("/c.txt", 1), ("/c.txt", 2)], ["/a.bin"])
    assert lines(look("needle", files_only=True)) == [("/c.txt", 1)]
