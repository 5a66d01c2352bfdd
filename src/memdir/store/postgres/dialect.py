"""From the placeholders that the stores write to those that psycopg reads, and from PostgreSQL's errors to the stores'."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

import psycopg
from psycopg import errors as pg

from memdir.core.errors import BusyError, MemdirError, StorageError
from memdir.store.errors import ContentionError, DiskFullError, InvalidError

_STATEMENTS_KEPT: Final = 2048
_TOKEN: Final = re.compile(
    r"""
    (?P<kept>'(?:[^']|'')*' | "(?:[^"]|"")*" | --[^\n]* | /\*.*?\*/ | ::)   # no placeholder inside; `::` is a cast
    | (?P<mark>\?)
    | :(?P<name>[A-Za-z_]\w*)
    | (?P<empty>\bin\s*\(\s*\))
    | (?P<percent>%)
    """,
    re.VERBOSE | re.DOTALL | re.IGNORECASE,
)


@lru_cache(maxsize=_STATEMENTS_KEPT)
def translated(sql: str) -> str:
    """`?` and `:name` as psycopg's `%s` and `%(name)s`, a percent sign doubled. What is quoted stays as it is. An empty
    `in ()`, which PostgreSQL has no word for, is one that nothing is in."""
    return _TOKEN.sub(_replacement, sql)


def _replacement(token: re.Match[str]) -> str:
    if token["mark"]:
        return "%s"
    if token["name"]:
        return f"%({token['name']})s"
    if token["empty"]:
        return "in (null)"
    return token[0].replace("%", "%%")


def lost(error: BaseException) -> bool:
    """Whether the connection is gone, so that another one may do better."""
    return isinstance(error, (psycopg.OperationalError, psycopg.InterfaceError)) and not isinstance(
        error, (pg.DiskFull, pg.DeadlockDetected, pg.SerializationFailure, pg.LockNotAvailable, pg.QueryCanceled)
    )


_NUL: Final = "the text holds U+0000, which cannot be stored"
_MEANINGS: Final[tuple[tuple[tuple[type[psycopg.Error], ...], type[MemdirError], str, str], ...]] = (
    (
        (pg.DeadlockDetected, pg.SerializationFailure),
        ContentionError,
        "others were writing the same things at the same time",
        "try again",
    ),
    ((pg.DiskFull,), DiskFullError, "the disk of the database server is full", "make room there; nothing was changed"),
    (
        (pg.TooManyConnections,),
        BusyError,
        "the database takes no further connection",
        "raise max_connections there, or run fewer server processes",
    ),
    (
        (pg.ReadOnlySqlTransaction,),
        StorageError,
        "the database only lets us read",
        "point the server at the primary, not at a replica",
    ),
    ((pg.QueryCanceled, pg.LockNotAvailable), BusyError, "the database took too long", "try again in a few seconds"),
    (
        (pg.UntranslatableCharacter, pg.CharacterNotInRepertoire),
        InvalidError,
        "the text holds U+0000, which cannot be stored",
        "",
    ),
)


def explained(error: psycopg.Error) -> MemdirError | psycopg.Error:
    """What a refusal of PostgreSQL means to a caller; the error itself when it is a mistake of ours."""
    for kinds, meaning, message, hint in _MEANINGS:
        if isinstance(error, kinds):
            return meaning(message, hint=hint)
    if isinstance(error, psycopg.DataError) and "NUL" in str(error):
        return InvalidError(_NUL)
    if lost(error):
        return BusyError(f"the database cannot be reached: {first_line(error)}", hint="try again in a few seconds")
    return error


def first_line(error: BaseException) -> str:
    """The first line of an error's text; libpq's texts may have several, and hints that help nobody here."""
    return (str(error).strip() or type(error).__name__).splitlines()[0]
