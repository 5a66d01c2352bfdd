"""The server of the simulated world: the tree of `store.tree.step` in plain dictionaries, without a disk and without JSON.

`test_server.py` runs the same operations against this and against the real store and compares every answer.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from memdir.api import v1
from memdir.client.errors import (
    ClientError,
    ConflictError,
    CursorGoneError,
    NotFoundError,
    PreconditionFailedError,
    RejectedError,
)
from memdir.fs.path import is_within

CONTAINER = "c"
T = TypeVar("T")
EMPTY_HASH = hashlib.sha256(b"").hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """Former contents of a path."""

    number: int
    entry: v1.FileEntry
    reason: str


@dataclass(slots=True)
class Life:
    """Everything that a backup holds."""

    epoch: str
    entries: dict[str, v1.FileEntry] = field(default_factory=dict)
    changes: list[v1.Change] = field(default_factory=list)
    seq: int = 0
    first_seq: int = 0
    """The feed tells what came from this number on."""
    versions: list[Version] = field(default_factory=list)
    contents: dict[str, bytes] = field(default_factory=dict)
    """By hash; never forgotten, as versions keep them."""
    documents: int = 0
    tokens: dict[int, str] = field(default_factory=dict)
    """By the number of the change; another history has another one under the same number."""

    def copy(self) -> Life:
        return Life(
            self.epoch, dict(self.entries), list(self.changes), self.seq, self.first_seq, list(self.versions),
            dict(self.contents), self.documents, dict(self.tokens),
        )  # fmt: skip


class SimServer:
    """One container. Every method raises ClientError as the real client does."""

    def __init__(self, *, page: int) -> None:
        """`page` is how many changes or entries an answer holds at most."""
        self.life = Life("epoch-1")
        self.page = page
        self.changed: Callable[[str], None] = _nobody
        """Hears of every path that is another now."""
        self._answers: dict[str, tuple[object, object]] = {}
        """By idempotency key: what was asked, and the answer."""
        self._lives = 1
        self._told = 0

    # --- what happens to servers ---------------------------------------------------------------------------------

    def forget_answers(self) -> None:
        """A day has passed: keys are not known any more."""
        self._answers.clear()

    def prune(self) -> None:
        """The feed forgets everything up to now but the last change."""
        if self.life.seq:
            self.life.first_seq = self.life.seq
            self.life.changes = self.life.changes[-1:]
            self.life.tokens = {self.life.seq: self.life.tokens[self.life.seq]}

    def wipe(self) -> None:
        """Another, empty life."""
        self._lives += 1
        self.life = Life(f"epoch-{self._lives}")
        self._answers.clear()

    def restore(self, backup: Life, *, new_epoch: bool) -> None:
        """Go back to a backup; `memdir server restore` begins a new epoch, a copied folder does not."""
        self._lives += 1
        self.life = backup.copy()
        if new_epoch:
            self.life.epoch = f"epoch-{self._lives}"
        self._answers.clear()

    # --- changes -------------------------------------------------------------------------------------------------

    def put(
        self, path: str, content: bytes, *, kind: v1.EntryKind = "file", mode: int = 0o644, mtime_ns: int = 0,
        if_match: int | None = None, if_none_match: bool = False, key: str | None = None,
    ) -> tuple[v1.FileEntry, bool]:  # fmt: skip
        """The new entry, and whether it is a new document."""
        content_hash = hashlib.sha256(content).hexdigest()
        asked = ("put", path, content_hash, kind, mode, mtime_ns, if_match, if_none_match)
        return self._once(
            key, asked, lambda: self._put(path, content, content_hash, kind, mode, mtime_ns, if_match, if_none_match)
        )

    def _put(
        self, path: str, content: bytes, content_hash: str, kind: v1.EntryKind, mode: int, mtime_ns: int,
        if_match: int | None, if_none_match: bool,
    ) -> tuple[v1.FileEntry, bool]:  # fmt: skip
        life = self.life
        if kind == "symlink" and not content:
            raise RejectedError("the target of a symlink has 1 to 4095 bytes (HTTP 400)")
        current, has_children = life.entries.get(path), self._has_children(path)
        if if_none_match and (current is not None or (has_children and kind != "dir")):
            raise PreconditionFailedError(f"{path} exists", current=current)
        self._check(path, current, if_match)
        self._check_ancestors(path)
        is_folder = has_children or (current is not None and current.kind == "dir")
        if is_folder != (kind == "dir") and (current is not None or has_children) and (has_children or if_match is None):
            raise ConflictError(f"{path} is a {'folder' if is_folder else 'file'}")
        if current is not None and current.kind != kind:
            self._keep(current, "replaced")
            current = None
        elif current is not None and current.content_hash != content_hash:
            self._keep(current, "replaced")
        life.seq += 1
        if current is None:
            life.documents += 1
        life.contents[content_hash] = content
        entry = v1.FileEntry.model_construct(
            path=path, kind=kind, content_hash=content_hash, size_bytes=len(content), mode=mode & 0o7777, mtime_ns=mtime_ns,
            revision=life.seq, document_id=f"d{life.documents}" if current is None else current.document_id, status="done",
            error=None,
        )  # fmt: skip
        life.entries[path] = entry
        self._log("put", path, entry=entry)
        return entry, current is None

    def delete(
        self, path: str, *, recursive: bool = False, if_match: int | None = None, unchanged_since: int | None = None,
        key: str | None = None,
    ) -> tuple[int, int]:  # fmt: skip
        """The number of the change, and how many entries went."""
        asked = ("delete", path, recursive, if_match, unchanged_since)
        return self._once(key, asked, lambda: self._delete(path, recursive, if_match, unchanged_since))

    def _delete(self, path: str, recursive: bool, if_match: int | None, unchanged_since: int | None) -> tuple[int, int]:
        entries = self.life.entries
        current = entries.get(path)
        below = [other for other in entries if other.startswith(path + "/")]
        self._check(path, current, if_match)
        if current is None and not below:
            raise NotFoundError(f"there is nothing at {path}")
        if unchanged_since is not None and any(
            entries[other].revision > unchanged_since for other in (path, *below) if other in entries
        ):
            raise PreconditionFailedError(f"something was changed after {unchanged_since}", current=current)
        if below and not recursive:
            raise ConflictError(f"{path} is a folder that is not empty")
        gone = below if current is None else [path, *below]
        for other in gone:
            self._keep(entries.pop(other), "deleted")
        self.life.seq += 1
        self._log("delete", path)
        return self.life.seq, len(gone)

    def move(
        self, source: str, path: str, *, if_match: int | None = None, replace: bool = True, key: str | None = None
    ) -> tuple[int, int, v1.FileEntry | None, bool]:
        """The number of the change, how many entries moved, what stands at the new path, and whether nothing stood there."""
        asked = ("move", source, path, if_match, replace)
        return self._once(key, asked, lambda: self._move(source, path, if_match, replace))

    def _move(self, source: str, path: str, if_match: int | None, replace: bool) -> tuple[int, int, v1.FileEntry | None, bool]:
        life, entries = self.life, self.life.entries
        if source == path or path.startswith(source + "/"):
            raise RejectedError(f"{source} cannot be moved to {path} (HTTP 400)")
        current = entries.get(source)
        below = [other for other in entries if other.startswith(source + "/")]
        if current is None and not below:
            raise NotFoundError(f"there is nothing at {source}")
        self._check(source, current, if_match)
        self._check_ancestors(path)
        if self._has_children(path):
            raise ConflictError(f"{path} is a folder that is not empty")
        standing = entries.get(path)
        is_folder = bool(below) or (current is not None and current.kind == "dir")
        if standing is not None:
            if not replace or (standing.kind == "dir") != is_folder:
                raise ConflictError(f"{path} exists")
            self._keep(entries.pop(path), "replaced")
        life.seq += 1
        moved = below if current is None else [source, *below]
        for old in moved:
            new = path + old[len(source) :]
            entries[new] = entries.pop(old).model_copy(update={"path": new, "revision": life.seq})
        self._log("move", path, source=source)
        return life.seq, len(moved), entries.get(path), standing is None  # no entry: it stands only for what is in it

    def _once(self, key: str | None, asked: object, action: Callable[[], T]) -> T:
        """The recorded answer of an earlier try with this key; a refusal is not recorded."""
        known = self._answers.get(key) if key is not None else None
        if known is not None:
            if known[0] != asked:
                raise RejectedError("this idempotency key was used for another request (HTTP 422)")
            return known[1]  # type: ignore[return-value]
        answer = action()
        if key is not None:
            self._answers[key] = (asked, answer)
        return answer

    def _check(self, path: str, current: v1.FileEntry | None, if_match: int | None) -> None:
        if if_match is not None and (current is None or current.revision != if_match):
            raise PreconditionFailedError(f"{path} is not at revision {if_match}", current=current)

    def _check_ancestors(self, path: str) -> None:
        above = path
        while above := above.rpartition("/")[0]:
            found = self.life.entries.get(above)
            if found is not None and found.kind != "dir":
                raise ConflictError(f"{above} is a file, so nothing can stand below it")

    def _has_children(self, path: str) -> bool:
        prefix = path + "/"
        return any(other.startswith(prefix) for other in self.life.entries)

    def _keep(self, entry: v1.FileEntry, reason: str) -> None:
        if entry.kind != "dir":
            self.life.versions.append(Version(number=len(self.life.versions) + 1, entry=entry, reason=reason))

    def _log(self, kind: str, path: str, *, source: str | None = None, entry: v1.FileEntry | None = None) -> None:
        self._told += 1
        self.life.tokens[self.life.seq] = f"t{self._told}"
        self.life.changes.append(
            v1.Change.model_construct(seq=self.life.seq, kind=kind, path=path, from_path=source, entry=entry)
        )
        self.changed(path)

    # --- questions -----------------------------------------------------------------------------------------------

    def feed(self, since: int, token: str = "") -> v1.ChangesPage:
        """One page of what came behind `since`."""
        life = self.life
        if token and since > 0:
            known = life.tokens.get(since)
            if since > life.seq or (known is not None and known != token):
                raise ConflictError(f"change {since} of this history is another one (HTTP 409)")
            if known is None:
                raise CursorGoneError(f"change {since} is not told any more (HTTP 410)")
        if since + 1 < life.first_seq and since < life.seq:
            raise CursorGoneError(f"changes are told from number {life.first_seq} on (HTTP 410)")
        found = [change for change in life.changes if change.seq > since][: self.page]
        last = max(since, life.seq) if len(found) < self.page else found[-1].seq
        return v1.ChangesPage.model_construct(
            container_tag=CONTAINER,
            epoch=life.epoch,
            changes=found,
            last_seq=life.seq,
            has_more=last < life.seq,
            profile_version=0,
            token=life.tokens.get(found[-1].seq if last < life.seq else life.seq, ""),
        )

    def listing(self, prefix: str, after: str | None) -> v1.FilesPage:
        """One page of the entries at and below `prefix`, in path order."""
        paths = sorted(path for path in self.life.entries if is_within(path, prefix) and (after is None or path > after))
        page = paths[: self.page]
        return v1.FilesPage.model_construct(
            entries=[self.life.entries[path] for path in page],
            next_after=page[-1] if len(paths) > len(page) else None,
            last_seq=self.life.seq,
            epoch=self.life.epoch,
            token=self.life.tokens.get(self.life.seq, ""),
        )

    def content(self, path: str) -> tuple[int, bytes]:
        """Revision and bytes of a file or symlink."""
        entry = self.life.entries.get(path)
        if entry is None:
            raise NotFoundError(f"there is nothing at {path}")
        if entry.kind == "dir":
            raise ConflictError(f"{path} is a folder")
        return entry.revision, self.life.contents[entry.content_hash]

    def batch(
        self, operations: Sequence[v1.BatchOperation], contents: Callable[[v1.BatchOperation], bytes]
    ) -> list[v1.BatchItemResult]:
        """Each operation for itself, in order."""
        return [self._batched(operation, contents) for operation in operations]

    def _batched(self, op: v1.BatchOperation, contents: Callable[[v1.BatchOperation], bytes]) -> v1.BatchItemResult:
        key = op.idempotency_key
        try:
            if op.op == "delete":
                seq, _ = self.delete(
                    op.path, recursive=op.recursive, if_match=op.if_match, unchanged_since=op.if_unchanged_since, key=key
                )
                return v1.BatchItemResult.model_construct(status=200, entry=None, seq=seq, error=None)
            if op.op == "move":
                assert op.from_path is not None
                seq, _, entry, created = self.move(
                    op.from_path, op.path, if_match=op.if_match, replace=not op.if_none_match, key=key
                )
                return v1.BatchItemResult.model_construct(status=201 if created else 200, entry=entry, seq=seq, error=None)
            entry, created = self.put(
                op.path, contents(op), kind=op.kind, mode=op.mode, mtime_ns=op.mtime_ns, if_match=op.if_match,
                if_none_match=op.if_none_match, key=key,
            )  # fmt: skip
            return v1.BatchItemResult.model_construct(
                status=201 if created else 200, entry=entry, seq=entry.revision, error=None
            )
        except ClientError as error:
            current = error.current if isinstance(error, PreconditionFailedError) else None
            return v1.BatchItemResult.model_construct(
                status=status_of_refusal(error), entry=current, seq=None, error=error.message
            )


def status_of_refusal(error: ClientError) -> int:
    """The HTTP status that `server.errors` gives it."""
    statuses: dict[type[ClientError], int] = {NotFoundError: 404, ConflictError: 409, PreconditionFailedError: 412}
    return statuses.get(type(error), 422 if "422" in error.message else 400)


def _nobody(path: str) -> None:
    del path
