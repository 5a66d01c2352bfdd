"""How much work one run does, and what it needs: the only place with numbers of files and bytes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from memdir.core.limits import MIB

ROUNDS: Final = 5
QUICK_ROUNDS: Final = 2
FILES: Final = 5000
QUICK_FILES: Final = 200
FILES_MAX: Final = 200_000
STREAM_MIB: Final = 1024
QUICK_STREAM_MIB: Final = 16
STREAM_MIB_MAX: Final = 16 * 1024
SMALL_FILE_BYTES: Final = 1024
FILES_PER_FOLDER: Final = 100
BLOCK_BYTES: Final = MIB
PAGE_BYTES: Final = 4096
DOCUMENT_MEAN_BYTES: Final = 4600
SOURCE_MEAN_BYTES: Final = 8000


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """One run's amounts. Documents and sources follow the number of small files, so that `--files` scales everything."""

    files: int = FILES
    stream_mib: int = STREAM_MIB

    @property
    def documents(self) -> int:
        """10,000 by default."""
        return 2 * self.files

    @property
    def sources(self) -> int:
        """Files of the source tree and of the repository."""
        return max(20, self.files * 2 // 5)

    @property
    def stream_bytes(self) -> int:
        return self.stream_mib * MIB

    @property
    def random_reads(self) -> int:
        """At most every page once, and not for ever."""
        return min(10_000, self.stream_bytes // PAGE_BYTES // 4)

    @property
    def disk_bytes(self) -> int:
        """Room the run needs: the fixtures, the trees of one target at a time, the stream in a native file, in SQLite and in
        its log, and what filesystems add to small files."""
        small = self.files * 8192 + self.documents * 3 * 8192 + self.sources * 6 * 12288
        return small + 4 * self.stream_bytes + 256 * MIB
