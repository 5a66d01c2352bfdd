"""The daemon busy-polls for the next request for a moment before it blocks, unless others want the processors."""

from __future__ import annotations

import itertools
import os
import resource
import threading
import time
from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from memdir.fs.fuse import requests
from memdir.fs.fuse.requests import RequestReader


class Pipe:
    """A connection on which a test is the kernel."""

    def __init__(self) -> None:
        self.fd, self.kernel = os.pipe()
        self.buffers = [memoryview(bytearray(100))]

    def close(self) -> None:
        os.close(self.fd)
        os.close(self.kernel)


@pytest.fixture
def pipe() -> Iterator[Pipe]:
    made = Pipe()
    yield made
    made.close()


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How often the connection was read, in its one item. For the reader every look at the clock takes 10 µs, however long
    others have the processors meanwhile."""
    clock_ns = itertools.count(0, 10_000)
    monkeypatch.setattr(requests, "time", SimpleNamespace(monotonic_ns=lambda: next(clock_ns)))
    count = [0]
    readv = os.readv

    def counted(fd: int, buffers: list[memoryview]) -> int:
        count[0] += 1
        return readv(fd, buffers)

    monkeypatch.setattr(os, "readv", counted)
    return count


def wait_for_one(pipe: Pipe, reader: RequestReader) -> None:
    """A request that comes after the reader has gone to sleep."""
    timer = threading.Timer(0.2, os.write, (pipe.kernel, b"later"))
    timer.start()
    assert reader.read(pipe.buffers) == 5
    timer.join()


def test_a_request_that_is_there_is_read_at_once_and_one_that_comes_later_is_waited_for_asleep(
    pipe: Pipe, asked: list[int]
) -> None:
    reader = RequestReader(pipe.fd)
    os.write(pipe.kernel, b"now")
    assert reader.read(pipe.buffers) == 3
    assert asked == [1]
    began_s = time.thread_time()
    wait_for_one(pipe, reader)
    assert asked[0] > 3, "it asks again for a moment"
    assert time.thread_time() - began_s < 0.1, "and sleeps then"


def test_on_one_processor_it_sleeps_at_once(pipe: Pipe, asked: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0})
    reader = RequestReader(pipe.fd)
    wait_for_one(pipe, reader)
    assert asked[0] <= 3


def test_while_others_want_the_processors_it_sleeps_at_once(
    pipe: Pipe, asked: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    preempted = 0
    monkeypatch.setattr(resource, "getrusage", lambda _: SimpleNamespace(ru_nivcsw=preempted))
    reader = RequestReader(pipe.fd)

    def pass_on(count: int) -> None:
        for _ in range(count):
            os.write(pipe.kernel, b"x")
            reader.read(pipe.buffers)

    def asks_again() -> bool:
        asked[0] = 0
        wait_for_one(pipe, reader)
        return asked[0] > 3

    pass_on(256)
    assert asks_again()
    preempted += 150
    pass_on(256)
    assert not asks_again()
    pass_on(256 * 4)
    assert not asks_again()
    pass_on(256 * 8)
    assert asks_again()


def test_the_end_of_the_connection_is_an_error(pipe: Pipe) -> None:
    reader = RequestReader(pipe.fd)
    os.close(pipe.fd)
    with pytest.raises(OSError, match="Bad file descriptor"):
        reader.read(pipe.buffers)
    pipe.fd = os.open("/dev/null", os.O_RDONLY)
