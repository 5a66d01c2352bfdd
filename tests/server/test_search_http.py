"""Search, documents and profile over a real server with the real models."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from memdir.api.v3 import LIST_LIMIT_MAX
from tests.server.test_files_http import put
from tests.servers import ON_BOTH

pytestmark = ON_BOTH


def search(client: httpx.Client, tag: str, q: str, **options: Any) -> dict[str, Any]:
    body = {"containerTag": tag, "q": q, "waitSeq": 1 << 60, "waitMs": 30_000, **options}
    answer = client.post("/v1/search", json=body)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def done(client: httpx.Client, tag: str) -> None:
    """Wait until no document of the container is in the pipeline: the transformer's vectors are there, and the facts, which
    come a moment after a document is done."""
    last = client.get("/v1/changes", params={"containerTag": tag, "limit": 1}).json()["lastSeq"]
    for _ in range(600):
        if client.get("/v3/documents/processing", params={"containerTag": tag}).json()["totalCount"] == 0:
            page = client.post("/v3/documents/list", json={"containerTags": [tag], "limit": LIST_LIMIT_MAX}).json()
            if all(document["dreamingStatus"] == "done" for document in page["memories"]):
                return
        client.get("/v1/changes", params={"containerTag": tag, "since": last, "wait": 0.1})
    raise AssertionError("the documents were not done in time")


def test_a_fresh_file_is_found_by_meaning_at_its_exact_line(client: httpx.Client, tag: str) -> None:
    text = "# Prices\n\nWe charge nine euros every month.\n\nThe office cat sleeps all day.\n"
    put(client, tag, "/notes/prices.md", text.encode())
    put(client, tag, "/notes/garden.md", b"Tomatoes need water in summer.\n")
    done(client, tag)
    found = search(client, tag, "subscription cost", explain=True)
    best = found["results"][0]
    assert (best["path"], best["startLine"], best["endLine"], best["kind"]) == ("/notes/prices.md", 3, 3, "chunk")
    assert text.encode()[best["startByte"] : best["endByte"]].decode() == best["text"] == "We charge nine euros every month."
    assert found["pending"] == []
    assert set(best["signals"]) >= {"lexical", "static"}
    assert "wait" in found["stagesMs"]


def test_an_edit_is_found_and_what_it_replaced_is_not(client: httpx.Client, tag: str) -> None:
    put(client, tag, "/a.md", b"The zebra crossing is painted.\n")
    assert [r["path"] for r in search(client, tag, "zebra crossing")["results"]] == ["/a.md"]
    put(client, tag, "/a.md", b"The violin concert is cancelled.\n")
    immediate = client.post("/v1/search", json={"containerTag": tag, "q": "zebra crossing"}).json()
    assert not any("zebra" in r["text"] for r in immediate["results"])
    assert [r["path"] for r in search(client, tag, "violin concert")["results"]] == ["/a.md"]
    client.delete("/v1/files/a.md", params={"containerTag": tag})
    assert search(client, tag, "violin concert")["results"] == []


def test_only_lines_that_hold_a_name(client: httpx.Client, tag: str) -> None:
    put(client, tag, "/list.md", b"Ana Ruiz sits below.\nBen Novak sits upstairs.\nAna Ruiz came on board in May.\n")
    done(client, tag)
    found = search(client, tag, "since when is Ana Ruiz employed", containing=["ana ruiz"])
    assert [r["startLine"] for r in found["results"]] == [3, 1]
    assert found["total"] == 2
    nothing = search(client, tag, "since when is she employed", containing=["Ana Ruiz", "upstairs"])
    assert nothing["results"] == []
    assert nothing["note"] == "no line holds all that it has to contain"
    for wrong in (["->"], ["a" * 201], ["a"] * 9, "Ana"):
        body = {"containerTag": tag, "q": "x", "containing": wrong}
        assert client.post("/v1/search", json=body).status_code == 400
    body = {"containerTag": tag, "q": "x", "containing": ["a"], "mode": "literal"}
    assert client.post("/v1/search", json=body).status_code == 400


@pytest.mark.parametrize("query", ["\U0001f389", "?!", "---"])
def test_a_question_without_a_word_is_told_why_nothing_is_found(query: str, client: httpx.Client, tag: str) -> None:
    put(client, tag, "/a.md", b"A party \xf0\x9f\x8e\x89 ?! ---\n")
    found = search(client, tag, query)
    assert found["results"] == []
    assert "no letter and no digit" in found["note"]


def test_scope_is_a_folder_or_a_file_and_never_more(client: httpx.Client, tag: str) -> None:
    for path in ("/a/x.md", "/a/y.md", "/ab/x.md", "/a.md"):
        put(client, tag, path, f"The quarterly budget meeting {path}.\n".encode())  # equal files would take one place
    for scope, expected in (
        ("/", {"/a/x.md", "/a/y.md", "/ab/x.md", "/a.md"}),
        ("/a", {"/a/x.md", "/a/y.md"}),
        ("/a/", {"/a/x.md", "/a/y.md"}),
        ("/a/x.md", {"/a/x.md"}),
        ("/nothing", set()),
    ):
        for mode in ("semantic", "literal"):
            found = search(client, tag, "budget meeting", filepath=scope, mode=mode)
            assert {r["path"] for r in found["results"]} == expected, (scope, mode)


@pytest.mark.promise("retrieval.grouping")
def test_lines_around_hits_and_a_budget_come_when_asked_for(client: httpx.Client, tag: str) -> None:
    lines = [f"Line {number} is about nothing." for number in range(1, 30)]
    lines[9] = lines[11] = "The walnut tree was planted."
    put(client, tag, "/a.md", "\n".join(lines).encode())
    put(client, tag, "/b.md", b"Another walnut tree.\n")
    plain = search(client, tag, "walnut", mode="literal")
    assert plain["leftOut"] is None
    assert [(hit["path"], hit["startLine"]) for hit in plain["results"]] == [("/a.md", 10), ("/a.md", 12), ("/b.md", 1)]
    assert plain["results"][0]["matched"] is None
    (around, _) = search(client, tag, "walnut", mode="literal", context=1, group=True)["results"]
    assert around["text"] == "\n".join(lines[8:13])
    assert (around["startLine"], around["endLine"]) == (9, 13)
    assert around["matched"] == [{"startLine": 10, "endLine": 10}, {"startLine": 12, "endLine": 12}]
    some = search(client, tag, "walnut", mode="literal", budgetTokens=30, explain=True)
    assert [hit["path"] for hit in some["results"]] == ["/a.md", "/b.md"]
    assert some["tokens"] <= 30
    assert some["leftOut"] == {"count": 1, "paths": ["/a.md"]}
    meant = search(client, tag, "when was the walnut planted", context=2, explain=True)
    (around,) = (hit for hit in meant["results"] if hit["path"] == "/a.md" and hit["startLine"] <= 10 <= hit["endLine"])
    assert around["text"] == "\n".join(lines[around["startLine"] - 1 : around["endLine"]])
    assert around["endLine"] - around["startLine"] >= 4
    assert meant["stagesMs"]["group"] >= 0
    assert client.post("/v1/search", json={"containerTag": tag, "q": "x", "context": 10_000}).status_code == 400


def test_literal_search_finds_bytes_and_says_where(client: httpx.Client, tag: str) -> None:
    put(client, tag, "/a.txt", "eins\nzwei [x] grün\n".encode())
    put(client, tag, "/b.bin", b"\x00[x]")
    found = search(client, tag, "[x] gr", mode="literal")["results"]
    assert [(r["path"], r["startLine"], r["startByte"], r["endByte"], r["text"]) for r in found] == [
        ("/a.txt", 2, 10, 16, "zwei [x] grün")
    ]


def test_a_search_where_nothing_is_finds_nothing(client: httpx.Client, tag: str) -> None:
    answer = client.post("/v1/search", json={"containerTag": tag, "q": "anything"})
    assert (answer.status_code, answer.json()["results"]) == (200, [])
    assert client.get(f"/v3/container-tags/{tag}").status_code == 404


@pytest.mark.promise("parts.api-calls")
def test_a_profile_follows_what_the_memory_files_say(client: httpx.Client, tag: str) -> None:
    assert client.post("/v4/profile", json={"containerTag": tag}).json()["profile"] == {"static": [], "dynamic": []}
    version = client.get("/v1/changes", params={"containerTag": tag}).json()["profileVersion"]
    put(client, tag, "/memory/me.md", b"- I prefer tea over coffee.\n")
    page = client.get("/v1/changes", params={"containerTag": tag, "since": 1, "wait": 30, "profileSince": version}).json()
    assert page["profileVersion"] > version
    facts = client.post("/v4/profile", json={"containerTag": tag, "q": "tea or coffee"}).json()
    assert facts["profile"]["static"] == ["I prefer tea over coffee."]
    assert any(r.get("memory") == "I prefer tea over coffee." for r in facts["searchResults"]["results"])
    body = {"containerTag": tag, "q": "tea", "searchMode": "memories", "filepath": "/other/"}
    assert client.post("/v4/search", json=body).json()["results"] == []


@pytest.mark.promise("parts.api-calls")
def test_a_document_lives_through_the_v3_calls(client: httpx.Client, tag: str) -> None:
    added = client.post(
        "/v3/documents", json={"content": "one", "containerTag": tag, "customId": f"c-{tag}", "metadata": {"n": 1}}
    )
    name = added.json()["id"]
    assert added.json()["status"] == "queued"
    view = client.get(f"/v3/documents/c-{tag}").json()
    assert (view["id"], view["content"], view["filepath"], view["metadata"]) == (name, "one", None, {"n": 1})
    again = client.post("/v3/documents", json={"content": "two", "containerTag": tag, "customId": f"c-{tag}"})
    assert again.json()["id"] == name
    placed = client.patch(f"/v3/documents/{name}", json={"filepath": "/p/a.md"})
    assert placed.json()["id"] == name
    moved = client.patch(f"/v3/documents/{name}", json={"filepath": "/p/b.md", "content": "three", "metadata": {"n": 2}})
    assert moved.status_code == 200
    view = client.get(f"/v3/documents/{name}").json()
    assert (view["content"], view["filepath"], view["metadata"]) == ("three", "/p/b.md", {"n": 2})
    assert client.get("/v1/files/p/b.md", params={"containerTag": tag}).content == b"three"
    feed = client.get("/v1/changes", params={"containerTag": tag}).json()["changes"]
    assert [(c["kind"], c["path"]) for c in feed] == [("put", "/p/a.md"), ("move", "/p/b.md"), ("put", "/p/b.md")]
    assert client.delete(f"/v3/documents/{name}").status_code == 204
    assert client.get(f"/v3/documents/{name}").status_code == 404
    last = client.get("/v1/changes", params={"containerTag": tag}).json()["changes"][-1]
    assert (last["kind"], last["path"]) == ("delete", "/p/b.md")


def test_lists_are_sorted_paged_and_filtered(client: httpx.Client, tag: str) -> None:
    documents = [
        {"content": f"text {n}", "filepath": f"/l/{n}.md", "metadata": {"n": n, "tags": ["even" if n % 2 == 0 else "odd"]}}
        for n in range(5)
    ]
    batch = client.post("/v3/documents/batch", json={"documents": documents, "containerTag": tag}).json()
    assert (batch["success"], batch["failed"]) == (5, 0)
    put(client, tag, "/other.md")

    def listed(**options: Any) -> tuple[list[str], dict[str, int]]:
        answer = client.post("/v3/documents/list", json={"containerTags": [tag], "order": "asc", **options}).json()
        answer["pagination"].pop("nextCursor")
        return [d["filepath"] for d in answer["memories"]], answer["pagination"]

    assert listed(filepath="/l/", limit=2, page=3) == (
        ["/l/4.md"],
        {"currentPage": 3, "limit": 2, "totalItems": 5, "totalPages": 3},
    )
    assert listed(filepath="/other.md")[0] == ["/other.md"]
    odd = {"AND": [{"key": "tags", "value": "ODD", "filterType": "array_contains", "ignoreCase": True}]}
    assert listed(filters=odd)[0] == ["/l/1.md", "/l/3.md"]
    wide = {"OR": [{"key": "n", "value": "3", "filterType": "numeric", "numericOperator": ">"}, {"key": "n", "value": "0"}]}
    assert listed(filters=wide)[0] == ["/l/0.md", "/l/4.md"]
    assert client.post("/v3/documents/list", json={"filters": {"AND": [{"value": 1}]}}).status_code == 400
    with_text = client.post("/v3/documents/list", json={"containerTags": [tag], "filepath": "/l/1.md", "includeContent": True})
    assert with_text.json()["memories"][0]["content"] == "text 1"
    gone = client.request("DELETE", "/v3/documents/bulk", json={"containerTags": [tag], "filepath": "/l/"}).json()
    assert (gone["success"], gone["deletedCount"]) == (True, 5)
    assert listed()[0] == ["/other.md"]


def test_bulk_delete_by_ids_names_what_was_not_there(client: httpx.Client, tag: str) -> None:
    name = client.post("/v3/documents", json={"content": "x", "containerTag": tag}).json()["id"]
    answer = client.request("DELETE", "/v3/documents/bulk", json={"ids": [name, "nothing"]}).json()
    assert (answer["success"], answer["deletedCount"], [e["id"] for e in answer["errors"]]) == (False, 1, ["nothing"])
    assert client.request("DELETE", "/v3/documents/bulk", json={}).status_code == 400


def test_a_file_upload_keeps_its_bytes(client: httpx.Client, tag: str) -> None:
    content = b"%PDF-1.7\x00\xff" * 100_000
    answer = client.post(
        "/v3/documents/file",
        files={"file": ("report.pdf", content, "application/pdf")},
        data={"containerTag": tag, "filepath": "/up/report.pdf", "metadata": '{"a": [1]}', "customId": f"u-{tag}"},
    )
    assert answer.status_code == 200, answer.text
    assert client.get("/v1/files/up/report.pdf", params={"containerTag": tag}).content == content
    assert client.get(f"/v3/documents/u-{tag}").json()["metadata"] == {"a": [1]}
    wrong = client.post("/v3/documents/file", files={"file": ("a", b"x")}, data={"containerTag": tag, "metadata": "{"})
    assert wrong.status_code == 400
    assert client.post("/v3/documents/file", data={"containerTag": tag}).status_code == 400


@pytest.mark.parametrize("metadata", ["[1]", '{"a": NaN}', '{"a": "\\ud800"}'])
def test_metadata_that_is_no_json_object_is_refused(client: httpx.Client, tag: str, metadata: str) -> None:
    body = f'{{"content": "x", "containerTag": "{tag}", "metadata": {metadata}}}'
    answer = client.post("/v3/documents", content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code == 400, answer.text


def test_v3_search_groups_passages_by_document(client: httpx.Client, tag: str) -> None:
    put(client, tag, "/a.md", b"# Rivers\n\nThe Danube flows through Vienna.\n")
    client.post(
        "/v3/documents", json={"content": "The Danube delta is in Romania.", "containerTag": tag, "metadata": {"k": "v"}}
    )
    search(client, tag, "Danube")
    found = client.post("/v3/search", json={"q": "Danube river", "containerTags": [tag]}).json()
    assert {r["filepath"] for r in found["results"]} == {"/a.md", None}
    assert all(r["chunks"][0]["isRelevant"] for r in found["results"])
    filtered = client.post(
        "/v3/search", json={"q": "Danube river", "containerTags": [tag], "filters": {"AND": [{"key": "k", "value": "v"}]}}
    ).json()
    assert [r["metadata"] for r in filtered["results"]] == [{"k": "v"}]


def test_a_document_with_many_good_passages_does_not_hide_the_others(client: httpx.Client, tag: str) -> None:
    filler = "The harbour master wrote every evening what came in and what went out, in his own hand. " * 9
    page = "# Day {day}\n\nThe violin repair of day {day}: violin repair, violin repair.\n\n{filler}\n\n"
    put(client, tag, "/log.md", "".join(page.format(day=day, filler=filler) for day in range(180)).encode())
    for name in ("Ada", "Boris", "Carla", "Dmitri", "Esra", "Finn", "Gudrun", "Hugo", "Ines"):
        put(client, tag, f"/{name}.md", f"{name} asked what a violin repair costs. {filler}\n".encode())
    done(client, tag)
    body = {"containerTags": [tag], "q": "violin repair", "limit": 10}
    found = client.post("/v3/search", json=body).json()["results"]
    assert len({one["documentId"] for one in found}) == 10
    assert {one["path"] for one in search(client, tag, "violin repair", filepath="/log.md")["results"]} == {"/log.md"}


def test_settings_are_merged_and_memory_paths_checked(client: httpx.Client, tag: str) -> None:
    put(client, tag, "/a")
    changed = client.patch(f"/v3/container-tags/{tag}", json={"memoryFilesystemPaths": ["/facts/"], "color": "red"}).json()
    assert (changed["memoryFilesystemPaths"], changed["color"]) == (["/facts/"], "red")
    assert client.get(f"/v3/container-tags/{tag}").json()["containerTag"] == tag
    assert client.patch(f"/v3/container-tags/{tag}", json={"memoryFilesystemPaths": ["x"]}).status_code == 400


def test_processing_counts_down_to_nothing(client: httpx.Client, tag: str) -> None:
    put(client, tag, "/a.md", b"words")
    done(client, tag)
    answer = client.get("/v3/documents/processing", params={"containerTag": tag}).json()
    assert (answer["documents"], answer["totalCount"]) == ([], 0)


def test_several_places_are_one_search_and_nothing_beside_them_is_found(client: httpx.Client, tag: str) -> None:
    for path in ("/a/one.md", "/a/two.md", "/ab/three.md", "/b/four.md", "/memory/five.md"):
        put(client, tag, path, f"The walnut tree of {path} was planted in May. I like walnuts.\n".encode())
    done(client, tag)
    for places, expected in (
        (["/a/two.md", "/b"], {"/a/two.md", "/b/four.md"}),
        (["/a/", "/nothing"], {"/a/one.md", "/a/two.md"}),
        (["/a/one.md", "/a/one.md"], {"/a/one.md"}),
    ):
        for mode in ("semantic", "literal"):
            found = search(client, tag, "walnut", filepaths=places, mode=mode)["results"]
            assert {hit["path"] for hit in found} == expected, (places, mode)


def test_exact_lines_come_as_grep_s_options_say(client: httpx.Client, tag: str) -> None:
    put(client, tag, "/a.txt", b"one\nwalnut, walnut\nthree\nfour\nwalnut\n")
    put(client, tag, "/b.txt", b"nothing here\n")

    def lines(**options: Any) -> list[tuple[int, int, str]]:
        found = search(client, tag, "walnut", filepath="/a.txt", mode="literal", **options)["results"]
        return [(hit["startLine"], hit["endLine"], hit["text"]) for hit in found]

    assert lines(invert=True, maxCount=2) == [(1, 1, "one"), (3, 3, "three")]
    assert lines(onlyMatching=True) == [(2, 2, "walnut"), (2, 2, "walnut"), (5, 5, "walnut")]
    assert lines(before=1) == [(1, 2, "one\nwalnut, walnut"), (4, 5, "four\nwalnut")]
    assert lines(before=1, after=1) == [(1, 5, "one\nwalnut, walnut\nthree\nfour\nwalnut")]
    counted = search(client, tag, "walnut", mode="literal", count=True)
    assert counted["counts"] == [{"path": "/a.txt", "count": 2}, {"path": "/b.txt", "count": 0}]
    refused = client.post("/v1/search", json={"containerTag": tag, "q": "x", "invert": True})
    assert refused.status_code == 400
    assert refused.json()["error"] == "body: invert: only with mode literal or regex"


@pytest.mark.promise("real.weak")
def test_the_nearest_are_shown_as_weak_when_nothing_is_sure(client: httpx.Client, tag: str) -> None:
    """Somebody who typed a question wants to see what is nearest; who asked for a threshold wants silence."""
    rooms = ("harbour", "orchard", "clinic", "theatre", "school", "quarry", "mill", "forge")
    for number in range(64):
        text = f"The {rooms[number % 8]} keeps its ledger number {number} in the {rooms[number // 8]} behind the blue door.\n"
        client.put(f"/v1/files/n{number}.md", params={"containerTag": tag}, content=text.encode())
    body = {"q": "who wrote the music that is played behind the door", "containerTag": tag, "waitSeq": 64, "waitMs": 20_000}
    silent = client.post("/v1/search", json={**body, "threshold": 0.9}).json()
    assert silent["results"] == []
    shown = client.post("/v1/search", json={**body, "threshold": 0.9, "nearest": 3}).json()
    assert [hit["weak"] for hit in shown["results"]] == [True] * 3
    assert "nearest" in shown["note"]
    sure = client.post("/v1/search", json={**body, "q": "ledger number 17", "nearest": 3}).json()["results"]
    assert sure
    assert not any(hit.get("weak") for hit in sure)
