"""The agent hint: a marked block in CLAUDE.md and AGENTS.md of the folder where `memdir mount` was called, while it is mounted.

An agent knows `grep` by heart and has never heard of `memdir grep`; the file that it reads at its start is where it can be
told. What was put where is written down in the mount's folder (`agent-hint.json`) before a file is touched, so that a block can
be taken out after a crash by whoever comes next: `memdir unmount`, `memdir recover`, the next mount. A file that cannot be
changed safely is left alone with a warning: a mount never fails because of it.
"""

from __future__ import annotations

import dataclasses
import json
import logging
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from memdir.core.errors import MemdirError, StorageError
from memdir.core.filelock import locked_file
from memdir.core.markedblock import Inserted, handed_over, with_block, without_block
from memdir.core.othersfiles import read_file, replace_file
from memdir.core.paths import explained, write_private
from memdir.daemon.hint_text import hint_lines
from memdir.daemon.registry import MountRecord, resolve_outside

log = logging.getLogger(__name__)

FILES: Final = ("CLAUDE.md", "AGENTS.md")
"""What Claude Code, and Codex and others, read when they start in a folder."""
NOTES_FILE: Final = "agent-hint.json"
_LOCK_FILE: Final = ".agent-hint.lock"
_LOCK_TIMEOUT_S: Final = 5.0
_FILE_MAX_BYTES: Final = 1 << 20
_NOTES_MAX_BYTES: Final = 1 << 20
_UTF16: Final = (b"\xff\xfe", b"\xfe\xff")


@dataclass(frozen=True, slots=True, kw_only=True)
class Hinted:
    """One file with a block of ours. `created`: it was not there before."""

    path: str
    created: bool
    inserted: Inserted


@dataclass(frozen=True, slots=True, kw_only=True)
class HintNotes:
    """What `agent-hint.json` holds."""

    files: tuple[Hinted, ...] = ()
    warnings: tuple[str, ...] = ()


def put(record: MountRecord, mountpoints: set[str]) -> HintNotes:
    """Take out what an earlier mount of this memory has left, then write the block where the record asks for it. Raises
    nothing: what could not be done is a warning in the answer and in the notes."""
    folder = Path(record.cache_dir)
    try:
        with _locked(folder):
            _take_out(folder)
            notes = HintNotes() if record.hint_folder is None else _put(record, Path(record.hint_folder), mountpoints)
            if notes.warnings:
                _write_notes(folder, notes)
            return notes
    except (MemdirError, OSError) as error:
        log.warning("the agent hint: %s", error)
        return HintNotes(warnings=(f"agents are not told of this mount: {error}",))


def take_out(folder: Path) -> None:
    """Take the blocks of the mount with the data folder `folder` out again. Raises nothing; what stays is logged, and tried
    again by the next mount, unmount or recover."""
    if not (folder / NOTES_FILE).exists():
        return
    try:
        with _locked(folder):
            _take_out(folder)
    except (MemdirError, OSError) as error:
        log.warning("the agent hint was not taken out: %s", error)


def read_notes(folder: Path) -> HintNotes:
    """What is noted for a mount; nothing when there is no file, or none that can be read."""
    try:
        with open(folder / NOTES_FILE, "rb") as handle:
            fields: Any = json.loads(handle.read(_NOTES_MAX_BYTES))
        files = tuple(
            Hinted(
                path=entry["path"], created=bool(entry["created"]),
                inserted=Inserted(**entry["inserted"] | {"lines": tuple(entry["inserted"]["lines"])}),
            )
            for entry in fields["files"]
        )  # fmt: skip
        return HintNotes(files=files, warnings=tuple(map(str, fields["warnings"])))
    except FileNotFoundError:
        return HintNotes()
    except (OSError, ValueError, TypeError, KeyError) as error:
        log.warning("%s cannot be read: %s", folder / NOTES_FILE, error)
        return HintNotes()


# --- putting in --------------------------------------------------------------------------------------------------------


def _put(record: MountRecord, folder: Path, mountpoints: set[str]) -> HintNotes:
    place = resolve_outside(folder, mountpoints)
    shown = f"./{record.path[len(place.rstrip('/')) + 1 :]}" if _is_below(record.path, place) else record.path
    if any(place == point or _is_below(place, point) for point in {*mountpoints, record.path}):
        return HintNotes()  # the files of a memory belong to all who mount it
    if not shown.isprintable() or "`" in shown or "-->" in shown:
        return HintNotes(warnings=(f"agents are not told of this mount: {shown!r} cannot be written into a text",))
    files: list[Hinted] = []
    warnings: list[str] = []
    for path in _targets(Path(place), create=record.hint_create, warnings=warnings):
        try:
            key = _key(record, path)
            hinted, data, info = _planned(path, key, hint_lines(record.name, shown))
            files.append(hinted)
            _write_notes(Path(record.cache_dir), HintNotes(files=tuple(files)))
            replace_file(path, data, info)
        except OSError as error:
            files = [known for known in files if known.path != str(path)]
            warnings.append(f"{path} is left as it is: {explained(error) or error.strerror}")
        except MemdirError as error:
            warnings.append(f"{path} is left as it is: {error.message}")
    notes = HintNotes(files=tuple(files), warnings=tuple(warnings))
    _write_notes(Path(record.cache_dir), notes)
    return notes


def _targets(place: Path, *, create: bool, warnings: list[str]) -> list[Path]:
    """The files to write to, links followed, each once. A link that leaves the folder is not ours to write through."""
    found: list[Path] = []
    for name in FILES:
        path = place / name
        if not os.path.lexists(path) and not create:
            continue
        real = Path(os.path.realpath(path))
        if not real.is_relative_to(place):
            warnings.append(f"{path} is left as it is: it is a link to {real}, outside of {place}")
        elif (real.exists() or not path.is_symlink()) and real not in found:
            found.append(real)
    return found


def _planned(path: Path, key: str, lines: tuple[str, ...]) -> tuple[Hinted, bytes, os.stat_result | None]:
    """What the file will hold, and what it is now; None: it is not there. StorageError for one that must not be replaced."""
    found = read_file(path, max_bytes=_FILE_MAX_BYTES)
    data, info = (b"", None) if found is None else found
    if data.startswith(_UTF16):
        raise StorageError("it is UTF-16 text")
    data, inserted = with_block(without_block(data, key, None), key, lines)
    return Hinted(path=str(path), created=info is None, inserted=inserted), data, info


def _key(record: MountRecord, path: Path) -> str:
    """The memory's name; with the mount's id when another mount of it tells about itself in the same file."""
    for folder in _other_folders(Path(record.cache_dir)):
        if any(known.path == str(path) and known.inserted.key == record.name for known in read_notes(folder).files):
            return f"{record.name} {record.id}"
    return record.name


# --- taking out --------------------------------------------------------------------------------------------------------


def _take_out(folder: Path) -> None:
    notes = read_notes(folder)
    left = []
    for known in notes.files:
        try:
            _take_out_of(folder, known)
        except (MemdirError, OSError) as error:
            log.warning("the agent hint stays in %s: %s", known.path, error)
            left.append(known)
    if left:
        _write_notes(folder, HintNotes(files=tuple(left)))
    else:
        (folder / NOTES_FILE).unlink(missing_ok=True)


def _take_out_of(folder: Path, known: Hinted) -> None:
    path = Path(known.path)
    found = read_file(path, max_bytes=_FILE_MAX_BYTES)
    if found is None:
        return
    data, info = found
    rest = without_block(data, known.inserted.key, known.inserted)
    if rest == data:
        return
    rest = _hand_over(folder, known, data) or rest
    if known.created and not rest:
        path.unlink()
    else:
        replace_file(path, rest, info)


def _hand_over(folder: Path, known: Hinted, data: bytes) -> bytes | None:
    """Others' blocks stay in the file: what it takes to undo ours becomes their business. What the file holds then; None when
    none of them follows ours."""
    rest = None
    for other in _other_folders(folder):
        notes = read_notes(other)
        files = []
        for entry in notes.files:
            if entry.path != known.path:
                files.append(entry)
                continue
            found = handed_over(data, known.inserted, entry.inserted)
            if found is not None:
                rest = found[0]
            inserted = entry.inserted if found is None else found[1]
            files.append(Hinted(path=entry.path, created=entry.created or known.created, inserted=inserted))
        if tuple(files) != notes.files:
            _write_notes(other, dataclasses.replace(notes, files=tuple(files)))
    return rest


# --- notes ------------------------------------------------------------------------------------------------------------


def _write_notes(folder: Path, notes: HintNotes) -> None:
    write_private(folder / NOTES_FILE, json.dumps(dataclasses.asdict(notes), indent=1).encode("ascii"))


def _other_folders(folder: Path) -> Iterator[Path]:
    for notes in sorted(folder.parent.glob(f"*/{NOTES_FILE}")):
        if notes.parent != folder:
            yield notes.parent


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """One at a time among all mounts of this user: they write to the same files."""
    deadline = time.monotonic() + _LOCK_TIMEOUT_S
    with locked_file(folder.parent / _LOCK_FILE, deadline=deadline, busy="another mount is writing its agent hint"):
        yield


def _is_below(path: str, folder: str) -> bool:
    return path.startswith(folder.rstrip("/") + "/")
