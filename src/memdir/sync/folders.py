"""What stands below a path, as the planner asks for it, and the steps for a folder that cannot go yet or not at all."""

from __future__ import annotations

from memdir.sync.context import Context
from memdir.sync.model import Below, Fact, Row, Step
from memdir.sync.planner import plan
from memdir.sync.push.intake import walk


class Folders:
    """For the rows of one worker; what is below a claimed path is claimed by nobody else."""

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx

    def here(self, path: str) -> Below:
        """What stands below `path` in the mount. Ends its walk at the first thing that goes. LocalChangedError."""
        ctx = self._ctx
        stays = leftover = False
        for below in walk(ctx, path, local_too=True):
            if below == path:
                continue
            if ctx.tree.is_local_only(below):
                leftover = True
                continue
            entry = ctx.tree.fact(below)
            if entry is None:
                continue
            remote, base = ctx.facts.remote_and_base(below)
            step = plan(ctx.local.fact_of(entry), remote, base).step
            if step is Step.DELETE_LOCAL and not ctx.facts.is_held(below):
                return Below(stays=stays, goes=True, leftover=leftover)
            if entry.kind != "dir" or base is not None or remote is not None or self._is_new_folder(below):
                stays = True
        return Below(stays=stays, leftover=leftover)

    def _is_new_folder(self, path: str) -> bool:
        """Else it is there only for what was put into it, and goes with the last of that."""
        return self._ctx.queue.row(path) is not None or not self._ctx.tree.children(path)

    def there(self, path: str) -> Below:
        """What stands below `path` at the server, when nothing does in the mount."""
        return self._ctx.facts.below(path)

    def known_facts(self, path: str) -> list[tuple[str, Fact]]:
        """What the server holds strictly below `path`, as far as is known."""
        facts = self._ctx.facts
        found = ((known, facts.remote(known)) for known in facts.known_under(path) if known != path)
        return [(known, fact) for known, fact in found if fact is not None]

    def carry_out(self, row: Row, step: Step) -> None:
        """KEEP, WAIT or RELEASE, as the planner means them."""
        ctx = self._ctx
        below = self._without_row(row.path)
        with ctx.queue.transaction() as tx:
            if step is Step.RELEASE:
                ctx.facts.set_base(tx, row.path, None)
                ctx.queue.finished(tx, row)
                return
            ctx.queue.add_all(tx, reversed(below))  # what goes, goes from the deepest on
            if step is Step.KEEP:
                ctx.facts.set_base(tx, row.path, None)
                ctx.queue.again(tx, row)
            else:
                ctx.queue.behind(tx, row, "waits for what stands in the folder")

    def spread(self, row: Row) -> None:
        """A row that stood for all that went from the folder cannot be done in one step: look at each path by itself, also at
        what was made there since."""
        ctx = self._ctx
        below = self._without_row(row.path)
        known = set(below)
        below += [path for path in walk(ctx, row.path) if path not in known and ctx.queue.row(path) is None]
        with ctx.queue.transaction() as tx:
            ctx.queue.add_all(tx, reversed(below))
            ctx.queue.narrow(tx, row)

    def _without_row(self, path: str) -> list[str]:
        """What is known below `path` and does not wait yet, parents first."""
        ctx = self._ctx
        return [below for below in ctx.facts.known_under(path) if below != path and ctx.queue.row(below) is None]
