"""Events by hand, for tests."""

from __future__ import annotations

from itertools import count
from typing import Any

from memdir.fs.operations import Operation
from memdir.traces.collect import Collector
from memdir.traces.events import Event

_numbers = count(1)


def event(kind: str, path: str = "/a.md", *, at_ms: int = 0, session: str = "s", **fields: Any) -> Event:
    number = next(_numbers)
    return Event(
        id=f"e{number:06}",
        type=kind,
        timestamp_ms=at_ms,
        session=session,
        actor="t",
        pid=1,
        root="/r",
        path=path,
        fields=fields,
    )


def created(path: str, content: str, **more: Any) -> Event:
    file_type = path.rpartition(".")[2]
    fields = {"operation": "create", "length": len(content), "content": content, "file_type": file_type}
    return event("file_write", path, **{**fields, **more})


def edited(path: str, added: int, deleted: int, **more: Any) -> Event:
    return event("file_edit", path, lines_added=added, lines_deleted=deleted, delta=[], **more)


def told(*operations: Operation) -> list[tuple[str, str]]:
    """Types and paths of what operations were."""
    return [(one.type, one.path) for one in events_of(*operations)]


def events_of(*operations: Operation) -> list[Event]:
    collector = Collector("/r")
    for one in operations:
        collector.take(one)
    return collector.settled(0, everything=True)


def op(kind: str, path: str, target: str = "", *, at_ms: int = 0, pid: int = 7, actor: str = "t", **more: Any) -> Operation:
    return Operation(
        kind=kind, at_ms=at_ms, pid=pid, actor=actor, session_key="k", path=path, target=target, raw=kind, **more  # type: ignore[arg-type]
    )  # fmt: skip
