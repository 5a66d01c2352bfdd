"""API keys: only the SHA-256 of a 256-bit random secret is kept, so that the database gives no key away."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from memdir.core.clock import Clock
from memdir.core.errors import NotFoundError
from memdir.core.ids import new_id, new_secret
from memdir.store.acting import SYSTEM, acting_as
from memdir.store.database import Database, Row, Transaction, first
from memdir.store.errors import ConflictError, InvalidError
from memdir.store.paths import checked_path, is_within
from memdir.store.tree.containers import checked_tag

ACTIONS: Final = ("read", "write", "admin")
NAME_MAX_CHARS: Final = 100
CONTAINERS_MAX: Final = 100
KEYS_MAX: Final = 10_000
"""Of one organisation, revoked ones included until they are swept."""
LIMIT_NAMES: Final = ("requestsPerMinute", "documents", "bytes")
_LIMIT_MAX: Final = (1 << 62) - 1
_COLUMNS: Final = (
    "id, org_id, user_id, name, scopes, limits, created_at_ms, expires_at_ms, last_used_at_ms, revoked_at_ms, rotated_from"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiKey:
    """Who calls, and what it may do. `containers` holds tags; one that ends in `*` stands for all that begin so."""

    id: str
    org_id: str
    name: str
    containers: tuple[str, ...] = ("*",)
    actions: tuple[str, ...] = ACTIONS
    prefix: str = "/"
    """The folder that the key opens, with all below it; `/` is everything."""
    user_id: str | None = None
    limits: dict[str, int] = field(default_factory=dict)
    """Of LIMIT_NAMES; what is absent is unlimited."""
    created_at_ms: int = 0
    expires_at_ms: int | None = None
    last_used_at_ms: int | None = None
    revoked_at_ms: int | None = None
    rotated_from: str | None = None

    def allows(self, action: str, tag: str | None = None) -> bool:
        """Whether the key may do `action` (on container `tag`)."""
        return action in self.actions and (tag is None or self.opens(tag))

    def opens(self, tag: str) -> bool:
        """Whether the container is in its scope."""
        return any(tag == name or (name.endswith("*") and tag.startswith(name[:-1])) for name in self.containers)

    def covers(self, path: str | None) -> bool:
        """Whether a document at `path` is in its scope. One without a place is in that of whole containers only."""
        return self.prefix == "/" or (path is not None and is_within(path, self.prefix))

    @property
    def is_whole(self) -> bool:
        """Whether it opens every container of its organisation, whole: what managing the organisation takes."""
        return "*" in self.containers and self.prefix == "/"

    def expired(self, now_ms: int) -> bool:
        """Whether its time is over."""
        return self.expires_at_ms is not None and self.expires_at_ms <= now_ms


def secret_hash(secret: str) -> bytes:
    """What is stored of a secret."""
    return hashlib.sha256(secret.encode("utf-8", "surrogateescape")).digest()


def checked_limits(limits: dict[str, int], *, names: Iterable[str] = LIMIT_NAMES) -> dict[str, int]:
    """`limits`, or InvalidError for an unknown name or a number that is no bound."""
    for name, value in limits.items():
        if name not in names:
            raise InvalidError(f"there is no limit {name[:50]!r}", hint=f"one of {', '.join(names)}")
        if type(value) is not int or not 0 < value <= _LIMIT_MAX:
            raise InvalidError(f"the limit {name} must be a whole number above 0")
    return dict(limits)


def checked_name(name: str, what: str) -> str:
    """`name` for people to read: 1 to 100 printable characters."""
    if not name.strip() or len(name) > NAME_MAX_CHARS or not name.isprintable():
        raise InvalidError(f"the name of {what} has 1 to {NAME_MAX_CHARS} printable characters")
    return name


class KeyStore:
    """The api_key table. Acts as the system, like `OrgStore`."""

    def __init__(self, db: Database, clock: Clock) -> None:
        self._db = db
        self._clock = clock

    @acting_as(SYSTEM)
    def create(
        self,
        *,
        org_id: str,
        name: str,
        containers: Sequence[str] = ("*",),
        actions: Sequence[str] = ACTIONS,
        prefix: str = "/",
        user_id: str | None = None,
        expires_at_ms: int | None = None,
        limits: dict[str, int] | None = None,
        unique: bool = False,
    ) -> tuple[ApiKey, str]:
        """A new key and its secret; the secret cannot be shown again. With `unique` no other living key of the
        organisation may have the name (ConflictError), so that it can be revoked by it."""
        key = ApiKey(
            id=new_id(),
            org_id=org_id,
            name=checked_name(name, "a key"),
            containers=_checked_containers(containers),
            actions=_checked_actions(actions),
            prefix=checked_path(prefix, root=True),
            user_id=user_id,
            limits=checked_limits(limits or {}),
            created_at_ms=self._now_ms(),
            expires_at_ms=expires_at_ms,
        )
        if key.expired(key.created_at_ms):
            raise InvalidError("a key cannot expire before it is made")
        with self._db.write() as connection:
            self._check_owner(connection, key)
            if unique:
                _check_unique(connection, key)
            return key, self._insert(connection, key)

    @acting_as(SYSTEM)
    def rotate(self, key_id: str, *, keep_ms: int = 0) -> tuple[ApiKey, str]:
        """A new key with the name and scope of another, which ends now, or after `keep_ms` so that its users can change over.
        NotFoundError when there is no such living key."""
        with self._db.write() as connection:
            row = first(connection, f"select {_COLUMNS} from api_key where id = ?", (key_id,))  # noqa: S608
            now_ms = self._now_ms()
            old = None if row is None else _key(row)
            if old is None or old.revoked_at_ms is not None or old.expired(now_ms):
                raise NotFoundError("there is no such key that still opens anything")
            if keep_ms > 0:
                ends_ms = now_ms + keep_ms if old.expires_at_ms is None else min(old.expires_at_ms, now_ms + keep_ms)
                changed = f"{old.name[: NAME_MAX_CHARS - 10]} (replaced)"
                connection.execute("update api_key set expires_at_ms = ?, name = ? where id = ?", (ends_ms, changed, old.id))
            else:
                connection.execute("update api_key set revoked_at_ms = ? where id = ?", (now_ms, old.id))
            key = replace(old, id=new_id(), created_at_ms=now_ms, last_used_at_ms=None, rotated_from=old.id)
            return key, self._insert(connection, key)

    @acting_as(SYSTEM)
    def authenticate(self, secret: str) -> ApiKey | None:
        """The key with this secret, unless it was revoked; whether it expired is the caller's to ask. The lookup is by hash,
        the comparison in constant time."""
        wanted = secret_hash(secret)
        row = self._db.one(
            f"select {_COLUMNS}, secret_hash from api_key where secret_hash = ? and revoked_at_ms is null",  # noqa: S608
            (wanted,),
        )
        if row is None or not hmac.compare_digest(bytes(row[-1]), wanted):
            return None
        return _key(row)

    @acting_as(SYSTEM)
    def all(self, org_id: str) -> list[ApiKey]:
        """Keys of an organisation, living and ended, oldest first."""
        rows = self._db.all(
            f"select {_COLUMNS} from api_key where org_id = ? order by created_at_ms, id limit ?",  # noqa: S608
            (org_id, KEYS_MAX),
        )
        return [_key(row) for row in rows]

    @acting_as(SYSTEM)
    def find(self, org_id: str, name: str) -> ApiKey | None:
        """By id, else the living one of this name."""
        row = self._db.one(
            f"select {_COLUMNS} from api_key where org_id = ? and (id = ? or (name = ? and revoked_at_ms is null)) "  # noqa: S608
            "order by case when id = ? then 0 else 1 end, created_at_ms desc limit 1",
            (org_id, name, name, name),
        )
        return None if row is None else _key(row)

    @acting_as(SYSTEM)
    def revoke(self, key_id: str) -> bool:
        """End a key now. Returns whether there was one to end."""
        with self._db.write() as connection:
            connection.execute(
                "update api_key set revoked_at_ms = ? where id = ? and revoked_at_ms is null", (self._now_ms(), key_id)
            )
            return bool(connection.changes())

    @acting_as(SYSTEM)
    def used(self, at_ms_by_key: Mapping[str, int]) -> None:
        """Note when keys were used; called for many at a time, minutes apart."""
        with self._db.write() as connection:
            for key_id, at_ms in at_ms_by_key.items():
                connection.execute("update api_key set last_used_at_ms = ? where id = ?", (at_ms, key_id))

    def _now_ms(self) -> int:
        return self._clock.now_ns() // 1_000_000

    def _check_owner(self, connection: Transaction, key: ApiKey) -> None:
        if first(connection, "select 1 from org where id = ?", (key.org_id,)) is None:
            raise NotFoundError(f"there is no organisation {key.org_id!r}")
        if key.user_id is not None:
            known = first(connection, "select 1 from app_user where id = ? and org_id = ?", (key.user_id, key.org_id))
            if known is None:
                raise NotFoundError("there is no such user in this organisation")

    def _insert(self, connection: Transaction, key: ApiKey) -> str:
        count = first(connection, "select count(*) from api_key where org_id = ?", (key.org_id,))
        if count is not None and count[0] >= KEYS_MAX:
            raise ConflictError(f"an organisation can have at most {KEYS_MAX} keys, ended ones included")
        secret = new_secret("md")
        scopes = json.dumps({"containers": key.containers, "actions": key.actions, "prefix": key.prefix})
        connection.execute(
            "insert into api_key (id, org_id, user_id, name, secret_hash, scopes, limits, created_at_ms, expires_at_ms, "
            "rotated_from) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                key.id, key.org_id, key.user_id, key.name, secret_hash(secret), scopes, json.dumps(key.limits),
                key.created_at_ms, key.expires_at_ms, key.rotated_from,
            ),
        )  # fmt: skip
        return secret


def _check_unique(connection: Transaction, key: ApiKey) -> None:
    same = "select 1 from api_key where org_id = ? and name = ? and revoked_at_ms is null and coalesce(expires_at_ms, ?) >= ?"
    if first(connection, same, (key.org_id, key.name, _LIMIT_MAX, key.created_at_ms)) is not None:
        raise ConflictError(f"there is a key {key.name!r} already", hint="choose another name, or revoke or rotate it")


def _checked_containers(containers: Sequence[str]) -> tuple[str, ...]:
    if not 0 < len(containers) <= CONTAINERS_MAX:
        raise InvalidError(f"a key opens 1 to {CONTAINERS_MAX} containers", hint="'*' stands for all of them")
    for name in containers:
        if name != "*":
            checked_tag(name.removesuffix("*"))
    return tuple(dict.fromkeys(containers))


def _checked_actions(actions: Sequence[str]) -> tuple[str, ...]:
    unknown = [action for action in actions if action not in ACTIONS]
    if unknown or not actions:
        raise InvalidError("a key may do one or more of " + ", ".join(ACTIONS))
    return tuple(action for action in ACTIONS if action in actions)


def _key(row: Row) -> ApiKey:
    scopes = json.loads(row[4])
    return ApiKey(
        id=row[0],
        org_id=row[1],
        user_id=row[2],
        name=row[3],
        containers=tuple(scopes["containers"]),
        actions=tuple(scopes["actions"]),
        prefix=scopes.get("prefix", "/"),
        limits=json.loads(row[5]),
        created_at_ms=row[6],
        expires_at_ms=row[7],
        last_used_at_ms=row[8],
        revoked_at_ms=row[9],
        rotated_from=row[10],
    )
