"""The folder of a cache: made so that it lasts, and held by one process at a time."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

from memdir.core.errors import BusyError
from memdir.core.paths import ensure_dir
from memdir.core.processes import lock_holders
from memdir.fs.cache.journal import sync_folder
from memdir.fs.cache.mark import LOCK_NAME
from memdir.fs.cache.tables import DATABASE_NAME


def make_durable(folder: Path) -> None:
    """Make the folder and see that its name survives a power cut, which a sync of what is in it does not promise."""
    if (folder / DATABASE_NAME).exists():
        return
    missing = [folder, *(above for above in folder.parents if not above.exists())]
    ensure_dir(folder)
    for made in missing:
        sync_folder(made.parent)


def lock_folder(folder: Path) -> int:
    """Take the folder for this process; the descriptor holds it. BusyError."""
    fd = os.open(folder / LOCK_NAME, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(fd)
        holders = ", ".join(map(str, lock_holders(folder / LOCK_NAME))) or "another process"
        raise BusyError(
            f"{folder} is in use by {holders}", hint="unmount it there first; `memdir recover` tells what hangs"
        ) from error
    return fd


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the folder for a block."""
    fd = lock_folder(folder)
    try:
        yield
    finally:
        os.close(fd)
