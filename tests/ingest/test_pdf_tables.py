"""Tables in PDFs: cells under their heads, empty ones too; and what only looks like one stays as it was."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
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
