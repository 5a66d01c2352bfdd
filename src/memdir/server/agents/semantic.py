"""Searching the memories of agents by meaning, and what of them a prompt needs. Start with `needed`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
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
_NOT_EMBEDDED_MAX: Final = 8
"""Of the memories found by words, and of the newest, those that the worker did not embed yet are embedded while the caller
waits: some 5 ms each."""


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
    """Of one request, through those memories of a container that are `chosen`. Those of `project` are looked for apart, too."""

    def __init__(
        self,
        caller: Caller,
        engine: Engine,
        classifier: PromptClassifier,
        container_id: int,
        project: str | None,
        chosen: Callable[[AgentRecord], bool],
        by_words: Sequence[AgentRecord],
    ) -> None:
        self._caller = caller
        self._engine = engine
        self._classifier = classifier
        self._container_id = container_id
        self._folders = [FOLDER] if project is None else [f"{FOLDER}/{project}", FOLDER]
        self._chosen = chosen
        self._by_words = by_words

    @classmethod
    def of(
        cls,
        caller: Caller,
        engine: Engine | None,
        container_id: int,
        project: str | None,
        chosen: Callable[[AgentRecord], bool],
        *,
        by_words: Sequence[AgentRecord] = (),
        wait_s: float,
    ) -> SemanticSearch | None:
        """None where the model that the classifier is fitted to does not come within `wait_s`. `by_words`: found already."""
        classifier = None if engine is None else engine.prompt_classifier(wait_s)
        if engine is None or classifier is None:
            return None
        return cls(caller, engine, classifier, container_id, project, chosen, by_words)

    def nearest(self, text: str) -> Neighbours | None:
        """The memories closest to a text. None when the model cannot read it."""
        with self._engine.in_flight.search():
            vector = self._classifier.embedder.embed_query(text)
            if not self._classifier.can_read(vector):
                return None
            not_embedded = self._not_embedded  # read first, or what is embedded meanwhile is in neither
            found = self._embedded(vector)
            found |= {record.id: (record, float(own @ vector)) for record, own in not_embedded}
        memories = sorted(found.values(), key=lambda one: (-one[1], one[0].number))
        return Neighbours(
            memories=memories, probability=self._classifier.probability(vector, memories[0][1]) if memories else 0.0
        )

    def _embedded(self, vector: Matrix) -> dict[str, tuple[AgentRecord, float]]:
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
            if record is not None and self._chosen(record):
                best = max(cosines[chunk_id], found[record.id][1] if record.id in found else -1.0)
                found[record.id] = record, best
        return found

    @cached_property
    def _not_embedded(self) -> list[tuple[AgentRecord, Matrix]]:
        """With their vectors."""
        store = self._caller.store
        newest = store.agents.page(self._container_id, after=None, limit=_NEWEST)
        some = {one.id: one for one in (*self._by_words, *newest) if self._chosen(one)}.values()
        waiting = store.jobs.waiting([one.document_id for one in some])
        lacking = [one for one in some if one.document_id in waiting][:_NOT_EMBEDDED_MAX]
        vectors = self._classifier.embedder.embed_passages([one.content for one in lacking]) if lacking else ()
        return list(zip(lacking, vectors, strict=True))


def _piece(pieces: Sequence[AgentRecord], passage: str) -> AgentRecord | None:
    """The piece of a file that a passage is of."""
    own = (one for one in pieces if one.content in passage or passage in one.content)
    return next(own, pieces[0] if pieces else None)


def needed(search: SemanticSearch, prompt: str) -> list[AgentRecord] | None:
    """What a prompt needs, best first. None when that cannot be told: the model cannot read the language, or no memory was
    embedded yet."""
    found = [search.nearest(text) for text in excerpts(prompt)]
    told = [one for one in found if one is not None and one.memories]
    return max(told, key=lambda one: one.probability).needed if told else None
