"""The operations on a container's tree: what can be asked for, and what it answers. `step` carries them out."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

from memdir.core.limits import INT64_MAX, SYMLINK_MAX_BYTES
from memdir.store.contents.blobs import StagedBlob
from memdir.store.errors import InvalidError, PreconditionError
from memdir.store.jobs import queue as jobs
from memdir.store.tree.idempotency import request_hash
from memdir.store.types import Document

CUSTOM_ID_MAX_CHARS: Final = 512
METADATA_MAX_BYTES: Final = 64 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Put:
    """Bytes (or a folder, or a symlink's target) for a path, or for a document without a place (`path` None).

    The document is the one at `path`; without a path the one called `document_id` or `custom_id`; else a new one.
    """

    path: str | None
    kind: str = "file"
    blob: StagedBlob | None = None
    """None for a folder, and for a file that keeps its contents."""
    keeps: str | None = None
    """The hash of the contents that the file at `path` must have, and keeps."""
    mode: int = 0o644
    mtime_ns: int = 0
    if_match: int | None = None
    if_none_match: bool = False
    idempotency_key: str | None = None
    priority: int = jobs.INTERACTIVE
    document_id: str | None = None
    custom_id: str | None = None
    new_id: str | None = None
    """The id of the document if it is a new one. One without path and custom id that has it already was made by an earlier
    try of the same request, and is put again."""
    metadata: Mapping[str, Any] | None = None
    """None keeps what is there."""
    task_type: str | None = None
    """`memory` or `superrag`; None keeps what is there."""
    url: str | None = None
    """The content is this address."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """A file, or a folder with all below it, to another path."""

    from_path: str
    path: str
    if_match: int | None = None
    replace: bool = True
    idempotency_key: str | None = None
    priority: int = jobs.INTERACTIVE


@dataclass(frozen=True, slots=True, kw_only=True)
class Delete:
    """A file, or a folder (with all below it when `recursive`)."""

    path: str
    recursive: bool = False
    purge: bool = False
    """For good: no version is kept, and those that were go too."""
    if_match: int | None = None
    if_unchanged_since: int | None = None
    """Only when nothing at or below the path was put or moved there behind this sequence number."""
    idempotency_key: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Remove:
    """A document by its id, wherever it stands, for good: its versions go too. What stands below a folder's row stays."""

    document_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Restore:
    """A version's content, as the newest one of its document (or of what stands at `path`)."""

    version: int
    path: str | None = None
    if_match: int | None = None
    if_none_match: bool = False
    idempotency_key: str | None = None
    priority: int = jobs.INTERACTIVE


@dataclass(frozen=True, slots=True, kw_only=True)
class Require:
    """Changes nothing, and is refused unless the document is still at this revision (and was last changed at this time): put
    before operations that are committed together, it makes all of them depend on that."""

    document_id: str
    revision: int
    updated_at_ms: int | None = None


Operation = Put | Move | Delete | Remove | Restore | Require


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What an operation did. `document` is the new entry of a put or move; `count` the documents it touched."""

    seq: int
    count: int
    created: bool = False
    document: Document | None = None


def check_put(op: Put) -> None:
    """InvalidError for a put that cannot be, whatever stands in the tree."""
    if op.kind not in ("file", "dir", "symlink"):
        raise InvalidError(f"unknown kind {op.kind!r}", hint="file, dir or symlink")
    if op.keeps is not None and (op.kind != "file" or op.blob is not None or op.path is None):
        raise InvalidError("only a file at a path can keep its contents, and then it is given none")
    if (op.blob is None and op.keeps is None) != (op.kind == "dir"):
        raise InvalidError("a folder has no content" if op.kind == "dir" else f"a {op.kind} needs content")
    if op.kind == "symlink" and op.blob is not None and not 0 < op.blob.size_bytes <= SYMLINK_MAX_BYTES:
        raise InvalidError(f"the target of a symlink has 1 to {SYMLINK_MAX_BYTES} bytes")
    if not -INT64_MAX <= op.mtime_ns <= INT64_MAX:
        raise InvalidError("mtimeNs does not fit 64 bits")
    if op.if_match is not None and op.if_none_match:
        raise InvalidError("If-Match and If-None-Match exclude each other")
    if op.custom_id is not None and not 0 < len(op.custom_id) <= CUSTOM_ID_MAX_CHARS:
        raise InvalidError(f"customId has 1 to {CUSTOM_ID_MAX_CHARS} characters")
    if op.custom_id is not None and "\0" in op.custom_id:
        raise InvalidError("customId cannot contain U+0000")
    if op.metadata is not None and len(json.dumps(dict(op.metadata))) > METADATA_MAX_BYTES:
        raise InvalidError(f"metadata can have at most {METADATA_MAX_BYTES} bytes")


def check_if_match(if_match: int | None, current: Document | None, path: str) -> None:
    """PreconditionError unless `current` has the revision asked for."""
    if if_match is None or (current is not None and current.revision == if_match):
        return
    state = "nothing" if current is None else f"revision {current.revision}"
    raise PreconditionError(f"{path} holds {state}, not revision {if_match}", current=current)


def check_required(op: Require, current: Document | None) -> None:
    """PreconditionError unless `current` is the version that `op` names."""
    if current is None:
        raise PreconditionError("the document is gone", current=None)
    if current.revision != op.revision or op.updated_at_ms not in (None, current.updated_at_ms):
        raise PreconditionError("the document was changed meanwhile", current=current)


def request_of(operation: Put | Move | Delete | Restore) -> bytes:
    """What the idempotency key stands for: all but the key itself, the priority, and where the bytes wait."""
    fields = asdict(operation)
    blob = fields.pop("blob", None)
    for name in ("idempotency_key", "priority"):
        fields.pop(name, None)
    for name in ("task_type", "url", "if_unchanged_since", "keeps"):  # younger than the hashes that are stored
        if fields.get(name) is None:
            fields.pop(name, None)
    if isinstance(operation, Restore) and not operation.if_none_match:
        fields.pop("if_none_match")
    return request_hash(type(operation).__name__, sorted(fields.items()), blob and blob["hash"])
