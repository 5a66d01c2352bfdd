"""Files whose bytes are on the server only: they look like any file, never read as anything else, and survive everything."""

from __future__ import annotations

import errno
import hashlib
import os
import random
from collections.abc import Callable
from pathlib import Path

import apsw
import pytest

from memdir.core.limits import KIB, MIB
from memdir.fs.cache.filesystem import SqliteFs
from memdir.fs.cache.fsck import check, repair
from memdir.fs.errors import ContentsAbsentError, FsError
from memdir.fs.posix.place import ABSENT
from memdir.fs.tree import ContentsMismatchError, LocalChangedError
from memdir.fs.types import (
    FALLOC_KEEP_SIZE,
    FALLOC_PUNCH_HOLE,
    RENAME_EXCHANGE,
    ROOT_INO,
    AbsentTotals,
    AttrChange,
    IntentKind,
    LocalFact,
    RemoteFile,
)

from . import snapshot
from .conftest import AnyFs, Factory, crashed_copy
from .contract import make, refuses, text
from .test_synctree import Heard, fact


def sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def remote(path: str, data: bytes, *, mode: int = 0o640, mtime_ns: int = 77) -> RemoteFile:
    return RemoteFile(path=path, size=len(data), content_hash=sha(data), mode=mode, mtime_ns=mtime_ns)


def put(fs: AnyFs, path: str, data: bytes, expected: LocalFact | None = None, mtime_ns: int = 77) -> LocalFact:
    return fs.put_absent(path, remote(path, data, mtime_ns=mtime_ns), expected=expected)


@pytest.mark.promise("lazy.metadata-first")
def test_an_absent_file_has_everything_but_its_bytes(fs: AnyFs) -> None:
    heard = Heard()
    fs.connect(heard)
    arrived = put(fs, "/d/a.md", b"remote text")
    inode = fs.get(arrived.ino)
    assert (inode.size, inode.mode & 0o7777, inode.mtime_ns, inode.nlink) == (11, 0o640, 77, 1)
    assert arrived.absent_hash == sha(b"remote text")
    assert [entry.name for entry in fs.readdir(fact(fs, "/d").ino)] == [b"a.md"]
    assert fs.intents(0, 10) == []
    assert fs.absent_totals() == AbsentTotals(files=1, size_bytes=11)
    assert (fact(fs, "/d").ino, b"a.md") in heard.entries


@pytest.mark.parametrize(
    "use",
    [
        lambda fs, ino: fs.read(ino, 0, 4),
        lambda fs, ino: fs.write(ino, 3, b"x"),
        lambda fs, ino: fs.setattr(ino, AttrChange(size=3)),
        lambda fs, ino: fs.setattr(ino, AttrChange(size=99)),
        lambda fs, ino: fs.fallocate(ino, 0, 99, 0),
        lambda fs, ino: fs.fallocate(ino, 0, 2, FALLOC_PUNCH_HOLE | FALLOC_KEEP_SIZE),
        lambda fs, ino: fs.seek_data(ino, 0, hole=False),
        lambda fs, ino: fs.seek_data(ino, 0, hole=True),
        lambda fs, ino: fs.read(fs.fact("/a"), 0, 4),
    ],
)
def test_what_needs_the_bytes_says_so_and_changes_nothing(fs: AnyFs, use: Callable[[AnyFs, int], object]) -> None:
    before = put(fs, "/a", b"remote text")
    with pytest.raises(ContentsAbsentError) as caught:
        use(fs, before.ino)
    assert (caught.value.errno, caught.value.ino) == (errno.EIO, before.ino)
    assert fs.fact("/a") == before
    assert fs.intents(0, 10) == []


def test_reading_nothing_needs_no_bytes(fs: AnyFs) -> None:
    arrived = put(fs, "/a", b"remote text")
    assert fs.read(arrived.ino, 11, 100) == b""
    assert fs.write(arrived.ino, 0, b"") == 0
    refuses(errno.ENXIO, lambda: fs.seek_data(arrived.ino, 11, hole=False))
    refuses(errno.EINVAL, lambda: fs.readlink(arrived.ino))


@pytest.mark.promise("lazy.local-changes")
def test_names_modes_and_times_change_without_bytes(fs: AnyFs) -> None:
    ino = put(fs, "/a", b"remote text").ino
    fs.rename(ROOT_INO, b"a", ROOT_INO, b"b")
    fs.link(ino, ROOT_INO, b"c")
    fs.setattr(ino, AttrChange(mode=0o600, mtime_ns=5))
    fs.setattr(ino, AttrChange(size=11))
    assert fact(fs, "/b").absent_hash == fact(fs, "/c").absent_hash == sha(b"remote text")
    kinds = [(intent.kind, intent.path) for intent in fs.intents(0, 10)]
    assert (IntentKind.MOVE, "/b") in kinds
    assert (IntentKind.PUT, "/c") in kinds
    fs.unlink(ROOT_INO, b"b")
    fs.unlink(ROOT_INO, b"c")
    assert fs.absent_totals() == AbsentTotals(files=0, size_bytes=0)
    assert fs.fact_by_number(ino) is None


def test_a_truncation_to_nothing_makes_it_an_ordinary_file(fs: AnyFs) -> None:
    old = put(fs, "/a", b"remote text")
    fs.setattr(old.ino, AttrChange(size=0))
    fs.write(old.ino, 2, b"new")
    assert text(fs, old.ino) == b"\0\0new"
    now = fact(fs, "/a")
    assert now.absent_hash is None
    assert now.version > old.version
    assert [intent.kind for intent in fs.intents(0, 10)] == [IntentKind.PUT]
    with pytest.raises(LocalChangedError):
        fs.fill(old, [b"remote text"])
    assert text(fs, old.ino) == b"\0\0new"


@pytest.mark.promise("lazy.fill-exact")
@pytest.mark.parametrize("size", [1, 5000, 128 * KIB + 1, 3 * MIB, 9 * MIB + 5])
def test_filling_gives_exactly_the_announced_bytes_and_changes_nothing_else(fs: AnyFs, size: int) -> None:
    data = random.Random(size).randbytes(size)
    before = put(fs, "/a", data)
    after_put = fs.get(before.ino)
    times = (after_put.mtime_ns, after_put.ctime_ns)
    pieces = [data[start : start + 700_001] for start in range(0, size, 700_001)]
    fs.fill(before, iter(pieces))
    assert text(fs, before.ino) == data
    now = fact(fs, "/a")
    assert (now.absent_hash, now.version, now.ino) == (None, before.version, before.ino)
    inode = fs.get(before.ino)
    assert (inode.mtime_ns, inode.ctime_ns) == times
    assert fs.intents(0, 10) == []
    assert fs.absent_totals().files == 0
    fs.fill(before, [b"never looked at"])
    fs.write(before.ino, 0, b"!")
    assert text(fs, before.ino) == b"!" + data[1:]


@pytest.mark.promise("lazy.fill-exact")
@pytest.mark.parametrize("size", [100, 9 * MIB])
def test_other_bytes_than_announced_are_never_put(fs: AnyFs, size: int) -> None:
    data = random.Random(size).randbytes(size)
    before = put(fs, "/a", data)
    for wrong in (data[:-1], data + b"x", bytes(size), b"", data[::-1]):
        with pytest.raises(ContentsMismatchError):
            fs.fill(before, [wrong])
        with pytest.raises(ContentsAbsentError):
            fs.read(before.ino, 0, 10)
    fs.fill(before, [data])
    assert text(fs, before.ino) == data


def test_a_change_while_the_bytes_arrive_wins(fs: AnyFs) -> None:
    before = put(fs, "/a", b"remote text")

    def pieces() -> object:
        yield b"remote"
        fs.setattr(before.ino, AttrChange(size=0))
        yield b" text"

    with pytest.raises(LocalChangedError):
        fs.fill(before, pieces())
    assert text(fs, before.ino) == b""


@pytest.mark.promise("lazy.evict-clean")
@pytest.mark.parametrize("size", [10, 300 * KIB, 9 * MIB])
def test_evicted_contents_come_back_as_the_same_version(fs: AnyFs, size: int) -> None:
    data = random.Random(size).randbytes(size)
    before = fs.put_file("/a", [data], mode=0o644, mtime_ns=1, expected=None)
    fs.evict(before, sha(data))
    with pytest.raises(ContentsAbsentError):
        fs.read(before.ino, 0, 1)
    now = fact(fs, "/a")
    assert (now.version, now.size, now.mtime_ns, now.absent_hash) == (before.version, size, 1, sha(data))
    assert fs.intents(0, 10) == []
    fs.evict(now, sha(data))
    fs.fill(now, [data])
    assert text(fs, before.ino) == data


@pytest.mark.promise("lazy.evict-clean")
def test_what_changed_is_never_evicted(fs: AnyFs) -> None:
    before = fs.put_file("/a", [b"text"], mode=0o644, mtime_ns=1, expected=None)
    fs.write(before.ino, 0, b"T")
    with pytest.raises(LocalChangedError):
        fs.evict(before, sha(b"text"))
    assert text(fs, before.ino) == b"Text"
    ignore = fs.put_file("/.memdirignore", [b"*.log\n"], mode=0o644, mtime_ns=1, expected=None)
    assert fs.is_local_only("/x.log")
    refuses(errno.EBUSY, lambda: fs.evict(ignore, sha(b"*.log\n")))
    empty = fs.put_file("/e", [b""], mode=0o644, mtime_ns=1, expected=None)
    refuses(errno.EBUSY, lambda: fs.evict(empty, sha(b"")))


def test_the_ignore_file_is_never_absent(fs: AnyFs) -> None:
    refuses(errno.EINVAL, lambda: put(fs, "/.memdirignore", b"*.log\n"))
    assert fs.put_new_absent([remote("/.memdirignore", b"*.log\n")]) == [None]
    ino = put(fs, "/rules", b"*.log\n").ino
    for call in (
        lambda: fs.rename(ROOT_INO, b"rules", ROOT_INO, b".memdirignore"),
        lambda: fs.link(ino, ROOT_INO, b".memdirignore"),
    ):
        with pytest.raises(ContentsAbsentError):
            call()
    make(fs, b".memdirignore", b"*.txt\n")
    with pytest.raises(ContentsAbsentError):
        fs.rename(ROOT_INO, b".memdirignore", ROOT_INO, b"rules", RENAME_EXCHANGE)
    fs.fill(fact(fs, "/rules"), [b"*.log\n"])
    fs.rename(ROOT_INO, b"rules", ROOT_INO, b".memdirignore")
    assert fs.is_local_only("/x.log")
    assert not fs.is_local_only("/x.txt")


def test_a_newer_absent_version_takes_the_place_of_either_kind(fs: AnyFs) -> None:
    heard = Heard()
    fs.connect(heard)
    first = put(fs, "/a", b"one")
    second = put(fs, "/a", b"number two", first)
    assert (second.ino, second.size) == (first.ino, 10)
    assert second.version > first.version
    assert first.ino in heard.inodes
    fs.fill(second, [b"number two"])
    third = put(fs, "/a", b"three", fact(fs, "/a"))
    with pytest.raises(ContentsAbsentError):
        fs.read(third.ino, 0, 10)
    with pytest.raises(LocalChangedError):
        put(fs, "/a", b"four", second)
    with pytest.raises(LocalChangedError):
        fs.fill(second, [b"number two"])
    here = fs.put_file("/a", [b"here"], mode=0o644, mtime_ns=1, expected=third)
    assert here.absent_hash is None
    assert text(fs, third.ino) == b"here"
    assert fs.absent_totals().files == 0


@pytest.mark.promise("lazy.metadata-first")
def test_many_new_files_come_in_batches_and_leave_out_what_stands_there(fs: AnyFs) -> None:
    make(fs, b"taken", b"local")
    make(fs, b"file", b"local")
    files = [remote(f"/d{number % 7}/f{number}", b"x" * (number + 1)) for number in range(300)]
    files += [remote("/taken", b"remote"), remote("/file/below", b"remote"), remote("/d0/f0", b"twice")]
    found = fs.put_new_absent(files)
    assert [one is None for one in found] == [False] * 300 + [True] * 3
    assert found[:300] == [fs.fact(file.path) for file in files[:300]]
    assert text(fs, fact(fs, "/taken").ino) == b"local"
    assert fs.absent_totals() == AbsentTotals(files=300, size_bytes=sum(range(1, 301)))


def test_absent_files_are_found_by_hash_by_order_and_by_number(fs: AnyFs) -> None:
    old, new = put(fs, "/old", b"same", mtime_ns=1), put(fs, "/new", b"other", mtime_ns=2)
    large = put(fs, "/large", b"x" * (2 * MIB), mtime_ns=3)
    assert list(fs.absent_with(sha(b"same"), 10)) == [old]
    assert list(fs.absent_with(sha(b"none"), 10)) == []
    if isinstance(fs, SqliteFs):
        fs.flush()
    assert list(fs.absent_files(10, max_bytes=1 << 30)) == [new, old, large]
    assert list(fs.absent_files(1, max_bytes=1 << 30)) == [new]
    assert list(fs.absent_files(10, max_bytes=4)) == [old]
    assert list(fs.absent_with(sha(b"same"), 10)) == [old]
    fs.fill(old, [b"same"])
    assert list(fs.absent_with(sha(b"same"), 10)) == []
    assert list(fs.absent_files(10, max_bytes=1 << 30)) == [new, large]
    assert fs.fact_by_number(new.ino) == new
    fs.link(new.ino, ROOT_INO, b"again")
    assert fs.paths_of(new.ino) == ["/again", "/new"]


def test_what_was_used_last_is_the_warmest(fs: AnyFs, clock: object) -> None:
    inos = [fs.put_file(f"/{name}", [b"x"], mode=0o644, mtime_ns=10 - name, expected=None).ino for name in range(3)]
    flush(fs)
    assert list(fs.coldest_numbers()) == inos[::-1]
    fs.watch_uses()
    clock.advance(10)  # type: ignore[attr-defined]
    fs.read(inos[2], 0, 1)
    assert list(fs.coldest_numbers()) == [inos[1], inos[0], inos[2]]
    assert fs.held_bytes() == 3


def flush(fs: AnyFs) -> None:
    if isinstance(fs, SqliteFs):
        fs.flush()


# ---- on disk


@pytest.mark.promise("lazy.crash")
def test_absent_filled_and_evicted_survive_a_kill_at_every_step(opened: Factory, tmp_path: Path) -> None:
    fs = opened()
    small, large = b"small contents", random.Random(1).randbytes(9 * MIB)
    steps: list[Callable[[], object]] = [
        lambda: put(fs, "/s", small),
        lambda: put(fs, "/d/l", large),
        lambda: fs.put_new_absent([remote(f"/many/{number}", b"x" * (number + 1)) for number in range(100)]),
        lambda: fs.fill(fact(fs, "/s"), [small]),
        lambda: fs.fill(fact(fs, "/d/l"), [large]),
        lambda: fs.evict(fact(fs, "/s"), sha(small)),
        lambda: fs.rename(ROOT_INO, b"s", ROOT_INO, b"t"),
        lambda: fs.evict(fact(fs, "/d/l"), sha(large)),
        lambda: put(fs, "/t", b"newer", fact(fs, "/t")),
    ]
    for number, step in enumerate(steps):
        step()
        if number % 3 == 2:
            fs.flush()
        before, totals = facts(fs), fs.absent_totals()
        copy = crashed_copy(fs, tmp_path / f"crash-{number}")
        with SqliteFs.open(copy) as after:
            assert facts(after) == before
            assert after.absent_totals() == totals
            for path, entry in before.items():
                if entry.kind == "file" and entry.absent_hash is None:
                    assert sha(after.read(entry, 0, entry.size)) in {sha(small), sha(large)}, path
        assert check(copy) == []


def facts(fs: SqliteFs) -> dict[str, LocalFact]:
    found: dict[str, LocalFact] = {}
    pending = list(fs.children("/"))
    while pending:
        entry = pending.pop()
        found[entry.path] = entry
        if entry.kind == "dir":
            pending.extend(fs.children(entry.path))
    return found


@pytest.mark.promise("lazy.crash")
def test_a_kill_while_large_contents_arrive_leaves_the_file_absent(opened: Factory, tmp_path: Path) -> None:
    fs = opened()
    data = random.Random(2).randbytes(12 * MIB)
    before = put(fs, "/a", data)
    copies: list[Path] = []

    def pieces() -> object:
        for start in range(0, len(data), 3 * MIB):
            yield data[start : start + 3 * MIB]
            copies.append(crashed_copy(fs, tmp_path / f"crash-{len(copies)}"))

    fs.fill(before, pieces())
    for copy in copies:
        with SqliteFs.open(copy) as after:
            assert after.fact("/a") == before
            with pytest.raises(ContentsAbsentError):
                after.read(before.ino, 0, 1)
            after.fill(before, [data])
            assert after.read(before, 0, len(data)) == data
        assert check(copy) == []


def test_an_absent_file_is_absent_after_a_restart(opened: Factory) -> None:
    fs = opened()
    before = put(fs, "/a", b"text")
    view = snapshot_names(fs)
    fs.close()
    again = opened()
    assert again.fact("/a") == before
    assert snapshot_names(again) == view
    assert again.get(before.ino).place == ABSENT
    assert again.absent_totals() == AbsentTotals(files=1, size_bytes=4)


def snapshot_names(fs: SqliteFs) -> list[bytes]:
    return [entry.name for entry in fs.readdir(ROOT_INO)]


def test_an_absent_file_without_its_hash_is_found_and_made_harmless(opened: Factory, folder: Path) -> None:
    fs = opened()
    put(fs, "/a", b"text")
    fs.close()
    connection = apsw.Connection(str(folder / "cache.db"))
    connection.execute("update inode set target = null where place = -1")
    connection.close()
    assert [finding.kind for finding in check(folder)] == ["absent-hash"]
    assert all(finding.repaired for finding in repair(folder))
    again = opened()
    with pytest.raises(ContentsAbsentError):
        again.read(fact(again, "/a").ino, 0, 1)


@pytest.mark.promise("lazy.evict-clean")
def test_what_the_kernel_reads_by_itself_is_not_evicted(opened: Factory) -> None:
    fs = opened()
    data = random.Random(3).randbytes(3 * MIB)
    before = fs.put_file("/a", [data], mode=0o644, mtime_ns=1, expected=None)
    fd = fs.lend(before.ino, writable=False, is_new=False)
    assert fd is not None
    os.close(fd)
    refuses(errno.EBUSY, lambda: fs.evict(before, sha(data)))
    fs.take_back(before.ino)
    fs.evict(before, sha(data))
    assert fact(fs, "/a").absent_hash == sha(data)


def test_a_full_disk_leaves_an_absent_file_absent(opened: Factory, monkeypatch: pytest.MonkeyPatch) -> None:
    fs = opened()
    before = put(fs, "/a", b"text")

    def full(_parts: object) -> int:
        raise FsError(errno.ENOSPC)

    with monkeypatch.context() as patch:
        patch.setattr(fs._journal, "append", full)
        refuses(errno.ENOSPC, lambda: fs.fill(before, [b"text"]))
    assert fs.fact("/a") == before
    fs.fill(before, [b"text"])
    assert snapshot.of_vfs(fs)
