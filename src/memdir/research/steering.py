"""How a user talks to a run that goes on: notes, read when the next stage begins, and a mark that asks it to pause."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Final

from memdir.core.errors import StorageError, UsageError
from memdir.research.workspace import RUN

_NOTES: Final = "notes.txt"
_PAUSE: Final = "pause"
_NOTE_MAX_CHARS: Final = 4000
_NOTES_MAX_BYTES: Final = 256 << 10


def add_note(root: Path, text: str) -> None:
    """One line of the notes. UsageError when it is empty, too long, or there are too many."""
    line = " ".join(text.split())
    path = root / RUN / _NOTES
    if not line or len(line) > _NOTE_MAX_CHARS:
        raise UsageError(f"a note has 1 to {_NOTE_MAX_CHARS:,} characters")
    try:
        if path.exists() and path.stat().st_size > _NOTES_MAX_BYTES:
            raise UsageError("there are too many notes for this research")
        with open(path, "a", encoding="utf-8") as file:
            file.write(line + "\n")
    except OSError as error:
        raise StorageError(f"{path}: {error.strerror}") from error


def notes(root: Path) -> list[str]:
    try:
        return (root / RUN / _NOTES).read_text("utf-8", "replace").splitlines()
    except FileNotFoundError:
        return []


def ask_pause(root: Path) -> None:
    (root / RUN / _PAUSE).touch()


def is_pause_asked(root: Path) -> bool:
    return os.path.exists(root / RUN / _PAUSE)


def clear_pause(root: Path) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.unlink(root / RUN / _PAUSE)
