"""Documents of many kinds, written by libraries that do not read them: each says where its phrase stands."""

from __future__ import annotations

import ctypes
import io
import tarfile
import textwrap
import wave
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from email.message import EmailMessage
from xml.sax.saxutils import escape

from memdir_bench.ingest.conversations import calendar, card, chatgpt, claude, slack, whatsapp
from memdir_bench.ingest.phrases import PHRASE, ROWS, zipped


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """How a file of a kind is called, made, and found again."""

    name: str
    sibling: str
    make: Callable[[], bytes]
    place: str | None = None
    """The anchor that stands before the phrase."""


def pdf() -> bytes:
    """Two pages; the phrase is on the second."""
    return pdf_of(["An introduction to the river and its banks.", f"{PHRASE}."], lines_a_page=1)


def pdf_of(paragraphs: Sequence[str], *, lines_a_page: int = 40) -> bytes:
    """By reportlab, lines of at most 90 characters."""
    from reportlab.lib.pagesizes import A4
    from reportlab.pdfgen.canvas import Canvas

    out = io.BytesIO()
    canvas = Canvas(out, pagesize=A4)
    canvas.setTitle("Birds of the river")
    lines = [line for paragraph in paragraphs for line in textwrap.wrap(paragraph, 90)]
    for first in range(0, len(lines), lines_a_page):
        for number, line in enumerate(lines[first : first + lines_a_page]):
            canvas.drawString(72, 760 - 16 * number, line)
        canvas.showPage()
    canvas.save()
    return out.getvalue()


def scanned_pdf() -> bytes:
    from reportlab.lib.pagesizes import A4
    from reportlab.lib.utils import ImageReader
    from reportlab.pdfgen.canvas import Canvas

    out = io.BytesIO()
    canvas = Canvas(out, pagesize=A4)
    canvas.drawImage(ImageReader(io.BytesIO(png())), 0, 400, width=595, height=240)
    canvas.save()
    return out.getvalue()


def encrypted_pdf() -> bytes:
    from reportlab.lib.pdfencrypt import StandardEncryption
    from reportlab.pdfgen.canvas import Canvas

    out = io.BytesIO()
    canvas = Canvas(out, encrypt=StandardEncryption("secret", ownerPassword="owner"))
    canvas.drawString(72, 720, PHRASE)
    canvas.save()
    return out.getvalue()


def docx() -> bytes:
    """A heading, two paragraphs and a table."""
    return docx_table_of(ROWS, before=("An introduction.", f"{PHRASE}."))


def docx_of(paragraphs: Sequence[str]) -> bytes:
    """By python-docx."""
    return docx_table_of((), before=paragraphs)


def docx_table_of(rows: Sequence[Sequence[str]], *, before: Sequence[str] = ()) -> bytes:
    """By python-docx: paragraphs under a heading, then a table."""
    import docx

    document = docx.Document()
    document.core_properties.title = "Birds of the river"
    document.add_heading("Observations", 1)
    for paragraph in before:
        document.add_paragraph(paragraph)
    if rows:
        table = document.add_table(rows=len(rows), cols=len(rows[0]))
        for row, texts in zip(table.rows, rows, strict=True):
            for cell, text in zip(row.cells, texts, strict=True):
                cell.text = text
    out = io.BytesIO()
    document.save(out)
    return out.getvalue()


def xlsx() -> bytes:
    import xlsxwriter

    out = io.BytesIO()
    book = xlsxwriter.Workbook(out, {"in_memory": True})
    sheet = book.add_worksheet("Costs")
    for number, row in enumerate([*ROWS, (PHRASE, "", "")]):
        for column, text in enumerate(row):
            if number and column == 1 and text:
                sheet.write_number(number, column, float(text))
            elif number and column == 2 and text:
                sheet.write_boolean(number, column, text == "TRUE")
            else:
                sheet.write_string(number, column, text)
    book.close()
    return out.getvalue()


def xlsx_of(rows: Sequence[Sequence[str]]) -> bytes:
    """By XlsxWriter: every cell a text."""
    import xlsxwriter

    out = io.BytesIO()
    book = xlsxwriter.Workbook(out, {"in_memory": True})
    sheet = book.add_worksheet("Rows")
    for number, row in enumerate(rows):
        for column, text in enumerate(row):
            sheet.write_string(number, column, text)
    book.close()
    return out.getvalue()


def pptx() -> bytes:
    """Two slides; the second has the phrase and notes."""
    return pptx_of((), slides=(("Welcome", "To the river"), ("Herons", PHRASE)), notes="Mention the ice of 1963")


def pptx_of(paragraphs: Sequence[str], *, slides: Sequence[tuple[str, str]] = (), notes: str = "") -> bytes:
    """By python-pptx; of `paragraphs` each is the body of a slide without a title."""
    from pptx import Presentation

    deck = Presentation()
    slide = None
    for title, body in (*slides, *(("", paragraph) for paragraph in paragraphs)):
        slide = deck.slides.add_slide(deck.slide_layouts[1])
        slide.shapes.title.text = title
        slide.placeholders[1].text = body
    if notes and slide is not None:
        slide.notes_slide.notes_text_frame.text = notes
    out = io.BytesIO()
    deck.save(out)
    return out.getvalue()


def _open_document(kind: str, body: str) -> bytes:
    names = "".join(
        f' xmlns:{one}="urn:oasis:names:tc:opendocument:xmlns:{full}:1.0"'
        for one, full in (("office", "office"), ("text", "text"), ("table", "table"), ("draw", "drawing"))
    )
    content = (
        f'<?xml version="1.0"?><office:document-content{names}><office:body>{body}</office:body></office:document-content>'
    )
    mime = f"application/vnd.oasis.opendocument.{kind}"
    return zipped({"content.xml": content.encode(), "META-INF/manifest.xml": b"<manifest/>"}, first=mime)


def odt() -> bytes:
    """A heading, the phrase and a table."""
    return odt_table_of(ROWS, before=(f"{PHRASE}.",))


def odt_of(paragraphs: Sequence[str]) -> bytes:
    """Paragraphs under a heading."""
    return odt_table_of((), before=paragraphs)


def odt_table_of(rows: Sequence[Sequence[str]], *, before: Sequence[str] = ()) -> bytes:
    """Paragraphs under a heading, then a table."""
    cells = "".join(
        "<table:table-row>"
        + "".join(f"<table:table-cell><text:p>{escape(cell)}</text:p></table:table-cell>" for cell in row)
        + "</table:table-row>"
        for row in rows
    )
    said = "".join(f"<text:p>{escape(paragraph)}</text:p>" for paragraph in before)
    return _open_document(
        "text",
        f'<office:text><text:h text:outline-level="1">Observations</text:h>{said}'
        f"<table:table>{cells}</table:table></office:text>",
    )


def odp() -> bytes:
    pages = "".join(
        f"<draw:page><draw:frame><draw:text-box><text:p>{text}</text:p></draw:text-box></draw:frame></draw:page>"
        for text in ("Welcome", PHRASE)
    )
    return _open_document("presentation", f"<office:presentation>{pages}</office:presentation>")


def html() -> bytes:
    """A page with navigation around its text."""
    table = "<table><tr><th>Item</th><th>Amount</th></tr><tr><td>Walnut boards</td><td>1284.5</td></tr></table>"
    return page_of(f"<p>{PHRASE}.</p>{table}")


def page_of(body: str) -> bytes:
    """A web page with navigation around `body`."""
    return (
        "<!doctype html><html lang=en><head><title>Birds of the river</title></head><body>"
        f"<nav><a href=/>Home of the nav</a></nav><main><h1>Observations</h1>{body}</main></body></html>"
    ).encode()


def epub() -> bytes:
    """Two chapters; the phrase is in the second, which stands first in the package."""
    return epub_of(("An introduction.", f"{PHRASE}."))


def epub_of(paragraphs: Sequence[str]) -> bytes:
    """A chapter for each paragraph; the manifest names them backwards."""
    numbers = range(len(paragraphs))
    items = "".join(f'<item id="c{number}" href="{number}.xhtml"/>' for number in reversed(numbers))
    order = "".join(f'<itemref idref="c{number}"/>' for number in numbers)
    book = (
        '<package xmlns="http://www.idpf.org/2007/opf" xmlns:dc="http://purl.org/dc/elements/1.1/"><metadata>'
        "<dc:title>Birds of the river</dc:title><dc:language>en</dc:language></metadata>"
        f"<manifest>{items}</manifest><spine>{order}</spine></package>"
    )
    container = (
        '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>'
        '<rootfile full-path="in/book.opf"/></rootfiles></container>'
    )
    chapters = {
        f"in/{number}.xhtml": f"<html><body><p>{escape(paragraph)}</p></body></html>".encode()
        for number, paragraph in enumerate(paragraphs)
    }
    members = {"META-INF/container.xml": container.encode(), "in/book.opf": book.encode(), **chapters}
    return zipped(members, first="application/epub+zip")


def rtf() -> bytes:
    """Two paragraphs."""
    return rtf_of(("An introduction.", f"{PHRASE}."))


def rtf_of(paragraphs: Sequence[str]) -> bytes:
    """Characters beyond ASCII as \\u escapes (RTF 1.9)."""
    body = r"\par ".join(
        "".join(one if one.isascii() and one not in "{}\\" else f"\\u{ord(one)}?" for one in paragraph)
        for paragraph in paragraphs
    )
    return (r"{\rtf1\ansi\deff0 {\fonttbl {\f0 Times;}}\f0\fs24 " + body + r"\par}").encode("ascii")


def mail(subject: str = "Herons", *, attached: dict[str, bytes] | None = None) -> bytes:
    message = EmailMessage()
    message["From"] = "Ana Ruiz <ana@example.org>"
    message["To"] = "Marta <marta@example.org>"
    message["Subject"] = subject
    message["Date"] = "Wed, 25 Nov 2026 10:30:00 +0100"
    message.set_content(f"Dear Marta,\n\n{PHRASE}. Größe: 3 m.\n", cte="base64")
    for name, data in (attached or {}).items():
        message.add_attachment(data, maintype="application", subtype="octet-stream", filename=name)
    return message.as_bytes()


def mbox() -> bytes:
    messages = (mail("First"), mail("Second"))
    return b"".join(b"From ana@example.org Wed Nov 25 10:30:00 2026\n" + message + b"\n" for message in messages)


def page(lines: Sequence[str], *, dpi: int = 150) -> bytes:
    """A printed page in a plain face of 11 points, as a scanner sees it (PNG)."""
    from PIL import Image, ImageDraw, ImageFont

    size = round(11 * dpi / 72)
    image = Image.new("L", (round(8.27 * dpi), round(11.69 * dpi)), 255)
    draw, font = ImageDraw.Draw(image), ImageFont.load_default(size)
    for number, line in enumerate(lines):
        draw.text((dpi * 0.8, dpi * 0.8 + number * size * 1.5), line, font=font, fill=0)
    out = io.BytesIO()
    image.save(out, "PNG")
    return out.getvalue()


def png(text: str = PHRASE) -> bytes:
    from PIL import Image, ImageDraw, ImageFont

    image = Image.new("RGB", (1240, 500), "white")
    ImageDraw.Draw(image).text((60, 120), f"{text}.", font=ImageFont.load_default(36), fill="black")
    out = io.BytesIO()
    image.save(out, "PNG")
    return out.getvalue()


def archive() -> bytes:
    return zipped({"notes/heron.txt": PHRASE.encode(), "letter.docx": docx(), "raw.bin": bytes(range(256))})


def tar() -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as made:
        info = tarfile.TarInfo("notes/heron.txt")
        info.size = len(PHRASE)
        made.addfile(info, io.BytesIO(PHRASE.encode()))
    return out.getvalue()


SPOKEN = "The meeting about the harbour bridge was moved to Thursday morning."


def speech(text: str = SPOKEN, *, voice: str = "en-us", words_a_minute: int = 140) -> bytes:
    """WAV, by espeak-ng (its C API, speak_lib.h)."""
    import espeakng_loader

    library = ctypes.CDLL(espeakng_loader.get_library_path())
    rate = library.espeak_Initialize(2, 0, espeakng_loader.get_data_path().encode(), 0)  # 2: AUDIO_OUTPUT_SYNCHRONOUS
    samples: list[bytes] = []
    kind = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_short), ctypes.c_int, ctypes.c_void_p)

    def heard(data: ctypes._Pointer[ctypes.c_short], count: int, _events: int | None) -> int:
        if count:
            samples.append(ctypes.string_at(data, 2 * count))
        return 0

    callback = kind(heard)
    library.espeak_SetSynthCallback(callback)
    library.espeak_SetVoiceByName(voice.encode())
    library.espeak_SetParameter(1, words_a_minute, 0)  # 1: espeakRATE
    spoken = text.encode()
    library.espeak_Synth(spoken, len(spoken) + 1, 0, 1, 0, 1, None, None)
    library.espeak_Synchronize()
    return wav(b"".join(samples), rate=rate)


def wav(samples: bytes, *, rate: int = 16_000) -> bytes:
    out = io.BytesIO()
    with wave.open(out, "wb") as made:
        made.setnchannels(1)
        made.setsampwidth(2)
        made.setframerate(rate)
        made.writeframes(samples)
    return out.getvalue()


def film(frames: Sequence[bytes], *, seconds_each: int = 3) -> bytes:
    """A silent film (MPEG-4) of pictures."""
    import av
    import numpy as np
    from PIL import Image

    out = io.BytesIO()
    with av.open(out, "w", format="mp4") as made:
        stream = made.add_stream("mpeg4", rate=2)
        stream.width, stream.height, stream.pix_fmt, stream.bit_rate = 1240, 500, "yuv420p", 4_000_000
        for data in frames:
            picture = np.asarray(Image.open(io.BytesIO(data)).convert("RGB"))
            for _ in range(2 * seconds_each):
                made.mux(stream.encode(av.VideoFrame.from_ndarray(picture, format="rgb24")))
        made.mux(stream.encode(None))
    return out.getvalue()


KINDS = (
    Kind(name="river.pdf", sibling="pdf", make=pdf, place="Page 2"),
    Kind(name="scan.pdf", sibling="pdf", make=scanned_pdf, place="Page 1"),
    Kind(name="river.docx", sibling="office", make=docx),
    Kind(name="costs.xlsx", sibling="office", make=xlsx, place="Sheet: Costs"),
    Kind(name="deck.pptx", sibling="office", make=pptx, place="Slide 2: Herons"),
    Kind(name="river.odt", sibling="office", make=odt),
    Kind(name="deck.odp", sibling="office", make=odp, place="Slide 2"),
    Kind(name="river.rtf", sibling="office", make=rtf),
    Kind(name="page.html", sibling="web", make=html),
    Kind(name="book.epub", sibling="web", make=epub),
    Kind(name="letter.eml", sibling="mail", make=mail),
    Kind(name="inbox.mbox", sibling="mail", make=mbox),
    Kind(name="channel.json", sibling="mail", make=slack),
    Kind(name="conversations.json", sibling="mail", make=chatgpt),
    Kind(name="claude.json", sibling="mail", make=claude),
    Kind(name="chat.txt", sibling="mail", make=whatsapp),
    Kind(name="walk.ics", sibling="mail", make=calendar),
    Kind(name="ana.vcf", sibling="mail", make=card),
    Kind(name="board.png", sibling="image", make=png),
    Kind(name="bundle.zip", sibling="archive", make=archive),
    Kind(name="bundle.tar.gz", sibling="archive", make=tar),
)
