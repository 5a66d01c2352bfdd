"""Which names stay on this machine: what operating systems and editors leave behind, and what `.memdirignore` says."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec
    from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern

IGNORE_FILE: Final = b".memdirignore"
"""At the root of the mount, gitignore syntax (git-scm.com/docs/gitignore). The file itself is synced."""
IGNORE_FILE_MAX_BYTES: Final = 256 * 1024
PATTERNS_MAX: Final = 1000
PATTERN_MAX_CHARS: Final = 1000
"""Lines behind the first, and longer ones, are left out like lines that are no pattern."""

_STAR: Final = "[^/]*"
_ANY: Final = "[^/]"
"""What pathspec makes of `*` and `?` inside a name."""
_FREE_STARS_MAX: Final = 2
"""Wildcards of one pattern that may try every place."""

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

    factory = _bounded_pattern()
    lines = [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    valid = []
    for line in lines[:PATTERNS_MAX]:
        if len(line) > PATTERN_MAX_CHARS:
            continue
        try:
            GitIgnoreSpec.from_lines([line], factory, backend="simple")
        except ValueError:
            continue
        valid.append(line)
    return GitIgnoreSpec.from_lines(valid, factory, backend="simple") if valid else None


@cache
def _bounded_pattern() -> type[GitIgnoreSpecPattern]:
    """gitignore patterns whose matching takes a bounded number of steps. The rules are asked with every create and rename, and
    whoever can write into a memory can write its ignore file."""
    from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern

    class BoundedPattern(GitIgnoreSpecPattern):
        @classmethod
        def pattern_to_regex(cls, pattern: Any) -> tuple[Any, Any]:
            regex, include = super().pattern_to_regex(pattern)
            return (_without_backtracking(regex) if isinstance(regex, str) else regex), include

    return BoundedPattern


def _without_backtracking(regex: str) -> str:
    """The same pattern, with a wildcard inside a name that never gives back what it took.

    Between two wildcards of one name the first place where the text between them stands is as good as any later one, because
    the second wildcard takes the rest: an atomic group keeps it, and `*a*a*a*b` costs a walk over the name and not its power.
    ValueError for what cannot be bounded so: sets of characters between many wildcards, and many `**`."""
    first, *parts = regex.split(_STAR)
    out, free = [first], 0
    for number, part in enumerate(parts):
        plain = part.replace(_ANY, "")
        if number < len(parts) - 1 and not any(sign in plain for sign in "[(/"):
            out.append(f"(?>{_STAR}?{part})")
        else:
            free += "/" not in plain and number < len(parts) - 1
            out.append(_STAR + part)
    if free > _FREE_STARS_MAX or regex.count(".+") > _FREE_STARS_MAX:
        raise ValueError("a pattern with too many wildcards")
    return "".join(out)
