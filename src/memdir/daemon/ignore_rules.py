"""What an import leaves out because the user said so: `.gitignore` at every level, and `.memdirignore` at the root.

Precedence as in git (git-scm.com/docs/gitignore): the last matching pattern of the deepest file decides; nothing below an
ignored folder can come back. `.memdirignore` is asked before every `.gitignore`, so `!name` in it brings a file in that only
a `.gitignore` leaves out.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from memdir.core.errors import UsageError
from memdir.fs.gitignore import GitIgnore

log = logging.getLogger(__name__)

_FILE_MAX_BYTES: Final = 1024 * 1024
MEMDIR_IGNORE: Final = ".memdirignore"
GIT_IGNORE: Final = ".gitignore"


@dataclass(frozen=True, slots=True)
class _Patterns:
    origin: str
    """The ignore file, relative to the root."""
    folder: str
    """The folder its patterns are relative to: '' or 'a/b/'."""
    patterns: GitIgnore

    def decide(self, path: str, *, is_dir: bool) -> tuple[bool, str] | None:
        """(ignored, pattern) when a pattern matches `path` (relative to the root)."""
        found = self.patterns.decide(path[len(self.folder) :].encode("utf-8", "surrogateescape"), is_dir=is_dir)
        return None if found is None else (not found.negated, found.text)


class IgnoreRules:
    """The rules that hold in one folder. Immutable; `below` gives the ones of a child folder."""

    __slots__ = ("_git", "_memdir")

    def __init__(self, memdir: _Patterns | None, git: tuple[_Patterns, ...]) -> None:
        self._memdir = memdir
        self._git = git

    @classmethod
    def at_root(cls, root: Path) -> IgnoreRules:
        """The rules at the top of the folder that is imported. UsageError when an ignore file cannot be read: importing what it
        was written to hold back would be worse than stopping."""
        memdir = _load(root / MEMDIR_IGNORE, MEMDIR_IGNORE, "")
        return cls(memdir, ()).below(root, "")

    def below(self, folder: Path, relative: str) -> IgnoreRules:
        """The rules inside `folder`, whose path relative to the root is `relative` ('' for the root)."""
        prefix = f"{relative}/" if relative else ""
        found = _load(folder / GIT_IGNORE, prefix + GIT_IGNORE, prefix)
        return self if found is None else IgnoreRules(self._memdir, (*self._git, found))

    def reason(self, path: str, *, is_dir: bool) -> str | None:
        """Why `path` (relative to the root) is left out, e.g. `.gitignore: *.log`, or None."""
        for patterns in (*((self._memdir,) if self._memdir else ()), *reversed(self._git)):
            decision = patterns.decide(path, is_dir=is_dir)
            if decision is not None:
                ignored, pattern = decision
                return f"{patterns.origin}: {pattern}" if ignored else None
        return None


def _load(file: Path, origin: str, folder: str) -> _Patterns | None:
    try:
        if file.is_symlink() or not file.is_file():
            return None  # as git: an ignore file that is a link is not followed
        with open(file, "rb") as handle:
            data = handle.read(_FILE_MAX_BYTES + 1)
    except OSError as error:
        raise UsageError(f"{origin} cannot be read: {error.strerror}", hint="make it readable or move it away") from error
    if len(data) > _FILE_MAX_BYTES:
        raise UsageError(f"{origin} is longer than {_FILE_MAX_BYTES} bytes", hint="shorten it or move it away")
    patterns = GitIgnore(data)
    for problem in patterns.problems:
        log.warning("%s: %s", origin, problem)
    return _Patterns(origin, folder, patterns) if patterns.patterns else None
