"""What an archive holds, whatever its format, and the folder in it that carries what files cannot."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, Literal

Format = Literal["tar", "tar.gz", "zip"]
Kind = Literal["file", "dir", "symlink"]

MEDIA_TYPES: Final[dict[str, str]] = {"tar": "application/x-tar", "tar.gz": "application/gzip", "zip": "application/zip"}
SIDECAR: Final = ".memdir"
CONTAINER_FILE: Final = "container.json"
"""The first member: by it an export is known, and the name of the folder."""
DOCUMENTS_FILE: Final = "documents.jsonl"
MEMORIES_FILE: Final = "memories.jsonl"
MEMORIES_MAX: Final = 10_000
LOOSE_FOLDER: Final = "documents"
"""Contents of documents without a place, named by their ids."""
FORMAT_NAME: Final = "memdir-container"
FORMAT_VERSION: Final = 1
ZIP_ENTRIES_MAX: Final = 200_000
"""Both writing and reading a zip holds its table of contents in memory."""
PIECE_BYTES: Final = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """One entry. `name` is relative, without a trailing slash."""

    name: str
    kind: Kind
    size_bytes: int
    mode: int
    mtime_ns: int
    content: Callable[[], Iterator[bytes]]
    """Of a symlink: its target. Each piece at most 1 MiB."""
