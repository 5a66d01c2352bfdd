"""Put, move and delete in the store."""

from __future__ import annotations

from typing import Any

import pytest

from memdir.core.errors import NotFoundError
from memdir.store.errors import ConflictError, InvalidError, PreconditionError
from memdir.store.tree.operations import Delete, Move, Put, Remove
from memdir.store.types import Container
from memdir.store.upkeep.check import Check
from tests.server.conftest import AnyStore, Putting

pytestmark = pytest.mark.promise("store.one-contract")


def paths(store: AnyStore, container: Container) -> list[str | None]:
    return [d.path for d in store.documents.files(container.id, prefix="/", after="", limit=1000).entries]


def make_dir(store: AnyStore, container: Container, path: str, **options: Any) -> None:
    store.files.apply(container, Put(path=path, kind="dir", mode=0o755, **options))


def test_a_put_is_read_back_with_everything_that_was_said(store: AnyStore, container: Container, put: Putting) -> None:
    outcome = put("/a/ü.md", b"\x00\xffbytes", mode=0o100755, mtime_ns=-5)
    found = store.documents.at(container.id, "/a/ü.md")
    assert found == outcome.document
    assert found is not None
    assert (found.mode, found.mtime_ns, found.size_bytes, found.revision, found.status) == (0o755, -5, 7, 1, "queued")
    assert store.blobs.content(found.content_hash) == b"\x00\xffbytes"


def test_every_put_gets_the_next_number_and_the_feed_has_no_gap(store: AnyStore, container: Container, put: Putting) -> None:
    seqs = [put("/a.md", b"1").seq, put("/b.md", b"2").seq, put("/a.md", b"1").seq]
    with pytest.raises(PreconditionError):
        put("/a.md", b"3", if_match=1)
    seqs.append(put("/c.md").seq)
    feed = store.changes.since(container.id, 0, limit=100)
    assert feed is not None
    assert seqs == [1, 2, 3, 4] == [row.seq for row in feed.rows]
    assert feed.last_seq == 4


@pytest.mark.parametrize("size", [3, 300_000])
def test_a_file_keeps_its_contents_when_a_put_names_them(
    store: AnyStore, container: Container, put: Putting, size: int
) -> None:  # fmt: skip
    """As often as one likes: the contents are counted once, and go with the file."""
    first = put("/a.md", b"x" * size).document
    assert first is not None
    for mode in (0o600, 0o640, 0o600):
        kept = store.files.apply(container, Put(path="/a.md", mode=mode, mtime_ns=7, keeps=first.content_hash)).document
        assert kept is not None
        assert (kept.mode, kept.mtime_ns, kept.size_bytes, kept.content_hash) == (mode, 7, size, first.content_hash)
    assert store.blobs.content(first.content_hash) == b"x" * size
    for operation in (
        Put(path="/a.md", keeps="0" * 64),
        Put(path="/b.md", keeps=first.content_hash),
        Put(path="/a.md", keeps=first.content_hash, if_match=1),
    ):
        with pytest.raises(PreconditionError):
            store.files.apply(container, operation)
    with pytest.raises(InvalidError):
        store.files.apply(container, Put(path="/a.md", kind="symlink", keeps=first.content_hash))
    assert list(Check(store).findings()) == []
    store.files.apply(container, Delete(path="/a.md", purge=True))
    with pytest.raises(NotFoundError):
        store.blobs.content(first.content_hash)


@pytest.mark.parametrize(
    ("standing", "options", "allowed"),
    [
        (False, {}, True),
        (False, {"if_none_match": True}, True),
        (False, {"if_match": 1}, False),
        (True, {}, True),
        (True, {"if_match": 1}, True),
        (True, {"if_match": 2}, False),
        (True, {"if_none_match": True}, False),
    ],
)
def test_preconditions_are_judged_on_what_stands_there(
    store: AnyStore, container: Container, put: Putting, standing: bool, options: dict[str, Any], allowed: bool
) -> None:
    if standing:
        put("/a.md", b"old")
    if allowed:
        assert put("/a.md", b"new", **options).created is not standing
        return
    with pytest.raises(PreconditionError) as caught:
        put("/a.md", b"new", **options)
    assert (caught.value.current is not None) == standing
    found = store.documents.at(container.id, "/a.md")
    assert found is None or store.blobs.content(found.content_hash) == b"old"


def test_folders_are_implicit_until_they_are_put(store: AnyStore, container: Container, put: Putting) -> None:
    put("/a/b/c.md")
    assert paths(store, container) == ["/a/b/c.md"]
    make_dir(store, container, "/a", if_none_match=True)
    assert paths(store, container) == ["/a", "/a/b/c.md"]


def test_a_file_cannot_stand_where_a_folder_is(store: AnyStore, container: Container, put: Putting) -> None:
    put("/a/b.md")
    make_dir(store, container, "/empty")
    for path in ("/a", "/empty"):
        with pytest.raises(ConflictError):
            put(path)


def test_nothing_can_stand_below_a_file(store: AnyStore, container: Container, put: Putting) -> None:
    put("/a")
    for path in ("/a/b", "/a/b/c"):
        with pytest.raises(ConflictError, match="/a is a file"):
            put(path)
    put("/x/y.md")
    with pytest.raises(ConflictError, match="/a is a file"):
        store.files.apply(container, Move(from_path="/x", path="/a/x"))
    assert paths(store, container) == ["/a", "/x/y.md"]


def test_an_empty_folder_becomes_a_file_only_for_who_knows_its_revision(
    store: AnyStore, container: Container, put: Putting
) -> None:
    make_dir(store, container, "/a")
    before = store.documents.at(container.id, "/a")
    assert before is not None
    after = put("/a", b"now a file", if_match=before.revision).document
    assert after is not None
    assert (after.kind, after.id != before.id) == ("file", True)


def test_a_symlink_keeps_its_target_as_bytes(store: AnyStore, container: Container, put: Putting) -> None:
    link = put("/link", b"../else\xff", kind="symlink").document
    assert link is not None
    assert (link.status, store.blobs.content(link.content_hash)) == ("done", b"../else\xff")
    with pytest.raises(InvalidError):
        put("/empty-link", b"", kind="symlink")
    with pytest.raises(InvalidError):
        put("/long-link", b"x" * 4096, kind="symlink")
    assert store.jobs.count() == 0


def test_moving_a_folder_takes_all_below_it_in_one_change(store: AnyStore, container: Container, put: Putting) -> None:
    for path in ("/a/x.md", "/a/b/y.md", "/a-b/z.md", "/a0.md", "/a%/w.md"):
        put(path)
    before = {d.path: d.id for d in store.documents.files(container.id, prefix="/", after="", limit=99).entries}
    outcome = store.files.apply(container, Move(from_path="/a", path="/n/ä"))
    assert outcome.count == 2
    after = {d.path: d.id for d in store.documents.files(container.id, prefix="/", after="", limit=99).entries}
    assert after["/n/ä/x.md"] == before["/a/x.md"]
    assert after["/n/ä/b/y.md"] == before["/a/b/y.md"]
    assert set(after) == {"/a%/w.md", "/a-b/z.md", "/a0.md", "/n/ä/b/y.md", "/n/ä/x.md"}
    moved = store.documents.at(container.id, "/n/ä/x.md")
    assert moved is not None
    assert moved.revision == outcome.seq
    feed = store.changes.since(container.id, outcome.seq - 1, limit=10)
    assert feed is not None
    assert [(r.kind, r.from_path, r.path) for r in feed.rows] == [("move", "/a", "/n/ä")]


@pytest.mark.parametrize(
    "odd", ["/100%", "/_", "/a_b", "/[x]", "/q'uote", '/d"ouble', "/new\nline", "/emoji😀", "/e\u0301", "/*"]
)
def test_odd_folder_names_move_exactly_what_is_below_them(
    store: AnyStore, container: Container, put: Putting, odd: str
) -> None:
    put(f"{odd}/f.md")
    put("/other/f.md")
    put(f"{odd}x/f.md")
    store.files.apply(container, Move(from_path=odd, path="/moved"))
    assert sorted(p for p in paths(store, container) if p) == sorted(["/moved/f.md", "/other/f.md", f"{odd}x/f.md"])


def test_a_move_follows_rename_rules(store: AnyStore, container: Container, put: Putting) -> None:
    put("/file")
    put("/other")
    put("/dir/f")
    make_dir(store, container, "/empty")
    refused = [
        (Move(from_path="/nothing", path="/x"), NotFoundError),
        (Move(from_path="/file", path="/file"), InvalidError),
        (Move(from_path="/dir", path="/dir/below"), InvalidError),
        (Move(from_path="/dir/f", path="/dir"), ConflictError),
        (Move(from_path="/file", path="/empty"), ConflictError),
        (Move(from_path="/dir", path="/file"), ConflictError),
        (Move(from_path="/file", path="/other", replace=False), ConflictError),
        (Move(from_path="/file", path="/other", if_match=99), PreconditionError),
        (Move(from_path="/", path="/x"), InvalidError),
    ]
    before = paths(store, container)
    for operation, error in refused:
        with pytest.raises(error):
            store.files.apply(container, operation)
    assert paths(store, container) == before
    store.files.apply(container, Move(from_path="/file", path="/other"))
    store.files.apply(container, Move(from_path="/dir", path="/empty"))
    assert paths(store, container) == ["/empty/f", "/other"]


def test_a_move_past_the_longest_path_is_refused(store: AnyStore, container: Container, put: Putting) -> None:
    deep = "/d" + ("/" + "n" * 200) * 15
    put(deep)
    with pytest.raises(InvalidError, match="4096"):
        store.files.apply(container, Move(from_path="/d", path="/" + ("m" * 200 + "/") * 6 + "d"))
    assert paths(store, container) == [deep]


def test_a_save_by_rename_keeps_the_custom_id(store: AnyStore, container: Container, put: Putting) -> None:
    put("/a.md", b"old", custom_id="mine")
    put("/.a.md.tmp", b"new")
    store.files.apply(container, Move(from_path="/.a.md.tmp", path="/a.md"))
    found = store.documents.by_custom_id(container.id, "mine")
    assert found is not None
    assert (found.path, store.blobs.content(found.content_hash)) == ("/a.md", b"new")


def test_a_delete_of_a_full_folder_must_be_asked_for(store: AnyStore, container: Container, put: Putting) -> None:
    for path in ("/a/1", "/a/b/2", "/ab"):
        put(path)
    with pytest.raises(ConflictError):
        store.files.apply(container, Delete(path="/a"))
    outcome = store.files.apply(container, Delete(path="/a", recursive=True))
    assert (outcome.count, paths(store, container)) == (2, ["/ab"])
    with pytest.raises(NotFoundError):
        store.files.apply(container, Delete(path="/a", recursive=True))
    with pytest.raises(InvalidError):
        store.files.apply(container, Delete(path="/", recursive=True))


@pytest.mark.parametrize("change", ["put", "new", "move in", "move over", "chmod of the folder"])
def test_a_subtree_goes_only_when_nothing_in_it_is_newer_than_the_caller_knows(
    store: AnyStore, container: Container, put: Putting, change: str
) -> None:
    make_dir(store, container, "/d")
    put("/d/e/a.md")
    put("/d/b.md")
    seen = put("/elsewhere.md").seq
    if change == "put":
        put("/d/e/a.md", b"2")
    elif change == "new":
        put("/d/e/new.md")
    elif change == "move in":
        store.files.apply(container, Move(from_path="/elsewhere.md", path="/d/e/moved.md"))
    elif change == "move over":
        store.files.apply(container, Move(from_path="/elsewhere.md", path="/d/b.md"))
    else:
        make_dir(store, container, "/d")
    put("/d2.md")
    before = paths(store, container)
    with pytest.raises(PreconditionError):
        store.files.apply(container, Delete(path="/d", recursive=True, if_unchanged_since=seen))
    assert paths(store, container) == before
    newest = store.documents.files(container.id, prefix="/", after="", limit=1).last_seq
    store.files.apply(container, Delete(path="/d", recursive=True, if_unchanged_since=newest))
    assert [path for path in paths(store, container) if path == "/d" or str(path).startswith("/d/")] == []
    assert "/d2.md" in paths(store, container)


def test_what_others_delete_or_change_elsewhere_does_not_keep_a_subtree(
    store: AnyStore, container: Container, put: Putting
) -> None:
    put("/d/a.md")
    seen = put("/d/b.md").seq
    store.files.apply(container, Delete(path="/d/b.md"))
    put("/c.md")
    store.files.apply(container, Delete(path="/d", recursive=True, if_unchanged_since=seen))
    assert paths(store, container) == ["/c.md"]


def test_removing_a_folder_row_by_id_leaves_what_is_below_it(store: AnyStore, container: Container, put: Putting) -> None:
    make_dir(store, container, "/a")
    put("/a/f")
    folder = store.documents.at(container.id, "/a")
    assert folder is not None
    store.files.apply(container, Remove(document_id=folder.id))
    assert paths(store, container) == ["/a/f"]


def test_one_refused_operation_of_a_batch_stops_no_other(store: AnyStore, container: Container) -> None:
    results = store.files.apply_all(
        container,
        [
            Put(path="/a", kind="dir"),
            Delete(path="/nothing"),
            Put(path="/../x", kind="dir"),
            Put(path="/b", kind="dir"),
            Move(from_path="/b", path="/c"),
        ],
    )
    assert [type(result).__name__ for result in results] == ["Outcome", "NotFoundError", "InvalidError", "Outcome", "Outcome"]
    assert paths(store, container) == ["/a", "/c"]
    feed = store.changes.since(container.id, 0, limit=10)
    assert feed is not None
    assert [row.seq for row in feed.rows] == [1, 2, 3]


def test_together_means_all_or_nothing(store: AnyStore, container: Container) -> None:
    with pytest.raises(NotFoundError):
        store.files.apply_all(container, [Put(path="/a", kind="dir"), Delete(path="/nothing")], together=True)
    assert paths(store, container) == []
    feed = store.changes.since(container.id, 0, limit=10)
    assert feed is not None
    assert feed.last_seq == 0


@pytest.mark.parametrize(
    "path",
    [
        "",
        "a.md",
        "/",
        "//",
        "//a",
        "/a//b",
        "/a//",
        "/./a",
        "/a/.",
        "/..",
        "/../etc/passwd",
        "/a/../b",
        "/a/..",
        "/a\0b",
        "/\ud800",
        "/" + "n" * 256,
        "/" + "ü" * 128,
        "/" + "/".join(["d" * 200] * 21),
    ],
)
def test_a_path_that_is_none_is_refused_everywhere(store: AnyStore, container: Container, put: Putting, path: str) -> None:
    put("/real")
    for operation in (
        Put(path=path, kind="dir"),
        Move(from_path="/real", path=path),
        Move(from_path=path, path="/x"),
        Delete(path=path, recursive=True),
    ):
        with pytest.raises(InvalidError):
            store.files.apply(container, operation)
    assert paths(store, container) == ["/real"]


@pytest.mark.parametrize(
    "path", ["/...", "/ ", "/a b", "/..a", "/a..", "/-rf", "/~", "/a\\b", "/C:", "/\x7f\x01", "/" + "ü" * 127, "/नमस्ते.md"]
)
def test_a_strange_but_legal_name_is_kept_as_it_is(store: AnyStore, container: Container, put: Putting, path: str) -> None:
    put(path)
    assert paths(store, container) == [path]


def test_pages_of_entries_cover_everything_once_in_path_order(store: AnyStore, container: Container, put: Putting) -> None:
    names = ["/a", "/a-b", "/a.md", "/b/a", "/b/c", "/b0", "/ä", "/😀"]
    for name in reversed(names):
        put(name)
    seen: list[str] = []
    after = ""
    for _ in range(10):
        page = store.documents.files(container.id, prefix="/", after=after, limit=3)
        seen += [d.path or "" for d in page.entries]
        if not page.has_more:
            break
        after = seen[-1]
    assert seen == sorted(names, key=str.encode)
    below = store.documents.files(container.id, prefix="/b", after="", limit=10)
    assert [d.path for d in below.entries] == ["/b/a", "/b/c"]
    file_only = store.documents.files(container.id, prefix="/a", after="", limit=10)
    assert [d.path for d in file_only.entries] == ["/a"]
