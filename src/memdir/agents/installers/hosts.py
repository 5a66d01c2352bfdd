"""Which files of which host get what. Paths and forms as documented in November 2026; see docs/agent-hosts.md."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from memdir.agents.installers.commands import hook_command, mcp_command
from memdir.agents.installers.guide import GUIDE_KEY, GUIDE_LINES

NAME: Final = "memdir"
"""Of the MCP server."""
_HOOK_TIMEOUT_S: Final = 5
"""The hook itself ends after 0.3 s; this is for a machine that does not get around to starting it."""

_CLAUDE_EVENTS: Final = ("UserPromptSubmit", "SessionStart", "Stop", "SessionEnd", "PreCompact")

Kind = Literal["json", "toml", "text"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One thing that goes into a file. In JSON: `value` under `key` (None: at the end of a list) of what `path` leads to. In a
    text: `lines` as the block `key`."""

    path: tuple[str, ...] = ()
    key: str | None = None
    value: Any = None
    lines: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A file and what goes into it. `new` is what a file that is not there begins as."""

    file: Path
    kind: Kind
    parts: tuple[Part, ...]
    new: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """For whom: `folder` is the project's root, None for everything this user does."""

    home: Path
    folder: Path | None
    environ: Mapping[str, str]

    @property
    def shared(self) -> bool:
        return self.folder is not None

    def base(self, name: str, variable: str = "") -> Path:
        """The host's folder; the user's may be moved by a variable of the host."""
        if self.folder is not None:
            return self.folder / name
        moved = self.environ.get(variable, "") if variable else ""
        return Path(moved) if moved.startswith("/") else self.home / name


def targets(host: str, reach: Reach) -> tuple[Target, ...]:
    """The files of a host, in the order in which they are shown."""
    return {"claude-code": _claude, "codex": _codex, "gemini": _gemini, "cursor": _cursor}[host](reach)


def is_there(host: str, reach: Reach) -> bool:
    """Whether this user seems to use the host: its folder, or its program."""
    name, variable, program = {
        "claude-code": (".claude", "CLAUDE_CONFIG_DIR", "claude"),
        "codex": (".codex", "CODEX_HOME", "codex"),
        "gemini": (".gemini", "", "gemini"),
        "cursor": (".cursor", "", "cursor-agent"),
    }[host]
    base = reach.base(name, variable)
    return base.is_dir() or shutil.which(program, path=reach.environ.get("PATH")) is not None


def remark(host: str, reach: Reach) -> str:
    """What the user still has to do, or to know."""
    return {
        "claude-code": "Claude Code asks once whether it may use the project's MCP server" if reach.shared else "",
        "codex": "Codex runs new hooks after you have trusted them: /hooks"
        + ("; it reads a project's settings in trusted projects only" if reach.shared else ""),
        "gemini": "",
        "cursor": "Cursor takes memories at the start of a session; its prompt hook cannot give any"
        + ("" if reach.shared else ", and it has no guide file for all projects"),
    }[host]


def _claude(reach: Reach) -> tuple[Target, ...]:
    base = reach.base(".claude", "CLAUDE_CONFIG_DIR")
    moved = base if reach.environ.get("CLAUDE_CONFIG_DIR", "").startswith("/") else reach.home
    server = reach.folder / ".mcp.json" if reach.folder is not None else moved / ".claude.json"
    guide = reach.folder / "CLAUDE.md" if reach.folder is not None else base / "CLAUDE.md"
    return (
        _json(server, _server(reach, {"type": "stdio"})),
        _json(base / "settings.json", *_hooks("claude-code", reach, _CLAUDE_EVENTS, _HOOK_TIMEOUT_S)),
        _guide(guide),
    )


def _codex(reach: Reach) -> tuple[Target, ...]:
    base = reach.base(".codex", "CODEX_HOME")
    command, *arguments = mcp_command(shared=reach.shared)
    shown = ", ".join(map(_toml_string, arguments))
    lines = (f"[mcp_servers.{NAME}]", f"command = {_toml_string(command)}", f"args = [{shown}]")
    guide = reach.folder / "AGENTS.md" if reach.folder is not None else base / "AGENTS.md"
    return (
        Target(file=base / "config.toml", kind="toml", parts=(Part(key=GUIDE_KEY, lines=lines),)),
        _json(base / "hooks.json", *_hooks("codex", reach, ("UserPromptSubmit", "SessionStart", "Stop"), _HOOK_TIMEOUT_S)),
        _guide(guide),
    )


def _gemini(reach: Reach) -> tuple[Target, ...]:
    base = reach.base(".gemini")
    guide = reach.folder / "GEMINI.md" if reach.folder is not None else base / "GEMINI.md"
    hooks = _hooks(
        "gemini", reach, ("BeforeAgent", "SessionStart", "SessionEnd", "PreCompress"), _HOOK_TIMEOUT_S * 1000, {"name": NAME}
    )
    return (_json(base / "settings.json", _server(reach, {}), *hooks), _guide(guide))


def _cursor(reach: Reach) -> tuple[Target, ...]:
    base = reach.base(".cursor")
    hook = Part(path=("hooks", "sessionStart"), value={"command": hook_command("cursor", shared=reach.shared)})
    found = (
        _json(base / "mcp.json", _server(reach, {})),
        Target(file=base / "hooks.json", kind="json", parts=(hook,), new='{\n  "version": 1\n}\n'),
    )
    return found if reach.folder is None else (*found, _guide(reach.folder / "AGENTS.md"))


def _json(file: Path, *parts: Part) -> Target:
    return Target(file=file, kind="json", parts=parts, new="{}\n")


def _server(reach: Reach, more: dict[str, Any]) -> Part:
    command, *arguments = mcp_command(shared=reach.shared)
    return Part(path=("mcpServers",), key=NAME, value={**more, "command": command, "args": arguments})


def _hooks(
    host: str, reach: Reach, events: tuple[str, ...], timeout: int, more: dict[str, Any] | None = None
) -> tuple[Part, ...]:
    handler = {**(more or {}), "type": "command", "command": hook_command(host, shared=reach.shared), "timeout": timeout}
    return tuple(Part(path=("hooks", event), value={"hooks": [handler]}) for event in events)


def _guide(file: Path) -> Target:
    return Target(file=file, kind="text", parts=(Part(key=GUIDE_KEY, lines=GUIDE_LINES),))


def _toml_string(text: str) -> str:
    """A basic string (TOML 1.0): JSON's escapes are TOML's."""
    return json.dumps(text, ensure_ascii=False)


def project_root(cwd: str) -> Path:
    """The folder whose settings `--project` means: the nearest one with a `.git`, else `cwd` itself."""
    here = Path(os.path.abspath(cwd))
    return next((folder for folder in (here, *here.parents) if (folder / ".git").exists()), here)
