"""A running server with its contents in S3: put, read, delete; killed in the middle; set to another place."""

from __future__ import annotations

import signal
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from tests.server.contents import new_bucket, s3_server
from tests.server.test_files_http import put
from tests.servers import launch, start

BIG = b"large content \n" * 30_000


def keys_of(client: Any, *, count: int, deadline_s: float = 20.0) -> list[str]:
    """The keys in the bucket, once there are so many: contents are deleted behind the answer."""
    deadline = time.monotonic() + deadline_s
    while True:
        keys = [item["Key"] for item in client.list_objects_v2(Bucket="live").get("Contents", ())]
        if len(keys) == count or time.monotonic() > deadline:
            return keys
        threading.Event().wait(0.02)


@pytest.mark.promise("store.blobs")
def test_large_contents_live_in_s3_once_and_go_with_their_last_document(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with s3_server() as endpoint:
        bucket = new_bucket(endpoint, "live", monkeypatch)
        running = start(tmp_path, "--port", "0", "--blobs", "s3://live/memdir")
        with running.client() as client:
            assert put(client, "t", "/first", b"x").status_code == 201
            answer = client.patch("/v3/container-tags/t", json={"versionsMaxCount": 0})
            assert answer.status_code == 200, answer.text
            for path in ("/a", "/b"):
                assert put(client, "t", path, BIG).status_code == 201
            assert put(client, "t", "/small", b"small").status_code == 201
            (key,) = keys_of(bucket, count=1)
            assert key.startswith("memdir/")
            assert bucket.get_object(Bucket="live", Key=key)["Body"].read() == BIG
            assert client.get("/v1/files/b", params={"containerTag": "t"}).content == BIG
            client.delete("/v1/files/a", params={"containerTag": "t"})
            assert client.get("/v1/files/b", params={"containerTag": "t"}).content == BIG
            assert put(client, "t", "/c", BIG + b"2").status_code == 201
            assert running.stop(signal.SIGKILL) == -signal.SIGKILL
        running = start(tmp_path, "--port", "0", "--blobs", "s3://live/memdir")
        with running.client() as client:
            assert client.get("/v1/files/b", params={"containerTag": "t"}).content == BIG
            client.delete("/v1/files/b", params={"containerTag": "t"})
            (key,) = keys_of(bucket, count=1)
            assert bucket.get_object(Bucket="live", Key=key)["Body"].read() == BIG + b"2"
            assert put(client, "t", "/d", BIG).status_code == 201
        assert running.stop() == 0
        process, said = launch(tmp_path, "--port", "0")
        assert "large contents of this server are not in" in said
        assert process.wait(timeout=30) == 2
        assert not list((tmp_path / "data" / "server").glob("blobs/*/*"))


def test_a_store_of_contents_that_goes_away_refuses_large_puts_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with s3_server() as endpoint:
        new_bucket(endpoint, "live", monkeypatch)
        running = start(tmp_path, "--port", "0", "--blobs", "s3://live")
    try:
        with running.client() as client:
            assert put(client, "t", "/small", b"small").status_code == 201
            refused = put(client, "t", "/large", BIG)
            assert refused.status_code == 503
            assert refused.headers["retry-after"]
            assert "s3://live cannot be reached" in refused.json()["error"]
            assert client.get("/v1/files/large", params={"containerTag": "t"}).status_code == 404
            assert not list((tmp_path / "data" / "server" / "tmp").iterdir())
    finally:
        assert running.stop() == 0
