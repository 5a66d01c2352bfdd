"""Everything the server keeps: the stores over one database engine. `sqlite` and `postgres` build it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final

from memdir.core.clock import Clock
from memdir.store.accounts.audit import AuditStore
from memdir.store.accounts.keys import KeyStore
from memdir.store.accounts.orgs import OrgStore
from memdir.store.accounts.saved_responses import AnswerStore
from memdir.store.agents.feed import AgentFeed
from memdir.store.agents.memories import AgentMemoryStore
from memdir.store.agents.projects import AgentProjectStore
from memdir.store.agents.usage import AgentUsageStore
from memdir.store.contents.blobs import BlobStore
from memdir.store.contents.extractions import ExtractionStore
from memdir.store.contents.originals import OriginalStore
from memdir.store.database import Database
from memdir.store.jobs.dead_letters import DeadLetters
from memdir.store.jobs.embedding_queue import EmbeddingQueue
from memdir.store.jobs.progress import ProgressStore
from memdir.store.jobs.queue import JobStore
from memdir.store.jobs.reprocessing import Reprocessing
from memdir.store.memories.memories import MemoryStore
from memdir.store.memories.search_view import MemorySearchView
from memdir.store.passages.ignored_files import IgnoredStore
from memdir.store.passages.scanning import PassageStore
from memdir.store.tree.changes import ChangeStore
from memdir.store.tree.containers import ContainerStore
from memdir.store.tree.documents import DocumentStore
from memdir.store.tree.exports import ExportStore
from memdir.store.tree.files import FileTree
from memdir.store.tree.history import HistoryStore
from memdir.store.tree.metadata_filters import Chooser
from memdir.store.tree.versions import VersionStore
from memdir.store.upkeep.kept_texts import KeptTexts

if TYPE_CHECKING:
    from memdir.store.passages.log import PassageLog
    from memdir.store.protocols import ChunkStore
    from memdir.store.upkeep.engine import Upkeep

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
        self.reprocessing = Reprocessing(db, clock)
        self.ignored = IgnoredStore(db, blobs, clock)
        self.orgs = OrgStore(db, clock)
        self.keys = KeyStore(db, clock)
        self.answers = AnswerStore(db, clock)
        self.audit = AuditStore(db, clock)
        self.memories = MemoryStore(db, clock)
        self.memory_search = MemorySearchView(db)
        self.agents = AgentMemoryStore(db, clock)
        self.agent_feed = AgentFeed(db)
        self.agent_usage = AgentUsageStore(db, clock)
        self.agent_projects = AgentProjectStore(db)
        self.files = FileTree(db, clock, blobs, self.notify)
        self.versions = VersionStore(db, clock, blobs)
        self.history = HistoryStore(db)
        self.reading = PassageStore(db)
        self.originals = OriginalStore(db)
        self.extractions = ExtractionStore(db, clock)
        self.kept_texts = KeptTexts(db, blobs)
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
