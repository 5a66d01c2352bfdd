"""Host programs as agents of xAFS: what is run, and what is read from the events that they print."""

from __future__ import annotations

import json
import os
import stat
import time
from pathlib import Path
from typing import Any

import pytest

from memdir.core.errors import UsageError
from memdir_bench.xafs.conditions import run_within
from memdir_bench.xafs.hosts import HOSTS, HostAgent
from memdir_bench.xafs.policy import Account, Budget
from memdir_bench.xafs.run import Runner, corpora_in, run_all
from tests.agents.scripted_models import environment_of, program_of, scripted


def _claude(part: dict[str, Any]) -> dict[str, Any]:
    return {"type": "assistant", "message": {"content": [part]}}


SAID = "I looked into it.\n**Porto**"
EVENTS: dict[str, list[dict[str, Any]]] = {
    "claude-code": [
        {"type": "system", "subtype": "init"},
        _claude({"type": "tool_use", "id": "1", "name": "Bash", "input": {"command": "ls"}}),
        _claude({"type": "tool_result", "tool_use_id": "1", "content": "a.md"}),
        _claude({"type": "text", "text": SAID}),
        {
            "type": "result", "result": SAID, "num_turns": 2,
            "usage": {"input_tokens": 5, "cache_creation_input_tokens": 15, "cache_read_input_tokens": 80, "output_tokens": 9},
        },
    ],
    "codex": [
        {"type": "thread.started", "thread_id": "x"},
        {"type": "item.completed", "item": {"type": "command_execution", "command": "ls", "aggregated_output": "a.md"}},
        {"type": "item.completed", "item": {"type": "agent_message", "text": SAID}},
        {"type": "turn.completed", "usage": {"input_tokens": 100, "cached_input_tokens": 80, "output_tokens": 9}},
    ],
    "gemini": [
        {"type": "init", "model": "auto"},
        {"type": "message", "role": "user", "content": "Where?"},
        {"type": "message", "role": "assistant", "content": "Let me see.", "delta": True},
        {"type": "tool_use", "tool_name": "run_shell_command", "tool_id": "1", "parameters": {"command": "ls"}},
        {"type": "tool_result", "tool_id": "1", "status": "success", "output": "a.md"},
        {"type": "message", "role": "assistant", "content": SAID, "delta": True},
        {"type": "result", "stats": {"input_tokens": 100, "output_tokens": 9, "cached": 80, "tool_calls": 1}},
    ],
}  # fmt: skip


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The first folder of the path."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    return folder


def installed(programs: Path, name: str, script: str) -> None:
    file = programs / HOSTS[name].program
    file.write_text(f"#!/bin/sh\n{script}\n")
    file.chmod(file.stat().st_mode | stat.S_IXUSR)


def answered(agent: HostAgent, folder: Path, *, seconds: float = 30, memory: str | None = None) -> tuple[str, Account]:
    budget = Budget(seconds=seconds)
    return agent.answer("Where?", folder, {"HERE": "yes"}, instructions="Look.", budget=budget, memory=memory)


@pytest.mark.parametrize("name", list(HOSTS))
def test_the_last_line_is_the_answer_and_what_it_cost_is_counted(name: str, programs: Path, tmp_path: Path) -> None:
    lines = tmp_path / "events"
    lines.write_text("a line that is none\n" + "".join(json.dumps(event) + "\n" for event in EVENTS[name]) + '{"type": "cut')
    installed(programs, name, f'printf "%s\\n" "$HERE" "$PWD" "$@" > {tmp_path}/given; cat {lines}')
    given, account = answered(HostAgent(name=name, more=("--model=small",)), tmp_path)
    assert given == "Porto"
    assert (account.tokens_in, account.tokens_cached, account.tokens_out, account.calls) == (100, 80, 9, 2)
    assert [(step.command, step.printed) for step in account.transcript] == [("ls", "a.md")]
    here, place, *words = (tmp_path / "given").read_text().split("\n")
    assert (here, place) == ("yes", str(tmp_path))
    assert "--model=small" in words
    assert "Where?" in words


def test_only_claude_code_can_be_left_with_the_tool_of_our_server(programs: Path, tmp_path: Path) -> None:
    installed(programs, "claude-code", f'printf "%s\\n" "$@" > {tmp_path}/given; echo \'{{"type": "x"}}\'')
    answered(HostAgent(name="claude-code"), tmp_path, memory="drive")
    words = (tmp_path / "given").read_text().split("\n")
    server = json.loads(words[words.index("--mcp-config") + 1])["mcpServers"]["memdir"]
    assert server["args"][-2:] == ["--shell", "drive"]
    assert words[words.index("--tools") + 1] == ""
    HostAgent(name="claude-code").check(["plain", "mcp"])
    installed(programs, "codex", "true")
    with pytest.raises(UsageError, match="cannot be left"):
        HostAgent(name="codex").check(["mcp"])
    with pytest.raises(UsageError, match="a shell of its own"):
        HostAgent(name="codex").check(["shell"])


def test_one_that_fails_is_an_error_and_one_that_takes_too_long_has_no_answer(programs: Path, tmp_path: Path) -> None:
    installed(programs, "codex", "echo 'not signed in' >&2; exit 3")
    with pytest.raises(UsageError, match="ended with 3") as caught:
        answered(HostAgent(name="codex"), tmp_path)
    assert "not signed in" in str(caught.value.hint)
    installed(programs, "codex", f"(sleep 60; touch {tmp_path}/late) & sleep 60")
    given, account = answered(HostAgent(name="codex"), tmp_path, seconds=0.5)
    assert (given, account.tokens) == ("", 0)


def test_a_command_that_takes_too_long_gives_what_it_printed(tmp_path: Path) -> None:
    script = f"echo one; (sleep 60; touch {tmp_path}/late) & sleep 60"
    began_s = time.monotonic()
    assert run_within(["bash", "-c", script], tmp_path, dict(os.environ), 0.5)[1] == "one\n"
    assert time.monotonic() - began_s < 30


def test_one_that_is_not_installed_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UsageError, match="no program gemini"):
        run_all([], Runner(tmp_path / "out", Budget(), lambda _: None, HostAgent(name="gemini")), conditions=["plain"])


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Of a user who has set up nothing."""
    folder = tmp_path / "home"
    (folder / ".gemini").mkdir(parents=True)
    (folder / ".gemini" / "settings.json").write_text('{"security": {"auth": {"selectedType": "gemini-api-key"}}}')
    return folder


@pytest.mark.long
@pytest.mark.parametrize("name", list(HOSTS))
def test_the_real_program_against_a_scripted_model(
    name: str, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{program_of(name).parent}{os.pathsep}{os.environ['PATH']}")
    with scripted([None, SAID]) as model:
        env = {"HOME": str(home)} | environment_of(model.url)
        provider = f'model_providers.x={{name="x",base_url="{model.url}/v1",wire_api="responses",env_key="KEY"}}'
        more = ("-c", 'model_provider="x"', "-c", provider) if name == "codex" else ()
        agent = HostAgent(name=name, more=more)
        given, account = agent.answer("Where?", tmp_path, env, instructions="Look.", budget=Budget(), memory=None)
    assert given == "Porto"
    assert [step.command for step in account.transcript if "make gen" in step.command]
    assert account.calls == 2
    assert account.tokens_in >= 2


@pytest.mark.long
def test_the_scripted_agent_through_the_mount_the_shell_and_mcp(tmp_path: Path) -> None:
    from memdir_bench.xafs.corpus import Readings, make_corpus

    readings = Readings()
    try:
        make_corpus(tmp_path / "corpora" / "c00010", seed=3, size=10, count=4, readings=readings)
    finally:
        readings.close()
    conditions = ["mount", "shell", "mcp"]
    run_all(corpora_in(tmp_path / "corpora"), Runner(tmp_path / "out", Budget(), lambda _: None), conditions=conditions)
    ingest = json.loads((tmp_path / "out" / "ingest" / "c00010.json").read_text())
    assert ingest["search_after_p95_ms"] > 0
    assert sum(one["files"] for one in ingest["formats"].values()) == 10
    assert not any(one["without_text"] for one in ingest["formats"].values())
    for condition in conditions:
        rows = [json.loads(file.read_text()) for file in (tmp_path / "out" / condition).glob("*/*.json")]
        assert [row["correct"] for row in rows] == [True] * 4, condition
        assert all("memdir grep" in row["transcript"][0]["command"] for row in rows)
