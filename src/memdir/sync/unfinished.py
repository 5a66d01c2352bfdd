"""What is left in a mount: to be done by the engine, or to be decided by a person. For people who ask; nothing is done here."""

from __future__ import annotations

from memdir.sync.conflicts.copies import Conflict, keep_both, unsettled
from memdir.sync.context import Context
from memdir.sync.push.pending import Waiting, waiting


class Left:
    """Thread-safe, as the queue and the facts are."""

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx

    def waiting(self, limit: int) -> list[Waiting]:
        """What waits or is parked, since when and why."""
        return waiting(self._ctx, limit)

    def conflicts(self, limit: int) -> list[Conflict]:
        """Conflict copies that wait for a decision, of any machine, newest first."""
        return unsettled(self._ctx, limit)

    def keep_both(self, path: str) -> bool:
        """Forget that `path` is a conflict copy; False when it is none."""
        return keep_both(self._ctx, path)

    def is_pushed(self, scope: str) -> bool:
        """Whether the server has all that stands at and below `scope`: nothing waits there, nothing is parked."""
        return not self._ctx.queue.count_under(scope)

    def parked_under(self, scope: str) -> int:
        """How many paths at and below `scope` are parked."""
        return self._ctx.queue.count_under(scope, only_parked=True)

    def progress(self) -> tuple[int, int]:
        """How many changes wait, and how many were pushed in this run. Cheap."""
        return self._ctx.queue.lengths()[0], self._ctx.counters.pushed
