"""Which documents memories are drawn from."""

from __future__ import annotations

from collections.abc import Sequence


def is_memory_path(path: str | None, memory_paths: Sequence[str]) -> bool:
    """Whether `path` is under one of the container's memory paths.

    An entry with a trailing slash means the folder and everything below it; without, exactly that file. No entries: nothing.
    """
    if path is None:
        return False
    return any(path.startswith(entry) if entry.endswith("/") else path == entry for entry in memory_paths)
