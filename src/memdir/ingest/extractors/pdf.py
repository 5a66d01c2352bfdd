"""PDF by pypdfium2 : the text of each page under its number; of pages that are pictures by text recognition."""

from __future__ import annotations

import contextlib
import hashlib
import re
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import pypdfium2
from pypdfium2 import PdfiumError, raw

from memdir.ingest.extractors import embedded, ocr, pdf_headings, pdf_notes
from memdir.ingest.extractors.output import ExtractionError, Output, clean, encrypted
from memdir.ingest.extractors.pdf_headings import Title, with_headings
from memdir.ingest.extractors.pdf_tables import with_tables
from memdir.store.text.wrapping import unwrapped

PAGES_MAX: Final = 5_000
_SCANNED_MAX_CHARS: Final = 16
"""A page with fewer characters is looked at as a picture: stamps and page numbers are often text on a scan."""
_DPI: Final = 200
_PIXELS_MAX: Final = 25_000_000
_HYPHEN: Final = re.compile(r"[\x02\ufffe\xad]\r?\n?")
"""What PDFium puts where a word was parted at the end of a line."""
_CORK: Final = {
    **dict(zip("\x10\x11\x12\x13\x14\x15\x16", "“”„«»–—", strict=True)),
    **dict(zip("\x1b\x1c\x1d\x1e\x1f", ("ff", "fi", "fl", "ffi", "ffl"), strict=True)),
}
"""Codes of TeX's fonts (T1, the Cork encoding) as they come out of a PDF that does not say what they stand for."""
_CORK_CODE: Final = re.compile(r"(?<=[^ \r\n\t])[\x10-\x16\x1b-\x1f]|[\x10-\x16\x1b-\x1f](?=[^ \r\n\t])|(?<= )[\x15\x16](?= )")
"""Alone they are the large brackets of formulas. What is no space is spelt out: to `\\S` the ligatures are spaces."""
_CONTROLS: Final = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ufffd]")
_GARBLED_SHARE, _GARBLED_MIN = 0.03, 20
"""A page with more codes that are no characters has fonts that do not say what they mean. Formulas bring less than .02."""
_BULLETS: Final = re.compile(r"[\uf0a7\uf0b7\uf0d8]|^\x88(?= )", re.MULTILINE)
"""Of the fonts Symbol and Wingdings, which Word takes for lists, and of TeX's companion font."""


def extract(path: Path, out: Output) -> None:
    """ExtractionError when it is encrypted or damaged, and when it holds pictures alone that nothing here can read."""
    out.engine = f"pypdfium2 {version('pypdfium2')}"
    try:
        document = pypdfium2.PdfDocument(path)
    except PdfiumError as error:
        raise _refused(str(error)) from None
    if document.get_formtype() != raw.FORMTYPE_NONE:
        with contextlib.suppress(PdfiumError):  # a form of a kind that PDFium does not know: its pages are read all the same
            document.init_forms()
    count = len(document)
    told = document.get_metadata_dict(skip_empty=True)
    out.title = told.get("Title", "")
    out.fact("author", told.get("Author"))
    out.fact("pages", count)
    unread = 0
    pages = range(out.first_part, min(count, PAGES_MAX))
    out.progress(out.first_part, count)
    titles = pdf_headings.titles(document)
    linked: set[str] = set()
    attached: set[tuple[str, bytes]] = set()
    for number in pages:
        unread += not _page(document, number, titles.get(number, []), linked, attached, out)
        out.progress(number + 1, count)
    if unread:
        lacking = not ocr.is_available()
        if unread == len(pages) and not out.first_part:
            if lacking:
                raise ocr.missing("its pages are pictures")
            raise ExtractionError("its pages are pictures, and the text in them is not recognised", hint="make them smaller")
        if lacking:
            out.needs = "ocr"
        before = f"{out.facts['unread']}; " if "unread" in out.facts else ""
        out.fact("unread", f"{before}{unread} pages are pictures: {ocr.HINT if lacking else 'too large'}")
    if count > PAGES_MAX:
        out.truncated = True
    for index in range(document.count_attachments()):
        _add_file(*_read_file(document.get_attachment(index)), attached, out)


def _refused(said: str) -> ExtractionError:
    if "password" in said.lower():
        return encrypted()
    return ExtractionError("it is no PDF that can be opened: damaged or cut off", hint="open it in a viewer and save it again")


def _page(
    document: Any, number: int, titles: list[Title], linked: set[str], attached: set[tuple[str, bytes]], out: Output
) -> bool:
    """False when the page is a picture that was not read. `linked` and `attached`: links and files that were told before."""
    added: list[str] = []
    files: list[tuple[str, bytes]] = []
    try:
        page = document[number]
        content = page.get_textpage()
        plain = content.get_text_bounded()
        extracted = _BULLETS.sub("•", _HYPHEN.sub("", with_tables(page, content, plain)))
        text = cork_decoded(extracted)
        added = pdf_notes.lines(page, content, plain, linked)
        files = [_read_file(pypdfium2.PdfAttachment(handle, document)) for handle in pdf_notes.files(page)]
        content.close()
        pictured = len("".join(text.split())) < _SCANNED_MAX_CHARS and any(
            True for _ in page.get_objects(filter=(raw.FPDF_PAGEOBJ_IMAGE,), max_depth=3)
        )
        read = True
        garbled = len(_CONTROLS.findall(extracted)) > max(_GARBLED_MIN, _GARBLED_SHARE * len(extracted))
        if (pictured or garbled) and ocr.is_available():
            out.recognising()
            scale = min(_DPI / 72, (_PIXELS_MAX / max(page.get_width() * page.get_height(), 1)) ** 0.5)
            try:
                text = ocr.recognised(page.render(scale=scale, grayscale=True).to_pil()) or text
                out.fact("recognised_by", ocr.engine())
            except ExtractionError:
                read = not pictured
        elif pictured:
            read = False
        page.close()
    except PdfiumError:
        text, read = "", True
    if text.strip() or added:
        out.heading(2, f"Page {number + 1}")
        out.paragraph(unwrapped(with_headings(clean(text), titles)))
        out.paragraph("\n".join(f"- {line}" for line in added))
    for name, data in files:
        _add_file(name, data, attached, out)
    return read


def cork_decoded(text: str) -> str:
    """With the characters that the codes of TeX's fonts stand for."""
    return _CORK_CODE.sub(lambda found: _CORK[found[0]], text)


def _add_file(name: str, data: bytes, attached: set[tuple[str, bytes]], out: Output) -> None:
    """Unless it was `attached` before: on a page, and to the document."""
    known = (name, hashlib.sha256(data).digest())
    if data and known not in attached:
        attached.add(known)
        embedded.add(data, name or f"attachment {len(attached)}", out, title="Attachment")


def _read_file(file: Any) -> tuple[str, bytes]:
    """Name and bytes of a file; no bytes when they cannot be had."""
    try:
        return file.get_name(), bytes(file.get_data())[: embedded.PART_MAX_BYTES]
    except PdfiumError:
        return "", b""
