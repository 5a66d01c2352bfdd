"""The Claude Code plugin, its marketplace and the portable skill, against what their formats document.

Fields as of November 2026: code.claude.com/docs/en/plugins/manifest-reference, …/marketplace-reference, …/hooks, and
agentskills.io/specification. `claude plugin validate --strict` of Claude Code 2.1.197 passed both manifests; it is asked again
in the long lane where it is installed.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tarfile
import tomllib
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from memdir import __version__
from memdir.agents.hosts import EVENTS
from memdir.agents.installers.commands import hook_command, mcp_command
from memdir.agents.mcp.tools import TOOLS
from memdir.cli.main import COMMANDS, load_command

ROOT = Path(__file__).parents[2]
PLUGIN = ROOT / "integrations" / "claude-code"
SKILL = PLUGIN / "skills" / "memdir-memory" / "SKILL.md"
KEBAB = r"^[a-z0-9]+(-[a-z0-9]+)*$"

_PERSON = {
    "type": "object", "required": ["name"], "additionalProperties": False,
    "properties": {"name": {"type": "string", "minLength": 1}, "email": {"type": "string"}, "url": {"type": "string"}},
}  # fmt: skip
_WORDS = {"type": "array", "items": {"type": "string", "minLength": 1}}
_TEXT = {"type": "string", "minLength": 1}
MANIFEST = {
    "type": "object", "required": ["name"], "additionalProperties": False,
    "properties": {
        "$schema": _TEXT, "name": {"type": "string", "pattern": KEBAB},
        "version": {"type": "string", "pattern": r"^\d+\.\d+\.\d+"}, "description": _TEXT, "author": _PERSON,
        "homepage": _TEXT, "repository": _TEXT, "license": _TEXT, "keywords": _WORDS,
    },
}  # fmt: skip
MARKETPLACE = {
    "type": "object", "required": ["name", "owner", "plugins"], "additionalProperties": False,
    "properties": {
        "$schema": _TEXT, "name": {"type": "string", "pattern": KEBAB}, "description": _TEXT, "owner": _PERSON,
        "plugins": {
            "type": "array", "minItems": 1,
            "items": {
                "type": "object", "required": ["name", "source"], "additionalProperties": False,
                "properties": {
                    "name": {"type": "string", "pattern": KEBAB}, "source": {"type": "string", "pattern": r"^\./"},
                    "description": _TEXT, "category": _TEXT, "tags": _WORDS,
                },
            },
        },
    },
}  # fmt: skip
_HANDLER = {
    "type": "object", "required": ["type", "command"], "additionalProperties": False,
    "properties": {"type": {"const": "command"}, "command": _TEXT, "timeout": {"type": "number", "exclusiveMinimum": 0}},
}  # fmt: skip
HOOKS = {
    "type": "object", "required": ["hooks"], "additionalProperties": False,
    "properties": {
        "description": _TEXT,
        "hooks": {
            "type": "object", "propertyNames": {"enum": sorted(EVENTS["claude-code"])},
            "additionalProperties": {
                "type": "array", "minItems": 1,
                "items": {
                    "type": "object", "required": ["hooks"], "additionalProperties": False,
                    "properties": {"matcher": {"type": "string"}, "hooks": {"type": "array", "minItems": 1, "items": _HANDLER}},
                },
            },
        },
    },
}  # fmt: skip
SERVERS = {
    "type": "object", "required": ["mcpServers"], "additionalProperties": False,
    "properties": {
        "mcpServers": {
            "type": "object", "minProperties": 1,
            "additionalProperties": {
                "type": "object", "required": ["command"], "additionalProperties": False,
                "properties": {"type": {"const": "stdio"}, "command": _TEXT, "args": _WORDS, "env": {"type": "object"}},
            },
        }
    },
}  # fmt: skip


def _read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


@pytest.mark.promise("agent.plugin")
def test_the_plugin_and_the_marketplace_hold_what_is_documented_and_nothing_else() -> None:
    marketplace = _read(ROOT / ".claude-plugin" / "marketplace.json")
    manifest = _read(PLUGIN / ".claude-plugin" / "plugin.json")
    jsonschema.validate(marketplace, MARKETPLACE)
    jsonschema.validate(manifest, MANIFEST)
    jsonschema.validate(_read(PLUGIN / "hooks" / "hooks.json"), HOOKS)
    jsonschema.validate(_read(PLUGIN / ".mcp.json"), SERVERS)
    (entry,) = marketplace["plugins"]
    assert (ROOT / entry["source"]).resolve() == PLUGIN
    assert entry["name"] == manifest["name"]
    assert manifest["version"] == __version__
    assert os.listdir(PLUGIN / ".claude-plugin") == ["plugin.json"], "components stand beside it, not in it"


@pytest.mark.promise("agent.plugin")
def test_the_plugin_runs_what_the_installer_sets_up_and_nothing_where_memdir_is_missing(tmp_path: Path) -> None:
    hooks = _read(PLUGIN / "hooks" / "hooks.json")["hooks"]
    assert set(hooks) == set(EVENTS["claude-code"])
    commands = {handler["command"] for groups in hooks.values() for group in groups for handler in group["hooks"]}
    assert commands == {hook_command("claude-code", shared=True)}
    ran = subprocess.run(
        ["/bin/sh", "-c", *commands], input=b"{}", capture_output=True, env={"PATH": str(tmp_path)}, check=False, timeout=30
    )
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, b"", b"")
    (server,) = _read(PLUGIN / ".mcp.json")["mcpServers"].values()
    assert [server["command"], *server["args"]] == mcp_command(shared=True)
    load_command("mcp").parser().parse_args(server["args"][1:])


@pytest.mark.promise("agent.plugin")
def test_the_skill_is_what_every_host_reads_and_speaks_of_tools_and_commands_that_exist() -> None:
    text = SKILL.read_text(encoding="utf-8")
    _, front, body = text.split("---\n", 2)
    fields = dict(line.split(": ", 1) for line in front.splitlines())
    assert set(fields) == {"name", "description", "license", "compatibility"}
    assert fields["name"] == SKILL.parent.name
    assert re.fullmatch(KEBAB, fields["name"])
    assert len(fields["name"]) <= 64
    assert 1 <= len(fields["description"]) <= 1024
    assert len(fields["compatibility"]) <= 500
    assert "<" not in fields["description"]
    assert body.count("\n") < 500
    assert set(re.findall(r"`(memory_\w+)`", body)) == {tool.name for tool in TOOLS}
    assert set(re.findall(r"`memdir (\w+ \w+)", body)) <= set(COMMANDS)


def test_the_folders_are_part_of_the_source_distribution() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert {"integrations", ".claude-plugin"} <= set(project["tool"]["hatch"]["build"]["targets"]["sdist"]["include"])


@pytest.mark.long
def test_the_source_distribution_holds_the_plugin(tmp_path: Path) -> None:
    uv = ROOT / ".tools" / "bin" / "uv"
    if not uv.exists():
        pytest.skip("uv is not set up here")
    subprocess.run([uv, "build", "--sdist", "--quiet", "-o", tmp_path], cwd=ROOT, check=True, timeout=170)
    (archive,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(archive) as held:
        names = {name.split("/", 1)[1] for name in held.getnames() if "/" in name}
    wanted = [ROOT / ".claude-plugin" / "marketplace.json", *(path for path in PLUGIN.rglob("*") if path.is_file())]
    assert {str(path.relative_to(ROOT)) for path in wanted} <= names


@pytest.mark.long
@pytest.mark.parametrize("folder", [".", "integrations/claude-code"])
def test_claude_code_itself_finds_nothing_wrong(folder: str, tmp_path: Path) -> None:
    claude = shutil.which("claude")
    if claude is None:
        pytest.skip("Claude Code is not installed here")
    env = {"HOME": str(tmp_path), "PATH": os.environ["PATH"], "DISABLE_TELEMETRY": "1", "DISABLE_AUTOUPDATER": "1"}
    ran = subprocess.run(
        [claude, "plugin", "validate", folder, "--strict"],
        cwd=ROOT,
        env=env,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
