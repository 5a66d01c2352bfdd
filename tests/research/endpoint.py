"""Servers on loopback for research: one that speaks OpenAI's chat completions, one with pages and a search."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from memdir.llm.port import Message, Reply, ToolCall
from memdir_bench.research.policy import Policy

Answer = tuple[int, Mapping[str, str], bytes]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    answer: Callable[[str, bytes], Answer]

    def do_GET(self) -> None:
        self._send(b"")

    def do_POST(self) -> None:
        self._send(self.rfile.read(int(self.headers.get("content-length", 0))))

    def _send(self, body: bytes) -> None:
        status, headers, data = type(self).answer(self.path, body)
        self.send_response(status)
        for name, value in {"Content-Length": str(len(data)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)
        self.close_connection = "Content-Length" in headers  # a length that is not the content's: what comes breaks off

    def log_message(self, *_: Any) -> None:
        pass


@contextmanager
def served(answer: Callable[[str, bytes], Answer]) -> Iterator[str]:
    """The address of a server that answers so, until the block ends."""
    handler = type("Handler", (_Handler,), {"answer": staticmethod(answer)})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class ChatEndpoint:
    """`POST /v1/chat/completions` as OpenAI documents it, answered by a model. `failures` are statuses to send first."""

    def __init__(self, model: Any = None, *, failures: list[int] | None = None) -> None:
        self.model = model or Policy()
        self.failures = failures or []
        self.paid = 0
        self.requests: list[dict[str, Any]] = []
        self._lock = threading.Lock()

    def __call__(self, path: str, body: bytes) -> Answer:
        assert path == "/v1/chat/completions"
        with self._lock:
            if self.failures:
                status = self.failures.pop(0)
                return status, {"Retry-After": "0", "Content-Type": "application/json"}, b'{"error":{"message":"busy"}}'
            request = json.loads(body)
            self.requests.append(request)
            system, messages = _messages(request["messages"])
            reply = self.model.ask(system, messages)
            self.paid += 1
        return 200, {"Content-Type": "application/json"}, json.dumps(_completion(request["model"], reply)).encode()


def _messages(given: list[dict[str, Any]]) -> tuple[str, list[Message]]:
    system, messages, names = "", [], {}
    for one in given:
        text = one.get("content") or ""
        if not isinstance(text, str):
            text = "".join(part.get("text", "") for part in text)
        if one["role"] in ("system", "developer"):
            system = text
        elif one["role"] == "tool":
            messages.append(Message(role="tool", text=text, call_id=one["tool_call_id"], name=names[one["tool_call_id"]]))
        elif one["role"] == "assistant":
            calls = []
            for call in one.get("tool_calls") or []:
                names[call["id"]] = call["function"]["name"]
                arguments = json.loads(call["function"]["arguments"])
                calls.append(ToolCall(id=call["id"], name=call["function"]["name"], arguments=arguments))
            messages.append(Message(role="assistant", text=text, calls=tuple(calls)))
        else:
            messages.append(Message(role="user", text=text))
    return system, messages


def _completion(model: str, reply: Reply) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": reply.text or None}
    if reply.calls:
        message["tool_calls"] = [
            {"id": one.id, "type": "function", "function": {"name": one.name, "arguments": json.dumps(one.arguments)}}
            for one in reply.calls
        ]
    usage = {"prompt_tokens": reply.usage.input_tokens, "completion_tokens": reply.usage.output_tokens}
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1_700_000_000,
        "model": model,
        "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls" if reply.calls else "stop"}],
        "usage": usage | {"total_tokens": sum(usage.values())},
    }


class Pages:
    """A web of pages by path, with SearXNG's search at /search. `faults` answers instead, the first so many times."""

    def __init__(self, pages: Mapping[str, bytes], search: Callable[[str], list[tuple[str, str, str]]]) -> None:
        self.pages = pages
        self._search = search
        self.faults: dict[str, list[Answer]] = {}
        self.fetched: list[str] = []
        self.address = ""
        self._lock = threading.Lock()

    def __call__(self, path: str, body: bytes) -> Answer:
        at = urlsplit(path)
        with self._lock:
            self.fetched.append(path)
            if self.faults.get(at.path):
                return self.faults[at.path].pop(0)
        if at.path == "/search":
            found = self._search(parse_qs(at.query)["q"][0])
            results = [{"url": f"{self.address}{url}", "title": title, "content": text} for url, title, text in found]
            return 200, {"Content-Type": "application/json"}, json.dumps({"query": "", "results": results}).encode()
        data = self.pages.get(unquote(at.path))
        if data is None:
            return 404, {"Content-Type": "text/plain"}, b"not here"
        kind = "text/html" if at.path.endswith(".html") else "text/plain"
        return 200, {"Content-Type": kind}, data
