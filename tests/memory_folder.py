"""Where files are kept in memory and not on a disk."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

_SHARED_MEMORY: Final = Path("/dev/shm")


def memory_folder(*, room_bytes: int = 0) -> Path | None:
    """The machine's folder in memory, None when it has none that this process may use, or not so many bytes free."""
    if not os.access(_SHARED_MEMORY, os.W_OK):
        return None
    found = os.statvfs(_SHARED_MEMORY)
    return _SHARED_MEMORY if found.f_bavail * found.f_frsize >= room_bytes else None
