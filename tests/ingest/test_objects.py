"""Charts, and files that stand in office documents as objects."""

from __future__ import annotations

import io
import lzma
import struct
import zipfile
from pathlib import Path

import olefile
import pytest

from memdir.ingest.extractors.output import ExtractionError
from memdir.ingest.sandbox import Sandbox
from memdir_bench.ingest import documents
from tests.ingest.compound import compound
from tests.ingest.reading import read

pytestmark = pytest.mark.promise("extract.kinds")
SPACE = "urn:oasis:names:tc:opendocument:xmlns"
CHART = "http://schemas.openxmlformats.org/drawingml/2006/chart"
SERIES = (
    "<c:ser><c:tx><c:strRef><c:strCache><c:pt idx='0'><c:v>{name}</c:v></c:pt></c:strCache></c:strRef></c:tx>"
    "<c:cat><c:numRef><c:numCache><c:formatCode>yyyy\\-mm\\-dd</c:formatCode>{days}</c:numCache></c:numRef></c:cat>"
    "<c:val><c:numRef><c:numCache><c:formatCode>General</c:formatCode>{values}</c:numCache></c:numRef></c:val></c:ser>"
)


def points(*values: str) -> str:
    return "".join(f"<c:pt idx='{at}'><c:v>{value}</c:v></c:pt>" for at, value in enumerate(values))


def chart(title: str = "Catch of the year") -> str:
    """Of a kind that no library for slides knows."""
    days = points("45658", "45689")
    drawn = SERIES.format(name="Cod", days=days, values=points("4.4000000000000004", "12.0"))
    drawn += SERIES.format(name="Hake", days=days, values="<c:pt idx='1'><c:v>7</c:v></c:pt><c:pt idx='?'><c:v>9</c:v></c:pt>")
    said = f"<a:p xmlns:a='http://schemas.openxmlformats.org/drawingml/2006/main'><a:r><a:t>{title}</a:t></a:r></a:p>"
    return (
        f"<c:chartSpace xmlns:c='{CHART}'><c:chart><c:title><c:tx><c:rich>{said}</c:rich></c:tx></c:title><c:plotArea>"
        f"<c:area3DChart>{drawn}</c:area3DChart></c:plotArea></c:chart></c:chartSpace>"
    )


SHOWN = "Chart: Catch of the year\n\n|  | Cod | Hake |\n| --- | --- | --- |\n| 2025-01-01 | 4.4 |  |\n| 2025-02-01 | 12 | 7 |\n"


def attached(name: str, data: bytes, *, wide: str = "") -> bytes:
    """The stream of an attached file ([MS-OLEDS] 2.3.6)."""
    place = b"C:\\" + name.encode() + b"\0"
    body = b"\x02\0" + name.encode() + b"\0" + place + b"\0\0\x03\0" + struct.pack("<I", len(place)) + place
    body += struct.pack("<I", len(data)) + data
    for text in (f"C:\\{wide}", wide, f"D:\\{wide}") if wide else ():
        body += struct.pack("<I", len(text)) + text.encode("utf-16-le")
    return struct.pack("<I", len(body)) + body


def with_parts(package: bytes, **parts: bytes) -> bytes:
    made = io.BytesIO(package)
    with zipfile.ZipFile(made, "a") as archive:
        for name, data in parts.items():
            archive.writestr(name, data)
    return made.getvalue()


def opendocument(body: str, **parts: str | bytes) -> bytes:
    spaces = " ".join(f'xmlns:{short}="{SPACE}:{name}:1.0"' for short, name in SPACES.items())
    begin = f'<office:document-content {spaces} xmlns:xlink="http://www.w3.org/1999/xlink" {DC}>'
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        archive.writestr("mimetype", "application/vnd.oasis.opendocument.text")
        archive.writestr(
            "content.xml", f"{begin}<office:body><office:text>{body}</office:text></office:body></office:document-content>"
        )
        archive.writestr("META-INF/manifest.xml", f'<manifest:manifest xmlns:manifest="{SPACE}:manifest:1.0"/>')
        for name, data in parts.items():
            archive.writestr(name, data if isinstance(data, bytes) else f"{begin}{data}</office:document-content>")
    return made.getvalue()


DC = 'xmlns:dc="http://purl.org/dc/elements/1.1/"'
SPACES = {
    "office": "office", "text": "text", "table": "table", "draw": "drawing", "svg": "svg-compatible", "style": "style",
    "chart": "chart",
}  # fmt: skip


def test_charts_of_slides_of_any_kind(sandbox: Sandbox) -> None:
    from pptx import Presentation
    from pptx.opc.package import Part
    from pptx.opc.packuri import PackURI

    deck = Presentation()
    slide = deck.slides.add_slide(deck.slide_layouts[5])
    slide.shapes.title.text = "The season"
    office = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    for number, data in enumerate((chart(), "<c:", "<none/>"), start=1):
        part = Part(PackURI(f"/ppt/charts/chart{number}.xml"), "application/xml", deck.part.package, data.encode())
        slide.part.relate_to(part, f"{office}/chart")
    made = io.BytesIO()
    deck.save(made)
    assert read(sandbox, made.getvalue(), "a.pptx").text == f"## Slide 1: The season\n\n{SHOWN}"


def test_charts_of_word(sandbox: Sandbox) -> None:
    text = read(sandbox, with_parts(documents.docx(), **{"word/charts/chart1.xml": chart().encode()}), "a.docx").text
    assert f"## Chart 1\n\n{SHOWN}" in text


def test_titles_of_charts_in_sheets(sandbox: Sandbox) -> None:
    import xlsxwriter

    made = io.BytesIO()
    book = xlsxwriter.Workbook(made, {"in_memory": True})
    sheet = book.add_worksheet("Catch")
    sheet.write_column(0, 0, [4, 12])
    drawn = book.add_chart({"type": "line"})
    drawn.add_series({"values": "=Catch!$A$1:$A$2"})
    drawn.set_title({"name": "Cod since the ban"})
    drawn.set_y_axis({"name": "Tonnes"})
    sheet.insert_chart("C1", drawn)
    book.close()
    text = read(sandbox, made.getvalue(), "a.xlsx").text
    assert "- Chart: Cod since the ban\n- Axis: Tonnes\n" in text
    assert text.count("12") == 1  # what it shows stands in the cells


@pytest.mark.parametrize(
    ("package", "place", "name"),
    [
        (documents.docx, "word/embeddings", "a.docx"),
        (documents.xlsx, "xl/embeddings", "a.xlsx"),
        (documents.pptx, "ppt/embeddings", "a.pptx"),
    ],
)
def test_files_in_office_documents(sandbox: Sandbox, package, place: str, name: str) -> None:  # type: ignore[no-untyped-def]
    log = attached("log.txt", b"Fog until noon.")
    wide = attached("?.txt", b"Gegen Mittag klar.", wide="Wetterbüro.txt")
    behind = b'<R><Relationship Target="../embeddings/Sheet2.xlsx"/></R>'
    parts = {
        f"{place}/oleObject1.bin": compound({"\x01Ole10Native": log}),
        f"{place}/oleObject2.bin": compound({"\x01Ole10Native": wide}),
        f"{place}/Sheet1.xlsx": documents.xlsx(),
        f"{place}/Sheet2.xlsx": documents.xlsx(),
        f"{place.partition('/')[0]}/charts/_rels/chart1.xml.rels": behind,
        f"{place}/oleObject3.bin": compound({"Equation Native": b"nobody reads it"}),
        f"{place}/oleObject4.bin": b"\xd0\xcf\x11\xe0 cut off",
    }
    text = read(sandbox, with_parts(package(), **parts), name).text
    assert "## Attachment: log.txt\n\nFog until noon.\n" in text
    assert "## Attachment: Wetterbüro.txt\n\nGegen Mittag klar.\n" in text
    assert text.count("## Attachment: Sheet1.xlsx") == 1
    assert "Sheet2" not in text
    assert "oleObject" not in text


@pytest.mark.parametrize(
    "streams",
    [
        {"EncryptedPackage": b"secret", "EncryptionInfo": b"agile"},
        {"Workbook": struct.pack("<HHIHHI", 0x809, 4, 0x600, 0x2F, 4, 1) + bytes(range(200))},
    ],
)
def test_office_files_with_a_password_say_so(sandbox: Sandbox, streams: dict[str, bytes]) -> None:
    with pytest.raises(ExtractionError, match="encrypted with a password"):
        read(sandbox, compound(streams), "a")


def test_objects_of_an_opendocument_text(sandbox: Sandbox) -> None:
    body = (
        "<text:p>See the chart.</text:p><text:p><draw:frame><svg:title>Boats</svg:title><svg:desc>in the harbour</svg:desc>"
        '<draw:image xlink:href="Pictures/none.png"/></draw:frame></text:p>'
        '<text:p><draw:frame><draw:object xlink:href="./Object 1"/></draw:frame></text:p>'
        '<text:p><draw:frame><draw:object-ole xlink:href="./Object 2"/></draw:frame></text:p>'
        "<text:p><draw:frame><draw:text-box><text:p>Outer <draw:frame><draw:text-box><text:p>inner words</text:p>"
        "</draw:text-box></draw:frame></text:p></draw:text-box></draw:frame></text:p>"
    )
    drawn = (
        "<office:body><office:chart><chart:chart><chart:title><text:p>Catch of the year</text:p></chart:title><table:table>"
        "<table:table-row><table:table-cell><text:p>Cod</text:p></table:table-cell></table:table-row>"
        "<table:table-row><table:table-cell><text:p>12</text:p></table:table-cell></table:table-row>"
        "</table:table></chart:chart></office:chart></office:body>"
    )
    header = "<office:master-styles><style:header><text:p>Harbour office</text:p></style:header></office:master-styles>"
    data = opendocument(
        body,
        **{
            "Object 1/content.xml": drawn,
            "Object 2": compound({"\x01Ole10Native": attached("log.txt", b"Fog until noon.")}),
            "styles.xml": f"{header}<style:footer><text:p>Harbour office</text:p><text:p>7</text:p></style:footer>",
        },
    )
    text = read(sandbox, data, "a.odt").text
    assert "(picture: Boats in the harbour)" in text
    assert "Catch of the year\n\n| Cod |\n| --- |\n| 12 |\n" in text
    assert "## Attachment: log.txt\n\nFog until noon.\n" in text
    assert text.endswith("## Headers and footers\n\nHarbour office\n")
    assert text.count("inner words") == 1


def test_cells_of_an_opendocument_table(sandbox: Sandbox) -> None:
    comment = (
        "<office:annotation><dc:creator>Ana</dc:creator><dc:date>2026-05-02</dc:date><text:p>why?</text:p></office:annotation>"
    )
    cells = (
        f"<text:h>Net{comment}</text:h>",
        "<text:p>Price</text:p><text:list><text:list-item><text:p>in Euro</text:p></text:list-item></text:list>",
    )
    row = "".join(f"<table:table-cell>{cell}</table:table-cell>" for cell in cells)
    data = opendocument(f"<table:table><table:table-row>{row}</table:table-row></table:table>")
    assert read(sandbox, data, "a.odt").text == "| Net [comment of Ana: why?] | Price in Euro |\n| --- | --- |\n"


def test_files_in_old_word_documents(sandbox: Sandbox) -> None:
    old = lzma.decompress((Path(__file__).parent / "data" / "words.doc.xz").read_bytes())
    with olefile.OleFileIO(old) as storage:
        streams = {"/".join(entry): storage.openstream(entry).read() for entry in storage.listdir()}
    kept = {name: streams[name] for name in ("WordDocument", "1Table", "0Table") if name in streams}
    pool = {
        "ObjectPool/_1/\x01Ole10Native": attached("log.txt", b"Fog until noon."),
        "ObjectPool/_2/\x01Ole10Native": b"a link",
    }
    text = read(sandbox, compound({**kept, **pool}), "a.doc").text
    assert text.endswith("## Attachment: log.txt\n\nFog until noon.\n")
    assert text.count("Attachment") == 1


def test_what_is_said_in_place_of_a_picture(sandbox: Sandbox) -> None:
    page = b"<html><body><p>Look <img src='x' alt='A man &amp; his dog'> here <img alt=\"logo\"></p></body></html>"
    assert "Look (picture: A man & his dog) here" in read(sandbox, page, "a.html").text
    assert "logo" not in read(sandbox, page, "a.html").text
