"""The text beside a file that is none: `report.pdf` has `report.pdf.pdf-transcription.md`, a recording its transcript.

The names are part of what people and agents see, so both sides know them: the source stays what it is, its text can be read
and searched at a predictable name. What cannot be read has `report.pdf.error.md`, which says why.
"""

from __future__ import annotations

import re
from typing import Final

from memdir.core.limits import NAME_MAX_BYTES

KINDS: Final = ("pdf", "office", "web", "mail", "image", "audio", "video", "archive")
ERROR: Final = "error"
"""The kind of what could not be read."""
FIRST_CHARS: Final = '---\nsource: "'
"""How every text begins that memdir puts beside a file: a copy of one is known by it."""
_SUFFIXES: Final = {
    "pdf": ("pdf",),
    "image": ("png", "jpg", "jpeg", "gif", "webp", "bmp", "tif", "tiff", "heic"),
    "audio": ("mp3", "wav", "m4a", "ogg", "opus", "flac", "aac"),
    "video": ("mp4", "mov", "mkv", "webm", "avi"),
}
TRANSCRIBED_SUFFIXES: Final = frozenset(suffix for suffixes in _SUFFIXES.values() for suffix in suffixes)
"""Ends of names, without the dot, of files beside which a text is."""
_KIND_OF: Final = {suffix: kind for kind, suffixes in _SUFFIXES.items() for suffix in suffixes}
_SIBLING: Final = re.compile(rf"(.+)\.(?:({'|'.join(KINDS)})-transcription|({ERROR}))\.md", re.DOTALL)


def sibling_name(name: str, kind: str) -> str | None:
    """The name of the text of a file; None when no name is that long."""
    sibling = f"{name}.{ERROR}.md" if kind == ERROR else f"{name}.{kind}-transcription.md"
    return sibling if len(sibling.encode("utf-8", "surrogateescape")) <= NAME_MAX_BYTES else None


def source_of(name: str) -> tuple[str, str] | None:
    """The name of the file, and the kind, that a sibling's name says; None for other names."""
    found = _SIBLING.fullmatch(name)
    return None if found is None else (found[1], found[2] or found[3])


def source_path(path: str) -> str | None:
    """`source_of` in the folder of the sibling: the path of the file."""
    folder, _, name = path.rpartition("/")
    source = source_of(name)
    return None if source is None else f"{folder}/{source[0]}"


def sibling_path(path: str, kind: str) -> str | None:
    """`sibling_name` in the folder of the file."""
    folder, _, name = path.rpartition("/")
    sibling = sibling_name(name, kind)
    return None if sibling is None else f"{folder}/{sibling}" if folder or path.startswith("/") else sibling


def sibling_of(path: str) -> str | None:
    """Where a server of another kind puts the text of a PDF, image, recording or film, by the file's name alone; None for other
    files, and when no name is that long."""
    name = path.rpartition("/")[2]
    stem, _, suffix = name.rpartition(".")
    kind = _KIND_OF.get(suffix.lower()) if stem else None
    return None if kind is None else sibling_path(path, kind)


def first_lines(name: str) -> str:
    """How the text beside the file `name` begins; the rest is the same for all files with the same contents."""
    shown = re.sub(r"[\x00-\x1f\x7f]", "\N{REPLACEMENT CHARACTER}", name).replace("\\", "\\\\").replace('"', '\\"')
    return f'{FIRST_CHARS}{shown}"\n'
