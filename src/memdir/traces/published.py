"""Trajectories in the published layout (`events.json`: a list of events, or an object with one) as events of ours.

Names differ between versions: `event_type` for `type`, `timestamp` in seconds or ISO 8601, `session_id`, `file_path`. Metadata
of a simulation (tool calls, answers of a model, iterations) and fields that name a model are left out.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, Final

from memdir.traces.events import TYPES, Event

STRIPPED: Final = frozenset(
    {
        *("tool_call", "llm_response", "iteration_start", "iteration_end", "fs_snapshot", "session_start", "session_end"),
        *("error_encounter", "error_response", "compaction_triggered"),
    }
)
"""The lower block of FileGram's Table 5."""
_NAMES_A_MODEL: Final = frozenset({"message_id", "model_provider", "model_name"})
_OWN: Final = frozenset({"type", "event_type", "timestamp", "timestamp_ms", "session_id", "session", "event_id", "id"})
"""Kept as what they are, not as fields."""
_PATHS: Final = ("path", "file_path", "dir_path", "dest_path", "new_path", "target_file", "to_file", "directory_path")
_FILE_MAX_BYTES: Final = 256 << 20


class NotPublishedError(ValueError):
    """The text is no trajectory."""


def read(text: str, name: str) -> Iterator[Event]:
    """Events in the file's order; `name` is the session of those that name none. NotPublishedError."""
    try:
        found = json.loads(text)
    except ValueError as error:
        raise NotPublishedError(f"this is no JSON: {error}") from None
    rows = found.get("events") if isinstance(found, dict) else found
    if not isinstance(rows, list):
        raise NotPublishedError("a trajectory is a list of events, or an object with a list `events`")
    session = str(found.get("session_id") or found.get("trajectory_id") or name) if isinstance(found, dict) else name
    for number, row in enumerate(rows):
        if not isinstance(row, dict):
            raise NotPublishedError(f"event {number} is no object")
        kind = str(row.get("type") or row.get("event_type") or "")
        if kind in STRIPPED:
            continue
        if kind not in TYPES:
            raise NotPublishedError(f"event {number} is of the type {kind[:40]!r}, which is none of the {len(TYPES)}")
        yield _event(row, kind, number, session)


def _event(row: Mapping[str, Any], kind: str, number: int, session: str) -> Event:
    path = next((str(row[one]) for one in _PATHS if row.get(one)), "/")
    own = {
        key: value for key, value in row.items()
        if key not in _NAMES_A_MODEL | _OWN
    }  # fmt: skip
    if "file_type" not in own and "." in path.rpartition("/")[2]:
        own["file_type"] = path.rpartition(".")[2].casefold()
    if kind == "file_write":
        own.setdefault("length", own.get("content_length", len(str(own.get("content", "")))))
        own.setdefault("operation", "create")
    return Event(
        id=str(row.get("event_id") or row.get("id") or f"{session}-{number}"), type=kind, timestamp_ms=_ms(row, number),
        session=str(row.get("session_id") or row.get("session") or session), actor="imported", pid=0, root="",
        path=path if path.startswith("/") else f"/{path}", fields=own, raw="imported",
    )  # fmt: skip


def _ms(row: Mapping[str, Any], number: int) -> int:
    if row.get("timestamp_ms") is not None:
        return int(row["timestamp_ms"])
    told = row.get("timestamp")
    if isinstance(told, int | float):
        return int(told if told > 1e11 else told * 1000)
    if isinstance(told, str):
        try:
            return int(datetime.fromisoformat(told).timestamp() * 1000)
        except ValueError:
            raise NotPublishedError(f"event {number}: {told[:40]!r} is no time") from None
    return number * 1000
