"""Which paths of a tree its ignore files leave out: `.gitignore` at every level, and `.memdirignore` at the root. No I/O.

Precedence as in git (git-scm.com/docs/gitignore): the last matching pattern of the deepest file decides; nothing below an
ignored folder can come back. `.memdirignore` is asked before every `.gitignore`, so `!name` in it brings a file in that only
a `.gitignore` leaves out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from memdir.core.gitignore import GitIgnore

MEMDIR_IGNORE: Final = ".memdirignore"
GIT_IGNORE: Final = ".gitignore"
IGNORE_FILE_MAX_BYTES: Final = 256 * 1024
"""Of an ignore file that count."""


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
    """The rules that hold in one folder. Immutable; `with_git` gives the ones of a child folder."""

    __slots__ = ("_git", "_memdir")

    def __init__(self, memdir: GitIgnore | None = None) -> None:
        """`memdir`: the patterns of `.memdirignore` at the root."""
        self._memdir: tuple[_Patterns, ...] = () if memdir is None else (_Patterns(MEMDIR_IGNORE, "", memdir),)
        self._git: tuple[_Patterns, ...] = ()
        """Of `.gitignore` files, the deepest first."""

    def with_git(self, folder: str, patterns: GitIgnore) -> IgnoreRules:
        """The rules inside of `folder` (relative to the root, '' for the root), whose `.gitignore` has these patterns."""
        prefix = f"{folder}/" if folder else ""
        inside = IgnoreRules()
        inside._memdir = self._memdir
        inside._git = (_Patterns(prefix + GIT_IGNORE, prefix, patterns), *self._git)
        return inside

    def reason(self, path: str, *, is_dir: bool) -> str | None:
        """Why `path` (relative to the root) is left out, e.g. `.gitignore: *.log`, or None. Folders above it are not asked."""
        for patterns in (*self._memdir, *self._git):
            decision = patterns.decide(path, is_dir=is_dir)
            if decision is not None:
                ignored, pattern = decision
                return f"{patterns.origin}: {pattern}" if ignored else None
        return None
