"""A power cut at any moment while large contents change: what an fsync covered is there, and nothing comes from anywhere else.

Bytes that no fsync covered need not be whole, so states are not compared as such. For every file, each byte that is found must
be one that stood there at some time since its last fsync; a zero is allowed beside that only where the file was never synced.
"""

from __future__ import annotations

import errno
import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from memdir.core.clock import FakeClock
from memdir.fs.cache import blobs, flusher, journal, large, mark
from memdir.fs.cache.filesystem import SqliteFs
from memdir.fs.cache.fsck import check
from memdir.fs.errors import FsError
from memdir.fs.types import FALLOC_KEEP_SIZE, FALLOC_PUNCH_HOLE, FALLOC_ZERO_RANGE, ROOT_INO, AttrChange

from .conftest import GID, UID
from .contract import make, text
from .disk import Disk

NAMES = (b"a", b"b", b"c")
LIMIT = 3000
"""Sizes are small, so that cuts at sectors fall into the files; BLOB_MIN_BYTES is smaller still."""


@pytest.fixture(autouse=True)
def _by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flusher.Flusher, "start", lambda self: None)
    monkeypatch.setattr(journal, "SEGMENT_MAX_BYTES", 3_000)
    monkeypatch.setattr(large, "BLOB_MIN_BYTES", 700)
    monkeypatch.setattr(blobs, "fallocate", lambda *_: errno.EOPNOTSUPP)  # zeros are written then, which is recorded


class Past:
    """What one name stood for after every operation, and since when that is safe."""

    def __init__(self) -> None:
        self.contents: list[bytes | None] = []
        self.whole: list[bool] = []
        """Whether an fsync covered the inode that stood there, at some time of its life."""
        self.safe: list[tuple[int, int]] = []
        """(events, operation)"""

    def since(self, end: int) -> int:
        return max((number for at, number in self.safe if at <= end), default=0)

    def check(self, found: bytes | None, first: int, last: int) -> None:
        known = self.contents[first : last + 1]
        if found is None:
            assert None in known
            return
        there = [data for data in known if data is not None]
        assert len(found) in {len(data) for data in there}
        synced = 0 if not all(self.whole[first : last + 1]) else self._end_before(found, known)
        for at, byte in enumerate(found):
            allowed = {data[at] for data in there if at < len(data)}
            assert byte in allowed or (byte == 0 and at >= synced), f"byte {at} is {byte}, not of {allowed}"

    @staticmethod
    def _end_before(found: bytes, known: list[bytes | None]) -> int:
        """Where the file ended before it grew to what was found: from there on bytes may be missing."""
        ends = [len(data or b"") for data in known]
        return min((end for number, end in enumerate(ends) if len(found) in ends[number + 1 :]), default=len(found))


class Story:
    def __init__(self, top: Path, seed: int) -> None:
        self.rng = random.Random(f"blobs {seed}")
        self.disk = Disk(top)
        self.disk.shows_old_blocks = False
        top.mkdir(parents=True)
        self.past = {name: Past() for name in NAMES}
        self.ends: list[int] = []
        self.synced: set[int] = set()

    def tell(self, steps: int) -> None:
        with self.disk.recording():
            self.fs = SqliteFs.open(Path(self.disk.root) / "cache", clock=FakeClock(), uid=UID, gid=GID)
            self._note()
            for _ in range(steps):
                self._step()
                self._note()
                if self.rng.random() < 0.2:
                    self._flush()
            self.fs.close()
            for name in NAMES:
                self._sure(name)
            self.disk.verify_complete()

    def _flush(self) -> None:
        ready, durable = self.fs.take_batch()
        if ready:
            self.fs.write_batch(durable=durable)

    def _inode(self, name: bytes) -> int | None:
        try:
            return self.fs.lookup(ROOT_INO, name).ino
        except FsError:
            return None

    def _note(self) -> None:
        for name, past in self.past.items():
            ino = self._inode(name)
            past.contents.append(None if ino is None else text(self.fs, ino))
            past.whole.append(ino is None or ino in self.synced)
        self.ends.append(len(self.disk.events))

    def _sure(self, name: bytes) -> None:
        self.past[name].safe.append((len(self.disk.events), len(self.ends) - 1))

    def _bytes(self, most: int = LIMIT) -> bytes:
        return bytes([self.rng.randrange(1, 256)]) * self.rng.randrange(1, most)

    def _step(self) -> None:
        name = self.rng.choice(NAMES)
        ino = self._inode(name)
        if ino is None:
            make(self.fs, name)
            return
        size, rng = self.fs.get(ino).size, self.rng
        actions: list[Callable[[], object]] = [
            lambda: self.fs.write(ino, rng.randrange(size + 1), self._bytes()),
            lambda: self.fs.write(ino, size, self._bytes(900)),
            lambda: self.fs.setattr(ino, AttrChange(size=rng.randrange(LIMIT))),
            lambda: self.fs.setattr(ino, AttrChange(size=0)),
            lambda: self.fs.fallocate(ino, rng.randrange(LIMIT), 500, FALLOC_PUNCH_HOLE | FALLOC_KEEP_SIZE),
            lambda: self.fs.fallocate(ino, rng.randrange(LIMIT), 500, FALLOC_ZERO_RANGE),
            lambda: self._sync(name, ino),
            lambda: self._sync(name, ino),
            self._sync_all,
            lambda: self._replace(name, by_rename=True),
            lambda: self._replace(name, by_rename=False),
            lambda: self.fs.unlink(ROOT_INO, name),
        ]
        rng.choice(actions)()

    def _sync(self, name: bytes, ino: int) -> None:
        self.fs.fsync(ino)
        self.synced.add(ino)
        self._sure(name)

    def _sync_all(self) -> None:
        self.fs.fsync(ROOT_INO)
        self.synced.update(ino for name in NAMES if (ino := self._inode(name)) is not None)
        for name in NAMES:
            self._sure(name)

    def _replace(self, name: bytes, *, by_rename: bool) -> None:
        """An editor's save, or contents that sync brings: these are synced before they take the name."""
        if by_rename:
            temporary = make(self.fs, b"temporary", self._bytes()).ino
            if self.rng.random() < 0.5:
                self.fs.fsync(temporary)
                self.synced.add(temporary)
            self.fs.rename(ROOT_INO, b"temporary", ROOT_INO, name)
            return
        path = "/" + name.decode()
        fact = self.fs.put_file(path, [self._bytes()], mode=0o644, mtime_ns=1, expected=self.fs.fact(path))
        if self.fs.get(fact.ino).place > 0:
            self.synced.add(fact.ino)

    def verify(self, end: int, rng: random.Random, where: Path) -> None:
        image = self.disk.image(end, rng)
        where.mkdir()
        self.disk.write_image(image, where)
        if "cache/cache.db" in image:
            assert check(where / "cache") == []
        with SqliteFs.open(where / "cache", clock=FakeClock(), uid=UID, gid=GID) as fs:
            last = next((number for number, at in enumerate(self.ends) if at > end), len(self.ends) - 1)
            for name, past in self.past.items():
                try:
                    found = text(fs, fs.lookup(ROOT_INO, name).ino)
                except FsError as error:
                    assert error.errno == errno.ENOENT  # noqa: PT017 - anything else is a failure, too
                    found = None
                past.check(found, past.since(end), last)
        assert check(where / "cache") == []
        shutil.rmtree(where)


def images(tmp_path: Path, stories: range, each: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in stories:
        story = Story(tmp_path / f"story-{seed}", seed)
        with monkeypatch.context() as patch:
            patch.setattr(mark, "boot_id", lambda: "before")
            story.tell(40)
        rng = random.Random(f"images {seed}")
        for _ in range(each):
            story.verify(rng.randrange(len(story.disk.events) + 1), rng, tmp_path / "image")
        shutil.rmtree(tmp_path / f"story-{seed}")


@pytest.mark.promise("large.power-cut")
def test_nothing_synced_is_lost_in_a_power_cut_of_large_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    images(tmp_path, range(5), 25, monkeypatch)


@pytest.mark.long
@pytest.mark.timeout(7200)
def test_nothing_synced_is_lost_in_many_power_cuts_of_large_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    images(tmp_path, range(1000, 1500), 40, monkeypatch)
