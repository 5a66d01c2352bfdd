"""The file that a command writes: never over another by accident, and whole or not at all."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from typing import IO

from memdir.core.errors import UsageError


def check_target(file: str, *, force: bool) -> None:
    """UsageError when there is a file already and it is not to be replaced."""
    if file != "-" and not force and os.path.lexists(file):
        raise UsageError(f"{file} exists", hint="use --force to replace it")


def write_target(file: str, pieces: Iterable[bytes]) -> int:
    """Bytes written. A file appears whole or not at all, and is its owner's only; - is standard output."""
    if file == "-":
        sys.stdout.flush()
        return _copy(sys.stdout.buffer, pieces)
    part = f"{file}.part-{os.getpid()}"
    try:
        fd = os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600)
    except (FileNotFoundError, NotADirectoryError):
        raise UsageError(f"there is no folder for {file}", hint="make it first, or write somewhere else") from None
    try:
        with os.fdopen(fd, "wb") as target:
            size = _copy(target, pieces)
            target.flush()
            os.fsync(target.fileno())
        os.replace(part, file)
    except BaseException:
        os.unlink(part)
        raise
    return size


def _copy(target: IO[bytes], pieces: Iterable[bytes]) -> int:
    size = 0
    for piece in pieces:
        target.write(piece)
        size += len(piece)
    target.flush()
    return size
