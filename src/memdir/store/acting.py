"""For whom the current work is done: the second wall between organisations.

The first wall is in the queries: each names its container or organisation. An engine that can hold the wall itself (row-level
security in PostgreSQL) reads from here whose rows a connection may see. Whoever forgets to say sees nothing.

The value travels with the context of a call: into coroutines, and into threads that are started with a copy of the context.
A new thread begins as nobody.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

SYSTEM: Final = "*"
"""All organisations: looking up a key, handing out jobs, migrating. Never while a client's request is carried out."""
NOBODY: Final = ""

_acting: ContextVar[str | None] = ContextVar("memdir_acting", default=None)


def acting() -> str | None:
    """The organisation that is worked for, SYSTEM, NOBODY, or None when nobody said."""
    return _acting.get()


@contextmanager
def acting_as(org_id: str) -> Iterator[None]:
    """Work for an organisation (or SYSTEM) inside the block, or inside the function it decorates."""
    token = _acting.set(org_id)
    try:
        yield
    finally:
        _acting.reset(token)


@contextmanager
def narrowed_to(org_id: str) -> Iterator[None]:
    """Work of the system on what belongs to one organisation is done as that organisation; an organisation stays the one it
    is, and meets the wall when it should not be here."""
    if _acting.get() in (None, SYSTEM):
        with acting_as(org_id):
            yield
    else:
        yield


def act_as(org_id: str) -> None:
    """From here on, to the end of the current context (a request, a thread)."""
    _acting.set(org_id)
