"""FakeServer: the `/v1` semantics in memory, behind the real client, with faults on demand.

It is an httpx transport, so that requests and answers pass through the real `Client` and its wire models. Everything a real
server promises is here: gap-free sequence numbers, revisions, preconditions, implicit folders, idempotency keys, long polls.
"""

from __future__ import annotations

import base64
import hashlib
import json
import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import unquote

import httpx

from memdir.client.http import Client

KEY = "md_test_key_0123456789abcdef"


@dataclass(frozen=True)
class Entry:
    kind: str
    content: bytes
    mode: int
    mtime_ns: int
    revision: int
    document_id: str


@dataclass
class Fault:
    """What happens to the next matching request. `before`: it never reaches the server; else only its answer is lost or
    replaced after it was carried out."""

    matches: Callable[[httpx.Request], bool]
    status: int | None = None
    """Answer with this status instead; None: the connection breaks."""
    before: bool = True
    times: int = 1
    headers: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Version:
    """A former content; `path` is where its document stood."""

    number: int
    path: str
    entry: Entry
    reason: str


class RefusedError(Exception):
    def __init__(self, status: int, error: str, current: Entry | None = None, path: str = "") -> None:
        super().__init__(error)
        self.status, self.error, self.current, self.path = status, error, current, path


class FakeServer:
    def __init__(self) -> None:
        self.lock = threading.Condition()
        self.entries: dict[str, Entry] = {}
        self.changes: list[dict[str, Any]] = []
        self.versions: list[Version] = []
        self.tokens: dict[int, str] = {}
        self.seq = 0
        self.epoch = "epoch-1"
        self.profile_version = 0
        self.answers: dict[str, dict[str, Any]] = {}
        self.faults: list[Fault] = []
        self.requests: list[str] = []
        self.reject: dict[str, int] = {}
        """Puts of these paths are refused with this status."""
        self.in_pipeline: dict[str, str | None] = {}
        """Paths whose documents are not done: None while they are processed, else why they failed."""
        self.feed_from = 0
        """The feed does not reach back before this number (410)."""
        self.down = False
        self.key = KEY
        self._documents = 0
        self._drawn = 0

    # --- for tests -----------------------------------------------------------------------------------------------

    def client(self) -> Client:
        return Client("http://fake", KEY, transport=_Transport(self))

    def tree(self) -> dict[str, tuple[str, bytes]]:
        with self.lock:
            return {path: (entry.kind, entry.content) for path, entry in self.entries.items()}

    def fault(self, method: str, path: str, **kwargs: Any) -> None:
        self.faults.append(
            Fault(matches=lambda request: request.method == method and request.url.path.startswith(path), **kwargs)
        )

    def write(self, path: str, content: bytes, *, kind: str = "file", mode: int = 0o644) -> None:
        """Somebody else puts a file."""
        with self.lock:
            self._put(path, kind, content, mode, 0, None, False)

    def remove(self, path: str) -> None:
        with self.lock:
            self._delete(path, None, True)

    def rename(self, source: str, path: str) -> None:
        with self.lock:
            self._move(source, path, None, True)

    def wipe(self) -> None:
        """A new life: nothing is left."""
        with self.lock:
            self.entries, self.changes, self.tokens, self.seq, self.answers = {}, [], {}, 0, {}
            self.epoch += "x"
            self.lock.notify_all()

    def snapshot(self) -> Callable[[], None]:
        """Remember this state; calling the result restores it (same epoch, older counter)."""
        with self.lock:
            kept = (dict(self.entries), list(self.changes), dict(self.tokens), self.seq)

        def restore() -> None:
            with self.lock:
                self.entries, self.changes, self.tokens, self.seq = dict(kept[0]), list(kept[1]), dict(kept[2]), kept[3]
                self.answers = {}
                self.lock.notify_all()

        return restore

    # --- semantics -----------------------------------------------------------------------------------------------

    def handle(self, request: httpx.Request) -> tuple[int, Any, dict[str, str]]:
        if request.headers.get("Authorization") != f"Bearer {self.key}":
            return 401, {"error": "no such key"}, {}
        return self._route(request)

    def _route(self, request: httpx.Request) -> tuple[int, Any, dict[str, str]]:
        path, query = request.url.path, request.url.params
        if path == "/v1/changes":
            return self._feed(
                int(query["since"]), query.get("token", ""), float(query["wait"]), int(query.get("profileSince", 0)),
                int(query["limit"]),
            )  # fmt: skip
        if path == "/v1/files":
            return self._list(query.get("prefix", "/"), query.get("after", ""), int(query["limit"]))
        if path == "/v1/files:batch":
            body = json.loads(request.content)
            with self.lock:
                results = [self._batch_item(item) for item in body["operations"]]
            return 200, {"results": results}, {}
        if path == "/v1/files:move":
            body = json.loads(request.content)
            with self.lock:
                return self._keyed(
                    body.get("idempotencyKey"),
                    lambda: self._move(body["fromPath"], body["toPath"], body.get("ifMatch"), body.get("replace", True)),
                )
        if path == "/v3/documents/processing":
            with self.lock:
                found = [
                    {"id": entry.document_id, "status": self._status(path), "errorMessage": self.in_pipeline[path]}
                    for path, entry in self.entries.items()
                    if path in self.in_pipeline
                ]
            return 200, {"documents": found, "totalCount": len(found)}, {}
        if path == "/v1/jobs:retry":
            asked = json.loads(request.content)["documentId"]
            with self.lock:
                again = [
                    path for path, entry in self.entries.items() if entry.document_id == asked and self.in_pipeline.get(path)
                ]
                self.in_pipeline.update(dict.fromkeys(again))
            return 200, {"requeued": len(again)}, {}
        if path == "/v4/profile":
            return 200, {"profile": {"static": ["likes tea"], "dynamic": []}}, {}
        return self._contents(request)

    def _contents(self, request: httpx.Request) -> tuple[int, Any, dict[str, str]]:
        path, query = request.url.path, request.url.params
        if path == "/v1/files:read":
            with self.lock:
                found = [self.entries.get(one) for one in json.loads(request.content)["paths"]]
                content = [
                    None if one is None or one.kind == "dir" else base64.b64encode(one.content).decode() for one in found
                ]
            return 200, {"files": [{"status": 404 if one is None else 200, "contentBase64": one} for one in content]}, {}
        if path.startswith("/v1/files/"):
            return self._file(request, unquote(request.url.raw_path.split(b"?")[0].decode()[len("/v1/files") :]))
        if path == "/v1/versions":
            return self._versions(query["path"], int(query["limit"]), int(query.get("before", 1 << 60)))
        if path.startswith("/v1/versions/"):
            return self._version(int(path.rpartition("/")[2]))
        return 404, {"error": f"no route {path}"}, {}

    def _file(self, request: httpx.Request, path: str) -> tuple[int, Any, dict[str, str]]:
        headers, query = request.headers, request.url.params
        match = headers.get("If-Match")
        expected = int(match.strip('"')) if match else None
        with self.lock:
            if request.method == "GET":
                entry = self.entries.get(path)
                if entry is None or entry.kind == "dir":
                    return 404, {"error": "not found"}, {}
                return 200, entry.content, {"ETag": f'"{entry.revision}"'}
            key = headers.get("Idempotency-Key")
            if request.method == "PUT":
                content, mode, mtime_ns = request.content, int(query["mode"]), int(query["mtimeNs"])
                only_new = headers.get("If-None-Match") == "*"
                return self._keyed(key, lambda: self._put(path, query["kind"], content, mode, mtime_ns, expected, only_new))
            if request.method == "DELETE":
                return self._keyed(key, lambda: self._delete(path, expected, query["recursive"] == "true"))
        return 405, {"error": "method"}, {}

    def _keyed(self, key: str | None, action: Callable[[], dict[str, Any]]) -> tuple[int, Any, dict[str, str]]:
        if key is not None and key in self.answers:
            return 200, self.answers[key], {}
        try:
            answer = action()
        except RefusedError as error:
            current = self._wire(error.path, error.current) if error.current else None
            return error.status, {"error": error.error, "current": current}, {}
        if key is not None:
            self.answers[key] = answer
        return 200, answer, {}

    def _batch_item(self, item: dict[str, Any]) -> dict[str, Any]:
        if item["op"] == "put":
            content = base64.b64decode(item.get("contentBase64") or "")
            if "contentHash" in item and item.get("idempotencyKey") not in self.answers:
                found = self.entries.get(item["path"])
                if found is None or found.kind != "file" or hashlib.sha256(found.content).hexdigest() != item["contentHash"]:
                    return {"status": 412, "error": "other contents", "entry": found and self._wire(item["path"], found)}
                content = found.content
            status, answer, _ = self._keyed(
                item.get("idempotencyKey"),
                lambda: self._put(
                    item["path"], item["kind"], content, item["mode"], item["mtimeNs"], item.get("ifMatch"), item["ifNoneMatch"]
                ),
            )
            if status < 300:
                return {"status": status, "entry": answer, "seq": answer["revision"]}
        else:
            status, answer, _ = self._keyed(
                item.get("idempotencyKey"),
                lambda: self._delete(item["path"], item.get("ifMatch"), item["recursive"], item.get("ifUnchangedSince")),
            )
            if status < 300:
                return {"status": status, "seq": answer["seq"]}
        return {"status": status, "error": answer["error"], "entry": answer.get("current")}

    def _check(self, path: str, expected: int | None, only_new: bool) -> None:
        entry = self.entries.get(path)
        if only_new and entry is not None:
            raise RefusedError(412, "exists", entry, path)
        if expected is not None and (entry is None or entry.revision != expected):
            raise RefusedError(412, "another revision", entry, path)

    def _check_ancestors(self, path: str) -> None:
        while (path := path.rpartition("/")[0]) != "":
            if path in self.entries and self.entries[path].kind != "dir":
                raise RefusedError(409, f"{path} is no folder")

    def _put(
        self, path: str, kind: str, content: bytes, mode: int, mtime_ns: int, expected: int | None, only_new: bool
    ) -> dict[str, Any]:
        if path in self.reject:
            raise RefusedError(self.reject[path], "refused on purpose")
        self._check(path, expected, only_new)
        self._check_ancestors(path)
        old = self.entries.get(path)
        if kind != "dir" and (any(p.startswith(path + "/") for p in self.entries) or (old and old.kind == "dir")):
            raise RefusedError(409, f"{path} is a folder")
        self.seq += 1
        self._documents += old is None
        entry = Entry(kind, content, mode, mtime_ns, self.seq, old.document_id if old else f"doc{self._documents}")
        self._keep(path, old, "replaced")
        self.entries[path] = entry
        wire = self._wire(path, entry)
        self._log({"seq": self.seq, "kind": "put", "path": path, "entry": wire})
        return wire

    def _delete(self, path: str, expected: int | None, recursive: bool, since: int | None = None) -> dict[str, Any]:
        below = [p for p in self.entries if p.startswith(path + "/")]
        self._check(path, expected, False)
        if path not in self.entries and not below:
            raise RefusedError(404, "not found")
        if since is not None and any(self.entries[p].revision > since for p in (path, *below) if p in self.entries):
            raise RefusedError(412, f"changed behind {since}", self.entries.get(path), path)
        if below and not recursive:
            raise RefusedError(409, "the folder is not empty")
        for gone in [path, *below]:
            self._keep(gone, self.entries.pop(gone, None), "deleted")
        self.seq += 1
        self._log({"seq": self.seq, "kind": "delete", "path": path})
        return {"seq": self.seq, "deletedCount": len(below) + 1}

    def _move(self, source: str, path: str, expected: int | None, replacing: bool) -> dict[str, Any]:
        self._check(source, expected, False)
        moved = [p for p in self.entries if p == source or p.startswith(source + "/")]
        if not moved:
            raise RefusedError(404, "not found")
        self._check_ancestors(path)
        taken = [p for p in self.entries if p == path or p.startswith(path + "/")]
        if taken and (not replacing or taken != [path]):
            raise RefusedError(409, f"something stands at {path}")
        self.seq += 1
        for old in taken:
            del self.entries[old]
        for old in moved:
            self.entries[path + old[len(source) :]] = replace(self.entries.pop(old), revision=self.seq)
        self._log({"seq": self.seq, "kind": "move", "path": path, "fromPath": source})
        entry = self.entries.get(path) or Entry("dir", b"", 0o755, 0, self.seq, "implicit")
        return {"seq": self.seq, "movedCount": len(moved), "entry": self._wire(path, entry)}

    def _log(self, change: dict[str, Any]) -> None:
        self._drawn += 1
        self.tokens[change["seq"]] = f"token-{self._drawn}"
        self.changes.append(change)
        self.lock.notify_all()

    def _feed(self, since: int, token: str, wait_s: float, profile_since: int, limit: int) -> tuple[int, Any, dict[str, str]]:
        with self.lock:
            if token and since > 0 and token != self.tokens.get(since):
                return 409, {"error": "another history"}, {}
            if since < self.feed_from:
                return 410, {"error": "too old"}, {}
            self.lock.wait_for(lambda: self.seq != since or self.profile_version > profile_since or self.down, timeout=wait_s)
            if self.down:
                raise httpx.ReadError("the server went away")
            found = [change for change in self.changes if change["seq"] > since]
            page = {
                "containerTag": "c", "epoch": self.epoch, "changes": found[:limit], "lastSeq": self.seq,
                "hasMore": len(found) > limit, "profileVersion": self.profile_version,
                "token": self.tokens.get(found[limit - 1]["seq"] if len(found) > limit else self.seq, ""),
            }  # fmt: skip
            return 200, page, {}

    def _list(self, prefix: str, after: str, limit: int) -> tuple[int, Any, dict[str, str]]:
        with self.lock:
            below = prefix.rstrip("/") + "/"
            paths = sorted(path for path in self.entries if path > after and (path == prefix or path.startswith(below)))
            page = paths[:limit]
            return 200, {
                "entries": [self._wire(path, self.entries[path]) for path in page],
                "nextAfter": page[-1] if len(paths) > limit else None, "lastSeq": self.seq, "epoch": self.epoch,
                "token": self.tokens.get(self.seq, ""),
            }, {}  # fmt: skip

    def _keep(self, path: str, entry: Entry | None, reason: str) -> None:
        if entry is not None and entry.kind == "file":
            self.versions.append(Version(len(self.versions) + 1, path, entry, reason))

    def _versions(self, path: str, limit: int, before: int) -> tuple[int, Any, dict[str, str]]:
        """Those of the document at `path`, and of documents that were deleted there."""
        with self.lock:
            here = self.entries.get(path)
            alive = {entry.document_id for entry in self.entries.values()} - {here.document_id if here else ""}
            found = [
                version for version in reversed(self.versions)
                if version.number < before and version.entry.document_id not in alive
                and (version.path == path or (here is not None and version.entry.document_id == here.document_id))
            ][:limit]  # fmt: skip
            rows = [
                {**self._wire(version.path, version.entry), "version": version.number, "reason": version.reason, "endedAt": ""}
                for version in found
            ]
            for row in rows:
                del row["status"]
            return 200, {"versions": rows, "current": self._wire(path, here) if here else None, "nextBefore": None}, {}

    def _version(self, number: int) -> tuple[int, Any, dict[str, str]]:
        with self.lock:
            if not 0 < number <= len(self.versions):
                return 404, {"error": "no such version"}, {}
            return 200, self.versions[number - 1].entry.content, {}

    def _wire(self, path: str, entry: Entry) -> dict[str, Any]:
        return {
            "path": path, "kind": entry.kind, "contentHash": hashlib.sha256(entry.content).hexdigest(),
            "sizeBytes": len(entry.content), "mode": entry.mode, "mtimeNs": entry.mtime_ns, "revision": entry.revision,
            "documentId": entry.document_id, "status": self._status(path), "error": self.in_pipeline.get(path),
        }  # fmt: skip

    def _status(self, path: str) -> str:
        return "done" if path not in self.in_pipeline else "failed" if self.in_pipeline[path] else "embedding"


def transport(server: FakeServer) -> httpx.BaseTransport:
    """What a client sends its requests through."""
    return _Transport(server)


class _Transport(httpx.BaseTransport):
    def __init__(self, server: FakeServer) -> None:
        self._server = server

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        server = self._server
        request.read()
        server.requests.append(f"{request.method} {request.url.path}")
        if server.down:
            raise httpx.ConnectError("connection refused")
        fault = next((fault for fault in server.faults if fault.times > 0 and fault.matches(request)), None)
        if fault is not None:
            fault.times -= 1
            if not fault.before:
                server.handle(request)
            if fault.status is None:
                raise httpx.ReadError("the connection broke")
            return httpx.Response(fault.status, json={"error": "on purpose"}, headers=fault.headers)
        status, body, headers = server.handle(request)
        if isinstance(body, bytes):
            return httpx.Response(status, content=body, headers=headers)
        return httpx.Response(status, json=body, headers=headers)
