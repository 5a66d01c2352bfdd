"""Waiting for descriptors."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator

import pytest

from memdir.core.descriptors import raise_descriptor_limit, wait_readable

_BEYOND_SELECT = 1_100
"""select(2) ends at 1,023."""


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    ends = os.pipe()
    yield ends
    for end in ends:
        os.close(end)


def test_what_can_be_read_is_told_and_nothing_else(pipe: tuple[int, int]) -> None:
    reading, writing = pipe
    assert not wait_readable(reading, timeout_s=0)
    os.write(writing, b"x")
    assert wait_readable(reading)


def test_a_process_with_many_descriptors_can_wait(pipe: tuple[int, int]) -> None:
    reading, writing = pipe
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(before[1], max(before[0], 2 * _BEYOND_SELECT)), before[1]))
    high = os.dup2(reading, _BEYOND_SELECT)
    try:
        os.write(writing, b"x")
        assert wait_readable(high, timeout_s=10)
    finally:
        os.close(high)
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_a_process_may_have_as_many_as_the_system_lets_it() -> None:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (before[1] // 2, before[1]))
        raise_descriptor_limit()
        assert resource.getrlimit(resource.RLIMIT_NOFILE) == (before[1], before[1])
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
