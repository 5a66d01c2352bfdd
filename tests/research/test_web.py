"""Places of pages: HTTP with its faults and its forbidden addresses, the engines' formats, folders, and a ZIM file."""

from __future__ import annotations

import json
import socket
import threading
from pathlib import Path
from typing import Any

import httpx
import pytest

from memdir.core.errors import FetchError, UsageError
from memdir.core.web import Http, is_public
from memdir.research.web import reader
from memdir.research.web.engines import ENGINES, Web
from memdir.research.web.offline import Folder, Zim
from memdir.research.web.reader import fetched_page
from tests.research.endpoint import Answer, served

PRIVATE = [
    "127.0.0.1", "127.1.2.3", "0.0.0.0", "10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1", "169.254.169.254",
    "100.64.0.1", "224.0.0.1", "255.255.255.255", "::1", "::", "fe80::1", "fc00::1", "fd12::1", "ff02::1", "::ffff:127.0.0.1",
    "::ffff:10.0.0.1", "64:ff9b::7f00:1", "2002:7f00:1::", "2001:db8::1", "192.0.2.1", "198.18.0.1",
]  # fmt: skip


@pytest.mark.parametrize("address", PRIVATE)
def test_private_addresses_are_none_of_the_web(address: str) -> None:
    assert not is_public(address)


@pytest.mark.parametrize("address", ["1.1.1.1", "93.184.216.34", "2606:4700::1111", "::ffff:1.1.1.1"])
def test_public_ones_are(address: str) -> None:
    assert is_public(address)


@pytest.fixture
def waits() -> list[float]:
    return []


@pytest.fixture
def http(waits: list[float]) -> Any:
    made = Http(private_allowed=True, wait=waits.append)
    yield made
    made.close()


@pytest.mark.promise("research.confined")
@pytest.mark.parametrize(
    "host",
    [
        *(f"[{one}]" if ":" in one else one for one in PRIVATE[:18]),
        "localhost",
        "localhost.",
        "0x7f000001",
        "2130706433",
        "0177.0.0.1",
        "127.1",
    ],
)
def test_no_address_of_this_machine_or_network_is_fetched(host: str) -> None:
    asked: list[str] = []

    def answer(path: str, _body: bytes) -> Answer:
        asked.append(path)
        return 200, {"Content-Type": "text/plain"}, b"secret"

    with served(answer) as address:
        port = address.rpartition(":")[2]
        http = Http(wait=lambda _s: None)
        with pytest.raises(FetchError, match=r"this machine or network|is not found|ConnectError"):
            http.get(f"http://{host}:{port}/latest/meta-data")
        http.close()
    assert asked == []


def _resolving(monkeypatch: pytest.MonkeyPatch, *answers: str) -> None:
    left = list(answers)

    def resolve(host: str, port: Any, *_args: Any, **_more: Any) -> Any:
        address = left.pop(0) if len(left) > 1 else left[0]
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, 80))]

    monkeypatch.setattr("memdir.core.web.socket.getaddrinfo", resolve)


def test_a_name_that_points_inside_is_refused_though_it_looks_public(monkeypatch: pytest.MonkeyPatch) -> None:
    http = Http()
    _resolving(monkeypatch, "10.0.0.7")
    http = Http()
    with pytest.raises(FetchError, match=r"example\.org is an address of this machine or network"):
        http.get("http://example.org/")


def test_the_address_that_was_checked_is_the_one_that_is_asked() -> None:
    """So a name that is another address a moment later (DNS rebinding) changes nothing."""
    target, headers, extensions = Http(private_allowed=True)._target("https://localhost:8443/a?b=c#d")
    assert target in ("https://127.0.0.1:8443/a?b=c", "https://[::1]:8443/a?b=c")
    assert headers == {"Host": "localhost:8443"}
    assert extensions == {"sni_hostname": "localhost"}


def test_a_redirect_is_checked_like_an_address(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []
    plain = Http._target

    def target(self: Http, url: str, **more: Any) -> Any:
        seen.append(url)
        if len(seen) > 1:
            self._private_allowed = False
        return plain(self, url, **more)

    monkeypatch.setattr(Http, "_target", target)

    def answer(path: str, _body: bytes) -> Answer:
        return (302, {"Location": "/inner"}, b"") if path == "/" else (200, {}, b"secret")

    with served(answer) as address, pytest.raises(FetchError, match="this machine or network"):
        Http(private_allowed=True).get(f"{address}/")
    assert seen[1].endswith("/inner")


@pytest.mark.parametrize(
    "url",
    [
        "file:///etc/passwd",
        "ftp://example.org/",
        "http://",
        "http://user:pw@example.org/",
        "http://a:b:c/",
        "gopher://x",
        "http://[::1",
        "x" * 5000,
    ],
)
def test_only_plain_web_addresses_are_fetched(url: str, http: Http) -> None:
    with pytest.raises(FetchError):
        http.get(url)


@pytest.mark.promise("research.faults")
@pytest.mark.parametrize("status", [429, 500, 502, 503, 504, 408])
def test_busy_servers_are_asked_again_after_what_they_say(status: int, http: Http, waits: list[float]) -> None:
    answers: list[Answer] = [
        (status, {"Retry-After": "7"}, b""),
        (status, {}, b""),
        (200, {"Content-Type": "text/plain"}, b"there"),
    ]

    def answer(_path: str, _body: bytes) -> Answer:
        return answers.pop(0)

    with served(answer) as address:
        assert http.get(f"{address}/x")[2] == b"there"
    assert waits == [7.0, 2.0]


@pytest.mark.promise("research.faults")
def test_a_server_that_stays_busy_is_given_up(http: Http, waits: list[float]) -> None:
    with (
        served(lambda _path, _body: (503, {"Retry-After": "999999"}, b"")) as address,
        pytest.raises(FetchError, match="HTTP 503"),
    ):
        http.get(f"{address}/x")
    assert waits == [60.0, 60.0, 60.0]


def test_what_is_not_there_is_not_asked_for_again(http: Http, waits: list[float]) -> None:
    with served(lambda _path, _body: (404, {}, b"")) as address, pytest.raises(FetchError, match="HTTP 404"):
        http.get(f"{address}/x")
    assert waits == []


@pytest.mark.promise("research.faults")
def test_a_page_that_breaks_off_is_asked_for_again(http: Http, waits: list[float]) -> None:
    answers: list[Answer] = [(200, {"Content-Length": "1000"}, b"half"), (200, {}, b"whole")]
    with served(lambda _path, _body: answers.pop(0)) as address:
        assert http.get(f"{address}/x")[2] == b"whole"
    assert len(waits) == 1


@pytest.mark.promise("research.faults")
def test_a_server_that_says_nothing_is_given_up(http: Http, waits: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memdir.core.web._TIMEOUT", httpx.Timeout(0.2))
    slow = Http(private_allowed=True, wait=waits.append)
    over = threading.Event()

    def answer(_path: str, _body: bytes) -> Answer:
        over.wait(20)
        return 200, {}, b"too late"

    with served(answer) as address:
        with pytest.raises(FetchError, match="Timeout"):
            slow.get(f"{address}/x")
        over.set()
    slow.close()
    assert len(waits) == 3


@pytest.mark.parametrize(
    "said", [{"headers": {"X-Key": "secret"}}, {"json": {"q": "what I look for"}}], ids=["key", "question"]
)
def test_neither_key_nor_question_goes_to_another_host(said: dict[str, Any], http: Http) -> None:
    asked: list[str] = []
    with served(lambda path, _body: asked.append(path) or (200, {}, b"x")) as other:  # type: ignore[func-returns-value]
        with (
            served(lambda _path, _body: (302, {"Location": f"{other}/thief"}, b"")) as engine,
            pytest.raises(FetchError, match="neither the key nor the question"),
        ):
            http.get(f"{engine}/search", **said)
        with served(lambda path, _: (302, {"Location": "/b"}, b"") if path == "/a" else (200, {}, b"here")) as engine:
            assert http.get(f"{engine}/a", **said)[2] == b"here"
    assert asked == []


def test_redirects_end_and_large_pages_are_cut_off(http: Http) -> None:
    with (
        served(lambda path, _body: (302, {"Location": path + "a"}, b"")) as address,
        pytest.raises(FetchError, match="redirects"),
    ):
        http.get(f"{address}/x")
    with (
        served(lambda _path, _body: (200, {}, b"x" * 3_000_000)) as address,
        pytest.raises(FetchError, match="larger than 1 MiB"),
    ):
        http.get(f"{address}/x", max_bytes=1 << 20)


def test_one_host_is_asked_by_two_at_once_at_most(http: Http) -> None:
    now, most = 0, 0
    lock, gate = threading.Lock(), threading.Barrier(2, timeout=20)

    def answer(_path: str, _body: bytes) -> Answer:
        nonlocal now, most
        with lock:
            now += 1
            most = max(most, now)
        gate.wait()
        with lock:
            now -= 1
        return 200, {}, b"x"

    with served(answer) as address:
        threads = [threading.Thread(target=http.get, args=(f"{address}/{number}",)) for number in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert most == 2


def test_a_page_is_readable_markdown_with_its_title(http: Http) -> None:
    page = b"<html><head><title>On ants</title></head><body><nav>menu</nav><h1>Ants</h1><p>They <b>build</b>.</p></body></html>"
    with served(lambda _path, _body: (200, {"Content-Type": "text/html; charset=utf-8"}, page)) as address:
        found = fetched_page(http, f"{address}/ants")
    assert (found.title, found.media_type) == ("On ants", "text/html")
    assert "They **build**." in found.text


def test_what_nobody_can_read_says_so(http: Http) -> None:
    binary = (200, {"Content-Type": "application/octet-stream"}, bytes(range(256)) * 40)
    with served(lambda _path, _body: binary) as address, pytest.raises(FetchError, match="nothing that can be read"):
        fetched_page(http, f"{address}/x.bin")
    empty = (200, {"Content-Type": "text/plain"}, b"  \n")
    with served(lambda _path, _body: empty) as address, pytest.raises(FetchError, match="no text"):
        fetched_page(http, f"{address}/x.txt")


# --- engines, against their documented formats

_SEARXNG = {
    "query": "q",
    "number_of_results": 2,
    "results": [
        {"url": "https://a.org/1", "title": "A", "content": "about a", "engine": "x", "score": 1.0},
        {"title": "no url"},
    ],
    "answers": [],
    "infoboxes": [],
}
_BRAVE = {
    "type": "search",
    "query": {"original": "q"},
    "mixed": {},
    "web": {"type": "search", "results": [{"title": "A", "url": "https://a.org/1", "description": "about a", "age": "2d"}]},
    "news": {"results": []},
}
_TAVILY = {
    "query": "q",
    "answer": None,
    "images": [],
    "results": [{"title": "A", "url": "https://a.org/1", "content": "about a", "score": 0.9, "raw_content": None}],
    "response_time": "1.0",
}
_SERPER = {
    "searchParameters": {"q": "q"},
    "organic": [{"title": "A", "link": "https://a.org/1", "snippet": "about a", "position": 1}],
    "peopleAlsoAsk": [{"question": "?"}],
}


@pytest.mark.parametrize(
    ("engine", "answer", "method"),
    [("searxng", _SEARXNG, "GET"), ("brave", _BRAVE, "GET"), ("tavily", _TAVILY, "POST"), ("serper", _SERPER, "POST")],
)
def test_engines_are_asked_and_read_as_they_document_it(engine: str, answer: dict[str, Any], method: str, http: Http) -> None:
    asked: list[tuple[str, bytes]] = []

    def serve(path: str, body: bytes) -> Answer:
        asked.append((path, body))
        return 200, {"Content-Type": "application/json"}, json.dumps(answer).encode()

    with served(serve) as address:
        environ = {"BRAVE_API_KEY": "k", "TAVILY_API_KEY": "k", "SERPER_API_KEY": "k", "SEARXNG_URL": address}
        web = Web(engine, http, address=f"{address}/search", environ=environ)
        found = web.search("how do ants build?", 5)
    assert [(one.url, one.title, one.snippet) for one in found] == [("https://a.org/1", "A", "about a")]
    path, body = asked[0]
    assert bool(body) == (method == "POST")
    assert "how" in (path + body.decode())
    assert web.has("https://a.org/1")
    assert not web.has("folder:x")


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    "answer",
    [b"<html>captcha</html>", b"[]", b"null", b'{"results": 7, "web": 3, "organic": "x"}', b'{"web": {"results": [1, null]}}'],
)
def test_an_engine_that_answers_nonsense_ends_in_an_error_or_nothing(engine: str, answer: bytes, http: Http) -> None:
    with served(lambda _path, _body: (200, {}, answer)) as address:
        web = Web(engine, http, address=address, environ={"BRAVE_API_KEY": "k", "TAVILY_API_KEY": "k", "SERPER_API_KEY": "k"})
        if answer[:1] == b"{":
            assert web.search("x", 5) == []
        else:
            with pytest.raises(FetchError, match="JSON"):
                web.search("x", 5)


@pytest.mark.parametrize("engine", ENGINES)
def test_an_engine_without_its_key_says_which(engine: str, http: Http) -> None:
    with pytest.raises(UsageError) as caught:
        Web(engine, http, environ={})
    assert "set " in caught.value.hint
    assert "--offline" in caught.value.hint


# --- offline


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "sub").mkdir()
    (tmp_path / "ants.html").write_text(
        "<html><head><title>Ants &amp; co</title><script>var bees;</script></head>"
        "<body><p>Ants build <b>nests</b> from leaves.</p></body></html>"
    )
    (tmp_path / "sub" / "bees with space.md").write_text("# On bees\n\nBees make honey in combs.\n")
    (tmp_path / "notes.txt").write_text("Crows use tools.\n")
    (tmp_path / ".hidden.md").write_text("# Hidden\n\nnobody finds honey here\n")
    (tmp_path / "binary.dat").write_bytes(bytes(range(256)))
    (tmp_path / "leads-out.md").symlink_to("/etc/hostname")
    return tmp_path


def test_a_folder_is_searched_and_its_documents_are_read(folder: Path) -> None:
    place = Folder(folder)
    assert place.name.endswith("(3 documents)")
    [first, *_rest] = place.search("Which animals make honey?", 5)
    assert (first.url, first.title) == ("folder:sub/bees%20with%20space.md", "On bees")
    assert "Bees make honey" in first.snippet
    assert place.fetch(first.url).text.startswith("# On bees")
    ants = place.search("nests of leaves", 5)[0]
    assert ants.title == "Ants & co"
    assert "Ants build **nests** from leaves." in place.fetch(ants.url).text
    assert place.search("?!", 5) == []


@pytest.mark.promise("research.confined")
@pytest.mark.parametrize(
    "url",
    [
        "folder:../x",
        "folder:/etc/passwd",
        "folder:%2e%2e/%2e%2e/etc/passwd",
        "folder:leads-out.md",
        "folder:sub",
        "folder:",
        "folder:none.md",
    ],
)
def test_a_folder_gives_nothing_outside_of_it(folder: Path, url: str) -> None:
    with pytest.raises(FetchError):
        Folder(folder / "sub" if "x" in url else folder).fetch(url)


def test_a_folder_that_is_none_says_so(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is no folder"):
        Folder(tmp_path / "none")
    with pytest.raises(UsageError, match="no documents"):
        Folder(tmp_path)


def test_a_zim_file_is_searched_and_read(tmp_path: Path) -> None:
    writer = pytest.importorskip("libzim.writer")

    class Item(writer.Item):  # type: ignore[misc]
        def __init__(self, path: str, title: str, content: str) -> None:
            super().__init__()
            self._made = (path, title, content)

        def get_path(self) -> str:
            return self._made[0]

        def get_title(self) -> str:
            return self._made[1]

        def get_mimetype(self) -> str:
            return "text/html"

        def get_contentprovider(self) -> Any:
            return writer.StringProvider(self._made[2])

        def get_hints(self) -> dict[Any, Any]:
            return {writer.Hint.FRONT_ARTICLE: True}

    with writer.Creator(tmp_path / "animals.zim").config_indexing(True, "en") as creator:
        creator.set_mainpath("ants")
        for path, title, text in (
            ("ants", "Ants", "Weaver ants build nests from leaves."),
            ("bees", "Bees", "Bees make honey."),
        ):
            creator.add_item(Item(path, title, f"<html><head><title>{title}</title></head><body><p>{text}</p></body></html>"))
        for name, value in {
            "Language": "eng",
            "Title": "x",
            "Creator": "x",
            "Publisher": "x",
            "Name": "x",
            "Description": "x",
            "Date": "2026-11-25",
        }.items():
            creator.add_metadata(name, value)
    place = Zim(tmp_path / "animals.zim")
    assert "animals.zim" in place.name
    found = place.search("honey", 5)
    assert [(one.url, one.title) for one in found] == [("zim:bees", "Bees")]
    assert "Bees make honey." in place.fetch("zim:bees").text
    with pytest.raises(FetchError, match="no such article"):
        place.fetch("zim:wasps")


def test_a_file_that_is_no_zim_says_so(tmp_path: Path) -> None:
    pytest.importorskip("libzim.reader")
    (tmp_path / "x.zim").write_bytes(b"not one")
    with pytest.raises(UsageError, match="is no ZIM file"):
        Zim(tmp_path / "x.zim")


@pytest.fixture(autouse=True, scope="module")
def _no_reader_left() -> Any:
    yield
    reader.close()
