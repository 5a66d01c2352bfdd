"""The journal of a run: one JSON object a line, appended and synced before anything that follows from it.

What was paid for (answers of models, pages, searches) stands here in full, and every file that an agent writes stands here
before it stands in the workspace. So a run that is killed anywhere goes on where it was: the journal is folded into a `State`,
what its last entries wrote is written again, and nothing is asked twice.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, Final

from memdir.core.errors import BusyError, CorruptError, StorageError
from memdir.research.workspace import RUN

FILE: Final = "journal.jsonl"
SIZE_MAX_BYTES: Final = 512 << 20
_ENTRY_MAX_BYTES: Final = 8 << 20


class Journal:
    """Opened by one process at a time. Use as a context manager."""

    def __init__(self, root: Path) -> None:
        self.path = root / RUN / FILE
        self._file: IO[bytes] | None = None
        self._size = 0

    def __enter__(self) -> Journal:
        """BusyError while another process has it."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            handle = open(self.path, "ab")
        except OSError as error:
            raise StorageError(f"{self.path}: {error.strerror}") from error
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            handle.close()
            raise BusyError(f"{self.path.parent.parent} is being worked on by another process") from None
        except OSError:  # a filesystem without locks: two runs in one workspace are then the user's to avoid
            pass
        self._file = handle
        self._cut_torn_end()
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def _cut_torn_end(self) -> None:
        """A kill may leave half a line at the end: it never counted."""
        assert self._file is not None
        self._size = os.path.getsize(self.path)
        whole = 0
        with open(self.path, "rb") as reading:
            for line in reading:
                if line.endswith(b"\n"):
                    whole += len(line)
        if whole < self._size:
            os.truncate(self.path, whole)
            self._size = whole

    def append(self, entry: dict[str, Any]) -> None:
        """Write one entry and wait for the disk."""
        assert self._file is not None, "the journal is open"
        data = json.dumps(entry, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace") + b"\n"
        if len(data) > _ENTRY_MAX_BYTES or self._size + len(data) > SIZE_MAX_BYTES:
            raise StorageError(
                "the journal of this research is full", hint="start another research; `memdir research report` works"
            )
        try:
            self._file.write(data)
            self._file.flush()
            os.fsync(self._file.fileno())
        except OSError as error:
            with contextlib.suppress(OSError):
                os.truncate(self.path, self._size)
            raise StorageError(f"{self.path}: {error.strerror}", hint="make room, then run again with --resume") from error
        self._size += len(data)


def entries(root: Path) -> Iterator[dict[str, Any]]:
    """What was journalled so far, oldest first; without a torn end. CorruptError for a line in the middle that is no entry."""
    path = root / RUN / FILE
    try:
        reading = open(path, "rb")  # noqa: SIM115  closed below
    except FileNotFoundError:
        return
    except OSError as error:
        raise StorageError(f"{path}: {error.strerror}") from error
    with reading:
        for number, line in enumerate(reading, start=1):
            if not line.endswith(b"\n"):
                return
            try:
                entry = json.loads(line)
            except ValueError:
                entry = None
            if not isinstance(entry, dict) or not isinstance(entry.get("kind"), str):
                raise CorruptError(f"{path}:{number} is no entry", hint="restore the file, or start in a new workspace")
            yield entry
