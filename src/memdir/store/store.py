"""Everything the server keeps: the stores over one database engine. `sqlite` and `postgres` build it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final

from memdir.core.clock import Clock
from memdir.store.again import WorkAgain
from memdir.store.agentfeed import AgentFeed
from memdir.store.agentmemories import AgentMemoryStore
from memdir.store.agentusage import AgentUsageStore
from memdir.store.answers import AnswerStore
from memdir.store.audit import AuditStore
from memdir.store.blobs import BlobStore
from memdir.store.changes import ChangeStore
from memdir.store.choosing import Chooser
from memdir.store.containers import ContainerStore
from memdir.store.database import Database
from memdir.store.deadletters import DeadLetters
from memdir.store.documents import DocumentStore
from memdir.store.embedding import EmbeddingQueue
from memdir.store.exports import ExportStore
from memdir.store.files import FileTree
from memdir.store.ignored import IgnoredStore
from memdir.store.jobs import JobStore
from memdir.store.keys import KeyStore
from memdir.store.memories import MemoryStore
from memdir.store.orgs import OrgStore
from memdir.store.originals import OriginalStore
from memdir.store.pasts import PastStore
from memdir.store.progress import ProgressStore
from memdir.store.reading import PassageStore
from memdir.store.remembered import RememberedStore
from memdir.store.versions import VersionStore

if TYPE_CHECKING:
    from memdir.store.passagelog import PassageLog
    from memdir.store.protocols import ChunkStore
    from memdir.store.upkeep import Upkeep

EVERY_CONTAINER: Final = 0
"""Said to listeners instead of a container's id when they may have missed some: look at everything."""


class Store(ABC):
    """Thread-safe; every method of the sub-stores may block.

    Derived rows (chunks, memories) hang on `document (id)` with `on delete cascade`; what must follow a deleted row elsewhere
    (a full-text index) belongs in a trigger. A document's place and revision are read from its row.
    """

    folder: Path
    """Where this process keeps files beside the database: uploads under way, indexes."""

    def __init__(self, db: Database, blobs: BlobStore, clock: Clock) -> None:
        self._clock = clock
        self._listeners: list[Callable[[int], None]] = []
        self.containers = ContainerStore(db, clock)
        self.documents = DocumentStore(db, clock)
        self.chooser = Chooser(db)
        self.blobs = blobs
        self.changes = ChangeStore(db)
        self.progress = ProgressStore(db, clock)
        self.jobs = JobStore(db, clock, skip_locked=db.row_lock_skip)
        self.dead_letters = DeadLetters(db, clock)
        self.embedding = EmbeddingQueue(db, clock)
        self.again = WorkAgain(db, clock)
        self.ignored = IgnoredStore(db, blobs, clock)
        self.orgs = OrgStore(db, clock)
        self.keys = KeyStore(db, clock)
        self.answers = AnswerStore(db, clock)
        self.audit = AuditStore(db, clock)
        self.memories = MemoryStore(db, clock)
        self.remembered = RememberedStore(db)
        self.agents = AgentMemoryStore(db, clock)
        self.agent_feed = AgentFeed(db)
        self.agent_usage = AgentUsageStore(db, clock)
        self.files = FileTree(db, clock, blobs, self.notify)
        self.versions = VersionStore(db, clock, blobs)
        self.past = PastStore(db)
        self.reading = PassageStore(db)
        self.originals = OriginalStore(db)
        self.exports = ExportStore(db, clock, blobs)

    @abstractmethod
    def chunks(self) -> ChunkStore:
        """Passages, their words and vectors. Made on the first call, which imports what searching needs."""

    @abstractmethod
    def passage_log(self) -> PassageLog | None:
        """What an index of passages outside of the database follows; None when the database is shared by several processes
        and has its own."""

    @abstractmethod
    def upkeep(self) -> Upkeep:
        """What checking, backing up and shrinking need of the engine."""

    @abstractmethod
    def recover(self) -> None:
        """Clear up after a process that is gone. Called once by each server process, before it begins."""

    @abstractmethod
    def close(self) -> None:
        """Close the database; the store cannot be used after that."""

    def listen(self, listener: Callable[[int], None]) -> None:
        """`listener` gets a container's id, on any thread, after each commit that others may wait for; EVERY_CONTAINER when
        some may have been missed. It must return soon and must not raise."""
        self._listeners.append(listener)

    def notify(self, container_id: int) -> None:
        """Tell the listeners that something happened in a container."""
        for listener in tuple(self._listeners):
            listener(container_id)

    def now_ms(self) -> int:
        """The store's clock, milliseconds since the epoch."""
        return self._clock.now_ns() // 1_000_000
