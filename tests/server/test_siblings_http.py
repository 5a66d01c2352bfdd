"""Files that are no text over HTTP: uploaded, read, searched, and their texts told to those who may read the files."""

from __future__ import annotations

import time
from typing import Any

import httpx
import pytest

from memdir_bench.ingest import documents
from memdir_bench.ingest.phrases import PHRASE
from tests.servers import ON_BOTH

pytestmark = ON_BOTH

WAIT_S = 30.0


def read(client: httpx.Client, tag: str, count: int) -> list[dict[str, Any]]:
    """The siblings of a container, when there are that many; by the feed's own waiting."""
    deadline_s = time.monotonic() + WAIT_S
    known = 0
    while time.monotonic() < deadline_s:
        page = client.get("/v1/siblings", params={"containerTag": tag}).json()
        if len(page["siblings"]) >= count:
            return list(page["siblings"])
        known = client.get(
            "/v1/changes", params={"containerTag": tag, "since": 1_000, "siblingsSince": known, "wait": 5}
        ).json()["siblingsVersion"]
    raise AssertionError(f"{count} texts did not come: {page}")


def put(client: httpx.Client, tag: str, path: str, content: bytes) -> None:
    client.put(f"/v1/files{path}", params={"containerTag": tag}, content=content).raise_for_status()


def test_an_uploaded_pdf_is_searched_and_shown_by_its_text(client: httpx.Client, tag: str) -> None:
    answer = client.post(
        "/v3/documents/file", data={"containerTag": tag, "filepath": "/river.pdf"}, files={"file": ("r.pdf", documents.pdf())}
    )
    assert answer.status_code in (200, 201), answer.text
    document_id = answer.json()["id"]
    (sibling,) = read(client, tag, 1)
    assert (sibling["path"], sibling["kind"]) == ("/river.pdf", "pdf")
    assert f"## Page 2\n\n{PHRASE}." in sibling["text"]
    text = client.get("/v1/siblings/text", params={"containerTag": tag, "contentHash": sibling["contentHash"]})
    assert (text.text, text.headers["content-type"]) == (sibling["text"], "text/markdown; charset=utf-8")
    assert len(text.content) == sibling["sizeBytes"]
    document = client.get(f"/v3/documents/{document_id}").json()
    assert (document["type"], document["title"]) == ("pdf", "Birds of the river")
    assert document["content"].endswith(f"## Page 2\n\n{PHRASE}.\n")
    assert "sha256" not in document["content"]
    hits = client.post(
        "/v1/search", json={"containerTag": tag, "q": "what does the heron do on Tuesday", "waitMs": 5000}
    ).json()
    hit = hits["results"][0]
    assert (hit["path"], hit["sibling"], hit["place"]) == ("/river.pdf", "/river.pdf.pdf-transcription.md", "Page 2")
    lines = ('---\nsource: "river.pdf"\n' + sibling["text"]).split("\n")
    client.post(
        "/v1/files:move", json={"containerTag": tag, "fromPath": "/river.pdf", "toPath": "/a much longer name than before.pdf"}
    ).raise_for_status()
    around = client.post(
        "/v1/search", json={"containerTag": tag, "q": "what does the heron do on Tuesday", "context": 2}
    ).json()["results"][0]
    assert (around["path"], around["text"].split("\n")[-1]) == ("/a much longer name than before.pdf", f"{PHRASE}.")
    client.post(
        "/v1/files:move", json={"containerTag": tag, "fromPath": "/a much longer name than before.pdf", "toPath": "/river.pdf"}
    ).raise_for_status()
    assert hit["text"] in "\n".join(lines[hit["startLine"] - 1 : hit["endLine"]])
    assert client.get("/v1/files/river.pdf", params={"containerTag": tag}).content.startswith(b"%PDF-")


@pytest.mark.promise("grep.literal")
def test_an_exact_search_looks_into_the_texts_after_the_files(client: httpx.Client, tag: str) -> None:
    put(client, tag, "/a/river.pdf", documents.pdf())
    put(client, tag, "/a/letter.docx", documents.docx())
    put(client, tag, "/a/broken.pdf", b"%PDF-1.7 and nothing more: \0" + PHRASE.encode())
    put(client, tag, "/z.md", f"# Seen\n\n{PHRASE}\n".encode())
    put(client, tag, "/b/river.pdf", documents.pdf())
    put(client, tag, long := f"/c/{'n' * 251}.pdf", documents.pdf())
    read(client, tag, 5)

    def found(**options: Any) -> dict[str, Any]:
        body = {"containerTag": tag, "mode": "literal", "q": PHRASE, "limit": 100, **options}
        answer: dict[str, Any] = client.post("/v1/search", json=body).raise_for_status().json()
        return answer

    whole = found()
    office, pdf, other = "/a/letter.docx.office-transcription.md", *(f"/{at}/river.pdf.pdf-transcription.md" for at in "ab")
    assert [(hit["path"], hit.get("sibling")) for hit in whole["results"]] == [
        ("/z.md", None), ("/a/letter.docx", office), ("/a/river.pdf", pdf), ("/b/river.pdf", other),
        (long, None),
    ]  # fmt: skip
    assert whole["binary"] == ["/a/broken.pdf"], "what could not be read has an error beside it, and no text"
    hit = whole["results"][2]
    (sibling,) = [one for one in read(client, tag, 5) if one["path"] == "/a/river.pdf"]
    text = '---\nsource: "river.pdf"\n' + sibling["text"]
    assert (hit["place"], PHRASE in text.split("\n")[hit["startLine"] - 1]) == ("Page 2", True)
    assert hit["endByte"] - hit["startByte"] == len(PHRASE)
    assert found(mode="regex", q="^## Page [0-9]$", filepath="/b/")["results"][-1]["place"] == "Page 2"
    assert [hit["path"] for hit in found(filepath="/a/river.pdf")["results"]] == ["/a/river.pdf"]
    assert {one["path"]: one["count"] for one in found(count=True, filepath="/a/")["counts"]} == {
        "/a/broken.pdf": 1, "/a/letter.docx": 0, "/a/river.pdf": 0, office: 1, pdf: 1,
    }  # fmt: skip
    assert [hit["path"] for hit in found(texts=False)["results"]] == ["/z.md"]
    assert "\n\n" in found(context=2, filepath="/a/river.pdf")["results"][0]["text"]
    assert len(found(limit=2)["results"]) == 2
    assert client.post("/v1/search", json={"containerTag": tag, "q": "x", "texts": False}).status_code == 400


@pytest.mark.parametrize("content_hash", ["", "zz", "A" * 64])
def test_what_is_no_hash_is_refused(client: httpx.Client, tag: str, content_hash: str) -> None:
    put(client, tag, "/a.md", b"text")
    answer = client.get("/v1/siblings/text", params={"containerTag": tag, "contentHash": content_hash})
    assert answer.status_code in (400, 422)
