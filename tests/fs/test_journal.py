"""The journal's own rules: what is written is read back, segments rotate and are released, records round-trip."""

from __future__ import annotations

import errno
import threading
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memdir.core.errors import CorruptError, VersionError
from memdir.fs.cache import journal, record
from memdir.fs.cache.filesystem import SqliteFs
from memdir.fs.cache.journal import Journal, replay, segment_paths
from memdir.fs.errors import FsError
from memdir.fs.posix.txn import CUT, PATCH, ZERO, Entry, Link, Note, Txn
from memdir.fs.types import ROOT_INO, Inode, IntentKind

from . import snapshot
from .conftest import Factory, crashed_copy
from .contract import CHUNK, FILE, ME, make, text

FS_ID = b"i" * 16


def read(folder: Path, applied_lsn: int = 0) -> tuple[list[tuple[int, bytes]], journal.Torn | None]:
    found: list[tuple[int, bytes]] = []
    torn = replay(folder, fs_id=FS_ID, applied_lsn=applied_lsn, apply=lambda lsn, body: found.append((lsn, body)))
    return found, torn


def test_records_come_back_in_order_over_segments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal, "SEGMENT_MAX_BYTES", 1000)
    log = Journal(tmp_path, fs_id=FS_ID, next_lsn=1)
    bodies = [b"%d" % number * (number * 7 % 300) for number in range(100)]
    for body in bodies:
        log.append([body[:5], memoryview(body)[5:]])
    assert len(segment_paths(tmp_path)) == log.segment_count > 5
    assert read(tmp_path) == ([(number + 1, body) for number, body in enumerate(bodies)], None)
    assert read(tmp_path, 60)[0][0][0] == 61
    log.close(durable_lsn=-1)
    assert read(tmp_path, 100) == ([], None)


def test_only_segments_that_are_durable_elsewhere_are_released(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal, "SEGMENT_MAX_BYTES", 500)
    log = Journal(tmp_path, fs_id=FS_ID, next_lsn=1)
    for number in range(50):
        log.append([b"%03d" % number * 20])
        log.release(log.last_lsn - 10)
        assert read(tmp_path, max(log.last_lsn - 10, 0))[0][-1][0] == log.last_lsn
    log.release(log.last_lsn)
    assert log.segment_count == 1
    log.close(durable_lsn=log.last_lsn)
    assert segment_paths(tmp_path) == []


def test_a_record_that_is_too_large_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal, "RECORD_MAX_BYTES", 100)
    log = Journal(tmp_path, fs_id=FS_ID, next_lsn=1)
    with pytest.raises(FsError) as caught:
        log.append([b"x" * 101])
    assert caught.value.errno == errno.EFBIG
    log.close(durable_lsn=0)


def test_the_search_behind_damage_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Contents may look like records; then nothing is thrown away without being asked."""
    monkeypatch.setattr(journal, "_SEARCH_MAX_BYTES", 10_000)
    log = Journal(tmp_path, fs_id=FS_ID, next_lsn=1)
    log.append([b"first"])
    log.append([(2000).to_bytes(4, "little") + bytes(4) + (3).to_bytes(8, "little")] * 1000)
    (path,) = segment_paths(tmp_path)
    data = bytearray(path.read_bytes())
    data[90] ^= 1
    path.write_bytes(data)
    _, torn = read(tmp_path)
    assert torn is not None
    assert torn.damaged
    log.close(durable_lsn=-1)


U32, U63 = st.integers(0, 2**32 - 1), st.integers(0, 2**63 - 1)
TIMES = st.integers(-(2**63), 2**63 - 1)
NAMES = st.binary(min_size=1, max_size=255)
INODES = st.builds(
    Inode, ino=U63, mode=U32, uid=U32, gid=U32, nlink=U32, size=U63, atime_ns=TIMES, mtime_ns=TIMES, ctime_ns=TIMES, rdev=U63,
    parent=U63, version=U63, target=st.one_of(st.none(), st.binary(min_size=1, max_size=4095)),
)  # fmt: skip
PLACED = st.builds(Inode, ino=U63, mode=U32, uid=U32, gid=U32, nlink=U32, size=U63, atime_ns=TIMES, mtime_ns=TIMES,
                   ctime_ns=TIMES, parent=U63, version=U63, place=st.integers(-1, 2**63 - 1))  # fmt: skip
PATHS = st.binary(max_size=40).map(lambda raw: b"/" + raw)
CONTENTS = st.one_of(
    st.tuples(st.just(PATCH), U63, U63, st.binary(max_size=100)),
    st.tuples(st.just(CUT), U63, U63, st.just(0)),
    st.tuples(st.just(ZERO), U63, U63, U63),
)


@settings(max_examples=300)
@given(
    inodes=st.lists(st.one_of(INODES, PLACED), max_size=3, unique_by=lambda inode: inode.ino),
    dentries=st.dictionaries(
        st.tuples(U63, NAMES), st.one_of(st.none(), st.tuples(st.integers(1, 2**63 - 1), U63)), max_size=3
    ),
    contents=st.lists(CONTENTS, max_size=3),
    xattrs=st.lists(st.tuples(U63, NAMES, st.one_of(st.none(), st.binary(max_size=99))), max_size=3),
    numbers=st.lists(U63, max_size=3),
    intents=st.lists(st.tuples(U63, st.sampled_from(IntentKind), PATHS, st.one_of(st.none(), PATHS)), max_size=3),
    acknowledged=U63,
)
def test_transactions_round_trip(
    inodes: list[Inode], dentries: dict[Link, Entry | None], contents: list[tuple[int, int, int, bytes]],
    xattrs: list[tuple[int, bytes, bytes | None]], numbers: list[int], intents: list[Note], acknowledged: int,
) -> None:  # fmt: skip
    txn = Txn(5, next_ino=7, next_cookie=9)
    txn.inodes = {inode.ino: inode for inode in inodes}
    txn.dentries, txn.contents, txn.xattrs, txn.intents = dentries, list(contents), xattrs, intents
    txn.gone, txn.dropped, txn.acknowledged = numbers, numbers[:1], acknowledged
    body = b"".join(record.encode(txn))
    back = record.decode(body)
    assert [values(inode) for inode in back.inodes.values()] == [values(inode) for inode in inodes]
    for field in ("next_ino", "next_cookie", "dentries", "contents", "xattrs", "gone", "dropped", "intents", "acknowledged"):
        assert getattr(back, field) == getattr(txn, field)


def values(inode: Inode) -> dict[str, object]:
    return {slot: getattr(inode, slot) for slot in Inode.__slots__}


@settings(max_examples=300)
@given(body=st.binary(max_size=200))
def test_garbage_with_a_good_checksum_is_corruption_and_nothing_else(body: bytes) -> None:
    try:
        record.decode(body)
    except (CorruptError, VersionError):  # a tag beyond ours is taken for a newer memdir's
        return
    assert len(body) >= 16


def test_many_threads_at_once(opened: Factory, tmp_path: Path) -> None:
    """Local work in four threads, remote changes in a fifth, flushes in a sixth: everything arrives, on disk as well."""
    fs = opened()
    failures: list[BaseException] = []

    def guarded(work: object, *arguments: object) -> None:
        try:
            work(*arguments)  # type: ignore[operator]
        except BaseException as error:  # noqa: BLE001 - handed to the test
            failures.append(error)

    def local(number: int) -> None:
        folder = fs.mkdir(ROOT_INO, b"t%d" % number, 0o755, ME).ino
        for turn in range(60):
            inode = make(fs, b"a", b"%d" % turn * CHUNK if turn % 10 == 0 else b"%d" % turn, folder)
            fs.write(inode.ino, 1, b"x")
            fs.rename(folder, b"a", folder, b"f%d" % (turn % 7))
            assert len(fs.readdir(folder)) <= 8

    def remote() -> None:
        for turn in range(60):
            path = f"/remote/{turn % 5}"
            fs.put_file(path, [b"%d" % turn], mode=0o644, mtime_ns=turn, expected=fs.fact(path))
            fs.intents(0, 10)

    def flushes() -> None:
        for _ in range(10):
            fs.flush()
            fs.fsync(ROOT_INO)

    threads = [threading.Thread(target=guarded, args=(local, number)) for number in range(4)]
    threads += [threading.Thread(target=guarded, args=(remote,)), threading.Thread(target=guarded, args=(flushes,))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
        assert not thread.is_alive()
    assert failures == []
    for number in range(4):
        folder = fs.lookup(ROOT_INO, b"t%d" % number).ino
        assert {entry.name for entry in fs.readdir(folder)} == {b"f%d" % turn for turn in range(7)}
        assert text(fs, fs.lookup(folder, b"f3").ino) == b"5x"
    before = snapshot.of_vfs(fs)
    with SqliteFs.open(crashed_copy(fs, tmp_path / "crashed")) as after:
        assert snapshot.of_vfs(after) == before


def test_a_file_of_many_chunks_survives_flush_eviction_and_reopen(opened: Factory) -> None:
    fs = opened()
    ino = fs.create(ROOT_INO, b"big", FILE, ME).ino
    piece = bytes(range(256)) * 4096
    for number in range(40):
        fs.write(ino, number << 20, piece)
    fs.write(ino, (7 << 20) + 11, b"patch")
    fs.flush()
    fs.write(ino, (9 << 20) + 11, b"patch")
    expected = bytearray(piece * 40)
    for number in (7, 9):
        expected[(number << 20) + 11 : (number << 20) + 16] = b"patch"
    assert text(fs, ino) == bytes(expected)
    fs.close()
    assert text(opened(), ino) == bytes(expected)
