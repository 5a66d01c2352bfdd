"""Who did something: the name and the session of a process, by its number."""

from __future__ import annotations

import os
import time
from collections import OrderedDict
from typing import Final

_KNOWN_MAX: Final = 1024
_KNOWN_S: Final = 0.005
"""How long the name of a process is taken for the same: a shell that forked becomes another program. What was known is used
when it is gone."""
INDEXERS: Final = frozenset(
    {
        *("tracker-miner-f", "tracker-extract", "localsearch-3", "baloo_file", "baloo_file_extr", "updatedb", "mlocate"),
        *("updatedb.mlocat", "plocate", "recollindex", "clamd", "clamscan", "rsnapshot", "restic", "borg", "memdir"),
        "gvfsd-metadata",
    }
)
"""Programs that read everything, and ours."""


class Actors:
    """Those that were looked at last, at most _KNOWN_MAX. Not for several threads."""

    def __init__(self) -> None:
        self._known: OrderedDict[int, tuple[float, str, str]] = OrderedDict()

    def who(self, pid: int) -> tuple[str, str]:
        """Name and session of a process; what was known of one that is gone, both empty when that is nothing."""
        now_s = time.monotonic()
        known = self._known.get(pid)
        if known is not None and now_s - known[0] < _KNOWN_S:
            return known[1], known[2]
        try:
            with open(f"/proc/{pid}/comm", "rb") as handle:
                name = handle.read(64).decode("utf-8", "replace").strip()
            session = str(os.getsid(pid))
        except (OSError, ProcessLookupError):
            name, session = ("", "") if known is None else (known[1], known[2])
        self._known[pid] = (now_s, name, session)
        self._known.move_to_end(pid)
        while len(self._known) > _KNOWN_MAX:
            self._known.popitem(last=False)
        return name, session

    def is_left_out(self, pid: int) -> bool:
        """Of the kernel, of ourselves and of indexers nothing is told."""
        return pid == 0 or pid == os.getpid() or self.who(pid)[0] in INDEXERS
