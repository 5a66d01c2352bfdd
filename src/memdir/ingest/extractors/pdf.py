"""PDF by pypdfium2 : the text of each page under its number; of pages that are pictures by text recognition."""

from __future__ import annotations

import re
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import pypdfium2
from pypdfium2 import PdfiumError, raw

from memdir.ingest.extractors import embedded, ocr
from memdir.ingest.extractors.output import ExtractionError, Output, clean, encrypted
from memdir.store.text.wrapping import unwrapped

PAGES_MAX: Final = 5_000
_SCANNED_MAX_CHARS: Final = 16
"""A page with fewer characters is looked at as a picture: stamps and page numbers are often text on a scan."""
_DPI: Final = 200
_PIXELS_MAX: Final = 25_000_000
_HYPHEN: Final = re.compile(r"[\x02\ufffe\xad]\r?\n?")
"""What PDFium puts where a word was parted at the end of a line."""
_ATTACHMENT_MAX_BYTES: Final = 16 << 20


def extract(path: Path, out: Output) -> None:
    """ExtractionError when it is encrypted or damaged, and when it holds pictures alone that nothing here can read."""
    out.engine = f"pypdfium2 {version('pypdfium2')}"
    try:
        document = pypdfium2.PdfDocument(path)
    except PdfiumError as error:
        raise _refused(str(error)) from None
    count = len(document)
    told = document.get_metadata_dict(skip_empty=True)
    out.title = told.get("Title", "")
    out.fact("author", told.get("Author"))
    out.fact("pages", count)
    unread = 0
    for number in range(min(count, PAGES_MAX)):
        unread += not _page(document, number, out)
        out.progress(number + 1, count)
    if unread and unread == min(count, PAGES_MAX):
        raise ocr.missing("its pages are pictures")
    if unread:
        out.fact("unread", f"{unread} pages are pictures: {ocr.HINT}")
        out.needs = "ocr"
    if count > PAGES_MAX:
        out.truncated = True
    _attachments(document, out)


def _refused(said: str) -> ExtractionError:
    if "password" in said.lower():
        return encrypted()
    return ExtractionError("it is no PDF that can be opened: damaged or cut off", hint="open it in a viewer and save it again")


def _page(document: Any, number: int, out: Output) -> bool:
    """False when the page is a picture that was not read."""
    try:
        page = document[number]
        content = page.get_textpage()
        text = _HYPHEN.sub("", content.get_text_bounded())
        content.close()
        pictured = len("".join(text.split())) < _SCANNED_MAX_CHARS and any(
            True for _ in page.get_objects(filter=(raw.FPDF_PAGEOBJ_IMAGE,), max_depth=3)
        )
        read = True
        if pictured and ocr.is_available():
            scale = min(_DPI / 72, (_PIXELS_MAX / max(page.get_width() * page.get_height(), 1)) ** 0.5)
            text = ocr.recognised(page.render(scale=scale, grayscale=True).to_pil()) or text
            out.fact("recognised_by", ocr.engine())
        elif pictured:
            read = False
        page.close()
    except PdfiumError:
        text, read = "", True
    if text.strip():
        out.heading(2, f"Page {number + 1}")
        out.paragraph(unwrapped(clean(text)))
    return read


def _attachments(document: Any, out: Output) -> None:
    for index in range(document.count_attachments()):
        attachment = document.get_attachment(index)
        try:
            data = bytes(attachment.get_data())[:_ATTACHMENT_MAX_BYTES]
        except PdfiumError:
            continue
        embedded.add(data, attachment.get_name() or f"attachment {index + 1}", out, title="Attachment")
