"""Why a fact is in the profile, through a real server over both engines; and facts that former rules made."""

from __future__ import annotations

import time

import httpx
import pytest

from .conftest import ON_BOTH, ServerProcess
from .test_search_http import done

pytestmark = ON_BOTH


@pytest.mark.promise("facts.why")
def test_a_fact_says_its_lines_and_what_it_said_before(server: ServerProcess, client: httpx.Client, tag: str) -> None:
    del server
    at = {"containerTag": tag}
    client.put(
        "/v1/files/memory/a.md", params=at, content=b"# Notes\n\nRain. I live in Porto. Lunch was good.\n"
    ).raise_for_status()
    done(client, tag)
    client.put("/v1/files/memory/b.md", params=at, content=b"We moved to Lisbon.\n").raise_for_status()
    done(client, tag)
    (fact,) = client.get("/v1/facts/why", params={**at, "q": "lisbon moved"}).json()["facts"]
    assert (fact["text"], fact["subject"], fact["kind"]) == ("We moved to Lisbon.", "user", "static")
    assert [(one["path"], one["startLine"], one["stands"]) for one in fact["sources"]] == [("/memory/b.md", 1, True)]
    assert [one["text"] for one in fact["versions"]] == ["We moved to Lisbon.", "I live in Porto."]
    for nothing in ("porto", "lunch", "oslo"):
        assert client.get("/v1/facts/why", params={**at, "q": nothing}).json() == {"facts": []}
    client.delete("/v1/files/memory/b.md", params=at).raise_for_status()
    done(client, tag)
    (back,) = client.get("/v1/facts/why", params={**at, "q": "porto"}).json()["facts"]
    assert [(one["path"], one["startLine"]) for one in back["sources"]] == [("/memory/a.md", 3)]


@pytest.mark.promise("facts.prose")
def test_what_others_wrote_and_what_waits_brings_no_facts(server: ServerProcess, client: httpx.Client, tag: str) -> None:
    del server
    at = {"containerTag": tag}
    mail = b"From: a@b.org\r\nTo: c@d.org\r\nSubject: Hi\r\nDate: Mon, 2 Mar 2026 10:00:00 +0000\r\n\r\nI live in Ghent.\r\n"
    for path, content in (
        ("memory/mail.eml", mail), ("memory/page.html", b"<html><body><p>I live in Graz.</p></body></html>"),
        ("memory/api/inbox/x.md", b"I live in Turku.\n"), ("memory/web.md", b"---\ntrust: untrusted\n---\nI live in Leeds.\n"),
    ):  # fmt: skip
        client.put(f"/v1/files/{path}", params=at, content=content).raise_for_status()
    done(client, tag)
    assert client.get("/v1/facts/why", params={**at, "q": "live"}).json() == {"facts": []}
    kept = [{"op": "move", "fromPath": "/memory/api/inbox/x.md", "path": "/memory/api/x.md"}]
    client.post("/v1/files:batch", json={"containerTag": tag, "operations": kept}).raise_for_status()
    until = time.monotonic() + 60
    found: list[str] = []
    while found != ["I live in Turku."]:
        assert time.monotonic() < until, found
        found = [one["text"] for one in client.get("/v1/facts/why", params={**at, "q": "live"}).json()["facts"]]
