"""Taking an archive over into a container: looked at as a whole first, then written in steps that can be repeated."""

from __future__ import annotations

import hashlib
import json
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import IO, Any, Final, Literal

from pydantic import ValidationError

from memdir.api import v1, v4
from memdir.core.errors import MemdirError
from memdir.server.archive.members import LOOSE_FOLDER, MEMORIES_MAX, Member
from memdir.server.archive.reading import Survey, format_of, is_below, opened, survey
from memdir.server.errors import ForbiddenError, text_of
from memdir.server.http.access import Caller
from memdir.server.services.admin import containers
from memdir.server.services.contents import memories
from memdir.server.services.contents.documents import URL_MAX_CHARS
from memdir.store.contents.blobs import EMPTY_HASH, StagedBlob, Upload
from memdir.store.errors import ConflictError, InvalidError, PreconditionError
from memdir.store.jobs.queue import BULK
from memdir.store.tree.operations import CUSTOM_ID_MAX_CHARS, Operation, Put
from memdir.store.types import Container, Document

STEP_ENTRIES: Final = 256
STEP_BYTES: Final = 8 * 1024 * 1024
"""Of one transaction: bounds what a crash repeats, what is held in memory, and how long other writers wait."""
PROBLEMS_MAX: Final = 100
_LINE_MAX_BYTES: Final = 1 << 20
_NAMED_MAX: Final = 5
_SAID: Final = frozenset({"customId", "metadata", "taskType", "url"})


def take_over(
    caller: Caller, tag: str, file: IO[bytes], *, merge: v1.MergePolicy, links: Literal["inside", "all"]
) -> v1.ImportResult:
    """Import an archive. Nothing is written when anything in it is refused."""
    form = format_of(file)
    found = survey(file, form)
    with closing(found):
        _check(caller, found, links)
        said = _said(found.memories)
        container = caller.ensured(tag, "write", at=caller.narrowed("/"))
        fresh = container.last_seq == 0
        if merge == "fail" and not fresh:
            _check_nothing_there(caller, container, found)
        settings = (found.header or {}).get("settings")
        if fresh and isinstance(settings, dict) and caller.key.covers("/"):
            containers.change_settings(caller, tag, settings)
            container = caller.container(tag, "write")
        taking = _Taking(caller=caller, container=container, merge=merge, notes=_Notes.of(found.documents))
        with opened(file, form) as members:
            for member in members:
                taking.add(member, found.sidecar)
        taking.flush()
        for first in range(0, len(said), v4.MEMORIES_MAX):
            memories.create(caller, v4.CreateMemories(container_tag=tag, memories=said[first : first + v4.MEMORIES_MAX]))
        taking.memories = len(said)
    return taking.result(caller.container(tag, "write", at=caller.narrowed("/")).last_seq)


def _said(file: IO[bytes]) -> list[v4.NewMemory]:
    """Memories that calls had said. InvalidError for a line that is none."""
    found: list[v4.NewMemory] = []
    file.seek(0)
    while line := file.readline(_LINE_MAX_BYTES):
        try:
            found.append(v4.NewMemory.model_validate_json(line))
        except ValidationError:
            raise InvalidError(f"the archive's list of memories holds a line that is none: {line[:80]!r}") from None
        if len(found) > MEMORIES_MAX:
            raise InvalidError(f"the archive has more than {MEMORIES_MAX} memories")
    return found


def _check(caller: Caller, found: Survey, links: str) -> None:
    if found.links_outside and links != "all":
        names = ", ".join(repr(path[:100]) for path in found.links_outside[:_NAMED_MAX])
        raise InvalidError(
            f"symlinks in the archive lead out of it: {names}", hint="ask for links=all to take them over as they are"
        )
    outside = next((path for path in found.paths if not caller.key.covers(path)), None)
    if outside is not None:
        raise ForbiddenError(f"this API key may not write {outside[:200]!r}, which is in the archive")


def _check_nothing_there(caller: Caller, container: Container, found: Survey) -> None:
    there = []
    for path, kind in found.paths.items():
        standing = caller.store.documents.at(container.id, path)
        if standing is not None and (standing.kind, kind) != ("dir", "dir"):
            there.append(path)
            if len(there) == _NAMED_MAX:
                break
    if there:
        names = ", ".join(repr(path[:100]) for path in there)
        raise ConflictError(f"something stands there already: {names}", hint="ask for merge=skip or merge=replace")


@dataclass(slots=True, kw_only=True)
class _Notes:
    """What the sidecar says of entries beyond their bytes. Only lines that say something are remembered, by their place."""

    file: IO[bytes]
    places: dict[str, int]
    """Path, or id of a document without one, to the offset of its line."""

    @staticmethod
    def of(file: IO[bytes]) -> _Notes:
        notes = _Notes(file=file, places={})
        file.seek(0)
        offset = 0
        while line := file.readline(_LINE_MAX_BYTES):
            entry = _entry(line)
            name = entry.get("path", entry.get("id"))
            if isinstance(name, str) and ("path" not in entry or not _SAID.isdisjoint(entry)):
                notes.places[name] = offset
            offset += len(line)
        return notes

    def get(self, name: str) -> Put:
        """A put with what is said of an entry; its path and content are still to come."""
        offset = self.places.get(name)
        if offset is None:
            return Put(path=None, priority=BULK)
        self.file.seek(offset)
        entry = _entry(self.file.readline(_LINE_MAX_BYTES))
        custom_id, metadata, url = entry.get("customId"), entry.get("metadata"), entry.get("url")
        usable = isinstance(custom_id, str) and 0 < len(custom_id) <= CUSTOM_ID_MAX_CHARS
        return Put(
            path=None,
            custom_id=custom_id if usable else None,
            metadata=metadata if isinstance(metadata, dict) else None,
            task_type="superrag" if entry.get("taskType") == "superrag" else None,
            url=url if isinstance(url, str) and len(url) <= URL_MAX_CHARS else None,
            priority=BULK,
        )


def _entry(line: bytes) -> dict[str, Any]:
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError):
        entry = None
    if not isinstance(entry, dict):
        raise InvalidError(f"the archive's list of documents holds a line that is none: {line[:80]!r}")
    return entry


@dataclass(slots=True, kw_only=True)
class _Taking:
    """One import under way."""

    caller: Caller
    container: Container
    merge: v1.MergePolicy
    notes: _Notes
    created: int = 0
    replaced: int = 0
    unchanged: int = 0
    skipped: int = 0
    problems: list[v1.ImportProblem] = field(default_factory=list)
    problem_count: int = 0
    memories: int = 0
    _puts: list[Put] = field(default_factory=list)
    _uploads: list[Upload] = field(default_factory=list)
    _bytes: int = 0

    def add(self, member: Member, sidecar: str | None) -> None:
        """Take one member; written with the next step."""
        if sidecar is None or not is_below(member.name, sidecar):
            self._add_entry("/" + member.name, member)
        elif member.name.startswith(f"{sidecar}/{LOOSE_FOLDER}/") and member.kind == "file":
            self._add_loose(member.name.rpartition("/")[2], member)
        if max(len(self._puts), len(self._uploads)) >= STEP_ENTRIES or self._bytes >= STEP_BYTES:
            self.flush()

    def _add_entry(self, path: str, member: Member) -> None:
        standing = self.caller.store.documents.at(self.container.id, path)
        if standing is not None and (self.merge != "replace" or standing.kind == member.kind == "dir"):
            same = standing.kind == member.kind and (member.kind == "dir" or standing.content_hash == _hash_of(member))
            self.unchanged += same
            if not same:
                self.skipped += self.merge == "skip"
                if self.merge == "fail":
                    self._problem(path, "something came to stand there during the import")
            return
        self._put(path, member, standing)

    def _add_loose(self, document_id: str, member: Member) -> None:
        """A document without a place: known again by its custom id, else by its bytes."""
        said = self.notes.get(document_id)
        custom_id = said.custom_id
        documents = self.caller.store.documents
        blob = self._upload(member)
        standing = None if custom_id is None else documents.by_custom_id(self.container.id, custom_id)
        if standing is None and custom_id is None and documents.loose(self.container.id, blob.hash):
            self.unchanged += 1
        elif standing is None or (self.merge == "replace" and standing.path is None and standing.content_hash != blob.hash):
            self._puts.append(replace(said, blob=blob))
        elif standing.content_hash == blob.hash:
            self.unchanged += 1
        elif self.merge == "skip":
            self.skipped += 1
        else:
            self._problem(custom_id or document_id, "another document has this custom id")

    def _put(self, path: str, member: Member, standing: Document | None) -> None:
        said = self.notes.get(path)
        if said.custom_id is not None:
            other = self.caller.store.documents.by_custom_id(self.container.id, said.custom_id)
            if other is not None and other.path != path:
                said = replace(said, custom_id=None)
        blob = None if member.kind == "dir" else self._upload(member)
        if standing is not None and blob is not None and blob.hash == standing.content_hash and _alike(standing, member):
            self.unchanged += 1
            return
        self._puts.append(
            replace(
                said,
                path=path,
                kind=member.kind,
                blob=blob,
                mode=member.mode,
                mtime_ns=member.mtime_ns,
                if_none_match=standing is None,
            )
        )

    def _upload(self, member: Member) -> StagedBlob:
        """The content, read once: a packed archive cannot go back cheaply."""
        upload = self.caller.store.blobs.upload()
        self._uploads.append(upload)
        for piece in member.content():
            upload.write(piece)
        blob = upload.finish()
        self._bytes += 0 if blob.data is None else blob.size_bytes
        return blob

    def flush(self) -> None:
        """Write what was taken, each entry for itself."""
        puts, self._puts = self._puts, []
        uploads, self._uploads = self._uploads, []
        self._bytes = 0
        try:
            operations: list[Operation] = list(puts)
            results = self.caller.store.files.apply_all(self.container, operations) if puts else []
        finally:
            for upload in uploads:
                upload.__exit__(None, None, None)
        for put, result in zip(puts, results, strict=True):
            if not isinstance(result, MemdirError):
                self.created += result.created
                self.replaced += not result.created
            elif isinstance(result, PreconditionError) and self.merge == "skip":
                self.skipped += 1
            else:
                self._problem(put.path or put.custom_id or "", text_of(result))

    def _problem(self, path: str, error: str) -> None:
        self.problem_count += 1
        if len(self.problems) < PROBLEMS_MAX:
            self.problems.append(v1.ImportProblem(path=path, error=error))

    def result(self, last_seq: int) -> v1.ImportResult:
        """What became of the archive."""
        return v1.ImportResult(
            container_tag=self.container.tag,
            created=self.created,
            replaced=self.replaced,
            unchanged=self.unchanged,
            skipped=self.skipped,
            failed_count=self.problem_count,
            failed=self.problems,
            memories=self.memories,
            last_seq=last_seq,
        )


def _alike(standing: Document, member: Member) -> bool:
    return (standing.kind, standing.mode, standing.mtime_ns) == (member.kind, member.mode, member.mtime_ns)


def _hash_of(member: Member) -> str:
    if member.kind == "dir":
        return EMPTY_HASH
    digest = hashlib.sha256()
    for piece in member.content():
        digest.update(piece)
    return digest.hexdigest()
