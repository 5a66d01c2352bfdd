"""A life through the rules, without a server: what is extracted, reconciled and shown, against what is true."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from memdir.memory.extract import extract
from memdir.memory.profile import profile
from memdir.memory.reconcile import reconcile, same_text
from memdir.retrieval.grouping import tokens_of
from memdir.store.types import Memory, MemoryCandidate
from memdir_bench.memory.made_up_lives import NAMES, PROJECTS, Life, Truth

DAY_MS = 86_400_000


@dataclass(slots=True)
class Score:
    """Counts over lives."""

    extracted: int = 0
    right: int = 0
    stated: int = 0
    found: int = 0
    changed: int = 0
    up_to_date: int = 0
    contradictions: int = 0
    stale: int = 0
    unsupported: int = 0
    shown: int = 0
    rumours: int = 0
    believed: int = 0
    profile_tokens: list[int] = field(default_factory=list)


def says(memory: MemoryCandidate, truth: Truth) -> bool:
    """Whether a fact holds the value, and names whom it is about."""
    text = memory.text.casefold()
    named = f"{memory.subject} {text}".casefold()
    others = [name for name in (*NAMES, *PROJECTS) if _names(name, named)]
    about = not others if truth.who == "user" else _names(truth.who, named)  # and not of somebody else who has the same
    return truth.value.casefold() in text and about


def _names(name: str, text: str) -> bool:
    return re.search(rf"\b{name.split(maxsplit=1)[0].casefold()}\b", text) is not None


Reader = Callable[[str], list[tuple[int, str]]]


def bytes_before(text: str) -> Callable[[int], int]:
    """How many bytes of UTF-8 stand before a character of the text."""
    return lambda at: len(text[:at].encode())


class Store:
    """What a server keeps of memories, as far as reconciling needs it."""

    def __init__(self, reader: Reader | None = None) -> None:
        self._reader = reader
        self.memories: dict[str, Memory] = {}
        self._count = 0
        self._stands: dict[str, set[str]] = {}

    def latest(self) -> list[Memory]:
        return [one for one in self.memories.values() if one.is_latest and not one.is_forgotten]

    def own(self, path: str) -> list[Memory]:
        """What a note says, also what holds no more because of another one."""
        return [self.memories[one] for one in sorted(self._stands.get(path, ())) if one in self.memories]

    def write(self, path: str, text: str, *, now_ms: int) -> tuple[MemoryCandidate, ...]:
        """A note is written, or written anew; an empty one is gone. What it says that lasts."""
        restated = [] if self._reader is None else self._reader(text)
        candidates = extract(text, path, byte_at=bytes_before(text), restated=restated)
        own = self.own(path)
        others = [one for one in self.latest() if one.document_id != path]
        for change in reconcile(candidates, own=own, others=others):
            known = None if change.memory_id is None else self.memories[change.memory_id]
            if change.action == "remove" and known is not None:
                del self.memories[known.id]
            elif change.action == "strengthen" and known is not None:
                self.memories[known.id] = replace(known, updated_at_ms=now_ms)
            elif change.candidate is not None:
                if known is not None and change.action == "supersede":
                    self.memories[known.id] = replace(known, is_latest=False)
                for also in change.also_ended:
                    self.memories[also] = replace(self.memories[also], is_latest=False)
                self._count += 1
                name = f"m{self._count:05}"
                made = Memory(
                    id=name, container_id=1, document_id=path, revision=1, root_id=known.root_id if known else name,
                    parent_id=known.id if known else None, relation=change.relation, version=known.version + 1 if known else 1,
                    is_latest=change.action != "precede", is_forgotten=False, candidate=change.candidate, created_at_ms=now_ms,
                    updated_at_ms=now_ms,
                )  # fmt: skip
                self.memories[made.id] = made
        said = {same_text(one.text) for one in candidates}
        self._stands[path] = {
            one.id for one in self.memories.values() if one.document_id == path and same_text(one.candidate.text) in said
        }
        return tuple(one for one in candidates if not one.is_passing)


def judged(lives: Sequence[Life], reader: Reader | None = None) -> Score:
    """All lives, note by note; with what a model reads in them, when there is one."""
    score = Score()
    for one in lives:
        _judge(one, score, reader)
    return score


def _judge(one: Life, score: Score, reader: Reader | None) -> None:
    store = Store(reader)
    now_ms = 0
    for number, (path, text, stated) in enumerate(one.notes):
        now_ms = (20_000 + number) * DAY_MS
        found = store.write(path, text, now_ms=now_ms)
        score.extracted += len(found)
        score.right += sum(any(says(candidate, truth) for truth in stated) for candidate in found)
        score.stated += len(stated)
        score.found += sum(any(says(candidate, truth) for candidate in found) for truth in stated)
        score.unsupported += sum(not _is_supported(candidate, text) for candidate in found)
    for path, text, _ in one.rumours:
        store.write(path, text, now_ms=now_ms)
    visible = shown(store, now_ms)
    score.shown += len(visible)
    score.rumours += len(one.rumours)
    score.believed += sum(any(value in fact.text for fact in visible) for value in {said for _, _, said in one.rumours})
    kept_short = profile(store.latest(), now_ms=now_ms)
    score.profile_tokens.append(sum(map(tokens_of, kept_short.static_texts + kept_short.dynamic_texts)))
    changed = {(truth.who, truth.attribute) for truth in one.former}
    for who, attribute in changed:
        value = one.current[who, attribute]
        now = Truth(attribute=attribute, who=who, value=value)
        before = [truth for truth in one.former if (truth.who, truth.attribute) == (who, attribute) and truth.value != value]
        is_said = any(says(candidate, now) for candidate in visible)
        old = [truth for truth in before if any(says(candidate, truth) and not says(candidate, now) for candidate in visible)]
        score.changed += 1
        score.up_to_date += is_said and not old
        score.contradictions += is_said and bool(old)
    half = one.notes[::2]
    for path, _, _ in half:
        store.write(path, "", now_ms=now_ms)
    gone = {path for path, _, _ in half}
    kept = [truth for path, _, stated in one.notes if path not in gone for truth in stated]
    for _, _, stated in half:
        for truth in stated:
            if not any(other.value == truth.value for other in kept):
                score.stale += any(
                    says(candidate, truth) for candidate in shown(store, now_ms) if not _names_former(candidate, kept)
                )


def _names_former(candidate: MemoryCandidate, kept: Sequence[Truth]) -> bool:
    """ "I moved from Porto to Lisbon" says Porto, and may."""
    return any(says(candidate, truth) for truth in kept)


def shown(store: Store, now_ms: int) -> list[MemoryCandidate]:
    """All that the profile would say, if it had room."""
    seen = profile(store.latest(), now_ms=now_ms, budget_tokens=100_000)
    return [one.candidate for one in (*seen.static, *seen.dynamic)]


def _is_supported(candidate: MemoryCandidate, text: str) -> bool:
    """Whether the span says the fact, word for word or nearly."""
    span = text.encode()[candidate.start_byte : candidate.end_byte].decode("utf-8", "replace")
    words = {word.strip(".,:;–").casefold() for word in candidate.text.split()}
    return len(words - {word.strip(".,:;–").casefold() for word in span.split()}) <= 2
