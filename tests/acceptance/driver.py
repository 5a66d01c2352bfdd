"""The real command line, as a user types it, against a private MEMDIR_HOME."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from memdir_bench.session import run_limited

COMMAND_LIMIT_S = 60.0
SERVER_VARIABLES = ("MEMDIR_HOME", "MEMDIR_SERVER_URL", "MEMDIR_API_KEY", "MEMDIR_DEBUG")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """A finished command."""

    code: int
    out: str
    err: str

    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """Where a server is, and a key for it."""

    url: str
    key: str


@dataclass(slots=True, kw_only=True)
class Memdir:
    """Runs commands in `folder`; `close` unmounts everything of this home and stops its server."""

    folder: Path
    home: Path
    env: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        base = {name: value for name, value in os.environ.items() if name not in SERVER_VARIABLES}
        self.env = {**base, "MEMDIR_HOME": str(self.home), "NO_COLOR": "1", **self.env}

    def run(
        self, *arguments: str | Path, cwd: Path | None = None, expect: int | Sequence[int] = 0, limit_s: float = COMMAND_LIMIT_S
    ) -> Ran:
        """Run `memdir …`, fail with its whole output when the exit code is another than expected."""
        return self.shell([sys.executable, "-m", "memdir.cli", *map(str, arguments)], cwd=cwd, expect=expect, limit_s=limit_s)

    def shell(
        self,
        command: Sequence[str] | str,
        *,
        cwd: Path | None = None,
        expect: int | Sequence[int] = 0,
        limit_s: float = COMMAND_LIMIT_S,
    ) -> Ran:
        """Run a command or a shell line."""
        expected = (expect,) if isinstance(expect, int) else tuple(expect)
        words = ["bash", "-c", command] if isinstance(command, str) else list(command)
        done = run_limited(words, cwd=cwd or self.folder, env=self.env, limit_s=limit_s)
        ran = Ran(code=done.code, out=done.stdout, err=done.stderr)
        assert ran.code in expected, f"{command}\nexit {ran.code}, expected {expected}\n{ran.out[-2000:]}\n{ran.err[-4000:]}"
        return ran

    def warm_up(self) -> None:
        """Start the server and let it load its models: a busy machine takes longer for that than a grep waits."""
        place = self.mount("warm-up")
        (place / "hello.md").write_text("Hello.\n")
        self.run("sync", place, "--wait")
        self.run("unmount", place)

    def mount(self, name: str, *options: str | Path) -> Path:
        self.run("mount", name, *options)
        place = self.folder / name
        for option, value in pairwise(options):
            if option == "--path":
                place = Path(value)
        assert is_mounted(place), f"{place} is not a mount"
        return place

    def status(self, name: str) -> dict[str, Any]:
        answer = self.run("status", name, "--json").json()
        assert isinstance(answer, dict)
        return answer

    def hits(self, query: str, *arguments: str | Path, cwd: Path | None = None) -> list[dict[str, Any]]:
        """What `memdir grep --json` answers."""
        answer = self.run("grep", query, *arguments, "--json", cwd=cwd, expect=(0, 1)).json()
        assert isinstance(answer, list)
        return answer

    def close(self) -> None:
        mounts = mounts_below(self.folder)
        for place in mounts:
            self.run("unmount", place, "--force", expect=(0, 1, 2))
        self.run("server", "stop", expect=(0, 1, 2))
        for place in mounts_below(self.folder):
            subprocess.run(["umount", "-l", str(place)], check=False, timeout=20)
        assert mounts_below(self.folder) == [], "mounts were left behind"


def mounts_below(folder: Path) -> list[Path]:
    """From the kernel's table, so that a dead mount is seen as well; deepest first."""
    table = Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="surrogateescape")
    points = [
        Path(fields[4].replace("\\040", " ")) for fields in (line.split(" ") for line in table.splitlines()) if len(fields) > 4
    ]
    return sorted((point for point in points if point.is_relative_to(folder)), reverse=True)


def is_mounted(place: Path) -> bool:
    return place in mounts_below(place)


def wait_for_exit(pid: int, timeout_s: float) -> None:
    """Wait, on a pidfd, until a process that is not our child has ended."""
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        ready, _, _ = select.select([handle], [], [], timeout_s)
        assert ready, f"process {pid} still runs after {timeout_s} s"
    finally:
        os.close(handle)


def kill(pid: int, number: signal.Signals = signal.SIGKILL, *, timeout_s: float = 20) -> None:
    os.kill(pid, number)
    wait_for_exit(pid, timeout_s)


def eventually(check: Callable[[], bool], what: str, *, tries: int = 60) -> None:
    """For states that arrive by themselves: ask (each ask blocks at most about half a second) a bounded number of times."""
    for _ in range(tries):
        if check():
            return
        select.select([], [], [], 0.25)
    raise AssertionError(f"never happened: {what}")


def tree_of(folder: Path) -> dict[str, bytes]:
    """Every file below a folder with its bytes; the virtual profile is left out."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.relative_to(folder) != Path("profile.md")
    }
