"""The workspace of one research: a folder with fixed places, and the only door through which agents read and write it."""

from __future__ import annotations

import os
import re
import stat
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from memdir.core.errors import StorageError, UsageError

TOPIC: Final = "topic.md"
INDEX: Final = "index.md"
NOTES: Final = "knowledge_base"
SOURCES: Final = "sources"
OUTLINE: Final = "report_outline.md"
SECTIONS: Final = "sections"
REPORT: Final = "report.md"
REPORT_HTML: Final = "report.html"
CHECKS: Final = "checks"
STATE: Final = "state.json"
RUN: Final = ".memdir-research"
"""Journal, notes of the user and the mark to pause: hidden, so that neither agents nor searches meet them."""

FILE_MAX_BYTES: Final = 512 << 10
"""Of what an agent writes: a note of a hundred pages is a mistake."""
_READ_MAX_BYTES: Final = 16 << 20
_FILES_MAX: Final = 20_000
_DEPTH_MAX: Final = 8
_NAME_MAX_BYTES: Final = 200
_UNWANTED: Final = re.compile(r"[\x00-\x1f\x7f\\]")
_SLUG_GAP: Final = re.compile(r"[^\w]+", re.UNICODE)


class ConfinementError(UsageError):
    """A path that leads out of the workspace, or to where this agent may not write."""


def _outside(path: str) -> ConfinementError:
    return ConfinementError(f"{path[:200]!r} is no path in the workspace", hint="for example knowledge_base/area/name.md")


class Workspace:
    """`root` is made when it is missing. Nothing here follows a symbolic link."""

    def __init__(self, root: Path) -> None:
        self.root = Path(os.path.abspath(root))

    def make(self) -> None:
        try:
            for name in (NOTES, SOURCES, SECTIONS, CHECKS, RUN):
                (self.root / name).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StorageError(f"{self.root}: {error.strerror}", hint="choose another --workspace") from error

    def place(self, path: str) -> Path:
        """Where a path of the workspace stands. ConfinementError for absolute ones, `..`, hidden names, links, and names that
        no filesystem should have to hold."""
        parts = path.removeprefix("./").split("/")
        if not path or path.startswith(("/", "~")) or _UNWANTED.search(path) or len(parts) > _DEPTH_MAX:
            raise _outside(path)
        at = self.root
        for part in parts:
            # What looks like a dot to a reader is refused as a dot: full-width stops and other compatibility forms.
            plain = unicodedata.normalize("NFKC", part)
            if not part or plain.startswith(".") or "/" in plain or len(part.encode("utf-8", "replace")) > _NAME_MAX_BYTES:
                raise _outside(path)
            at = at / part
            if at.is_symlink():
                raise ConfinementError(f"{path[:200]!r} is a symbolic link", hint="agents read and write plain files only")
        return at

    def read(self, path: str) -> str | None:
        """The text of a file; None when there is none."""
        at = self.place(path)
        try:
            handle = os.open(at, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
            return None
        except OSError as error:
            raise StorageError(f"{path}: {error.strerror}") from error
        with os.fdopen(handle, "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                return None
            return file.read(_READ_MAX_BYTES).decode("utf-8", "replace")

    def lines(self, path: str) -> list[str]:
        """The lines of a file, without their ends; none when there is no such file."""
        text = self.read(path)
        return [] if text is None else split_lines(text)

    def write(self, path: str, text: str) -> None:
        """In one step: a reader sees the whole old text or the whole new one."""
        at = self.place(path)
        temporary = at.with_name(f".{at.name[:60]}.part")
        try:
            at.parent.mkdir(parents=True, exist_ok=True)
            handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o644)
            with os.fdopen(handle, "wb") as file:
                file.write(text.encode("utf-8", "replace"))
            os.replace(temporary, at)
        except OSError as error:
            raise StorageError(f"{path}: {error.strerror}", hint="nothing else was changed; run again with --resume") from error

    def delete(self, path: str) -> None:
        at = self.place(path)
        at.unlink(missing_ok=True)
        for folder in at.parents:  # a folder without files is no part of a hierarchy
            if folder.parent == self.root or folder == self.root or any(folder.iterdir()):
                break
            folder.rmdir()

    def files(self, below: str = "") -> list[str]:
        """Paths of all plain files at and below a folder, sorted; hidden ones are not listed."""
        start = self.root if not below else self.place(below)
        found = list(self._walk(start))
        if len(found) > _FILES_MAX:
            raise StorageError(f"more than {_FILES_MAX:,} files in {self.root}", hint="choose a workspace of its own")
        return sorted(found)

    def _walk(self, start: Path) -> Iterator[str]:
        for folder, folders, names in os.walk(start):
            folders[:] = [name for name in folders if not name.startswith(".")]
            for name in names:
                at = Path(folder, name)
                if not name.startswith(".") and not at.is_symlink() and at.is_file():
                    yield at.relative_to(self.root).as_posix()

    def notes(self) -> list[str]:
        return self.files(NOTES)

    def sources(self) -> list[str]:
        return self.files(SOURCES)


def split_lines(text: str) -> list[str]:
    """As every tool that names `file:line` counts them: at line feeds alone."""
    lines = text.split("\n")
    return lines[:-1] if lines and not lines[-1] else lines


def slug(text: str, max_chars: int = 60) -> str:
    """A name for a file: lower-case words with hyphens, in whatever script they are."""
    words = _SLUG_GAP.sub("-", unicodedata.normalize("NFKC", text).lower()).strip("-_")
    cut = words[:max_chars]
    while len(cut.encode()) > 2 * max_chars:
        cut = cut[:-1]
    return cut.strip("-_") or "page"


def workspace_name(topic: str) -> str:
    """The folder's name for a topic."""
    return slug(topic, 50)
