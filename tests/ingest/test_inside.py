"""What stands inside of other files: pictures in mails, archives and documents, and the parts that nothing can read."""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Callable

import pytest

from memdir.ingest.sandbox import Limits, Sandbox
from memdir_bench.ingest import documents
from memdir_bench.ingest.phrases import PHRASE, zipped

from .reading import read

NOTED = "Barometer reads 1013 at dawn"


def with_part(package: bytes, name: str, data: bytes, *, instead: tuple[str, str] = ("", "")) -> bytes:
    """The package with one part more; the words of `instead` replaced in its XML."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(package)) as old, zipfile.ZipFile(out, "w") as new:
        for info in old.infolist():
            part = old.read(info)
            new.writestr(info, part.replace(instead[0].encode(), instead[1].encode()) if instead[0] else part)
        new.writestr(name, data)
    return out.getvalue()


def slides_with_picture() -> bytes:
    from pptx import Presentation
    from pptx.util import Inches

    deck = Presentation()
    for data in (documents.png(), documents.png(NOTED)):
        slide = deck.slides.add_slide(deck.slide_layouts[6])
        slide.shapes.add_picture(io.BytesIO(data), Inches(1), Inches(1))
    out = io.BytesIO()
    deck.save(out)
    return out.getvalue()


def letter_with_picture() -> bytes:
    import docx

    letter = docx.Document()
    letter.add_paragraph("See the picture.")
    letter.add_picture(io.BytesIO(documents.png()))
    out = io.BytesIO()
    letter.save(out)
    return out.getvalue()


def text_with_picture() -> bytes:
    frame = (
        '<text:p><draw:frame xmlns:draw="urn:oasis:names:tc:opendocument:xmlns:drawing:1.0">'
        '<draw:image xmlns:xlink="http://www.w3.org/1999/xlink" xlink:href="Pictures/a.png"/></draw:frame></text:p>'
    )
    paragraph = "<text:p>See the picture.</text:p>"
    return with_part(
        documents.odt_of(["See the picture."]), "Pictures/a.png", documents.png(), instead=(paragraph, paragraph + frame)
    )


HOLDING: dict[str, Callable[[], bytes]] = {
    "a.eml": lambda: documents.mail(attached={"board.png": documents.png()}),
    "a.zip": lambda: zipped({f"{number}.png": documents.png() for number in range(12)} | {"n.txt": b"See the picture."}),
    "a.docx": letter_with_picture,
    "a.pptx": slides_with_picture,
    "a.odt": text_with_picture,
    "a.xlsx": lambda: with_part(documents.xlsx(), "xl/media/image1.png", documents.png()),
}


@pytest.mark.promise("extract.inside")
@pytest.mark.parametrize("name", HOLDING)
def test_text_in_pictures_inside_of_a_document_is_read(sandbox: Sandbox, name: str) -> None:
    text = " ".join(read(sandbox, HOLDING[name](), name).text.split())
    assert PHRASE in text


def test_a_picture_of_a_slide_stands_under_its_slide(sandbox: Sandbox) -> None:
    first, second = read(sandbox, slides_with_picture(), "a.pptx").text.split("## Slide 2")
    assert PHRASE in " ".join(first.split())
    assert NOTED in " ".join(second.split())


def test_pictures_that_take_too_long_leave_the_text(monkeypatch: pytest.MonkeyPatch) -> None:
    from memdir.ingest.extractors import embedded
    from memdir.ingest.extractors.output import Output

    monkeypatch.setattr(embedded, "PICTURES_MAX_S", -1.0)
    out = Output()
    embedded.add(documents.png(), "board.png", out, title="Attachment")
    assert out.text() == f"Attachment: board.png ({len(documents.png())} bytes)\n"
    assert "unread_pictures" in out.facts


def test_what_is_damaged_inside_does_not_take_the_rest_along(sandbox: Sandbox) -> None:
    attached = {
        "sheet.xls": b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(4000),
        "cut.docx": documents.docx()[:900],
        "cut.png": documents.png()[:400],
        "huge.pdf": b"%PDF-1.7\n" + b"1 0 obj<<" * 200,
        "heron.txt": PHRASE.encode(),
    }
    text = read(sandbox, documents.mail(attached=attached), "a.eml").text
    assert PHRASE in text
    assert len(re.findall("not read: ", text)) == 3, text
    assert "Attachment: cut.png (400 bytes)" in text


def test_signatures_of_mails_are_not_text(sandbox: Sandbox) -> None:
    signature = b"-----BEGIN PGP SIGNATURE-----\n\niEYEABECAAYFAk11MJQACgkQ\n-----END PGP SIGNATURE-----\n"
    mail = documents.mail(attached={"signature.asc": signature})
    mail = mail.replace(b"application/octet-stream", b"application/pgp-signature")
    assert b"pgp-signature" in mail
    assert "iEYEABEC" not in read(sandbox, mail, "a.eml").text


def test_recognition_has_a_limit_of_its_own() -> None:
    """A document without pictures keeps to its own; the first picture brings the larger one."""
    narrow = Sandbox({"mail": Limits(silent_s=10.0, memory_bytes=300 << 20)})
    try:
        assert PHRASE in " ".join(read(narrow, HOLDING["a.eml"](), "a.eml").text.split())
    finally:
        narrow.close()


@pytest.mark.long
def test_a_long_scan_of_dense_pages_is_read_to_its_end(sandbox: Sandbox) -> None:
    """Lines of one page that were recognised together, all as wide as the widest, took more than a child may have."""
    from PIL import Image

    line = "as the survey of the upper weir was not finished before the ice, the gauges were read by hand until March"
    pages = [
        Image.open(io.BytesIO(documents.page([f"{page}.{row} {line}" for row in range(58)], dpi=150))) for page in range(12)
    ]
    out = io.BytesIO()
    pages[0].save(out, "PDF", save_all=True, append_images=pages[1:], resolution=150)
    found = read(sandbox, out.getvalue(), "scan.pdf")
    assert found.text.count("## Page ") == 12
    assert "unread" not in found.facts
    assert found.text.count("gauges were read by hand") > 0.75 * 12 * 58
