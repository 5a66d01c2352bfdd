"""Ending a daemon: a good one, one that does not end, one that hangs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from memdir.cli.mounts import drain, unmount
from memdir.core.paths import app_paths
from memdir.daemon.registry import MountRecord, MountRegistry, MountSpec

Run = Callable[..., tuple[int, str, str]]
Daemon = Callable[[str], tuple[MountRecord, "subprocess.Popen[str]"]]


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    """Start a process that looks like the daemon of ./notes."""
    children: list[subprocess.Popen[str]] = []

    def start(mode: str) -> tuple[MountRecord, subprocess.Popen[str]]:
        (tmp_path / "notes").mkdir()
        registry = MountRegistry(app_paths())
        record = registry.allocate(MountSpec(name="notes", path=str(tmp_path / "notes"), created_dir=True))
        root = Path(__file__).parents[2]
        child = subprocess.Popen(
            [sys.executable, "-m", "tests.cli.daemon_process", record.id, mode],
            stdout=subprocess.PIPE, text=True, cwd=root, env={**os.environ, "PYTHONPATH": str(root)},
        )  # fmt: skip
        children.append(child)
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        return registry.get(record.id), child

    yield start
    for child in children:
        child.kill()
        child.wait(10)
        assert child.stdout is not None
        child.stdout.close()


def test_it_waits_for_the_daemon_s_end_and_says_what_is_left(run: Run, daemon: Daemon, tmp_path: Path) -> None:
    _, child = daemon("good")
    code, out, err = run("unmount", "notes")
    assert (code, err) == (0, "")
    assert out == f"notes: unmounted from {tmp_path}/notes; 4 changes wait for the next mount: 30 s were not enough for them\n"
    assert child.wait(0) == 0
    assert not (tmp_path / "notes").exists()


def test_json_says_what_happened(run: Run, daemon: Daemon, tmp_path: Path) -> None:
    daemon("good")
    assert json.loads(run("unmount", "notes", "--json")[1]) == {
        "name": "notes",
        "path": f"{tmp_path}/notes",
        "was": "mounted",
        "pushed": None,
        "left": 4,
        "why_left": "30 s were not enough for them",
        "interrupted": False,
        "detached": False,
        "removed_directory": True,
    }


def test_a_daemon_that_does_not_end_is_an_error_that_names_who_is_inside(
    run: Run, daemon: Daemon, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unmount, "_EXIT_WAIT_S", 0.2)
    record, _ = daemon("stays")
    user = subprocess.Popen([sys.executable, "-c", "input()"], cwd=tmp_path / "notes", stdin=subprocess.PIPE)
    try:
        code, _, err = run("unmount", "notes")
    finally:
        user.communicate(b"\n", timeout=30)
    assert code == 2
    assert f"(pid {user.pid})" in err
    assert "--force" in err
    assert MountRegistry(app_paths()).get(record.id).state == "alive"


@pytest.mark.parametrize("mode", ["silent", "stubborn", "stays"])
def test_force_ends_a_daemon_that_hangs(mode: str, run: Run, daemon: Daemon, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unmount, "_KILL_WAIT_S", 0.5)
    monkeypatch.setattr(drain, "_ANSWER_EXTRA_S", 0.3)
    record, child = daemon(mode)
    code, out, _ = run("unmount", "notes", "--force")
    assert (code, "unmounted" in out) == (0, True)
    assert child.wait(10) != 0
    assert MountRegistry(app_paths()).get(record.id).state == "stopped"


def test_without_force_a_daemon_that_hangs_is_left_alone(run: Run, daemon: Daemon, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drain, "_ANSWER_EXTRA_S", 0.3)
    record, child = daemon("silent")
    code, _, err = run("unmount", "notes", "--drain-timeout", "0")
    assert code == 2
    assert "did not answer" in err
    assert child.poll() is None
    assert MountRegistry(app_paths()).get(record.id).state == "alive"


def test_force_and_lazy_exclude_each_other(run: Run) -> None:
    code, _, err = run("unmount", "notes", "--force", "--lazy")
    assert code == 2
    assert "--lazy lets users finish" in err


@pytest.mark.promise("sync.drain")
@pytest.mark.parametrize(
    ("ended", "sentence"),
    [
        (
            unmount.Ended(left=3, pushed=120, why_left="offline since 10:02: refused"),
            "; pushed 120 changes; 3 changes wait for the next mount: offline since 10:02: refused",
        ),
        (unmount.Ended(left=0, pushed=1), "; pushed 1 change, everything is pushed"),
        (unmount.Ended(left=0, pushed=0), ", everything is pushed"),
        (unmount.Ended(left=1, why_left="x", interrupted=True), "; 1 change waits for the next mount: you ended the wait"),
        (
            unmount.Ended(left=0, parked=2),
            ", everything else is pushed; 2 parked, see `memdir queue` at the next mount",
        ),
        (unmount.Ended(), ""),
    ],
)
def test_the_last_line_says_what_was_pushed_and_what_was_not(tmp_path: Path, ended: unmount.Ended, sentence: str) -> None:
    record = MountRegistry(app_paths()).allocate(MountSpec(name="notes", path=str(tmp_path)))
    assert unmount._left_sentence(record, "alive", ended) == sentence
