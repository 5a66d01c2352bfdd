"""The queue between a filesystem and the kernel, with a pipe in the kernel's place."""

from __future__ import annotations

import logging
import os
import select
import stat
import struct
import threading
from collections.abc import Iterator

import pytest

from memdir.fs.fuse import abi
from memdir.fs.fuse.notify import Notifier
from memdir.fs.memory import MemoryFs
from memdir.fs.types import ROOT_INO, Owner

WAIT_S = 30.0
ME = Owner(0, 0)


class Wire:
    """Messages come out as (code, inode, name or None). A datagram socket keeps them apart, as the device does."""

    def __init__(self) -> None:
        import socket

        self._ours, self.theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)

    def read(self) -> list[tuple[int, int, bytes | None]]:
        messages = []
        while select.select([self._ours], [], [], 0)[0]:
            raw = self._ours.recv(4096)
            if not raw:
                break
            length, code, unique = abi.OUT_HEADER.unpack_from(raw)
            assert (length, unique) == (len(raw), 0)
            body = raw[abi.OUT_HEADER_BYTES :]
            if code == abi.Notify.INVAL_INODE:
                assert struct.unpack("=Qqq", body)[1:] == (0, 0)
                messages.append((code, struct.unpack_from("=Q", body)[0], None))
            elif code == abi.Notify.INVAL_ENTRY:
                parent, size, flags = abi.NOTIFY_INVAL_ENTRY_OUT.unpack_from(body)
                assert flags == 0
                assert body[16:] == body[16 : 16 + size] + b"\0"
                messages.append((code, parent, body[16:-1]))
            else:
                assert body == b""
                messages.append((code, 0, None))
        return messages

    def close(self) -> None:
        self._ours.close()
        self.theirs.close()


@pytest.fixture
def wire() -> Iterator[Wire]:
    wire = Wire()
    yield wire
    wire.close()


def test_what_was_queued_before_the_start_is_sent_and_repeats_only_once(wire: Wire) -> None:
    notifier = Notifier(MemoryFs(), queue_max=100)
    for _ in range(3):
        notifier.inode_changed(7)
        notifier.entry_changed(1, b"name")
    notifier.start(wire.theirs.fileno(), minor=45)
    assert notifier.wait_idle(WAIT_S)
    assert wire.read() == [(abi.Notify.INVAL_INODE, 7, None), (abi.Notify.INVAL_ENTRY, 1, b"name")]
    assert notifier.sent == 2
    assert notifier.stop(timeout_s=WAIT_S)


def _tree() -> MemoryFs:
    fs = MemoryFs()
    folder = fs.mkdir(ROOT_INO, b"d", 0o755, ME)
    fs.create(folder.ino, b"f", stat.S_IFREG, ME)
    fs.create(ROOT_INO, b"g", stat.S_IFREG, ME)
    return fs


def test_an_overflow_becomes_an_epoch_and_a_walk(wire: Wire) -> None:
    fs = _tree()
    notifier = Notifier(fs, queue_max=3)
    for number in range(10):
        notifier.entry_changed(99, str(number).encode())
    notifier.start(wire.theirs.fileno(), minor=abi.MINOR_NOTIFY_EPOCH)
    assert notifier.wait_idle(WAIT_S)
    messages = wire.read()
    assert messages[0] == (abi.Notify.INC_EPOCH, 0, None)
    folder = fs.lookup(ROOT_INO, b"d").ino
    walked = {(ino, name) for _, ino, name in messages[1:]}
    everything = {(ROOT_INO, b"d"), (ROOT_INO, b"g"), (folder, b"f"), (folder, None), (ROOT_INO, None)}
    assert walked == everything | {(fs.lookup(folder, b"f").ino, None), (fs.lookup(ROOT_INO, b"g").ino, None)}
    assert notifier.overflows == 1
    notifier.inode_changed(5)  # afterwards it works as before
    assert notifier.wait_idle(WAIT_S)
    assert wire.read() == [(abi.Notify.INVAL_INODE, 5, None)]
    assert notifier.stop(timeout_s=WAIT_S)


def test_an_overflow_on_an_older_kernel_walks_and_warns(wire: Wire, caplog: pytest.LogCaptureFixture) -> None:
    notifier = Notifier(_tree(), queue_max=1)
    for number in range(3):
        notifier.inode_changed(number)
    with caplog.at_level(logging.WARNING):
        notifier.start(wire.theirs.fileno(), minor=abi.MINOR_NOTIFY_EPOCH - 1)
        assert notifier.wait_idle(WAIT_S)
    assert "may stay visible" in caplog.text
    messages = wire.read()
    assert abi.Notify.INC_EPOCH not in {code for code, _, _ in messages}
    assert len(messages) == 7
    assert notifier.stop(timeout_s=WAIT_S)


def test_a_kernel_that_does_not_know_the_inode_is_no_problem() -> None:
    """Writing to a descriptor opened for reading only fails like an unknown inode does: with an error that is not the end."""
    read_end, write_end = os.pipe()
    notifier = Notifier(MemoryFs(), queue_max=10)
    full = os.open("/dev/full", os.O_WRONLY)
    try:
        notifier.start(full, minor=45)
        notifier.inode_changed(1)
        assert notifier.wait_idle(WAIT_S)
        assert notifier.sent == 0
        notifier.inode_changed(2)
        assert notifier.wait_idle(WAIT_S)
        assert notifier.stop(timeout_s=WAIT_S)
    finally:
        for fd in (read_end, write_end, full):
            os.close(fd)


def test_the_end_of_the_connection_ends_the_thread_and_later_calls_do_nothing() -> None:
    fd = os.open("/dev/null", os.O_RDONLY)  # EBADF on write: the connection is gone
    notifier = Notifier(MemoryFs(), queue_max=10)
    try:
        notifier.start(fd, minor=45)
        notifier.inode_changed(1)
        assert notifier.wait_idle(WAIT_S)
        notifier.inode_changed(2)
        assert notifier.wait_idle(0)
        assert notifier.stop(timeout_s=WAIT_S)
    finally:
        os.close(fd)


def test_stopping_without_a_start_works() -> None:
    notifier = Notifier(MemoryFs(), queue_max=10)
    notifier.inode_changed(1)
    assert notifier.stop(timeout_s=WAIT_S)
    notifier.entry_changed(1, b"x")
    assert notifier.wait_idle(0)


def test_many_threads_may_announce_at_once(wire: Wire) -> None:
    notifier = Notifier(MemoryFs(), queue_max=100_000)
    received: list[tuple[int, int, bytes | None]] = []

    def announce(base: int) -> None:
        for number in range(500):
            notifier.inode_changed(base + number)

    threads = [threading.Thread(target=announce, args=[base]) for base in (10_000, 20_000, 30_000)]
    notifier.start(wire.theirs.fileno(), minor=45)
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads) or not notifier.wait_idle(0):
        received += wire.read()
        threads[0].join(0.001)
    received += wire.read()
    assert {ino for _, ino, _ in received} == {base + number for base in (10_000, 20_000, 30_000) for number in range(500)}
    assert notifier.stop(timeout_s=WAIT_S)
