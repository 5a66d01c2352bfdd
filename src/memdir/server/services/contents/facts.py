"""Why a fact is in the profile: the lines that say it, and what it said before."""

from __future__ import annotations

import re
from typing import Final, Literal, cast

from memdir.api import facts as wire
from memdir.core.clock import iso_ms
from memdir.server.http.access import Caller
from memdir.store.memories.memories import Source
from memdir.store.types import Memory

_READ_MAX: Final = 20_000
_WORD: Final = re.compile(r"\w+")


def why(caller: Caller, tag: str, query: str) -> wire.FactsWhy:
    """Those whose sources the caller may read, at most FACTS_MAX."""
    container = caller.found(tag, "read")
    if container is None:
        return wire.FactsWhy(facts=[])
    words = {word.casefold() for word in _WORD.findall(query)}
    found = []
    for memory in caller.store.memories.latest(container.id, limit=_READ_MAX):
        if words and words <= {word.casefold() for word in _WORD.findall(memory.candidate.text)}:
            sources = [one for one in caller.store.memories.sources(memory.id) if _may_see(caller, one)]
            if sources:
                found.append(_fact(caller, memory, sources))
        if len(found) == wire.FACTS_MAX:
            break
    return wire.FactsWhy(facts=found)


def _may_see(caller: Caller, source: Source) -> bool:
    return source.path is None or caller.key.covers(source.path)


def _fact(caller: Caller, memory: Memory, sources: list[Source]) -> wire.Fact:
    versions = caller.store.memories.history(memory.id)
    return wire.Fact(
        id=memory.id,
        text=memory.candidate.text,
        kind=cast("Literal['static', 'dynamic']", memory.candidate.kind),
        subject=memory.candidate.subject,
        confidence=round(memory.candidate.confidence, 2),
        updated_at=iso_ms(memory.updated_at_ms),
        sources=[
            wire.FactSource(path=one.path, start_line=one.start_line, end_line=one.end_line, stands=one.stands)
            for one in sources
        ],
        versions=[
            wire.FactVersion(text=one.candidate.text, since=iso_ms(one.created_at_ms), relation=one.relation)
            for one in reversed(versions)
        ],
    )
