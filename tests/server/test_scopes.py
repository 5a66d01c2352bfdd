"""What a key opens: containers, actions, a folder; through every surface that shows or changes something."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

from memdir.core.clock import FakeClock
from memdir.core.errors import NotFoundError
from memdir.core.ids import new_id
from memdir.server.errors import ForbiddenError
from memdir.server.http.access import Caller
from memdir.store.accounts.keys import ApiKey, KeyStore, secret_hash
from memdir.store.accounts.orgs import ORG_LOCAL
from memdir.store.errors import ConflictError, HistoryGoneError, InvalidError
from memdir.store.sqlite.store import SqliteStore
from memdir.store.tree.operations import Delete, Move, Outcome
from memdir.store.types import Container
from memdir_bench.ingest import documents
from memdir_bench.ingest.phrases import PHRASE
from tests.server.conftest import AnyStore, Putting
from tests.server.test_siblings_http import read

HOUR_MS = 3_600_000


def key(**fields: Any) -> ApiKey:
    return ApiKey(**{"id": "k", "org_id": ORG_LOCAL, "name": "n", **fields})


@pytest.mark.parametrize(
    ("containers", "tag", "opens"),
    [
        (("*",), "any", True),
        (("a",), "a", True),
        (("a",), "ab", False),
        (("a*",), "a", True),
        (("a*",), "abc", True),
        (("a*",), "b", False),
        (("a", "team:*"), "team:1", True),
        (("a", "team:*"), "team", False),
    ],
)
def test_a_key_opens_containers_by_name_or_by_their_beginning(containers: tuple[str, ...], tag: str, opens: bool) -> None:
    assert key(containers=containers).allows("read", tag) is opens


@pytest.mark.parametrize(
    ("path", "inside"),
    [("/p", True), ("/p/a", True), ("/p/a/b", True), ("/pa", False), ("/", False), ("/q/p", False), (None, False)],
)
def test_a_folder_is_itself_and_what_is_below_it(path: str | None, inside: bool) -> None:
    assert key(prefix="/p").covers(path) is inside
    assert key().covers(path)


def test_a_whole_container_is_refused_unless_a_path_is_named(store: AnyStore, container: Container) -> None:
    caller = Caller(key=key(prefix="/p"), store=store)
    with pytest.raises(ForbiddenError, match="opens /p and what is below it only"):
        caller.container("notes", "read")
    assert caller.container("notes", "read", at="/p/x").id == container.id
    assert caller.narrowed("/") == "/p"
    assert caller.narrowed("/p/deep/") == "/p/deep"
    with pytest.raises(ForbiddenError):
        caller.narrowed("/q")


def test_who_may_only_read_does_not_bring_a_container_into_being(store: AnyStore) -> None:
    caller = Caller(key=key(actions=("read",)), store=store)
    with pytest.raises(NotFoundError):
        caller.ensured("fresh", "read")
    assert store.containers.find(ORG_LOCAL, "fresh") is None


def test_only_a_key_for_everything_manages(store: AnyStore) -> None:
    assert Caller(key=key(), store=store).administer() == ORG_LOCAL
    assert Caller(key=key(), store=store).administer("other") == "other"
    for narrow in ({"containers": ("a",)}, {"prefix": "/p"}, {"actions": ("read", "write")}):
        with pytest.raises(ForbiddenError):
            Caller(key=key(**narrow), store=store).administer()
    with pytest.raises(ForbiddenError, match="its own organisation"):
        Caller(key=key(org_id="other"), store=store).administer(ORG_LOCAL)


# the life of a key


def test_a_key_is_shown_once_and_kept_as_a_hash(store: AnyStore) -> None:
    made, secret = store.keys.create(
        org_id=ORG_LOCAL, name="ci", containers=["a", "b*"], actions=["write", "read"], prefix="/p/"
    )
    assert store.keys.authenticate(secret) == made
    assert (made.containers, made.actions, made.prefix) == (("a", "b*"), ("read", "write"), "/p")
    kept = [value for row in store.db.all("select * from api_key") for value in row]
    assert secret not in map(str, kept)
    assert secret_hash(secret) in kept


def test_a_revoked_key_opens_nothing(store: AnyStore) -> None:
    made, secret = store.keys.create(org_id=ORG_LOCAL, name="ci")
    assert store.keys.revoke(made.id)
    assert store.keys.authenticate(secret) is None
    assert not store.keys.revoke(made.id)
    assert store.keys.find(ORG_LOCAL, "ci") is None
    assert store.keys.find(ORG_LOCAL, made.id) is not None


def test_an_expired_key_says_so(store: AnyStore, clock: FakeClock) -> None:
    now_ms = clock.now_ns() // 1_000_000
    with pytest.raises(InvalidError, match="expire before"):
        store.keys.create(org_id=ORG_LOCAL, name="late", expires_at_ms=now_ms)
    made, _ = store.keys.create(org_id=ORG_LOCAL, name="ci", expires_at_ms=now_ms + HOUR_MS)
    assert not made.expired(now_ms + HOUR_MS - 1)
    assert made.expired(now_ms + HOUR_MS)


def test_a_rotated_key_leaves_its_scope_to_the_next_one(store: AnyStore) -> None:
    old, old_secret = store.keys.create(org_id=ORG_LOCAL, name="ci", containers=["a"], prefix="/p", limits={"bytes": 5})
    new, secret = store.keys.rotate(old.id)
    assert store.keys.authenticate(old_secret) is None
    assert (new.name, new.containers, new.prefix, new.limits, new.rotated_from) == ("ci", ("a",), "/p", {"bytes": 5}, old.id)
    assert store.keys.authenticate(secret) == new
    with pytest.raises(NotFoundError):
        store.keys.rotate(old.id)


def test_a_rotated_key_can_stay_for_a_while(store: AnyStore, clock: FakeClock) -> None:
    old, old_secret = store.keys.create(org_id=ORG_LOCAL, name="ci")
    new, _ = store.keys.rotate(old.id, keep_ms=HOUR_MS)
    still = store.keys.authenticate(old_secret)
    assert still is not None
    assert still.expires_at_ms == clock.now_ns() // 1_000_000 + HOUR_MS
    assert store.keys.find(ORG_LOCAL, "ci") == new


def test_names_can_be_asked_to_be_there_once(store: AnyStore) -> None:
    made, _ = store.keys.create(org_id=ORG_LOCAL, name="ci", unique=True)
    with pytest.raises(ConflictError, match="already"):
        store.keys.create(org_id=ORG_LOCAL, name="ci", unique=True)
    store.keys.revoke(made.id)
    store.keys.create(org_id=ORG_LOCAL, name="ci", unique=True)


@pytest.mark.parametrize(
    "wrong",
    [
        {"name": ""},
        {"name": "a\nb"},
        {"name": "n" * 101},
        {"containers": []},
        {"containers": ["a/b"]},
        {"containers": ["**"]},
        {"actions": []},
        {"actions": ["own"]},
        {"prefix": "p"},
        {"prefix": "/p/../q"},
        {"limits": {"bytes": 0}},
        {"limits": {"bytes": True}},
        {"limits": {"wishes": 3}},
    ],
)
def test_a_key_that_makes_no_sense_is_refused(store: AnyStore, wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidError):
        store.keys.create(**{"org_id": ORG_LOCAL, "name": "n", **wrong})


def test_a_key_needs_an_organisation_and_a_user_of_it(store: AnyStore) -> None:
    other = store.orgs.create("other")
    anna = store.orgs.add_user(other.id, "Anna", email="anna@example.org")
    with pytest.raises(NotFoundError, match="no organisation"):
        store.keys.create(org_id="nowhere", name="n")
    with pytest.raises(NotFoundError, match="no such user"):
        store.keys.create(org_id=ORG_LOCAL, name="n", user_id=anna.id)
    made, secret = store.keys.create(org_id=other.id, name="n", user_id=anna.id)
    assert made.user_id == anna.id
    assert store.orgs.remove_user(other.id, anna.id) == 1
    assert store.keys.authenticate(secret) is None


def test_an_organisation_goes_when_it_is_empty(store: AnyStore) -> None:
    other = store.orgs.create("other")
    with pytest.raises(ConflictError, match="already"):
        store.orgs.create("other")
    _, secret = store.keys.create(org_id=other.id, name="n")
    held = store.containers.ensure(other.id, "notes")
    with pytest.raises(ConflictError, match="notes"):
        store.orgs.remove(other.id)
    store.files.delete_container(held)
    store.orgs.remove(other.id)
    assert store.keys.authenticate(secret) is None
    assert [org.name for org in store.orgs.all()] == ["local"]
    with pytest.raises(InvalidError):
        store.orgs.remove(ORG_LOCAL)


# the feed of somebody who sees one folder


def seen(store: AnyStore, container: Container, since: int = 0, *, limit: int = 100) -> list[tuple[int, str, str]]:
    feed = store.changes.since_below(container.id, since, limit=limit, folder="/a/p")
    assert feed is not None
    return [(row.seq, row.kind, row.path) for row in feed.rows]


Moving = Callable[[str, str], Outcome]


@pytest.fixture
def move(store: AnyStore, container: Container) -> Moving:
    return lambda source, path: store.files.apply(container, Move(from_path=source, path=path))


def test_changes_outside_of_the_folder_are_not_shown(store: AnyStore, container: Container, put: Putting) -> None:
    for path in ("/a/p/x.md", "/a/q.md", "/a/pp.md", "/a/p/y.md", "/z.md"):
        put(path)
    assert seen(store, container) == [(1, "put", "/a/p/x.md"), (4, "put", "/a/p/y.md")]
    feed = store.changes.since_below(container.id, 0, limit=1, folder="/a/p")
    assert feed is not None
    assert (feed.last_row_seq, feed.last_seq) == (1, 5)


def test_what_is_moved_out_was_deleted_and_what_is_moved_in_was_put(
    store: AnyStore, container: Container, put: Putting, move: Moving
) -> None:
    put("/a/p/x.md")
    put("/other/y.md")
    put("/other/deep/z.md")
    move("/a/p/x.md", "/x.md")
    move("/other", "/a/p/in")
    assert seen(store, container, 3) == [
        (4, "delete", "/a/p/x.md"),
        (5, "put", "/a/p/in/deep/z.md"),
        (5, "put", "/a/p/in/y.md"),
    ]


def test_a_move_inside_is_followed_by_what_it_brought(
    store: AnyStore, container: Container, put: Putting, move: Moving
) -> None:
    """For those who never saw it at its old place, because it had come in and gone on before they looked."""
    put("/y.md")
    move("/y.md", "/a/p/y.md")
    move("/a/p/y.md", "/a/p/w.md")
    assert seen(store, container, 1) == [(3, "move", "/a/p/w.md"), (3, "put", "/a/p/w.md")]


def test_a_folder_above_takes_the_folder_along(store: AnyStore, container: Container, put: Putting, move: Moving) -> None:
    put("/a/p/x.md")
    move("/a", "/b")
    assert seen(store, container, 1) == [(2, "delete", "/a/p")]
    move("/b", "/a")
    assert (3, "put", "/a/p/x.md") in seen(store, container, 2)
    store.files.apply(container, Delete(path="/a", recursive=True))
    assert seen(store, container, 3) == [(4, "delete", "/a/p")]


def test_too_much_at_once_asks_for_a_new_comparison(
    store: AnyStore, container: Container, put: Putting, move: Moving, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memdir.store.tree.changes.CAME_IN_MAX", 2)
    for number in range(3):
        put(f"/o/{number}.md")
    move("/o", "/a/p/o")
    with pytest.raises(HistoryGoneError):
        seen(store, container, 3)


# through the real server


@pytest.fixture
def scoped(server: Any, tag: str) -> Iterator[Callable[..., httpx.Client]]:
    """Clients with keys of any scope, written beside the running server."""
    opened: list[httpx.Client] = []

    def make(org_id: str = ORG_LOCAL, **scope: Any) -> httpx.Client:
        with SqliteStoreBeside(server.home / "data" / "server") as keys:
            _, secret = keys.create(org_id=org_id, name=new_id(), **scope)
        opened.append(server.client(Authorization=f"Bearer {secret}"))
        return opened[-1]

    yield make
    for client in opened:
        client.close()


class SqliteStoreBeside:
    """The keys of a running server's database."""

    def __init__(self, folder: Any) -> None:
        self._store = SqliteStore.open(folder)

    def __enter__(self) -> KeyStore:
        return self._store.keys

    def __exit__(self, *_: object) -> None:
        self._store.close()


CANARY = "canary-9c41"


@pytest.mark.promise("keys.scopes")
def test_a_key_bound_to_a_folder_sees_and_changes_nothing_outside_of_it(
    client: httpx.Client, scoped: Callable[..., httpx.Client], tag: str
) -> None:
    at = {"containerTag": tag}
    for path in ("/p/in.md", f"/secret/{CANARY}.md", "/memory/me.md"):
        text = f"{CANARY} I work at Acme." if "in.md" not in path else "inside words"
        assert client.put(f"/v1/files{path}", params=at, content=text.encode()).status_code == 201
    outside = client.post("/v3/documents/list", json={"containerTags": [tag], "filepath": f"/secret/{CANARY}.md"})
    outside_id = outside.json()["memories"][0]["id"]
    client.patch(f"/v3/documents/{outside_id}", json={"customId": f"custom-{tag}", "content": CANARY})
    former = client.get("/v1/versions", params=at | {"path": f"/secret/{CANARY}.md"}).json()["versions"][0]["version"]
    bound = scoped(containers=[tag], prefix="/p")

    shown = [
        bound.get("/v1/files", params=at),
        bound.get("/v1/changes", params=at),
        bound.post("/v1/search", json={"containerTag": tag, "q": CANARY, "mode": "literal"}),
        bound.post("/v1/search", json={"containerTag": tag, "q": CANARY, "waitSeq": 3, "waitMs": 20000}),
        bound.post("/v3/documents/list", json={"containerTags": [tag], "includeContent": True}),
        bound.post("/v3/documents/list", json={}),
        bound.get("/v3/documents/processing", params=at),
        bound.post("/v3/search", json={"containerTags": [tag], "q": CANARY}),
        bound.post("/v4/search", json={"containerTag": tag, "q": f"{CANARY} Acme", "searchMode": "hybrid"}),
        bound.post("/v4/profile", json={"containerTag": tag, "q": "Acme"}),
        bound.get(f"/v3/container-tags/{tag}"),
        bound.get("/v1/versions:deleted", params=at),
        bound.get("/v1/versions", params=at | {"path": "/p/in.md"}),
        bound.get("/v1/versions:at", params=at | {"at": "2100-01-01T00:00:00Z"}),
        bound.get("/v1/versions:changes", params=at),
    ]
    for answer in shown:
        assert answer.status_code == 200, (answer.request.url, answer.text)
        assert CANARY not in answer.text, answer.request.url
        assert "Acme" not in answer.text
    assert [entry["path"] for entry in shown[0].json()["entries"]] == ["/p/in.md"]
    assert [change["path"] for change in shown[1].json()["changes"]] == ["/p/in.md"]
    assert [d["filepath"] for d in shown[4].json()["memories"]] == ["/p/in.md"]

    elsewhere = f"/secret/{CANARY}.md"
    refused = [
        (403, bound.get(f"/v1/files{elsewhere}", params=at)),
        (403, bound.head(f"/v1/files{elsewhere}", params=at)),
        (403, bound.put("/v1/files/new.md", params=at, content=b"x")),
        (403, bound.put("/v1/files/new.md", params=at, content=b"x" * 200_000)),
        (403, bound.delete(f"/v1/files{elsewhere}", params=at)),
        (403, bound.get("/v1/files", params=at | {"prefix": "/secret"})),
        (403, bound.post("/v1/files:move", json=at | {"fromPath": elsewhere, "toPath": "/p/stolen.md"})),
        (403, bound.post("/v1/files:move", json=at | {"fromPath": "/p/in.md", "toPath": "/out.md"})),
        (403, bound.post("/v1/search", json=at | {"q": "x", "filepath": "/secret/"})),
        (403, bound.post("/v3/documents/list", json={"containerTags": [tag], "filepath": "/secret/"})),
        (403, bound.post("/v3/documents", json=at | {"content": "x", "filepath": "/q.md"})),
        (403, bound.post("/v3/documents", json=at | {"content": "x", "customId": f"custom-{tag}"})),
        (400, bound.post("/v3/documents", json=at | {"content": "x"})),
        (404, bound.get(f"/v3/documents/{outside_id}")),
        (404, bound.get(f"/v3/documents/custom-{tag}")),
        (404, bound.patch(f"/v3/documents/{outside_id}", json={"content": "x"})),
        (404, bound.delete(f"/v3/documents/{outside_id}")),
        (403, bound.patch(f"/v3/container-tags/{tag}", json={"a": 1})),
        (403, bound.delete(f"/v3/container-tags/{tag}")),
        (403, bound.get("/v1/versions", params=at | {"path": elsewhere})),
        (404, bound.get("/v1/versions", params=at | {"id": outside_id})),
        (404, bound.get(f"/v1/versions/{former}", params=at)),
        (404, bound.post("/v1/versions:restore", json=at | {"version": former, "path": "/p/stolen.md"})),
        (403, bound.get("/v1/versions:deleted", params=at | {"prefix": "/secret"})),
        (403, bound.get("/v1/versions:at", params=at | {"prefix": "/secret", "at": "2100-01-01T00:00:00Z"})),
        (403, bound.get("/v1/versions:changes", params=at | {"prefix": "/secret"})),
        (403, bound.delete("/v1/versions", params=at | {"path": elsewhere})),
    ]
    for status, answer in refused:
        assert answer.status_code == status, (answer.request.method, str(answer.request.url), answer.text)
        assert "Acme" not in answer.text
    ops = [{"op": "delete", "path": elsewhere}, {"op": "move", "fromPath": elsewhere, "path": "/p/b"}]
    batch = bound.post("/v1/files:batch", json=at | {"operations": ops}).json()
    assert [item["status"] for item in batch["results"]] == [403, 403]
    bound.request("DELETE", "/v3/documents/bulk", json={"containerTags": [tag]})
    left = client.get("/v1/files", params=at).json()["entries"]
    assert [entry["path"] for entry in left] == ["/memory/me.md", elsewhere]


def test_a_key_for_reading_changes_nothing(client: httpx.Client, scoped: Callable[..., httpx.Client], tag: str) -> None:
    at = {"containerTag": tag}
    assert client.put("/v1/files/a.md", params=at, content=b"x").status_code == 201
    reading = scoped(containers=[tag[:-3] + "*"], actions=["read"])
    assert reading.get("/v1/files/a.md", params=at).text == "x"
    assert reading.put("/v1/files/a.md", params=at, content=b"y").status_code == 403
    assert reading.delete("/v1/files/a.md", params=at).status_code == 403
    assert reading.get("/v1/files", params={"containerTag": f"{tag}-new"}).status_code == 404
    assert client.get("/v1/files/a.md", params=at).text == "x"


def test_the_session_tells_what_the_key_opens(scoped: Callable[..., httpx.Client], tag: str) -> None:
    session = scoped(containers=[tag], actions=["read"], prefix="/p").get("/v3/session").json()
    assert session["org"] == {"id": "local", "name": "local"}
    assert session["key"]["containers"] == [tag]
    assert (session["key"]["actions"], session["key"]["prefix"], session["key"]["expiresAt"]) == (["read"], "/p", None)


def test_texts_are_told_only_to_those_who_may_read_the_file(
    client: httpx.Client, scoped: Callable[..., httpx.Client], tag: str
) -> None:
    for path, content in (("/mine/a.pdf", documents.pdf()), ("/yours/b.rtf", documents.rtf())):
        client.put(f"/v1/files{path}", params={"containerTag": tag}, content=content).raise_for_status()
    mine, yours = sorted(read(client, tag, 2), key=lambda one: one["path"])
    narrow = scoped(containers=[tag], actions=["read"], prefix="/yours")
    seen = narrow.get("/v1/siblings", params={"containerTag": tag}).json()
    assert [one["path"] for one in seen["siblings"]] == ["/yours/b.rtf"]
    for sibling, status in ((mine, 404), (yours, 200)):
        answer = narrow.get("/v1/siblings/text", params={"containerTag": tag, "contentHash": sibling["contentHash"]})
        assert answer.status_code == status, answer.text
        assert (PHRASE in answer.text) == (status == 200)
    other = client.get("/v1/siblings/text", params={"containerTag": tag, "contentHash": "0" * 64})
    assert other.status_code == 404
