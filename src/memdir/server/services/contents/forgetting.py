"""Forgetting: what says something goes from files, former contents, facts, passages and indexes; a receipt finds it again.

What is taken out of a file is the sentence, not more. Files that have no lines to take it out of go as a whole, when that is
asked for. Passages, indexes and the profile follow from the files within seconds.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from memdir.api import forget as wire
from memdir.core.clock import iso_ms
from memdir.core.errors import MemdirError, NotFoundError
from memdir.core.frontmatter import parse
from memdir.core.ids import new_id
from memdir.memory.claims import USER
from memdir.memory.entities import Entities
from memdir.memory.forget import Matches, Removed, holds, phrase, windows, without
from memdir.retrieval.derived_indexes import Build, Rebuilds
from memdir.server.http.access import Caller
from memdir.store.errors import InvalidError
from memdir.store.paths import checked_path, is_within
from memdir.store.tree.operations import Delete, Put, Remove
from memdir.store.types import Container, Document

_PAGE: Final = 500
_FOUND_MAX: Final = 100
_MAKES_TEXTS: Final = ("index", "extract", "memory")
"""Work after which nothing old is left of a document; vectors may follow."""
_READ_MAX: Final = 20_000
_LARGE_BYTES: Final = 32 << 20
"""A file beyond this is looked through in parts, and nothing is taken out of it: it goes as a whole."""
_WHOLE_LINES_MAX: Final = 5000
"""Lines of a whole file whose hashes a receipt holds."""


@dataclass(slots=True)
class _Plan:
    matches: Matches
    """Whether a text says what is to be forgotten."""
    edits: dict[str, tuple[Document, str, list[Removed]]] = field(default_factory=dict)
    """By path: the file, its new text, and what is taken out."""
    whole: list[Document] = field(default_factory=list)
    kept: list[Document] = field(default_factory=list)
    former: list[int] = field(default_factory=list)
    facts: dict[str, str] = field(default_factory=dict)
    texts: list[str] = field(default_factory=list)
    """Of what a receipt holds hashes."""

    @property
    def lines(self) -> list[wire.ForgetLine]:
        return [
            wire.ForgetLine(path=path, line=one.line, text=one.text)
            for path, (_, _, removed) in sorted(self.edits.items())
            for one in removed
        ]


def forget(caller: Caller, rebuilds: Rebuilds, request: wire.ForgetRequest) -> wire.ForgetAnswer:
    """Plan, and without `dry_run` carry it out. Done again, it takes away what came meanwhile."""
    asked = [one for one in (request.text, request.subject, request.path) if one is not None]
    if len(asked) != 1:
        raise InvalidError("give one of text, subject and path")
    container = caller.container(request.container_tag, "read" if request.dry_run else "write")
    plan = _of_path(caller, container, request.path) if request.path is not None else _of_words(caller, container, request)
    lines = plan.lines
    if len(lines) > wire.FORGET_LINES_MAX:
        raise InvalidError(
            f"{len(lines):,} lines say this, more than {wire.FORGET_LINES_MAX:,}", hint="give more words, or forget whole files"
        )
    receipt = None
    if not request.dry_run and (lines or plan.whole or plan.former or plan.facts):
        receipt = _receipt(caller, container, plan)
        _carry_out(caller, container, plan)
        rebuilds.ask([Build(container_id=container.id, name=name) for name in rebuilds.names])
        caller.noted.note("write", container.tag, target=f"forget {receipt.id}")
    return wire.ForgetAnswer(
        lines=lines,
        files=[
            *(wire.ForgetFile(path=one.path or one.id, kept=False) for one in plan.whole),
            *(wire.ForgetFile(path=one.path or one.id, kept=True) for one in plan.kept),
        ],
        former=len(plan.former),
        facts=list(plan.facts.values()),
        receipt=receipt,
    )


def verify(caller: Caller, rebuilds: Rebuilds, request: wire.VerifyRequest) -> wire.VerifyAnswer:
    """Whether what a receipt is about stands anywhere."""
    container = caller.container(request.container_tag, "write")
    key = bytes.fromhex(request.key)
    wanted = {size: frozenset(hashes) for size, hashes in request.windows.items()}
    emptied = caller.store.upkeep().empty_log()
    found: list[str] = []
    for where, text in () if request.only_progress else _everything(caller, container):
        if where not in found and holds(text, wanted, key):
            found.append(where)
        if len(found) == _FOUND_MAX:
            break
    state = rebuilds.state()
    return wire.VerifyAnswer(
        found=found,
        waiting=caller.store.reprocessing.left([container.id], _MAKES_TEXTS),
        building=state.done < state.total,
        log_emptied=emptied,
    )


def _everything(caller: Caller, container: Container) -> Iterator[tuple[str, str]]:
    """All texts of a container, and where each is."""
    store = caller.store
    for document in _documents(caller, container):
        name = document.path or document.id
        yield f"name of {name}", name
        for text in _texts(caller, document.content_hash):
            yield f"file {name}", text
    for one in store.kept_texts.former(container.id):
        for text in _texts(caller, one.content_hash):
            yield f"former content of {one.path}", text
    for _, text in store.kept_texts.facts(container.id):
        yield "fact", text
    yield from store.kept_texts.derived(container.id)


def _documents(caller: Caller, container: Container) -> Iterator[Document]:
    after, more = "", True
    while more:
        page = caller.store.documents.files(container.id, prefix="/", after=after, limit=_PAGE)
        yield from (one for one in page.entries if one.kind == "file")
        after, more = (page.entries[-1].path or "" if page.entries else after), page.has_more
    for ids in caller.store.kept_texts.loose(container.id):
        yield from (one for one in caller.store.documents.many(ids).values() if one.kind == "file")


def _texts(caller: Caller, content_hash: str) -> Iterator[str]:
    """The bytes as text, and what was read of them when they are none."""
    try:
        read = b""
        for piece in caller.store.blobs.pieces(content_hash):
            read += piece
            if len(read) > _LARGE_BYTES:  # the next part begins with what may have been cut
                yield read.decode("utf-8", "surrogateescape")
                read = read[-4 * wire.TEXT_MAX_CHARS :]
        yield read.decode("utf-8", "surrogateescape")
    except NotFoundError:
        return
    extracted = caller.store.extractions.text(content_hash)
    if extracted is not None:
        yield extracted


# what to forget


def _never(_: str) -> bool:
    return False


def _of_words(caller: Caller, container: Container, request: wire.ForgetRequest) -> _Plan:
    words = request.text or request.subject or ""
    if not any(character.isalnum() for character in words):
        raise InvalidError("there are no words to look for")
    is_user = request.subject is not None and Entities(()).named(request.subject) == USER
    matches = _never if is_user else phrase(words)  # nobody is called "me" in their own notes
    plan = _Plan(matches=matches, texts=[] if is_user else [words])
    spans = _said_of(caller, container, request.subject, plan) if request.subject is not None else {}
    for document in _documents(caller, container):
        _look_into(caller, document, spans.get(document.id, []), plan, whole_files=request.whole_files)
    for one in caller.store.kept_texts.former(container.id):
        if any(map(matches, _texts(caller, one.content_hash))):
            plan.former.append(one.version)
    plan.facts |= {fact_id: text for fact_id, text in caller.store.kept_texts.facts(container.id) if matches(text)}
    return plan


def _said_of(caller: Caller, container: Container, subject: str, plan: _Plan) -> dict[str, list[tuple[int, int]]]:
    """Where documents say what is known of somebody, in bytes; such facts go in all their versions."""
    memories = caller.store.memories.latest(container.id, limit=_READ_MAX, forgotten=True)
    entities = Entities(memories)
    name = entities.named(subject)
    about = [one for one in memories if name in entities.names_in(one.candidate)]
    spans: dict[str, list[tuple[int, int]]] = {}
    for memory in about:
        for version in caller.store.memories.versions([memory.root_id]):
            plan.facts[version.id] = version.candidate.text
        for document_id, start, end in caller.store.memories.spans(memory.id):
            spans.setdefault(document_id, []).append((start, end))
    return spans


def _look_into(
    caller: Caller,
    document: Document,
    spans: list[tuple[int, int]],
    plan: _Plan,
    *,
    whole_files: bool,
) -> None:
    matches = plan.matches
    if document.size_bytes > _LARGE_BYTES:
        if _is_in_pieces(caller, document, matches):
            (plan.whole if whole_files else plan.kept).append(document)
        return
    try:
        data = caller.store.blobs.content(document.content_hash)
    except NotFoundError:
        return
    text = data.decode("utf-8", "surrogateescape")
    is_text = document.transcription is None and b"\0" not in data and document.path is not None
    if is_text:
        chars = [(_chars(data, start), _chars(data, end)) for start, end in spans]
        left, removed = without(text, matches, spans=chars)
        if not removed:
            return
        plan.texts += [one.text for one in removed if not matches(one.text) and len(one.text.split()) >= _WORDS_MIN]
        if parse(left)[1].strip() if left.startswith("---") else left.strip():
            plan.edits[document.path or ""] = (document, left, removed)
        else:
            plan.whole.append(document)
    elif spans or any(map(matches, _texts(caller, document.content_hash))):
        (plan.whole if whole_files else plan.kept).append(document)


def _is_in_pieces(caller: Caller, document: Document, matches: Matches) -> bool:
    """Whether a large file holds the words; it is never in memory as a whole."""
    before = b""
    try:
        for piece in caller.store.blobs.pieces(document.content_hash):
            if matches((before + piece).decode("utf-8", "replace")):
                return True
            before = piece[-4 * wire.TEXT_MAX_CHARS :]
    except NotFoundError:
        return False
    return False


def _chars(data: bytes, at: int) -> int:
    return len(data[:at].decode("utf-8", "surrogateescape"))


def _of_path(caller: Caller, container: Container, path: str) -> _Plan:
    path = checked_path(path)
    plan = _Plan(matches=_never)
    lines: list[str] = []
    for document in _documents(caller, container):
        if document.path is not None and is_within(document.path, path):
            plan.whole.append(document)
            for text in _texts(caller, document.content_hash):
                lines += text.splitlines()
    for one in caller.store.kept_texts.former(container.id):
        if one.path is not None and is_within(one.path, path):
            plan.former.append(one.version)
    if not plan.whole and not plan.former:
        raise NotFoundError(f"nothing stands, or stood, at {path}")
    enough = [line for line in dict.fromkeys(lines) if len(line.split()) >= _WORDS_MIN]
    plan.texts += enough[:_WHOLE_LINES_MAX]
    return plan


_WORDS_MIN: Final = 4
"""Of a line of a whole file: shorter ones stand in other files, too."""


# carrying it out


def _receipt(caller: Caller, container: Container, plan: _Plan) -> wire.Receipt:
    key = secrets.token_bytes(32)
    return wire.Receipt(
        id=new_id(),
        container_tag=container.tag,
        at=iso_ms(caller.store.now_ms()),
        lines=len(plan.lines),
        files=len(plan.whole),
        former=len(plan.former),
        facts=len(plan.facts),
        key=key.hex(),
        windows=windows(plan.texts, key),
    )


def _carry_out(caller: Caller, container: Container, plan: _Plan) -> None:
    store = caller.store
    for path, (document, left, _) in plan.edits.items():
        _edit(caller, container, path, document, left)
    for document in plan.whole:
        if document.path is None:
            store.files.apply(container, Remove(document_id=document.id))
        else:
            store.files.apply(container, Delete(path=document.path, purge=True))
    store.kept_texts.drop_former(container, plan.former)
    store.kept_texts.drop_facts(container, list(plan.facts))
    store.kept_texts.drop_answers(container, plan.matches)
    store.blobs.collect()


def _edit(caller: Caller, container: Container, path: str, document: Document, left: str) -> None:
    """The file without it; its former contents go."""
    store = caller.store
    with store.blobs.upload(frees=True) as upload:
        upload.write(left.encode("utf-8", "surrogateescape"))
        put = Put(
            path=path, blob=upload.finish(), mode=document.mode, mtime_ns=document.mtime_ns, if_match=document.revision
        )  # fmt: skip
        try:
            store.files.apply(container, put)
        except MemdirError as error:
            raise InvalidError(
                f"{path} was changed meanwhile: {error.message}", hint="what was forgotten before it, is; do it again"
            ) from error
    store.versions.purge(container, document_id=document.id, path=path)
