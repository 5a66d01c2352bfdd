"""Endpoints that speak the APIs of models and say what a test tells them to: a real host program runs against them without
a model.

Messages (Claude Code), Responses (Codex), generateContent (Gemini CLI): each as far as these programs need it.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

PROGRAMS = {"claude-code": "claude", "codex": "codex", "gemini": "gemini"}
COMMAND = "false # make gen"
"""What the first reply has the host run."""


def program_of(host: str) -> Path:
    """The program of a host in the node_modules that MEMDIR_NODE_MODULES names; skips the test without it."""
    modules = os.environ.get("MEMDIR_NODE_MODULES", "")
    program = Path(modules, ".bin", PROGRAMS[host])
    if not modules or not program.exists():
        pytest.skip(f"MEMDIR_NODE_MODULES names no node_modules with {PROGRAMS[host]}")
    return program


def environment_of(url: str) -> dict[str, str]:
    """What has the hosts ask the model at `url`; Codex by its settings, too, with KEY as the variable of the key."""
    return {
        "ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": "sk-x", "DISABLE_AUTOUPDATER": "1",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "KEY": "x", "GEMINI_API_KEY": "x", "GOOGLE_GEMINI_BASE_URL": url,
        "GEMINI_CLI_TRUST_WORKSPACE": "true",
    }  # fmt: skip


class Scripted(ThreadingHTTPServer):
    """Answers each request of a conversation with the next of `replies`: a text, or None for COMMAND as a call of a tool."""

    daemon_threads = True

    def __init__(self, replies: Sequence[str | None]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.replies = list(replies)
        self.asked: list[str] = []
        """Bodies of the requests."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def next(self) -> str | None:
        return self.replies.pop(0) if self.replies else "Done."


@contextmanager
def scripted(replies: Sequence[str | None]) -> Iterator[Scripted]:
    with Scripted(replies) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


class _Handler(BaseHTTPRequestHandler):
    server: Scripted

    def do_GET(self) -> None:
        self._send([{"models": []}], stream=False)

    def do_HEAD(self) -> None:
        self.send_response(200)
        self.end_headers()

    def do_POST(self) -> None:
        text = self.rfile.read(int(self.headers.get("content-length") or 0)).decode("utf-8", "replace")
        self.server.asked.append(text)
        body = json.loads(text or "{}")
        converses = bool(body.get("tools"))
        if self.path.endswith("/responses"):
            self._send(list(_responses(self.server.next())), stream=True)
        elif "generateContent" in self.path or "GenerateContent" in self.path:
            part = (
                _gemini(self.server.next()) if converses else {"text": '{"complexity_reasoning": "x", "complexity_score": 1}'}
            )
            self._send([_candidate(part)], stream="stream" in self.path)
        elif "messages" in self.path and "count_tokens" not in self.path:
            self._send(list(_messages(self.server.next() if converses else "ok")), stream=True)
        else:
            self._send([{"input_tokens": 1}], stream=False)

    def _send(self, events: Sequence[dict[str, Any]], *, stream: bool) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream" if stream else "application/json")
        self.end_headers()
        for event in events:
            named = f"event: {event['type']}\r\n" if "type" in event else ""
            text = json.dumps(event)
            self.wfile.write((f"{named}data: {text}\r\n\r\n" if stream else text).encode())

    def log_message(self, *_: Any) -> None:
        """Nothing."""


def _messages(reply: str | None) -> Iterator[dict[str, Any]]:
    usage = {"input_tokens": 1, "output_tokens": 1}
    message = {
        "id": "m",
        "type": "message",
        "role": "assistant",
        "model": "x",
        "content": [],
        "stop_reason": None,
        "usage": usage,
    }
    yield {"type": "message_start", "message": message}
    if reply is None:
        block: dict[str, Any] = {"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {}}
        delta = {"type": "input_json_delta", "partial_json": json.dumps({"command": COMMAND, "description": "x"})}
    else:
        block, delta = {"type": "text", "text": ""}, {"type": "text_delta", "text": reply}
    yield {"type": "content_block_start", "index": 0, "content_block": block}
    yield {"type": "content_block_delta", "index": 0, "delta": delta}
    yield {"type": "content_block_stop", "index": 0}
    reason = "tool_use" if reply is None else "end_turn"
    yield {"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": None}, "usage": usage}
    yield {"type": "message_stop"}


def _responses(reply: str | None) -> Iterator[dict[str, Any]]:
    yield {"type": "response.created", "response": {"id": "r"}}
    if reply is None:
        item: dict[str, Any] = {"type": "function_call", "id": "f", "name": "exec_command", "call_id": "c"}
        item["arguments"] = json.dumps({"cmd": COMMAND})
    else:
        item = {"type": "message", "role": "assistant", "id": "m", "content": [{"type": "output_text", "text": reply}]}
    yield {"type": "response.output_item.done", "output_index": 0, "item": item}
    usage: dict[str, Any] = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
    usage |= {"input_tokens_details": None, "output_tokens_details": None}
    yield {"type": "response.completed", "response": {"id": "r", "usage": usage}}


def _gemini(reply: str | None) -> dict[str, Any]:
    if reply is not None:
        return {"text": reply}
    return {"functionCall": {"name": "run_shell_command", "args": {"command": COMMAND, "description": "x"}}}


def _candidate(part: dict[str, Any]) -> dict[str, Any]:
    usage = {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2}
    content = {"role": "model", "parts": [part]}
    return {"candidates": [{"index": 0, "content": content, "finishReason": "STOP"}], "usageMetadata": usage}
