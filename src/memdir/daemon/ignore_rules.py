"""The ignore files of a folder that is imported, read from the disk."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Final

from memdir.core.errors import UsageError
from memdir.core.gitignore import GitIgnore
from memdir.core.ignore_rules import GIT_IGNORE, MEMDIR_IGNORE, IgnoreRules

log = logging.getLogger(__name__)

_FILE_MAX_BYTES: Final = 1024 * 1024


def rules_at_root(root: Path) -> IgnoreRules:
    """The rules at the top of the folder that is imported. UsageError when an ignore file cannot be read: importing what it
    was written to hold back would be worse than stopping."""
    return rules_below(IgnoreRules(_load(root / MEMDIR_IGNORE, MEMDIR_IGNORE)), root, "")


def rules_below(rules: IgnoreRules, folder: Path, relative: str) -> IgnoreRules:
    """The rules inside `folder`, whose path relative to the root is `relative` ('' for the root)."""
    found = _load(folder / GIT_IGNORE, f"{relative}/{GIT_IGNORE}" if relative else GIT_IGNORE)
    return rules if found is None else rules.with_git(relative, found)


def _load(file: Path, origin: str) -> GitIgnore | None:
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
    return patterns if patterns.patterns else None
