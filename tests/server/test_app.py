"""The application without a socket: what a mistake of ours looks like from outside."""

from __future__ import annotations

import asyncio
import errno
import logging
from pathlib import Path

import httpx
import pytest
from fastapi.telemetry import _asgi

from memdir.server.app import create_app
from memdir.server.dispatcher import Dispatcher
from memdir.server.engine import Engine
from memdir.store.errors import DiskFullError
from tests.server.conftest import AnyStore


def ask(store: AnyStore, folder: Path, path: str, *, times: int = 1) -> httpx.Response:
    """The answer to the last of some equal GETs with a good key."""
    _, secret = store.keys.create(org_id="local", name="test")

    async def call() -> httpx.Response:
        dispatcher = Dispatcher()
        dispatcher.attach()
        transport = httpx.ASGITransport(app=create_app(store, dispatcher, Engine(store, folder)))
        try:
            async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
                answers = [await client.get(path, headers={"Authorization": f"Bearer {secret}"}) for _ in range(times)]
                return answers[-1]
        finally:
            dispatcher.shutdown()

    return asyncio.run(call())


def test_an_unexpected_error_is_a_plain_500_and_its_details_stay_in_the_log(
    store: AnyStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("canary-secret")

    monkeypatch.setattr(store.changes, "since", broken)
    with caplog.at_level(logging.ERROR):
        answer = ask(store, tmp_path, "/v1/changes?containerTag=t")
    assert (answer.status_code, answer.json()["error"]) == (500, "internal error; the server's log has the details")
    assert "canary-secret" in caplog.text


@pytest.mark.parametrize("error", [DiskFullError("full"), OSError(errno.ENOSPC, "No space left on device")])
def test_a_full_disk_is_a_507_in_one_line_of_the_log(
    error: Exception, store: AnyStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(store.changes, "since", full)
    answer = ask(store, tmp_path, "/v1/changes?containerTag=t", times=3)
    assert (answer.status_code, answer.json()) == (507, {"error": "the server's disk is full"})
    assert "Traceback" not in caplog.text
    assert caplog.text.count("no room on the disk") == 1


def test_another_error_of_the_system_stays_a_500(store: AnyStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise OSError(errno.EIO, "canary-secret")

    monkeypatch.setattr(store.changes, "since", broken)
    answer = ask(store, tmp_path, "/v1/changes?containerTag=t")
    assert (answer.status_code, answer.json()["error"]) == (500, "internal error; the server's log has the details")


def test_a_damaged_blob_is_a_500_that_names_it(store: AnyStore, tmp_path: Path) -> None:
    from memdir.store.tree.operations import Put

    container = store.containers.ensure("local", "t")
    with store.blobs.upload() as upload:
        upload.write(b"x" * 300_000)
        document = store.files.apply(container, Put(path="/a", blob=upload.finish())).document
    assert document is not None
    (file,) = (store.folder / "blobs").glob(f"*/{document.content_hash}.*")
    file.unlink()
    answer = ask(store, tmp_path, "/v1/files/a?containerTag=t")
    assert answer.status_code == 500
    assert "are missing" in answer.json()["error"]


def test_every_error_has_the_same_shape(store: AnyStore, tmp_path: Path) -> None:
    for path, status in (
        ("/v1/files/a?containerTag=none", 404),
        ("/v1/changes?containerTag=a%20b", 400),
        ("/v1/changes", 400),
        ("/nowhere", 404),
    ):
        answer = ask(store, tmp_path, path)
        assert answer.status_code == status
        assert isinstance(answer.json()["error"], str)


@pytest.mark.promise("network.no-telemetry")
def test_requests_are_told_to_nobody_even_where_the_environment_has_a_collector(
    store: AnyStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = []

    async def tell(*_: object, **__: object) -> None:
        told.append(1)

    monkeypatch.setattr(_asgi, "_unconfigured", lambda _: False)  # as if providers were set up
    monkeypatch.setattr(_asgi.NativeTelemetry, "__call__", tell)
    assert ask(store, tmp_path, "/v1/changes?containerTag=t").status_code in (200, 404)
    assert told == []
