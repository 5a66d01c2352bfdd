"""One contract for every store of contents: a folder, and a bucket of a local S3 server."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from memdir.core.errors import CorruptError, NotFoundError, StorageError, UsageError
from memdir.store.contents import s3
from memdir.store.contents.backends import Contents, DiskContents, hash_of, is_place, new_place
from memdir.store.contents.blobs import BlobStore
from memdir.store.contents.choice import open_contents
from memdir.store.sqlite.store import SqliteStore
from tests.server.contents import new_bucket, s3_server

Staging = Callable[[bytes], Path]


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    with s3_server() as url:
        yield url


@pytest.fixture
def bucket(endpoint: str, monkeypatch: pytest.MonkeyPatch) -> tuple[Any, str]:
    name = f"b-{time.monotonic_ns()}"
    return new_bucket(endpoint, name, monkeypatch), name


@pytest.fixture(params=["disk", "s3"])
def contents(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Contents]:
    url = f"file://{tmp_path}/contents"
    if request.param == "s3":
        _, name = request.getfixturevalue("bucket")
        url = f"s3://{name}/some/prefix"
    opened = open_contents(url, tmp_path / "unused")
    yield opened
    opened.close()


@pytest.fixture
def staged(tmp_path: Path) -> Staging:
    def stage(content: bytes) -> Path:
        file = tmp_path / f"{time.monotonic_ns()}.part"
        file.write_bytes(content)
        return file

    return stage


def place_of(content: bytes) -> str:
    return new_place(hashlib.sha256(content).hexdigest())


def read(contents: Contents, place: str) -> bytes:
    source, size = contents.open(place)
    pieces = []
    while piece := source.read(100_000):
        assert len(piece) <= 100_000
        pieces.append(piece)
    source.close()
    assert sum(map(len, pieces)) == size
    return b"".join(pieces)


@pytest.mark.parametrize("size", [0, 1, 70_000, 5 * 1024 * 1024 * 3 + 11])
def test_what_was_put_is_read_listed_and_measured(
    contents: Contents, staged: Staging, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(s3, "PART_BYTES", 5 * 1024 * 1024)  # the smallest part that the protocol allows
    content = bytes(range(256)) * (size // 256) + bytes(range(size % 256))
    place, other = place_of(content), place_of(content)
    began_ms = time.time_ns() // 1_000_000
    contents.put(place, staged(content))
    contents.put(other, staged(content))
    assert read(contents, place) == content
    assert contents.size(place) == size
    found = {stored.place: stored for stored in contents.all()}
    assert set(found) == {place, other}
    assert found[place].size_bytes == size
    assert began_ms - 2000 <= found[place].modified_ms <= time.time_ns() // 1_000_000 + 2000
    contents.delete([place])
    assert [stored.place for stored in contents.all()] == [other]


def test_a_place_that_holds_nothing_says_so_and_may_be_deleted_again(contents: Contents, staged: Staging) -> None:
    place = place_of(b"a")
    for _ in range(2):
        with pytest.raises(NotFoundError):
            contents.open(place)
        assert contents.size(place) is None
        contents.delete([place])
        contents.put(place, staged(b"a"))
        contents.delete([place, place_of(b"b")])


def test_many_are_deleted_at_once(contents: Contents, staged: Staging) -> None:
    places = [place_of(b"%d" % number) for number in range(7)]
    for number, place in enumerate(places):
        contents.put(place, staged(b"%d" % number))
    contents.delete(places[1:])
    assert [stored.place for stored in contents.all()] == places[:1]


def test_an_open_reader_is_not_disturbed_by_a_delete(contents: Contents, staged: Staging) -> None:
    content = b"0123456789" * 30_000
    place = place_of(content)
    contents.put(place, staged(content))
    source, _ = contents.open(place)
    first = source.read(10)
    contents.delete([place])
    rest = b""
    while piece := source.read(65_536):
        rest += piece
    source.close()
    assert first + rest == content


def test_what_is_no_content_of_ours_is_neither_listed_nor_touched(
    bucket: tuple[Any, str], tmp_path: Path, staged: Staging
) -> None:
    client, name = bucket
    for key in ("some/prefix/readme.txt", "some/other/ab/" + "ab" * 32, "some/prefix/" + "zz/" + "ab" * 32):
        client.put_object(Bucket=name, Key=key, Body=b"theirs")
    folder = tmp_path / "blobs"
    (folder / "notes").mkdir(parents=True)
    (folder / "notes" / "file").write_bytes(b"theirs")
    for contents in (open_contents(f"s3://{name}/some/prefix", tmp_path), DiskContents(folder)):
        assert list(contents.all()) == []
        contents.close()


def test_parts_of_an_upload_that_never_ended_are_abandoned_by_age(
    bucket: tuple[Any, str], tmp_path: Path, staged: Staging, monkeypatch: pytest.MonkeyPatch
) -> None:
    client, name = bucket
    place = place_of(b"x")
    contents = open_contents(f"s3://{name}/p", tmp_path)
    client.create_multipart_upload(Bucket=name, Key=f"p/{place}")
    client.create_multipart_upload(Bucket=name, Key="p/not-ours")
    assert contents.abandon(before_ms=0) == 0
    assert contents.abandon(before_ms=time.time_ns() // 1_000_000 + 60_000) == 1
    assert [upload["Key"] for upload in client.list_multipart_uploads(Bucket=name)["Uploads"]] == ["p/not-ours"]
    contents.close()


def test_an_upload_that_fails_half_way_leaves_neither_object_nor_parts(
    bucket: tuple[Any, str], tmp_path: Path, staged: Staging, monkeypatch: pytest.MonkeyPatch
) -> None:
    client, name = bucket
    monkeypatch.setattr(s3, "PART_BYTES", 5 * 1024 * 1024)
    contents = open_contents(f"s3://{name}", tmp_path)
    assert isinstance(contents, s3.S3Contents)
    upload_part = contents._client.upload_part

    def second_part_fails(**arguments: Any) -> Any:
        if arguments["PartNumber"] == 2:
            arguments["ContentMD5"] = "AAAAAAAAAAAAAAAAAAAAAA=="
            arguments["UploadId"] = "unknown"
        return upload_part(**arguments)

    monkeypatch.setattr(contents._client, "upload_part", second_part_fails)
    with pytest.raises(StorageError, match="refuses"):
        contents.put(place_of(b"y"), staged(b"y" * 6 * 1024 * 1024))
    assert list(contents.all()) == []
    assert "Uploads" not in client.list_multipart_uploads(Bucket=name)
    contents.close()


def test_a_store_that_cannot_be_used_is_an_error_with_a_hint(
    endpoint: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    new_bucket(endpoint, "there", monkeypatch)
    with pytest.raises(StorageError, match="no bucket"):
        open_contents("s3://not-there/x", tmp_path)
    monkeypatch.setattr(s3, "ATTEMPTS", 1)
    monkeypatch.setenv("MEMDIR_S3_ENDPOINT_URL", "http://127.0.0.1:9")
    with pytest.raises(StorageError, match="cannot be reached") as refused:
        open_contents("s3://there", tmp_path)
    assert "MEMDIR_S3_ENDPOINT_URL" in refused.value.hint
    monkeypatch.setenv("MEMDIR_S3_ENDPOINT_URL", endpoint)
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    with pytest.raises(UsageError, match="no keys"):
        open_contents("s3://there", tmp_path)
    for url in ("http://host/x", "s3://", "file://host/x", "s3://b/p?x=1", "/folder"):
        with pytest.raises(UsageError, match="cannot be kept"):
            open_contents(url, tmp_path)


def test_bytes_that_were_changed_in_the_store_are_refused_before_the_last_of_them_is_out(
    contents: Contents, tmp_path: Path, staged: Staging
) -> None:
    store = SqliteStore.open(tmp_path / "server", contents=contents)
    try:
        content = b"a" * 3_000_000
        blob = hashlib.sha256(content).hexdigest()
        place = put_blob(store.blobs, store, content)
        assert store.blobs.content(blob) == content
        contents.delete([place])
        contents.put(place, staged(b"a" * 2_999_999 + b"b"))
        read_so_far = bytearray()
        pieces = store.blobs.pieces(blob)
        with pytest.raises(CorruptError, match="hash"):
            read_so_far.extend(byte for piece in pieces for byte in piece)
        assert len(read_so_far) < len(content)
    finally:
        store.close()


def put_blob(blobs: BlobStore, store: SqliteStore, content: bytes) -> str:
    """One reference to a large content; its place."""
    with blobs.upload() as upload:
        upload.write(content)
        staged = upload.finish()
        assert staged.place is not None
        with store.db.write() as connection:
            blobs.add(connection, staged)
        return staged.place


def test_names_of_places() -> None:
    digest = "ab" * 32
    place = new_place(digest)
    assert is_place(place)
    assert is_place(f"ab/{digest}")
    assert hash_of(place) == digest
    assert new_place(digest) != place
    for wrong in (f"ab/{digest}/x", f"../{digest}", f"ab/{digest}.", f"ab/{digest}.copy/..", "ab/cd", ""):
        assert not is_place(wrong)
