"""Carrying out one operation on a container's tree, inside a transaction that `files` holds."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

from memdir.core.errors import NotFoundError
from memdir.core.ids import new_id
from memdir.core.limits import PATH_MAX_BYTES
from memdir.store.agents import memories as agent_memories
from memdir.store.contents.blobs import EMPTY_HASH, BlobStore
from memdir.store.database import Transaction, fetch
from memdir.store.errors import ConflictError, InvalidError, PreconditionError
from memdir.store.jobs import queue as jobs
from memdir.store.paths import below, checked_path, is_within, suffix, under_memory_paths
from memdir.store.tree import changes
from memdir.store.tree import metadata_conditions as conditions
from memdir.store.tree.containers import next_seq
from memdir.store.tree.idempotency import IdempotencyStore
from memdir.store.tree.operations import (
    Delete,
    Move,
    Operation,
    Outcome,
    Put,
    Remove,
    Require,
    Restore,
    check_if_match,
    check_put,
    check_required,
    request_of,
)
from memdir.store.tree.versions import VersionKeeper, purge, restoring
from memdir.store.tree.view import TreeView
from memdir.store.types import Container, Document


class Step:
    """The operations of one transaction."""

    def __init__(
        self, connection: Transaction, container: Container, now_ms: int, blobs: BlobStore, idempotency: IdempotencyStore
    ) -> None:
        self._connection = connection
        self._tree = TreeView(self._connection, container.id)
        self._container = container
        self._now_ms = now_ms
        self._blobs = blobs
        self._idempotency = idempotency
        self._versions = VersionKeeper(connection, container, now_ms, blobs)
        self.orphans: list[str] = []
        """Places of contents that may have to go after the commit."""
        self.changed = False

    def run(self, operation: Operation) -> Outcome:
        """Carry out one operation, or give the answer recorded under its idempotency key."""
        container_id = self._container.id
        if isinstance(operation, Require):
            check_required(operation, self._tree.by_id(operation.document_id))
            return Outcome(seq=self._tree.last_seq(), count=0)
        key, request = None, b""
        if not isinstance(operation, Remove) and operation.idempotency_key is not None:
            key, request = operation.idempotency_key, request_of(operation)
        known = self._idempotency.recorded(
            self._connection, container_id=container_id, key=key, request=request, now_ms=self._now_ms
        )
        if known is not None:
            document = known.pop("document")
            return Outcome(document=None if document is None else Document(**document), **known)
        match operation:
            case Put():
                outcome = self._put(operation)
            case Move():
                outcome = self._move(operation)
            case Delete():
                outcome = self._delete(operation)
            case Remove():
                outcome = self._remove(operation)
            case Restore():
                outcome = self._restore(operation)
        if key is not None:
            self._idempotency.record(
                self._connection,
                container_id=container_id,
                key=key,
                request=request,
                answer=asdict(outcome),
                now_ms=self._now_ms,
            )
        self.changed = True
        return outcome

    # put

    def _put(self, op: Put, *, document_id: str | None = None) -> Outcome:
        """`document_id` names a document that has to be made."""
        path = None if op.path is None else checked_path(op.path)
        check_put(op)
        current = self._put_target(op, path)
        if op.keeps is not None and (current is None or (current.kind, current.content_hash) != (op.kind, op.keeps)):
            raise PreconditionError(f"{path} does not have the contents that it should keep", current=current)
        former = None
        if current is not None and (current.kind != op.kind):
            self._drop(current)
            former, current = current, None
        container_id = self._container.id
        if path is None:
            seq = self._tree.last_seq()
            revision = 1 if current is None else current.revision + 1
        else:
            seq = revision = next_seq(self._connection, container_id)
        content_hash, size_bytes = (EMPTY_HASH, 0) if op.blob is None else (op.blob.hash, op.blob.size_bytes)
        if op.blob is not None:
            self._blobs.add(self._connection, op.blob)
        elif op.keeps is not None and current is not None:
            content_hash, size_bytes = current.content_hash, current.size_bytes
            self._blobs.hold(self._connection, content_hash)
        document_id = (document_id or self._free_id(op)) if current is None else current.id
        if current is None:
            self._insert(document_id, op, path, revision, content_hash, size_bytes)
            if former is not None:
                self._versions.adopt(former.id, document_id)
        else:
            if current.kind != "dir" and (current.content_hash != content_hash or current.mode != op.mode & 0o7777):
                self.orphans += self._versions.keep(current, "replaced")
            elif current.kind != "dir":
                self.orphans += self._blobs.release(self._connection, [content_hash])
            self._update(current, op, path, revision, content_hash, size_bytes)
        document = self._tree.by_id(document_id)
        assert document is not None
        if path is not None:
            changes.add_put(
                self._connection,
                container_id=container_id,
                seq=seq,
                path=path,
                document_id=document_id,
                kind=op.kind,
                content_hash=content_hash,
                size_bytes=size_bytes,
                mode=document.mode,
                mtime_ns=document.mtime_ns,
                at_ms=self._now_ms,
            )
        if document.status == "queued":
            self._enqueue(document_id, "index", op.priority if size_bytes < jobs.LONG_BYTES else jobs.BULK)
        return Outcome(seq=seq, count=1, created=current is None, document=document)

    def _put_target(self, op: Put, path: str | None) -> Document | None:
        """The document that a put writes to, after its preconditions and the shape of the tree were found right."""
        named = None
        if op.document_id is not None:
            named = self._tree.by_id(op.document_id)
            if named is None or named.container_id != self._container.id:
                raise NotFoundError("the document is gone")
        elif op.custom_id is not None:
            named = self._tree.first("d.container_id = ? and d.custom_id = ?", (self._container.id, op.custom_id))
        elif op.new_id is not None and path is None:
            made = self._tree.by_id(op.new_id)
            named = made if made is not None and made.container_id == self._container.id and made.path is None else None
        if path is None:
            if op.if_none_match and named is not None:
                raise PreconditionError("the document exists", current=named)
            check_if_match(op.if_match, named, "the document")
            return named
        current = self._tree.at(path)
        folder = self._tree.has_children(path)
        if op.if_none_match and (current is not None or (folder and op.kind != "dir")):
            raise PreconditionError(f"{path} exists", current=current)
        check_if_match(op.if_match, current, path)
        self._tree.check_ancestors(path)
        if named is not None and named.path != path:
            if current is not None or named.path is not None:
                raise ConflictError(f"another document stands at {path}", hint="move the document first")
            return named
        is_folder = folder or (current is not None and current.kind == "dir")
        if is_folder != (op.kind == "dir") and (current is not None or folder) and (folder or op.if_match is None):
            raise ConflictError(f"{path} is a {'folder' if is_folder else 'file'}", hint="delete it first")
        return current

    def _free_id(self, op: Put) -> str:
        """For a new document. The wanted id may be that of another one, when a key of idempotency is used again later."""
        return new_id() if op.new_id is None or self._tree.by_id(op.new_id) is not None else op.new_id

    def _insert(
        self,
        document_id: str,
        op: Put,
        path: str | None,
        revision: int,
        content_hash: str,
        size_bytes: int,
    ) -> None:
        self._connection.execute(
            "insert into document (id, container_id, custom_id, path, kind, status, content_hash, size_bytes, mode, mtime_ns, "
            "revision, metadata, task_type, url, created_at_ms, updated_at_ms, content_at_ms) "
            "values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                document_id,
                self._container.id,
                op.custom_id,
                path,
                op.kind,
                "queued" if op.kind == "file" else "done",
                content_hash,
                size_bytes,
                op.mode & 0o7777,
                op.mtime_ns,
                revision,
                json.dumps(dict(op.metadata or {}), ensure_ascii=False),
                op.task_type or "memory",
                op.url,
                self._now_ms,
                self._now_ms,
                self._now_ms,
            ),
        )
        if op.metadata:
            self._record_facets(document_id, op.metadata)

    def _record_facets(self, document_id: str, metadata: Mapping[str, Any]) -> None:
        conditions.record(self._connection, document_id=document_id, container_id=self._container.id, metadata=metadata)

    def _update(
        self,
        current: Document,
        op: Put,
        path: str | None,
        revision: int,
        content_hash: str,
        size_bytes: int,
    ) -> None:
        """Content that is already indexed keeps its chunks and its status."""
        known = op.kind != "file" or (
            current.status in ("embedding", "indexing", "done")
            and current.content_hash == content_hash
            and self._tree.indexed_hash(current.id) == content_hash
            and (current.path is None) == (path is None)
        )
        self._connection.execute(
            "update document set path = ?, custom_id = coalesce(?, custom_id), status = ?, error = ?, content_hash = ?, "
            "size_bytes = ?, mode = ?, mtime_ns = ?, revision = ?, metadata = coalesce(?, metadata), "
            "task_type = coalesce(?, task_type), url = ?, updated_at_ms = ?, "
            "content_at_ms = case when content_hash = ? and mode = ? then content_at_ms else ? end where id = ?",
            (
                path,
                op.custom_id,
                current.status if known else "queued",
                current.error if known else None,
                content_hash,
                size_bytes,
                op.mode & 0o7777,
                op.mtime_ns,
                revision,
                None if op.metadata is None else json.dumps(dict(op.metadata), ensure_ascii=False),
                op.task_type,
                op.url,
                self._now_ms,
                content_hash,
                op.mode & 0o7777,
                self._now_ms,
                current.id,
            ),
        )
        if op.metadata is not None:
            self._record_facets(current.id, op.metadata)
        if known and op.kind == "file" and op.task_type not in (None, current.task_type):
            self._enqueue(current.id, "memory", op.priority)

    # move

    def _move(self, op: Move) -> Outcome:
        source, target = checked_path(op.from_path), checked_path(op.path)
        if source == target:
            raise InvalidError("a move needs two different paths")
        if is_within(target, source):
            raise InvalidError(f"{source} cannot be moved into itself")
        current = self._tree.at(source)
        folder = self._tree.has_children(source)
        if current is None and not folder:
            raise NotFoundError(f"there is nothing at {source}")
        check_if_match(op.if_match, current, source)
        self._tree.check_ancestors(target)
        replaced = self._move_target(op, target, folder or (current is not None and current.kind == "dir"))
        if replaced is not None:
            self._drop(replaced)
        seq = next_seq(self._connection, self._container.id)
        count = self._rebase(source, target, seq)
        if current is not None:
            self._after_move(op, current, replaced)
        changes.add_move(
            self._connection, container_id=self._container.id, seq=seq, path=target, from_path=source, at_ms=self._now_ms
        )
        self._reconsider_memories(source, target, op.priority)
        self._reconsider_agent_memories(source, target, op.priority)
        # A folder that stood only for what is in it still does: the feed tells a rename and nothing more.
        return Outcome(seq=seq, count=count, created=replaced is None, document=self._tree.at(target))

    def _move_target(self, op: Move, target: str, is_folder: bool) -> Document | None:
        """What the move replaces, as rename(2) would: a file by a file, an empty folder by a folder."""
        if self._tree.has_children(target):
            raise ConflictError(f"{target} is a folder that is not empty")
        standing = self._tree.at(target)
        if standing is None:
            return None
        if not op.replace:
            raise ConflictError(f"{target} exists")
        if (standing.kind == "dir") != is_folder:
            raise ConflictError(f"{target} is a {'folder' if standing.kind == 'dir' else 'file'}")
        return standing

    def _rebase(self, source: str, target: str, seq: int) -> int:
        first, end = below(source)
        scope = (self._container.id, source, first, end)
        growth = len(target.encode()) - len(source.encode())
        condition = "container_id = ? and (path = ? or (path >= ? and path < ?))"
        ((longest,),) = fetch(
            self._connection,
            f"select max(octet_length(path)) from document where {condition}",  # noqa: S608
            scope,
        )
        if longest + growth > PATH_MAX_BYTES:
            raise InvalidError(f"a path below {target} would have more than {PATH_MAX_BYTES} bytes")
        self._connection.execute(
            "update document set path = ? || substr(path, cast(? as integer)), revision = ?, updated_at_ms = ? "  # noqa: S608
            f"where {condition}",
            (target, len(source) + 1, seq, self._now_ms, *scope),
        )
        return self._connection.changes()

    def _after_move(self, op: Move, moved: Document, replaced: Document | None) -> None:
        """A save by rename keeps the client's own name and the history; another extension means another way to cut chunks."""
        if replaced is not None:
            self._versions.adopt(replaced.id, moved.id)
        if replaced is not None and replaced.custom_id is not None and moved.custom_id is None:
            self._connection.execute("update document set custom_id = ? where id = ?", (replaced.custom_id, moved.id))
        if moved.kind == "file" and suffix(op.from_path) != suffix(op.path):
            self._connection.execute(
                "update document set status = 'queued', error = null, indexed_hash = null where id = ?", (moved.id,)
            )
            self._enqueue(moved.id, "index", op.priority)

    def _reconsider_memories(self, source: str, target: str, priority: int) -> None:
        """Documents that came under the memory paths, or left them, are read again."""
        paths = self._container.memory_paths
        touched = [p.rstrip("/") or "/" for p in paths]
        if not any(is_within(p, at) or is_within(at, p) for p in touched for at in (source, target)):
            return
        first, end = below(target)
        rows = fetch(
            self._connection,
            "select id, path from document where container_id = ? and kind = 'file' and (path = ? or (path >= ? and path < ?))",
            (self._container.id, target, first, end),
        )
        for document_id, path in rows:
            before = source + path[len(target) :]
            if under_memory_paths(before, paths) != under_memory_paths(path, paths):
                self._enqueue(document_id, "memory", priority)

    def _reconsider_agent_memories(self, source: str, target: str, priority: int) -> None:
        """Memories of agents go to the project of their new folder; files that came under `/memory/` are read."""
        for document_id in agent_memories.moved(self._connection, self._container.id, source, target):
            self._enqueue(document_id, "index", priority)

    # delete

    def _delete(self, op: Delete) -> Outcome:
        path = checked_path(op.path)
        current = self._tree.at(path)
        folder = self._tree.has_children(path)
        check_if_match(op.if_match, current, path)
        if current is None and not folder:
            raise NotFoundError(f"there is nothing at {path}")
        changed = None if op.if_unchanged_since is None else self._tree.first_changed(path, op.if_unchanged_since)
        if changed is not None:
            raise PreconditionError(f"{changed.path} was changed at {changed.revision}", current=current)
        if folder and not op.recursive:
            raise ConflictError(f"{path} is a folder that is not empty", hint="ask for a recursive delete")
        seq = next_seq(self._connection, self._container.id)
        first, end = below(path)
        if not op.purge:
            self.orphans += self._versions.keep_below(path)
        rows = fetch(
            self._connection,
            "delete from document where container_id = ? and (path = ? or (path >= ? and path < ?)) "
            "returning id, kind, content_hash",
            (self._container.id, path, first, end),
        )
        if op.purge:
            self.orphans += self._blobs.release(self._connection, [row[2] for row in rows if row[1] != "dir"])
            for row in rows:
                self._purge(row[0], None)
            self._purge(None, path)
        changes.add_delete(self._connection, container_id=self._container.id, seq=seq, path=path, at_ms=self._now_ms)
        return Outcome(seq=seq, count=len(rows))

    def _remove(self, op: Remove) -> Outcome:
        document = self._tree.by_id(op.document_id)
        if document is None or document.container_id != self._container.id:
            raise NotFoundError("the document is gone")
        seq = self._tree.last_seq()
        self._connection.execute("delete from document where id = ?", (document.id,))
        if document.kind != "dir":
            self.orphans += self._blobs.release(self._connection, [document.content_hash])
            self._purge(document.id, document.path)
        if document.path is not None and not self._tree.has_children(document.path):
            seq = next_seq(self._connection, self._container.id)
            changes.add_delete(
                self._connection, container_id=self._container.id, seq=seq, path=document.path, at_ms=self._now_ms
            )
        return Outcome(seq=seq, count=1)

    def _drop(self, document: Document) -> None:
        """Take a row away because another takes its place, with all that was derived from it. The caller records the
        history."""
        self.orphans += self._versions.keep(document, "replaced")
        self._connection.execute("delete from document where id = ?", (document.id,))

    def _purge(self, document_id: str | None, path: str | None) -> None:
        self.orphans += purge(self._connection, self._blobs, self._container.id, document_id=document_id, path=path)[1]

    # restore

    def _restore(self, op: Restore) -> Outcome:
        """A former content becomes the newest: an ordinary put. A deleted document comes back as itself."""
        version = self._versions.get(op.version)
        standing = self._tree.by_id(version.document_id)
        put = restoring(version, standing, op, now_ms=self._now_ms)
        if standing is not None:
            return self._put(put)
        if put.path is None or self._tree.at(put.path) is None:
            name = version.custom_id
            taken = self._tree.first("d.container_id = ? and d.custom_id = ?", (self._container.id, name))
            put = replace(put, metadata=version.metadata, custom_id=None if taken else name)
        return self._put(put, document_id=version.document_id)

    def _enqueue(self, document_id: str, kind: str, priority: int) -> None:
        jobs.enqueue(
            self._connection,
            document_id=document_id,
            container_id=self._container.id,
            kind=kind,
            priority=priority,
            now_ms=self._now_ms,
        )
