"""Bringing the bytes of absent files from the server, whoever wants them: a reader that waits, a push, the prefetch.

An absent file names its contents by hash, so it does not matter under which path the server has them: the file may have been
renamed here, or there. What arrives is checked against that hash before anybody sees it (`SyncTree.fill`).
"""

from __future__ import annotations

import errno
import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from memdir.client.errors import ConflictError, NotFoundError, OfflineError, RejectedError
from memdir.core.errors import MemdirError
from memdir.core.limits import KIB, READ_MAX_ITEMS
from memdir.fs.errors import FsError
from memdir.fs.source import Brought
from memdir.fs.tree import ContentsMismatchError, LocalChangedError
from memdir.fs.types import LocalFact
from memdir.sync.contents.former import former_version
from memdir.sync.context import Context, is_wire_name
from memdir.sync.model import Fact

log = logging.getLogger(__name__)

WORKERS: Final = 4
"""Files fetched at once for readers that wait."""
WAITING_MAX: Final = 4096
"""Readers that wait; whoever comes behind them gets EIO at once."""
STALL_S: Final = 10.0
"""A server that sends nothing for so long is taken for dead."""
_TRIES: Final = 3
_PLACES_MAX: Final = 8
"""Paths of the server that are tried for the same contents."""
SMALL_MAX_BYTES: Final = 64 * KIB
"""Files up to here come several in one call."""
_AHEAD_MAX_BYTES: Final = 256 * KIB
"""Of what comes along for a reader, who waits for all of it."""
_DEPENDENTS_MAX: Final = 1000
_RETRY_S: Final = 1.0
"""While the server is away, a reader makes us try again at most this often."""
_NEWER_WAIT_S: Final = 5.0
_NEWER_LOOK_S: Final = 0.05
_JOIN_S: Final = 2.0


class ContentsGoneError(MemdirError):
    """The server answers, and has these contents under no name any more."""


class Fetcher:
    """`fs.source.ContentSource` over the link. `read_feed` brings what is known of the server up to date."""

    def __init__(self, ctx: Context, read_feed: Callable[[], object], *, stall_s: float = STALL_S) -> None:
        self._ctx = ctx
        self._read_feed = read_feed
        self._stall_s = stall_s
        self._changed = threading.Condition()
        self._waiting: dict[int, list[Brought]] = {}
        """By inode, in order of arrival: who wants its contents. Taken by a worker as a whole."""
        self._waiting_count = 0
        self._running: dict[int, int] = {}
        """Inodes being fetched, with the bytes that came."""
        self._ahead_in = ""
        self._ahead: list[int] = []
        """The folder that a reader read from last, and what of it was absent when somebody read a second file of it."""
        self._threads: list[threading.Thread] = []
        self._stopping = False
        self._last_try_s = float("-inf")
        self._last_try_took_s = 0.0

    # --- life ----------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Begin to serve `bring`."""
        self._threads = [
            threading.Thread(target=self._loop, name=f"fetch-{number}", daemon=True) for number in range(WORKERS)
        ]  # fmt: skip
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """End: everybody who waits is told EIO. A call under way ends with the link, which its owner has closed."""
        with self._changed:
            self._stopping = True
            left, self._waiting, self._waiting_count = self._waiting, {}, 0
            self._changed.notify_all()
        for waiting in left.values():
            _tell(waiting, FsError(errno.EIO, "the mount ends"))
        deadline_s = time.monotonic() + _JOIN_S
        for thread in self._threads:  # one that sits in a call to a server that hangs touches nothing afterwards
            thread.join(max(0.0, deadline_s - time.monotonic()))

    # --- the port of the filesystem's edge -----------------------------------------------------------------------

    def bring(self, ino: int, brought: Brought) -> None:
        """See `fs.source.ContentSource`."""
        with self._changed:
            refused = self._stopping or self._waiting_count >= WAITING_MAX
            if not refused:
                self._waiting.setdefault(ino, []).append(brought)
                self._waiting_count += 1
                self._changed.notify_all()
        if refused:
            brought(FsError(errno.EIO, "the mount ends" if self._stopping else "too many readers wait for contents"))

    def arrived_bytes(self, ino: int) -> int:
        """See `fs.source.ContentSource`."""
        with self._changed:
            return self._running.get(ino, 0)

    @property
    def is_wanted(self) -> bool:
        """Whether a reader waits: background work then gives way."""
        return bool(self._waiting)

    def _loop(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or self._stopping)
                if self._stopping:
                    return
                ino = next(iter(self._waiting))
                waiting = self._waiting.pop(ino)
                self._waiting_count -= len(waiting)
            _tell(waiting, self._outcome(ino))

    def _outcome(self, ino: int) -> FsError | None:
        """Fetch for readers; every failure is an errno for them."""
        self._hurry()
        started_s = self._ctx.clock.monotonic_s()
        try:
            self._bring_along(ino)
            self.fetch(ino)
        except ContentsGoneError as error:
            self.look_again(ino)
            return None if self._newer_came(ino) else FsError(errno.EIO, error.message)
        except FsError as error:
            return error
        except MemdirError as error:
            if isinstance(error, OfflineError):
                self._last_try_s = self._ctx.clock.monotonic_s()
                self._last_try_took_s = self._last_try_s - started_s
            log.info("the contents of inode %d cannot be fetched: %s", ino, error.message)
            return FsError(errno.EIO, error.message)
        except Exception as error:
            log.exception("fetching inode %d failed", ino)
            return FsError(errno.EIO, f"internal error: {error!r}")
        return None

    def _bring_along(self, ino: int) -> None:
        """Who reads a second small file of a folder, or of one beside it, gets others of it in the same call: a search through
        folders would else wait for the server once a file."""
        entry = self._ctx.tree.fact_by_number(ino)
        if entry is None or entry.absent_hash is None or entry.size > SMALL_MAX_BYTES:
            return
        folder = entry.path.rpartition("/")[0] or "/"
        with self._changed:
            before, near = self._ahead_in, self._ahead
            self._ahead_in, self._ahead = folder, []  # the list is ours until it is put back
        if before != folder:
            near = []
            if not _are_beside(before, folder):
                return
        if not near:
            near = [
                one.ino
                for one in self._ctx.tree.children(folder)
                if one.absent_hash is not None and one.size <= SMALL_MAX_BYTES
            ]
        others = self.take_small(near, _AHEAD_MAX_BYTES - entry.size)
        with self._changed:
            self._ahead = near
        if others:
            self.fetch_together([entry, *others])

    def _hurry(self) -> None:
        """A closed link fails at once until its next try is due, which may be half a minute away. A reader may make it try
        earlier, but not more often than each second, and not while tries take long (a server that was stopped)."""
        link = self._ctx.link
        if not link.state().online:
            now_s = self._ctx.clock.monotonic_s()
            if now_s - self._last_try_s > max(_RETRY_S, self._last_try_took_s):
                self._last_try_s = now_s
                link.hurry()

    def _newer_came(self, ino: int) -> bool:
        """The contents are gone because there are newer ones: they are put by the queue's workers in a moment."""
        known = self._ctx.tree.fact_by_number(ino)
        deadline_s = self._ctx.clock.monotonic_s() + _NEWER_WAIT_S
        while known is not None and self._ctx.clock.monotonic_s() < deadline_s:
            with self._changed:
                if self._stopping:
                    return False
                self._changed.wait(_NEWER_LOOK_S)
            now = self._ctx.tree.fact_by_number(ino)
            if now is None or now.version != known.version:
                return True
        return False

    # --- fetching, in the caller's thread ------------------------------------------------------------------------

    def fetch(self, ino: int) -> None:
        """Give the file its contents; at the end it has them, is gone, or is another version. ContentsGoneError, ClientError,
        FsError."""
        with self._changed:
            self._changed.wait_for(lambda: ino not in self._running)
            self._running[ino] = 0
        try:
            self._fetch(ino)
        finally:
            with self._changed:
                del self._running[ino]
                self._changed.notify_all()

    def take_small(self, numbers: list[int], room_bytes: float) -> list[LocalFact]:
        """Absent files from the end of `numbers` that come in one call with another one, as long as they are small and fit;
        what is looked at goes from the list."""
        taken: list[LocalFact] = []
        while numbers and len(taken) < READ_MAX_ITEMS - 1:
            entry = self._ctx.tree.fact_by_number(numbers[-1])
            if entry is not None and entry.absent_hash is not None:
                if entry.size > min(room_bytes, SMALL_MAX_BYTES):
                    break
                taken.append(entry)
                room_bytes -= entry.size
            numbers.pop()
        return taken

    def fetch_together(self, entries: Iterable[LocalFact]) -> int:
        """Give several small files their contents in one call, at most READ_MAX_ITEMS and READ_MAX_BYTES; how many came. The
        others are left to `fetch`. ClientError, FsError."""
        wanted: dict[str, LocalFact] = {}
        for entry in entries:
            wanted |= dict.fromkeys(self._places(entry)[:1], entry)
        with self._changed:
            wanted = {path: entry for path, entry in wanted.items() if entry.ino not in self._running}
            self._running |= dict.fromkeys((entry.ino for entry in wanted.values()), 0)
        try:
            return self._filled(wanted)
        finally:
            with self._changed:
                for entry in wanted.values():
                    self._running.pop(entry.ino, None)
                self._changed.notify_all()

    def _filled(self, wanted: dict[str, LocalFact]) -> int:
        if not wanted:
            return 0
        ctx = self._ctx
        try:
            with ctx.link.lend() as client:
                found = client.read_files(ctx.container, list(wanted))
        except (NotFoundError, RejectedError) as error:
            log.info("the server gives no files together: %s", error.message)
            return 0
        came = 0
        for entry, content in zip(wanted.values(), found, strict=False):
            if content is None:
                continue
            try:
                ctx.tree.fill(entry, iter((content,)))
            except (ContentsMismatchError, LocalChangedError) as error:
                log.info("%s did not come with others: %s", entry.path, error)
                continue
            came += 1
        ctx.counters.fetched += came
        return came

    def secure(self, path: str, remote: Fact, *, is_replaced: bool = False) -> None:
        """`remote` is about to be overwritten or deleted at the server's `path`, or others did it already (`is_replaced`) and
        we are about to forget that it stood there: first bring the contents of every file here that cannot be filled from a
        path of its own. ClientError, FsError: they could not be brought, so leave it there."""
        tree = self._ctx.tree
        for entry in tree.absent_with(remote.content_hash, _DEPENDENTS_MAX):
            if entry.path == "/":
                continue  # has no name any more; whoever still has it open reads what is left of it
            paths = tree.paths_of(entry.ino)
            own = (self._ctx.facts.remote(other) for other in paths if other != path)
            if (is_replaced and path in paths) or any(remote.same_content(fact) for fact in own):
                continue
            try:
                self.fetch(entry.ino)
            except ContentsGoneError as error:
                log.warning("%s", error.message)

    def look_again(self, ino: int) -> None:
        """The contents are gone: let what the server has now be compared with every path of the file."""
        ctx = self._ctx
        with ctx.queue.transaction() as tx:
            ctx.queue.add_all(tx, [path for path in ctx.tree.paths_of(ino) if not ctx.is_excluded(path)])

    def _fetch(self, ino: int) -> None:
        ctx = self._ctx
        entry: LocalFact | None = None
        places: dict[str, None] = {}
        for attempt in range(_TRIES):
            entry = ctx.tree.fact_by_number(ino)
            if entry is None or entry.absent_hash is None:
                return
            places |= dict.fromkeys(self._places(entry))
            try:
                if any(self._taken_from(path, entry) for path in places):
                    return
                if attempt and self._is_renamed(entry) and any(self._taken_from_former(path, entry) for path in places):
                    return
            except LocalChangedError:
                continue
            if attempt == 0:
                self._read_feed()
        if entry is None:
            return
        raise ContentsGoneError(
            f"the contents of {entry.path} are no longer at the server: they were replaced or deleted there"
        )

    def _places(self, entry: LocalFact) -> list[str]:
        """Where the server has these contents as far as is known: under the file's own paths first."""
        facts = self._ctx.facts
        places: dict[str, None] = {}
        for path in self._ctx.tree.paths_of(entry.ino):
            fact = facts.remote(path) if is_wire_name(path) else None
            if fact is not None and fact.content_hash == entry.absent_hash:
                places[path] = None
        assert entry.absent_hash is not None
        places |= dict.fromkeys(facts.paths_with(entry.absent_hash, _PLACES_MAX))
        return list(places)[:_PLACES_MAX]

    def _taken_from(self, path: str, entry: LocalFact) -> bool:
        """Fill the file from the server's `path`; False when that has other contents by now."""
        ctx = self._ctx
        try:
            with (
                ctx.link.lend() as client,
                client.open_file(ctx.container, path, stall_s=self._stall_s) as (_, pieces),
            ):
                ctx.tree.fill(entry, self._counted(entry.ino, pieces))
        except (NotFoundError, ConflictError):  # a folder stands there
            return False
        except ContentsMismatchError as error:
            log.info("%s has other contents at the server: %s", path, error.message)
            return False
        ctx.counters.fetched += 1
        return True

    def _is_renamed(self, entry: LocalFact) -> bool:
        """Whether it stands here under another name than the server gave it. Else what the server has there now comes."""
        bases = (self._ctx.facts.remote_and_base(path)[1] for path in self._ctx.tree.paths_of(entry.ino))
        return not any(base is not None and base.content_hash == entry.absent_hash for base in bases)

    def _taken_from_former(self, path: str, entry: LocalFact) -> bool:
        """Fill the file from what the server once had at `path`; False when that is kept no more."""
        ctx = self._ctx
        assert entry.absent_hash is not None
        try:
            version = former_version(ctx, path, entry.absent_hash)
            if version is None:
                return False
            with ctx.link.lend() as client, client.open_version(ctx.container, version.version) as pieces:
                ctx.tree.fill(entry, self._counted(entry.ino, pieces))
        except (NotFoundError, RejectedError) as error:
            log.info("%s: the server does not tell former contents: %s", path, error.message)
            return False
        ctx.counters.fetched += 1
        return True

    def _counted(self, ino: int, pieces: Iterator[bytes]) -> Iterator[bytes]:
        for piece in pieces:
            if self._stopping:
                raise OfflineError("the mount ends")
            with self._changed:
                self._running[ino] = self._running.get(ino, 0) + len(piece)
            yield piece


def _are_beside(one: str, other: str) -> bool:
    """Whether one folder is in the other, or both are in the same one."""
    above, beside = one.rpartition("/")[0], other.rpartition("/")[0]
    return one != "" and (above in (other, beside) or beside == one)


def _tell(waiting: list[Brought], error: FsError | None) -> None:
    for brought in waiting:
        brought(error)
