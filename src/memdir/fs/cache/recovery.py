"""Opening a folder: what an earlier process answered and did not bring into SQLite is applied, and its remains go."""

from __future__ import annotations

import logging
from typing import Final

from memdir.core.errors import CorruptError
from memdir.core.limits import MIB
from memdir.fs.cache import record
from memdir.fs.cache.disk_space import DiskSpace, is_no_space
from memdir.fs.cache.flusher import Flusher
from memdir.fs.cache.journal import Journal, Torn, replay, segment_paths
from memdir.fs.cache.lending import Lending
from memdir.fs.cache.mark import Left
from memdir.fs.cache.tables import Meta
from memdir.fs.errors import FsError
from memdir.fs.posix.notes import is_synced_type
from memdir.fs.types import ROOT_INO, IntentKind

REPLAY_BATCH_BYTES: Final = 32 * MIB

_log = logging.getLogger(__name__)


class Recovery(Lending):
    """What `SqliteFs.open` does before anybody may ask for anything."""

    _left: Left
    _journal: Journal
    _space: DiskSpace
    _flusher: Flusher
    _torn: Torn | None
    _refused: FsError | None
    _was_unsynced: bool
    _changed_unsynced: bool

    def _pending_bytes(self) -> int:
        raise TypeError("implemented by SqliteFs")

    def _replay(self, meta: Meta) -> int:
        """Apply what the journal holds and SQLite does not; returns the next lsn."""
        last = meta.applied_lsn

        def apply(lsn: int, body: bytes) -> None:
            nonlocal last
            txn = record.decode(body)
            try:
                for ino in txn.inodes:
                    self._bring(ino)
                self._apply(txn)
            except FsError as error:
                raise CorruptError(f"record {lsn} does not fit the tables: {error.message}") from error
            self._note(txn)
            last = lsn
            self._batch.lsn = lsn
            self._batch.size_bytes += len(body)
            if self._pending_bytes() > REPLAY_BATCH_BYTES and self._refused is None:
                self._write_now()
                self._evict_inodes(self._evictable())

        torn = replay(self._folder, fs_id=meta.fs_id, applied_lsn=meta.applied_lsn, apply=apply)
        if torn is not None:
            self._judge(torn)
        self._torn = torn
        return last + 1

    def _bring(self, ino: int) -> None:
        """Bring a stored inode into memory, so that its new attributes do not look like those of a new inode."""
        if ino not in self._inodes:
            found = self._fetch_inode(ino)
            if found is not None:
                self._inodes[ino], self._links[ino] = found

    def _judge(self, torn: Torn) -> None:
        if torn.damaged:
            raise CorruptError(
                f"{torn.path} is damaged at byte {torn.offset}: {torn.reason}; operations behind it would be lost",
                hint="run memdir fsck --repair to go on without them",
            )
        # A process killed while it wrote a record: the operation was not answered, nothing is lost.
        _log.info("%s ends in an unfinished write at byte %d (%s)", torn.path, torn.offset, torn.reason)

    def _recover(self) -> None:
        """Finish what the last process could not: write the replayed state, drop its segments, delete nameless inodes. On a
        full disk what cannot be written stays in memory and in the segments, and the flusher goes on with it."""
        if self._batch and self._refused is None:
            self._write_now()
        if self._refused is None:
            segments = segment_paths(self._folder)
            if segments:
                self._tables.sync()  # what the last process committed may not be on the disk yet: the segments vouch for it
            changed = self._recover_blobs(Left.KILLED if segments and self._left is Left.CLOSED else self._left)
            for path in segments:
                path.unlink()
        else:
            changed = self._cut_blobs()  # which blobs are of no use shows at the next open
            self._journal.adopt(self._torn)
            self._flusher.make_room()
        self._space.recover()
        self._rules_stale = False
        self._refresh_rules_silently()
        try:
            self._tidy_after_crash(changed)
        except FsError as error:
            if not is_no_space(error):
                raise
            _log.warning("%s: left to the next opening: %s", self._folder, error.message)
        self._absent_files, self._absent_bytes = self._tables.absent_totals()

    def _tidy_after_crash(self, changed: list[tuple[int, int]]) -> None:
        txn = self._begin(quiet=True)
        txn.gone = [ino for ino in self._tables.unlinked() if not self._inode(ino).nlink]
        if txn.gone:
            self._commit(txn)
        self._note_changed(changed)
        if self._was_unsynced and self._records_intents:
            self._name_everything()
        if self._batch and self._refused is None:
            self._write_now()

    def _refresh_rules_silently(self) -> None:
        """The ignore file as found at open is what was in force before: nothing to catch up with."""
        records, self._records_intents = self._records_intents, False
        self._refresh_rules()
        self._records_intents = records

    def _name_everything(self) -> None:
        """Changes were made without intents: PUT for every path."""
        txn = self._begin()
        for path, inode in self._walk(self._inode(ROOT_INO), "/"):
            if path != "/" and is_synced_type(inode.mode) and not self._rules.matches(path, is_dir=inode.is_dir):
                self._stage_note(txn, IntentKind.PUT, path)
        self._changed_unsynced = False
        self._commit(txn)

    def _write_now(self) -> None:
        """Write the collected batch in this thread; at open, before the flusher runs. A full disk is no reason not to open."""
        batch = self._take_batch()
        try:
            try:
                self._tables.write(batch, durable=True)
            except FsError as error:
                needed_bytes = self._tables.needed_bytes(batch)
                if not (is_no_space(error) and self._space.release(error, needed_bytes=needed_bytes)):
                    raise
                self._tables.write(batch, durable=True)
        except FsError as error:
            if not is_no_space(error):
                raise
            self._space.run_out(error)
            self._refused = error
        else:
            self._flushed(batch)
            self._mark_clean(batch.chunks.items())
            self._give_back(batch)
            self._promised_ino = self._next_ino
