"""One private home with one server for each test module; each test mounts memories of its own name."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.driver import Address, Memdir, eventually

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


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Address]:
    """A server started by hand, and a key made for the client."""
    base = tmp_path_factory.mktemp("sdk").resolve()
    memdir = Memdir(folder=base, home=base / "home")
    command = [sys.executable, "-m", "memdir.cli", "server", "run", "--port", "0"]
    process = subprocess.Popen(
        command, env=memdir.env, cwd=base, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        found = base / "home" / "state" / "server.json"
        eventually(found.exists, "the server says where it is", tries=400)
        url = json.loads(found.read_text())["url"]
        key = memdir.run("server", "key", "create", "--name", "sdk", "--json").json()["key"]
        yield Address(url=url, key=key)
        process.terminate()
        assert process.wait(timeout=30) == 0
    finally:
        process.kill()
        process.wait()
