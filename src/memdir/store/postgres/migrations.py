"""Making the schema, and bringing an older one up to date: numbered steps, each a transaction, one process at a time."""

from __future__ import annotations

import logging
from typing import Any, Final

import psycopg
from psycopg import errors as pg

from memdir.core.errors import MemdirError, StorageError, VersionError
from memdir.core.sqlite import migration_steps
from memdir.store.postgres.database import APP_ROLE, KEEP_ALIVE, SCHEMA
from memdir.store.postgres.dialect import explained, first_line, lost

log = logging.getLogger(__name__)

MIGRATIONS: Final = "memdir.store.postgres.schema"
_LOCK: Final = 0x6D656D646972  # "memdir"
_HINT: Final = "is the server running, and are MEMDIR_DATABASE_URL and the password right?"

_VERSIONS: Final = b"""
create table schema_version (version integer primary key, at timestamptz not null default now());
comment on table schema_version is 'Migrations that were applied';
comment on column schema_version.version is 'Number of the migration';
comment on column schema_version.at is 'When it was applied';
"""


def migrate(url: str) -> tuple[int, int]:
    """Make or update the schema at `url`. Returns the version before and after; processes that start together wait for each
    other.

    StorageError when the database cannot be reached or lets us not; VersionError when a newer memdir made the schema.
    """
    steps = migration_steps(MIGRATIONS)
    try:
        with psycopg.connect(url, autocommit=True, **KEEP_ALIVE) as connection:
            connection.execute("select pg_advisory_lock(%s)", (_LOCK,))
            before = _version(connection)
            if before > len(steps):
                raise VersionError(
                    f"the database was made by a newer memdir (schema {before}, this one knows up to {len(steps)})",
                    hint="upgrade memdir; the database was not touched",
                )
            if before < len(steps):
                _prepare(connection)
                for number in range(before + 1, len(steps) + 1):
                    _step(connection, number, steps[number - 1])
                log.info("the database's schema is now at version %d", len(steps))
            return before, len(steps)
    except pg.InsufficientPrivilege as error:
        raise StorageError(
            f"the database does not let us make or change its schema: {first_line(error)}",
            hint=f"let the owner of the schema {SCHEMA} run `memdir server migrate`",
        ) from error
    except psycopg.Error as error:
        known: MemdirError | psycopg.Error = explained(error)
        if lost(error):
            known = StorageError(f"the database cannot be reached: {first_line(error)}", hint=_HINT)
        raise known from error


def versions(url: str) -> tuple[int, int]:
    """Version of the schema at `url`, 0 without one, and the one that this memdir makes. Changes nothing. StorageError."""
    try:
        with psycopg.connect(url, autocommit=True, **KEEP_ALIVE) as connection:
            return _version(connection), len(migration_steps(MIGRATIONS))
    except psycopg.Error as error:
        raise StorageError(f"the database cannot be reached: {first_line(error)}", hint=_HINT) from error


def _version(connection: psycopg.Connection[Any]) -> int:
    row = connection.execute("select to_regclass(%s)::text", (f"{SCHEMA}.schema_version",)).fetchone()
    if row is None or row[0] is None:
        return 0
    found = connection.execute(f"select coalesce(max(version), 0) from {SCHEMA}.schema_version").fetchone()  # noqa: S608
    return 0 if found is None else int(found[0])


def _prepare(connection: psycopg.Connection[Any]) -> None:
    """The schema, and the role without rights of its own that servers work as. Without the right to make roles the login
    itself stands behind the wall, unless it is one that walls do not hold."""
    if connection.execute("select from pg_namespace where nspname = %s", (SCHEMA,)).fetchone() is None:
        connection.execute(f"create schema {SCHEMA}")
    try:
        if connection.execute("select from pg_roles where rolname = %s", (APP_ROLE,)).fetchone() is None:
            connection.execute(f"create role {APP_ROLE} nologin nosuperuser nobypassrls")
        connection.execute(f"grant {APP_ROLE} to session_user")
    except (pg.DuplicateObject, pg.UniqueViolation):  # another database of this server is being prepared at the same time
        connection.execute(f"grant {APP_ROLE} to session_user")
    except pg.InsufficientPrivilege:
        row = connection.execute("select rolsuper or rolbypassrls from pg_roles where rolname = session_user").fetchone()
        if row is None or row[0]:
            raise
        log.warning("no right to make or take the role %s: servers work as the owner of the tables", APP_ROLE)


def _step(connection: psycopg.Connection[Any], number: int, sql: str) -> None:
    """One migration, whole or not at all, and what the servers' role may do with the tables then."""
    role = connection.execute(
        "select from pg_roles where rolname = %s and pg_has_role(session_user, oid, 'member')", (APP_ROLE,)
    ).fetchone()
    with connection.transaction():
        connection.execute(f"set local search_path = {SCHEMA}, public")
        if number == 1:
            connection.execute(
                "create table schema_version (version integer primary key, at timestamptz not null default now())"
            )
            connection.execute("comment on table schema_version is 'Migrations that were applied'")
            connection.execute("comment on column schema_version.version is 'Number of the migration'")
            connection.execute("comment on column schema_version.at is 'When it was applied'")
        connection.execute(sql.encode())
        connection.execute("insert into schema_version (version) values (%s)", (number,))
        if role is not None:
            connection.execute(f"grant usage on schema {SCHEMA} to {APP_ROLE}")
            connection.execute(f"grant select, insert, update, delete on all tables in schema {SCHEMA} to {APP_ROLE}")
            connection.execute(f"revoke insert, update, delete on schema_version from {APP_ROLE}")
            connection.execute(f"grant usage, select on all sequences in schema {SCHEMA} to {APP_ROLE}")
