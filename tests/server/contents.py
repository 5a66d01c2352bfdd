"""Stores of contents for tests: a folder and a bucket, and one that dies at a chosen moment."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import boto3
import pytest
from moto.server import ThreadedMotoServer

from memdir.store.contents.backends import Contents, Source, Stored
from memdir.store.database import Bindings, Database, Row, Transaction


@contextmanager
def s3_server() -> Iterator[str]:
    """A local S3 server; its URL."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        yield f"http://{host}:{port}"
    finally:
        server.stop()


def s3_environment(endpoint: str) -> dict[str, str]:
    """What a process needs to find the local S3 server."""
    return {
        "MEMDIR_S3_ENDPOINT_URL": endpoint,
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_CONFIG_FILE": "/nonexistent",
        "AWS_SHARED_CREDENTIALS_FILE": "/nonexistent",
    }


def new_bucket(endpoint: str, name: str, patch: pytest.MonkeyPatch) -> Any:
    """An empty bucket, this process's environment set for it, and a client of its own."""
    for variable, value in s3_environment(endpoint).items():
        patch.setenv(variable, value)
    for variable in ("AWS_PROFILE", "AWS_REGION", "AWS_DEFAULT_REGION", "AWS_SESSION_TOKEN"):
        patch.delenv(variable, raising=False)
    client = boto3.session.Session().client("s3", endpoint_url=endpoint, region_name="us-east-1")
    client.create_bucket(Bucket=name)
    return client


class Died(BaseException):
    """The process is gone: nothing of it runs any more, no cleaning up either."""


class Life:
    """Counts the moments at which a process may die, and dies at one of them."""

    def __init__(self, moments: int) -> None:
        self._left = moments

    @property
    def dead(self) -> bool:
        return self._left < 0

    def moment(self) -> None:
        """Die here, if it is time; a dead process does nothing more."""
        self._left -= self._left >= 0
        if self._left < 0:
            raise Died


class MortalContents:
    """Contents as a process sees them that may die before and after each call."""

    def __init__(self, inner: Contents, life: Life) -> None:
        self._inner = inner
        self._life = life

    @property
    def name(self) -> str:
        return self._inner.name

    def put(self, place: str, file: Path) -> None:
        self._life.moment()
        self._inner.put(place, file)
        self._life.moment()

    def open(self, place: str) -> tuple[Source, int]:
        self._life.moment()
        return self._inner.open(place)

    def size(self, place: str) -> int | None:
        return self._inner.size(place)

    def delete(self, places: Sequence[str]) -> None:
        for place in places:
            self._life.moment()
            self._inner.delete([place])
        self._life.moment()

    def all(self) -> Iterator[Stored]:
        return self._inner.all()

    def abandon(self, *, before_ms: int) -> int:
        return self._inner.abandon(before_ms=before_ms)

    def close(self) -> None:
        self._inner.close()


class MortalDatabase:
    """An engine as a process sees it that may die before a transaction, in it, and right after its commit."""

    def __init__(self, inner: Database, life: Life) -> None:
        self._inner = inner
        self._life = life

    @property
    def row_lock(self) -> str:
        return self._inner.row_lock

    @property
    def row_lock_skip(self) -> str:
        return self._inner.row_lock_skip

    def hold(self, transaction: Transaction, name: str) -> None:
        self._inner.hold(transaction, name)

    @contextmanager
    def write(self, *, durable: bool = False) -> Iterator[Transaction]:
        self._life.moment()
        with self._inner.write(durable=durable) as connection:
            yield connection
            self._life.moment()
        self._life.moment()

    @contextmanager
    def snapshot(self) -> Iterator[Transaction]:
        with self._inner.snapshot() as connection:
            yield connection

    def all(self, sql: str, bindings: Bindings = ()) -> list[Row]:
        self._life.moment()
        return self._inner.all(sql, bindings)

    def one(self, sql: str, bindings: Bindings = ()) -> Row | None:
        self._life.moment()
        return self._inner.one(sql, bindings)
