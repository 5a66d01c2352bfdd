"""The files of one container's index: tantivy's own, opened only when each is what was written."""

from __future__ import annotations

import json
import logging
import shutil
import struct
import zlib
from pathlib import Path
from typing import Final

from tantivy import Index, Schema, SchemaBuilder

from memdir.core.errors import CorruptError
from memdir.core.paths import ensure_private_dir
from memdir.store.text.analysis import ANALYSIS_VERSION

log = logging.getLogger(__name__)

WORDS: Final = f"words{1000 + ANALYSIS_VERSION}"
"""The field of the words. Its name says how they were made: an index of another analysis does not fit and is made anew."""
NUMBERS: Final = ("chunk", "document", "place", "digest", "terms", "length")
"""Fields of numbers, one of each passage: its id, keys of its document's id, its path, its text and its terms, their count."""
INSIDE: Final = "inside"
"""Keys of a document's path and of each folder above it, with a slash behind these."""
_META: Final = "meta.json"
_HINT: Final = "it is made again from the store by itself"
_TRIES: Final = 10
_FOOTER_MAGIC: Final = 1337
_FOOTER_MAX_BYTES: Final = 4_096


def schema() -> Schema:
    """Every passage is a document of tantivy's; nothing of it is stored but numbers."""
    builder = SchemaBuilder()
    for name in NUMBERS:
        builder.add_unsigned_field(name, indexed=name in ("chunk", "document"), fast=True)
    builder.add_unsigned_field(INSIDE, indexed=True)
    builder.add_text_field(WORDS, tokenizer_name="whitespace", index_option="position")
    return builder.build()


def opened(folder: Path | None) -> Index:
    """The index in a folder, an empty one when there is none or it cannot be used; None: in memory only."""
    if folder is None:
        return Index(schema())
    try:
        verify(folder)
        ensure_private_dir(folder)
        return Index(schema(), str(folder))
    except (CorruptError, ValueError, OSError) as error:
        log.warning("the index in %s is made anew: %s", folder, error)
    shutil.rmtree(folder, ignore_errors=True)
    ensure_private_dir(folder)
    return Index(schema(), str(folder))


def reading(folder: Path) -> Index | None:
    """The index in a folder that another process may be writing; None when there is none, or one of another analysis."""
    try:
        return Index(schema(), str(folder)) if Index.exists(str(folder)) else None
    except (ValueError, OSError):
        return None


def verify(folder: Path) -> None:
    """CorruptError when a file of a segment is missing or not what was written. Each ends with a description that holds a
    CRC-32 of the rest, its length and a magic number (tantivy, `directory/footer.rs`). No index is none that is damaged.
    Another process may be writing: what it took away meanwhile is looked for once more."""
    for attempt in range(_TRIES):
        before = segments(folder)
        try:
            for segment in before:
                _verify(folder, str(segment["segment_id"]).replace("-", ""))
        except CorruptError:
            if segments(folder) == before or attempt == _TRIES - 1:
                raise
        else:
            return


def _verify(folder: Path, name: str) -> None:
    files = sorted(folder.glob(f"{name}.*"))
    if not any(file.suffix == ".idx" for file in files):
        raise CorruptError(f"{folder / name}: its files are gone", hint=_HINT)
    for file in files:
        if not _is_whole(file):
            raise CorruptError(f"{file} is damaged", hint=_HINT)


def segments(folder: Path) -> list[dict[str, object]]:
    """What the index says of its segments: `segment_id`, `max_doc`, `deletes`."""
    try:
        meta = json.loads((folder / _META).read_bytes())
        found = [{name: one[name] for name in ("segment_id", "max_doc", "deletes")} for one in meta["segments"]]
    except FileNotFoundError:
        return []
    except (ValueError, KeyError, TypeError) as error:
        raise CorruptError(f"{folder / _META} cannot be read: {error}", hint=_HINT) from error
    return found


def waste(folder: Path) -> tuple[int, int]:
    """Passages that went and still take room in the files, and passages in the files in all."""
    gone = total = 0
    for segment in segments(folder):
        deletes = segment["deletes"]
        gone += int(deletes["num_deleted_docs"]) if isinstance(deletes, dict) else 0
        total += int(str(segment["max_doc"]))
    return gone, total


def _is_whole(file: Path) -> bool:
    try:
        content = memoryview(file.read_bytes())
    except OSError:
        return False
    if len(content) < 8:
        return False
    size, magic = struct.unpack("<II", content[-8:])
    if magic != _FOOTER_MAGIC or not 0 < size <= min(_FOOTER_MAX_BYTES, len(content) - 8):
        return False
    try:
        footer = json.loads(bytes(content[-8 - size : -8]))
    except ValueError:
        return False
    return isinstance(footer, dict) and footer.get("crc") == zlib.crc32(content[: -8 - size])
