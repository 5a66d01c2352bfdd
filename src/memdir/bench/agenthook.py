"""The hook measured as hosts run it: a process from exec to exit, against a server that runs."""

from __future__ import annotations

import json
import os
import shlex
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from memdir.agents.hosts import HOSTS
from memdir.agents.installers.commands import hook_command


@dataclass(frozen=True, slots=True, kw_only=True)
class HookRun:
    """One process. Milliseconds of the clock, from before exec to after exit, and of the processor."""

    wall_ms: float
    cpu_ms: float
    answered: bool
    """Whether it printed a block. It prints nothing when nothing fits the prompt, and when it gave up."""


def run_hook(
    prompt: str, *, home: Path, session_id: str, cwd: str = "/", host: str = HOSTS[0], command: Sequence[str] | None = None
) -> HookRun:
    """Run the hook once for a prompt of at most 32 KiB, as `memdir init` sets it up (or `command`). `session_id` should be a
    new one each time: a session is told nothing twice."""
    words = list(command or shlex.split(hook_command(host, shared=False)))
    told = {"session_id": session_id, "cwd": cwd, "hook_event_name": "UserPromptSubmit", "prompt": prompt}
    environment = {**os.environ, "MEMDIR_HOME": str(home)}
    asked, asking = os.pipe()
    answer, answering = os.pipe()
    os.write(asking, json.dumps(told).encode())
    os.close(asking)
    actions = [(os.POSIX_SPAWN_DUP2, asked, 0), (os.POSIX_SPAWN_DUP2, answering, 1)]
    began_s = time.perf_counter()
    pid = os.posix_spawn(words[0], words, environment, file_actions=actions)
    os.close(asked)
    os.close(answering)
    with open(answer, "rb") as reading:
        said = reading.read()
    _, status, usage = os.wait4(pid, 0)
    wall_ms = (time.perf_counter() - began_s) * 1000
    if status != 0:
        raise RuntimeError(f"the hook ended with {os.waitstatus_to_exitcode(status)}; it must end with 0")
    return HookRun(wall_ms=wall_ms, cpu_ms=(usage.ru_utime + usage.ru_stime) * 1000, answered=bool(said))
