"""Which names stay on this machine: what operating systems and editors leave behind, and what `.memdirignore` says."""

from __future__ import annotations

import re
from typing import Final

from memdir.core.gitignore import GitIgnore
from memdir.core.ignore_rules import MEMDIR_IGNORE

IGNORE_FILE: Final = MEMDIR_IGNORE.encode()
"""At the root of the mount, gitignore syntax (git-scm.com/docs/gitignore). The file itself is synced."""

_NAMES: Final = r"""
    \.DS_Store | \._[^/]*                       # macOS Finder
  | \.Trash-[^/]* | \.fuse_hidden[^/]* | \.nfs[0-9a-f]+    # desktops, libfuse and NFS clients
  | [^/]*+(?:(?<=\.sw[px])|(?<=~))            # vim's swap files; backups
  | 4913 | \.\#[^/]*                           # the probe that vim writes before a save; Emacs locks
  | \.goutputstream-[^/]* | \.~lock\.[^/]*\#    # GLib's atomic save; LibreOffice locks
"""
_LEFT_BEHIND: Final = re.compile(f"/(?:{_NAMES})(?:/|\\Z)", re.VERBOSE | re.DOTALL)
_LEFT_BEHIND_NAME: Final = re.compile(_NAMES.encode(), re.VERBOSE | re.DOTALL)
_FIRST: Final = frozenset({b".", b"4"})
_LAST: Final = frozenset({b"~", b"p", b"x"})
"""How all of them begin or end: a first look that spares most names the match."""


def is_local_only(path: str) -> bool:
    """Whether a component of the absolute `path` is a name that the system or an editor leaves behind."""
    return _LEFT_BEHIND.search(path) is not None


def is_left_behind(name: bytes) -> bool:
    """The same for one name, as the kernel gives it: what is asked with every create, when the folder is known to be none."""
    return (name[:1] in _FIRST or name[-1:] in _LAST) and _LEFT_BEHIND_NAME.fullmatch(name) is not None


class LocalOnlyRules:
    """The built-in names plus the patterns of one `.memdirignore`. Immutable; `==` compares the patterns."""

    def __init__(self, text: str = "") -> None:
        self.text = text
        self._patterns = GitIgnore(text.encode("utf-8", "surrogateescape")) if text else None
        self.problems: Final = tuple(self._patterns.problems) if self._patterns else ()
        """Lines that match nothing, in sentences."""
        self.has_patterns: Final = self._patterns is not None and bool(self._patterns.patterns)
        """Whether the ignore file adds anything to the built-in names."""

    def matches(self, path: str, *, is_dir: bool = False) -> bool:
        """Whether the absolute `path` stays local. `is_dir` matters for patterns that end in a slash."""
        if _LEFT_BEHIND.search(path) is not None:
            return True
        if self._patterns is None or path == "/":
            return False
        return self._patterns.ignores(path[1:].encode("utf-8", "surrogateescape"), is_dir=is_dir)

    def asks_for(self, path: str) -> bool:
        """Whether a `!pattern` names the folder at the absolute `path`, or one above it, as the last word on that."""
        if self._patterns is None or path == "/":
            return False
        parts = path[1:].encode("utf-8", "surrogateescape").split(b"/")
        above = (b"/".join(parts[:end]) for end in range(len(parts), 0, -1))
        decided = next((found for one in above if (found := self._patterns.decide(one, is_dir=True)) is not None), None)
        return decided is not None and decided.negated

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LocalOnlyRules) and other.text == self.text

    def __hash__(self) -> int:
        return hash(self.text)
