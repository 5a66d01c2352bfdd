"""The server at its edges: who may call, handles over restarts, writes and commits, listings in pieces, what is no call."""

from __future__ import annotations

import errno
import os
import random
import shutil
import socket
import struct
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from memdir.core.clock import FakeClock
from memdir.fs.cache.filesystem import SqliteFs
from memdir.fs.errors import ContentsAbsentError, FsError
from memdir.fs.memory import MemoryFs
from memdir.fs.nfs.handles import KEY_FILE, Handles
from memdir.fs.nfs.procedures import Nfs3
from memdir.fs.nfs.server import NfsServer, allowed_users, peer_uid
from memdir.fs.nfs.session import NfsOptions, NfsSession, mount_words
from memdir.fs.nfs.xdr import FALSE, TRUE, Reader, XdrError, opaque, u32, u64
from memdir.fs.source import Brought
from memdir.fs.types import ROOT_INO, AttrChange, Owner
from tests.nfs.client import MOUNT, NFS, Connection, NfsFs, RpcError, StatusError, accepted, attributes, maybe, sattr, wcc

ME = Owner(1000, 1000)


class Served:
    """A filesystem in memory behind a server."""

    def __init__(self, folder: Path, behind: Any = None, **more: Any) -> None:
        self.behind = behind or MemoryFs(clock=FakeClock(), uid=1000, gid=1000)
        self.handles = Handles(folder)
        self.nfs = Nfs3(self.behind, self.handles, read_only=more.pop("read_only", False))
        self.server = NfsServer(self.nfs, self.handles, owner_uid=more.pop("owner_uid", 1000), **more)
        self.port = self.server.start()
        self._open: list[Connection] = []

    def connect(self, uid: int = 1000, gid: int = 1000) -> Connection:
        connection = Connection(self.port, uid=uid, gid=gid)
        self._open.append(connection)
        return connection

    def fs(self, uid: int = 1000, gid: int = 1000) -> NfsFs:
        connection = self.connect(uid, gid)
        return NfsFs(connection, connection.mount(self.handles.export), self.behind)

    def close(self) -> None:
        for connection in self._open:
            connection.close()
        self.server.stop()


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    made = Served(tmp_path)
    yield made
    made.close()
    assert made.server.failures == 0


# --- who gets in


@pytest.mark.promise("nfs.alone")
def test_nobody_gets_a_handle_without_the_exports_path(served: Served) -> None:
    connection = served.connect()
    assert len(served.handles.export) == 1 + 32
    for path in ("/", "", "/notes", served.handles.export[:-1], served.handles.export + "0", "/" + "0" * 32):
        with pytest.raises(StatusError) as caught:
            connection.mount(path)
        assert caught.value.status == 13
    for procedure in (2, 5):  # DUMP and EXPORT tell no path
        assert connection.call(MOUNT, procedure).flag() is False
    with pytest.raises(StatusError) as caught:
        connection.nfs(1, opaque(bytes(16) + (1).to_bytes(8, "big")))
    assert caught.value.status == 10001


@pytest.mark.promise("nfs.alone")
def test_another_user_is_refused_though_they_know_the_path(served: Served) -> None:
    other = served.connect(uid=1001)
    with pytest.raises(RpcError) as caught:
        other.mount(served.handles.export)
    assert caught.value.status == -1
    assert served.connect(uid=0).mount(served.handles.export)


def test_the_other_end_of_a_connection_is_told_by_the_kernel(served: Served) -> None:
    connection = served.connect()
    peer = connection.socket.getsockname()[1]
    assert peer_uid(peer, served.port) == os.geteuid()
    assert os.geteuid() in allowed_users(peer, served.port, os.geteuid())
    assert allowed_users(peer, served.port, 4242) == ({0, 4242} if os.geteuid() == 0 else set())
    assert peer_uid(1, served.port) is None


def test_a_stranger_is_not_answered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memdir.fs.nfs.server.peer_uid", lambda _peer, _port: 4242)
    served = Served(tmp_path)
    connection = served.connect()
    with pytest.raises((ConnectionError, OSError)):
        connection.call(NFS, 0)
    served.close()


def test_the_owners_own_program_is_not_believed_to_be_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memdir.fs.nfs.server.peer_uid", lambda _peer, _port: 1000)
    served = Served(tmp_path)
    assert served.connect(uid=1000).mount(served.handles.export)
    with pytest.raises(RpcError):
        served.connect(uid=0).mount(served.handles.export)
    served.close()


def test_permissions_are_those_of_the_files(served: Served) -> None:
    root, me = served.fs(uid=0), served.fs()
    secret = root.create(ROOT_INO, b"secret", 0o100600, Owner(0, 0))
    root.write(secret.ino, 0, b"x")
    for refused in (
        lambda: me.read(secret.ino, 0, 1),
        lambda: me.write(secret.ino, 0, b"y"),
        lambda: me.setattr(secret.ino, AttrChange(mode=0o777)),
    ):
        with pytest.raises(FsError) as caught:
            refused()
        assert caught.value.errno in (errno.EACCES, errno.EPERM)
    closed = root.mkdir(ROOT_INO, b"closed", 0o700, Owner(0, 0))
    for refused in (
        lambda: me.lookup(closed.ino, b"x"),
        lambda: me.readdir(closed.ino),
        lambda: me.create(closed.ino, b"x", 0o100644, ME),
    ):
        with pytest.raises(FsError) as caught:
            refused()
        assert caught.value.errno == errno.EACCES
    own = me.create(ROOT_INO, b"own", 0o100000, ME)
    assert me.write(own.ino, 0, b"mine") == 4  # its owner opened it before the mode was taken away
    with pytest.raises(FsError):
        me.setattr(own.ino, AttrChange(uid=0))
    reply = me.nfs(4, me.handle(secret.ino) + u32(0x3F))
    maybe(reply)
    assert reply.u32() == 0


def test_a_read_only_memory_changes_nothing(tmp_path: Path) -> None:
    served = Served(tmp_path, read_only=True)
    fs = served.fs()
    for refused in (
        lambda: fs.create(ROOT_INO, b"a", 0o100644, ME), lambda: fs.mkdir(ROOT_INO, b"a", 0o755, ME),
        lambda: fs.symlink(ROOT_INO, b"a", b"b", ME), lambda: fs.unlink(ROOT_INO, b"a"),
        lambda: fs.setattr(ROOT_INO, AttrChange(mode=0o700)),
    ):  # fmt: skip
        with pytest.raises(FsError) as caught:
            refused()
        assert caught.value.errno == errno.EROFS
    served.close()


# --- handles, writes, listings


@pytest.mark.promise("nfs.handles")
def test_handles_hold_over_a_restart_and_a_rename(tmp_path: Path) -> None:
    clock = FakeClock()
    behind = SqliteFs.open(tmp_path / "cache", clock=clock, uid=1000, gid=1000)
    served = Served(tmp_path, behind)
    fs = served.fs()
    folder = fs.mkdir(ROOT_INO, b"d", 0o755, ME)
    file = fs.create(folder.ino, b"a", 0o100644, ME)
    fs.write(file.ino, 0, b"kept")
    handle, verifier = fs.handle(file.ino), served.nfs.verifier
    served.close()
    behind.close()
    behind = SqliteFs.open(tmp_path / "cache", clock=clock, uid=1000, gid=1000)
    again = Served(tmp_path, behind)
    assert again.handles.export == served.handles.export
    assert again.nfs.verifier != verifier
    connection = again.connect()
    fs = again.fs()
    fs.rename(folder.ino, b"a", ROOT_INO, b"b")
    reply = connection.nfs(6, handle + u64(0) + u32(100))
    maybe(reply)
    assert (reply.u32(), reply.flag(), bytes(reply.opaque(100))) == (4, True, b"kept")
    fs.unlink(ROOT_INO, b"b")
    with pytest.raises(StatusError) as caught:
        connection.nfs(1, handle)
    assert caught.value.status == 70
    again.close()
    behind.close()


def test_the_key_is_only_its_owners(tmp_path: Path) -> None:
    Handles(tmp_path)
    assert (tmp_path / KEY_FILE).stat().st_mode & 0o777 == 0o600


@pytest.mark.promise("nfs.commit")
def test_what_is_committed_was_synced_and_the_verifier_tells_of_a_restart(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[int] = []
    monkeypatch.setattr(served.behind, "fsync", synced.append)
    fs = served.fs()
    file = fs.create(ROOT_INO, b"a", 0o100644, ME)
    replies = []
    for stable in (0, 1, 2):
        reply = fs.nfs(7, fs.handle(file.ino) + u64(0) + u32(3) + u32(stable) + opaque(b"abc"))
        said = wcc(reply)
        assert said.before is not None
        assert said.after is not None
        assert said.after.size == 3
        replies.append((reply.u32(), reply.u32(), bytes(reply.fixed(8))))
    assert replies == [(3, 0, served.nfs.verifier), (3, 2, served.nfs.verifier), (3, 2, served.nfs.verifier)]
    assert synced == [file.ino, file.ino]
    reply = fs.nfs(21, fs.handle(file.ino) + u64(0) + u32(0))
    wcc(reply)
    assert bytes(reply.fixed(8)) == served.nfs.verifier
    assert synced == [file.ino] * 3


def test_weak_cache_consistency_tells_before_and_after(served: Served) -> None:
    fs = served.fs()
    served.behind._clock.advance(5) if hasattr(served.behind, "_clock") else None
    before = fs.attributes(ROOT_INO)
    reply = fs.nfs(9, fs.handle(ROOT_INO) + opaque(b"d") + sattr(AttrChange(mode=0o755)))
    assert reply.flag()
    reply.opaque(64)
    maybe(reply)
    said = wcc(reply)
    assert said.before == (before.size, before.mtime_ns, before.ctime_ns)
    assert said.after == fs.attributes(ROOT_INO)


def test_an_exclusive_create_that_is_repeated_is_the_same_create(served: Served) -> None:
    fs = served.fs()
    first = fs.nfs(8, fs.handle(ROOT_INO) + opaque(b"a") + u32(2) + b"verifier")
    again = fs.nfs(8, fs.handle(ROOT_INO) + opaque(b"a") + u32(2) + b"verifier")
    assert first.flag()
    assert again.flag()
    assert bytes(first.opaque(64)) == bytes(again.opaque(64))
    with pytest.raises(StatusError) as caught:
        fs.nfs(8, fs.handle(ROOT_INO) + opaque(b"a") + u32(2) + b"another!")
    assert caught.value.status == 17
    with pytest.raises(StatusError) as caught:
        fs.nfs(8, fs.handle(ROOT_INO) + opaque(b"a") + u32(1) + sattr(AttrChange()))
    assert caught.value.status == 17
    fs.nfs(8, fs.handle(ROOT_INO) + opaque(b"a") + u32(0) + sattr(AttrChange(size=0)))


def test_a_guarded_change_needs_the_time_that_was_seen(served: Served) -> None:
    fs = served.fs()
    file = fs.create(ROOT_INO, b"a", 0o100644, ME)
    seen = struct.pack(">II", *divmod(fs.attributes(file.ino).ctime_ns, 10**9))
    with pytest.raises(StatusError) as caught:
        fs.nfs(2, fs.handle(file.ino) + sattr(AttrChange(mode=0o600)) + TRUE + struct.pack(">II", 1, 1))
    assert caught.value.status == 10002
    fs.nfs(2, fs.handle(file.ino) + sattr(AttrChange(mode=0o600)) + TRUE + seen)
    assert fs.attributes(file.ino).mode & 0o777 == 0o600


@pytest.mark.parametrize("plus", [True, False])
@pytest.mark.parametrize("room", [512, 700, 4096, 1 << 20])
def test_a_listing_in_pieces_has_every_name_once_while_others_change(served: Served, plus: bool, room: int) -> None:
    fs = served.fs()
    names = {f"name-{number:04}-{'x' * (number % 60)}".encode() for number in range(300)}
    for name in sorted(names):
        fs.create(ROOT_INO, name, 0o100644, ME)
    found = fs.readdir(ROOT_INO, plus=plus, room=room)
    assert {entry.name for entry in found} == names
    assert len(found) == len(names)
    half = found[150].cookie
    fs.unlink(ROOT_INO, found[10].name)
    fs.unlink(ROOT_INO, found[200].name)
    rest = {entry.name for entry in fs.readdir(ROOT_INO, half, plus=plus, room=room)}
    assert rest == {entry.name for entry in found[151:]} - {found[200].name}
    with pytest.raises(StatusError) as caught:
        fs.nfs(17, fs.handle(ROOT_INO) + u64(0) + b"\0" * 8 + u32(10) + u32(10))
    assert caught.value.status == 10005


def test_fsinfo_pathconf_and_fsstat_answer(served: Served) -> None:
    fs = served.fs()
    reply = fs.nfs(19, fs.handle(ROOT_INO))
    maybe(reply)
    assert reply.u32() == 1 << 20
    reply = fs.nfs(20, fs.handle(ROOT_INO))
    maybe(reply)
    assert (reply.u32(), reply.u32(), reply.flag(), reply.flag(), reply.flag(), reply.flag()) == (
        65_000,
        255,
        True,
        True,
        False,
        True,
    )
    assert fs.statfs().blocks > 0


class Source:
    """Brings contents after somebody let it."""

    def __init__(self, fs: Any, error: FsError | None = None) -> None:
        self.go = threading.Event()
        self.asked: list[int] = []
        self._fs, self._error = fs, error

    def bring(self, ino: int, brought: Brought) -> None:
        self.asked.append(ino)

        def later() -> None:
            self.go.wait(20)
            self._fs.absent.discard(ino)
            brought(self._error)

        threading.Thread(target=later, daemon=True).start()

    def arrived_bytes(self, _ino: int) -> int:
        return 0


class Absent(MemoryFs):
    absent: set[int] = set()  # noqa: RUF012

    def read(self, ino: int, offset: int, size: int) -> Any:
        if ino in self.absent:
            raise ContentsAbsentError(ino)
        return super().read(ino, offset, size)


def test_a_read_of_absent_contents_waits_and_nobody_else_does(tmp_path: Path) -> None:
    behind = Absent(clock=FakeClock(), uid=1000, gid=1000)
    source = Source(behind)
    served = Served(tmp_path, behind, source=source)
    fs = served.fs()
    file = fs.create(ROOT_INO, b"a", 0o100644, ME)
    fs.write(file.ino, 0, b"brought")
    behind.absent = {file.ino}
    connection = served.connect()
    connection.send(connection.message(NFS, 6, fs.handle(file.ino) + u64(0) + u32(100)))
    connection.send(connection.message(NFS, 1, fs.handle(ROOT_INO)))
    first = accepted(connection.receive())  # the one behind it is answered before
    assert first.u32() == 0
    assert attributes(first).ino == ROOT_INO
    source.go.set()
    late = accepted(connection.receive())
    assert late.u32() == 0
    maybe(late)
    assert (late.u32(), late.flag(), bytes(late.opaque(100))) == (7, True, b"brought")
    behind.absent = {file.ino}
    failing = Source(behind, FsError(errno.EIO))
    failing.go.set()
    served.server._source = failing
    with pytest.raises(StatusError) as caught:
        connection.nfs(6, fs.handle(file.ino) + u64(0) + u32(100))
    assert caught.value.status == 10008
    served.close()


# --- what is no call


def test_other_versions_programs_and_procedures_are_told(served: Served) -> None:
    connection = served.connect()
    for program, version, procedure, status in (
        (NFS, 4, 0, 2),
        (MOUNT, 1, 0, 2),
        (100000, 2, 0, 1),
        (NFS, 3, 22, 3),
        (NFS, 3, 99, 3),
        (MOUNT, 3, 6, 3),
    ):
        with pytest.raises(RpcError) as caught:
            connection.call(program, procedure, version=version)
        assert caught.value.status == status
    with pytest.raises(RpcError) as caught:
        connection.call(NFS, 0, rpc_version=3)
    assert caught.value.status == -1
    connection.call(NFS, 0)


def test_calls_in_fragments_and_many_in_one_piece_are_answered(served: Served) -> None:
    fs, connection = served.fs(), served.connect()
    message = connection.message(NFS, 1, fs.handle(ROOT_INO))
    connection.send(message, fragments=7)
    assert accepted(connection.receive()).u32() == 0
    one = u32(0x80000000 | len(message)) + message
    connection.socket.sendall(one * 50)
    for _ in range(50):
        assert accepted(connection.receive()).u32() == 0


@pytest.mark.promise("nfs.malformed")
def test_cut_off_arguments_are_garbage_and_the_next_call_is_answered(served: Served) -> None:
    fs, connection = served.fs(), served.connect()
    file = fs.create(ROOT_INO, b"a", 0o100644, ME)
    root, handle = fs.handle(ROOT_INO), fs.handle(file.ino)
    whole = {
        1: handle, 2: handle + sattr(AttrChange(mode=0o600)) + FALSE, 3: root + opaque(b"a"), 4: handle + u32(1), 5: handle,
        6: handle + u64(0) + u32(1), 7: handle + u64(0) + u32(1) + u32(0) + opaque(b"x"),
        8: root + opaque(b"n") + u32(1) + sattr(AttrChange()),
        9: root + opaque(b"n") + sattr(AttrChange()), 10: root + opaque(b"n") + sattr(AttrChange()) + opaque(b"t"),
        11: root + opaque(b"n") + u32(7) + sattr(AttrChange()), 12: root + opaque(b"n"), 13: root + opaque(b"n"),
        14: root + opaque(b"a") + root + opaque(b"b"), 15: handle + root + opaque(b"l"),
        16: root + u64(0) + bytes(8) + u32(999),
        17: root + u64(0) + bytes(8) + u32(999) + u32(999), 18: root, 19: root, 20: root, 21: handle + u64(0) + u32(0),
    }  # fmt: skip
    before = sorted(entry.name for entry in fs.readdir(ROOT_INO))
    for procedure, body in whole.items():
        for length in range(0, len(body), 4):
            with pytest.raises(RpcError) as caught:
                connection.call(NFS, procedure, body[:length])
            assert caught.value.status == 4, (procedure, length)
    assert sorted(entry.name for entry in fs.readdir(ROOT_INO)) == before


@pytest.mark.promise("nfs.malformed")
@pytest.mark.parametrize("count", [1_000, pytest.param(10_000, marks=pytest.mark.long)])
def test_random_messages_end_a_connection_at_most(served: Served, count: int) -> None:
    chance = random.Random(27)
    fs = served.fs()
    file = fs.create(ROOT_INO, b"a", 0o100644, ME)
    seeds = [served.connect().message(NFS, number, fs.handle(file.ino) + chance.randbytes(60)) for number in range(22)]
    connection = served.connect()
    for number in range(count):
        message = bytearray(chance.choice(seeds))
        if number % 3:
            for _ in range(chance.randrange(1, 6)):
                message[chance.randrange(len(message))] = chance.randrange(256)
        else:
            message = bytearray(chance.randbytes(chance.randrange(0, 200)))
        message[0:0] = u32(0x80000000 | len(message))
        try:
            connection.socket.sendall(bytes(message))
            connection.socket.settimeout(0.5)
            if not connection.socket.recv(1 << 16):
                raise ConnectionError
        except (OSError, ConnectionError):
            connection.close()
            connection = served.connect()
    assert served.fs().get(ROOT_INO).is_dir
    assert served.server.failures == 0


def test_a_message_that_is_too_long_ends_the_connection(served: Served) -> None:
    connection = served.connect()
    connection.socket.sendall(u32(0x80000000 | (64 << 20)) + b"x" * 1000)
    assert connection.socket.recv(100) == b""
    half = served.connect()
    half.socket.sendall(u32(0x80000000 | 100) + b"only half")
    half.socket.shutdown(socket.SHUT_WR)
    assert half.socket.recv(100) == b""


@pytest.mark.parametrize("data", [b"", b"\0\0\0", b"\0\0\0\5abc", b"\xff\xff\xff\xff", b"\0\0\0\1a"])
def test_xdr_reads_nothing_that_is_not_there(data: bytes) -> None:
    with pytest.raises(XdrError):
        Reader(memoryview(data)).opaque(1 << 20)


# --- clients that others wrote, and the kernel's


@pytest.mark.skipif(shutil.which("nfs-ls") is None, reason="no libnfs (apt-get install libnfs-utils)")
def test_libnfs_lists_copies_and_reads(tmp_path: Path) -> None:
    (tmp_path / "key").mkdir()
    served = Served(tmp_path / "key", MemoryFs(clock=FakeClock(), uid=os.geteuid(), gid=os.getegid()), owner_uid=os.geteuid())
    try:
        place = f"nfs://127.0.0.1{served.handles.export}"
        ports = f"?nfsport={served.port}&mountport={served.port}"
        data = random.Random(3).randbytes(3_000_000)
        (tmp_path / "big.bin").write_bytes(data)
        copy = ["nfs-cp", str(tmp_path / "big.bin"), f"{place}/big.bin{ports}"]
        copied = subprocess.run(copy, capture_output=True, text=True, timeout=60, check=False)
        assert copied.returncode == 0, copied.stdout + copied.stderr
        listed = subprocess.run(["nfs-ls", f"{place}{ports}"], capture_output=True, text=True, timeout=60, check=True)
        assert "big.bin" in listed.stdout
        assert "3000000" in listed.stdout
        read = subprocess.run(["nfs-cat", f"{place}/big.bin{ports}"], capture_output=True, timeout=60, check=True)
        assert read.stdout == data
    finally:
        served.close()


def test_the_command_mounts_without_a_portmapper_and_without_locks(tmp_path: Path) -> None:
    words = mount_words(tmp_path, "/secret", 1234, read_only=True)
    options = words[words.index("-o") + 1].split(",")
    assert {"vers=3", "port=1234", "mountport=1234", "nolock", "ro", "soft"} <= set(options)
    assert words[-2:] == ["127.0.0.1:/secret", str(tmp_path)]


def test_a_session_serves_at_the_same_port_again_and_ends(tmp_path: Path) -> None:
    (tmp_path / "mnt").mkdir()
    ports = []
    for _ in range(2):
        behind = MemoryFs(clock=FakeClock(), uid=os.geteuid(), gid=os.getegid())
        session = NfsSession(behind, tmp_path / "mnt", NfsOptions(key_folder=tmp_path, port=ports[0] if ports else 0))
        session.mount()
        ports.append(session.port)
        thread = threading.Thread(target=session.run)
        thread.start()
        connection = Connection(session.port, uid=os.geteuid())
        assert connection.mount(session.command.split("127.0.0.1:")[1].split()[0])
        connection.close()
        session.unmount()
        thread.join(20)
        assert not thread.is_alive()
        assert session.stats().requests == {}
    assert ports[0] == ports[1]
