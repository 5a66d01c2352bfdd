"""Notes exported by Evernote (.enex): each with title, times, tags and address, its text as Markdown, its attachments.

Format: xml.evernote.com/pub/evernote-export4.dtd; the text of a note: xml.evernote.com/pub/enml2.dtd.
"""

from __future__ import annotations

import base64
import binascii
import re
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

from lxml import etree

from memdir.ingest.extractors import embedded, markup
from memdir.ingest.extractors.chat import moment
from memdir.ingest.extractors.output import ExtractionError, Output

_TASK: Final = re.compile(r"<en-todo\b([^>]*?)/?>(?:\s*</en-todo>)?")
_CHECKED: Final = re.compile(r"""checked\s*=\s*["']true""")
_NO_HTML: Final = re.compile(
    r"<\?xml[^>]*>|<!DOCTYPE[^>]*>|<en-media\b[^>]*>|<en-crypt\b.*?</en-crypt>|</?en-note\b[^>]*>", re.DOTALL
)


def extract(path: Path, out: Output) -> None:
    """ExtractionError when there is no note in it, or when it is cut off; the notes before that are kept."""
    out.engine = f"html-to-markdown {version('html-to-markdown')}"
    count = 0
    safe = {"resolve_entities": False, "no_network": True, "load_dtd": False}
    for _, note in etree.iterparse(str(path), tag="note", recover=True, huge_tree=True, **safe):
        _add(note, out)
        count += 1
        out.progress(count, 0)
        note.clear()
        while note.getprevious() is not None:
            del note.getparent()[0]
    out.fact("notes", count)
    with path.open("rb") as handle:
        handle.seek(max(0, path.stat().st_size - 4096))
        if b"</en-export>" not in handle.read():
            raise ExtractionError("it is cut off", hint="export it again")
    if not count:
        raise ExtractionError("there is no note in it", hint="export it again")


def _add(note: Any, out: Output) -> None:
    out.heading(2, note.findtext("title") or "Untitled")
    tags = ", ".join(tag.text for tag in note.iter("tag") if tag.text)
    told = {
        "Created": moment(note.findtext("created", "").strip()),
        "Updated": moment(note.findtext("updated", "").strip()),
        "Tags": tags,
        "Author": note.findtext("note-attributes/author"),
        "Address": note.findtext("note-attributes/source-url"),
    }
    out.paragraph("\n".join(f"{name}: {value}" for name, value in told.items() if value))
    html = _TASK.sub(lambda task: "[x] " if _CHECKED.search(task[1]) else "[ ] ", note.findtext("content") or "")
    out.paragraph(markup.markdown(_NO_HTML.sub("", html)))
    for number, resource in enumerate(note.iter("resource"), start=1):
        try:
            data = base64.b64decode(resource.findtext("data") or "")
        except (binascii.Error, ValueError):
            continue
        kind = (resource.findtext("mime") or "").rpartition("/")[2]
        name = resource.findtext("resource-attributes/file-name") or f"{number}.{kind or 'bin'}"
        if data:
            embedded.add(data, name, out, title="Attachment")
