"""A file that many processes lock in turn (flock(2)). The lock dies with its holder, however that ends."""

from __future__ import annotations

import fcntl
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from memdir.core.errors import BusyError
from memdir.core.processes import lock_holders

_PAUSE_S: Final = 0.02
"""flock has no timeout; a signal that ends a waiting one would need the main thread."""


@contextmanager
def locked_file(path: Path, *, deadline: float, busy: str, hint: str = "") -> Iterator[None]:
    """Hold the lock of `path` (made when missing) for a block. BusyError with the text `busy` and who holds it, once the
    monotonic `deadline` has passed."""
    with open(path, "ab") as handle:
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() >= deadline:
                    holders = ", ".join(map(str, lock_holders(path)))
                    raise BusyError(f"{busy} ({holders})" if holders else busy, hint=hint) from None
                time.sleep(_PAUSE_S)
        yield
