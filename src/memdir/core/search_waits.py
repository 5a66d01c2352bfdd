"""How long a search waits for what was saved before it. Pure."""

from __future__ import annotations

from typing import Final

SEARCH_WAIT_SOON_MS: Final = 150
"""How long `memdir grep` waits for what was saved just before: an edit is pushed and read in some 60 ms."""
SEARCH_WAIT_FILES_MAX: Final = 16
"""An answer that has nothing sure is waited for longer, while no more files than these are on their way: more are an import,
which takes minutes."""


def is_worth_waiting(unpushed: int, pending: int, half_read: int) -> bool:
    """Whether a search that found nothing sure may soon find more. `unpushed`: files that the server does not have as they are
    here; `pending`, `half_read`: what the answer says. An edit is worth it beside an import, too."""
    soon = max(half_read, pending if pending <= SEARCH_WAIT_FILES_MAX else 0)
    return 0 < unpushed + soon <= SEARCH_WAIT_FILES_MAX
