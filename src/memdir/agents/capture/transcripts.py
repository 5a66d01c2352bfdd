"""Transcripts of agent hosts, read line by line from where the last reading ended.

Formats: Claude Code writes one JSON object a line to `~/.claude/projects/FOLDER/SESSION.jsonl` (`type` user or assistant,
`message` as in the Messages API); Codex to `~/.codex/sessions/YYYY/MM/DD/rollout-….jsonl` (`type` response_item, `payload`
as in the Responses API); Gemini CLI to `~/.gemini/tmp/PROJECT/chats/session-….jsonl` (`type` user or gemini), before 2026
one document with `messages`. As Claude Code 2.1.197, Codex 0.169.0 and Gemini CLI 0.61.0 wrote them in November 2026. What
is no such line is passed over: hosts add kinds of lines with every version.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from memdir.core.errors import UsageError

USER, ASSISTANT, COMMAND = "user", "assistant", "command"
LINE_MAX_BYTES: Final = 8 << 20
FILE_MAX_BYTES: Final = 512 << 20
TEXT_MAX_CHARS: Final = 20_000
"""Of one turn."""
_OUTPUT_MAX_CHARS: Final = 2_000
_CALLS_MAX: Final = 1_000
"""Calls of tools that wait for their results."""
_SHELLS: Final = frozenset({"Bash", "shell", "exec_command", "local_shell", "run_shell_command", "container.exec"})
_NOT_SAID: Final = re.compile(
    r"<(system-reminder|environment_context|session_context|hook_context|user_instructions|memdir-memory|supermemory|command-[a-z]+|local-command-[a-z]+|"
    r"INSTRUCTIONS|permissions instructions)\b.*?(?:</\1>|\Z)",
    re.DOTALL,
)
"""What hosts and hooks put into a user's turn."""
_SUMMED_UP: Final = ("This session is being continued from a previous conversation", "# AGENTS.md instructions", "Caveat: ")
_EXIT: Final = re.compile(r"(?:Exit [Cc]ode:?|exited with code|\"exit_code\":|Process exited with code) ?(\d+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """What somebody said, or a command that was run (`text`) with the head of its output and whether it failed."""

    kind: str
    text: str
    output: str = ""
    failed: bool = False


@dataclass(slots=True)
class Transcript:
    """A session as far as it was read. `offset`: bytes, where its last turn of the user begins; what comes after it is read
    again the next time."""

    turns: list[Turn] = field(default_factory=list)
    session_id: str | None = None
    cwd: str | None = None
    host: str = "unknown"
    offset: int = 0
    calls: dict[str, str] = field(default_factory=dict)
    """Commands whose results did not come yet, by their ids."""
    said: set[str] = field(default_factory=set)
    """Ids of the messages that hosts may write again."""


def read_transcript(path: Path, *, offset: int = 0) -> Transcript:
    """The turns from `offset` on. UsageError for a file that cannot be read, or is too large."""
    try:
        size = path.stat().st_size
        if size > FILE_MAX_BYTES:
            raise UsageError(f"{path} has more than {FILE_MAX_BYTES >> 20} MiB", hint="a transcript of a session is smaller")
        with path.open("rb") as stream:
            if path.suffix == ".json":
                return _document(stream.read())
            found = Transcript(offset=offset if offset <= size else 0)
            stream.seek(found.offset)
            at = found.offset
            while line := stream.readline(LINE_MAX_BYTES):
                if not line.endswith(b"\n"):
                    if len(line) < LINE_MAX_BYTES:
                        break  # still being written
                    while line and not line.endswith(b"\n"):  # one that is too long says nothing that anybody typed
                        at += len(line)
                        line = stream.readline(LINE_MAX_BYTES)
                elif (value := _object(line)) is not None and _take(found, value):
                    found.offset = at
                at += len(line)
            found.cwd = found.cwd or _project_root(path)
            return found
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror or error}", hint="give the transcript of a session") from None


def _project_root(path: Path) -> str | None:
    """Gemini CLI writes the project's folder beside its sessions."""
    try:
        return (path.parent.parent / ".project_root").read_text(encoding="utf-8").strip()[:4_096] or None
    except (OSError, UnicodeDecodeError):
        return None


def _object(line: bytes) -> dict[str, Any] | None:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _take(found: Transcript, value: Mapping[str, Any]) -> bool:
    """Whether a turn of the user begins here."""
    before = len(found.turns)
    if isinstance(value.get("payload"), dict):
        found.host = "codex"
        _codex(found, str(value.get("type")), value["payload"])
    elif isinstance(value.get("message"), dict):
        found.host = "claude-code"
        _claude(found, value)
    elif value.get("type") in ("user", "gemini") and "content" in value:
        found.host = "gemini"
        _gemini(found, value)
    elif "projectHash" in value:
        found.session_id = _text(value.get("sessionId")) or None
    return any(turn.kind == USER for turn in found.turns[before:])


# --- Claude Code -------------------------------------------------------------------------------------------------------


def _claude(found: Transcript, value: Mapping[str, Any]) -> None:
    if value.get("isSidechain") or value.get("isMeta") or value.get("isCompactSummary"):
        return  # what a model told a model
    found.session_id = _text(value.get("sessionId")) or found.session_id
    found.cwd = _text(value.get("cwd")) or found.cwd
    message = value["message"]
    role = message.get("role")
    if role not in (USER, ASSISTANT):
        return
    content = message.get("content")
    if isinstance(content, str):
        _say(found, role, content)
        return
    for block in content if isinstance(content, list) else ():
        if not isinstance(block, dict):
            continue
        kind = block.get("type")
        if kind == "text":
            _say(found, role, _text(block.get("text")))
        elif kind == "tool_use" and isinstance(block.get("input"), dict):
            _call(found, block.get("id"), block.get("name"), block["input"].get("command"))
        elif kind == "tool_result":
            output = _joined(block.get("content"))
            _result(found, block.get("tool_use_id"), output, failed=bool(block.get("is_error")))


# --- Codex -------------------------------------------------------------------------------------------------------------


def _codex(found: Transcript, kind: str, payload: Mapping[str, Any]) -> None:
    if kind in ("session_meta", "turn_context"):
        found.session_id = _text(payload.get("id")) or found.session_id
        found.cwd = _text(payload.get("cwd")) or found.cwd
    if kind != "response_item":
        return
    what = payload.get("type")
    if what == "message" and payload.get("role") in (USER, ASSISTANT):
        _say(found, str(payload["role"]), _joined(payload.get("content")))
    elif what in ("function_call", "local_shell_call"):
        _call(found, payload.get("call_id"), payload.get("name") or "local_shell", _codex_command(payload))
    elif what == "function_call_output":
        output = payload.get("output")
        text = output if isinstance(output, str) else _joined(output.get("content") if isinstance(output, dict) else output)
        status = _EXIT.search(text)
        _result(found, payload.get("call_id"), text, failed=status is not None and status[1] != "0")


def _codex_command(payload: Mapping[str, Any]) -> object:
    arguments = payload.get("arguments")
    given = _object(arguments.encode("utf-8", "replace")) if isinstance(arguments, str) else payload.get("action")
    if not isinstance(given, dict):
        return None
    command = given.get("command") or given.get("cmd")
    if isinstance(command, list):  # ["bash", "-lc", "…"]
        return str(command[-1]) if len(command) == 3 and str(command[1]).startswith("-") else " ".join(map(str, command))
    return command


# --- Gemini CLI --------------------------------------------------------------------------------------------------------


def _gemini(found: Transcript, value: Mapping[str, Any]) -> None:
    """A message; the host writes one again when its tools were called."""
    role = {"user": USER, "gemini": ASSISTANT}.get(str(value.get("type")))
    message_id = value.get("id")
    if role is not None and message_id not in found.said:
        text = _joined(value.get("content"))
        if text and isinstance(message_id, str) and len(found.said) < _CALLS_MAX:
            found.said.add(message_id)
        _say(found, role, text)
    calls = value.get("toolCalls")
    for call in calls if isinstance(calls, list) else ():
        if isinstance(call, dict) and isinstance(call.get("args"), dict):
            _call(found, call.get("id"), call.get("name"), call["args"].get("command"))
            output = "\n".join(_responses(call.get("result")))
            status = _EXIT.search(output)
            failed = call.get("status") == "error" or (status is not None and status[1] != "0")
            _result(found, call.get("id"), output, failed=failed)


def _responses(result: object) -> Iterator[str]:
    for part in result if isinstance(result, list) else ():
        response = part.get("functionResponse") if isinstance(part, dict) else None
        inner = response.get("response") if isinstance(response, dict) else None
        if isinstance(inner, dict):
            yield _text(inner.get("output")) or _text(inner.get("error"))


def _document(data: bytes) -> Transcript:
    """As versions before 2026 wrote it: one JSON document."""
    found = Transcript(host="gemini")
    value = _object(data)
    messages = None if value is None else value.get("messages")
    if value is not None:
        found.session_id = _text(value.get("sessionId")) or None
    for message in messages if isinstance(messages, list) else ():
        if isinstance(message, dict):
            _gemini(found, message)
    return found


# --- turns -------------------------------------------------------------------------------------------------------------


def _say(found: Transcript, kind: str, text: str) -> None:
    said = _NOT_SAID.sub("", text[: 4 * TEXT_MAX_CHARS]).strip() if kind == USER else text.strip()
    if said and not said.startswith(_SUMMED_UP):
        found.turns.append(Turn(kind=kind, text=said[:TEXT_MAX_CHARS]))


def _call(found: Transcript, call_id: object, name: object, command: object) -> None:
    if isinstance(call_id, str) and name in _SHELLS and isinstance(command, str) and len(found.calls) < _CALLS_MAX:
        found.calls[call_id] = command


def _result(found: Transcript, call_id: object, output: str, *, failed: bool) -> None:
    command = found.calls.pop(call_id, None) if isinstance(call_id, str) else None
    if command is not None:
        found.turns.append(Turn(kind=COMMAND, text=command, output=output[:_OUTPUT_MAX_CHARS], failed=failed))


def _joined(content: object) -> str:
    """A text, or the texts of blocks."""
    if isinstance(content, str):
        return content
    parts: Iterator[str] = (
        block if isinstance(block, str) else _text(block.get("text"))
        for block in (content if isinstance(content, list) else ())
        if isinstance(block, str | dict)
    )
    return "\n".join(part for part in parts if part)


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
