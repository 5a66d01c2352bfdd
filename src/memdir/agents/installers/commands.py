"""What hosts are told to run. A user's own settings name this installation; a project's, which others check out, name what is
on their PATH, and do nothing where memdir is not installed."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import memdir

HOOK_SCRIPT = "memdir-hook"
"""The console script; a host's `command -v` finds it."""


def hookrun_path() -> str:
    """The script behind the fastest command line."""
    return str(Path(memdir.__file__).resolve().parent / "agents" / "hookrun.py")


def hook_command(host: str, *, shared: bool) -> str:
    """For the host's shell. It ends with 0 in every case."""
    if shared:
        return f"if command -v {HOOK_SCRIPT} >/dev/null 2>&1; then {HOOK_SCRIPT} --host {host}; fi"
    return shlex.join([sys.executable, "-I", "-S", hookrun_path(), "--host", host])


def mcp_command(*, shared: bool) -> list[str]:
    """The MCP server over standard input and output. Not through `sh`: hosts end the process that they started."""
    if shared:
        return ["memdir", "mcp", "--stdio"]
    return [sys.executable, "-P", "-m", "memdir.cli", "mcp", "--stdio"]  # -P: nothing of the host's folder is imported
