"""The hook as hosts run it: a process from exec to exit, against a server that runs."""

from __future__ import annotations

import json
import os
import shlex
import time
from collections.abc import Mapping
from dataclasses import dataclass

from memdir.agents.installers.commands import hook_command
from memdir_bench.session import BenchError


@dataclass(frozen=True, slots=True, kw_only=True)
class HookRun:
    """One process. Milliseconds of the clock, from before exec to after exit, and of the processor."""

    wall_ms: float
    cpu_ms: float
    said: bytes
    """What it printed: nothing when nothing fits the prompt, and when it gave up."""


def run_hook(prompt: str, *, session_id: str, cwd: str, env: Mapping[str, str], host: str = "claude-code") -> HookRun:
    """Run the hook once for a prompt of at most 32 KiB, by the command that `memdir init` sets up. A session is told nothing
    twice. BenchError when it ends with another code than 0."""
    words = shlex.split(hook_command(host, shared=False))
    told = {"session_id": session_id, "hook_event_name": "UserPromptSubmit", "cwd": cwd, "prompt": prompt}
    asked, asking = os.pipe()
    answer, answering = os.pipe()
    os.write(asking, json.dumps(told).encode())
    os.close(asking)
    streams = [(os.POSIX_SPAWN_DUP2, asked, 0), (os.POSIX_SPAWN_DUP2, answering, 1)]
    began_s = time.perf_counter()
    pid = os.posix_spawn(words[0], words, env, file_actions=streams)
    os.close(asked)
    os.close(answering)
    with open(answer, "rb") as reading:
        said = reading.read()
    _, status, usage = os.wait4(pid, 0)
    wall_ms = (time.perf_counter() - began_s) * 1000
    if status != 0:
        raise BenchError(f"the hook ended with {os.waitstatus_to_exitcode(status)}; it must end with 0")
    return HookRun(wall_ms=wall_ms, cpu_ms=(usage.ru_utime + usage.ru_stime) * 1000, said=said)
