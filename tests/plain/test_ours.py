"""Our own server with everything below `/v1` hidden is a plain server, too; and a real mount at the double."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from memdir.client.http import Client
from tests.daemon.test_mount import Home, home, until
from tests.plain.conftest import PlainMount, settled
from tests.plain.double import KEY, PlainServer, listening
from tests.plain.test_plain import CONTENTS
from tests.servers import ServerProcess, server

__all__ = ["home", "server"]
pytestmark = pytest.mark.promise("sync.plain")


class WithoutV1(httpx.BaseTransport):
    """Answers 404 to every call of our own API."""

    def __init__(self) -> None:
        self._inner = httpx.HTTPTransport()

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        if request.url.path.startswith("/v1"):
            return httpx.Response(404, json={"error": "no such call"})
        return self._inner.handle_request(request)

    def close(self) -> None:
        self._inner.close()


@pytest.fixture
def mounts(tmp_path: Path, server: ServerProcess, tag: str) -> Iterator[tuple[PlainMount, PlainMount]]:
    def client() -> Client:
        return Client(server.url, server.key, transport=WithoutV1())

    one = PlainMount(tmp_path / "one", client, container=tag)
    two = PlainMount(tmp_path / "two", client, container=tag, host="desktop", seed=2)
    yield one, two
    one.close()
    two.close()


def patiently(*mounts: PlainMount) -> None:
    """A real server works while we wait, and the mounts' clocks only move when told to."""
    for mount in mounts:

        def is_done(mount: PlainMount = mount) -> bool:
            mount.clock.advance(40.0)
            mount.engine.run_until_idle()
            with mount.make_client() as client:
                while client.processing_count(mount.container):
                    client.health()
            mount.engine.run_until_idle()
            return mount.engine.status().queue_length == 0

        until(is_done)
    settled(*mounts)


def test_two_mounts_at_our_server_without_v1_have_the_same(mounts: tuple[PlainMount, PlainMount]) -> None:
    one, two = mounts
    left_out = ("/binary.bin", "/nul", "/large.txt")  # it gives no originals back; and a model would read for minutes
    texts = {path: content for path, content in CONTENTS.items() if path not in left_out}
    one.mkdir("/deep")
    one.mkdir("/deep/er")
    for path, content in texts.items():
        one.write(path, content)
    patiently(one, two)
    assert two.files() == texts
    two.mv("/deep", "/moved")
    two.write("/plain.md", b"changed\n")
    two.rm("/no-newline")
    two.chmod("/dos.txt", 0o600)
    patiently(two, one)
    assert one.files() == two.files()
    assert one.read("/moved/er/file.md") == b"deep\n"
    assert one.read("/plain.md") == b"changed\n"
    assert "/no-newline" not in one.files()
    assert one.mode("/dos.txt") & 0o777 == 0o600


@pytest.mark.mount
def test_a_real_mount_syncs_with_a_plain_server_and_says_so(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    double = PlainServer()
    with listening(double) as url, monkeypatch.context() as patch:
        patch.setenv("MEMDIR_SERVER_URL", url)
        patch.setenv("MEMDIR_API_KEY", KEY)
        record = home.mount()
        (home.place / "trip.md").write_text("We take\nthe night train.\n")
        (home.place / "raw.bin").write_bytes(b"\xff\x00\xfe")
        (home.place / "empty").touch()
        until(lambda: double.paths() == ["/empty", "/raw.bin", "/trip.md"])
        until(lambda: home.call(record, "status")["queue_length"] == 0)
        double.put("/theirs.md", "by an API client", container="notes")
        until((home.place / "theirs.md").exists)
        assert (home.place / "theirs.md").read_text() == "by an API client"
        double.remove("/raw.bin")
        until(lambda: not (home.place / "raw.bin").exists())
        os.rename(home.place / "trip.md", home.place / "journey.md")
        until(lambda: double.paths() == ["/empty", "/journey.md", "/theirs.md"])
        until(lambda: home.call(record, "status")["queue_length"] == 0)
        double.hits = [{"id": "c", "chunk": "the night train.", "similarity": 0.8, "filepath": "/journey.md"}]
        [hit] = home.call(record, "grep", q="railway", path="/", limit=3)["hits"]  # type: ignore[misc]
        assert (hit["path"], hit["start_line"], hit["text"]) == ("/journey.md", 2, "the night train.")
        assert home.server_of(record)["api"] == "v3"
        assert home.server_of(record)["online"] is True
        until(lambda: "likes tea" in (home.place / "profile.md").read_text())
        assert home.stop(record) == 0
