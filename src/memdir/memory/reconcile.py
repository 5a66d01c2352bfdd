"""What becomes of new candidates, given what is known. Pure: no clock, no I/O, no randomness.

`own` is what the document said before (superseded facts included, as long as it still stood in the document); `others` is what
holds now and comes from elsewhere. The same sentence is the same fact; the same subject and attribute with another value is
an update; what the document no longer says is removed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from memdir.memory.claims import claim_of, formers_of
from memdir.store.types import Memory, MemoryCandidate

Action = Literal["add", "supersede", "remove", "strengthen"]
SIMILAR: Final = 0.6
"""Share of words (Jaccard) from which an edited line is a new version of what stood there and not another fact."""

_PAIR: Final = re.compile(r"^(?:[^:]{1,40} – )?(?P<key>[^:]{1,40}): +\S")
_DEFINITE: Final = re.compile(r"^(?P<what>(?:the|its) [\w' -]{2,60}?) (?:is|are|will be) \S", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One decision; `store.protocols.MemoryChange`."""

    action: Action
    candidate: MemoryCandidate | None = None
    memory_id: str | None = None
    relation: str | None = None


def reconcile(candidates: Sequence[MemoryCandidate], *, own: Sequence[Memory], others: Sequence[Memory]) -> tuple[Change, ...]:
    """Changes that make the store say what the document says now; applying them twice changes nothing the second time."""
    changes: list[Change] = []
    own_by_text = {same_text(memory.candidate.text): memory for memory in own}
    other_by_text = {same_text(memory.candidate.text): memory for memory in others}
    other_by_topic = _by_topic(others)
    still: set[str] = set()
    fresh: list[MemoryCandidate] = []
    for candidate in candidates:
        known = own_by_text.get(same_text(candidate.text)) or other_by_text.get(same_text(candidate.text))
        if known is None:
            fresh.append(candidate)
        else:
            still.add(known.id)
            changes.append(Change(action="strengthen", candidate=candidate, memory_id=known.id))
    gone = [memory for memory in own if memory.id not in still]
    gone_by_topic = _by_topic(gone)
    replaced: set[str] = set()
    for candidate in fresh:
        earlier = _replaced_by(candidate, gone_by_topic, replaced) or _edited(candidate, gone, replaced)
        relation = "updates"
        if earlier is None:
            earlier = _replaced_by(candidate, other_by_topic, replaced)
            relation = "contradicts" if earlier is not None and earlier.candidate.kind == candidate.kind else "updates"
        if earlier is not None and (earlier.is_latest or earlier in gone):
            replaced.add(earlier.id)
            changes.append(Change(action="supersede", candidate=candidate, memory_id=earlier.id, relation=relation))
        else:
            changes.append(Change(action="add", candidate=candidate))
    changes.extend(Change(action="remove", memory_id=memory.id) for memory in gone if memory.id not in replaced)
    return tuple(changes)


def same_text(text: str) -> str:
    """Two facts with the same of this are one: case, punctuation at the end and white space do not count."""
    return " ".join(text.casefold().split()).rstrip(".!;, ")


def fact_of(candidate: MemoryCandidate) -> tuple[str, str] | None:
    """Subject and attribute when the statement gives the one value of something; None when several may hold at once."""
    pair = _PAIR.match(candidate.text)
    if pair is not None and candidate.kind == "static":
        return candidate.subject.casefold(), pair["key"].strip().casefold()
    claim = claim_of(candidate.text)
    if claim is not None:
        return (claim.subject, claim.attribute) if claim.is_single else None
    definite = _DEFINITE.match(candidate.text) if candidate.kind == "static" else None
    return None if definite is None else (candidate.subject.casefold(), " ".join(definite["what"].casefold().split()))


def topics_of(candidate: MemoryCandidate) -> frozenset[tuple[str, str]]:
    """By what a fact is found that a later one may replace: its subject and attribute; its subject and value (after `=`)."""
    fact = fact_of(candidate)
    claim = claim_of(candidate.text)
    found = {fact} if fact is not None else set()
    if claim is not None:
        found |= {(claim.subject, claim.attribute), (claim.subject, f"={claim.value}")}
    return frozenset(found)


def replaced_topics_of(candidate: MemoryCandidate) -> list[tuple[str, str]]:
    """Topics of the facts that a statement replaces: of its own attribute, where that has one value, and of the values
    which it says are gone."""
    fact = fact_of(candidate)
    claim = claim_of(candidate.text)
    subject = candidate.subject.casefold() if claim is None else claim.subject
    return ([fact] if fact is not None else []) + [(subject, f"={former}") for former in sorted(formers_of(candidate.text))]


def _by_topic(memories: Iterable[Memory]) -> dict[tuple[str, str], list[Memory]]:
    table: dict[tuple[str, str], list[Memory]] = {}
    for memory in memories:
        for topic in topics_of(memory.candidate):
            table.setdefault(topic, []).append(memory)
    return table


def _replaced_by(
    candidate: MemoryCandidate, table: Mapping[tuple[str, str], Sequence[Memory]], used: set[str]
) -> Memory | None:
    """The first fact that holds no more."""
    for topic in replaced_topics_of(candidate):
        found = _first(table.get(topic, ()), used)
        if found is not None:
            return found
    return None


def _first(memories: Iterable[Memory], used: set[str]) -> Memory | None:
    return next((memory for memory in memories if memory.id not in used), None)


def _edited(candidate: MemoryCandidate, gone: Sequence[Memory], used: set[str]) -> Memory | None:
    """The vanished fact that this line most resembles, if enough."""
    words = _words(candidate.text)
    best: Memory | None = None
    best_share = SIMILAR
    for memory in gone:
        if memory.id in used or memory.candidate.kind != candidate.kind:
            continue
        other = _words(memory.candidate.text)
        share = len(words & other) / max(1, len(words | other))
        if share >= best_share and (best is None or share > best_share):
            best, best_share = memory, share
    return best


def _words(text: str) -> frozenset[str]:
    return frozenset(re.findall(r"\w+", text.casefold()))
