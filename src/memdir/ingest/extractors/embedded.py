"""Files inside of files: attachments, members of archives. Read like files of their own, to a depth."""

from __future__ import annotations

import tempfile
from importlib import import_module
from pathlib import Path
from typing import Final

from memdir.ingest.extractors.formats import HEAD_BYTES, Format, family_of, refined
from memdir.ingest.extractors.output import ExtractionError, Output
from memdir.ingest.text import decode

DEPTH_MAX: Final = 3
"""Files in files in files."""
_NEEDS_TIME: Final = frozenset({"audio", "video"})
"""Not read inside of others: what they need of time and memory belongs to a file of its own."""
_depth = 0


def add(data: bytes, name: str, out: Output, *, title: str) -> None:
    """A section with the text of `data`, or one line that says what it is when it has none."""
    global _depth
    found = family_of(data[:HEAD_BYTES], name)
    if found is None:
        text = decode(data)
        if text is None or not text.text.strip():
            out.paragraph(f"{title}: {name} ({len(data)} bytes)")
            return
        out.heading(2, f"{title}: {name}")
        out.paragraph(text.text)
        return
    if _depth >= DEPTH_MAX or found.kind in _NEEDS_TIME:
        out.paragraph(f"{title}: {name} ({len(data)} bytes, {found.media_type}, not opened)")
        return
    _depth += 1
    try:
        _read(data, name, out, found, title)
    finally:
        _depth -= 1


def _read(data: bytes, name: str, out: Output, found: Format, title: str) -> None:
    inner = Output(progress=lambda _done, _total: out.progress(0, 0))
    with tempfile.NamedTemporaryFile() as handle:
        handle.write(data)
        handle.flush()
        path = Path(handle.name)
        try:
            import_module(f"memdir.ingest.extractors.{refined(found, path).module}").extract(path, inner)
        except ExtractionError as error:
            out.paragraph(f"{title}: {name} ({len(data)} bytes; not read: {error.reason})")
            return
    out.heading(2, f"{title}: {name}")
    out.paragraph(inner.text())
