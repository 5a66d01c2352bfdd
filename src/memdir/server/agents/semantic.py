"""Searching the memories of agents by meaning, and what of them a prompt needs. Start with `needed`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from memdir.retrieval.agents.prompt_classifier import NEEDED_MIN, excerpts
from memdir.server.http.access import Caller
from memdir.store.agents.memories import FOLDER, AgentRecord
from memdir.store.types import Matrix, Scope

if TYPE_CHECKING:
    from memdir.retrieval.agents.prompt_classifier import PromptClassifier
    from memdir.server.engine import Engine

_NEEDED_WITHIN: Final = 0.05
"""Cosine. Memories that are as close as the closest but for this may be the one that is meant."""
_NEEDED_MAX: Final = 3
_PASSAGES: Final = 40
"""The closest ones are looked at: several may be of one memory, or of another project."""
_NEWEST: Final = 50
_FRESH_MS: Final = 120_000
_FRESH_MAX: Final = 8
"""Memories of the last two minutes that have no vector yet are embedded while the caller waits, so many at most: 5 ms each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbours:
    """The memories closest to a text with their cosines, best first, and the probability that the closest is needed."""

    memories: Sequence[tuple[AgentRecord, float]]
    probability: float

    @property
    def needed(self) -> list[AgentRecord]:
        """None, or those that are about as close as the closest."""
        if self.probability < NEEDED_MIN:
            return []
        least = self.memories[0][1] - _NEEDED_WITHIN
        return [record for record, cosine in self.memories[:_NEEDED_MAX] if cosine >= least]


class SemanticSearch:
    """Of one request, through the memories of one container. Those of `project` are looked for apart, too."""

    def __init__(
        self, caller: Caller, engine: Engine, classifier: PromptClassifier, container_id: int, project: str | None
    ) -> None:
        self._caller = caller
        self._engine = engine
        self._classifier = classifier
        self._container_id = container_id
        self._folders = [FOLDER] if project is None else [f"{FOLDER}/{project}", FOLDER]
        self._fresh: dict[str, Matrix] = {}
        """Vectors of memories that the index does not have yet, by id."""

    @classmethod
    def of(
        cls, caller: Caller, engine: Engine | None, container_id: int, project: str | None, *, wait_s: float
    ) -> SemanticSearch | None:
        """None where the model that the classifier is fitted to does not come within `wait_s`."""
        classifier = None if engine is None else engine.prompt_classifier(wait_s)
        return None if engine is None or classifier is None else cls(caller, engine, classifier, container_id, project)

    def nearest(self, text: str, chosen: Callable[[AgentRecord], bool]) -> Neighbours | None:
        """Among the memories that are `chosen`. None for a text that the model cannot read."""
        with self._engine.in_flight.search():
            vector = self._classifier.embedder.embed_query(text)
            if not self._classifier.can_read(vector):
                return None
            found = self._indexed(vector, chosen)
            found |= self._not_indexed(vector, chosen, found)
        memories = sorted(found.values(), key=lambda one: (-one[1], one[0].number))
        return Neighbours(
            memories=memories, probability=self._classifier.probability(vector, memories[0][1]) if memories else 0.0
        )

    def _indexed(self, vector: Matrix, chosen: Callable[[AgentRecord], bool]) -> dict[str, tuple[AgentRecord, float]]:
        model = self._classifier.embedder.name
        cosines: dict[int, float] = {}
        for folder in self._folders:
            scope = Scope(container_id=self._container_id, folder=folder)
            near = self._engine.vectors.nearest(scope, vector, model=model, limit=_PASSAGES)
            cosines.update(zip(near.ids.tolist(), near.cosines.tolist(), strict=True))
        passages = self._engine.chunks.chunks(list(cosines))
        pieces = self._caller.store.agents.of_documents([one.document_id for one in passages.values()])
        found: dict[str, tuple[AgentRecord, float]] = {}
        for chunk_id, passage in passages.items():
            record = _piece(pieces.get(passage.document_id, []), passage.chunk.text)
            if record is not None and chosen(record):
                best = max(cosines[chunk_id], found[record.id][1] if record.id in found else -1.0)
                found[record.id] = record, best
        return found

    def _not_indexed(
        self, vector: Matrix, chosen: Callable[[AgentRecord], bool], known: dict[str, tuple[AgentRecord, float]]
    ) -> dict[str, tuple[AgentRecord, float]]:
        """What was stored a moment ago and has no vector yet."""
        store = self._caller.store
        since_ms = store.now_ms() - _FRESH_MS
        newest = store.agents.page(self._container_id, after=None, limit=_NEWEST)
        fresh = [one for one in newest if one.created_at_ms >= since_ms and one.id not in known and chosen(one)][:_FRESH_MAX]
        lacking = [one for one in fresh if one.id not in self._fresh]
        if lacking:
            vectors = self._classifier.embedder.embed_passages([one.content for one in lacking])
            self._fresh.update(zip((one.id for one in lacking), vectors, strict=True))
        return {one.id: (one, float(self._fresh[one.id] @ vector)) for one in fresh}


def _piece(pieces: Sequence[AgentRecord], passage: str) -> AgentRecord | None:
    """The piece of a file that a passage is of."""
    own = (one for one in pieces if one.content in passage or passage in one.content)
    return next(own, pieces[0] if pieces else None)


def needed(search: SemanticSearch, prompt: str, projects: Sequence[str | None]) -> list[AgentRecord] | None:
    """What a prompt needs of the memories of some projects (None: of no project), best first. None when that cannot be told:
    the model cannot read the language, or no memory was embedded yet."""
    found = [search.nearest(text, lambda record: record.project in projects) for text in excerpts(prompt)]
    told = [one for one in found if one is not None and one.memories]
    return max(told, key=lambda one: one.probability).needed if told else None
