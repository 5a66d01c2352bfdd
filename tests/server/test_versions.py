"""Former contents: kept, listed, read, restored, and gone when they have to be."""

from __future__ import annotations

import random

import httpx
import pytest

from memdir.core.clock import FakeClock
from memdir.core.errors import NotFoundError
from memdir.server.background.housekeeping import Housekeeper
from memdir.store.errors import ConflictError, InvalidError, PreconditionError
from memdir.store.sqlite.store import SqliteStore
from memdir.store.tree.operations import Delete, Move, Put, Remove, Restore
from memdir.store.tree.versions import DAY_MS, Version
from memdir.store.types import Container, Document
from tests.server.conftest import Putting


def history(store: SqliteStore, container: Container, path: str) -> list[Version]:
    document = store.documents.at(container.id, path)
    if document is None:
        return store.versions.of_path(container.id, path, limit=1000)
    return store.versions.of_document(document, limit=1000)


def contents(store: SqliteStore, container: Container, path: str) -> list[bytes]:
    return [store.blobs.content(version.content_hash) for version in history(store, container, path)]


def document_at(store: SqliteStore, container: Container, path: str) -> Document:
    found = store.documents.at(container.id, path)
    assert found is not None
    return found


def references_are_right(store: SqliteStore) -> None:
    """Every blob has as many references as documents and versions hold, and none has zero."""
    counted = store.db.all(
        "select content_hash, count(*) from (select content_hash from document where kind <> 'dir' "
        "union all select content_hash from document_version) group by content_hash order by content_hash"
    )
    assert store.db.all("select hash, ref_count from blob order by hash") == counted


def test_every_replaced_content_is_a_version_newest_first(store: SqliteStore, container: Container, put: Putting) -> None:
    for text in (b"one", b"two", b"three"):
        put("/a.md", text)
    assert contents(store, container, "/a.md") == [b"two", b"one"]
    newest = history(store, container, "/a.md")[0]
    assert (newest.reason, newest.revision, newest.path, newest.kind) == ("replaced", 2, "/a.md", "file")
    references_are_right(store)


def test_the_same_content_again_is_no_version(store: SqliteStore, container: Container, put: Putting) -> None:
    put("/a.md", b"same", mode=0o644)
    put("/a.md", b"same", mode=0o644, mtime_ns=5)
    assert history(store, container, "/a.md") == []
    references_are_right(store)


def test_a_history_follows_a_file_and_a_folder_that_move(store: SqliteStore, container: Container, put: Putting) -> None:
    put("/d/a.md", b"one")
    put("/d/a.md", b"two")
    store.files.apply(container, Move(from_path="/d", path="/e"))
    store.files.apply(container, Move(from_path="/e/a.md", path="/b.md"))
    assert contents(store, container, "/b.md") == [b"one"]
    with pytest.raises(AssertionError):
        document_at(store, container, "/d/a.md")
    assert history(store, container, "/d/a.md") == []


def test_a_save_by_rename_goes_on_with_the_history(store: SqliteStore, container: Container, put: Putting) -> None:
    put("/a.md", b"one")
    put("/a.md", b"two")
    put("/.a.md.tmp", b"three")
    store.files.apply(container, Move(from_path="/.a.md.tmp", path="/a.md"))
    assert contents(store, container, "/a.md") == [b"two", b"one"]
    store.files.apply(container, Move(from_path="/a.md", path="/c.md"))
    assert contents(store, container, "/c.md") == [b"two", b"one"]
    references_are_right(store)


def test_a_deleted_file_comes_back_as_itself(store: SqliteStore, container: Container, put: Putting) -> None:
    before = put("/d/a.md", b"one", mode=0o755, custom_id="mine", metadata={"k": 1}).document
    store.files.apply(container, Delete(path="/d", recursive=True))
    (gone,) = store.versions.deleted(container.id, prefix="/", limit=10)
    assert (gone.path, gone.reason, store.blobs.content(gone.content_hash)) == ("/d/a.md", "deleted", b"one")
    outcome = store.files.apply(container, Restore(version=gone.id))
    back = outcome.document
    assert outcome.created
    assert back is not None
    assert before is not None
    assert (back.id, back.path, back.mode, back.custom_id, dict(back.metadata)) == (
        before.id,
        "/d/a.md",
        0o755,
        "mine",
        {"k": 1},
    )
    assert (back.status, back.revision) == ("queued", 3)
    assert store.versions.deleted(container.id, prefix="/", limit=10) == []
    assert contents(store, container, "/d/a.md") == [b"one"]
    references_are_right(store)


def test_restoring_is_an_ordinary_change_and_can_be_undone(store: SqliteStore, container: Container, put: Putting) -> None:
    put("/a.md", b"one")
    put("/a.md", b"two")
    (one,) = history(store, container, "/a.md")
    outcome = store.files.apply(container, Restore(version=one.id))
    assert store.blobs.content(document_at(store, container, "/a.md").content_hash) == b"one"
    feed = store.changes.since(container.id, 2, limit=10)
    assert feed is not None
    assert [(row.seq, row.kind, row.path) for row in feed.rows] == [(3, "put", "/a.md")]
    assert outcome.seq == 3
    assert contents(store, container, "/a.md") == [b"two", b"one"]
    with pytest.raises(PreconditionError):
        store.files.apply(container, Restore(version=one.id, if_match=2))
    references_are_right(store)


def test_a_version_can_be_restored_elsewhere_but_not_over_a_folder(
    store: SqliteStore, container: Container, put: Putting
) -> None:
    put("/a.md", b"one")
    put("/a.md", b"two")
    put("/d/x", b"x")
    (one,) = history(store, container, "/a.md")
    copy = store.files.apply(container, Restore(version=one.id, path="/copy.md")).document
    assert copy is not None
    assert (copy.id == document_at(store, container, "/a.md").id, store.blobs.content(copy.content_hash)) == (False, b"one")
    with pytest.raises(ConflictError):
        store.files.apply(container, Restore(version=one.id, path="/d"))
    with pytest.raises(NotFoundError):
        store.files.apply(container, Restore(version=one.id + 100))
    references_are_right(store)


def test_a_version_of_a_deleted_file_goes_over_what_stands_there_now(
    store: SqliteStore, container: Container, put: Putting
) -> None:
    put("/a.md", b"first life", custom_id="mine")
    store.files.apply(container, Delete(path="/a.md"))
    second = put("/a.md", b"second life").document
    (gone,) = history(store, container, "/a.md")
    back = store.files.apply(container, Restore(version=gone.id)).document
    assert back is not None
    assert second is not None
    assert back.id == second.id
    assert contents(store, container, "/a.md") == [b"second life", b"first life"]


def test_a_document_without_a_place_has_versions_too(store: SqliteStore, container: Container, put: Putting) -> None:
    first = put(None, b"one", custom_id="c").document
    put(None, b"two", custom_id="c")
    assert first is not None
    (one,) = store.versions.of_document(first, limit=10)
    back = store.files.apply(container, Restore(version=one.id)).document
    assert back is not None
    assert (back.id, back.path, store.blobs.content(back.content_hash)) == (first.id, None, b"one")


def test_a_file_that_became_a_symlink_can_be_a_file_again(store: SqliteStore, container: Container, put: Putting) -> None:
    put("/a", b"text")
    put("/a", b"target", kind="symlink", if_match=1)
    (text,) = history(store, container, "/a")
    store.files.apply(container, Restore(version=text.id, if_match=2))
    assert document_at(store, container, "/a").kind == "file"
    assert [(v.kind, v.reason) for v in history(store, container, "/a")] == [("symlink", "replaced"), ("file", "replaced")]
    references_are_right(store)


def test_no_more_versions_are_kept_than_the_container_wants(store: SqliteStore, container: Container, put: Putting) -> None:
    store.containers.change_settings(container.id, {"versionsMaxCount": 3})
    kept = store.containers.get("local", "notes")
    for number in range(10):
        with store.blobs.upload() as upload:
            upload.write(b"%d" % number)
            store.files.apply(kept, Put(path="/a", blob=upload.finish()))
    assert contents(store, kept, "/a") == [b"8", b"7", b"6"]
    references_are_right(store)


@pytest.mark.parametrize("name", ["versionsMaxCount", "versionsMaxDays"])
def test_a_container_that_wants_no_versions_keeps_none(
    store: SqliteStore, container: Container, put: Putting, name: str
) -> None:
    put("/a", b"0")
    store.containers.change_settings(container.id, {name: 0})
    kept = store.containers.get("local", "notes")
    store.files.apply(kept, Delete(path="/a"))
    assert history(store, kept, "/a") == []
    references_are_right(store)


@pytest.mark.parametrize("value", [-1, 1001, "many", True, 1.5])
def test_a_setting_that_makes_no_sense_is_refused(store: SqliteStore, container: Container, value: object) -> None:
    with pytest.raises(InvalidError):
        store.containers.change_settings(container.id, {"versionsMaxCount": value})


def test_old_versions_go_with_the_next_write_or_by_pruning(
    store: SqliteStore, container: Container, put: Putting, clock: FakeClock
) -> None:
    put("/a", b"1")
    put("/a", b"2")
    assert store.versions.prune(container) == 0
    clock.advance(90 * DAY_MS / 1000 + 1)
    assert store.versions.prune(container) == 1
    put("/b", b"1")
    put("/b", b"2")
    clock.advance(91 * DAY_MS / 1000)
    put("/a", b"3")
    assert contents(store, container, "/b") == []
    assert contents(store, container, "/a") == [b"2"]
    references_are_right(store)


def test_a_purge_takes_the_history_and_leaves_what_stands(store: SqliteStore, container: Container, put: Putting) -> None:
    first = put("/a", b"1").document
    put("/a", b"2")
    assert first is not None
    assert store.versions.purge(container, document_id=first.id, path="/a") == 1
    assert contents(store, container, "/a") == []
    assert store.blobs.content(document_at(store, container, "/a").content_hash) == b"2"
    references_are_right(store)


def test_deleting_for_good_leaves_no_version(store: SqliteStore, container: Container, put: Putting) -> None:
    """By `purge`, by id, and with the whole container; also versions of what stood at the same place before."""
    put("/d/a", b"zero")
    store.files.apply(container, Delete(path="/d/a"))
    put("/d/a", b"one")
    put("/d/a", b"two")
    store.files.apply(container, Delete(path="/d", recursive=True, purge=True))
    assert store.db.all("select hash from blob") == []
    put("/b", b"one")
    put("/b", b"two")
    store.files.apply(container, Remove(document_id=document_at(store, container, "/b").id))
    assert store.db.all("select hash from blob") == []
    put("/c", b"one")
    put("/c", b"two")
    store.files.apply(container, Delete(path="/c"))
    store.files.delete_container(container)
    assert store.db.all("select count(*) from document_version") == [(0,)]
    assert store.db.all("select hash from blob") == []


@pytest.mark.parametrize("seed", range(10))
def test_references_stay_right_whatever_happens(store: SqliteStore, container: Container, put: Putting, seed: int) -> None:
    chance = random.Random(seed)
    store.containers.change_settings(container.id, {"versionsMaxCount": 4})
    container = store.containers.get("local", "notes")
    places = ["/a", "/b", "/d/a", "/d/b", "/d/e/a"]
    for _ in range(120):
        at = chance.choice(places)
        try:
            match chance.randrange(6):
                case 0 | 1 | 2:
                    with store.blobs.upload() as upload:
                        upload.write(b"%d" % chance.randrange(5))
                        store.files.apply(container, Put(path=at, blob=upload.finish()))
                case 3:
                    purge = chance.random() < 0.3
                    store.files.apply(container, Delete(path=chance.choice([at, "/d"]), recursive=True, purge=purge))
                case 4:
                    store.files.apply(container, Move(from_path=at, path=chance.choice(places)))
                case 5:
                    numbers = [row[0] for row in store.db.all("select id from document_version")]
                    if numbers:
                        store.files.apply(container, Restore(version=chance.choice(numbers)))
        except (NotFoundError, ConflictError, InvalidError):
            continue
    references_are_right(store)
    ((most,),) = store.db.all(
        "select coalesce(max(n), 0) from (select count(*) as n from document_version group by document_id)"
    )
    assert most <= 8, "adopting another document's history may double it until the next version"


def test_old_versions_go_without_any_write(store: SqliteStore, container: Container, put: Putting, clock: FakeClock) -> None:
    for number in range(200):
        put(f"/{number}", b"1")
        put(f"/{number}", b"2")
    other = store.containers.ensure("local", "other")
    with store.blobs.upload() as upload:
        upload.write(b"stays")
        store.files.apply(other, Put(path="/a", blob=upload.finish()))
    keeper = Housekeeper(store, lambda: None)
    assert keeper.tidy() == 0
    clock.advance(90 * DAY_MS / 1000 + 1)
    assert keeper.tidy() == 200
    assert store.versions.usage(container.id) == (0, 0)
    references_are_right(store)


# over HTTP


@pytest.mark.promise("api.versions")
def test_versions_are_listed_read_and_restored_over_http(client: httpx.Client, tag: str) -> None:
    path = "/a b/ü:versions?.md"
    url = "/v1/files" + "".join(f"%{byte:02x}" if chr(byte) not in "/" else "/" for byte in path.encode())
    where = {"containerTag": tag}
    for body in (b"one\x00\xff", b"two", b"three"):
        assert client.put(url, params=where, content=body).status_code < 300
    page = client.get("/v1/versions", params={**where, "path": path}).json()
    assert page["current"]["path"] == path
    assert [entry["reason"] for entry in page["versions"]] == ["replaced", "replaced"]
    oldest = page["versions"][-1]
    got = client.get(f"/v1/versions/{oldest['version']}", params=where)
    assert (got.content, got.headers["x-memdir-content-hash"]) == (b"one\x00\xff", oldest["contentHash"])
    back = client.post("/v1/versions:restore", json={**where, "version": oldest["version"]})
    assert (back.status_code, back.json()["path"]) == (200, path)
    assert client.get(url, params=where).content == b"one\x00\xff"

    assert client.delete(url, params=where).status_code == 200
    assert client.get(url, params=where).status_code == 404
    gone = client.get("/v1/versions:deleted", params={**where, "prefix": "/a b"}).json()["versions"]
    assert [(entry["path"], entry["reason"]) for entry in gone] == [(path, "deleted")]
    again = client.post("/v1/versions:restore", json={**where, "version": gone[0]["version"]})
    assert again.status_code == 201
    assert client.get(url, params=where).content == b"one\x00\xff"
    assert "versions" in client.get("/v1/capabilities").json()["features"]


def test_versions_come_in_pages(client: httpx.Client, tag: str) -> None:
    where = {"containerTag": tag}
    for number in range(8):
        client.put("/v1/files/a", params=where, content=b"%d" % number)
    seen: list[int] = []
    before = None
    while True:
        params = {**where, "path": "/a", "limit": "3"} | ({} if before is None else {"before": str(before)})
        page = client.get("/v1/versions", params=params).json()
        seen += [entry["version"] for entry in page["versions"]]
        before = page["nextBefore"]
        if before is None:
            break
    assert len(seen) == 7
    assert seen == sorted(seen, reverse=True)


def test_a_v3_document_has_versions_and_its_deletion_is_for_good(client: httpx.Client, tag: str) -> None:
    made = client.post("/v3/documents", json={"content": "one", "containerTag": tag, "customId": f"c-{tag}"}).json()
    client.patch(f"/v3/documents/{made['id']}", json={"content": "two"})
    params = {"containerTag": tag, "id": f"c-{tag}"}
    (entry,) = client.get("/v1/versions", params=params).json()["versions"]
    assert client.get(f"/v1/versions/{entry['version']}", params={"containerTag": tag}).content == b"one"
    assert client.delete(f"/v3/documents/{made['id']}").status_code == 204
    assert client.get(f"/v1/versions/{entry['version']}", params={"containerTag": tag}).status_code == 404


def test_purging_over_http(client: httpx.Client, tag: str) -> None:
    where = {"containerTag": tag}
    for text in (b"1", b"2"):
        client.put("/v1/files/a", params=where, content=text)
        client.put("/v1/files/b", params=where, content=text)
    assert client.delete("/v1/files/a", params={**where, "purge": "true"}).status_code == 200
    assert client.get("/v1/versions", params={**where, "path": "/a"}).status_code == 404
    assert client.delete("/v1/versions", params={**where, "path": "/b"}).json() == {"deletedCount": 1}
    assert client.get("/v1/versions", params={**where, "path": "/b"}).json()["versions"] == []


@pytest.mark.parametrize(
    ("params", "status"),
    [
        ({}, 400),
        ({"path": "/a", "id": "x"}, 400),
        ({"path": "../a"}, 400),
        ({"path": "/nothing"}, 404),
        ({"id": "nothing"}, 404),
        ({"path": "/a", "before": "0"}, 400),
        ({"path": "/a", "limit": "1001"}, 400),
    ],
)
def test_a_bad_question_about_versions_is_refused(client: httpx.Client, tag: str, params: dict[str, str], status: int) -> None:
    client.put("/v1/files/a", params={"containerTag": tag}, content=b"1")
    assert client.get("/v1/versions", params={"containerTag": tag, **params}).status_code == status


def test_a_version_is_not_seen_from_another_container(client: httpx.Client, tag: str) -> None:
    for text in (b"1", b"2"):
        client.put("/v1/files/a", params={"containerTag": tag}, content=text)
        client.put("/v1/files/a", params={"containerTag": f"{tag}x"}, content=text)
    (entry,) = client.get("/v1/versions", params={"containerTag": tag, "path": "/a"}).json()["versions"]
    other = {"containerTag": f"{tag}x"}
    assert client.get(f"/v1/versions/{entry['version']}", params=other).status_code == 404
    assert client.post("/v1/versions:restore", json={**other, "version": entry["version"]}).status_code == 404
