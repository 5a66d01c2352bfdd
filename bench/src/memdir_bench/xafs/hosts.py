"""Installed host programs as the agent, in their headless mode: Claude Code, Codex and Gemini CLI, with their own model and
account. What they did and what it cost is read from the events that they print, one JSON object a line."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from memdir.agents.installers.commands import mcp_command
from memdir.core.errors import UsageError
from memdir_bench.xafs.conditions import run_within
from memdir_bench.xafs.policy import Account, Budget, Step

Event = dict[str, Any]
_END: Final = (
    "Files in drafts/ are no longer valid. Nobody can be asked. End with the answer on a line of its own: the value alone, as "
    "short as possible."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """A host program. `words`: its arguments for a prompt and the calls it may make; `mcp_words`: those that leave it with the
    tool of our MCP server alone, given the server's command; `read`: its answer, with what it cost added to the account."""

    program: str
    words: Callable[[str, Budget], list[str]]
    mcp_words: Callable[[Sequence[str]], list[str]] | None
    read: Callable[[Iterable[Event], Account], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class HostAgent:
    """A host as it is installed here; `more`: further arguments for it, such as which model."""

    name: str
    more: tuple[str, ...] = ()

    def check(self, conditions: Sequence[str]) -> None:
        """UsageError when it is not installed, or cannot run in one of `conditions`."""
        host = HOSTS[self.name]
        if shutil.which(host.program) is None:
            raise UsageError(f"there is no program {host.program} on this machine", hint=f"install {self.name}, and sign in")
        if "shell" in conditions:
            raise UsageError("a host program has a shell of its own", hint="choose plain, mount, mount-without-hint or mcp")
        if "mcp" in conditions and host.mcp_words is None:
            raise UsageError(f"{self.name} cannot be left with the tools of an MCP server alone", hint="claude-code can")

    def answer(
        self, prompt: str, folder: Path, env: Mapping[str, str], *, instructions: str, budget: Budget, memory: str | None
    ) -> tuple[str, Account]:
        """The last line that it says ("" when it says nothing within the budget's time), and what it cost as it counts.
        `memory`: it has the MCP tool for this memory and nothing else. UsageError when it fails at once."""
        host = HOSTS[self.name]
        words = [host.program, *host.words(f"{instructions} {_END}\n\n{prompt}", budget), *self.more]
        if memory is not None:
            assert host.mcp_words is not None
            words += host.mcp_words([*mcp_command(shared=False), "--shell", memory])
        code, printed, told = run_within(words, folder, {**os.environ, **env}, budget.seconds)
        account = Account(context=0)
        said = host.read(_events(printed), account)
        if code and not account.tokens:
            raise UsageError(f"{self.name} ended with {code}", hint=(told or printed).strip()[-300:])
        lines = [line.strip() for line in said.splitlines() if line.strip()]
        return (lines[-1].strip("*`_ .") if lines else ""), account


def _events(printed: str) -> Iterable[Event]:
    for line in printed.splitlines():
        if line.startswith("{"):
            try:
                event = json.loads(line)
            except ValueError:  # the last line of a program that was ended
                continue
            yield event


def _claude_words(prompt: str, budget: Budget) -> list[str]:
    limit = ["--max-turns", str(budget.calls)]
    return ["-p", prompt, "--output-format", "stream-json", "--verbose", *limit, "--allowedTools", "Bash,mcp__memdir__bash"]


def _claude_mcp(server: Sequence[str]) -> list[str]:
    servers = {"mcpServers": {"memdir": {"command": server[0], "args": list(server[1:])}}}
    return ["--strict-mcp-config", "--mcp-config", json.dumps(servers), "--tools", ""]


def _claude(events: Iterable[Event], account: Account) -> str:
    said = ""
    commands: dict[str, str] = {}
    for event in events:
        content = (event.get("message") or {}).get("content")
        for part in content if isinstance(content, list) else ():
            if part.get("type") == "tool_use":
                commands[part["id"]] = str((part.get("input") or {}).get("command", part["name"]))
            elif part.get("type") == "tool_result":
                account.transcript.append(Step(commands.get(part["tool_use_id"], ""), _text(part.get("content")), {}))
        if event.get("type") == "result":
            usage = event.get("usage") or {}
            cached = int(usage.get("cache_read_input_tokens") or 0)
            fresh = int(usage.get("input_tokens") or 0) + int(usage.get("cache_creation_input_tokens") or 0)
            account.tokens_in += fresh + cached
            account.tokens_cached += cached
            account.tokens_out += int(usage.get("output_tokens") or 0)
            account.calls += int(event.get("num_turns") or 1)
            said = str(event.get("result") or "")
    return said


def _codex_words(prompt: str, _: Budget) -> list[str]:
    return ["exec", "--json", "--skip-git-repo-check", "--sandbox", "danger-full-access", prompt]


def _codex(events: Iterable[Event], account: Account) -> str:
    said = ""
    for event in events:
        item = event.get("item") or {}
        if event.get("type") == "item.completed" and item.get("type") == "command_execution":
            account.calls += 1
            account.transcript.append(Step(str(item["command"]), str(item.get("aggregated_output", "")), {}))
        elif event.get("type") == "item.completed" and item.get("type") == "agent_message":
            said = str(item["text"])
        elif event.get("type") == "turn.completed":
            usage = event.get("usage") or {}
            account.calls += 1
            account.tokens_in += int(usage.get("input_tokens") or 0)
            account.tokens_cached += int(usage.get("cached_input_tokens") or 0)
            account.tokens_out += int(usage.get("output_tokens") or 0)
    return said


def _gemini_words(prompt: str, _: Budget) -> list[str]:
    return ["--yolo", "--output-format", "stream-json", "-p", prompt]


def _gemini(events: Iterable[Event], account: Account) -> str:
    said = ""
    commands: dict[str, str] = {}
    for event in events:
        kind = event.get("type")
        if kind == "tool_use":
            commands[event["tool_id"]] = str((event.get("parameters") or {}).get("command", event["tool_name"]))
            said = ""  # what it says between its calls is not the answer
        elif kind == "tool_result":
            account.transcript.append(Step(commands.get(event["tool_id"], ""), _text(event.get("output")), {}))
        elif kind == "message" and event.get("role") == "assistant":
            said += str(event.get("content", ""))
        elif kind == "result":
            stats = event.get("stats") or {}
            account.calls += int(stats.get("tool_calls") or 0) + 1
            account.tokens_in += int(stats.get("input_tokens") or 0)
            account.tokens_cached += int(stats.get("cached") or 0)
            account.tokens_out += int(stats.get("output_tokens") or 0)
    return said


def _text(content: Any) -> str:
    if isinstance(content, list):
        return "\n".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return str(content or "")


HOSTS: Final[dict[str, Host]] = {
    "claude-code": Host(program="claude", words=_claude_words, mcp_words=_claude_mcp, read=_claude),
    "codex": Host(program="codex", words=_codex_words, mcp_words=None, read=_codex),
    "gemini": Host(program="gemini", words=_gemini_words, mcp_words=None, read=_gemini),
}
