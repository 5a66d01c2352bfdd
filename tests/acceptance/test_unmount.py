"""Unmounting a mount that is in use: who uses it is said at once, and nothing is taken from them without being asked."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.acceptance.driver import Memdir, is_mounted, wait_for_exit

pytestmark = pytest.mark.mount

USER = """
import os, sys
held = open(sys.argv[1])
print("ready", flush=True)
input()
try:
    print(held.read(), flush=True)
except OSError as error:
    print(error.errno, flush=True)
"""
Use = Callable[[Path], "subprocess.Popen[str]"]


@pytest.fixture
def use() -> Iterator[Use]:
    """A process that has a file open."""
    children: list[subprocess.Popen[str]] = []

    def start(file: Path) -> subprocess.Popen[str]:
        child = subprocess.Popen(
            [sys.executable, "-c", USER, str(file)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd="/"
        )
        children.append(child)
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        return child

    yield start
    for child in children:
        child.kill()
        child.communicate(timeout=20)


@pytest.fixture
def held(memdir: Memdir, notes: Path, use: Use) -> tuple[Path, subprocess.Popen[str]]:
    """A mount with a file that somebody has open."""
    (notes / "open.md").write_text("still readable")
    return notes, use(notes / "open.md")


@pytest.mark.promise("unmount.names-users")
def test_it_says_at_once_who_uses_the_mount_and_leaves_it_alone(
    memdir: Memdir, held: tuple[Path, subprocess.Popen[str]]
) -> None:
    place, user = held
    began = time.monotonic()
    refused = memdir.run("unmount", place, expect=2)
    assert time.monotonic() - began < 4
    assert f"(pid {user.pid})" in refused.err
    assert "--lazy" in refused.err
    assert "--force" in refused.err
    assert (place / "open.md").read_text() == "still readable"
    (place / "later.md").write_text("it goes on")
    memdir.run("sync", place, "--wait")
    user.communicate("\n", timeout=20)
    memdir.run("unmount", place)
    assert not is_mounted(place)


@pytest.mark.promise("unmount.lazy")
def test_lazy_detaches_now_and_lets_users_finish(memdir: Memdir, name: str, held: tuple[Path, subprocess.Popen[str]]) -> None:
    place, user = held
    name = place.name
    pid = memdir.status(name)["pid"]
    detached = memdir.run("unmount", name, "--lazy")
    assert f"(pid {user.pid})" in detached.out
    assert not is_mounted(place)
    assert not place.exists()
    [entry] = [entry for entry in memdir.run("list", "--json").json() if entry["name"] == name]
    assert (entry["state"], entry["pid"]) == ("detached", pid)
    busy = memdir.run("mount", name, expect=2)
    assert "was detached" in busy.err
    again = memdir.run("unmount", name, expect=2)
    assert "detached" in again.err
    assert "--force" in again.err
    answer, _ = user.communicate("\n", timeout=20)
    assert answer == "still readable\n"
    wait_for_exit(pid, 40)
    memdir.mount(name)
    assert (place / "open.md").read_text() == "still readable"
    memdir.run("unmount", name)


@pytest.mark.promise("unmount.force")
def test_force_takes_the_mount_away_under_its_users(memdir: Memdir, held: tuple[Path, subprocess.Popen[str]]) -> None:
    place, _ = held
    pid = memdir.status(place.name)["pid"]
    began = time.monotonic()
    memdir.run("unmount", place, "--force")
    assert time.monotonic() - began < 8
    assert not is_mounted(place)
    wait_for_exit(pid, 1)


@pytest.mark.promise("mount.ctrl-c")
def test_ctrl_c_in_the_foreground_takes_its_folder_along(memdir: Memdir, name: str) -> None:
    place = memdir.folder / name
    with subprocess.Popen(
        [sys.executable, "-m", "memdir.cli", "mount", name, "--foreground", "--no-sync"],
        cwd=memdir.folder, env=memdir.env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
        start_new_session=True,
    ) as child:  # fmt: skip
        assert child.stderr is not None
        for line in child.stderr:
            if b"is mounted" in line:
                break
        assert is_mounted(place)
        child.send_signal(signal.SIGINT)
        child.communicate(timeout=40)
        assert child.returncode in (0, 130)
    assert not place.exists()
