"""Files inside of files: attachments, members of archives, pictures in documents. Read like files of their own, to a depth."""

from __future__ import annotations

import hashlib
import tempfile
import time
from importlib import import_module
from pathlib import Path
from typing import Final

from memdir.ingest.extractors import ocr
from memdir.ingest.extractors.formats import HEAD_BYTES, Format, family_of, refined
from memdir.ingest.extractors.output import ExtractionError, Output, OutputFullError
from memdir.ingest.text import decode

DEPTH_MAX: Final = 3
"""Files in files in files."""
PART_MAX_BYTES: Final = 16 << 20
"""Of an attachment, a member or a picture; what is larger is not read."""
PICTURES_MAX_S: Final = 120.0
"""For the pictures inside of one document, all together; those behind are not read."""
_NEEDS_TIME: Final = frozenset({"audio", "video"})
"""Not read inside of others: what they need of time and memory belongs to a file of its own."""
_depth = 0
_pictures: dict[bytes, str] = {}
"""The text of each picture of this document by its hash: a logo stands in every mail."""
_pictures_s = 0.0


def add(data: bytes, name: str, out: Output, *, title: str) -> None:
    """A section with the text of `data`, or one line that says what it is when it has none."""
    found = family_of(data[:HEAD_BYTES], name)
    if found is None:
        text = decode(data)
        _section(text.text if text is not None else "", data, name, out, title)
    elif found.module == "image":
        _section(_recognised(data, out, found), data, name, out, title)
    elif _depth >= DEPTH_MAX or found.kind in _NEEDS_TIME:
        out.paragraph(f"{title}: {name} ({len(data)} bytes, {found.media_type}, not opened)")
    else:
        try:
            read = _read(data, out, found)
        except ExtractionError as error:
            out.paragraph(f"{title}: {name} ({len(data)} bytes; not read: {error.reason})")
        else:
            _section(read, data, name, out, title)


def add_picture(data: bytes, name: str, out: Output) -> None:
    """A section with the text in a picture that stands in a document; nothing when it has none."""
    found = family_of(data[:HEAD_BYTES], name)
    text = _recognised(data, out, found) if found is not None and found.kind == "image" else ""
    if text.strip():
        _section(text, data, name, out, "Picture")


def _section(text: str, data: bytes, name: str, out: Output, title: str) -> None:
    if text.strip():
        out.heading(2, f"{title}: {name}")
        out.paragraph(text)
    else:
        out.paragraph(f"{title}: {name} ({len(data)} bytes)")


def _recognised(data: bytes, out: Output, found: Format) -> str:
    """The text in a picture; nothing when it cannot be read, there is no engine, or the time for pictures is over."""
    global _pictures_s
    digest = hashlib.sha256(data).digest()
    if digest in _pictures:
        return _pictures[digest]
    if found.module == "image" and not ocr.is_available():
        out.needs = "ocr"
        out.fact("unread_pictures", ocr.HINT)
        return ""
    if _pictures_s > PICTURES_MAX_S:
        out.fact("unread_pictures", f"all after the first {len(_pictures)}, which took {PICTURES_MAX_S:g} s")
        return ""
    began_s = time.monotonic()
    try:
        _pictures[digest] = _read(data, out, found)
    except ExtractionError:
        _pictures[digest] = ""
    _pictures_s += time.monotonic() - began_s
    return _pictures[digest]


def _read(data: bytes, out: Output, found: Format) -> str:
    """ExtractionError when it cannot be read: a damaged attachment does not take its mail along."""
    global _depth
    inner = Output(media_type=found.media_type, progress=lambda _done, _total: out.progress(0, 0), recognising=out.recognising)
    _depth += 1
    try:
        with tempfile.NamedTemporaryFile() as handle:
            handle.write(data)
            handle.flush()
            path = Path(handle.name)
            import_module(f"memdir.ingest.extractors.{refined(found, path).module}").extract(path, inner)
    except OutputFullError:
        out.truncated = True
    except ExtractionError:
        raise
    except MemoryError:
        raise ExtractionError("it needs too much memory") from None
    except Exception as error:
        raise ExtractionError("it is damaged, or of a form that its library does not know") from error
    finally:
        _depth -= 1
    out.needs = out.needs or inner.needs
    return inner.text()
