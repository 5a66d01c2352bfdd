"""Whether somebody will be told that a commit happened: then it must survive a power cut before `write()` ends.

What a client is answered is a promise. What a worker notes between two steps is none: it is repeated after a crash. The value
travels with the context of a call; an engine that syncs every commit anyway has no use for it.
"""

from __future__ import annotations

from contextvars import ContextVar, copy_context
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from contextvars import Context

_PROMISED: Final[ContextVar[bool]] = ContextVar("memdir_promised", default=False)


def promised() -> bool:
    """Whether the current call answers to a client."""
    return _PROMISED.get()


def promising() -> Context:
    """A copy of the current context, in which every commit is a promise."""
    context = copy_context()
    context.run(_PROMISED.set, True)
    return context
