"""Real host programs against scripted models: what is said in one session is captured by the host's own hooks, and given by
them in the next. Runs where the programs are: `npm install @anthropic-ai/claude-code @openai/codex @google/gemini-cli`, and
MEMDIR_NODE_MODULES names the node_modules."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from .scripted_models import PROGRAMS, Scripted, environment_of, program_of, scripted

pytestmark = pytest.mark.long

RULE = "never mock the payment gateway in integration tests, use the sandbox at sbx.example.org"
QUESTION = "may I mock the payment gateway in the integration tests?"
CAUSE = (
    "The root cause was that the token was rotated twice when two requests raced. I fixed it by a row lock in auth/tokens.py."
)
START_S = 120
Memdir = Callable[..., Any]


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    """Of a user who has nothing yet, with a project in it."""
    folder = tmp_path / "home"
    (folder / "shop").mkdir(parents=True)
    subprocess.run(["git", "init", "-q"], cwd=folder / "shop", check=True)
    yield folder
    until = time.monotonic() + 20
    while time.monotonic() < until:  # the last session's end may have it started once more
        _memdir(folder)("server", "stop", check=False)
        threading.Event().wait(2)
        if not list((folder / ".local" / "state" / "memdir").glob("server.json")):
            break


def _memdir(home: Path) -> Memdir:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("MEMDIR_", "XDG_"))}
    environ = kept | {"HOME": str(home)}  # and nothing else: Codex hands no other variable on to MCP servers

    def run(*words: str, check: bool = True) -> Any:
        command = [sys.executable, "-m", "memdir.cli", *words]
        done = subprocess.run(command, cwd=home / "shop", env=environ, capture_output=True, text=True, timeout=120, check=False)
        assert not check or done.returncode in (0, 1), done.stderr
        return json.loads(done.stdout) if "--json" in words else done.stdout

    return run


def _session(host: str, home: Path, model: Scripted, prompt: str) -> None:
    """One prompt, answered by the script."""
    program = str(program_of(host))
    environ = {"HOME": str(home), "PATH": os.environ["PATH"]} | environment_of(model.url)
    if host == "claude-code":
        words = ["-p", prompt, "--allowedTools", "Bash"]
    elif host == "codex":
        settings = home / ".codex" / "config.toml"
        provider = f'name = "x"\nbase_url = "{model.url}/v1"\nwire_api = "responses"\nenv_key = "KEY"\n'
        kept = settings.read_text().partition("# scripted\n")[0]
        settings.write_text(f"{kept}# scripted\n[model_providers.x]\n{provider}")
        words = [
            "exec",
            "-c",
            'model_provider="x"',
            "--dangerously-bypass-hook-trust",
            "--sandbox",
            "danger-full-access",
            prompt,
        ]
    else:
        words = ["--yolo", "-p", prompt]
    done = subprocess.run(
        [program, *words], cwd=home / "shop", env=environ, capture_output=True, text=True, timeout=START_S, check=False,
        stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]


@pytest.mark.promise("agent.real-hosts")
@pytest.mark.parametrize("host", list(PROGRAMS))
def test_what_was_said_in_one_session_is_given_in_the_next_by_the_host_itself(host: str, home: Path) -> None:
    program_of(host)
    memdir = _memdir(home)
    folder = home / {"claude-code": ".claude", "codex": ".codex", "gemini": ".gemini"}[host]
    folder.mkdir()
    if host == "gemini":
        (folder / "settings.json").write_text('{"security": {"auth": {"selectedType": "gemini-api-key"}}}')
    before = {file: file.read_bytes() for file in folder.iterdir()}
    memdir("init", "--agent", host, "--yes")
    with scripted([None, CAUSE]) as model:
        _session(host, home, model, f"no, {RULE}!")
    until = time.monotonic() + 60
    while len(waiting := memdir("memory", "review", "--list", "--json")["questions"]) < 2:
        assert time.monotonic() < until, waiting
        threading.Event().wait(0.5)
    assert {one["memory"]["content"] for one in waiting} == {f"N{RULE[1:]}.", CAUSE}
    assert {one["memory"]["storedBy"] for one in waiting} == {f"capture {host}"}
    kept = next(one["memory"] for one in waiting if one["memory"]["content"] != CAUSE)
    memdir("memory", "confirm", kept["id"])
    with scripted(["No."]) as model:
        _session(host, home, model, QUESTION)
        given = "".join(model.asked)
    assert kept["id"] in given
    assert "sbx.example.org" in given
    assert "row lock" not in given, "what nobody kept is given to nobody"
    memdir("deinit", "--agent", host, "--yes")
    assert {file: file.read_bytes() for file in before} == before
