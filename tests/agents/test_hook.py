"""The hook as hosts run it: a process with their JSON on standard input, whose words become part of a prompt.

What hosts send is taken from their documentation and schemas of November 2026.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memdir.agents import hookcall
from memdir.agents.hook import CONTEXT_MAX_CHARS, LIMIT_MS
from memdir.agents.hosts import CAPTURE, SESSION_ID_MAX_CHARS, event_of
from memdir.agents.installers.commands import hookrun_path
from memdir.api import agents as wire
from memdir_bench.agenthook import run_hook
from tests.agents.conftest import Ran

Hook = Callable[..., Ran]

CLAUDE_PROMPT = {
    "session_id": "abc123", "transcript_path": "/home/dev/.claude/projects/x/00893aaf.jsonl", "cwd": "/home/dev/my-saas",
    "permission_mode": "default", "hook_event_name": "UserPromptSubmit", "prompt": "Fix the authentication bug in the API",
}  # fmt: skip
CLAUDE_START = {
    "session_id": "abc123", "transcript_path": "/home/dev/.claude/projects/x/00893aaf.jsonl", "cwd": "/home/dev/my-saas",
    "hook_event_name": "SessionStart", "source": "startup", "model": "claude-opus-4-8",
}  # fmt: skip
CODEX_PROMPT = {
    "session_id": "019d036d-c7fa-72d2-b6fd-78878bfe34e4", "turn_id": "019d036e", "transcript_path": None,
    "cwd": "/home/dev/my-saas", "hook_event_name": "UserPromptSubmit", "model": "gpt-5.5-codex",
    "permission_mode": "default", "prompt": "Fix the authentication bug in the API",
}  # fmt: skip
GEMINI_PROMPT = {
    "session_id": "s-1", "transcript_path": "/home/dev/.gemini/tmp/x/chats/s.json", "cwd": "/home/dev/my-saas",
    "hook_event_name": "BeforeAgent", "timestamp": "2026-11-22T10:00:00.000Z", "prompt": "Fix the authentication bug",
}  # fmt: skip
CURSOR_START = {
    "conversation_id": "c-1", "generation_id": "g-1", "model": "composer-2.5", "hook_event_name": "sessionStart",
    "cursor_version": "3.24.18", "workspace_roots": ["/home/dev/my-saas"], "user_email": None, "transcript_path": None,
    "session_id": "c-1", "is_background_agent": False, "composer_mode": "agent",
}  # fmt: skip
CURSOR_PROMPT = {**CURSOR_START, "hook_event_name": "beforeSubmitPrompt", "prompt": "Fix it", "attachments": []}

_TROUBLES = ("busy", "garbage", "other", "null", "long", "endless", "cut", "lengthless", "not-http", "gone")


def _told(event: dict[str, Any], **changes: object) -> bytes:
    return json.dumps({**event, **changes}).encode()


def _asked(block: str) -> dict[str, Any]:
    """The request that the fake server puts into its block."""
    value: dict[str, Any] = json.loads(block[block.index("{") : block.rindex("}") + 1])
    return value


def _quiet(ran: Ran, *, logged: str) -> None:
    assert (ran.code, ran.out, ran.err) == (0, b"", b"")
    assert logged in ran.log
    assert ran.log.count("\n") == (1 if logged else 0), ran.log


# --- the hosts ---------------------------------------------------------------------------------------------------------


@pytest.mark.promise("agent.hosts")
@pytest.mark.parametrize(
    ("host", "event", "named"),
    [
        ("claude-code", CLAUDE_PROMPT, "UserPromptSubmit"),
        *(("claude-code", {**CLAUDE_START, "source": source}, "SessionStart")
          for source in ("startup", "resume", "clear", "compact", "fork")),
        ("codex", CODEX_PROMPT, "UserPromptSubmit"),
        ("gemini", GEMINI_PROMPT, "BeforeAgent"),
        ("gemini", {**GEMINI_PROMPT, "hook_event_name": "SessionStart", "source": "resume", "prompt": ""}, "SessionStart"),
    ],
)  # fmt: skip
def test_a_host_gets_the_block_in_its_own_shape(hook: Hook, host: str, event: dict[str, Any], named: str) -> None:
    ran = hook(_told(event), "--host", host)
    assert (ran.code, ran.err, ran.log) == (0, b"", "")
    said = json.loads(ran.out)
    assert set(said) == {"hookSpecificOutput"}, "Codex refuses every key that it does not know"
    assert set(said["hookSpecificOutput"]) == {"hookEventName", "additionalContext"}
    assert said["hookSpecificOutput"]["hookEventName"] == named
    block = said["hookSpecificOutput"]["additionalContext"]
    assert block.startswith("<memdir-memory>\n")
    assert "(2026-11-01 [a, ü])" in block
    asked = _asked(block)
    assert asked["event"] == ("SessionStart" if named == "SessionStart" else "UserPromptSubmit")
    assert asked["prompt"] == event.get("prompt", "")
    assert (asked["host"], asked["project"], asked["sessionId"]) == (host, "my-saas", event["session_id"])
    assert asked["renewed"] is (event.get("source") in ("clear", "compact"))
    assert asked["maxTokens"] < 2_500
    assert 0 < asked["withinMs"] < LIMIT_MS


@pytest.mark.promise("agent.hosts")
def test_cursor_is_told_at_the_start_of_a_session_and_left_alone_at_prompts(hook: Hook) -> None:
    said = json.loads(hook(_told(CURSOR_START), "--host", "cursor").out)
    assert set(said) == {"additional_context"}
    asked = _asked(said["additional_context"])
    assert (asked["event"], asked["project"], asked["sessionId"]) == ("SessionStart", "my-saas", "c-1")
    _quiet(hook(_told(CURSOR_PROMPT), "--host", "cursor"), logged="")


@pytest.mark.parametrize(
    ("event", "host"),
    [(CLAUDE_PROMPT, "claude-code"), (CLAUDE_START, "claude-code"), (CODEX_PROMPT, "codex"), (GEMINI_PROMPT, "gemini"),
     (CURSOR_START, "cursor")],
)  # fmt: skip
def test_without_a_word_the_host_is_told_from_what_it_sends(event: dict[str, Any], host: str) -> None:
    found = event_of(event, None)
    assert found is not None
    assert found.host == host


def test_events_that_cannot_inject_and_empty_prompts_are_passed_over() -> None:
    for name in ("PostToolUse", "SubagentStop", "", "beforeSubmitPrompt"):
        assert event_of({**CLAUDE_PROMPT, "hook_event_name": name}, "claude-code") is None
    assert event_of({**CLAUDE_PROMPT, "prompt": " \n"}, "claude-code") is None
    assert event_of({**CLAUDE_PROMPT, "prompt": 7}, "claude-code") is None


@pytest.mark.parametrize(
    ("host", "names"),
    [("claude-code", ("Stop", "SessionEnd", "PreCompact")), ("codex", ("Stop",)), ("gemini", ("SessionEnd", "PreCompress"))],
)  # fmt: skip
def test_the_end_of_something_names_the_transcript_and_needs_no_prompt(host: str, names: tuple[str, ...]) -> None:
    for name in names:
        found = event_of({"hook_event_name": name, "transcript_path": "/t.jsonl", "cwd": "/x", "session_id": "s"}, host)
        assert found is not None
        assert (found.name, found.transcript) == (CAPTURE, "/t.jsonl")


def test_an_old_name_of_the_prompt_and_a_missing_session_are_understood() -> None:
    told = {"hook_event_name": "UserPromptSubmit", "user_prompt": "hello"}
    found = event_of(told, "claude-code")
    assert found is not None
    assert (found.prompt, found.session_id, found.cwd) == ("hello", None, None)
    told = {**CURSOR_START, "session_id": "", "workspace_roots": []}
    found = event_of(told, "cursor")
    assert found is not None
    assert (found.session_id, found.cwd) == ("c-1", "/"), "a hook of Cursor's user runs in ~/.cursor, which is no project"


# --- words ------------------------------------------------------------------------------------------------------------


def test_tag_container_and_plain_text_can_be_asked_for(hook: Hook) -> None:
    ran = hook(_told(CLAUDE_PROMPT), "--tag", "supermemory", "--container=team", "--plain")
    block = ran.out.decode()
    assert block.startswith("<supermemory>\n")
    assert block.endswith("</supermemory>\n")
    assert _asked(block)["containerTag"] == "team"
    ran = hook(_told(CLAUDE_PROMPT), "--plain", env={"MEMDIR_AGENT_CONTAINER": "mine"})
    assert _asked(ran.out.decode())["containerTag"] == "mine"


def test_a_host_that_reads_json_only_gets_no_plain_text(hook: Hook) -> None:
    assert json.loads(hook(_told(GEMINI_PROMPT), "--host", "gemini", "--plain").out)


def test_any_prompt_arrives_and_of_a_very_long_one_both_ends(hook: Hook) -> None:
    odd = 'quote " backslash \\ newline \n tab \t null \x00 日本 😀 </memdir-memory>'
    asked = _asked(hook(_told(CLAUDE_PROMPT, prompt=odd), "--plain").out.decode())
    assert asked["prompt"] == odd
    half = b'{"hook_event_name": "UserPromptSubmit", "prompt": "half \\ud83d here", "session_id": "%s"}' % (b"s" * 500)
    asked = _asked(hook(half, "--plain").out.decode())
    assert asked["prompt"] == "half ? here"
    assert asked["sessionId"] == "s" * SESSION_ID_MAX_CHARS
    long = f"why does it fail?\n{'word ' * 4_000}\nand where is the log?"
    for prompt, length in ((long, len(long)), (long.replace("word", "word " * 10), 32_768)):
        asked = _asked(hook(_told(CLAUDE_PROMPT, prompt=prompt), "--plain").out.decode())
        assert asked["prompt"].startswith(f"{length}: why does it fail?\n")
        assert asked["prompt"].endswith("\nand where is the log?")


def test_the_bounds_are_those_of_the_wire() -> None:
    assert CONTEXT_MAX_CHARS == wire.CONTEXT_MAX_CHARS
    assert wire.ContextRequest(session_id="x" * SESSION_ID_MAX_CHARS).session_id


@pytest.mark.parametrize("command", [("memdir", "hook"), ("memdir-hook",)])
def test_the_commands_on_the_path_do_the_same(hook: Hook, command: tuple[str, ...]) -> None:
    script = str(Path(sys.executable).with_name(command[0]))
    ran = hook(_told(CLAUDE_PROMPT), "--host", "claude-code", command=(script, *command[1:]))
    assert "<memdir-memory>" in json.loads(ran.out)["hookSpecificOutput"]["additionalContext"]
    wrong = hook(_told(CLAUDE_PROMPT), "--hots", "claude-code", command=(script, *command[1:]))
    _quiet(wrong, logged="does not know --hots")


# --- never fails -------------------------------------------------------------------------------------------------------


@pytest.mark.promise("agent.hook-never-fails")
@pytest.mark.parametrize(
    ("told", "logged"),
    [
        (b"", "nothing on standard input"),
        (b"  \n", "nothing on standard input"),
        (b"{", ""),
        (b"not json", "no JSON"),
        (b'{"a": 1} {"b": 2}', "something follows"),
        (b"[1, 2]", "no JSON object"),
        (b"null", "no JSON object"),
        (b"\x00\xff\xfe" * 100, "no JSON"),
        (b"[" * 200_000, "nested too deep"),
        (b'{"prompt": "' + b"x" * (2 << 20) + b'"}', "more than 2 MiB"),
        (b'{"hook_event_name": "UserPromptSubmit", "prompt": ' + b"9" * 5000 + b"}", "integer"),
        (b'{"hook_event_name": ["UserPromptSubmit"], "prompt": {}}', None),
    ],
)
def test_input_of_any_kind_fails_no_prompt(hook: Hook, told: bytes, logged: str | None) -> None:
    ran = hook(told)
    assert (ran.code, ran.out, ran.err) == (0, b"", b"")
    assert ran.log.count("\n") == (0 if logged is None else 1), ran.log
    assert (logged or "") in ran.log


@pytest.mark.promise("agent.hook-never-fails")
@pytest.mark.parametrize("trouble", _TROUBLES)
def test_a_server_that_misbehaves_fails_no_prompt(hook: Hook, trouble: str) -> None:
    _quiet(hook(_told(CLAUDE_PROMPT, prompt=f"fake-{trouble} please"), "--host", "claude-code"), logged="server")


def test_nothing_to_tell_is_nothing_printed_and_no_line_in_the_log(hook: Hook) -> None:
    _quiet(hook(_told(GEMINI_PROMPT, prompt="fake-empty"), "--host", "gemini"), logged="")


@pytest.mark.promise("agent.hook-never-fails")
@pytest.mark.parametrize(("closed", "logged"), [("<&-", "Bad file"), (">&-", "Bad file"), ("<&- >&- 2>&-", "Bad file")])
def test_closed_streams_fail_no_prompt(hook: Hook, closed: str, logged: str) -> None:
    command = ("sh", "-c", f'exec "$0" "$@" {closed}', sys.executable, "-I", "-S", hookrun_path())
    _quiet(hook(_told(CLAUDE_PROMPT), command=command), logged=logged)


@pytest.mark.promise("agent.hook-never-fails")
def test_a_host_that_does_not_read_the_answer_fails_nothing(fake_home: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        ended = subprocess.run(
            [sys.executable, "-I", "-S", hookrun_path()], input=_told(CLAUDE_PROMPT), stdout=writing, stderr=subprocess.PIPE,
            env={**os.environ, "MEMDIR_HOME": str(fake_home)}, timeout=20, check=False,
        )  # fmt: skip
    finally:
        os.close(writing)
    assert (ended.returncode, ended.stderr) == (0, b"")


@pytest.mark.promise("agent.hook-never-fails")
def test_homes_of_any_kind_fail_no_prompt(hook: Hook, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"")
    for home in ("relative/home", str(file), "/proc/nowhere", "/dev/null/x"):
        ran = hook(_told(CLAUDE_PROMPT), env={"MEMDIR_HOME": home})
        assert (ran.code, ran.out, ran.err) == (0, b"", b""), home


def test_a_wrong_key_and_a_server_that_is_not_there_are_told_in_the_log(hook: Hook) -> None:
    _quiet(hook(_told(CLAUDE_PROMPT), env={"MEMDIR_API_KEY": "wrong"}), logged="HTTP 401")
    elsewhere = {"MEMDIR_SERVER_URL": "http://127.0.0.1:1", "MEMDIR_API_KEY": "k"}
    _quiet(hook(_told(CLAUDE_PROMPT), env=elsewhere), logged="cannot be reached")


def test_a_server_that_the_environment_names_is_asked(hook: Hook, fake_home: Path, tmp_path: Path) -> None:
    url, key = _server_of(fake_home)
    ran = hook(_told(CLAUDE_PROMPT), home=tmp_path, env={"MEMDIR_SERVER_URL": url, "MEMDIR_API_KEY": key})
    assert b"additionalContext" in ran.out


def _server_of(home: Path) -> tuple[str, str]:
    stated = json.loads((home / "state" / "server.json").read_bytes())
    return stated["url"], json.loads((home / "config" / "credentials.json").read_bytes())["api_key"]


def test_a_server_that_was_logged_in_to_is_asked_through_the_client(
    fake_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMDIR_HOME", str(tmp_path))
    url, key = _server_of(fake_home)
    login = tmp_path / "config" / "login.json"
    login.parent.mkdir()
    login.write_text(json.dumps({"url": url, "api_key": key, "ca_file": ""}))
    body = hookcall.written({"prompt": 'logged "in"', "renewed": True, "limit": 3, "project": None})
    with pytest.raises(hookcall.HookCallError, match="others may read"):
        hookcall.ask(body, timeout_s=10)
    login.chmod(0o600)
    found = hookcall.ask(body, timeout_s=10)
    assert found is not None
    asked = _asked(found["context"])
    assert (asked["prompt"], asked["renewed"], asked["limit"], asked["project"]) == ('logged "in"', True, 3, None)


def test_a_server_named_by_a_folder_that_came_from_elsewhere_is_not_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMDIR_HOME", str(tmp_path / "home"))
    (tmp_path / ".memdir").mkdir()
    file = tmp_path / ".memdir" / "credentials.json"
    file.write_text('{"url": "http://192.0.2.1", "api_key": "k"}')
    file.chmod(0o600)
    (tmp_path / "src").mkdir()
    monkeypatch.chdir(tmp_path / "src")
    with pytest.raises(hookcall.HookCallError, match="you did not log in here"):
        hookcall.ask(b"{}", timeout_s=10)


def test_json_is_read_and_written_as_the_standard_library_does() -> None:
    texts = [
        '{"a": [1, -2.5e3, true, null, "\\u00e9\\n"], "b": {}}',
        " [] ",
        '"x"',
        "NaN",
        "-Infinity",
        "12",
        '{"a": 1, "a": 2}',
    ]
    for text in texts:
        assert repr(hookcall.parsed(text)) == repr(json.loads(text)), text
    for text in ("", "{", '{"a"}', "[1,]", "tru", '"\n"', "{} x", "'a'"):
        with pytest.raises(ValueError, match=r"JSON|Expecting|Invalid|Unterminated|Illegal"):
            hookcall.parsed(text)
    fields = {"a": 'é"\\\n\x00\U0001f600', "b": 7, "c": True, "d": None}
    assert json.loads(hookcall.written(fields)) == {"a": fields["a"], "b": 7, "c": True}


def test_the_log_is_bounded(hook: Hook, tmp_path: Path) -> None:
    log = tmp_path / "home" / "state" / "hook.log"
    log.parent.mkdir(parents=True)
    log.write_bytes(b"x" * (1 << 18) + b"\n")
    hook(b"nonsense", home=tmp_path / "home")
    assert log.read_text().count("\n") == 1
    assert (log.parent / "hook.log.1").stat().st_size == (1 << 18) + 1


# --- in time -----------------------------------------------------------------------------------------------------------


_LIMIT_TRIES = 10
"""A machine that is busy with other tests starts and ends processes late; one run within the limit shows that there is one."""


@pytest.mark.promise("agent.hook-in-time")
@pytest.mark.parametrize("trouble", ["hangs", "trickles"])
def test_a_server_that_does_not_answer_is_left_within_the_limit(hook: Hook, trouble: str) -> None:
    for _ in range(_LIMIT_TRIES):
        ran = hook(_told(CLAUDE_PROMPT, prompt=f"fake-{trouble} x"), "--host", "claude-code", slow=True)
        assert (ran.code, ran.out, ran.err) == (0, b"", b"")
        if ran.wall_ms < LIMIT_MS and ("in time" in ran.log or "took more than" in ran.log):
            return
    pytest.fail(f"{ran.wall_ms:.0f} ms, log: {ran.log!r}")


@pytest.mark.promise("agent.hook-in-time")
def test_a_host_that_never_ends_its_json_is_left_within_the_limit(fake_home: Path) -> None:
    for _ in range(_LIMIT_TRIES):
        began = time.monotonic()
        with subprocess.Popen(
            [sys.executable, "-I", "-S", hookrun_path()], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            env={**os.environ, "MEMDIR_HOME": str(fake_home)},
        ) as running:  # fmt: skip
            assert running.stdout is not None
            assert running.stdout.read() == b""
            assert running.wait(timeout=20) == 0
            wall_ms = (time.monotonic() - began) * 1000
        if wall_ms < LIMIT_MS:
            return
    pytest.fail(f"{wall_ms:.0f} ms")


def test_the_hook_imports_nothing_that_takes_time(fake_home: Path) -> None:
    told = _told(CLAUDE_PROMPT)
    ended = subprocess.run(
        [sys.executable, "-I", "-S", "-X", "importtime", hookrun_path()], input=told, capture_output=True, timeout=20,
        env={**os.environ, "MEMDIR_HOME": str(fake_home)}, check=True,
    )  # fmt: skip
    assert b"additionalContext" in ended.stdout
    imported = {line.rpartition("|")[2].strip() for line in ended.stderr.decode().splitlines()}
    assert "memdir.agents.hook" in imported
    slow = {"re", "json", "typing", "enum", "dataclasses", "socket", "pathlib", "http.client", "argparse", "site", "subprocess"}
    assert not imported & slow


def test_the_hook_is_measured_as_hosts_run_it(fake_home: Path) -> None:
    env = {**os.environ, "MEMDIR_HOME": str(fake_home)}
    run = run_hook("what about authentication", session_id="s", cwd="/", env=env)
    assert run.wall_ms > 0
    assert run.cpu_ms > 0
    assert run_hook("fake-empty", session_id="s", cwd="/", env=env).said == b""
