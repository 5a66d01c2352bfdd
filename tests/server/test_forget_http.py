"""Forgetting over HTTP, on both engines: what goes, what stays, and whether it is found again."""

from __future__ import annotations

import io
import zipfile
from typing import Any

import httpx
import pytest

from tests.servers import ON_BOTH, ServerProcess

from .conftest import answered
from .test_search_http import done

pytestmark = ON_BOTH

TEXTS = {
    "/memory/me.md": "# Me\n\n- My partner is Quibblefrost Vane\n- I live in Porto\n",
    "/memory/her.md": "Quibblefrost Vane works at Tessera. She lives in Ghent. Is it far?\n",
    "/work/plan.txt": "Ask quibblefrost\nvane about it.\nThen go.\n",
    "/only.md": "---\ntitle: x\n---\nQuibblefrost Vane.\n",
    "/other.md": "Quibble and frost, Vane.\n",
}


def put(client: httpx.Client, tag: str, path: str, content: bytes) -> None:
    client.put(f"/v1/files{path}", params={"containerTag": tag}, content=content).raise_for_status()


def forget(client: httpx.Client, tag: str, **wanted: Any) -> dict[str, Any]:
    answer = client.post("/v1/forget", json={"containerTag": tag, "dryRun": False, **wanted})
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def verified(client: httpx.Client, receipt: dict[str, Any]) -> list[str]:
    body = {name: receipt[name] for name in ("containerTag", "key", "windows")}
    answer = answered(
        lambda: client.post("/v1/forget/verify", json=body).json(),
        lambda said: not said["waiting"] and not said["building"] and said["logEmptied"],
        120.0,
        every_s=0.1,
    )
    return list(answer["found"])


def text_at(client: httpx.Client, tag: str, path: str) -> str | None:
    answer = client.get(f"/v1/files{path}", params={"containerTag": tag})
    return answer.text if answer.status_code == 200 else None


@pytest.mark.promise("forget.nowhere")
def test_a_subject_goes_from_files_facts_history_and_search(server: ServerProcess, client: httpx.Client, tag: str) -> None:
    del server
    for path, text in TEXTS.items():
        put(client, tag, path, text.encode())
    put(client, tag, "/deleted.md", b"Quibblefrost Vane was here.\n")
    put(client, tag, "/edited.md", b"Quibblefrost Vane was here.\n")
    put(client, tag, "/edited.md", b"Nobody was here.\n")
    client.delete("/v1/files/deleted.md", params={"containerTag": tag}).raise_for_status()
    done(client, tag)
    plan = client.post("/v1/forget", json={"containerTag": tag, "subject": "quibblefrost vane"}).json()
    assert plan["receipt"] is None
    assert text_at(client, tag, "/memory/me.md") == TEXTS["/memory/me.md"], "a dry run changes nothing"
    answer = forget(client, tag, subject="quibblefrost vane")
    assert [(one["path"], one["line"], one["text"]) for one in answer["lines"]] == [
        ("/memory/her.md", 1, "Quibblefrost Vane works at Tessera. She lives in Ghent."),
        ("/memory/me.md", 3, "- My partner is Quibblefrost Vane"),
        ("/work/plan.txt", 1, "Ask quibblefrost\nvane about it."),
    ]
    assert answer["files"] == [{"path": "/only.md", "kept": False}]
    assert answer["former"] == 2
    assert "Quibblefrost Vane lives in Ghent." in answer["facts"]
    assert "ibblefrost" not in str(answer["receipt"]), "a receipt says nothing of it"
    assert verified(client, answer["receipt"]) == []
    left = {path: text_at(client, tag, path) for path in TEXTS}
    assert left == {
        "/memory/me.md": "# Me\n\n- I live in Porto\n", "/memory/her.md": "Is it far?\n",
        "/work/plan.txt": "Then go.\n", "/only.md": None, "/other.md": TEXTS["/other.md"],
    }  # fmt: skip
    hits = client.post("/v1/search", json={"containerTag": tag, "q": "Quibblefrost Vane", "mode": "literal"}).json()["results"]
    assert hits == []
    facts = client.get("/v1/facts", params={"containerTag": tag}).json()["facts"]
    assert [fact["text"] for fact in facts] == ["I live in Porto"]
    assert forget(client, tag, subject="quibblefrost vane")["receipt"] is None, "a second time there is nothing"
    put(client, tag, "/back.md", b"From a backup: Quibblefrost Vane.\n")
    done(client, tag)
    assert set(verified(client, answer["receipt"])) == {"file /back.md", "passage of /back.md"}


def test_files_without_lines_go_only_when_that_is_asked_for(server: ServerProcess, client: httpx.Client, tag: str) -> None:
    del server
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        archive.writestr("note.txt", "The code word is Marbelwick.\n" * 3)
    put(client, tag, "/a.zip", data.getvalue())
    put(client, tag, "/raw.bin", b"\0\1Marbelwick\0")
    done(client, tag)
    answer = forget(client, tag, text="marbelwick")
    assert [(one["path"], one["kept"]) for one in answer["files"]] == [("/a.zip", True), ("/raw.bin", True)]
    assert answer["receipt"] is None
    answer = forget(client, tag, text="marbelwick", wholeFiles=True)
    assert [(one["path"], one["kept"]) for one in answer["files"]] == [("/a.zip", False), ("/raw.bin", False)]
    assert verified(client, answer["receipt"]) == []


def test_a_path_goes_with_its_history(server: ServerProcess, client: httpx.Client, tag: str) -> None:
    del server
    put(client, tag, "/old/a.md", b"We sold the green house in spring.\n")
    put(client, tag, "/old/b.md", b"x\n")
    put(client, tag, "/older.md", b"y\n")
    client.delete("/v1/files/old/b.md", params={"containerTag": tag}).raise_for_status()
    answer = forget(client, tag, path="/old")
    assert [one["path"] for one in answer["files"]] == ["/old/a.md"]
    assert answer["former"] == 1
    assert verified(client, answer["receipt"]) == []
    assert text_at(client, tag, "/older.md") == "y\n"
    assert client.get("/v1/versions", params={"containerTag": tag, "path": "/old/b.md"}).json().get("versions", []) == []
    put(client, tag, "/copy.md", b"We sold the green house in spring.\n")
    assert "file /copy.md" in verified(client, answer["receipt"])


def test_memories_of_agents_go_too(server: ServerProcess, client: httpx.Client, tag: str) -> None:
    del server
    for text in ("The staging password hint is Marbelwick.", "Deploys run on Fridays."):
        body = {"containerTag": tag, "content": text, "idempotencyKey": text[:4]}
        client.post("/v1/agents/memories", json=body).raise_for_status()
    done(client, tag)
    answer = forget(client, tag, text="Marbelwick")
    assert len(answer["files"]) == 1, "nothing but front matter would be left"
    assert verified(client, answer["receipt"]) == []
    memories = client.get("/v1/agents/memories", params={"containerTag": tag}).json()["memories"]
    assert [one["content"] for one in memories] == ["Deploys run on Fridays."]


def test_who_says_me_means_facts_and_not_the_word(server: ServerProcess, client: httpx.Client, tag: str) -> None:
    del server
    put(client, tag, "/memory/me.md", b"- I live in Porto\n- Project Heron uses MongoDB\n")
    put(client, tag, "/letter.md", b"Tell me when you come.\n")
    done(client, tag)
    answer = forget(client, tag, subject="me")
    assert [one["text"] for one in answer["lines"]] == ["- I live in Porto"]
    assert text_at(client, tag, "/letter.md") == "Tell me when you come.\n"
    assert text_at(client, tag, "/memory/me.md") == "- Project Heron uses MongoDB\n"


@pytest.mark.parametrize(
    "receipt", [{"key": "zz", "windows": {}}, {"key": "00" * 32, "windows": {"9": []}}, {"key": "00" * 32}]
)
def test_what_is_no_receipt_is_refused(server: ServerProcess, client: httpx.Client, tag: str, receipt: dict[str, Any]) -> None:
    del server
    put(client, tag, "/a.md", b"x\n")
    assert client.post("/v1/forget/verify", json={"containerTag": tag, **receipt}).status_code in (400, 422)


@pytest.mark.parametrize(
    "wanted", [{}, {"text": "ab", "path": "/x"}, {"text": "!!"}, {"text": "a"}, {"path": "/../x"}, {"path": "/nothing"}]
)
def test_what_is_not_clear_is_refused(server: ServerProcess, client: httpx.Client, tag: str, wanted: dict[str, str]) -> None:
    del server
    put(client, tag, "/a.md", b"x\n")
    answer = client.post("/v1/forget", json={"containerTag": tag, "dryRun": False, **wanted})
    assert answer.status_code in (400, 404, 422), answer.text
