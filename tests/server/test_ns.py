"""The namespace API where a published client does not go: scopes, filters that are none, ids that mean two documents."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx
import pytest

from memdir.api import ns
from memdir.core.errors import MemdirError, NotFoundError
from memdir.server.errors import ForbiddenError
from memdir.server.http.access import Caller
from memdir.server.services.namespaces import documents as namespace_documents
from memdir.server.services.namespaces import memories as namespace_memories
from memdir.server.services.namespaces import namespaces
from memdir.server.services.namespaces.filters import filters_of
from memdir.store.accounts.keys import ApiKey
from memdir.store.errors import ConflictError, InvalidError
from memdir.store.store import Store
from tests.server.conftest import Putting
from tests.server.test_scopes import key

Calls = Callable[..., Caller]


def add(caller: Caller, namespace: str, content: str = "text", **fields: Any) -> str:
    return namespace_documents.add(caller, namespace, ns.AddDocument(content=content, **fields)).id


def calling(store: Store, **scope: Any) -> Caller:
    made: ApiKey = key(**scope)
    return Caller(key=made, store=store)


def test_a_key_for_one_namespace_opens_no_other(store: Store) -> None:
    everything, one = calling(store), calling(store, containers=("one",))
    add(everything, "two", "canary", id="d")
    secret = namespace_documents.named(everything, "two", "d").id
    add(everything, "one", id="mine")
    outside: list[Callable[[], object]] = [
        lambda: add(one, "two"),
        lambda: namespace_documents.get(one, "two", "d", []),
        lambda: namespace_documents.change(one, "two", "d", ns.ChangeDocument(content="x")),
        lambda: namespace_documents.delete(one, "two", ["d"]),
        lambda: namespace_documents.chunks(one, "two", ns.ListRequest(), number=1, limit=5, sort="createdAt", order="asc"),
        lambda: namespace_documents.memory_counts(one, "two", ["d"]),
        lambda: namespace_memories.page(one, "two", ns.ListRequest(), number=1, limit=5, sort="createdAt", order="asc"),
        lambda: namespace_memories.buckets(one, "two"),
        lambda: namespace_memories.change_buckets(one, "two", put={"a": "b"}),
        lambda: namespace_memories.forget(one, "two", ["m"]),
        lambda: namespace_memories.get(one, "two", "m", [], 5),
        lambda: namespaces.get(one, "two"),
        lambda: namespaces.delete(one, "two", None),
        lambda: namespaces.change(one, "two", ns.ChangeNamespace(supporting_context="x")),
    ]
    for call in outside:
        with pytest.raises(ForbiddenError):
            call()
    # Named through its own namespace, another's document is not there.
    for name in ("d", secret):
        with pytest.raises(NotFoundError):
            namespace_documents.get(one, "one", name, [])
    assert [space.namespace for space in namespaces.page(one, number=1, limit=10, text=None).namespaces] == ["one"]


def test_a_key_bound_to_a_folder_sees_its_folder_only(store: Store, put: Putting) -> None:
    for path in ("/p/in.md", "/secret/out.md"):
        put(path, path.encode(), custom_id=path)
    bound = calling(store, prefix="/p")
    listed = namespace_documents.page(bound, "notes", ns.ListRequest(), number=1, limit=10, sort="createdAt", order="asc")
    assert [document.id for document in listed.documents] == ["/p/in.md"]
    with pytest.raises(NotFoundError):
        namespace_documents.get(bound, "notes", "/secret/out.md", [])
    assert namespace_documents.delete(bound, "notes", ["/secret/out.md"]).count == 0
    assert namespace_documents.memory_counts(bound, "notes", ["/p/in.md", "/secret/out.md"]).counts[0].id == "/p/in.md"
    for call in (lambda: namespace_memories.forget(bound, "notes", ["m"]), lambda: namespaces.delete(bound, "notes", None)):
        with pytest.raises(ForbiddenError):
            call()
    assert namespace_documents.named(calling(store), "notes", "/secret/out.md").path == "/secret/out.md"


def test_nothing_can_be_appended_to_what_is_no_text(store: Store, put: Putting) -> None:
    put(None, b"\x00\xff" * 100, custom_id="image")
    with pytest.raises(ConflictError):
        add(calling(store), "notes", "words", id="image")


def test_what_was_appended_to_can_be_had_as_it_was(store: Store) -> None:
    caller = calling(store)
    for part in ("one", "two", "three"):
        add(caller, "notes", part, id="log")
    document = namespace_documents.named(caller, "notes", "log")
    versions = store.versions.of_document(document, limit=10)
    assert [store.blobs.content(version.content_hash) for version in versions] == [b"one\n\ntwo", b"one"]


@pytest.mark.parametrize(
    "expression",
    [
        {},
        {"field": "a", "value": "x"},
        {"field": "a", "operator": "like", "value": "x"},
        {"field": "a", "operator": "eq"},
        {"field": "a", "operator": "eq", "value": None},
        {"field": "a", "operator": "eq", "value": ["x"]},
        {"field": 1, "operator": "eq", "value": "x"},
        {"field": "a", "operator": "gt", "value": "3"},
        {"field": "a", "operator": "gt", "value": True},
        {"operator": "and", "operands": "x"},
        {"operator": "and"},
        {"operator": "or", "operands": [1]},
        {"operator": ["and"], "operands": []},
    ],
)
def test_what_is_no_filter_is_refused(expression: dict[str, Any]) -> None:
    with pytest.raises(InvalidError):
        filters_of(expression)


def test_filters_nest_to_a_bound() -> None:
    expression: dict[str, Any] = {"field": "a", "operator": "eq", "value": "x"}
    for _ in range(7):
        expression = {"operator": "and", "operands": [expression]}
    assert filters_of(expression) is not None
    with pytest.raises(MemdirError):
        filters_of({"operator": "and", "operands": [expression]})


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("GET", "/ns?page=0", None, 400),
        ("GET", "/ns/a%20b", None, 400),
        ("GET", "/ns/{ns}/document/never", None, 404),
        ("GET", "/ns/{ns}/document/one?include=everything", None, 400),
        ("DELETE", "/ns/{ns}/document/never", None, 404),
        ("POST", "/ns/{ns}/document", {"content": ""}, 400),
        ("POST", "/ns/{ns}/document", {"content": "x", "taskType": "magic"}, 400),
        ("POST", "/ns/{ns}/list/everything", {}, 404),
        ("POST", "/ns/{ns}/list/memories?sort=position", {}, 400),
        ("POST", "/ns/{ns}/list/chunks?limit=201", {}, 400),
        ("DELETE", "/ns/{ns}/document", {"ids": []}, 400),
        ("PUT", "/ns/never-made/profile/buckets", {"buckets": {"a": "b"}}, 404),
        ("GET", "/ns/{ns}/memories/x?relatedLimit=0", None, 400),
        ("GET", "/ns/{ns}/connectors", None, 501),
        ("DELETE", "/ns/{ns}?moveTo=other", None, 400),
        ("DELETE", "/ns/{ns}/document/one", None, 200),
    ],
)
def test_each_bad_request_has_its_status(
    client: httpx.Client, tag: str, method: str, path: str, body: object, status: int
) -> None:
    assert client.post(f"/ns/{tag}/document", json={"content": "x", "id": "one"}).status_code == 200
    answer = client.request(method, path.replace("{ns}", tag), json=body)
    assert (answer.status_code, "error" in answer.json()) == (status, status != 200), answer.text
