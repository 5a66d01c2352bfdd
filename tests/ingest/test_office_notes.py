"""What stands beside the cells and shapes of office files: comments, text boxes, diagrams."""

from __future__ import annotations

import io
import zipfile

import pytest

from memdir.ingest.sandbox import Sandbox
from memdir_bench.ingest import documents
from tests.ingest.reading import read

pytestmark = pytest.mark.promise("extract.kinds")


def test_comments_and_text_boxes_stand_behind_their_sheet(sandbox: Sandbox) -> None:
    import xlsxwriter

    made = io.BytesIO()
    book = xlsxwriter.Workbook(made, {"in_memory": True})
    ropes = book.add_worksheet("Ropes")
    ropes.write(0, 0, "Length")
    ropes.write_comment("A1", "is it not 26?", {"author": "Ana"})
    ropes.insert_textbox(5, 1, "Ask the chandler\nbefore May")
    book.add_worksheet("Sails").write(0, 0, "Area")
    book.add_worksheet("Notes").write_comment("B7", "on a sheet without cells")
    book.close()
    text = read(sandbox, made.getvalue(), "a.xlsx").text
    ropes_text, _, rest = text.partition("## Sheet: Sails")
    assert "| row | Length |" in ropes_text
    assert "- Comment of Ana on A1: is it not 26?\n" in ropes_text
    assert "- Text box: Ask the chandler before May\n" in ropes_text
    assert rest.endswith("## Sheet: Notes\n\n- Comment on B7: on a sheet without cells\n")
    assert rest.count("Comment") == 1


def test_where_the_words_of_cells_lead(sandbox: Sandbox) -> None:
    import xlsxwriter

    made = io.BytesIO()
    book = xlsxwriter.Workbook(made, {"in_memory": True})
    sheet = book.add_worksheet("Ropes")
    sheet.write_url("A1", "https://example.org/ropes?length=26&kind=b", string="Chandler")
    sheet.write_url("B2", "https://example.org/shown")
    sheet.write_url("C3", "internal:Ropes!A1", string="above")
    book.close()
    text = read(sandbox, made.getvalue(), "a.xlsx").text
    assert "- Link on A1: https://example.org/ropes?length=26&kind=b\n" in text
    assert text.count("https://example.org/shown") == 1
    assert text.count("Link on") == 1


@pytest.mark.parametrize("empty", ["", "<v></v>", "<v />"])
def test_formulas_that_nobody_has_worked_out_are_read(sandbox: Sandbox, empty: str) -> None:
    """As openpyxl writes them."""
    import xlsxwriter

    made, written = io.BytesIO(), io.BytesIO()
    book = xlsxwriter.Workbook(made, {"in_memory": True})
    sheet = book.add_worksheet("Ropes")
    sheet.write_column(0, 0, [26, 40])
    sheet.write_formula("A3", "=SUM(A1:A2)")
    sheet.write_formula("A4", "=MAX(A1:A2)", value=40)
    book.close()
    with zipfile.ZipFile(made) as whole, zipfile.ZipFile(written, "w") as archive:
        for name in whole.namelist():
            archive.writestr(name, whole.read(name).replace(b"<v>0</v>", empty.encode()))
    text = read(sandbox, written.getvalue(), "a.xlsx").text
    assert text.endswith("\n- A3: =SUM(A1:A2)\n")
    assert "MAX" not in text


def test_a_damaged_part_of_comments_costs_no_cell(sandbox: Sandbox) -> None:
    import xlsxwriter

    made, broken = io.BytesIO(), io.BytesIO()
    book = xlsxwriter.Workbook(made, {"in_memory": True})
    sheet = book.add_worksheet("Ropes")
    sheet.write(0, 0, "Length")
    sheet.write_comment("A1", "is it not 26?")
    book.close()
    with zipfile.ZipFile(made) as whole, zipfile.ZipFile(broken, "w") as written:
        for name in whole.namelist():
            written.writestr(name, b"\0<" if "comments" in name else whole.read(name))
    assert "| row | Length |" in read(sandbox, broken.getvalue(), "a.xlsx").text


def test_comments_and_links_of_an_opendocument_sheet(sandbox: Sandbox) -> None:
    space = "urn:oasis:names:tc:opendocument:xmlns"
    content = (
        f'<office:document-content xmlns:office="{space}:office:1.0" xmlns:table="{space}:table:1.0" '
        f'xmlns:text="{space}:text:1.0" xmlns:dc="http://purl.org/dc/elements/1.1/" '
        f'xmlns:xlink="http://www.w3.org/1999/xlink"><office:body><office:spreadsheet>'
        '<table:table table:name="Ropes"><table:table-row><table:table-cell office:value-type="string">'
        "<office:annotation><dc:creator>Ana</dc:creator><dc:date>2026-05-02</dc:date><text:p>is it not 26?</text:p>"
        '</office:annotation><text:p><text:a xlink:href="https://example.org/26">Length</text:a></text:p></table:table-cell>'
        "</table:table-row></table:table>"
        "</office:spreadsheet></office:body></office:document-content>"
    )
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        archive.writestr("mimetype", "application/vnd.oasis.opendocument.spreadsheet")
        archive.writestr("content.xml", content)
        archive.writestr("META-INF/manifest.xml", f'<manifest:manifest xmlns:manifest="{space}:manifest:1.0"/>')
    text = read(sandbox, made.getvalue(), "a.ods").text
    assert "Length" in text
    assert "- Comment of Ana: is it not 26?" in text
    assert "- Link on Length: https://example.org/26" in text


def test_comments_and_diagrams_of_slides(sandbox: Sandbox) -> None:
    from pptx import Presentation
    from pptx.opc.package import Part
    from pptx.opc.packuri import PackURI

    deck = Presentation()
    slide = deck.slides.add_slide(deck.slide_layouts[5])
    slide.shapes.title.text = "The season"
    office = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    slides = 'xmlns:p="http://schemas.openxmlformats.org/presentationml/2006/main"'
    drawing = 'xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main"'

    def add(owner: object, name: str, kind: str, data: str) -> None:
        part = Part(PackURI(f"/ppt/{name}"), "application/xml", deck.part.package, data.encode())
        owner.relate_to(part, kind)  # type: ignore[attr-defined]

    add(deck.part, "commentAuthors.xml", f"{office}/commentAuthors", f'<p:l {slides}><p:cmAuthor id="3" name="Ana"/></p:l>')
    said = '<p:cm authorId="3"><p:pos x="1" y="2"/><p:text>is it not 26?</p:text></p:cm>'
    add(slide.part, "comments/comment1.xml", f"{office}/comments", f"<p:cmLst {slides}>{said}</p:cmLst>")
    reply = "<p:reply><p:txBody><a:p><a:r><a:t>it is</a:t></a:r></a:p></p:txBody></p:reply>"
    new = f"<p:cm><p:txBody><a:p><a:r><a:t>Really?</a:t></a:r></a:p></p:txBody>{reply}</p:cm>"
    kind = "http://schemas.microsoft.com/office/2018/10/relationships/comments"
    add(slide.part, "comments/modern1.xml", kind, f"<p:cmLst {slides} {drawing}>{new}</p:cmLst>")
    add(slide.part, "comments/broken.xml", kind, "<p:")
    points = "".join(f"<d:pt><d:t><a:p><a:r><a:t>{step}</a:t></a:r></a:p></d:t></d:pt>" for step in ("Plan", "Sail", ""))
    data = f'<d:m xmlns:d="http://schemas.openxmlformats.org/drawingml/2006/diagram" {drawing}>{points}</d:m>'
    add(slide.part, "diagrams/data1.xml", f"{office}/diagramData", data)
    made = io.BytesIO()
    deck.save(made)
    text = read(sandbox, made.getvalue(), "a.pptx").text
    assert text.endswith(
        "## Slide 1: The season\n\n- Plan\n- Sail\n\n- Comment of Ana: is it not 26?\n- Comment: Really? it is\n"
    )


def test_diagrams_of_word(sandbox: Sandbox) -> None:
    drawing = 'xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main"'
    points = "".join(f"<d:pt><d:t><a:p><a:r><a:t>{step}</a:t></a:r></a:p></d:t></d:pt>" for step in ("Plan", "Sail", ""))
    data = f'<d:m xmlns:d="http://schemas.openxmlformats.org/drawingml/2006/diagram" {drawing}>{points}</d:m>'
    made = io.BytesIO(documents.docx())
    with zipfile.ZipFile(made, "a") as archive:
        archive.writestr("word/diagrams/data1.xml", data)
    assert "## Diagram 1\n\n- Plan\n- Sail\n" in read(sandbox, made.getvalue(), "a.docx").text
