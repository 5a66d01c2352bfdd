"""Random operations on the cache, on `MemoryFs` and on a real directory, with reopens and crashes between: one tree."""

from __future__ import annotations

import ctypes
import errno
import os
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from memdir.core.clock import FakeClock
from memdir.fs.cache import journal, large
from memdir.fs.cache.filesystem import SqliteFs
from memdir.fs.cache.fsck import check
from memdir.fs.errors import FsError
from memdir.fs.memory import MemoryFs
from memdir.fs.types import FALLOC_KEEP_SIZE, FALLOC_PUNCH_HOLE, RENAME_EXCHANGE, RENAME_NOREPLACE, ROOT_INO, AttrChange
from memdir.fs.vfs import Vfs

from . import snapshot
from .conftest import GID, UID, crashed_copy
from .contract import CHUNK, FILE, ME

_libc = ctypes.CDLL(None, use_errno=True)
_AT_FDCWD = -100

NAMES = st.sampled_from(["a", "b", "c", "dir", "ü", "x~"])
FOLDERS = st.integers(0, 7)
FLAGS = st.sampled_from([0, 0, 0, RENAME_NOREPLACE, RENAME_EXCHANGE])
OFFSETS = st.one_of(st.integers(0, 300), st.integers(CHUNK - 3, CHUNK + 3), st.integers(2 * CHUNK - 2, 2 * CHUNK + 2))
LENGTHS = st.one_of(st.integers(1, 40), st.sampled_from([CHUNK - 1, CHUNK, CHUNK + 1]))


def outcome(call: Callable[[], object]) -> str:
    """The errno of a call; empty when it worked."""
    try:
        call()
    except (OSError, FsError) as error:
        return errno.errorcode[error.errno or 0]
    return ""


def renameat2(old: Path, new: Path, flags: int) -> None:
    if _libc.renameat2(_AT_FDCWD, os.fsencode(old), _AT_FDCWD, os.fsencode(new), flags):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


class Machine(RuleBasedStateMachine):
    """Each rule runs on all three; they must agree on the errno, and on the tree afterwards."""

    @initialize()
    def start(self) -> None:
        self.scratch = tempfile.TemporaryDirectory()
        self.top = Path(self.scratch.name)
        self.real = self.top / "real"
        self.real.mkdir()
        self.generation = 0
        self.clock = FakeClock()
        self.memory = MemoryFs(clock=self.clock, uid=UID, gid=GID)
        self.disk = self.open_disk()

    @property
    def folder(self) -> Path:
        return self.top / f"cache-{self.generation}"

    def open_disk(self) -> SqliteFs:
        return SqliteFs.open(self.folder, clock=self.clock, uid=UID, gid=GID)

    def folders(self) -> list[Path]:
        return sorted(Path(folder) for folder, _, _ in os.walk(self.real))

    def place(self, folder: int, name: str) -> tuple[Path, str, int]:
        """(real path, name, inode number of the folder)."""
        choices = self.folders()
        where = choices[folder % len(choices)]
        ino = ROOT_INO
        for part in where.relative_to(self.real).parts:
            ino = self.memory.lookup(ino, os.fsencode(part)).ino
        return where / name, name, ino

    def both(self, call: Callable[[Vfs], object]) -> str:
        """Run on the two filesystems, which must agree in everything."""
        self.clock.advance(0.001)
        mine, stored = outcome(lambda: call(self.memory)), outcome(lambda: call(self.disk))
        assert mine == stored
        return mine

    def all(self, real: Callable[[], object], call: Callable[[Vfs], object]) -> None:
        expected = outcome(real)
        got = self.both(call)
        assert got == expected

    @rule(folder=FOLDERS, name=NAMES)
    def create(self, folder: int, name: str) -> None:
        path, _, parent = self.place(folder, name)

        def real() -> None:
            fd = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
            os.fchmod(fd, 0o644)
            os.close(fd)

        self.all(real, lambda fs: fs.create(parent, os.fsencode(name), FILE, ME))

    @rule(folder=FOLDERS, name=NAMES)
    def mkdir(self, folder: int, name: str) -> None:
        path, _, parent = self.place(folder, name)
        if len(path.parts) - len(self.real.parts) > 4:
            return

        def real() -> None:
            path.mkdir()
            path.chmod(0o755)

        self.all(real, lambda fs: fs.mkdir(parent, os.fsencode(name), 0o755, ME))

    @rule(folder=FOLDERS, name=NAMES, points_to=st.sampled_from(["nowhere", "../ü", "x" * 200]))
    def symlink(self, folder: int, name: str, points_to: str) -> None:
        path, _, parent = self.place(folder, name)
        self.all(
            lambda: path.symlink_to(points_to), lambda fs: fs.symlink(parent, os.fsencode(name), os.fsencode(points_to), ME)
        )

    @rule(folder=FOLDERS, name=NAMES, offset=OFFSETS, length=LENGTHS, byte=st.integers(1, 255))
    def write(self, folder: int, name: str, offset: int, length: int, byte: int) -> None:
        path, _, parent = self.place(folder, name)
        if path.is_symlink() or not path.is_file():
            return
        data = bytes([byte]) * length
        with path.open("r+b") as file:
            file.seek(offset)
            file.write(data)
        assert self.both(lambda fs: fs.write(fs.lookup(parent, os.fsencode(name)).ino, offset, data)) == ""

    @rule(folder=FOLDERS, name=NAMES, size=st.one_of(OFFSETS, st.just(0)))
    def truncate(self, folder: int, name: str, size: int) -> None:
        path, _, parent = self.place(folder, name)
        if path.is_symlink():
            return
        self.all(
            lambda: os.truncate(path, size),
            lambda fs: fs.setattr(fs.lookup(parent, os.fsencode(name)).ino, AttrChange(size=size)),
        )

    @rule(folder=FOLDERS, name=NAMES, offset=OFFSETS, length=LENGTHS)
    def punch(self, folder: int, name: str, offset: int, length: int) -> None:
        path, _, parent = self.place(folder, name)
        if path.is_symlink() or not path.is_file():
            return
        with path.open("r+b") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(offset)
            file.write(bytes(max(0, min(length, size - offset))))
        mode = FALLOC_PUNCH_HOLE | FALLOC_KEEP_SIZE
        assert self.both(lambda fs: fs.fallocate(fs.lookup(parent, os.fsencode(name)).ino, offset, length, mode)) == ""

    @rule(folder=FOLDERS, name=NAMES, mode=st.integers(0o600, 0o777))
    def chmod(self, folder: int, name: str, mode: int) -> None:
        path, _, parent = self.place(folder, name)
        if path.is_symlink() or path.is_dir():
            return
        self.all(
            lambda: path.chmod(mode), lambda fs: fs.setattr(fs.lookup(parent, os.fsencode(name)).ino, AttrChange(mode=mode))
        )

    @rule(folder=FOLDERS, name=NAMES)
    def unlink(self, folder: int, name: str) -> None:
        path, _, parent = self.place(folder, name)
        self.all(lambda: os.unlink(path), lambda fs: fs.unlink(parent, os.fsencode(name)))

    @rule(folder=FOLDERS, name=NAMES)
    def rmdir(self, folder: int, name: str) -> None:
        path, _, parent = self.place(folder, name)
        self.all(lambda: os.rmdir(path), lambda fs: fs.rmdir(parent, os.fsencode(name)))

    @rule(folder=FOLDERS, name=NAMES, new_folder=FOLDERS, new_name=NAMES, flags=FLAGS)
    def rename(self, folder: int, name: str, new_folder: int, new_name: str, flags: int) -> None:
        old, _, parent = self.place(folder, name)
        new, _, new_parent = self.place(new_folder, new_name)
        self.all(
            lambda: renameat2(old, new, flags),
            lambda fs: fs.rename(parent, os.fsencode(name), new_parent, os.fsencode(new_name), flags),
        )

    @rule(folder=FOLDERS, name=NAMES, new_folder=FOLDERS, new_name=NAMES)
    def link(self, folder: int, name: str, new_folder: int, new_name: str) -> None:
        old, _, parent = self.place(folder, name)
        new, _, new_parent = self.place(new_folder, new_name)
        if os.path.lexists(new) and old.is_dir() and not old.is_symlink():
            return  # two things are wrong, and which errno comes first is up to the kernel
        self.all(
            lambda: os.link(old, new, follow_symlinks=False),
            lambda fs: fs.link(fs.lookup(parent, os.fsencode(name)).ino, new_parent, os.fsencode(new_name)),
        )

    @rule(
        folder=FOLDERS,
        name=NAMES,
        key=st.sampled_from([b"user.a", b"user.b"]),
        value=st.one_of(st.none(), st.binary(max_size=9)),
    )
    def xattr(self, folder: int, name: str, key: bytes, value: bytes | None) -> None:
        _, _, parent = self.place(folder, name)

        def change(fs: Vfs) -> None:
            ino = fs.lookup(parent, os.fsencode(name)).ino
            if value is None:
                fs.removexattr(ino, key)
            else:
                fs.setxattr(ino, key, value)

        self.both(change)

    @rule(limit=st.integers(1, 50))
    def read_intents(self, limit: int) -> None:
        mine, stored = self.memory.intents(0, limit), self.disk.intents(0, limit)
        assert [(i.kind, i.path, i.source) for i in mine] == [(i.kind, i.path, i.source) for i in stored]
        if mine:
            self.memory.acknowledge(mine[-1].seq)
            self.disk.acknowledge(stored[-1].seq)

    @rule()
    def flush(self) -> None:
        self.disk.flush()

    @rule()
    def evict(self) -> None:
        """Everything clean leaves memory, as in a tree too large for it."""
        self.disk.flush()
        with self.disk._lock:
            self.disk._inodes = {ROOT_INO: self.disk._inode(ROOT_INO)}
            self.disk._links = {ROOT_INO: ()}
            for table in (self.disk._dirs, self.disk._files, self.disk._xattrs, self.disk._clean):
                table.clear()
            self.disk._clean_bytes = 0

    @rule()
    def reopen(self) -> None:
        """Unread intents no longer absorb new ones after a reopen, so both sides start reading afresh."""
        self.read_intents(10_000)
        self.disk.close()
        assert check(self.folder) == []
        self.disk = self.open_disk()

    @rule()
    def crash(self) -> None:
        self.read_intents(10_000)
        old = self.disk
        self.generation += 1
        crashed_copy(old, self.folder)
        old.close()
        assert check(self.folder) == []
        self.disk = self.open_disk()

    @invariant()
    def same_tree(self) -> None:
        assert snapshot.visible(self.memory) == snapshot.of_directory(self.real)
        assert snapshot.of_vfs(self.disk) == snapshot.of_vfs(self.memory)

    @invariant()
    def remembered_paths_are_true(self) -> None:
        for fs in (self.memory, self.disk):
            for ino, (path, is_local) in list(fs._folders.items()):
                names = path.split(b"/")[1:-1]
                assert is_local == any(name.endswith(b"~") for name in names)
                at = ROOT_INO
                for name in names:
                    at = fs.lookup(at, name).ino
                assert at == ino

    def teardown(self) -> None:
        if hasattr(self, "disk"):
            self.disk.close()
            assert check(self.folder) == []
            self.scratch.cleanup()


def run(*, cases: int, steps: int) -> None:
    run_state_machine_as_test(
        Machine,
        settings=settings(
            max_examples=cases, stateful_step_count=steps, deadline=None, derandomize=True, database=None,
            suppress_health_check=list(HealthCheck),
        ),
    )  # fmt: skip


@pytest.mark.promise("parts.stateful")
def test_random_operations_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal, "SEGMENT_MAX_BYTES", 2000)  # many segments: rotation and release are part of it
    run(cases=40, steps=40)


@pytest.mark.promise("parts.stateful")
def test_random_operations_agree_when_contents_are_files_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal, "SEGMENT_MAX_BYTES", 2000)
    monkeypatch.setattr(large, "BLOB_MIN_BYTES", 200)
    run(cases=25, steps=40)


def test_what_random_operations_found_once_stays_fixed() -> None:
    """Shrunk from the long run: a file renamed over a folder above it is ENOTEMPTY on Linux, also where EISDIR would fit."""
    machine = Machine()
    machine.start()
    try:
        machine.mkdir(folder=0, name="c")
        machine.create(folder=1, name="a")
        machine.rename(folder=1, name="a", new_folder=0, new_name="c", flags=0)
        machine.mkdir(folder=1, name="b")
        machine.create(folder=2, name="a")
        machine.rename(folder=2, name="a", new_folder=0, new_name="c", flags=0)
        machine.same_tree()
    finally:
        machine.teardown()


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_many_more_random_operations_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal, "SEGMENT_MAX_BYTES", 5000)
    run(cases=1000, steps=200)


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_many_more_random_operations_agree_when_contents_are_files_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal, "SEGMENT_MAX_BYTES", 5000)
    monkeypatch.setattr(large, "BLOB_MIN_BYTES", 200)
    run(cases=1000, steps=200)
