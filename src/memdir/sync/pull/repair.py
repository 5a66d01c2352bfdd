"""The repair pass: now and then the server's listing is compared with the `remote` facts, to find what the feed never told.

The feed is enough as long as server, network and disk do what they promise. When something was missed all the same, nothing
else would ever notice: the facts look settled. So about every hour the listing is read, a page at each turn of the feed's
thread, and each page is compared with the same range of `remote` (both are in the order of the paths' bytes). A page is of one
moment and the facts are of another, so a difference counts when both are at the same number of the server's history, or when it
is still the very same one after the feed was read again and again. Only differences lead to `Scanner.compare_everything`, which
heals them and deletes no more than `MaxDelete` allows; without any nothing is written but the time of the pass.

Memory is bound by one page. A plain server has a scan of its own (`sync.plain`) and is left to it.
"""

from __future__ import annotations

import logging
import random
import threading
from collections import Counter
from dataclasses import dataclass, field
from typing import Final

from memdir.api.v1 import FilesPage
from memdir.client.errors import ClientError, OfflineError
from memdir.sync.context import Context
from memdir.sync.facts import fact_of
from memdir.sync.model import PLAIN_EPOCH, Fact
from memdir.sync.pull.puller import Puller
from memdir.sync.pull.scanner import RESCAN_KEY

log = logging.getLogger(__name__)

PERIOD_S: Final = 3600.0
"""At most so long after a pass comes the next, or as soon as the server is there again: so it runs after every hour without
connection."""
_EARLIEST: Final = 0.75
"""A pass comes after a random part of the period between this and all of it, so that mounts do not ask in step."""
SPREAD_S: Final = 60.0
"""A pass that is overdue, after a start or a time without server, begins within so long: others were waiting, too."""
_LATE_S: Final = 120.0
AGAIN_S: Final = 600.0
"""After a pass that broke off."""
TRIES: Final = 5
"""So often a page is read that differs while the server's history moves on."""
_SHOWN: Final = 3
_EXTRA_ROWS: Final = 1000
"""So many facts more than a page has entries are read with it; yet more only make the count too low."""
DONE_KEY: Final = "repair_ms"
"""In `meta`: when the last pass ended, by the wall clock."""
_MISSED, _GONE, _OTHER = "not known here", "known only here", "other than known"

_Difference = tuple[str, Fact | None, Fact | None]
"""Path, what is known here, what is there."""


@dataclass(slots=True, kw_only=True)
class _Pass:
    """One that is under way."""

    epoch: str
    after: str | None = None
    """What was read so far."""
    tries: int = 0
    suspects: frozenset[_Difference] = frozenset()
    """What differed at each try of the present page."""
    counts: Counter[str] = field(default_factory=Counter)
    shown: list[str] = field(default_factory=list)


class Repair:
    """Thread-safe; one thread at a time gets ahead. Begun by the clock (`step_if_due`) or at once (`run`)."""

    def __init__(self, ctx: Context, puller: Puller, rng: random.Random) -> None:
        self._ctx = ctx
        self._puller = puller
        self._rng = rng
        self._stepping = threading.Lock()
        self._pass: _Pass | None = None
        self._due_s: float | None = None

    def run(self) -> int:
        """A whole pass in this thread, with the feed read as it goes; how many paths differed. ClientError."""
        with self._stepping:
            self._puller.read_all()
            self._pass = None
            begun = self._begun()
            while begun is not None and self._step(begun):
                self._puller.read_all()
            return 0 if begun is None else begun.counts.total()

    def step_if_due(self) -> bool:
        """Read and compare one page when a pass is due or under way; to be called with the feed read to its end. True when it
        wants to go on at once. ClientError: everything had to be compared, and that failed."""
        if not self._stepping.acquire(blocking=False):
            return False  # a thread whose call hangs has it
        try:
            if self._pass is None:
                with self._puller.at_rest() as is_open:
                    if not is_open or not self._is_due():
                        return False
            begun = self._begun()
            return begun is not None and self._step(begun)
        finally:
            self._stepping.release()

    # --- when ----------------------------------------------------------------------------------------------------

    def _is_due(self) -> bool:
        now_s = self._ctx.clock.monotonic_s()
        if self._due_s is None:
            self._due_s = now_s + self._first_s()
        elif now_s > self._due_s + _LATE_S:
            self._due_s = now_s + self._rng.uniform(0.0, SPREAD_S)
        return now_s >= self._due_s

    def _first_s(self) -> float:
        """After a start: the wall clock says how long ago the last pass was, and is not believed when it was put back."""
        done_ms = self._ctx.facts.number(DONE_KEY)
        if not done_ms:
            self._note_done()  # everything was compared when the mount met its server
            return self._period_s()
        left_s = self._period_s() - (self._ctx.now_ms() - done_ms) / 1000
        return left_s if 0.0 < left_s <= PERIOD_S else self._rng.uniform(0.0, SPREAD_S)

    def _period_s(self) -> float:
        return self._rng.uniform(_EARLIEST, 1.0) * PERIOD_S

    def _note_done(self) -> None:
        with self._ctx.queue.transaction() as tx:
            self._ctx.facts.set_value(tx, DONE_KEY, self._ctx.now_ms())

    def _end(self, wait_s: float) -> None:
        self._pass = None
        self._due_s = self._ctx.clock.monotonic_s() + wait_s

    # --- a step --------------------------------------------------------------------------------------------------

    def _begun(self) -> _Pass | None:
        """The pass under way, or a new one; None when none makes sense: everything is to be compared anyway, or the server is
        one with a scan of its own."""
        facts = self._ctx.facts
        with self._puller.at_rest() as is_open:
            if not is_open:
                return None
            epoch = facts.text("epoch")
            if not epoch or facts.text(RESCAN_KEY) or epoch.startswith(PLAIN_EPOCH):
                self._end(AGAIN_S)
                return None
            if self._pass is None or self._pass.epoch != epoch:
                self._pass = _Pass(epoch=epoch)
            return self._pass

    def _step(self, begun: _Pass) -> bool:
        """Compare one page; True when there is more to do at once."""
        ctx = self._ctx
        try:
            page = ctx.link.call(lambda client: client.list_files(ctx.container, after=begun.after))
        except ClientError as error:
            if not isinstance(error, OfflineError):
                log.warning("the repair pass broke off: %s", error.message)
            self._end(AGAIN_S)
            return False
        with self._puller.at_rest() as is_open:
            if not is_open:
                return False
            if page.epoch != begun.epoch or ctx.facts.text("epoch") != begun.epoch:
                self._end(AGAIN_S)  # the feed finds out as well, and compares everything
                return False
            if not self._judge(begun, page):
                return True
            if page.next_after is not None:
                begun.after, begun.tries, begun.suspects = page.next_after, 0, frozenset()
                return True
            self._end(self._period_s())
        self._conclude(begun)
        with self._puller.at_rest() as is_open:
            if is_open:
                self._note_done()
        return False

    def _judge(self, begun: _Pass, page: FilesPage) -> bool:
        """Compare; False when the page has to be read once more behind the feed."""
        found = self._differences(begun.after, page)
        begun.suspects = begun.suspects & found if begun.tries else found
        begun.tries += 1
        if begun.suspects and page.last_seq != self._ctx.facts.watermark and begun.tries < TRIES:
            return False
        for path, known, there in sorted(begun.suspects, key=lambda difference: difference[0]):
            begun.counts[_MISSED if known is None else _GONE if there is None else _OTHER] += 1
            if len(begun.shown) < _SHOWN:
                begun.shown.append(path)
        return True

    def _differences(self, after: str | None, page: FilesPage) -> frozenset[_Difference]:
        there = {entry.path: fact_of(entry) for entry in page.entries}
        known = self._ctx.facts.remote_between(after, page.next_after, limit=len(there) + _EXTRA_ROWS)
        paths = there.keys() | known.keys()
        return frozenset((path, known.get(path), there.get(path)) for path in paths if known.get(path) != there.get(path))

    def _conclude(self, begun: _Pass) -> None:
        if not begun.counts:
            log.debug("the repair pass found nothing")
            return
        log.warning(
            "the repair pass found %d paths that differ from the server (%s), such as %s: comparing everything",
            begun.counts.total(), ", ".join(f"{count} {what}" for what, count in begun.counts.items()),
            ", ".join(map(repr, begun.shown)),
        )  # fmt: skip
        self._puller.compare_everything("repair")
