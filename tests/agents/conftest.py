"""One fake server for all tests of a module, and the hook as a process."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

import memdir
from memdir.agents.installers.commands import hookrun_path
from memdir.client.local import ensure_server, stop_server
from memdir.core.paths import AppPaths, under_home

ROOT = Path(memdir.__file__).parents[2]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """How a hook ended. `wall_ms` is from before exec to after exit."""

    code: int
    out: bytes
    err: bytes
    log: str
    wall_ms: float


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AppPaths]:
    """A home with a memory server that runs."""
    paths = under_home(tmp_path_factory.mktemp("home"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MEMDIR_HOME", str(paths.config_dir.parent))
        ensure_server(paths)
        yield paths
        stop_server(paths)


@pytest.fixture(scope="module")
def fake_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A MEMDIR_HOME whose server is the fake one."""
    home = tmp_path_factory.mktemp("home")
    with subprocess.Popen(
        [sys.executable, "-m", "tests.agents.fake_server", "memdir.server", str(home)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT,
    ) as server:  # fmt: skip
        assert server.stdin is not None
        assert server.stdout is not None
        assert server.stdout.readline() == b"ready\n"
        yield home
        server.stdin.close()


_BUSY = ("took more than", "in time")
_TRIES = 6


@pytest.fixture
def hook(fake_home: Path, tmp_path: Path) -> Callable[..., Ran]:
    """Run the hook as hosts do: hook(b"{…}", "--host", "codex", home=…, env=…). A machine that is so busy that the limit of
    time strikes is asked again, unless `slow` says that this is what is tested."""

    def run(
        told: bytes,
        *options: str,
        home: Path | None = None,
        env: dict[str, str] | None = None,
        command: tuple[str, ...] = (),
        slow: bool = False,
    ) -> Ran:
        place = home or fake_home
        for _ in range(_TRIES):
            ran = run_hook(
                told,
                *(command or (sys.executable, "-I", "-S", hookrun_path())),
                *options,
                home=place,
                cwd=tmp_path,
                env=env or {},
            )
            if slow or not any(word in ran.log for word in _BUSY):
                break
        return ran

    return run


def run_hook(told: bytes, *command: str, home: Path, cwd: Path, env: dict[str, str]) -> Ran:
    log = home / "state" / "hook.log"
    before = log.stat().st_size if log.exists() else 0
    kept = {name: value for name, value in os.environ.items() if not name.startswith("MEMDIR_")}
    began = time.monotonic()
    ended = subprocess.run(
        command,
        input=told,
        capture_output=True,
        timeout=20,
        cwd=cwd,
        check=False,
        env={**kept, "MEMDIR_HOME": str(home), **env},
    )
    wall_ms = (time.monotonic() - began) * 1000
    logged = log.read_bytes() if log.exists() else b""
    logged_now = logged[before:] if len(logged) >= before else logged
    return Ran(code=ended.returncode, out=ended.stdout, err=ended.stderr, log=logged_now.decode(), wall_ms=wall_ms)
