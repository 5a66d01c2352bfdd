"""One private home with one server for each test module; each test mounts memories of its own name."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.driver import Memdir

_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def memdir(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Memdir]:
    base = tmp_path_factory.mktemp("acceptance").resolve()
    (base / "work").mkdir()
    runner = Memdir(folder=base / "work", home=base / "home")
    try:
        runner.warm_up()
        yield runner
    finally:
        runner.close()


@pytest.fixture
def name() -> str:
    """A memory that no other test uses."""
    return f"memory-{next(_numbers)}"


@pytest.fixture
def notes(memdir: Memdir, name: str) -> Iterator[Path]:
    """A fresh, empty mount."""
    place = memdir.mount(name)
    yield place
    memdir.run("unmount", place, expect=(0, 1, 2))
