"""The profile of a container as texts: what `profile.md` and the folder `profile/` of a mount show."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from memdir.api import profile as wire
from memdir.memory.pages import Known, pages
from memdir.memory.profile import profile
from memdir.server.http.access import Caller
from memdir.store.passages.reading import IN_MAX
from memdir.store.types import Memory

_READ_MAX: Final = 20_000


def read(caller: Caller, tag: str) -> wire.ProfileAnswer:
    """Of facts whose source the caller may read. A container that does not exist knows nothing."""
    container = caller.found(tag, "read")
    memories = () if container is None else caller.store.memories.latest(container.id, limit=_READ_MAX)
    documents = caller.store.documents.many({one.document_id for one in memories if one.document_id is not None})
    known: list[Known] = []
    former = _former(caller, memories)
    for memory in memories:
        document = documents.get(memory.document_id or "")
        path = None if document is None else document.path
        if caller.key.covers("/" if path is None else path):
            place = "" if path is None else f"{path.lstrip('/')}:{memory.candidate.start_line}"
            known.append(Known(memory=memory, place=place, former=former.get(memory.id, ())))
    now_ms = caller.store.now_ms()
    shown = profile([one.memory for one in known], now_ms=now_ms)
    return wire.ProfileAnswer(
        static=shown.static_texts,
        dynamic=shown.dynamic_texts,
        pages=[wire.ProfilePage(name=name, text=text) for name, text in pages(known, now_ms=now_ms).items()],
    )


def _former(caller: Caller, memories: Sequence[Memory]) -> dict[str, list[Memory]]:
    """What was so before some facts, the latest first."""
    changed = [memory.id for memory in memories if memory.parent_id is not None][:IN_MAX]
    found: dict[str, list[Memory]] = {}
    for memory in caller.store.memories.ended(changed) if changed else ():
        found.setdefault(memory.ended_by or "", []).append(memory)
    return {memory_id: sorted(own, key=lambda one: -(one.candidate.said_ms or 0)) for memory_id, own in found.items()}
