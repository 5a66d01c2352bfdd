"""Who did something: the name and the session of a process, by its number."""

from __future__ import annotations

import os
import time
from collections import OrderedDict
from typing import Final

_KNOWN_MAX: Final = 1024
_KNOWN_S: Final = 0.005
_KNOWN_LONGEST_S: Final = 1.0
"""How long the name of a process is taken for the same: at first only a moment, because a shell that forked becomes another
program; twice as long each time that it is still the same. What was known is used when it is gone."""
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
        self._known: OrderedDict[int, tuple[float, float, str, str]] = OrderedDict()
        """By process: when it was looked at, for how long that holds, name, session."""
        self._own_pid = os.getpid()

    def who(self, pid: int) -> tuple[str, str]:
        """Name and session of a process; what was known of one that is gone, both empty when that is nothing."""
        now_s = time.monotonic()
        known = self._known.get(pid)
        if known is not None and now_s - known[0] < known[1]:
            return known[2], known[3]
        try:
            with open(f"/proc/{pid}/comm", "rb") as handle:
                name = handle.read(64).decode("utf-8", "replace").strip()
            session = str(os.getsid(pid))
        except (OSError, ProcessLookupError):
            name, session = ("", "") if known is None else (known[2], known[3])
        is_same = known is not None and known[2] == name
        holds_s = min(2 * known[1], _KNOWN_LONGEST_S) if known is not None and is_same else _KNOWN_S
        self._known[pid] = (now_s, holds_s, name, session)
        self._known.move_to_end(pid)
        while len(self._known) > _KNOWN_MAX:
            self._known.popitem(last=False)
        return name, session

    def is_left_out(self, pid: int) -> bool:
        """Of the kernel, of ourselves and of indexers nothing is told."""
        return pid in (0, self._own_pid) or self.who(pid)[0] in INDEXERS
