"""The models and what searches with them. They load in the background, so that the server answers at once.

The static model is needed to index and to search; the transformer makes both better and is used as soon as it is there.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final

from memdir.core.errors import BusyError, MemdirError
from memdir.core.weights import told_weights
from memdir.server.indexing.in_flight import SearchesInFlight

if TYPE_CHECKING:
    from memdir.retrieval.agents.prompt_classifier import PromptClassifier
    from memdir.retrieval.derived_index import DerivedIndex
    from memdir.retrieval.derived_indexes import Rebuilds
    from memdir.retrieval.embed import Embedder
    from memdir.retrieval.fuse import Tuning
    from memdir.retrieval.lexical.port import LexicalIndex
    from memdir.retrieval.memories import MemoryIndex
    from memdir.retrieval.query import Searcher
    from memdir.retrieval.rerank.port import Reranker
    from memdir.retrieval.vectors import VectorIndex
    from memdir.retrieval.vectors.index import VectorIndexes
    from memdir.server.agents.state import AgentMemoryState
    from memdir.server.background.trigram_indexes import TrigramIndexes
    from memdir.store.memories.memories import MemoryStore
    from memdir.store.protocols import ChunkStore
    from memdir.store.store import Store

log = logging.getLogger(__name__)

SHOWN_MAX: Final = 256
"""Documents that wait to be read next; the first ones leave for later ones."""
LOAD_WAIT_S: Final = 30.0
"""How long a search waits for the first model after the server began."""
SETTLE_WAIT_S: Final = 5.0
"""How long it then waits for the transformer, which finds more; loading takes about 1 s, the very first time about 3 s."""


class Engine:
    """Chunk store, memory store, models, searcher. Thread-safe."""

    def __init__(
        self,
        store: Store,
        models_dir: Path,
        *,
        dense: Callable[[], Embedder | None] | None = None,
        reranker: Reranker | None = None,
        searches: bool = True,
    ) -> None:
        """`dense` loads the model of the transformer's place, None the one that came with memdir. `reranker` is the user's.
        Without `searches` it keeps no index: for a process that only reads documents."""
        self._searches = searches
        self.reranker = reranker
        self.in_flight = SearchesInFlight()
        self.shown: deque[str] = deque(maxlen=SHOWN_MAX)
        """Documents that searches showed before the transformer read them: the worker does so next."""
        self._store = store
        self._models_dir = models_dir
        self._load_dense = dense
        self._first = threading.Event()
        self._settled = threading.Event()
        self._chunks: ChunkStore | None = None
        self._memories: MemoryStore | None = None
        self._memory_index: MemoryIndex | None = None
        self._static: Embedder | None = None
        self._dense: Embedder | None = None
        self._words: LexicalIndex | None = None
        self._searcher: Searcher | None = None
        self._vectors: VectorIndexes | None = None
        self._error: MemdirError | None = None
        self._thread: threading.Thread | None = None
        self._indexes: tuple[DerivedIndex, ...] = ()
        self._rebuilds: Rebuilds | None = None
        self._agents: AgentMemoryState | None = None
        self._agents_lock = threading.Lock()
        self._prompt_classifier: PromptClassifier | None = None
        self._prompt_classifier_lock = threading.Lock()
        self.trigrams: TrigramIndexes | None = None
        """Of the contents of each container, in a server process."""

    def start(self, ready: Callable[[], None]) -> None:
        """Load in the background; `ready` is called after each model."""
        if self._searches:
            self.agents.indexes.start()
        self._thread = threading.Thread(target=self._load, args=(ready,), name="memdir-models", daemon=True)
        self._thread.start()

    def _load(self, ready: Callable[[], None]) -> None:
        try:
            from memdir.retrieval.derived_indexes import Rebuilds, derived_indexes
            from memdir.retrieval.embed import StaticEmbedder
            from memdir.retrieval.embed.choice import embedder_from_environment
            from memdir.retrieval.lexical.choice import words_among
            from memdir.retrieval.memories import MemoryIndex
            from memdir.retrieval.vectors.index import VectorIndexes

            self._indexes = derived_indexes(self._store) if self._searches else ()
            self._vectors = next((index for index in self._indexes if isinstance(index, VectorIndexes)), None)
            kept = self._indexes if self.trigrams is None else (*self._indexes, self.trigrams)
            self._rebuilds = Rebuilds(self._store.folder, kept)
            self._chunks = self._store.chunks()
            self._words = words_among(self._indexes, self._chunks)
            self._memories = self._store.memories
            self._memory_index = MemoryIndex(self._store.memory_search, self._chunks)
            self._static = StaticEmbedder()
            self._searcher = self.searcher_over(self._static, None)
        except Exception as error:
            log.exception("the search engine cannot start")
            self._error = error if isinstance(error, MemdirError) else MemdirError(f"the search engine cannot start: {error}")
            self._first.set()
            self._settled.set()
            return
        if self._searches:
            self._rebuilds.start()
        if self._vectors is not None:
            self._vectors.start(self._store)
        self._first.set()
        ready()
        try:
            self._dense = embedder_from_environment(self._models_dir) if self._load_dense is None else self._load_dense()
            self._searcher = self.searcher_over(self._static, self._dense)
        except Exception:
            log.exception("the transformer model is not available; searching with words and static vectors only")
        self._settled.set()
        ready()

    def prompt_classifier(self, wait_s: float) -> PromptClassifier | None:
        """Tells whether a prompt needs a memory; None without the model that it is fitted to. Waits for that to load; the first
        call takes about half a second more."""
        from memdir.retrieval.agents.prompt_classifier import PromptClassifier

        if not self.wait_settled(wait_s) or self._dense is None or not PromptClassifier.fits(self._dense):
            return None
        with self._prompt_classifier_lock:
            if self._prompt_classifier is None:
                self._prompt_classifier = PromptClassifier(self._dense)
            return self._prompt_classifier

    def searcher_over(self, static: Embedder, dense: Embedder | None, tuning: Tuning | None = None) -> Searcher:
        """A searcher of this engine's passages with these models; `tuning` None: the product's."""
        from memdir.retrieval.query import Searcher

        assert self._chunks is not None
        return Searcher(self._chunks, static, dense, tuning=tuning, words=self._words, vectors=self._vectors)

    def _wait(self) -> None:
        if not self._first.wait(LOAD_WAIT_S):
            raise BusyError("the search engine is still loading", hint="try again in a few seconds")
        if self._error is not None:
            raise BusyError(self._error.message, hint=self._error.hint or "run `memdir doctor`")

    @property
    def ready(self) -> bool:
        """Whether documents can be indexed."""
        return self._first.is_set() and self._error is None

    @property
    def settled(self) -> bool:
        """Whether loading is over, one way or the other."""
        return self._settled.is_set()

    def wait_settled(self, timeout_s: float) -> bool:
        """Wait until loading is over, at most `timeout_s` and SETTLE_WAIT_S."""
        return self._settled.wait(min(max(0.0, timeout_s), SETTLE_WAIT_S))

    @property
    def searcher(self) -> Searcher:
        """Waits for the models; BusyError when there is none."""
        self._wait()
        self.wait_settled(SETTLE_WAIT_S)
        assert self._searcher is not None
        return self._searcher

    @property
    def chunks(self) -> ChunkStore:
        """Waits like `searcher`."""
        self._wait()
        assert self._chunks is not None
        return self._chunks

    @property
    def words(self) -> LexicalIndex:
        """Waits like `searcher`."""
        self._wait()
        assert self._words is not None
        return self._words

    @property
    def memories(self) -> MemoryStore:
        """Waits like `searcher`."""
        self._wait()
        assert self._memories is not None
        return self._memories

    @property
    def rebuilds(self) -> Rebuilds:
        """Waits like `searcher`."""
        self._wait()
        assert self._rebuilds is not None
        return self._rebuilds

    @property
    def memory_index(self) -> MemoryIndex:
        """Memories as they are searched. Waits like `searcher`."""
        self._wait()
        assert self._memory_index is not None
        return self._memory_index

    @property
    def agents(self) -> AgentMemoryState:
        """Memories of agents. Waits for no model and uses none."""
        with self._agents_lock:
            if self._agents is None:
                from memdir.retrieval.agents.ranking import SignalWeights
                from memdir.server.agents.state import AgentMemoryState

                self._agents = AgentMemoryState(self._store, weights=SignalWeights(**told_weights()))
            return self._agents

    @property
    def static(self) -> Embedder:
        """Waits like `searcher`."""
        self._wait()
        assert self._static is not None
        return self._static

    @property
    def dense(self) -> Embedder | None:
        """The transformer, None when it is not (yet) there."""
        return self._dense

    def stop(self) -> bool:
        """End what is built in the background; it goes on after the next start. Returns whether it ended in time."""
        stopped = self._agents is None or self._agents.close()  # first: `close` is not always reached
        stopped = (self._rebuilds is None or self._rebuilds.stop()) and stopped
        if self._words is not None:
            self._words.close()
        return (self._vectors is None or self._vectors.close()) and stopped

    @property
    def vectors(self) -> VectorIndex:
        """What searches compare vectors with. Waits like `searcher`."""
        return self.chunks if self._vectors is None else self._vectors

    def join(self) -> None:
        """Wait until loading is over."""
        if self._thread is not None:
            self._thread.join()

    def close(self) -> None:
        """Put the indexes in order. Called when nobody searches any more, before the store is closed."""
        if self._words is not None:
            self._words.close()
        if self._vectors is not None:
            self._vectors.close()
