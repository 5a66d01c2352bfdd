"""Lines of a PDF that its outline names are headings."""

from __future__ import annotations

import io
from collections.abc import Sequence

import pytest

from memdir.ingest.sandbox import Sandbox
from tests.ingest.reading import read

pytestmark = pytest.mark.promise("extract.kinds")


def outlined(pages: Sequence[Sequence[str]], titles: Sequence[tuple[str, int, int]]) -> bytes:
    """Pages of lines, with an outline of (title, level from 0, index of the page)."""
    from reportlab.pdfgen.canvas import Canvas

    made = io.BytesIO()
    canvas = Canvas(made, invariant=True)
    for number, lines in enumerate(pages):
        for key, (title, level, page) in enumerate(titles):
            if page == number:
                canvas.bookmarkPage(str(key))
                canvas.addOutlineEntry(title, str(key), level)
        for row, line in enumerate(lines):
            canvas.drawString(72, 750 - 20 * row, line)
        canvas.showPage()
    canvas.save()
    return made.getvalue()


def test_lines_that_an_outline_names_are_headings(sandbox: Sandbox) -> None:
    first = ("Nets and Boats", "Chapter 1", "Nets", "They are mended.", "1.1 Of the cod", "Large.")
    second = ("Nets", "Nets", "Again of them, more than once", "and on a second line", "1.2 Boats ....... 7", "Boats leak.")
    titles = (
        ("Nets", 0, 0), ("Of the cod", 1, 0), ("Nets", 0, 1), ("Again of them, more than once and on a second line", 1, 1),
        ("Boats", 1, 1), ("Not there", 0, 1),
    )  # fmt: skip
    text = read(sandbox, outlined((first, second), titles), "a.pdf").text
    assert text == (
        "## Page 1\n\nNets and Boats\n\n### Chapter 1 Nets\n\nThey are mended.\n\n#### 1.1 Of the cod\n\nLarge.\n\n"
        "## Page 2\n\nNets\n\n### Nets\n\n#### Again of them, more than once and on a second line\n\n"
        "1.2 Boats ....... 7\nBoats leak.\n"
    )
