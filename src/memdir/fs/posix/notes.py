"""Which intents an operation leaves: the only place that decides what the sync engine hears of."""

from __future__ import annotations

import logging
import stat
from collections.abc import Iterator
from typing import Final

from memdir.core.ignore_rules import IGNORE_FILE_MAX_BYTES
from memdir.fs import path as paths
from memdir.fs.errors import ContentsAbsentError
from memdir.fs.localonly import IGNORE_FILE, LocalOnlyRules, is_left_behind
from memdir.fs.posix.place import ABSENT
from memdir.fs.posix.state import State
from memdir.fs.posix.txn import Link, Txn
from memdir.fs.types import ROOT_INO, Inode, IntentKind, ReadResult, joined

_SYNCED_TYPES: Final = (stat.S_IFREG, stat.S_IFDIR, stat.S_IFLNK)
_TYPE: Final = 0o170000
_PROBLEMS_LOGGED_MAX: Final = 20

_log = logging.getLogger(__name__)


def is_synced_type(mode: int) -> bool:
    """Files, folders and symlinks; sockets, fifos and devices stay in the mount."""
    return mode & _TYPE in _SYNCED_TYPES


class Notes(State):
    """Staging of intents. Nothing here touches a table."""

    def _prepare(self, *, quiet: bool = False) -> None:
        """The start of every change, before its transaction; may wait or raise. `quiet` changes come from the server."""
        if self._hindered:
            self._see_to(quiet=quiet)

    def _see_to(self, *, quiet: bool) -> None:
        """What set `_hindered`: here a changed ignore file, in a storage that it is full, read-only or closed."""
        del quiet  # for a filesystem that refuses local changes
        if self._rules_stale:
            self._refresh_rules()
        self._hindered = False

    def _refresh_rules(self) -> None:
        """Read the ignore file; what it named before and names no more becomes a PUT."""
        old, new = self._rules, LocalOnlyRules(self._ignore_text())
        if old != new:
            for problem in new.problems[:_PROBLEMS_LOGGED_MAX]:
                _log.warning("%s: %s", paths.decode(IGNORE_FILE), problem)
        if old != new and self._records_intents:
            txn = self._begin()
            for path, inode in self._walk(self._inode(ROOT_INO), "/"):
                is_dir = inode.is_dir
                freed = old.matches(path, is_dir=is_dir) and not new.matches(path, is_dir=is_dir)
                if freed and path != "/" and is_synced_type(inode.mode):
                    self._stage_note(txn, IntentKind.PUT, path)
            if txn.intents:
                self._commit(txn)
        self._rules = new
        self._rules_stale = False

    def is_local_only(self, path: str) -> bool:
        """Whether `path` is never sent: a name left behind by the system, or one that `.memdirignore` names."""
        with self._lock:
            if self._rules_stale:
                self._refresh_rules()
            found = self._find(path)
            return self._rules.matches(path, is_dir=found is not None and found.is_dir)

    def is_asked_for(self, path: str) -> bool:
        """Whether `.memdirignore` says that the folder at `path` is to be synced whatever it is."""
        with self._lock:
            if self._rules_stale:
                self._refresh_rules()
            return self._rules.asks_for(path)

    def _find(self, path: str) -> Inode | None:
        """What stands at an absolute path, symlinks not followed."""
        inode = self._inode(ROOT_INO)
        for part in path.split("/"):
            if part:
                if not stat.S_ISDIR(inode.mode):
                    return None
                entry = self._directory(inode.ino).entries.get(paths.encode(part))
                if entry is None:
                    return None
                inode = self._inode(entry[0])
        if inode.ino in self._lent:
            self.refresh(inode.ino)
        return inode

    def _ignore_text(self) -> str:
        entry = self._directory(ROOT_INO).entries.get(IGNORE_FILE)
        self._ignore_ino = entry[0] if entry else 0
        inode = self._inode(entry[0]) if entry else None
        if inode is None or not inode.is_file or inode.place == ABSENT:
            return ""  # absent ones are not let to this name, see `_refuse_unread_rules`
        size_bytes = min(inode.size, IGNORE_FILE_MAX_BYTES)
        if inode.size > size_bytes:
            _log.warning("%s has %d bytes, only the first %d count", paths.decode(IGNORE_FILE), inode.size, size_bytes)
        return joined(self._read(inode, 0, size_bytes)).decode("utf-8", "surrogateescape") if size_bytes else ""

    def _read(self, inode: Inode, offset: int, end: int) -> ReadResult:  # noqa: ARG002 - a hook
        """The bytes of a file; `end` is not beyond its size."""
        raise TypeError("implemented by ContentOps")

    def _refuse_unread_rules(self, inode: Inode, parent: int, name: bytes) -> None:
        """The ignore file says what is never sent: no file gets its name before its contents are here."""
        if name == IGNORE_FILE and parent == ROOT_INO and inode.place == ABSENT:
            raise ContentsAbsentError(inode.ino)

    def _named(self, parent: int, name: bytes, mode: int) -> tuple[bytes, bool]:
        """The path of a name in a directory, and whether it stays local."""
        above, is_local = self._folders.get(parent) or self._folder_path(parent)
        path = above + name
        if is_local or is_left_behind(name):
            return path, True
        if self._rules.has_patterns:
            return path, self._rules.matches(paths.decode(path), is_dir=stat.S_ISDIR(mode))
        return path, False

    def _stage_note(self, txn: Txn, kind: IntentKind, path: str) -> None:
        self._intents.stage(txn, kind, paths.encode(path))

    def _note_put(self, txn: Txn, inode: Inode) -> None:
        """Contents or mode of `inode` change: PUT for each of its paths."""
        ino = inode.ino
        if ino in self._intents.covered or txn.quiet or not self._records_intents or not is_synced_type(inode.mode):
            return
        self._inode(ino)
        links = self._links[ino]
        for path, is_local in sorted(self._named(parent, name, inode.mode) for parent, name in links):
            if not is_local:
                self._intents.stage(txn, IntentKind.PUT, path)
        txn.covers = ino

    def _note_other_paths(self, txn: Txn, inode: Inode, path: str) -> None:
        """The server changed what stands at `path`; through its other names the same file changed without the server's
        knowing: that is a local change."""
        if inode.nlink > 1 and inode.is_file and self._records_intents:
            known = paths.encode(path)
            for other, is_local in sorted(self._named(parent, name, inode.mode) for parent, name in self._links[inode.ino]):
                if other != known and not is_local:
                    self._intents.stage(txn, IntentKind.PUT, other)

    def _note_name(self, txn: Txn, kind: IntentKind, parent: int, name: bytes, mode: int) -> None:
        """A name appears (PUT) or goes (DELETE)."""
        if txn.quiet or not self._records_intents or mode & _TYPE not in _SYNCED_TYPES:
            return
        path, is_local = self._named(parent, name, mode)
        if not is_local:
            self._intents.stage(txn, kind, path)

    def _note_move(self, txn: Txn, moved: Inode, source: Link, target: Link) -> None:
        """`moved` goes from `source` to `target`. Called while staging: the tables still show the old place.

        Between a local-only name and a normal one a move is no move for the server: an editor's save by rename is a PUT of
        the real path; a file renamed to a backup name is a DELETE of what it was.
        """
        mode = moved.mode
        if txn.quiet or not self._records_intents or mode & _TYPE not in _SYNCED_TYPES:
            return
        old_path, was_local = self._named(*source, mode)
        path, is_local = self._named(*target, mode)
        if not was_local and not is_local:
            self._intents.stage(txn, IntentKind.MOVE, path, old_path)
            if self._rules.has_patterns and moved.is_dir:
                self._note_rules_crossed(txn, moved, paths.decode(old_path), paths.decode(path))
        elif not is_local:
            for below, inode in self._walk(moved, paths.decode(path)):
                if is_synced_type(inode.mode) and not self._rules.matches(below, is_dir=inode.is_dir):
                    self._stage_note(txn, IntentKind.PUT, below)
        elif not was_local:
            self._note_deleted_tree(txn, moved, paths.decode(old_path))

    def _note_rules_crossed(self, txn: Txn, moved: Inode, source: str, path: str) -> None:
        """Inside a moved folder a pattern may hold for the old path and not for the new one, or the other way round."""
        rules = self._rules
        for below, inode in self._walk(moved, path):
            if not is_synced_type(inode.mode):
                continue
            was_local = rules.matches(paths.rebase(below, path, source), is_dir=inode.is_dir)
            is_local = rules.matches(below, is_dir=inode.is_dir)
            if was_local != is_local:
                self._stage_note(txn, IntentKind.DELETE if is_local else IntentKind.PUT, below)

    def _note_deleted_tree(self, txn: Txn, top: Inode, path: str) -> None:
        """DELETE for everything below `path`, deepest first."""
        rules = self._rules
        for below, inode in reversed(list(self._walk(top, path))):
            if is_synced_type(inode.mode) and not rules.matches(below, is_dir=inode.is_dir):
                self._stage_note(txn, IntentKind.DELETE, below)

    def _note_exchange(self, txn: Txn, first: Inode, first_link: Link, second: Inode, second_link: Link) -> None:
        """After an exchange each path below both places is looked at: PUT where something stands, DELETE where not."""
        if txn.quiet or not self._records_intents:
            return
        rules = self._rules
        first_path = paths.decode(self._named(*first_link, first.mode)[0])
        second_path = paths.decode(self._named(*second_link, second.mode)[0])
        before, after = {}, {}
        for inode, old, new in ((first, first_path, second_path), (second, second_path, first_path)):
            for below, node in self._walk(inode, old):
                if is_synced_type(node.mode):
                    before[below] = node.is_dir
                    after[paths.rebase(below, old, new)] = node.is_dir
        for path in sorted(before.keys() - after.keys(), reverse=True):
            if not rules.matches(path, is_dir=before[path]):
                self._stage_note(txn, IntentKind.DELETE, path)
        for path, is_dir in sorted(after.items()):
            if not rules.matches(path, is_dir=is_dir):
                self._stage_note(txn, IntentKind.PUT, path)

    def _walk(self, top: Inode, path: str) -> Iterator[tuple[str, Inode]]:
        """`top`, said to stand at `path`, and everything below it; a folder comes before what is in it."""
        stack = [(path, top)]
        while stack:
            where, inode = stack.pop()
            yield where, inode
            if inode.is_dir:
                entries = self._directory(inode.ino).entries
                stack.extend((paths.join(where, paths.decode(name)), self._inode(ino)) for name, (ino, _) in entries.items())
