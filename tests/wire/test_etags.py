"""ETag, If-Match and If-None-Match on documents, files and settings."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from tests.servers import ServerProcess


@pytest.fixture
def document(client: httpx.Client, tag: str) -> str:
    """The address of a document."""
    answer = client.post(
        "/v3/documents", json={"content": "one", "containerTag": tag, "filepath": "/a.md", "metadata": {"n": 0}}
    )
    return f"/v3/documents/{answer.json()['id']}"


def tag_of(client: httpx.Client, url: str) -> str:
    return client.get(url, headers={"Accept-Encoding": "identity"}).headers["etag"]


@pytest.mark.promise("api.etags")
@pytest.mark.parametrize("change", [{"content": "two"}, {"metadata": {"n": 1}}, {"filepath": "/b.md"}, {"customId": "mine"}])
def test_a_document_changed_meanwhile_is_not_changed_again(
    client: httpx.Client, document: str, tag: str, change: dict[str, object]
) -> None:
    change = {name: f"{value}-{tag}" if name == "customId" else value for name, value in change.items()}
    before = tag_of(client, document)
    assert client.patch(document, json=change, headers={"If-Match": before}).status_code == 200
    for method, body in (("PATCH", {"content": "three"}), ("PATCH", {"metadata": {"n": 3}}), ("DELETE", None)):
        answer = client.request(method, document, json=body, headers={"If-Match": before})
        assert (answer.status_code, answer.json()["error"]) == (412, "the document was changed meanwhile"), method
        current = answer.headers["etag"]
        assert current.split(".")[:2] == tag_of(client, document).split(".")[:2]
        assert answer.json()["current"]["path"] == change.get("filepath", "/a.md")
    assert client.get(document).json()["content"] == change.get("content", "one")
    assert client.delete(document, headers={"If-Match": tag_of(client, document)}).status_code == 204


@pytest.mark.promise("api.etags")
def test_the_pipeline_moving_on_takes_nobodys_turn(client: httpx.Client, document: str) -> None:
    """The status is part of what a reader knows and not of what a writer must know."""
    queued = tag_of(client, document).replace("done", "queued")
    number, time = queued.strip('"').split(".")[:2]
    for given in (f'"{number}.{time}.queued"', f'W/"{number}.{time}.done"', f'"{number}.{time}"', f'"{number}"', "*"):
        assert client.patch(document, json={}, headers={"If-Match": given}).status_code == 200, given
    for given in ("7", "x", '"x"', "", '"1", "2"'):
        assert client.patch(document, json={}, headers={"If-Match": given}).status_code == 400, given


@pytest.mark.promise("api.etags")
def test_of_many_writers_that_read_the_same_version_one_wins(
    server: ServerProcess, client: httpx.Client, document: str
) -> None:
    before = tag_of(client, document)

    def write(number: int) -> int:
        with server.client() as own:
            return own.patch(document, json={"metadata": {"n": number}}, headers={"If-Match": before}).status_code

    with ThreadPoolExecutor(8) as pool:
        statuses = sorted(pool.map(write, range(8)))
    assert statuses == [200] + [412] * 7


@pytest.mark.promise("api.etags")
def test_who_has_the_current_version_gets_a_304(client: httpx.Client, document: str, tag: str) -> None:
    settings = f"/v3/container-tags/{tag}"
    file = f"/v1/files/a.md?containerTag={tag}"
    for url, change in ((settings, {"note": "x"}), (document, {"metadata": {"n": 9}})):
        known = tag_of(client, url)
        while (answer := client.get(url, headers={"If-None-Match": known})).status_code == 200:
            known = answer.headers["etag"]  # the pipeline moved on; it comes to an end
        assert (answer.status_code, answer.content, answer.headers["etag"]) == (304, b"", known)
        assert client.get(url, headers={"If-None-Match": f'"other", W/{known}'}).status_code == 304
        assert client.patch(url, json=change).status_code == 200
        assert client.get(url, headers={"If-None-Match": known}).status_code == 200
    known = tag_of(client, file)
    assert client.get(file, headers={"If-None-Match": known}).status_code == 304
    assert client.put(file, content=b"new").status_code == 200
    assert client.get(file, headers={"If-None-Match": known}).status_code == 200


@pytest.mark.promise("api.etags")
def test_settings_changed_meanwhile_are_not_changed_again(client: httpx.Client, document: str, tag: str) -> None:
    url = f"/v3/container-tags/{tag}"
    before = tag_of(client, url)
    first = client.patch(url, json={"a": 1}, headers={"If-Match": before})
    assert (first.status_code, first.headers["etag"]) == (200, tag_of(client, url))
    assert client.patch(url, json={"a": 2}, headers={"If-Match": before}).status_code == 412
    assert client.patch(url, json={"a": 3}, headers={"If-Match": first.headers["etag"]}).status_code == 200
    assert client.get(url).json()["a"] == 3


def test_a_folded_document_keeps_its_tag_as_a_weak_one(client: httpx.Client, tag: str) -> None:
    made = client.post("/v3/documents", json={"content": "long " * 1000, "containerTag": tag}).json()["id"]
    url = f"/v3/documents/{made}"
    folded = client.get(url, headers={"Accept-Encoding": "gzip"})
    assert folded.headers["content-encoding"] == "gzip"
    assert folded.headers["etag"].startswith('W/"')
    assert client.patch(url, json={"metadata": {"x": 1}}, headers={"If-Match": folded.headers["etag"]}).status_code == 200
