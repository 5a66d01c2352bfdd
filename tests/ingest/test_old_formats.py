"""Formats from before 2007, and what programs leave in files that is not text. `data/`: our words, saved by LibreOffice 7.4."""

from __future__ import annotations

import io
import lzma
import re
import zipfile
from pathlib import Path

import pytest

from memdir.ingest.extractors.formats import ODT
from memdir.ingest.extractors.output import ExtractionError
from memdir.ingest.sandbox import Limits, Sandbox
from memdir_bench.ingest import documents
from memdir_bench.ingest.phrases import PHRASE

from .reading import read

REASONS = ("it is damaged", "a part of it takes longer", "it is encrypted", "it is of Word 6", "it is a compound file")
DATA = Path(__file__).parent / "data"


def kept(name: str) -> bytes:
    return lzma.decompress((DATA / f"{name}.xz").read_bytes())


@pytest.mark.promise("extract.kinds")
def test_a_word_file_from_before_2007_is_read(sandbox: Sandbox) -> None:
    found = read(sandbox, kept("words.doc"), "words.doc")
    assert found.text.startswith(f"# Bird diary\n\n{PHRASE}.\n\nGrüße aus Łódź — „bis bald“.\n\n")
    assert (
        "| Item | Amount | Paid |\n| --- | --- | --- |\n| Walnut boards | 1284.5 | TRUE |\n| Brass hinges | 12 | FALSE |\n\n"
        "After the table.\n" in found.text
    )
    assert found.text.endswith("## Headers and footers\n\nPrivate notes\n")
    assert (found.title, found.facts["author"]) == ("Bird diary", "Ana Ruiz")


@pytest.mark.promise("extract.kinds")
def test_slides_from_before_2007_are_read_with_notes(sandbox: Sandbox) -> None:
    found = read(sandbox, kept("slides.ppt"), "slides.ppt")
    assert found.text == (
        f"## Slide 1: The weir in spring\n\n{PHRASE}\nZażółć gęślą jaźń\n\nNotes: Ask Ana about the key of the gate.\n\n"
        "## Slide 2: Costs\n\nWalnut boards: 1284.5 Euro\n"
    )
    assert found.facts["slides"] == 2


def outcome(sandbox: Sandbox, data: bytes, name: str) -> str:
    """The text, or nothing where one of REASONS is said."""
    try:
        return read(sandbox, data, name).text
    except ExtractionError as error:
        if not error.reason.startswith(REASONS):
            raise
        return ""


@pytest.mark.parametrize("name", ["words.doc", "slides.ppt"])
def test_damaged_old_files_end_with_a_reason(name: str) -> None:
    """Cut off anywhere, or with bytes turned: a text or a reason, and no text without end."""
    sandbox = Sandbox({"office": Limits(silent_s=2.0)})
    whole = kept(name)
    for step in range(1, 20, 2):
        cut = whole[: len(whole) * step // 20]
        turned = bytearray(whole)
        for at in range(512 + step * 7, min(len(whole), 20_000), 211):
            turned[at] ^= 0xFF
        for data in (cut, bytes(turned)):
            assert len(outcome(sandbox, data, name)) < 100_000
    sandbox.close()


def test_drawings_and_texts_of_openoffice_1_are_read(sandbox: Sandbox) -> None:
    def changed(kind: str, change: bytes) -> bytes:
        out = io.BytesIO()
        with zipfile.ZipFile(io.BytesIO(documents.odt())) as old, zipfile.ZipFile(out, "w") as new:
            for info in old.infolist():
                part = old.read(info).replace(ODT.media_type.encode(), kind.encode())
                new.writestr(info, re.sub(rb'"urn:oasis:names:tc:opendocument:xmlns:(\w+):1\.0"', change, part))
        return out.getvalue()

    of = {"vnd.sun.xml.writer": rb'"http://openoffice.org/2000/\1"', "vnd.oasis.opendocument.graphics": rb"\g<0>"}
    for kind, change in of.items():
        text = read(sandbox, changed(f"application/{kind}", change), "a").text
        assert PHRASE in text
        assert "| Brass hinges | 12 | FALSE |" in text


def test_rtf_keeps_letters_of_a_mac_and_leaves_out_what_is_hidden(sandbox: Sandbox) -> None:
    data = rb"{\rtf1\ansi\ansicpg10000{\fonttbl\f0\fswiss Helvetica;}\f0 Introduction{\v TOC_0}\par J\'9frgen said so.\par}"
    assert read(sandbox, data, "a.rtf").text.split("\n") == ["Introduction", "", "Jürgen said so.", ""]


def test_pdf_of_tex_spells_ligatures_quotes_and_dashes() -> None:
    from memdir.ingest.extractors.pdf import cork_decoded

    assert cork_decoded("a di\x1berent \x1cgure, \x1dow su\x1ece cu\x1finks") == "a different figure, flow suffice cufflinks"
    assert cork_decoded("the \x10fonts\x11 of pages 3\x155 \x16 and") == "the “fonts” of pages 3–5 — and"
    assert cork_decoded("x = \n\x12\ny \x13 .") == "x = \n\x12\ny \x13 .", "brackets of formulas"


def unreadable_pdf() -> bytes:
    """A page of print whose font numbers its letters as they come and does not say which they are."""
    import reportlab
    from reportlab.lib.pagesizes import A4
    from reportlab.pdfbase import pdfmetrics
    from reportlab.pdfbase.ttfonts import TTFont
    from reportlab.pdfgen.canvas import Canvas

    pdfmetrics.registerFont(
        TTFont("numbered", str(Path(reportlab.__file__).parent / "fonts" / "Vera.ttf"), asciiReadable=False)
    )
    out = io.BytesIO()
    canvas = Canvas(out, pagesize=A4, pageCompression=0)
    canvas.setFont("numbered", 12)
    for line in range(30):
        canvas.drawString(60, 760 - 22 * line, f"{'Again: ' * (line % 4)}{PHRASE} {line}.")  # no gap runs down the page
    canvas.save()
    return re.sub(rb"/ToUnicode \d+ 0 R", lambda found: b" " * len(found[0]), out.getvalue())


def test_a_pdf_page_that_does_not_say_its_letters_is_read_as_a_picture(sandbox: Sandbox) -> None:
    found = read(sandbox, unreadable_pdf(), "a.pdf")
    assert found.text.count(PHRASE) > 25, found.text[:500]
    assert "recognised_by" in found.facts
