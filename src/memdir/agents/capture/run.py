"""From a transcript or another source into the inbox of the memories: once for the same words, never what was looked at
before."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from memdir.agents.capture.candidates import CANDIDATES_MAX, candidates
from memdir.agents.capture.sources import Found
from memdir.agents.capture.transcripts import read_transcript
from memdir.agents.project import current_project
from memdir.agents.service import IMPORT_ITEMS, AgentMemories
from memdir.core.errors import BusyError, UsageError
from memdir.memory.agent_sessions import Candidate

_FOLDER: Final = "capture"
_NOTES_MAX: Final = 2_000
"""How far so many transcripts were read is known; the oldest are forgotten."""
_HERE: Final = re.compile(
    r"\b(?:this|our|the) (?:repo(?:sitory)?|project|code ?base|team|service|app|package)\b|^our\b|\bwe\b", re.IGNORECASE
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Captured:
    """What came of it. `kept`: said before in another session, and memories now."""

    found: int = 0
    created: int = 0
    kept: int = 0
    refused: tuple[str, ...] = ()

    def __add__(self, more: Captured) -> Captured:
        return Captured(
            found=self.found + more.found, created=self.created + more.created, kept=self.kept + more.kept,
            refused=self.refused + more.refused,
        )  # fmt: skip


def project_folder(memories: AgentMemories, cwd: str | None) -> str | None:
    """What the server calls the project of a folder."""
    try:
        return memories.folder_of(current_project(cwd or "/"), remember=True)
    except ValueError as error:
        raise UsageError(str(error), hint="mend that file") from None


def capture(memories: AgentMemories, file: Path, *, state: Path, keep: bool = False) -> tuple[Captured, list[Candidate]]:
    """What came to a transcript since it was read last, at most CANDIDATES_MAX of a whole session. BusyError while another
    process reads it, UsageError for a file that is none."""
    with _note(state, file) as note:
        read = read_transcript(file, offset=int(note.get("offset", 0)))
        known: list[str] = list(note.get("found", []))
        some = [one for one in candidates(read.turns) if _digest(one) not in known][: CANDIDATES_MAX - len(known)]
        result = Captured()
        if some:
            session = read.session_id or file.stem
            items = _items(some, project_folder(memories, read.cwd), f"capture {read.host}", [f"session {session}"] * len(some))
            result = send(memories, items, keep=keep)
        note |= {"offset": read.offset, "found": known + [_digest(one) for one in some]}
    return result, some


def propose(memories: AgentMemories, found: Sequence[Found], *, source: str, project: str | None, keep: bool) -> Captured:
    """What a source says: into the inbox, or with `keep` among the memories."""
    items = _items([one.candidate for one in found], project, f"import {source}", [one.where for one in found])
    for item, one in zip(items, found, strict=True):
        item["createdAt"] = one.at
    return send(memories, items, keep=keep)


def send(memories: AgentMemories, items: Sequence[dict[str, Any]], *, keep: bool) -> Captured:
    """Sent in requests of at most IMPORT_ITEMS."""
    created = kept = 0
    refused: list[str] = []
    for at in range(0, len(items), IMPORT_ITEMS):
        taken = memories.bring_in(items[at : at + IMPORT_ITEMS], propose=not keep)
        created += taken["created"]
        kept += taken["kept"]
        refused += taken["refused"]
    return Captured(found=len(items), created=created, kept=kept, refused=tuple(refused))


def _items(some: Iterable[Candidate], project: str | None, by: str, where: Sequence[str]) -> list[dict[str, Any]]:
    """As `api.agents.ImportItem` has them. What the user prefers, and no word says that it is meant for this project, is of
    none."""
    return [
        {
            "content": one.content,
            "tags": [one.kind],
            "project": None if one.kind == "preference" and not _HERE.search(one.content) else project,
            "storedBy": by,
            "metadata": {"from": place},
        }
        for one, place in zip(some, where, strict=True)
    ]


def _digest(one: Candidate) -> str:
    return hashlib.sha256(one.content.casefold().encode("utf-8", "replace")).hexdigest()[:16]


@contextmanager
def _note(state: Path, file: Path) -> Iterator[dict[str, Any]]:
    """How far a transcript was read; what the caller changes of it is kept when all went well."""
    folder = state / _FOLDER
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    place = folder / hashlib.sha256(os.fsencode(file.resolve())).hexdigest()[:32]
    with place.open("a+", encoding="utf-8") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise BusyError(f"{file} is being read by another process", hint="try again in a moment") from None
        stream.seek(0)
        try:
            note = json.loads(stream.read() or "{}")
        except ValueError:
            note = {}
        note = note if isinstance(note, dict) else {}
        yield note
        stream.seek(0)
        stream.truncate()
        json.dump(note, stream)
    _trim(folder)


def _trim(folder: Path) -> None:
    entries = sorted(folder.iterdir(), key=lambda one: one.stat().st_mtime)
    for old in entries[:-_NOTES_MAX]:
        old.unlink(missing_ok=True)
