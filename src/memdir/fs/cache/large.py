"""Blobs behind the hooks of `fs.posix`: when they are synced, cut and removed, and what a crash left of them."""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import Final

from memdir.core.clock import Clock
from memdir.core.limits import MIB
from memdir.fs.cache.batch import Batch
from memdir.fs.cache.blobs import MODE, BlobFile, Blobs, cut_file, remove_staged
from memdir.fs.cache.journal import segment_paths
from memdir.fs.cache.mark import Left
from memdir.fs.cache.overlay import Overlay
from memdir.fs.cache.tables import Tables
from memdir.fs.errors import FsError
from memdir.fs.types import Inode

BLOB_MIN_BYTES: Final = 1 * MIB
"""Contents that grow to this size go into a blob: what is smaller is better off in the tables, where it costs no file."""
_SUSPECT_NS: Final = 120 * 1_000_000_000
"""After a power cut, blobs that were changed in so long a time before the last sign of life may hold bytes whose record was
lost. Linux writes everything back after 30 s (vm.dirty_expire_centisecs), journal records included."""

_log = logging.getLogger(__name__)


class LargeContents(Overlay):
    """`Overlay` with blobs. A batch that drops or cuts blobs is written durably, and only then they are touched."""

    def __init__(self, folder: Path, tables: Tables, *, clock: Clock, uid: int, gid: int) -> None:
        super().__init__(tables, clock=clock, uid=uid, gid=gid)
        self._large = Blobs(folder)
        self._blobs = self._large
        self._blob_min_bytes = BLOB_MIN_BYTES
        self._promised_ino = 0
        """Contents of inodes below were there when something was synced."""
        self._leaving: dict[int, int] = {}
        """Blobs that are removed soon, and the bytes of disk that this gives back."""

    # ---- hooks

    def _blob_dropped(self, ino: int, blob: int) -> None:
        try:
            self._leaving[blob] = os.stat(self._large.path(ino, blob)).st_blocks * 512
        except FileNotFoundError:
            self._leaving[blob] = 0
        self._large.let_go(blob)
        self._batch.blobs_dropped.append((ino, blob))

    def _note_cut(self, inode: Inode) -> None:
        self._batch.blobs_cut.add(inode.ino)

    def _is_promised(self, ino: int) -> bool:
        return ino < self._promised_ino

    def _sync_blob(self, ino: int, blob: int) -> None:
        self._large.sync(ino, blob)

    # ---- flush

    def _needs_durability(self, batch: Batch) -> bool:
        """Whether the disk must hold `batch` before something in it is carried out."""
        return bool(batch.blobs_dropped or batch.blobs_cut)

    def _give_back(self, batch: Batch) -> None:
        """`batch` is on the disk: remove and cut what it says. Without the lock; a large file may take the disk a while. A
        failure costs space until the next open, and nothing else."""
        for ino, blob in batch.blobs_dropped:
            self._large.remove(ino, blob)
            self._leaving.pop(blob, None)
        with self._lock:
            for ino in batch.blobs_cut:
                try:
                    self._cut(ino, batch.inodes.get(ino))
                except FsError as error:
                    _log.warning("the blob of inode %d cannot be cut: %s", ino, error.message)
        for ino in batch.blobs_cut:
            self._settle_cut(ino)
        self._given_back += len(batch.blobs_dropped) + len(batch.blobs_cut)

    def _cut(self, ino: int, written: Inode | None) -> None:
        """Cut to the size that is on the disk; not when the file grew again, which has cut it already."""
        live = self._inodes.get(ino)
        if written is None or live is None or written.place <= 0 or live.place != written.place or live.size > written.size:
            return
        if self._large.size(ino, live.place) > written.size:
            self._large.resize(ino, live.place, written.size)

    def _settle_cut(self, ino: int) -> None:
        """Sync a cut in this thread, so that nobody who lets the file grow has to wait for it."""
        inode = self._inodes.get(ino)
        if inode is not None and self._large.is_cut(inode.place):
            try:
                self._large.sync(ino, inode.place)
            except FsError as error:
                _log.warning("the blob of inode %d cannot be synced: %s", ino, error.message)

    # ---- start

    def _recover_blobs(self, left: Left) -> list[tuple[int, int]]:
        """Make the blobs fit the tables, which are on the disk. Returns inodes whose contents may have changed unnoticed, and
        their sizes."""
        self._large.number_after(self._tables.highest_blob())
        if left is Left.CLOSED:
            return []
        remove_staged(self._folder)
        files = {(file.ino, file.blob): file for file in self._large.files()}
        rows = self._tables.placed()
        owned = {(ino, blob) for ino, blob, _ in rows}
        for ino, blob in files.keys() - owned:
            self._large.remove(ino, blob)
        return self._fit_blobs(rows, files, left)

    def _cut_blobs(self) -> list[tuple[int, int]]:
        """What a blob holds behind the size that was recorded was never answered, unless it was lent: those are returned, with
        their sizes. Here by the rows in memory, because SQLite could not be written."""
        lent = []
        for file in self._large.files():
            try:
                inode = self._inode(file.ino)
            except FsError:
                continue
            if inode.place != file.blob:
                continue
            if file.is_lent:
                lent.append((file.ino, file.size_bytes))
            elif file.size_bytes > inode.size:
                cut_file(self._large.path(file.ino, file.blob), inode.size)
        return lent

    def _fit_blobs(
        self, rows: list[tuple[int, int, int]], files: dict[tuple[int, int], BlobFile], left: Left
    ) -> list[tuple[int, int]]:
        changed = []
        suspect_ns = self._last_sign_ns(files) - _SUSPECT_NS
        for ino, blob, size_bytes in rows:
            file = files.get((ino, blob))
            if file is None:
                if left is not Left.POWER_CUT:
                    _log.error("blob %d of inode %d is not there; run memdir fsck", blob, ino)
                    continue
                self._large.make_again(ino, blob)  # never synced: its bytes were promised to nobody
                changed.append((ino, size_bytes))
                continue
            if file.is_lent:
                changed.append((ino, file.size_bytes))
                continue
            if file.size_bytes > size_bytes:
                cut_file(self._large.path(ino, blob), size_bytes)
            if left is Left.POWER_CUT and file.mtime_ns >= suspect_ns:
                changed.append((ino, size_bytes))
        return changed

    def _last_sign_ns(self, files: dict[tuple[int, int], BlobFile]) -> int:
        """When the last process wrote something."""
        times = [file.mtime_ns for file in files.values()]
        times += [path.stat().st_mtime_ns for path in segment_paths(self._folder)]
        return max(times, default=0)

    def _note_changed(self, found: list[tuple[int, int]]) -> None:
        """Contents may not be what they were when sync last looked."""
        for ino, size_bytes in found:
            inode = self._inode(ino)
            if inode.nlink:
                self._record_written(inode, size_bytes)
            if inode.place > 0:
                self._large.path(ino, inode.place).chmod(MODE)  # no longer lent, and that is on record now

    @property
    def _folder(self) -> Path:
        return self._large.folder.parent
