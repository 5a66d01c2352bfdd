"""What `/v3` and `/v4` answer beside the plain case: spellings, names used twice, extras, buckets, refusals."""

from __future__ import annotations

import json
import select
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from memdir.server.services.contents.conversations import continued


def add(client: httpx.Client, **body: Any) -> str:
    answer = client.post("/v3/documents", json=body)
    assert answer.status_code == 200, answer.text
    return str(answer.json()["id"])


def done(client: httpx.Client, name: str) -> dict[str, Any]:
    for _ in range(600):
        document: dict[str, Any] = client.get(f"/v3/documents/{name}").json()
        if document["status"] == "done" and document["dreamingStatus"] == "done":
            return document
        select.select([], [], [], 0.1)
    raise AssertionError(document)


def post(client: httpx.Client, path: str, **body: Any) -> dict[str, Any]:
    answer = client.post(path, json=body)
    assert answer.status_code < 300, answer.text
    found: dict[str, Any] = answer.json()
    return found


@pytest.mark.promise("api.container-spellings")
def test_either_spelling_names_the_container(client: httpx.Client, tag: str) -> None:
    spellings: tuple[dict[str, Any], ...] = ({"containerTag": tag}, {"containerTags": [tag]})
    for number, named in enumerate(spellings):
        add(client, content=f"The keel number {number} is oak.", customId=f"{tag}-{number}", **named)
        post(client, "/v3/documents/batch", contents=[f"Batch {number}."], **named)
        post(client, "/v4/memories", memories=[{"content": f"Ida owns boat {number}.", "isStatic": True}], **named)
        messages = [{"role": "user", "content": "I sail."}]
        post(client, "/v4/conversations", conversationId=f"{tag}-c{number}", messages=messages, **named)
        files = {"file": ("a.txt", f"Upload {number}.".encode())}
        form = {"containerTag": tag} if number else {"containerTags": json.dumps([tag])}
        assert client.post("/v3/documents/file", files=files, data=form).status_code == 200
    for named in spellings:
        assert post(client, "/v3/documents/list", **named)["pagination"]["totalItems"] == 8
        assert post(client, "/v4/memories/list", **named)["pagination"]["totalItems"] >= 2
        assert post(client, "/v4/search", q="Ida owns boat", **named)["total"] >= 2
        assert len(post(client, "/v4/profile", **named)["profile"]["static"]) >= 2
        assert "results" in post(client, "/v3/search", q="keel", **named)
        assert client.get("/v3/documents/processing", params=dict.fromkeys(named, tag)).status_code == 200
    gone = client.request("DELETE", "/v3/documents/bulk", json={"containerTag": tag}).json()
    assert (gone["deletedCount"], gone["containerTags"]) == (8, [tag])


@pytest.mark.promise("api.custom-ids")
def test_a_custom_id_of_several_containers_names_none_by_chance(client: httpx.Client, tag: str) -> None:
    ids = {place: add(client, content=f"In {place}.", containerTag=place, customId=tag) for place in (tag, f"{tag}-2")}
    for method in ("GET", "DELETE"):
        refused = client.request(method, f"/v3/documents/{tag}")
        assert refused.status_code == 409
        assert "containerTag" in refused.json()["error"]
    assert client.patch(f"/v3/documents/{tag}", json={"metadata": {}}).status_code == 409
    where = {"containerTag": tag}
    assert client.get(f"/v3/documents/{tag}", params=where).json()["content"] == f"In {tag}."
    assert client.patch(f"/v3/documents/{tag}", params=where, json={"metadata": {"n": 1}}).json()["id"] == ids[tag]
    assert client.delete(f"/v3/documents/{tag}", params=where).status_code == 204
    assert client.get(f"/v3/documents/{tag}").json()["id"] == ids[f"{tag}-2"]
    assert client.patch(f"/v3/documents/{ids[f'{tag}-2']}", json={"containerTag": tag}).status_code == 400


def test_for_search_only_means_no_memories(client: httpx.Client, tag: str) -> None:
    text = "I prefer tea over coffee."
    searched = add(client, content=text, containerTag=tag, taskType="superrag")
    assert done(client, searched)["memories"] is None
    assert post(client, "/v4/profile", containerTag=tag)["profile"]["static"] == []
    client.patch(f"/v3/documents/{searched}", json={"taskType": "memory"})
    assert [entry["memory"] for entry in done(client, searched)["memories"]] == [text]
    client.patch(f"/v3/container-tags/{tag}", json={"memoryFilesystemPaths": []})
    for _ in range(300):
        if not post(client, "/v4/profile", containerTag=tag)["profile"]["static"]:
            break
        select.select([], [], [], 0.1)
    assert done(client, searched)["memories"] is None


def test_extras_stand_beside_a_result_when_asked_for(client: httpx.Client, tag: str) -> None:
    made = add(client, content="# Tea\n\nI prefer tea over coffee.\n", containerTag=tag, metadata={"n": 1})
    done(client, made)
    plain = post(client, "/v4/search", q="tea", containerTag=tag)["results"][0]
    assert not {"documents", "context", "chunks", "chunk"} & set(plain)
    include = {"documents": True, "summaries": True, "chunks": True, "relatedMemories": True}
    (full,) = post(client, "/v4/search", q="tea", containerTag=tag, include=include)["results"]
    assert full["documents"][0] | {"createdAt": "", "updatedAt": ""} == {
        "id": made, "title": "Tea", "type": "text", "metadata": {"n": 1}, "summary": "I prefer tea over coffee.",
        "createdAt": "", "updatedAt": "",
    }  # fmt: skip
    assert full["chunks"][0]["documentId"] == made
    assert full["context"] == {"parents": [], "children": [], "related": []}
    filters = json.dumps({"key": "n", "value": 2})
    assert post(client, "/v4/search", q="tea", containerTag=tag, filters=filters, searchMode="hybrid")["results"] == []
    assert (
        post(client, "/v4/profile", containerTag=tag, filters={"AND": [{"key": "n", "value": "2"}]})["profile"]["static"] == []
    )


@pytest.mark.promise("retrieval.memories-ranked", "retrieval.wire-search")
def test_a_memory_and_the_passage_it_was_read_in_are_one_result(client: httpx.Client, tag: str) -> None:
    for path, text in {
        "/memory/tea.md": "# Drinks\n\nI prefer tea over coffee.\n",
        "/notes.md": "Coffee and tea: 12 euros.\n",
    }.items():
        done(client, add(client, content=text, containerTag=tag, filepath=path))
    post(client, "/v4/memories", memories=[{"content": "Ida drinks tea in Lisbon."}], containerTag=tag)
    query = {"q": "tea or coffee", "containerTag": tag}
    both = post(client, "/v4/search", searchMode="hybrid", threshold=0, **query)["results"]
    assert [result["similarity"] for result in both] == sorted((result["similarity"] for result in both), reverse=True)
    of_file = [result for result in both if result.get("filepath") == "/memory/tea.md"]
    assert [(one.get("memory"), one.get("chunk")) for one in of_file] == [("I prefer tea over coffee.", None)]
    assert [chunk["content"].strip() for chunk in of_file[0]["chunks"]] == ["# Drinks\n\nI prefer tea over coffee."]
    assert {(result.get("memory") or result["chunk"]).strip() for result in both} == {
        "I prefer tea over coffee.",
        "Ida drinks tea in Lisbon.",
        "Coffee and tea: 12 euros.",
    }
    body = {"waitSeq": 1 << 60, "waitMs": 30_000, **query}
    lines = {hit["path"]: hit for hit in post(client, "/v1/search", **body)["results"]}
    assert (lines["/memory/tea.md"]["text"], lines["/memory/tea.md"]["startLine"]) == ("I prefer tea over coffee.", 3)
    assert lines["/memory/tea.md"]["memory"] == "I prefer tea over coffee."
    assert lines["/notes.md"]["memory"] is None
    assert (
        post(client, "/v4/search", searchMode="hybrid", q="lattice quantum chromodynamics", containerTag=tag)["results"] == []
    )


@pytest.mark.promise("retrieval.wire-search")
def test_filters_thresholds_and_a_document_narrow_the_search_itself(client: httpx.Client, tag: str) -> None:
    ids = {}
    for number in range(12):
        text = f"Walnut boards, delivery {number}: the walnut boards for the walnut desk.\n"
        ids[number] = add(
            client, content=text, containerTag=f"{tag}-{number % 2}", customId=f"{tag}-{number}", metadata={"n": number}
        )
    for name in ids.values():
        done(client, name)
    query = {"q": "walnut boards", "containerTags": [f"{tag}-0", f"{tag}-1"]}
    assert post(client, "/v3/search", limit=12, **query)["total"] == 12
    some = {"AND": [{"key": "n", "value": "9", "filterType": "numeric", "numericOperator": ">="}]}
    found = post(client, "/v3/search", limit=2, filters=some, **query)
    assert (len(found["results"]), found["total"]) == (2, 3)
    assert {result["metadata"]["n"] for result in found["results"]} <= {9, 10, 11}
    (one,) = post(client, "/v3/search", docId=f"{tag}-7", **query)["results"]
    assert one["documentId"] == ids[7]
    assert post(client, "/v3/search", docId=ids[7], filters=some, **query)["results"] == []
    assert post(client, "/v3/search", docId="nobody", **query)["results"] == []
    mixed = {**query, "q": "walnut boards for delivery 7 on Monday"}
    every = {
        one["documentId"]: one["score"] for one in post(client, "/v3/search", limit=12, chunkThreshold=0, **mixed)["results"]
    }
    between = (min(every.values()) + max(every.values())) / 2
    for threshold in ("documentThreshold", "chunkThreshold"):
        kept = post(client, "/v3/search", limit=12, **{threshold: between}, **mixed)["results"]
        assert {one["documentId"] for one in kept} == {name for name, score in every.items() if score >= between}
    assert 0 < len(kept) < 12
    assert post(client, "/v3/search", **{**query, "q": "lattice quantum chromodynamics"})["results"] == []
    for mode in ("documents", "hybrid"):
        chunks = post(client, "/v4/search", searchMode=mode, filters=some, **query)["results"]
        assert {result["metadata"]["n"] for result in chunks} == {9, 10, 11}
    post(
        client,
        "/v4/memories",
        memories=[{"content": "Ida owns a walnut desk.", "metadata": {"n": 10}}],
        containerTag=f"{tag}-0",
    )
    post(client, "/v4/memories", memories=[{"content": "Pim owns a walnut desk."}], containerTag=f"{tag}-0")
    memories = post(client, "/v4/search", filters=some, **{**query, "q": "who owns a walnut desk"})["results"]
    assert [result["memory"] for result in memories] == ["Ida owns a walnut desk."]


def test_buckets_take_the_facts_that_fit_them(client: httpx.Client, tag: str) -> None:
    assert "buckets" not in post(client, "/v4/profile", containerTag=tag)["profile"]
    buckets = [
        {"key": "drinks", "description": "tea, coffee and other drinks"},
        {"key": "work", "description": "job and employer"},
    ]
    client.patch(f"/v3/container-tags/{tag}", json={"profileBuckets": buckets})
    statements = [
        {"content": "Ida drinks tea and coffee.", "isStatic": True},
        {"content": "Gulls are loud.", "isStatic": True, "metadata": {"bucket": "work"}},
    ]
    client.post("/v4/memories", json={"containerTag": tag, "memories": statements})
    profile = post(client, "/v4/profile", containerTag=tag, include=["buckets"])["profile"]
    assert profile == {"buckets": {"drinks": ["Ida drinks tea and coffee."], "work": ["Gulls are loud."]}}
    only = post(client, "/v4/profile", containerTag=tag, buckets=["work"])["profile"]["buckets"]
    assert only == {"work": ["Gulls are loud."]}
    for wrong in ("drinks", [{"key": ""}], [{"description": "x"}], [{"key": "k"}] * 51):
        assert client.patch(f"/v3/container-tags/{tag}", json={"profileBuckets": wrong}).status_code == 400


def test_neighbours_of_a_match_come_in_the_order_of_the_document(client: httpx.Client, tag: str) -> None:
    words = [" ".join(f"{name}{n}" for n in range(300)) for name in ("alpha", "bravo", "gamma", "delta", "echo")]
    made = add(client, content="\n\n".join(f"# Part {n}\n\n{text}." for n, text in enumerate(words)), containerTag=tag)
    done(client, made)
    body = {"q": "gamma7 gamma8", "containerTag": tag, "docId": made}
    matching = post(client, "/v3/search", **body)["results"][0]["chunks"]
    around = post(client, "/v3/search", **body, onlyMatchingChunks=False)["results"][0]["chunks"]
    places = [chunk["position"] for chunk in around]
    assert places == sorted(set(places))
    assert {chunk["position"] for chunk in matching} == {chunk["position"] for chunk in around if chunk["isRelevant"]}
    near = {chunk["position"] + step for chunk in matching for step in (-1, 0, 1)}
    assert set(places) <= near
    assert len(places) > len(matching)


@pytest.mark.promise("api.conversations")
def test_those_who_add_to_a_conversation_at_once_lose_nothing(client: httpx.Client, tag: str) -> None:
    def say(number: int) -> int:
        body = {"conversationId": tag, "containerTag": tag, "messages": [{"role": "user", "content": f"Turn {number}."}]}
        for _ in range(20):
            answer = client.post("/v4/conversations", json=body)
            if answer.status_code != 409:
                break
        return answer.status_code

    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(say, range(24))) == {200}
    turns = client.get(f"/v3/documents/{tag}", params={"containerTag": tag}).json()["content"].split("\n\n")
    assert sorted(turns) == sorted(f"user: Turn {number}." for number in range(24))


@pytest.mark.parametrize(
    ("before", "turns", "after"),
    [
        ("", ["a", "b"], "a\n\nb"),
        ("a", ["a", "b"], "a\n\nb"),
        ("a\n\nb", ["a", "b"], "a\n\nb"),
        ("a\n\nb", ["b"], "a\n\nb"),
        ("a\n\nb", ["b", "c"], "a\n\nb\n\nc"),
        ("a\n\nb", ["c"], "a\n\nb\n\nc"),
        ("a\n\nb\n\nc", ["a", "x", "c", "d"], "a\n\nx\n\nc\n\nd"),
        ("a\n\nb", ["a"], "a\n\nb\n\na"),
        ("a\n\nbb", ["b"], "a\n\nbb\n\nb"),
    ],
)
def test_what_is_new_of_a_conversation_is_appended(before: str, turns: list[str], after: str) -> None:
    assert continued(before, turns) == after


def test_what_this_server_does_not_offer_is_said_plainly(client: httpx.Client) -> None:
    for method, path in (
        ("GET", "/v3/settings"),
        ("PATCH", "/v3/settings"),
        ("POST", "/v3/connections/notion"),
        ("GET", "/v3/connections/abc"),
        ("POST", "/v3/container-tags/merge"),
        ("POST", "/v4/memories/forget-matching"),
    ):
        answer = client.request(method, path, json={})
        assert (answer.status_code, answer.headers["x-should-retry"]) == (501, "false"), path
        assert len(answer.json()["error"]) > 20


def test_filters_that_are_none_are_refused_and_not_passed_over(client: httpx.Client, tag: str) -> None:
    for wrong in ({"author": "ida"}, "no json", '"text"', {"AND": [{}]}, {"OR": "x"}):
        for path, body in (
            ("/v3/documents/list", {}),
            ("/v3/search", {"q": "x"}),
            ("/v4/search", {"q": "x"}),
            ("/v4/profile", {}),
        ):
            answer = client.post(path, json={"containerTag": tag, "filters": wrong, **body})
            assert answer.status_code == 400, (path, wrong, answer.text)
