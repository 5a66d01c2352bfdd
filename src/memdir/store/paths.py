"""Paths inside a container: absolute, `/`-separated, valid Unicode kept as it is (no normalisation)."""

from __future__ import annotations

import re
from typing import Final

from memdir.core.limits import NAME_MAX_BYTES, PATH_MAX_BYTES
from memdir.store.errors import InvalidError

AGENT_FOLDER: Final = "/memory"
"""Where the memories of agents lie, a folder for each project."""
INBOX: Final = "inbox"
"""The folder, in that of a project or beside them, for what is no memory before somebody keeps it."""

_TOOL_OWNED: Final = re.compile(
    r"/(?:\.obsidian|\.smart-env|\.trash|logseq/(?:bak|\.recycle)|\.stversions|\.history|\.idea|\.ipynb_checkpoints|__MACOSX)/",
    re.IGNORECASE,
)


def checked_path(path: str, *, root: bool = False) -> str:
    """`path` without a trailing slash; InvalidError when it is relative, climbs, has empty or `.` components, NUL, a lone
    surrogate, or is too long. The root itself is allowed only with `root`."""
    if "\0" in path:
        raise InvalidError("a path cannot contain NUL")
    if not path.startswith("/"):
        raise InvalidError(f"a path must begin with '/', this is {path[:80]!r}")
    trimmed = path.rstrip("/") if path.strip("/") else "/"
    if trimmed == "/":
        if root and path == "/":
            return "/"
        raise InvalidError(
            "the root of a container cannot be changed" if path == "/" else f"{path[:80]!r} has an empty component"
        )
    if path.endswith("//"):
        raise InvalidError(f"{path[:80]!r} has an empty component")
    try:
        raw = trimmed.encode()
    except UnicodeEncodeError:
        raise InvalidError("a path must be valid Unicode") from None
    if len(raw) > PATH_MAX_BYTES:
        raise InvalidError(f"a path can have at most {PATH_MAX_BYTES} bytes, this has {len(raw)}")
    for part in trimmed[1:].split("/"):
        if part in ("", ".", ".."):
            raise InvalidError(f"{path[:80]!r} has the component {part!r}", hint="send a path without '.', '..' and '//'")
        if len(part) * 4 > NAME_MAX_BYTES and len(part.encode()) > NAME_MAX_BYTES:
            raise InvalidError(f"a name can have at most {NAME_MAX_BYTES} bytes")
    return trimmed


def ancestors(path: str) -> list[str]:
    """The folders above `path`, nearest last, without the root: `/a/b/c` has `/a` and `/a/b`."""
    parts = path.split("/")[1:-1]
    return ["/" + "/".join(parts[: count + 1]) for count in range(len(parts))]


def below(folder: str) -> tuple[str, str]:
    """Bounds of everything below `folder`: first included, second excluded. The root's are all absolute paths."""
    return ("/", "0") if folder == "/" else (folder + "/", folder + "0")


def is_within(path: str, folder: str) -> bool:
    """Whether `path` is `folder` or stands below it."""
    return folder == "/" or path == folder or path.startswith(folder + "/")


def suffix(path: str) -> str:
    """The extension in lower case with its dot, or ''; a leading dot alone is not one."""
    name = path.rpartition("/")[2]
    stem, dot, extension = name.rpartition(".")
    return dot + extension.lower() if stem else ""


def is_inbox(path: str) -> bool:
    """Whether what lies at a path only waits to be kept: in the inbox of a project (`/memory/PROJECT/inbox/`), or of none."""
    return is_within(path, AGENT_FOLDER) and INBOX in path[len(AGENT_FOLDER) + 1 :].split("/")[:-1][:2]


def is_tool_owned(path: str) -> bool:
    """Whether an editor or a sync program keeps it for itself: its state, deleted notes, former versions."""
    return _TOOL_OWNED.search(path) is not None


def under_memory_paths(path: str | None, memory_paths: tuple[str, ...]) -> bool:
    """Whether a document at `path` is a source of memories. A trailing slash means the folder and all below it. What waits in
    an inbox is none, nor what a tool keeps for itself."""
    if path is None or is_inbox(path) or is_tool_owned(path):
        return False
    return any(path == entry or (entry.endswith("/") and path.startswith(entry)) for entry in memory_paths)


def is_memory_source(path: str | None, task_type: str, memory_paths: tuple[str, ...]) -> bool:
    """Whether memories are drawn from a document: under the memory paths; or without a place, which only the API makes, in a
    container that keeps memories at all. Never when it was given for search only (`superrag`)."""
    if task_type != "memory":
        return False
    return bool(memory_paths) if path is None else under_memory_paths(path, memory_paths)
