"""A power cut at any moment: what was synced is there, everything else is whole or not there, and fsck finds nothing."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest

from memdir.core.clock import FakeClock
from memdir.fs.cache import disk_space, flusher, journal
from memdir.fs.cache.filesystem import SqliteFs
from memdir.fs.cache.fsck import check
from memdir.fs.types import ROOT_INO

from . import snapshot, workload
from .conftest import GID, UID
from .disk import Disk

State = tuple[object, ...]


@pytest.fixture(autouse=True)
def _by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    """The flusher works when the story says so, and segments are short: the same seed gives the same story."""
    monkeypatch.setattr(flusher.Flusher, "start", lambda self: None)
    monkeypatch.setattr(flusher.Flusher, "_pause", lambda self: None)
    monkeypatch.setattr(disk_space, "RESERVE_BYTES", 4096)
    monkeypatch.setattr(journal, "SEGMENT_MAX_BYTES", 6_000)


def state_of(fs: SqliteFs) -> State:
    return snapshot.visible(fs), tuple(sorted(fs._intents._pending.items()))


class Story:
    """A filesystem that is worked with, restarted and killed on a recorded disk."""

    def __init__(self, top: Path, seed: int) -> None:
        self.rng = random.Random(f"story {seed}")
        self.top = top
        self.disk = Disk(top / "life-0")
        (top / "life-0").mkdir(parents=True)
        self.states: list[State] = []
        self.ends: list[int] = []
        """How many events there were when a state was answered."""
        self.safe: list[tuple[int, int]] = []
        """(events, state): from then on that state may not be lost."""
        self.clock = FakeClock()

    def tell(self, steps: int) -> None:
        with self.disk.recording():
            self.fs = self._open()
            self._note()
            for _ in range(steps):
                if workload.step(self.fs, self.rng):
                    self._note()
                self._happen()
            self.fs.close()
            self._sure()
            self.disk.verify_complete()

    def _open(self) -> SqliteFs:
        fs = SqliteFs.open(Path(self.disk.root) / "cache", clock=self.clock, uid=UID, gid=GID)
        sync = fs.fsync

        def fsync(ino: int) -> None:
            """What was answered before is safe; the state is the last one noted, because a sync changes nothing."""
            sync(ino)
            self._sure()

        fs.fsync = fsync  # type: ignore[method-assign]
        return fs

    def _note(self) -> None:
        self.states.append(state_of(self.fs))
        self.ends.append(len(self.disk.events))

    def _sure(self) -> None:
        self.safe.append((len(self.disk.events), len(self.states) - 1))

    def _happen(self) -> None:
        """What goes on beside the operations."""
        fate = self.rng.random()
        if fate < 0.10:
            self.fs.fsync(ROOT_INO)
        elif fate < 0.22:
            self.fs._flusher._write()
        elif fate < 0.35:
            self.fs._flusher._tidy()
        elif fate < 0.40:
            self.fs.intents(0, 5)
        elif fate < 0.45:
            held = list(self.fs._intents._pending)
            if held:
                self.fs.acknowledge(held[len(held) // 2])
                self._note()
        elif fate < 0.48:
            self.fs.close()
            self._sure()
            self._restart()
        elif fate < 0.52:
            self._kill()

    def _kill(self) -> None:
        """The process dies, the power stays: all that was written is there for the next one, and is as unsafe as before."""
        dead, old_root = self.fs, self.disk.root
        image = self.disk.image(len(self.disk.events), None)
        root = self.top / f"life-{self.disk.life + 1}"
        root.mkdir()
        self.disk.write_image(image, root)
        self.disk.moved(root)
        dead.close()
        shutil.rmtree(old_root)
        self._restart()

    def _restart(self) -> None:
        self.fs = self._open()
        assert state_of(self.fs) == self.states[-1]

    # ---- afterwards

    def allowed(self, end: int) -> list[State]:
        """What may be found after a power cut behind that many events."""
        first = max((state for at, state in self.safe if at <= end), default=0)  # an empty one before anything was answered
        last = next((number for number, at in enumerate(self.ends) if at > end), len(self.states) - 1)
        return self.states[first : last + 1]


def opened_after(image: dict[str, bytes | None], where: Path, allowed: list[State]) -> tuple[Disk, State]:
    """Open an image: it is sound, and in a state that is allowed. Returns what the opening did to the disk as well."""
    where.mkdir()
    disk = Disk(where)
    disk.adopt(image)
    disk.write_image(image, where)
    with disk.recording():  # syncs cost nothing there
        if "cache/cache.db" in image:
            assert check(where / "cache") == []
        fs = SqliteFs.open(where / "cache", clock=FakeClock(), uid=UID, gid=GID)
        found = state_of(fs)
        fs.close()
        assert check(where / "cache") == []
    assert found in allowed, "no state that was answered since the last one that is safe"
    shutil.rmtree(where)
    return disk, found


def verify(story: Story, end: int, rng: random.Random, where: Path) -> None:
    """One power cut, and sometimes another one while the first is being recovered from."""
    image = story.disk.image(end, rng)
    allowed = story.allowed(end)
    disk, found = opened_after(image, where / "first", allowed)
    if rng.random() < 0.3:
        for number in range(2):
            again = disk.image(rng.randrange(disk.adopted, len(disk.events) + 1), rng)
            opened_after(again, where / f"again-{number}", [found])


def images(tmp_path: Path, stories: range, each: int) -> None:
    """`each` images of every story."""
    for seed in stories:
        story = Story(tmp_path / f"story-{seed}", seed)
        story.tell(60)
        rng = random.Random(f"images {seed}")
        for number in range(each):
            where = tmp_path / f"image-{number}"
            where.mkdir()
            verify(story, rng.randrange(story.disk.adopted, len(story.disk.events) + 1), rng, where)
            where.rmdir()
        shutil.rmtree(tmp_path / f"story-{seed}")


@pytest.mark.promise("survives.power-cut")
def test_nothing_synced_is_lost_in_a_power_cut(tmp_path: Path) -> None:
    images(tmp_path, range(10), 40)


@pytest.mark.long
@pytest.mark.timeout(7200)
def test_nothing_synced_is_lost_in_many_power_cuts(tmp_path: Path) -> None:
    images(tmp_path, range(1000, 2000), 40)
