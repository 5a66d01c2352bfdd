"""What holds in the containers that the memory step worked in last, by text and by fact.

Reading all facts of a container for each document makes the thousandth short memory a hundred times as dear as the first. They
are read once, and afterwards only what the step itself changed; a change by anybody else shows in the container's profile
version, and they are read anew.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final, cast

from memdir.memory.file_names import is_about_user
from memdir.memory.own_name import NAMES_MAX, names_in
from memdir.memory.reconcile import WORD_TOPICS, related_topics_of, same_text, topics_of
from memdir.store.jobs.reprocessing import DOCUMENTS_MAX
from memdir.store.memories.memories import Decided
from memdir.store.store import Store
from memdir.store.types import Container, Memory, MemoryCandidate

FACTS_MAX: Final = 20_000
"""Of a container, the most important ones: some 40 MB."""
FACTS_OF_WORD_MAX: Final = 256
"""A word that is in more of them tells too little of what is over."""
CONTAINERS_MAX: Final = 4

Topic = tuple[str, str]


@dataclass(slots=True, kw_only=True)
class _Known:
    version: int
    by_id: dict[str, Memory] = field(default_factory=dict)
    by_text: dict[str, set[str]] = field(default_factory=dict)
    by_topic: dict[Topic, set[str]] = field(default_factory=dict)
    of_name: set[str] = field(default_factory=set)
    """Ids of facts that may say what the user is called."""

    def put(self, memory: Memory) -> None:
        self.by_id[memory.id] = memory
        self.by_text.setdefault(same_text(memory.candidate.text), set()).add(memory.id)
        for topic in topics_of(memory.candidate):
            self.by_topic.setdefault(topic, set()).add(memory.id)
        if names_in(memory.candidate, is_own=True):
            self.of_name.add(memory.id)

    def take(self, memory_id: str) -> None:
        memory = self.by_id.pop(memory_id, None)
        if memory is None:
            return
        self.of_name.discard(memory_id)
        self.by_text[same_text(memory.candidate.text)].discard(memory_id)
        for topic in topics_of(memory.candidate):
            self.by_topic[topic].discard(memory_id)


class KnownFacts:
    """For one thread."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: OrderedDict[int, _Known] = OrderedDict()

    def concerned(self, container: Container, candidates: Sequence[MemoryCandidate], own: Iterable[Memory]) -> list[Memory]:
        """Of all facts that hold in the container, but for `own`, those that `reconcile` would look at for `candidates`: the
        same texts and the same facts; in the order of `MemoryStore.latest`."""
        if not candidates:
            return []
        known = self._current(container)
        ids: set[str] = set()
        for candidate in candidates:
            ids |= known.by_text.get(same_text(candidate.text), set())
            for topic in related_topics_of(candidate):
                found = known.by_topic.get(topic, set())
                if topic[0] not in WORD_TOPICS or len(found) <= FACTS_OF_WORD_MAX:
                    ids |= found
        ids -= {memory.id for memory in own}
        now_ms = self._store.now_ms()
        concerned = [known.by_id[memory_id] for memory_id in ids]
        concerned = [memory for memory in concerned if memory.forget_after_ms is None or memory.forget_after_ms > now_ms]
        concerned.sort(key=lambda memory: memory.id)
        concerned.sort(key=lambda memory: (memory.candidate.kind, memory.updated_at_ms), reverse=True)
        return concerned

    def called(self, container: Container) -> frozenset[str]:
        """What the user is called, in lower case."""
        known = self._current(container)
        facts = [known.by_id[memory_id] for memory_id in sorted(known.of_name)[-NAMES_MAX:]]
        documents = self._store.documents.many([one.document_id for one in facts if one.document_id is not None])
        paths = [documents[one.document_id].path if one.document_id in documents else "" for one in facts]
        return frozenset(
            name
            for one, path in zip(facts, paths, strict=True)
            for name in names_in(one.candidate, is_own=is_about_user(path or ""))
        )

    def of_names(self, container: Container, names: Collection[str]) -> list[str]:
        """Ids of documents with facts about somebody who is called so (in lower case), or that name them; at most
        DOCUMENTS_MAX."""
        if not names:
            return []
        named = re.compile(rf"\b(?:{'|'.join(map(re.escape, names))})\b", re.IGNORECASE)
        found = {
            memory.document_id
            for memory in self._current(container).by_id.values()
            if memory.document_id is not None
            and (memory.candidate.subject in names or named.search(memory.candidate.text) is not None)
        }
        return sorted(found)[:DOCUMENTS_MAX]

    def applied(self, container: Container, decisions: Sequence[Decided], *, changed: bool) -> None:
        """The decisions, which all were made on `container` as it was, are carried out; `changed`: something came of them."""
        known = self._known.get(container.id)
        if known is None or not changed:
            return
        after = self._store.containers.by_id(container.id)
        alone = after is not None and known.version == container.profile_version == after.profile_version - 1
        changes = [change for decided in decisions for change in decided.changes]
        if after is None or not alone or any(change.action == "remove" for change in changes):
            del self._known[container.id]  # what was taken back here may still be said elsewhere
            return
        standing = self._store.memories.standing_in([decided.document.id for decided in decisions])
        now = {memory.id: memory for memories in standing.values() for memory in memories}
        gone = {change.memory_id for change in changes if change.action != "precede"} - {None}
        gone |= {memory_id for change in changes for memory_id in change.also_ended}
        for memory_id in {*now, *cast("set[str]", gone)}:
            known.take(memory_id)
        for memory in now.values():
            if memory.is_latest and not memory.is_forgotten:
                known.put(memory)
        known.version = after.profile_version

    def _current(self, container: Container) -> _Known:
        known = self._known.get(container.id)
        if known is None or known.version != container.profile_version:
            known = _Known(version=container.profile_version)
            for memory in self._store.memories.latest(container.id, limit=FACTS_MAX):
                known.put(memory)
            self._known[container.id] = known
        self._known.move_to_end(container.id)
        while len(self._known) > CONTAINERS_MAX:
            self._known.popitem(last=False)
        return known
