"""A server that knows one route, `POST /v1/agents/context`, and misbehaves when the prompt's first word asks for it.

Run as `python -m tests.agents.fake_server memdir.server HOME`: the words tell the hook that its process is a server. It writes
`server.json` and the key below HOME, as the real one does, and answers with a block that holds the request itself.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from pydantic import ValidationError

from memdir.api.agents import ContextRequest, ContextResponse

KEY = "key-of-the-fake"
_SHOWN_MAX_CHARS = 4096
FOREVER_S = 30.0
_NEVER = threading.Event()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self._send(200, json.dumps({"pid": os.getpid(), "version": "0"}).encode())

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers["Content-Length"]))
        if self.headers["Authorization"] != f"Bearer {KEY}" or self.path != "/v1/agents/context":
            self._send(401, b'{"error": "wrong key"}')
            return
        try:
            request = ContextRequest.model_validate_json(raw)
        except ValidationError as error:
            self._send(422, json.dumps({"error": str(error)}).encode())
            return
        trouble = request.prompt.partition(" ")[0]
        if trouble.startswith("fake-"):
            self._misbehave(trouble.removeprefix("fake-"))
            return
        if len(request.prompt) > _SHOWN_MAX_CHARS:
            told = f"{len(request.prompt)}: {request.prompt[:100]} … {request.prompt[-100:]}"
            request = request.model_copy(update={"prompt": told})
        shown = request.model_dump_json(by_alias=True)
        block = f"<{request.tag}>\n1. (2026-11-01 [a, ü]) {shown} 日本\n</{request.tag}>\n"
        self._send(200, ContextResponse(context=block, memory_ids=["m1"], left_out=0).model_dump_json(by_alias=True).encode())

    def _misbehave(self, trouble: str) -> None:
        if trouble == "hangs":
            _NEVER.wait(FOREVER_S)
        elif trouble == "trickles":
            self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{")
            for _ in range(int(FOREVER_S / 0.05)):
                self.wfile.write(b" ")
                self.wfile.flush()
                _NEVER.wait(0.05)
        elif trouble == "empty":
            self._send(200, ContextResponse(context="", memory_ids=[], left_out=0).model_dump_json(by_alias=True).encode())
        elif trouble == "busy":
            self._send(503, b'{"error": "the database is locked"}')
        elif trouble == "garbage":
            self._send(200, b"<html>")
        elif trouble == "other":
            self._send(200, b'["not", "an", "object"]')
        elif trouble == "null":
            self._send(200, b'{"context": null}')
        elif trouble == "long":
            self._send(200, json.dumps({"context": "x" * 8001}).encode())
        elif trouble == "endless":
            self._send(200, b" " * (1 << 20))
        elif trouble == "cut":
            self.wfile.write(b'HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{"context"')
            self.close_connection = True
        elif trouble == "lengthless":
            self.wfile.write(b"HTTP/1.1 200 OK\r\n\r\n{}")
            self.close_connection = True
        elif trouble == "not-http":
            self.wfile.write(b"220 mail.example.org ESMTP\r\nContent-Length: 0\r\n\r\n")
            self.close_connection = True
        elif trouble == "gone":
            self.close_connection = True

    def _send(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


def main() -> None:
    home = Path(sys.argv[2])
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server.daemon_threads = True
    for folder in ("state", "config"):
        (home / folder).mkdir(parents=True, exist_ok=True)
    (home / "config" / "credentials.json").write_text(json.dumps({"api_key": KEY}), encoding="utf-8")
    stated = {"url": f"http://127.0.0.1:{server.server_port}", "pid": os.getpid(), "version": "0", "data_dir": str(home)}
    (home / "state" / "server.json").write_text(json.dumps(stated), encoding="utf-8")
    threading.Thread(target=server.serve_forever, daemon=True).start()
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    sys.stdin.read()


if __name__ == "__main__":
    main()
