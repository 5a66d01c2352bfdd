"""Containers: a tag, an epoch, a gap-free counter of changes, settings."""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Callable
from typing import Any, Final

from memdir.core.clock import Clock
from memdir.core.errors import NotFoundError
from memdir.store.database import Database, Row, Transaction, fetch
from memdir.store.errors import InvalidError
from memdir.store.paths import checked_path
from memdir.store.types import Container

MEMORY_PATHS_DEFAULT: Final = ("/memory/", "/user/", "/memory.md", "/user.md")
MEMORY_PATHS_MAX: Final = 256
SETTINGS_MAX_BYTES: Final = 64 * 1024
TAG_MAX_CHARS: Final = 100
_TAG: Final = re.compile(r"[\w.:@+-]+", re.UNICODE)
_COLUMNS: Final = "id, org_id, tag, epoch, last_seq, profile_version, settings, created_at_ms, updated_at_ms"
MEMORY_PATHS_KEY: Final = "memoryFilesystemPaths"
VERSION_BOUNDS: Final = {"versionsMaxCount": (50, 1000), "versionsMaxDays": (90, 3650)}
"""Settings on former contents: default, and the most that can be asked for; 0 keeps none."""
BUCKETS_KEY: Final = "profileBuckets"
BUCKETS_MAX: Final = 50


def checked_tag(tag: str) -> str:
    """`tag`, or InvalidError: 1 to 100 letters, digits and `_ . : @ + -`, not only dots."""
    if not _TAG.fullmatch(tag) or len(tag) > TAG_MAX_CHARS or not tag.strip("."):
        raise InvalidError(
            f"{tag[:TAG_MAX_CHARS]!r} cannot name a container",
            hint=f"use 1 to {TAG_MAX_CHARS} letters, digits and the characters _ . : @ + -",
        )
    return tag


def _container(row: Row) -> Container:
    settings = json.loads(row[6])
    paths = settings.get(MEMORY_PATHS_KEY)
    return Container(
        id=row[0],
        org_id=row[1],
        tag=row[2],
        epoch=row[3],
        last_seq=row[4],
        profile_version=row[5],
        memory_paths=MEMORY_PATHS_DEFAULT if paths is None else tuple(paths),
        versions_max=settings.get("versionsMaxCount", VERSION_BOUNDS["versionsMaxCount"][0]),
        versions_days=settings.get("versionsMaxDays", VERSION_BOUNDS["versionsMaxDays"][0]),
        created_at_ms=row[7],
        updated_at_ms=row[8],
    )


class ContainerStore:
    """The container table."""

    def __init__(self, db: Database, clock: Clock) -> None:
        self._db = db
        self._clock = clock

    def find(self, org_id: str, tag: str) -> Container | None:
        """The container now, or None."""
        row = self._db.one(f"select {_COLUMNS} from container where org_id = ? and tag = ?", (org_id, tag))  # noqa: S608
        return None if row is None else _container(row)

    def get(self, org_id: str, tag: str) -> Container:
        """The container now, or NotFoundError."""
        found = self.find(org_id, tag)
        if found is None:
            raise NotFoundError(f"there is no container {tag!r}", hint="it comes into being with its first file")
        return found

    def by_id(self, container_id: int) -> Container | None:
        """The container now, or None."""
        row = self._db.one(f"select {_COLUMNS} from container where id = ?", (container_id,))  # noqa: S608
        return None if row is None else _container(row)

    def ensure(self, org_id: str, tag: str) -> Container:
        """The container, made when it is not there."""
        found = self.find(org_id, tag)
        if found is not None:
            return found
        checked_tag(tag)
        now_ms = self._clock.now_ns() // 1_000_000
        with self._db.write() as connection:
            connection.execute(
                "insert into container (org_id, tag, epoch, created_at_ms, updated_at_ms) values (?, ?, ?, ?, ?) "
                "on conflict (org_id, tag) do nothing",
                (org_id, tag, secrets.token_hex(16), now_ms, now_ms),
            )
        return self.get(org_id, tag)

    def all(self, org_id: str, *, limit: int = 1000) -> list[Container]:
        """Containers of an organisation by tag."""
        rows = self._db.all(
            f"select {_COLUMNS} from container where org_id = ? order by tag limit ?",  # noqa: S608
            (org_id, limit),
        )
        return [_container(row) for row in rows]

    def ids(self, *, after: int, limit: int) -> list[int]:
        """Containers of all organisations, by id, from the one after `after` on."""
        return [row[0] for row in self._db.all("select id from container where id > ? order by id limit ?", (after, limit))]

    def settings(self, container_id: int) -> dict[str, Any]:
        """All settings as a client set them, defaults filled in."""
        row = self._db.one("select settings from container where id = ?", (container_id,))
        if row is None:
            raise NotFoundError("the container is gone")
        return _filled(row[0])

    def change_settings(
        self, container_id: int, changes: dict[str, Any], *, check: Callable[[dict[str, Any]], None] | None = None
    ) -> dict[str, Any]:
        """Merge `changes` into the settings (null takes a setting away) and return all. `check` sees the settings as they are
        before, inside the transaction, and may raise."""
        if changes.get(MEMORY_PATHS_KEY) is not None:
            changes = changes | {MEMORY_PATHS_KEY: checked_memory_paths(changes[MEMORY_PATHS_KEY])}
        for name, (_, most) in VERSION_BOUNDS.items():
            value = changes.get(name)
            if value is not None and (isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= most):
                raise InvalidError(f"{name} must be a whole number from 0 to {most}")
        if changes.get(BUCKETS_KEY) is not None:
            _check_buckets(changes[BUCKETS_KEY])
        with self._db.write() as connection:
            rows = fetch(connection, "select settings from container where id = ?", (container_id,))
            if not rows:
                raise NotFoundError("the container is gone")
            if check is not None:
                check(_filled(rows[0][0]))
            merged = json.loads(rows[0][0]) | changes
            text = json.dumps({key: value for key, value in merged.items() if value is not None}, ensure_ascii=False)
            if len(text.encode()) > SETTINGS_MAX_BYTES:
                raise InvalidError(f"settings can have at most {SETTINGS_MAX_BYTES} bytes")
            connection.execute(
                "update container set settings = ?, updated_at_ms = ? where id = ?",
                (text, self._clock.now_ns() // 1_000_000, container_id),
            )
        return self.settings(container_id)


def _filled(text: str) -> dict[str, Any]:
    """Settings as they are stored, defaults filled in."""
    settings: dict[str, Any] = json.loads(text)
    if settings.get(MEMORY_PATHS_KEY) is None:
        settings[MEMORY_PATHS_KEY] = list(MEMORY_PATHS_DEFAULT)
    return {name: default for name, (default, _) in VERSION_BOUNDS.items()} | settings


def checked_memory_paths(paths: object) -> list[str]:
    """Memory paths as they are stored: absolute, a trailing slash kept, each once; `/` means everything."""
    if not isinstance(paths, list) or not all(isinstance(path, str) for path in paths):
        raise InvalidError(f"{MEMORY_PATHS_KEY} must be a list of paths")
    if len(paths) > MEMORY_PATHS_MAX:
        raise InvalidError(f"at most {MEMORY_PATHS_MAX} memory paths")
    result = []
    for path in paths:
        checked = "/" if path == "/" else checked_path(path) + ("/" if path.endswith("/") else "")
        if checked not in result:
            result.append(checked)
    return result


def _check_buckets(buckets: object) -> None:
    fine = isinstance(buckets, list) and all(
        isinstance(bucket, dict)
        and isinstance(bucket.get("key"), str)
        and 0 < len(bucket["key"]) <= TAG_MAX_CHARS
        and isinstance(bucket.get("description", ""), (str, type(None)))
        for bucket in buckets
    )
    if not fine or not isinstance(buckets, list) or len(buckets) > BUCKETS_MAX:
        raise InvalidError(f"{BUCKETS_KEY} must be a list of at most {BUCKETS_MAX} buckets, each a key and a description")


def next_seq(connection: Transaction, container_id: int) -> int:
    """Take the next number of the container, inside the caller's transaction."""
    rows = fetch(connection, "update container set last_seq = last_seq + 1 where id = ? returning last_seq", (container_id,))
    if not rows:
        raise NotFoundError("the container is gone")
    seq: int = rows[0][0]
    return seq
