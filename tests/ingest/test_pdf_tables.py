"""Tables in PDFs: cells under their heads, empty ones too; and what only looks like one stays as it was."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import pytest

from memdir.ingest.extractors import pdf
from memdir.ingest.sandbox import Sandbox
from tests.ingest.reading import read

pytestmark = pytest.mark.promise("extract.kinds")
ITEMS = [
    ["Item", "Qty", "Unit price", "Total"],
    ["Mooring line, 24 mm", "4", "118.00", "472.00"],
    ["Splicing", "8", "", "284.00"],
    ["Delivery to the quay", "", "", "90.00"],
]
PROSE = (
    "The ropes were delivered on the second of May and hung in the shed, where the wind dries them. "
    "Nobody has asked for them since, and the invoice has not been paid in full so far."
)


def laid_out(sandbox: Sandbox, *parts: Any) -> str:
    """The text of a PDF of paragraphs and tables, which reportlab lays out."""
    from reportlab.platypus import SimpleDocTemplate

    made = io.BytesIO()
    SimpleDocTemplate(made).build(list(parts))
    return read(sandbox, made.getvalue(), "a.pdf").text


def drawn(sandbox: Sandbox, lines: Sequence[Sequence[tuple[float, str]]], *, font: str = "Helvetica") -> str:
    """The text of a PDF of lines, from the top of its page down, each of (distance from the left, text)."""
    from reportlab.pdfgen.canvas import Canvas

    made = io.BytesIO()
    canvas = Canvas(made)
    canvas.setFont(font, 10)
    for number, line in enumerate(lines):
        for x, text in line:
            canvas.drawString(x, 800 - 13 * number, text)
    canvas.save()
    return read(sandbox, made.getvalue(), "a.pdf").text


def paragraph() -> Any:
    from reportlab.lib.styles import getSampleStyleSheet
    from reportlab.platypus import Paragraph

    return Paragraph(PROSE, getSampleStyleSheet()["Normal"])


def table(rows: Sequence[Sequence[str]], *style: tuple[Any, ...]) -> Any:
    from reportlab.platypus import Table

    return Table([list(row) for row in rows], style=list(style))


@pytest.mark.parametrize("numbers", ["LEFT", "CENTER", "RIGHT"])
def test_cells_stand_under_their_heads_and_empty_ones_are_kept(sandbox: Sandbox, numbers: str) -> None:
    style = ("ALIGN", (1, 0), (-1, -1), numbers)
    text = laid_out(sandbox, paragraph(), table(ITEMS, style), paragraph())
    assert (
        "| Item | Qty | Unit price | Total |\n"
        "| --- | --- | --- | --- |\n"
        "| Mooring line, 24 mm | 4 | 118.00 | 472.00 |\n"
        "| Splicing | 8 |  | 284.00 |\n"
        "| Delivery to the quay |  |  | 90.00 |\n\n"
    ) in text
    assert text.count("where the wind dries them.\nNobody has asked") == 2, "prose is prose, sentence by sentence"


def test_a_head_whose_words_reach_over_the_columns_is_placed_by_them(sandbox: Sandbox) -> None:
    text = drawn(
        sandbox,
        [
            [(150, "Estimate"), (200, "Std. Error"), (255, "t value")],
            [(50, "(Intercept)"), (160, "32.310"), (215, "18.414"), (265, "1.75")],
            [(50, "bloodp"), (160, "-0.667"), (215, "0.286"), (265, "-2.33")],
            [(50, "logdose"), (160, "15.995"), (215, "7.121"), (265, "2.25")],
        ],
    )
    assert "|  | Estimate | Std. Error | t value |\n| --- | --- | --- | --- |\n| (Intercept) | 32.310 | 18.414 | 1.75 |" in text


def test_a_sentence_above_numbers_is_not_their_head(sandbox: Sandbox) -> None:
    rows = [[(50, f"berth {n}"), (200, f"{n}.5"), (350, f"{n * 3}")] for n in (2, 1, 4)]
    text = drawn(sandbox, [[(50, "What each of the berths had in the last of the winters, in metres")], *rows])
    assert "in metres\n\n|  |  |  |\n| --- | --- | --- |\n| berth 2 | 2.5 | 6 |\n" in text


def test_code_contents_two_columns_of_prose_and_lists_of_two_columns_stay(sandbox: Sandbox) -> None:
    code = [
        [(50, "x      = 1      # the first")],
        [(50, "yy     = 22     # the second")],
        [(50, "zzz    = 333    # the third")],
    ]
    assert "|" not in drawn(sandbox, code, font="Courier")
    contents = [[(50, f"{n}"), (80, "Ropes and reels"), (400, f"{n * n}")] for n in range(2, 7)]
    assert "|" not in drawn(sandbox, contents)
    newspaper = [[(50, PROSE[n : n + 40]), (300, PROSE[-n - 41 : -n - 1])] for n in range(0, 90, 15)]
    assert "|" not in drawn(sandbox, newspaper)
    keys = [[(50, f"-{letter}"), (200, f"what {letter} does")] for letter in "abc"]
    assert "|" not in drawn(sandbox, keys)


def test_no_word_is_lost_or_moved(sandbox: Sandbox) -> None:
    text = laid_out(sandbox, paragraph(), table(ITEMS), paragraph())
    said = [word for line in [PROSE, *(" ".join(row) for row in ITEMS), PROSE] for word in re.findall(r"\w+", line)]
    assert re.findall(r"\w+", text.split("## Page 1\n", 1)[1]) == said


def test_the_bullets_of_tex_are_items() -> None:
    assert pdf._BULLETS.sub("•", "goals.\r\n\x88 Make much\r\nof \x88 it") == "goals.\r\n• Make much\r\nof \x88 it"
    assert pdf.cork_decoded("ums are \x10\x1cnished") == "ums are “finished"


LONG = "Consulting on the migration of the billing system from the old mainframe, the first phase of three"
GRID = (
    f"| No. | Item | Amount |\n| --- | --- | --- |\n| 1 | {LONG} | 1,140.00 |\n"
    "| 2 | Travel to Bergen |  |\n| 3 | Hosting | 310.00 |\n"
)


def sheet(sandbox: Sandbox, draw: Callable[[Any], None]) -> str:
    """The text of a page with a heading, a table of three rows, the first on three lines, and a last sentence; `draw`
    draws what the cells are told apart by, at ACROSS and DOWN."""
    from reportlab.pdfgen.canvas import Canvas

    made = io.BytesIO()
    canvas = Canvas(made)
    canvas.setFont("Helvetica", 10)
    draw(canvas)
    canvas.drawString(50, 730, "Invoice 118 of Beringer for the attention of Ms Oduya")
    words = LONG.split()
    for x, y, text in (
        (54, 687, "No."), (94, 687, "Item"), (294, 687, "Amount"),
        (54, 667, "1"), *((94, 667 - 12 * at, " ".join(words[6 * at : 6 * at + 6])) for at in range(3)), (294, 667, "1,140.00"),
        (54, 617, "2"), (94, 617, "Travel to Bergen"),
        (54, 597, "3"), (94, 597, "Hosting"), (294, 597, "310.00"),
    ):  # fmt: skip
        canvas.drawString(x, y, text)
    canvas.drawString(50, 540, "Please pay within 14 days, and say the number of the invoice.")
    canvas.save()
    return read(sandbox, made.getvalue(), "a.pdf").text


ACROSS, DOWN = (50, 90, 290, 360), (700, 680, 630, 610, 590)


def boxes(canvas: Any) -> None:
    """Each cell has borders of its own, two points from the next."""
    for left, right in pairwise(ACROSS):
        for top, bottom in pairwise(DOWN):
            canvas.rect(left + 1, bottom + 1, right - left - 2, top - bottom - 2)


def lines_and_underlines(canvas: Any) -> None:
    """A frame around the table, its lines, and links in cells that begin at the border."""
    canvas.rect(30, 570, 400, 150)
    for x in ACROSS:
        canvas.line(x, DOWN[-1], x, DOWN[0])
    for y in DOWN:
        canvas.line(ACROSS[0], y, ACROSS[-1], y)
    for y in (665, 653, 641):
        canvas.line(91, y, 200, y)


def backgrounds(canvas: Any) -> None:
    canvas.setFillGray(0.9)
    for left, right in pairwise(ACROSS):
        for top, bottom in pairwise(DOWN):
            canvas.rect(left, bottom, right - left, top - bottom, stroke=0, fill=1)
    canvas.setFillGray(0)


def lines_below(canvas: Any) -> None:
    """As a page on the web has them: below each cell, the first one below the heads."""
    for left, right in pairwise(ACROSS):
        for y in DOWN[1:]:
            canvas.line(left, y, right, y)


def lines_through(canvas: Any) -> None:
    """Below each row, from the first column to the last."""
    for y in DOWN[1:]:
        canvas.line(ACROSS[0], y, ACROSS[-1], y)


def every_other_row(canvas: Any) -> None:
    """Backgrounds of the first row below the heads, and of the third."""
    canvas.setFillGray(0.9)
    for left, right in pairwise(ACROSS):
        canvas.rect(left, 630, right - left, 50, stroke=0, fill=1)
        canvas.rect(left, 590, right - left, 20, stroke=0, fill=1)
    canvas.setFillGray(0)


def nothing(canvas: Any) -> None:
    """Rows are further apart than the lines in them."""


@pytest.mark.parametrize(
    "draw", [boxes, lines_and_underlines, backgrounds, lines_below, lines_through, every_other_row, nothing]
)
def test_cells_keep_their_lines_together(sandbox: Sandbox, draw: Callable[[Any], None]) -> None:
    text = sheet(sandbox, draw)
    assert f"Ms Oduya\n\n{GRID}\nPlease pay" in text


def test_a_cell_over_several_columns_is_the_first_of_them(sandbox: Sandbox) -> None:
    rows = [*ITEMS, ["Total", "", "", "846.00"]]
    text = laid_out(sandbox, table(rows, ("GRID", (0, 0), (-1, -1), 1, "black"), ("SPAN", (0, -1), (2, -1))))
    assert text.endswith("| Delivery to the quay |  |  | 90.00 |\n| Total |  |  | 846.00 |\n")


def test_rows_that_no_line_parts_stay_rows(sandbox: Sandbox) -> None:
    rows = [["Ship", "Length", "Built"], *([f"Heron {at}", f"{12 + at}.5", f"19{70 + at}"] for at in range(6))]
    style = [("BOX", (0, 0), (-1, -1), 1, "black"), ("INNERGRID", (0, 0), (-1, 0), 1, "black")]
    style += [("LINEAFTER", (0, 0), (-1, -1), 1, "black"), ("LINEBELOW", (0, 0), (-1, 0), 1, "black")]
    text = laid_out(sandbox, table(rows, *style))
    made = "| Ship | Length | Built |\n| --- | --- | --- |\n| Heron 0 | 12.5 | 1970 |\n| Heron 1 | 13.5 | 1971 |\n"
    assert made in text
    style = [("LINEABOVE", (0, 0), (-1, 0), 1, "black"), ("LINEBELOW", (0, 0), (-1, 0), 1, "black")]
    assert made in laid_out(sandbox, table(rows, *style, ("LINEBELOW", (0, -1), (-1, -1), 1, "black"))), "as in books"


def test_a_chart_and_a_page_in_boxes_are_no_tables(sandbox: Sandbox) -> None:
    def chart(canvas: Any) -> None:
        for at in range(9):
            canvas.line(50, 300 + 20 * at, 450, 300 + 20 * at)
            canvas.line(50 + 50 * at, 300, 50 + 50 * at, 460)
        canvas.drawString(60, 310, "herons")
        canvas.drawString(210, 405, "terns")

    assert sheet(sandbox, chart).count("|") == GRID.count("|")
    columns = [[paragraph()] * 8, [paragraph()] * 8]
    text = laid_out(sandbox, table([[columns[0], columns[1]]] * 2, ("GRID", (0, 0), (-1, -1), 1, "black")))  # type: ignore[list-item]
    assert "|" not in text
    assert text.count("paid in full") == 32
