"""The text beside a file that is none: `report.pdf` has `report.pdf.pdf-transcription.md`, a recording its transcript.

The names are part of what people and agents see, so both sides know them: the source stays what it is, its text can be read
and searched at a predictable name.
"""

from __future__ import annotations

from typing import Final

from memdir.core.limits import NAME_MAX_BYTES

_SUFFIXES: Final = {
    "pdf": ("pdf",),
    "image": ("png", "jpg", "jpeg", "gif", "webp", "bmp", "tif", "tiff", "heic"),
    "audio": ("mp3", "wav", "m4a", "ogg", "opus", "flac", "aac"),
    "video": ("mp4", "mov", "mkv", "webm", "avi"),
}
_KIND_OF: Final = {suffix: kind for kind, suffixes in _SUFFIXES.items() for suffix in suffixes}


def sibling_of(path: str) -> str | None:
    """Where the text of a PDF, image, recording or film stands; None for other files, and when no name is that long."""
    name = path.rpartition("/")[2]
    stem, _, suffix = name.rpartition(".")
    kind = _KIND_OF.get(suffix.lower()) if stem else None
    if kind is None:
        return None
    sibling = f"{name}.{kind}-transcription.md"
    fits = len(sibling.encode("utf-8", "surrogateescape")) <= NAME_MAX_BYTES
    return path[: len(path) - len(name)] + sibling if fits else None
