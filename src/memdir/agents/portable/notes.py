"""Markdown notes with front matter: those of basic-memory, and memories as they lie in a mount.

A note is a memory: its title and its text, observations (`- [category] text #tag (context)`) and relations (`- relation
[[Target]]`) as they stand, for they are words to be found. Tags are those of the front matter and those of observations
(docs.basicmemory.com/concepts/knowledge-format). Read from a file, a folder or a zip.
"""

from __future__ import annotations

import os
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import IO, Final

from memdir.agents.portable.item import BadItemError, Item, Left, PortableError, made
from memdir.core.frontmatter import listed, mapping, parse, single
from memdir.core.limits import MEMORY_MAX_CHARS

NOTE_MAX_BYTES: Final = 4 * MEMORY_MAX_CHARS + (64 << 10)
NOTES_MAX: Final = 200_000
_HIDDEN: Final = "."
_OBSERVATION: Final = re.compile(r"^\s*[-*]\s+\[[^\[\]()]{1,60}\]\s+(.*)$", re.MULTILINE)
_TAG: Final = re.compile(r"(?<!\S)#([A-Za-z][\w/-]{0,60})")
_OWN: Final = frozenset(
    {"title", "type", "permalink", "tags", "project", "created", "modified", "updated", "date", "source", "metadata"}
)
_FORM: Final = frozenset({"id", "accesses", "accessCount"})


def read_text(name: str, source: IO[str], left: Left) -> Iterator[Item | BadItemError]:
    """One note."""
    del left
    yield _note(name, source.read(NOTE_MAX_BYTES + 1).encode())


def read_folder(folder: Path, left: Left) -> Iterator[Item | BadItemError]:
    """Every `.md` below a folder, in the order of the paths; what is hidden is passed over, links are not followed."""
    found: list[Path] = []
    for at, folders, names in os.walk(folder):
        root = Path(at)
        folders[:] = sorted(name for name in folders if not name.startswith(_HIDDEN))
        for name in sorted(names):
            if name.startswith(_HIDDEN):
                continue
            if not name.lower().endswith(".md") or (root / name).is_symlink():
                left.add("files that are no notes")
                continue
            found.append(root / name)
            if len(found) > NOTES_MAX:
                raise PortableError(f"{folder} holds more than {NOTES_MAX:,} notes", hint="import it in parts")
    for path in found:
        yield _note(path.relative_to(folder).as_posix(), _bytes_of(path))


def read_zip(archive: zipfile.ZipFile, left: Left) -> Iterator[Item | BadItemError]:
    """Every `.md` in a zip."""
    for member in sorted(archive.infolist(), key=lambda one: one.filename):
        if member.is_dir() or any(part.startswith(_HIDDEN) for part in PurePosixPath(member.filename).parts):
            continue
        if not member.filename.lower().endswith(".md"):
            left.add("files that are no notes")
        elif member.file_size > NOTE_MAX_BYTES:
            yield _too_long(member.filename, member.file_size)
        else:
            with archive.open(member) as opened:
                yield _note(member.filename, opened.read(NOTE_MAX_BYTES + 1))


def _note(name: str, data: bytes) -> Item | BadItemError:
    if len(data) > NOTE_MAX_BYTES:
        return _too_long(name, len(data))
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        return BadItemError(f"{name}, line {line}: it is no UTF-8", hint="--skip-bad leaves such notes out")
    fields, body = parse(text)
    title, body = single(fields.get("title")), body.strip()
    if title and title.casefold() not in body[: len(title) + 8].casefold():
        body = f"{title}\n\n{body}".strip()
    tags = listed(fields.get("tags"))
    for observed in _OBSERVATION.findall(body):
        tags += _TAG.findall(observed)
    extra = {key: value for key, value in fields.items() if key not in _OWN | _FORM}
    try:
        return made(
            body, name, tags=tags, project=single(fields.get("project")) or single(fields.get("source")),
            created=single(fields.get("created")) or single(fields.get("date")),
            updated=single(fields.get("modified")) or single(fields.get("updated")),
            metadata={"importedFrom": "notes", "note": name, "type": fields.get("type"), "permalink": fields.get("permalink")}
            | extra | mapping(fields.get("metadata")),
        )  # fmt: skip
    except BadItemError as error:
        return error


def _too_long(name: str, size_bytes: int) -> BadItemError:
    return BadItemError(
        f"{name}: the note has {size_bytes:,} bytes, which is no memory", hint="--skip-bad leaves such notes out"
    )  # fmt: skip


def _bytes_of(path: Path) -> bytes:
    with path.open("rb") as opened:
        return opened.read(NOTE_MAX_BYTES + 1)
