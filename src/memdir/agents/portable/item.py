"""One memory on its way between a file and a server, and what may be wrong with it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

from memdir.core.errors import MemdirError
from memdir.core.limits import ACCESSES_MAX, MEMORY_MAX_CHARS, MEMORY_PROJECT_MAX_CHARS, MEMORY_TAG_MAX_CHARS, MEMORY_TAGS_MAX

_EPOCH_MS_FROM: Final = 1e11
"""Numbers from here on are milliseconds: as seconds they would be in the year 5138."""


class PortableError(MemdirError):
    """A file cannot be taken over. The message says where and why."""


class BadItemError(PortableError):
    """One entry of a file that is otherwise sound."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """A memory as a file tells it. `where` is its place in the file, for messages."""

    content: str
    where: str
    tags: tuple[str, ...] = ()
    project: str | None = None
    created_at: str | None = None
    updated_at: str | None = None
    access_count: int = 0
    metadata: dict[str, Any] = field(default_factory=dict)

    def wire(self) -> dict[str, Any]:
        """An `ImportItem` of `api.agents`."""
        return {
            "content": self.content, "tags": list(self.tags), "project": self.project, "createdAt": self.created_at,
            "updatedAt": self.updated_at, "accessCount": self.access_count, "metadata": self.metadata,
        }  # fmt: skip


@dataclass(slots=True, kw_only=True)
class Left:
    """What a file holds besides memories and is not taken over: how many of what."""

    counts: dict[str, int] = field(default_factory=dict)

    def add(self, what: str, count: int = 1) -> None:
        if count:
            self.counts[what] = self.counts.get(what, 0) + count


def made(
    content: Any,
    where: str,
    *,
    tags: Iterable[Any] = (),
    project: Any = None,
    created: Any = None,
    updated: Any = None,
    access_count: Any = 0,
    metadata: dict[str, Any] | None = None,
) -> Item:
    """An `Item` of what a file says. BadItemError for what is no memory; tags beyond the bounds are cut, for they are hints."""
    if not isinstance(content, str) or not content.strip():
        raise BadItemError(f"{where}: there is no text", hint="--skip-bad leaves such entries out")
    if len(content) > MEMORY_MAX_CHARS:
        raise BadItemError(
            f"{where}: the text has {len(content):,} characters, and a memory at most {MEMORY_MAX_CHARS:,}",
            hint="--skip-bad leaves such entries out",
        )
    if not isinstance(access_count, int) or isinstance(access_count, bool) or access_count < 0:
        raise BadItemError(f"{where}: {access_count!r} is no number of accesses")
    named = project.strip()[:MEMORY_PROJECT_MAX_CHARS] if isinstance(project, str) and project.strip() else None
    return Item(
        content=content, where=where, tags=_tags(tags), project=named, created_at=moment(created, where),
        updated_at=moment(updated, where), access_count=min(access_count, ACCESSES_MAX),
        metadata=_without_nothing(metadata or {}),
    )  # fmt: skip


def moment(value: Any, where: str) -> str | None:
    """ISO 8601 in UTC of a text, or of seconds or milliseconds since 1970; None for none. BadItemError for anything else."""
    if value is None or value == "":
        return None
    try:
        found = _read_moment(value)
    except (ValueError, OverflowError, OSError):
        found = None
    if found is None:
        raise BadItemError(f"{where}: {str(value)[:60]!r} is no time", hint="times are ISO 8601, or seconds since 1970")
    return found.astimezone(UTC).isoformat().replace("+00:00", "Z")


def _read_moment(value: Any) -> datetime | None:
    if isinstance(value, str):
        found = datetime.fromisoformat(value.strip())
        return found if found.tzinfo is not None else found.replace(tzinfo=UTC)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return datetime.fromtimestamp(value / 1000 if abs(value) >= _EPOCH_MS_FROM else value, tz=UTC)
    return None


def _tags(given: Iterable[Any]) -> tuple[str, ...]:
    seen: dict[str, None] = {}
    for tag in given:
        if isinstance(tag, str) and tag.strip():
            seen.setdefault(tag.strip().lstrip("#")[:MEMORY_TAG_MAX_CHARS].strip() or "tag", None)
    return tuple(seen)[:MEMORY_TAGS_MAX]


def _without_nothing(metadata: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in metadata.items() if value not in (None, "", [], {})}
