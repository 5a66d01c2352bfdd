"""Which files the ignore files of their own tree leave out (`.gitignore`, `.memdirignore`): they are kept, and searched last.

A verdict is made when a file is read. When an ignore file is read, files below it whose verdict is another one now are asked to
be read again. A folder that is moved, or an ignore file that is deleted, changes no verdict before the files are read again.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Final

from memdir.core.clock import Clock
from memdir.core.errors import CorruptError, NotFoundError
from memdir.core.gitignore import GitIgnore
from memdir.core.ignore_rules import GIT_IGNORE, IGNORE_FILE_MAX_BYTES, MEMDIR_IGNORE, IgnoreRules
from memdir.store.contents.blobs import BlobStore
from memdir.store.database import Database, marks_for
from memdir.store.jobs import queue as jobs
from memdir.store.paths import ancestors, below
from memdir.store.types import Document

log = logging.getLogger(__name__)

IGNORED: Final = "ignored"
GENERATED: Final = "generated"
"""What `document.searched_last` says: an ignore file leaves the file out, or a tool wrote it."""
_AT_ROOT: Final = f"/{MEMDIR_IGNORE}"
_IN_MAX: Final = 500
"""Names in one query."""
_PAGE: Final = 500
"""Files that are looked at, and asked for in one transaction, at a time: others may write in between."""
_parsed = lru_cache(maxsize=256)(GitIgnore)


class IgnoredStore:
    """Reads ignore files out of the tree. Any thread."""

    def __init__(self, db: Database, blobs: BlobStore, clock: Clock) -> None:
        self._db = db
        self._blobs = blobs
        self._clock = clock

    def among(self, container_id: int, paths: Sequence[str]) -> set[str]:
        """Those of the paths of files that are left out."""
        folders = {folder for path in paths for folder in ("", *ancestors(path))}
        patterns = self._patterns(container_id, [_AT_ROOT, *sorted(f"{folder}/{GIT_IGNORE}" for folder in folders)])
        if not patterns:
            return set()
        rules: dict[str, IgnoreRules | None] = {"": _inside("", IgnoreRules(patterns.get(_AT_ROOT)), patterns)}
        return {path for path in paths if _leaves_out(path, rules, patterns)}

    def reconsider(self, document: Document) -> None:
        """Ask for the files below the ignore file `document` to be read again whose verdict is another one with it. Does
        nothing when it is no ignore file."""
        folder, _, name = (document.path or "").rpartition("/")
        if name != GIT_IGNORE and document.path != _AT_ROOT:
            return
        after, end = below(folder or "/")
        while True:
            rows = self._db.all(
                "select path, id, searched_last from document where container_id = ? and path > ? and path < ? "
                "and kind = 'file' and indexed_hash is not null order by path limit ?",
                (document.container_id, after, end, _PAGE),
            )
            left_out = self.among(document.container_id, [row[0] for row in rows])
            changed = [row[1] for row in rows if (row[0] in left_out) != (row[2] == IGNORED)]
            if changed:
                with self._db.write() as connection:
                    jobs.enqueue_all(
                        connection, changed, container_id=document.container_id, kind="index", priority=jobs.BULK,
                        now_ms=self._clock.now_ns() // 1_000_000,
                    )  # fmt: skip
            if len(rows) < _PAGE:
                return
            after = rows[-1][0]

    def _patterns(self, container_id: int, names: Sequence[str]) -> dict[str, GitIgnore]:
        """The ignore files among `names` that are there and have patterns."""
        found: dict[str, GitIgnore] = {}
        for first in range(0, len(names), _IN_MAX):
            part = names[first : first + _IN_MAX]
            rows = self._db.all(
                f"select path, content_hash from document where container_id = ? and path in ({marks_for(part)}) "  # noqa: S608
                "and kind = 'file' and size_bytes between 1 and ?",
                (container_id, *part, IGNORE_FILE_MAX_BYTES),
            )
            small = self._blobs.small([content_hash for _, content_hash in rows]) if rows else {}
            for path, content_hash in rows:
                patterns = self._read(path, small.get(content_hash), content_hash)
                if patterns is not None:
                    found[path] = patterns
        return found

    def _read(self, path: str, data: bytes | None, content_hash: str) -> GitIgnore | None:
        """None for one without patterns, and for one whose content is gone: a damaged ignore file, or one that was replaced a
        moment ago and is read again soon, keeps no other file from being read."""
        try:
            patterns = _parsed(self._blobs.content(content_hash) if data is None else data)
        except (NotFoundError, CorruptError) as error:
            log.warning("%s leaves nothing out: %s", path, error.message)
            return None
        return patterns if patterns.patterns else None


def _leaves_out(path: str, rules: dict[str, IgnoreRules | None], patterns: Mapping[str, GitIgnore]) -> bool:
    """`rules`: those inside of folders, None for one that is left out as a whole; completed on the way."""
    above = rules[""]
    for folder in ancestors(path):
        if folder not in rules:
            left_out = above is None or above.reason(folder[1:], is_dir=True) is not None
            rules[folder] = None if left_out or above is None else _inside(folder, above, patterns)
        above = rules[folder]
    return above is None or above.reason(path[1:], is_dir=False) is not None


def _inside(folder: str, above: IgnoreRules, patterns: Mapping[str, GitIgnore]) -> IgnoreRules:
    own = patterns.get(f"{folder}/{GIT_IGNORE}")
    return above if own is None else above.with_git(folder[1:], own)
