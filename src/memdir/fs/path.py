"""Paths inside a mount: absolute, `/`-separated, no empty, `.` or `..` component, surrogateescape for odd bytes."""

from __future__ import annotations

import errno

from memdir.core.limits import NAME_MAX_BYTES, PATH_MAX_BYTES
from memdir.fs.errors import FsError


def join(parent: str, name: str) -> str:
    """`join("/", "a") == "/a"`, `join("/a", "b") == "/a/b"`."""
    return f"/{name}" if parent == "/" else f"{parent}/{name}"


def split(path: str) -> tuple[str, str]:
    """The parent and the last name; the root has the name ''."""
    parent, _, name = path.rpartition("/")
    return parent or "/", name


def is_within(path: str, folder: str) -> bool:
    """Whether `path` is `folder` or stands below it."""
    return folder == "/" or path == folder or path.startswith(folder + "/")


def rebase(path: str, old: str, new: str) -> str:
    """`path`, which is within `old`, as it reads after `old` became `new`."""
    return new + path[len(old) :]


def checked(path: str) -> str:
    """Normalise a path from outside; EINVAL for NUL, `..` or what no bytes stand for, ENAMETOOLONG past the limits."""
    if "\0" in path:
        raise FsError(errno.EINVAL, "a path cannot contain NUL")
    parts = [part for part in path.split("/") if part not in ("", ".")]
    if ".." in parts:
        raise FsError(errno.EINVAL, f"{path!r} leaves the mount")
    if any(len(encode(part)) > NAME_MAX_BYTES for part in parts):
        raise FsError(errno.ENAMETOOLONG)
    result = "/" + "/".join(parts)
    if len(encode(result)) > PATH_MAX_BYTES:
        raise FsError(errno.ENAMETOOLONG)
    return result


def encode(text: str) -> bytes:
    """Name or path as the kernel has it; EINVAL for half of a surrogate pair, which JSON can carry and UTF-8 cannot."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError as error:
        raise FsError(errno.EINVAL, f"{text!r} is no text: half of a surrogate pair") from error


def decode(raw: bytes) -> str:
    """Name or path as Python code handles it; round-trips any bytes."""
    return raw.decode("utf-8", "surrogateescape")
