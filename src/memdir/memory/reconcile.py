"""What becomes of new candidates, given what is known. Pure: no clock, no I/O, no randomness.

`own` is what the document said before (superseded facts included, as long as it still stood in the document); `others` is what
holds now and comes from elsewhere. The same sentence is the same fact; the same subject and attribute with another value is
an update; what the document no longer says is removed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from memdir.store.types import Memory, MemoryCandidate

Action = Literal["add", "supersede", "remove", "strengthen"]
SIMILAR: Final = 0.6
"""Share of words (Jaccard) from which an edited line is a new version of what stood there and not another fact."""

_FIRST_PERSON: Final = re.compile(r"^(?:i|i'm|i’m|my|me|we|our|the user|user)\b", re.IGNORECASE)
_PAIR: Final = re.compile(r"^(?:[^:]{1,40} – )?(?P<key>[^:]{1,40}): +\S")
_OF_PERSON: Final = re.compile(
    r"^(?P<who>.{1,40}?)(?:['’]s?)? (?P<what>lives? in|lived in|moved to|is based in|works? (?:at|for)|reports? to"
    r"|was born (?:in|on)"
    r"|(?:name|birthday|time ?zone|job|title|role|address|phone(?: number)?|favou?rite [\w ]{1,30}?) is|is called)\b",
    re.IGNORECASE,
)
_USES_FOR: Final = re.compile(r"^(?P<who>.{1,40}?) uses? .{1,80}? (?P<what>(?:for|as) .{2,60})$", re.IGNORECASE)
_DEFINITE: Final = re.compile(
    r"^(?P<what>(?:the|my|our|his|her|their|its) [\w' -]{2,60}?) (?:is|are|will be) \S", re.IGNORECASE
)
_SAME: Final = {
    **dict.fromkeys(("live in", "lived in", "moved to", "is based in"), "lives in"),
    **dict.fromkeys(("work at", "work for", "works for"), "works at"),
    "report to": "reports to",
}


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
    other_by_fact = _by_fact(others)
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
    gone_by_fact = _by_fact(gone)
    replaced: set[str] = set()
    for candidate in fresh:
        fact = fact_of(candidate)
        earlier = _first(gone_by_fact.get(fact, ()) if fact else (), replaced) or _edited(candidate, gone, replaced)
        relation = "updates"
        if earlier is None and fact is not None:
            earlier = _first(other_by_fact.get(fact, ()), replaced)
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
    text = candidate.text
    if candidate.kind == "dynamic":
        return None
    pair = _PAIR.match(text)
    if pair is not None:
        return candidate.subject.casefold(), pair["key"].strip().casefold()
    for pattern in (_OF_PERSON, _USES_FOR):
        found = pattern.match(text)
        if found is not None:
            what = " ".join(found["what"].casefold().rstrip(". ").split())
            return _who(found["who"]), _SAME.get(what, what)
    definite = _DEFINITE.match(text)
    if definite is not None:
        return candidate.subject.casefold(), " ".join(definite["what"].casefold().split())
    return None


def _who(name: str) -> str:
    return "user" if _FIRST_PERSON.match(name) else name.casefold().strip()


def _by_fact(memories: Iterable[Memory]) -> dict[tuple[str, str], list[Memory]]:
    table: dict[tuple[str, str], list[Memory]] = {}
    for memory in memories:
        fact = fact_of(memory.candidate)
        if fact is not None:
            table.setdefault(fact, []).append(memory)
    return table


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
