"""Which names stay on this machine: what operating systems and editors leave behind, and what `.memdirignore` says."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

IGNORE_FILE: Final = b".memdirignore"
"""At the root of the mount, gitignore syntax (git-scm.com/docs/gitignore). The file itself is synced."""
IGNORE_FILE_MAX_BYTES: Final = 256 * 1024

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
        self._spec = _spec(text)
        self.has_patterns: Final = self._spec is not None
        """Whether the ignore file adds anything to the built-in names."""

    def matches(self, path: str, *, is_dir: bool = False) -> bool:
        """Whether the absolute `path` stays local. `is_dir` matters for patterns that end in a slash."""
        if _LEFT_BEHIND.search(path) is not None:
            return True
        if self._spec is None:
            return False
        # A parent's match covers everything below it, also when the pattern names only folders ("build/").
        return self._spec.match_file(path[1:] + "/" if is_dir else path[1:])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LocalOnlyRules) and other.text == self.text

    def __hash__(self) -> int:
        return hash(self.text)


def _spec(text: str) -> GitIgnoreSpec | None:
    """Compiled patterns; a line that is no valid pattern is left out, as git does."""
    if not text.strip():
        return None
    from pathspec import GitIgnoreSpec  # only mounts with an ignore file pay for it

    lines = [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    valid = []
    for line in lines:
        try:
            GitIgnoreSpec.from_lines([line])
        except ValueError:
            continue
        valid.append(line)
    return GitIgnoreSpec.from_lines(valid) if valid else None
