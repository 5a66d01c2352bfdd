"""Documents that are addresses: the page is fetched and read, from nowhere inside the house unless that is wanted, and only
when it was posted as one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest

from memdir_bench.ingest import documents
from memdir_bench.ingest.phrases import PHRASE
from tests.research.endpoint import served
from tests.server.conftest import until
from tests.servers import start

PAGE = f"""<html lang="en"><head><title>Birds of the river</title></head><body>
<nav><a href="/">Home</a></nav><main><h1>Birds of the river</h1><p>{PHRASE}</p></main></body></html>"""
PAGES: Mapping[str, tuple[int, Mapping[str, str], bytes]] = {
    "/page": (200, {"Content-Type": "text/html; charset=utf-8"}, PAGE.encode()),
    "/moved": (302, {"Location": "/page"}, b""),
    "/river.pdf": (200, {"Content-Type": "application/pdf"}, documents.pdf()),
    "/notes.md": (200, {"Content-Type": "text/markdown"}, f"# Notes\n\n{PHRASE}\n".encode()),
    "/program": (200, {"Content-Type": "application/octet-stream"}, b"\x7fELF\x02\x01\x01\x00" + bytes(400)),
}


@pytest.fixture(scope="module")
def web() -> Iterator[str]:
    with served(lambda path, _: PAGES.get(path, (404, {}, b"no"))) as address:
        yield address


@pytest.fixture
def server_that(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], httpx.Client]]:
    """A client of a server whose MEMDIR_FETCH_URLS is so."""
    with ExitStack() as stack:

        def started(fetch: str) -> httpx.Client:
            monkeypatch.setenv("MEMDIR_FETCH_URLS", fetch)
            server = start(tmp_path / "home", "--port", "0")
            stack.callback(server.stop)
            return stack.enter_context(server.client())

        yield started


def found_by_words(client: httpx.Client, text: str) -> dict[str, Any]:
    """Files of the container that hold a text, and what the server has read of them."""
    found: dict[str, Any] = client.post("/v1/search", json={"q": text, "containerTag": "web", "threshold": 0.0}).json()
    return found


def content_of(client: httpx.Client, name: str) -> tuple[str, str | None]:
    found = client.get(f"/v3/documents/{name}").json()
    return found["status"], found["content"]


def read(client: httpx.Client, content: str) -> dict[str, Any]:
    """A posted document when it is through the pipeline."""
    name = client.post("/v3/documents", json={"content": content, "containerTag": "web"}).json()["id"]
    found: dict[str, Any] = {}

    def is_through() -> bool:
        found.update(client.get(f"/v3/documents/{name}").json())
        return found["status"] in ("done", "failed")

    until(is_through)
    return found


@pytest.mark.promise("extract.addresses")
def test_the_page_of_an_address_is_read_whatever_it_is_and_found(web: str, server_that: Callable[[str], httpx.Client]) -> None:
    client = server_that("private")
    for path in ("/page", "/moved", "/river.pdf", "/notes.md"):
        found = read(client, web + path)
        assert (found["status"], found["type"], found["url"]) == ("done", "webpage", web + path), found
        assert PHRASE in " ".join(found["content"].split())
        assert "Home" not in found["content"]
        assert found["title"] == ("Notes" if path == "/notes.md" else "Birds of the river")
    found = client.post("/v3/search", json={"q": "when does the heron feed", "containerTags": ["web"]}).json()
    assert PHRASE in found["results"][0]["chunks"][0]["content"]
    for path, reason in (("/gone", "HTTP 404"), ("/program", "Nothing that can be read")):
        found = read(client, web + path)
        assert (found["status"], reason in found["error"]) == ("failed", True), found


@pytest.mark.promise("extract.addresses")
def test_a_page_is_fetched_again_when_its_address_is_posted_again(server_that: Callable[[str], httpx.Client]) -> None:
    said = {"/news": "The ferry runs every hour."}

    def page(path: str, _: object) -> tuple[int, dict[str, str], bytes]:
        return (200, {"Content-Type": "text/plain"}, said[path].encode()) if path in said else (404, {}, b"no")

    with served(page) as address:
        client = server_that("private")
        posted = {"content": f"{address}/news", "containerTag": "web"}
        first = read(client, posted["content"])["id"]
        named = client.post("/v3/documents", json=posted | {"customId": "news"}).json()["id"]
        assert named != first
        named_post = posted | {"customId": "news"}
        for way, body in (("", named_post), ("/batch", {"documents": [named_post]})):
            said["/news"] = f"{said['/news']} In winter it rests."
            answer = client.post(f"/v3/documents{way}", json=body).json()
            assert (answer["results"][0] if way else answer)["status"] == "queued"
            until(lambda: all(content_of(client, name) == ("done", said["/news"]) for name in (first, named)))
        hits = client.post("/v3/search", json={"q": "when does the ferry rest", "containerTags": ["web"]}).json()["results"]
        assert "In winter it rests. In winter it rests." in hits[0]["chunks"][0]["content"]
        del said["/news"]
        client.post("/v3/documents", json=named_post)
        until(lambda: content_of(client, named)[0] == "failed")


@pytest.mark.promise("extract.addresses")
def test_what_is_not_posted_as_an_address_is_not_fetched(web: str, server_that: Callable[[str], httpx.Client]) -> None:
    client = server_that("private")
    assert read(client, f"See {web}/page for more.")["content"].startswith("See ")
    client.put("/v1/files/link.txt", params={"containerTag": "web"}, content=f"{web}/page".encode())
    until(lambda: found_by_words(client, "page")["results"] != [])
    assert client.get("/v1/files/link.txt", params={"containerTag": "web"}).text == f"{web}/page"
    assert [hit["text"] for hit in found_by_words(client, PHRASE)["results"]] == [f"{web}/page"]


@pytest.mark.promise("extract.addresses")
def test_nothing_inside_the_house_is_fetched(web: str, server_that: Callable[[str], httpx.Client]) -> None:
    found = read(server_that("on"), f"{web}/page")
    assert (found["status"], "this machine or network" in found["error"]) == ("failed", True), found


@pytest.mark.promise("extract.addresses")
def test_where_it_is_off_an_address_is_kept_as_it_is(web: str, server_that: Callable[[str], httpx.Client]) -> None:
    found = read(server_that("off"), f"{web}/page")
    assert (found["status"], found["content"]) == ("done", f"{web}/page")
