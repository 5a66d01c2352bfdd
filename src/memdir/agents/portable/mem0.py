"""mem0: what `get_all` answers, saved as it is, and the backup of OpenMemory.

`get_all` gives `{"results": [...], "relations": [...]}` (version 1.0 of its API: the list alone), the platform with pages
around it; an entry has `id`, `memory`, `metadata`, `categories`, `created_at`, `updated_at` and whom it is about. OpenMemory's
backup is a zip with `memories.jsonl.gz`, a memory a line with `content`, `state`, `app`, `categories` (docs.mem0.ai and, in
mem0's repository, openmemory/api/app/routers/backup.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO, Any, Final

from memdir.agents.portable.graph import json_lines
from memdir.agents.portable.item import BadItemError, Item, Left, made
from memdir.agents.portable.jsonstream import entries

_TEXTS: Final = ("memory", "text", "content", "data")
_WHOSE: Final = ("user_id", "agent_id", "app_id", "run_id", "actor_id", "app")
_SINGLE: Final = frozenset({"count", "next", "previous", "total"})
_GONE: Final = frozenset({"deleted", "archived"})


def read_results(source: IO[str], left: Left) -> Iterator[Item | BadItemError]:
    """A saved answer of `get_all`, or a member `memories` of the same shape."""
    for entry in entries(source):
        if entry.index is None:
            if entry.key not in _SINGLE:
                left.add(entry.key)
        elif entry.key in ("", "results", "memories"):
            yield from _memory(entry.value, f"line {entry.line}", left)
        else:
            left.add(entry.key)


def read_lines(source: IO[str], left: Left) -> Iterator[Item | BadItemError]:
    """A memory a line."""
    for where, record in json_lines(source):
        if isinstance(record, BadItemError):
            yield record
        else:
            yield from _memory(record, where, left)


def _memory(record: Any, where: str, left: Left) -> Iterator[Item | BadItemError]:
    if not isinstance(record, dict):
        yield BadItemError(f"{where}: a memory is an object", hint="--skip-bad leaves such entries out")
        return
    if record.get("state") in _GONE:
        left.add(f"{record['state']} memories")
        return
    own = record.get("metadata")
    metadata = dict(own) if isinstance(own, dict) else {}
    categories = record.get("categories") or metadata.pop("categories", None) or []
    tags = metadata.pop("tags", None) or []
    try:
        yield made(
            next((record[name] for name in _TEXTS if record.get(name)), None), where,
            tags=[*_texts(categories), *_texts(tags)], project=metadata.pop("project", None),
            created=record.get("created_at"), updated=record.get("updated_at"),
            metadata={"importedFrom": "mem0", "importedId": record.get("id")}
            | {name: record.get(name) for name in _WHOSE} | metadata,
        )  # fmt: skip
    except BadItemError as error:
        yield error


def _texts(value: Any) -> list[str]:
    if isinstance(value, str):
        return value.split(",")
    return [text for text in value if isinstance(text, str)] if isinstance(value, list) else []
