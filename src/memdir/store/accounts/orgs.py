"""Organisations and the people in them. What belongs to one is never seen by another: every query names its id."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Final

from memdir.core.clock import Clock
from memdir.core.errors import NotFoundError
from memdir.core.ids import new_id
from memdir.store.accounts.keys import checked_limits, checked_name
from memdir.store.acting import SYSTEM, acting_as
from memdir.store.database import Database, Row, fetch, first
from memdir.store.errors import ConflictError, InvalidError
from memdir.store.paths import below

ORG_LOCAL: Final = "local"
"""The server's own organisation; it is always there, and its admin keys manage the others."""
ORGS_MAX: Final = 10_000
USERS_MAX: Final = 10_000
"""Of one organisation."""
ORG_LIMITS: Final = ("documents", "bytes")
_EMAIL_MAX_CHARS: Final = 254


@dataclass(frozen=True, slots=True, kw_only=True)
class Organisation:
    """Owner of containers and keys."""

    id: str
    name: str
    limits: dict[str, int]
    """Of ORG_LIMITS; what is absent is unlimited."""
    created_at_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class User:
    """A person; keys may belong to one."""

    id: str
    org_id: str
    name: str
    email: str
    created_at_ms: int


class OrgStore:
    """The org and app_user tables, managed by one organisation for all: its methods act as the system, and name whose rows they
    mean."""

    def __init__(self, db: Database, clock: Clock) -> None:
        self._db = db
        self._clock = clock

    @acting_as(SYSTEM)
    def create(self, name: str, *, limits: dict[str, int] | None = None) -> Organisation:
        """A new organisation; ConflictError when the name is taken."""
        org = Organisation(
            id=new_id(),
            name=checked_name(name, "an organisation"),
            limits=checked_limits(limits or {}, names=ORG_LIMITS),
            created_at_ms=self._now_ms(),
        )
        with self._db.write() as connection:
            if first(connection, "select 1 from org where name = ? or id = ?", (name, name)) is not None:
                raise ConflictError(f"there is an organisation {name!r} already")
            if fetch(connection, "select count(*) from org")[0][0] >= ORGS_MAX:
                raise ConflictError(f"there can be at most {ORGS_MAX} organisations")
            connection.execute(
                "insert into org (id, name, limits, created_at_ms) values (?, ?, ?, ?)",
                (org.id, org.name, json.dumps(org.limits), org.created_at_ms),
            )
        return org

    @acting_as(SYSTEM)
    def find(self, name: str) -> Organisation | None:
        """By id or name."""
        row = self._db.one(
            "select id, name, limits, created_at_ms from org where id = ? or name = ? "
            "order by case when id = ? then 0 else 1 end limit 1",
            (name, name, name),
        )
        return None if row is None else _org(row)

    @acting_as(SYSTEM)
    def all(self) -> list[Organisation]:
        """By name."""
        rows = self._db.all("select id, name, limits, created_at_ms from org order by name limit ?", (ORGS_MAX,))
        return [_org(row) for row in rows]

    @acting_as(SYSTEM)
    def remove(self, org_id: str) -> None:
        """An organisation that holds no container, with its people and keys. ConflictError when it holds one."""
        if org_id == ORG_LOCAL:
            raise InvalidError("the server's own organisation cannot be removed")
        with self._db.write() as connection:
            rows = fetch(connection, "select tag from container where org_id = ? order by tag limit 4", (org_id,))
            if rows:
                tags = ", ".join(row[0] for row in rows[:3]) + (", …" if len(rows) > 3 else "")
                raise ConflictError(f"the organisation still holds containers: {tags}", hint="delete them first")
            connection.execute("delete from api_key where org_id = ?", (org_id,))
            connection.execute("delete from org where id = ?", (org_id,))
            if not connection.changes():
                raise NotFoundError("there is no such organisation")

    @acting_as(SYSTEM)
    def usage(self, org_id: str) -> tuple[int, int]:
        """How many files an organisation holds, and their bytes."""
        row = self._db.one(
            "select count(*), coalesce(sum(d.size_bytes), 0) from document d join container k on k.id = d.container_id "
            "where k.org_id = ? and d.kind = 'file'",
            (org_id,),
        )
        assert row is not None
        return int(row[0]), int(row[1])

    @acting_as(SYSTEM)
    def usage_by_tag(self, org_id: str, folder: str) -> dict[str, tuple[int, int]]:
        """Files and their bytes in each container of an organisation, below `folder`. Containers without any are absent."""
        condition = ""
        bindings: tuple[str, ...] = ()
        if folder != "/":
            condition, bindings = "and (d.path = ? or (d.path >= ? and d.path < ?)) ", (folder, *below(folder))
        rows = self._db.all(
            "select k.tag, count(*), coalesce(sum(d.size_bytes), 0) from document d join container k on k.id = d.container_id "  # noqa: S608
            f"where k.org_id = ? and d.kind = 'file' {condition}group by k.tag",
            (org_id, *bindings),
        )
        return {row[0]: (int(row[1]), int(row[2])) for row in rows}

    @acting_as(SYSTEM)
    def add_user(self, org_id: str, name: str, *, email: str = "") -> User:
        """A person of an organisation; ConflictError when the name is taken there."""
        if len(email) > _EMAIL_MAX_CHARS or not email.isprintable() or (email and "@" not in email[1:-1]):
            raise InvalidError(f"{email[:80]!r} is no e-mail address")
        user = User(id=new_id(), org_id=org_id, name=checked_name(name, "a user"), email=email, created_at_ms=self._now_ms())
        with self._db.write() as connection:
            if first(connection, "select 1 from org where id = ?", (org_id,)) is None:
                raise NotFoundError("there is no such organisation")
            if first(connection, "select 1 from app_user where org_id = ? and name = ?", (org_id, name)) is not None:
                raise ConflictError(f"there is a user {name!r} already")
            if fetch(connection, "select count(*) from app_user where org_id = ?", (org_id,))[0][0] >= USERS_MAX:
                raise ConflictError(f"an organisation can have at most {USERS_MAX} users")
            connection.execute(
                "insert into app_user (id, org_id, name, email, created_at_ms) values (?, ?, ?, ?, ?)",
                (user.id, org_id, name, email, user.created_at_ms),
            )
        return user

    @acting_as(SYSTEM)
    def user(self, org_id: str, name: str) -> User | None:
        """By id or name."""
        row = self._db.one(
            "select id, org_id, name, email, created_at_ms from app_user where org_id = ? and (id = ? or name = ?) "
            "order by case when id = ? then 0 else 1 end limit 1",
            (org_id, name, name, name),
        )
        return None if row is None else _user(row)

    @acting_as(SYSTEM)
    def users(self, org_id: str) -> list[User]:
        """People of an organisation by name."""
        rows = self._db.all(
            "select id, org_id, name, email, created_at_ms from app_user where org_id = ? order by name limit ?",
            (org_id, USERS_MAX),
        )
        return [_user(row) for row in rows]

    @acting_as(SYSTEM)
    def remove_user(self, org_id: str, user_id: str) -> int:
        """A person goes, and all keys of theirs end. Returns how many keys were ended."""
        with self._db.write() as connection:
            connection.execute("delete from app_user where org_id = ? and id = ?", (org_id, user_id))
            if not connection.changes():
                raise NotFoundError("there is no such user")
            connection.execute(
                "update api_key set revoked_at_ms = ? where org_id = ? and user_id = ? and revoked_at_ms is null",
                (self._now_ms(), org_id, user_id),
            )
            return connection.changes()

    def _now_ms(self) -> int:
        return self._clock.now_ns() // 1_000_000


def _org(row: Row) -> Organisation:
    return Organisation(id=row[0], name=row[1], limits=json.loads(row[2]), created_at_ms=row[3])


def _user(row: Row) -> User:
    return User(id=row[0], org_id=row[1], name=row[2], email=row[3], created_at_ms=row[4])
