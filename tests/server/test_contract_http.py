"""The table of calls in the wire contract, row by row: every field it names, the defaults, the statuses."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

DOCUMENT = [
    "id",
    "customId",
    "filepath",
    "title",
    "summary",
    "content",
    "status",
    "type",
    "containerTags",
    "metadata",
    "url",
    "createdAt",
    "updatedAt",
    "connectionId",
    "dreamingStatus",
    "latestRevision",
    "ogImage",
    "raw",
    "source",
    "taskType",
    "memories",
]
MEMORY = [
    "id",
    "memory",
    "metadata",
    "version",
    "isLatest",
    "isForgotten",
    "isStatic",
    "isInference",
    "parentMemoryId",
    "rootMemoryId",
    "sourceCount",
    "createdAt",
    "updatedAt",
]
STATUSES = ("queued", "extracting", "chunking", "embedding", "indexing", "done", "failed")


def sent(client: httpx.Client, method: str, path: str, status: int = 200, **options: Any) -> Any:
    answer = client.request(method, path, **options)
    assert answer.status_code == status, (method, path, answer.text)
    if status == 204:
        assert answer.content == b""
        return None
    return answer.json()


def has(answer: dict[str, Any], *fields: str) -> dict[str, Any]:
    assert set(fields) <= set(answer), set(fields) - set(answer)
    return answer


@pytest.mark.promise("api.documented", "api.custom-ids")
def test_every_call_on_documents_answers_as_documented(client: httpx.Client, tag: str) -> None:
    session = has(sent(client, "GET", "/v3/session"), "org", "user", "plan")
    has(session["org"], "id", "name")
    has(session["user"], "id", "name", "email")
    body = {"content": "# T\n\nWords.", "containerTag": tag, "filepath": "/a.md", "customId": tag, "metadata": {"n": 1}}
    added = has(sent(client, "POST", "/v3/documents", json=body), "id", "status")
    assert added["status"] in STATUSES
    batch = sent(client, "POST", "/v3/documents/batch", json={"contents": ["one", "two"], "containerTag": tag})
    assert (batch["success"], batch["failed"]) == (2, 0)
    for item in batch["results"]:
        has(item, "id", "status")
    form = {"containerTag": tag, "filepath": "/f.bin", "customId": f"{tag}-f", "metadata": json.dumps({"n": 2})}
    upload = sent(client, "POST", "/v3/documents/file", files={"file": b"\x00\x01"}, data=form)
    has(upload, "id", "status")
    for name in (added["id"], tag):
        document = has(sent(client, "GET", f"/v3/documents/{name}"), *DOCUMENT)
        assert (document["id"], document["customId"], document["containerTags"]) == (added["id"], tag, [tag])
        assert (document["taskType"], document["type"], document["connectionId"]) == ("memory", "text", None)
        assert document["createdAt"][-5:-4] == "."
        assert document["createdAt"].endswith("Z")
    has(sent(client, "PATCH", f"/v3/documents/{tag}", json={"metadata": {"n": 3}}), "id", "status")
    listed = sent(client, "POST", "/v3/documents/list", json={"containerTags": [tag]})
    assert listed["pagination"] | {"nextCursor": None} == {
        "currentPage": 1, "limit": 50, "totalItems": 4, "totalPages": 1, "nextCursor": None,
    }  # fmt: skip
    made = [entry["createdAt"] for entry in listed["memories"]]
    assert made == sorted(made, reverse=True), "newest first, unless asked otherwise"
    assert all(entry["content"] is None for entry in listed["memories"])
    prefix = sent(client, "POST", "/v3/documents/list", json={"containerTags": [tag], "filepath": "/", "includeContent": True})
    assert {entry["filepath"]: entry["content"] for entry in prefix["memories"]} == {"/a.md": "# T\n\nWords.", "/f.bin": None}
    has(sent(client, "GET", "/v3/documents/processing", params={"containerTag": tag}), "documents", "totalCount")
    gone = sent(client, "DELETE", "/v3/documents/bulk", json={"ids": [f"{tag}-f"]})
    assert (gone["success"], gone["deletedCount"]) == (True, 1)
    sent(client, "DELETE", f"/v3/documents/{tag}", 204)
    for method in ("GET", "DELETE"):
        assert list(sent(client, method, f"/v3/documents/{tag}", 404)) == ["error"]
    settings = sent(client, "GET", f"/v3/container-tags/{tag}")
    assert settings["memoryFilesystemPaths"] == ["/memory/", "/user/", "/memory.md", "/user.md"]
    changed = sent(client, "PATCH", f"/v3/container-tags/{tag}", json={"memoryFilesystemPaths": ["/m/"], "colour": "blue"})
    assert (changed["memoryFilesystemPaths"], changed["colour"]) == (["/m/"], "blue")
    assert tag in [entry["containerTag"] for entry in sent(client, "GET", "/v3/container-tags/list")]
    sent(client, "DELETE", f"/v3/container-tags/{tag}", 204)
    sent(client, "GET", f"/v3/container-tags/{tag}", 404)


@pytest.mark.promise("api.documented")
def test_every_call_on_memories_and_search_answers_as_documented(client: httpx.Client, tag: str) -> None:
    where = {"containerTag": tag}
    statements = [{"content": "Ida prefers tea.", "isStatic": True, "metadata": {"n": 1}}]
    created = sent(client, "POST", "/v4/memories", 201, json={**where, "memories": statements})
    assert created["documentId"] is None
    entry = has(created["memories"][0], "id", "memory", "isStatic", "createdAt", "forgetAfter", "forgetReason", "metadata")
    listed = sent(client, "POST", "/v4/memories/list", json=where)
    has(listed["pagination"], "currentPage", "limit", "totalItems", "totalPages")
    assert has(listed["memoryEntries"][0], *MEMORY, "history")["rootMemoryId"] == entry["id"]
    found = has(sent(client, "POST", "/v4/search", json={**where, "q": "tea"}), "results", "timing", "total")
    result = has(found["results"][0], "id", "memory", "similarity", "metadata", "updatedAt", "version", "rootMemoryId")
    assert (result["memory"], result["metadata"]) == ("Ida prefers tea.", {"n": 1})
    assert 0 <= result["similarity"] <= 1
    profile = sent(client, "POST", "/v4/profile", json={**where, "q": "tea"})
    assert profile["profile"] == {"static": ["Ida prefers tea."], "dynamic": []}
    has(profile["searchResults"], "results", "timing", "total")
    assert "searchResults" not in sent(client, "POST", "/v4/profile", json=where)
    changed = sent(client, "PATCH", "/v4/memories", json={**where, "id": entry["id"], "newContent": "Ida prefers milk."})
    has(changed, "id", "memory", "version", "parentMemoryId", "rootMemoryId", "createdAt", "forgetAfter", "forgetReason")
    forgotten = sent(client, "DELETE", "/v4/memories", json={**where, "id": changed["id"]})
    assert forgotten == {"id": changed["id"], "forgotten": True}
    messages = [{"role": "user", "content": "I sail."}]
    talk = sent(client, "POST", "/v4/conversations", json={"conversationId": tag, "messages": messages, "containerTags": [tag]})
    assert (talk["conversationId"], talk["status"] in STATUSES) == (tag, True)
    has(sent(client, "POST", "/v3/search", json={"q": "sail", "containerTags": [tag]}), "results", "timing", "total")


@pytest.mark.promise("api.documented")
@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v3/documents", {}),
        ("/v3/documents", {"content": "x", "taskType": "other"}),
        ("/v3/documents", {"content": "x", "filepath": "relative"}),
        ("/v3/documents/batch", {}),
        ("/v3/documents/list", {"limit": 201}),
        ("/v3/documents/list", {"sort": "title"}),
        ("/v3/search", {"q": ""}),
        ("/v3/search", {"q": "x", "limit": 101}),
        ("/v4/search", {"q": "x", "searchMode": "all"}),
        ("/v4/search", {"q": "x", "threshold": 2}),
        ("/v4/profile", {}),
        ("/v4/memories", {"memories": []}),
        ("/v4/memories", {"memories": [{"content": "x"}] * 101}),
        ("/v4/memories", {"memories": [{"content": "x", "forgetAfter": "soon"}]}),
        ("/v4/conversations", {"conversationId": "", "messages": [{"role": "user", "content": "x"}]}),
        ("/v4/conversations", {"conversationId": "c", "messages": []}),
    ],
)
def test_a_bad_request_is_answered_with_what_is_wrong(client: httpx.Client, path: str, body: dict[str, Any]) -> None:
    answer = sent(client, "POST", path, 400, json=body)
    assert len(answer["error"]) > 10
