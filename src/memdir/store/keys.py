"""API keys: only the SHA-256 of a 256-bit random secret is kept, so that the database gives no key away."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Sequence
from dataclasses import dataclass

from memdir.core.clock import Clock
from memdir.core.ids import new_id, new_secret
from memdir.store.database import Database, Row

ACTIONS = ("read", "write", "admin")


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiKey:
    """Who calls, and what it may do. `containers` holds tags, or `*` for all."""

    id: str
    org_id: str
    name: str
    containers: tuple[str, ...]
    actions: tuple[str, ...]

    def allows(self, action: str, tag: str | None = None) -> bool:
        """Whether the key may do `action` (on container `tag`)."""
        return action in self.actions and (tag is None or "*" in self.containers or tag in self.containers)


def secret_hash(secret: str) -> bytes:
    """What is stored of a secret."""
    return hashlib.sha256(secret.encode("utf-8", "surrogateescape")).digest()


class KeyStore:
    """The api_key table."""

    def __init__(self, db: Database, clock: Clock) -> None:
        self._db = db
        self._clock = clock

    def create(
        self, *, org_id: str, name: str, containers: Sequence[str] = ("*",), actions: Sequence[str] = ACTIONS
    ) -> tuple[ApiKey, str]:
        """A new key and its secret; the secret cannot be shown again."""
        secret = new_secret("md")
        key_id = new_id()
        scopes = json.dumps({"containers": list(containers), "actions": list(actions)})
        with self._db.write() as connection:
            connection.execute(
                "insert into api_key (id, org_id, name, secret_hash, scopes, created_at_ms) values (?, ?, ?, ?, ?, ?)",
                (key_id, org_id, name, secret_hash(secret), scopes, self._clock.now_ns() // 1_000_000),
            )
        key = ApiKey(id=key_id, org_id=org_id, name=name, containers=tuple(containers), actions=tuple(actions))
        return key, secret

    def authenticate(self, secret: str) -> ApiKey | None:
        """The key with this secret, unless it was revoked. The lookup is by hash, the comparison in constant time."""
        wanted = secret_hash(secret)
        row = self._db.one(
            "select id, org_id, name, scopes, secret_hash from api_key where secret_hash = ? and revoked_at_ms is null",
            (wanted,),
        )
        if row is None or not hmac.compare_digest(row[4], wanted):
            return None
        return _key(row)

    def revoke(self, key_id: str) -> bool:
        """End a key now. Returns whether there was one to end."""
        with self._db.write() as connection:
            connection.execute(
                "update api_key set revoked_at_ms = ? where id = ? and revoked_at_ms is null",
                (self._clock.now_ns() // 1_000_000, key_id),
            )
            return bool(connection.changes())


def _key(row: Row) -> ApiKey:
    scopes = json.loads(row[3])
    return ApiKey(
        id=row[0], org_id=row[1], name=row[2], containers=tuple(scopes["containers"]), actions=tuple(scopes["actions"])
    )
