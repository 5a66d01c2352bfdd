"""What every part of the engine shares."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from memdir.core.clock import Clock
from memdir.core.siblings import FIRST_CHARS, source_of
from memdir.fs.tree import LocalChangedError, SyncTree
from memdir.fs.types import LocalFact
from memdir.sync.artifacts import Artifacts
from memdir.sync.facts import Facts
from memdir.sync.link import Link
from memdir.sync.local_view import LocalView
from memdir.sync.push.processing import Inflight
from memdir.sync.push.queue import Queue
from memdir.sync.push.unanswered import Sent

_HOST_MAX_CHARS: Final = 32


@dataclass(slots=True, kw_only=True)
class Counters:
    """What happened since the start, for `memdir status`. Written under no lock: they are only ever shown."""

    pushed: int = 0
    pulled: int = 0
    conflicts: int = 0
    merged: int = 0
    """Files that both sides had changed, merged line by line."""
    last_pushed_seq: int = 0
    last_synced_ms: int = 0
    fetched: int = 0
    lost: int = 0
    """Files given up because the server deleted their contents before they were fetched."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """One mount's engine: its tree, its records, its server."""

    container: str
    host: str
    """Names this machine in conflict copies."""
    tree: SyncTree
    facts: Facts
    queue: Queue
    sent: Sent
    link: Link
    inflight: Inflight
    local: LocalView
    artifacts: Artifacts
    clock: Clock
    is_virtual: Callable[[str], bool]
    """Paths that exist only as views of this mount and are never synced in either direction."""
    lazy: bool = False
    """Whether files arrive without their contents."""
    on_agreed: list[Callable[[str, str], None]] = field(default_factory=list)
    """Told (path, content hash) of files that have contents which the server has there already."""
    counters: Counters = field(default_factory=Counters)

    def tell_agreed(self, path: str, content_hash: str) -> None:
        """Whoever listens to agreements. In no transaction."""
        for told in self.on_agreed:
            told(path, content_hash)

    def now_ms(self) -> int:
        return self.clock.now_ns() // 1_000_000

    def has_met(self) -> bool:
        """Whether this mount and its server were compared once. Before, nothing is pushed: the first comparison begins with
        no agreements, and would take what was pushed a moment ago, and changed here since, for a stranger's."""
        return bool(self.facts.text("epoch"))

    def is_excluded(self, path: str) -> bool:
        """Whether the engine has nothing to do with `path`."""
        return path == "/" or self.is_virtual(path)

    def stays_here(self, path: str) -> bool:
        """Whether tools made what stands at `path`, or it is a copy of a text beside a file, and the server never had it. What
        is gone is gone there as well."""
        if self.facts.is_agreed(path):
            return False
        fact = self.tree.fact(path)
        return fact is not None and (self.artifacts.holding(path) is not None or self._is_copy(fact))

    def _is_copy(self, fact: LocalFact) -> bool:
        if fact.kind != "file" or source_of(fact.path.rpartition("/")[2]) is None or fact.absent_hash is not None:
            return False
        try:
            return self.tree.read(fact, 0, len(FIRST_CHARS)) == FIRST_CHARS.encode()
        except LocalChangedError:
            return False  # it is looked at again


def is_view(path: str) -> bool:
    """The virtual nodes of a mount (`fs.views`), by name."""
    return path in ("/profile.md", "/.memdir") or path.startswith("/.memdir/")


def host_label(name: str) -> str:
    """The host's name as it may stand in a file name."""
    label = "".join(char if char.isalnum() or char in "-_." else "-" for char in name.split(".", maxsplit=1)[0])
    return label[:_HOST_MAX_CHARS] or "host"


def is_wire_name(path: str) -> bool:
    """Whether the path can be said in JSON and URLs: its names are UTF-8."""
    try:
        path.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True
