"""Containers and their settings."""

from __future__ import annotations

import json
from typing import Any, Final

from memdir.api import v3
from memdir.core.clock import iso_ms
from memdir.server.http.access import Caller
from memdir.server.http.etags import tag_of_settings
from memdir.store.errors import InvalidError, PreconditionError
from memdir.store.tree.containers import MEMORY_PATHS_KEY, VERSION_BOUNDS
from memdir.store.tree.versions import PRUNE_ROWS
from memdir.store.types import Container

PRUNE_STEPS_MAX: Final = 100
"""Steps of pruning that a change of the settings does at once."""


def _answer(container: Container, settings: dict[str, Any]) -> dict[str, Any]:
    return settings | {
        "containerTag": container.tag,
        "createdAt": iso_ms(container.created_at_ms),
        "updatedAt": iso_ms(container.updated_at_ms),
    }


_STAMPS: Final = ("containerTag", "createdAt", "updatedAt")


def settings_tag(answer: dict[str, Any]) -> str:
    """The ETag of an answer with settings."""
    return tag_of_settings({name: value for name, value in answer.items() if name not in _STAMPS})


def listing(caller: Caller) -> list[v3.ContainerTag]:
    """The containers that the key may read whole, with what they hold."""
    found = [container for container in caller.readable() if caller.key.covers("/")]
    ids = [container.id for container in found]
    files = caller.store.documents.counts(ids) if ids else {}
    memories = caller.store.memories.counts(ids) if ids else {}
    return [
        v3.ContainerTag(
            id=container.tag,
            name=container.tag,
            container_tag=container.tag,
            document_count=files.get(container.id, 0),
            memory_count=memories.get(container.id, 0),
            created_at=iso_ms(container.created_at_ms),
            updated_at=iso_ms(container.updated_at_ms),
        )
        for container in found
    ]


def settings(caller: Caller, tag: str) -> dict[str, Any]:
    """All settings; to a key that is bound to a folder, the memory paths in it."""
    folder = caller.narrowed("/")
    container = caller.container(tag, "read", at=folder)
    found = caller.store.containers.settings(container.id)
    if folder != "/":
        found = {MEMORY_PATHS_KEY: [path for path in found[MEMORY_PATHS_KEY] if caller.key.covers(path)]}
    return _answer(container, found)


def change_settings(caller: Caller, tag: str, changes: dict[str, Any], *, if_match: str | None = None) -> dict[str, Any]:
    """Merge settings, if they still are what `if_match` names (an answer of `settings_tag`). Documents that come under the
    memory paths, or leave them, are read again for memories."""
    changes = {name: value for name, value in changes.items() if name not in _STAMPS}
    try:
        json.dumps(changes, allow_nan=False)
    except ValueError as error:
        raise InvalidError(f"settings must be plain JSON: {error}") from None
    before = caller.ensured(tag, "write")

    def check(standing: dict[str, Any]) -> None:
        if if_match is not None and if_match.strip() not in ("*", tag_of_settings(standing)):
            raise PreconditionError("the settings were changed meanwhile", current=None)

    caller.store.containers.change_settings(before.id, changes, check=check)
    after = caller.container(tag, "write")
    if MEMORY_PATHS_KEY in changes and before.memory_paths != after.memory_paths:
        caller.store.files.reread_memories(after, before.memory_paths)
    if VERSION_BOUNDS.keys() & changes.keys():
        for _ in range(PRUNE_STEPS_MAX):  # what is left goes with the hourly round
            if caller.store.versions.prune(after) < PRUNE_ROWS:
                break
    return settings(caller, tag)


def delete(caller: Caller, tag: str) -> None:
    """Delete a container with all that is in it."""
    container = caller.container(tag, "write", frees=True)
    caller.store.files.delete_container(container)
