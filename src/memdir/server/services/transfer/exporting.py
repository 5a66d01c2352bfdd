"""A container as a plain archive, streamed from one moment."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from functools import partial
from typing import Any, Final

from memdir.api import v1
from memdir.core.clock import iso_ms
from memdir.server.archive.members import (
    CONTAINER_FILE,
    DOCUMENTS_FILE,
    FORMAT_NAME,
    FORMAT_VERSION,
    LOOSE_FOLDER,
    MEMORIES_FILE,
    MEMORIES_MAX,
    PIECE_BYTES,
    SIDECAR,
    Member,
)
from memdir.server.archive.writing import written
from memdir.server.http.access import Caller
from memdir.store.errors import ConflictError
from memdir.store.tree.exports import Export
from memdir.store.types import Container

_NAMES_MAX: Final = 100


class ExportStream:
    """The bytes of an archive. `close` lets the contents go that it holds, also half-way; one thread at a time."""

    def __init__(self, caller: Caller, held: Export, form: v1.ArchiveFormat, folder: str) -> None:
        self._held = held
        said = _said(caller, held.container) if folder == "/" else b""
        self._pieces = written(_members(caller, held, folder, said), form)
        self._lock = threading.Lock()
        self._closed = False

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        with self._lock:
            if self._closed:
                raise StopIteration
            return next(self._pieces)

    def close(self) -> None:
        """Let go. Waits for the piece under way."""
        with self._lock:
            if not self._closed:
                self._closed = True
                self._held.__exit__(None, None, None)


def export(caller: Caller, tag: str, form: v1.ArchiveFormat, prefix: str) -> ExportStream:
    """What stands at and below `prefix` now (narrowed to what the key opens)."""
    folder = caller.narrowed(prefix)
    container = caller.container(tag, "read", at=folder)
    held = caller.store.exports.begin(container, folder=folder)
    return ExportStream(caller, held, form, folder)


def _members(caller: Caller, held: Export, folder: str, said: bytes) -> Iterator[Member]:
    sidecar = _free_name(caller, held.container)
    header = _header(caller, held, folder)
    yield _sidecar_file(f"{sidecar}/{CONTAINER_FILE}", json.dumps(header, indent=2, ensure_ascii=False).encode() + b"\n")
    yield Member(
        name=f"{sidecar}/{DOCUMENTS_FILE}",
        kind="file",
        size_bytes=held.manifest_bytes,
        mode=0o644,
        mtime_ns=0,
        content=held.lines,
    )
    if said:
        yield _sidecar_file(f"{sidecar}/{MEMORIES_FILE}", said)
    for entry in held.entries():
        path = entry.get("path")
        yield Member(
            name=f"{sidecar}/{LOOSE_FOLDER}/{entry['id']}" if path is None else path[1:],
            kind=entry["kind"],
            size_bytes=entry["sizeBytes"],
            mode=entry["mode"],
            mtime_ns=entry["mtimeNs"],
            content=partial(caller.store.blobs.pieces, entry["contentHash"]),
        )


def _said(caller: Caller, container: Container) -> bytes:
    """The memories that calls said (those of documents are drawn from them again), as `/v4/memories` takes them."""
    lines = []
    for memory in caller.store.memories.latest(container.id, limit=MEMORIES_MAX):
        if memory.document_id is None:
            fields = {
                "content": memory.candidate.text,
                "isStatic": memory.candidate.kind == "static",
                "metadata": dict(memory.metadata),
                "forgetAfter": None if memory.forget_after_ms is None else iso_ms(memory.forget_after_ms),
                "forgetReason": memory.forget_reason,
            }
            lines.append(json.dumps({name: value for name, value in fields.items() if value not in (None, {})}))
    return "".join(f"{line}\n" for line in lines).encode()


def _free_name(caller: Caller, container: Container) -> str:
    """A name for the sidecar folder that no entry of the container has."""
    for number in range(_NAMES_MAX):
        name = SIDECAR if number == 0 else f"{SIDECAR}-{number}"
        documents = caller.store.documents
        if documents.at(container.id, f"/{name}") is None and not documents.has_children(container.id, f"/{name}"):
            return name
    raise ConflictError(f"the container uses all names from {SIDECAR} to {SIDECAR}-{_NAMES_MAX - 1}")


def _header(caller: Caller, held: Export, folder: str) -> dict[str, Any]:
    header: dict[str, Any] = {
        "format": FORMAT_NAME,
        "version": FORMAT_VERSION,
        "containerTag": held.container.tag,
        "epoch": held.container.epoch,
        "seq": held.seq,
        "folder": folder,
        "entries": held.count,
        "sizeBytes": held.size_bytes,
    }
    if folder == "/":
        header["settings"] = caller.store.containers.settings(held.container.id)
    return header


def _sidecar_file(name: str, content: bytes) -> Member:
    pieces = [content[first : first + PIECE_BYTES] for first in range(0, len(content), PIECE_BYTES)]
    return Member(name=name, kind="file", size_bytes=len(content), mode=0o644, mtime_ns=0, content=lambda: iter(pieces))
