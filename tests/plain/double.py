"""A server that speaks Supermemory's `/v3` and `/v4` only, and behaves like the public service, its unpleasant sides included.

Documents are processed after they are taken in, one step with every request; what is sent to one that is being processed is
refused (409) or forgotten without a word, as `when_busy` says. Texts come back stripped, with other ends of lines. Times have
whole milliseconds and several changes share one; the clock is a day ahead. Pages have numbers and move under writes. Several
documents may stand at one path. What cannot be processed fails and is dropped later. Faults come on demand or from a seed.
"""

from __future__ import annotations

import copy
import hashlib
import json
import random
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.message import Message
from email.parser import BytesParser
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import httpx

from memdir.client.http import Client
from memdir.core.clock import iso_ms

KEY = "sm_test_key_0123456789abcdef"
DAY_MS = 24 * 3600 * 1000
STEPS = ("queued", "extracting", "chunking", "embedding", "indexing", "done")
POISON = "cannot be processed"
"""A text with this in it fails."""

Answer = tuple[int, Any, dict[str, str]]


@dataclass
class Kept:
    """A document."""

    id: str
    container: str
    content: str
    filepath: str | None
    custom_id: str | None
    metadata: dict[str, Any]
    created_ms: int
    updated_ms: int
    type: str = "text"
    raw: bytes | None = None
    status: str = "queued"
    steps_left: int = 0
    drop_in: int | None = None


@dataclass
class Fault:
    """What happens to the next matching request; see `tests.sync.fake_server.Fault`."""

    matches: Callable[[str, str], bool]
    status: int | None = None
    before: bool = True
    times: int = 1
    headers: dict[str, str] = field(default_factory=dict)


class BrokenError(Exception):
    """The connection breaks."""


class PlainServer:
    """Thread-safe."""

    def __init__(self, *, slow: int = 1, when_busy: str = "refuse", same_times: int = 3, seed: int = 0) -> None:
        """`slow`: steps of the processing; `same_times`: so many changes share a millisecond."""
        self.slow, self.when_busy, self.same_times = slow, when_busy, same_times
        self.lock = threading.RLock()
        self.documents: dict[str, Kept] = {}
        self.requests: list[str] = []
        self.faults: list[Fault] = []
        self.down = False
        self.held = False
        """Nothing is processed any further."""
        self.gives_originals = True
        self.reject: dict[str, int] = {}
        self.hidden: set[str] = set()
        """Paths that lists leave out, although the documents are there."""
        self.between: Callable[[str, str], None] | None = None
        """Called before a request is answered: somebody else may be faster."""
        self.trouble = 0.0
        """The share of requests that go wrong by chance."""
        self.drop_after = 40
        """A failed document is dropped so many requests later."""
        self.hits: list[dict[str, Any]] = []
        """What a search finds."""
        self._random = random.Random(seed)
        self._changes = self._made = self._answered = 0
        self._base_ms = 1_700_000_000_000 + DAY_MS

    # --- for tests -----------------------------------------------------------------------------------------------

    def client(self) -> Client:
        return Client("http://plain", KEY, transport=_Transport(self))

    def fault(self, method: str, path: str, **kwargs: Any) -> None:
        self.faults.append(Fault(matches=lambda verb, url: verb == method and url.startswith(path), **kwargs))

    def put(self, path: str, text: str, *, container: str = "c", metadata: dict[str, Any] | None = None) -> str:
        """Somebody else adds a document, or changes the one at that path; it is processed at once."""
        with self.lock:
            found = next((one for one in self.documents.values() if one.filepath == path and one.container == container), None)
            if found is None:
                found = self._new(container, path, None, metadata or {})
            found.content, found.raw, found.type = _normalised(text), None, "text"
            found.status, found.steps_left = "done", 0
            self._touch(found)
            return found.id

    def put_file(self, path: str, content: bytes, *, container: str = "c") -> str:
        """Somebody else uploads a file."""
        with self.lock:
            made = self._new(container, path, None, {})
            self._store_file(made, content)
            made.status, made.steps_left = "done", 0
            return made.id

    def remove(self, path: str) -> None:
        with self.lock:
            for one in [one for one in self.documents.values() if one.filepath == path]:
                del self.documents[one.id]

    def snapshot(self) -> Callable[[], None]:
        """Remember this state; calling the result puts the server back to it. Its clock goes on."""
        with self.lock:
            kept = copy.deepcopy(self.documents)

        def restore() -> None:
            with self.lock:
                self.documents = copy.deepcopy(kept)

        return restore

    def at(self, path: str) -> list[Kept]:
        with self.lock:
            return [one for one in self.documents.values() if one.filepath == path]

    def paths(self) -> list[str]:
        with self.lock:
            return sorted(one.filepath for one in self.documents.values() if one.filepath is not None)

    def settle(self) -> None:
        """Everything is processed."""
        with self.lock:
            while any(one.status not in ("done", "failed") for one in self.documents.values()):
                self._work()

    # --- answering -----------------------------------------------------------------------------------------------

    def handle(self, method: str, url: str, headers: dict[str, str], body: bytes) -> Answer:
        """The answer to a request; BrokenError when there is none."""
        path = urlsplit(url).path
        with self.lock:
            self.requests.append(f"{method} {path}")
            self._answered += 1
            if self.down:
                raise BrokenError("connection refused")
            if self.between is not None:
                between, self.between = self.between, None
                between(method, path)
            fault = self._fault(method, path)
            if fault is None or not fault.before:
                if not self.held:
                    self._work()
                answer = self._answer(method, url, headers, body)
                if fault is None:
                    return answer
            if fault.status is None:
                raise BrokenError("the connection broke")
            return fault.status, {"error": "on purpose"}, fault.headers

    def _fault(self, method: str, path: str) -> Fault | None:
        for fault in self.faults:
            if fault.times > 0 and fault.matches(method, path):
                fault.times -= 1
                return fault
        if self.trouble and self._random.random() < self.trouble:
            status = self._random.choice((None, None, 500, 503))
            return Fault(matches=lambda *_: True, status=status, before=self._random.random() < 0.5)
        return None

    def _answer(self, method: str, url: str, headers: dict[str, str], body: bytes) -> Answer:
        parts = urlsplit(url)
        path, query = unquote(parts.path), parse_qs(parts.query)
        if path.startswith("/files/"):
            if "authorization" not in headers:
                return 401, {"error": "no key"}, {}
            return self._original(path.removeprefix("/files/"))
        if headers.get("authorization") != f"Bearer {KEY}":
            return 401, {"error": "no such key"}, {}
        calls: dict[tuple[str, str], Callable[[], Answer]] = {
            ("POST", "/v3/documents/list"): lambda: self._list(json.loads(body)),
            ("GET", "/v3/documents/processing"): lambda: self._processing(query["containerTags"][0].split(",")),
            ("DELETE", "/v3/documents/bulk"): lambda: self._delete_many(json.loads(body)),
            ("POST", "/v3/documents"): lambda: self._add(json.loads(body), json.loads(body)["content"], None),
            ("POST", "/v3/documents/file"): lambda: self._add_file(*_form(headers["content-type"], body)),
            ("POST", "/v4/search"): lambda: (200, {"results": self.hits, "timing": 3.5, "total": len(self.hits)}, {}),
            ("POST", "/v4/profile"): lambda: (200, {"profile": {"static": ["likes tea"], "dynamic": []}}, {}),
        }
        call = calls.get((method, path))
        if call is None and path.startswith("/v3/documents/"):
            return self._one(method, path.removeprefix("/v3/documents/"), body)
        return call() if call is not None else (404, {"error": f"no route {path}"}, {})

    def _one(self, method: str, name: str, body: bytes) -> Answer:
        name, _, more = name.partition("/")
        found = self.documents.get(name) or next((one for one in self.documents.values() if one.custom_id == name), None)
        if found is None:
            return 404, {"error": "no such document"}, {}
        if more == "file-url" and method == "GET":
            if found.raw is None or not self.gives_originals:
                return 404, {"error": "it has no file"}, {}
            return 200, {"url": f"/files/{found.id}"}, {}
        if method == "GET" and not more:
            return 200, self._wire(found, whole=True), {}
        if method == "DELETE" and not more:
            del self.documents[found.id]
            return 204, b"", {}
        if method == "PATCH" and not more:
            return self._change(found, json.loads(body))
        return 404, {"error": "no such call"}, {}

    # --- documents -----------------------------------------------------------------------------------------------

    def _add(self, request: dict[str, Any], text: str | None, content: bytes | None) -> Answer:
        refused = self._refused(request.get("filepath"), text)
        if refused is not None:
            return refused
        custom_id = request.get("customId")
        found = next((one for one in self.documents.values() if custom_id and one.custom_id == custom_id), None)
        if found is not None and found.status not in ("done", "failed"):
            return self._busy(found)
        if found is None:
            found = self._new(request["containerTag"], request.get("filepath"), custom_id, {})
        found.metadata = request.get("metadata") or {}
        found.filepath = request.get("filepath") or found.filepath
        if content is not None:
            self._store_file(found, content)
        else:
            assert text is not None
            found.content, found.raw, found.type = _normalised(text), None, "text"
        self._begin(found)
        return 200, {"id": found.id, "status": found.status}, {}

    def _add_file(self, fields: dict[str, Any], content: bytes) -> Answer:
        return self._add(fields | {"metadata": json.loads(fields.get("metadata") or "{}")}, None, content)

    def _change(self, found: Kept, request: dict[str, Any]) -> Answer:
        text = request.get("content")
        refused = self._refused(request.get("filepath") or found.filepath, text)
        if refused is not None:
            return refused
        if found.status not in ("done", "failed"):
            return self._busy(found)
        found.metadata = request.get("metadata", found.metadata)
        found.filepath = request.get("filepath", found.filepath)
        if text is not None:
            found.content, found.raw, found.type = _normalised(text), None, "text"
            self._begin(found)
        else:
            self._touch(found)
        return 200, {"id": found.id, "status": found.status}, {}

    def _refused(self, path: str | None, text: str | None) -> Answer | None:
        if path in self.reject:
            return self.reject[path], {"error": "refused on purpose"}, {}
        if text is not None and (not text.strip() or "\0" in text):
            return 400, {"error": "content is required"}, {}
        return None

    def _busy(self, found: Kept) -> Answer:
        if self.when_busy == "refuse":
            return 409, {"error": "the document is still being processed"}, {}
        return 200, {"id": found.id, "status": found.status}, {}

    def _new(self, container: str, path: str | None, custom_id: str | None, metadata: dict[str, Any]) -> Kept:
        self._made += 1
        now_ms = self._now_ms()
        number = hashlib.sha256(str(self._made).encode()).hexdigest()[:22]
        made = Kept(
            id=number, container=container, content="", filepath=path, custom_id=custom_id, metadata=metadata,
            created_ms=now_ms, updated_ms=now_ms,
        )  # fmt: skip
        self.documents[made.id] = made
        return made

    def _store_file(self, found: Kept, content: bytes) -> None:
        try:
            text, kind = content.decode(), "text"
        except UnicodeDecodeError:
            text, kind = f"What a model says of {len(content)} bytes.", "pdf"
        found.raw, found.content, found.type = content, _normalised(text), kind

    def _begin(self, found: Kept) -> None:
        found.status, found.steps_left, found.drop_in = "queued", self.slow, None
        self._touch(found)
        if not self.slow:
            self._finish(found)

    def _work(self) -> None:
        for found in list(self.documents.values()):
            if found.drop_in is not None:
                found.drop_in -= 1
                if found.drop_in <= 0:
                    del self.documents[found.id]
            elif found.status not in ("done", "failed"):
                found.steps_left -= 1
                found.status = STEPS[max(0, min(4, len(STEPS) - 1 - found.steps_left))]
                if found.steps_left <= 0:
                    self._finish(found)

    def _finish(self, found: Kept) -> None:
        failed = POISON in found.content
        found.status, found.drop_in = ("failed", self.drop_after) if failed else ("done", None)
        self._touch(found)

    def _touch(self, found: Kept) -> None:
        self._changes += 1
        found.updated_ms = self._now_ms()

    def _now_ms(self) -> int:
        return self._base_ms + self._changes // self.same_times + self._answered

    def _wire(self, found: Kept, *, whole: bool) -> dict[str, Any]:
        url = f"http://plain/files/{found.id}" if found.raw is not None and self.gives_originals else None
        return {
            "id": found.id, "customId": found.custom_id, "filepath": found.filepath, "title": None, "summary": None,
            "content": found.content if whole else None, "status": found.status, "type": found.type, "url": url,
            "metadata": found.metadata, "containerTags": [found.container], "raw": None,
            "errorMessage": "no text could be made of it" if found.status == "failed" else None,
            "createdAt": iso_ms(found.created_ms), "updatedAt": iso_ms(found.updated_ms),
        }  # fmt: skip

    def _list(self, request: dict[str, Any]) -> Answer:
        limit, page, path = request.get("limit", 50), request.get("page", 1), request.get("filepath")
        if not 1 <= limit <= 200:
            return 400, {"error": "limit"}, {}
        found = [one for one in self.documents.values() if one.container in request["containerTags"]]
        found = [one for one in found if one.filepath not in self.hidden]
        if path is not None:
            found = [
                one for one in found if one.filepath == path or (path.endswith("/") and (one.filepath or "").startswith(path))
            ]
        newest_first = request.get("order", "desc") == "desc"
        key = "updated_ms" if request.get("sort") == "updatedAt" else "created_ms"
        found.sort(key=lambda one: (getattr(one, key), one.id), reverse=newest_first)
        shown = found[(page - 1) * limit : page * limit]
        pagination = {"currentPage": page, "limit": limit, "totalItems": len(found), "totalPages": -(-len(found) // limit)}
        return 200, {"memories": [self._wire(one, whole=False) for one in shown], "pagination": pagination}, {}

    def _processing(self, containers: list[str]) -> Answer:
        found = [one for one in self.documents.values() if one.container in containers and one.status not in ("done", "failed")]
        return 200, {"documents": [self._wire(one, whole=False) for one in found], "totalCount": len(found)}, {}

    def _delete_many(self, request: dict[str, Any]) -> Answer:
        ids = request["ids"]
        if len(ids) > 100:
            return 400, {"error": "at most 100 ids"}, {}
        count = sum(self.documents.pop(name, None) is not None for name in ids)
        return 200, {"success": count == len(ids), "deletedCount": count}, {}

    def _original(self, document_id: str) -> Answer:
        found = self.documents.get(document_id)
        return (404, {"error": "gone"}, {}) if found is None or found.raw is None else (200, found.raw, {})


def _normalised(text: str) -> str:
    return text.replace("\r\n", "\n").strip()


def _form(content_type: str, body: bytes) -> tuple[dict[str, Any], bytes]:
    """The fields and the file of a multipart form."""
    message: Message = BytesParser().parsebytes(b"Content-Type: " + content_type.encode() + b"\r\n\r\n" + body)
    fields: dict[str, Any] = {}
    content = b""
    boundary = content_type.split("boundary=")[1].encode()
    for part in body.split(b"--" + boundary)[1:-1]:
        head, _, value = part.removeprefix(b"\r\n").partition(b"\r\n\r\n")
        disposition = BytesParser().parsebytes(head)
        name = disposition.get_param("name", header="content-disposition")
        if name == "file":
            content = value.removesuffix(b"\r\n")
        else:
            fields[str(name)] = value.removesuffix(b"\r\n").decode()
    assert message.is_multipart()
    return fields, content


class _Transport(httpx.BaseTransport):
    def __init__(self, server: PlainServer) -> None:
        self._server = server

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        headers = {name.lower(): value for name, value in request.headers.items()}
        try:
            status, body, more = self._server.handle(request.method, str(request.url), headers, request.read())
        except BrokenError as error:
            raise httpx.ReadError(str(error)) from error
        if isinstance(body, bytes):
            return httpx.Response(status, content=body, headers=more)
        return httpx.Response(status, json=body, headers=more)


@contextmanager
def listening(server: PlainServer) -> Iterator[str]:
    """The double behind a real socket on 127.0.0.1; its address."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _do(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            body = self._chunked() if self.headers.get("Transfer-Encoding") else self.rfile.read(length)
            headers = {name.lower(): value for name, value in self.headers.items()}
            try:
                status, answer, more = server.handle(self.command, self.path, headers, body)
            except BrokenError:
                self.close_connection = True
                return
            raw = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
            self.send_response(status)
            for name, value in {"Content-Length": str(len(raw)), "Content-Type": "application/json", **more}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(raw)

        def _chunked(self) -> bytes:
            body = b""
            while size := int(self.rfile.readline().split(b";")[0], 16):
                body += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
            return body

        def log_message(self, *_: object) -> None:
            """Tests are quiet."""

        do_GET = do_POST = do_PATCH = do_DELETE = do_PUT = _do

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    http.daemon_threads = True
    thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{http.server_address[1]}"
    finally:
        http.shutdown()
        thread.join()
        http.server_close()
