"""What people put on the pages of a PDF: fields that they filled in, notes, and words that they marked."""

from __future__ import annotations

import io
from typing import Any

import pytest

from memdir.ingest.sandbox import Sandbox
from tests.ingest.reading import read

pytestmark = pytest.mark.promise("extract.kinds")


def canvas() -> tuple[io.BytesIO, Any]:
    from reportlab.pdfgen.canvas import Canvas

    made = io.BytesIO()
    return made, Canvas(made)


def test_values_of_a_form_are_read_under_their_names_or_the_words_beside_them(sandbox: Sandbox) -> None:
    made, page = canvas()
    form = page.acroForm
    page.drawString(72, 760, "Request for a mooring, as agreed with the harbour in spring.")
    form.textfield(name="s", value="Grey Heron", x=300, y=720, width=200, height=20, tooltip="Name of the ship")
    page.drawString(72, 690, "Surname:")
    form.textfield(name="f1_01[0]", value="Oduya", x=200, y=682, width=200, height=20)
    page.drawString(72, 660, "First name")
    form.textfield(name="f1_02[0]", value="", x=200, y=652, width=200, height=20)
    page.drawString(100, 630, "By the year")
    form.checkbox(name="c1", checked=True, x=78, y=627, size=14)
    page.drawString(200, 630, "By the month")
    form.checkbox(name="c2", checked=False, x=180, y=627, size=14)
    page.drawString(72, 600, "Reason (please print)")
    form.textfield(name="f9", value="A new boat\nfrom Bergen", x=72, y=560, width=300, height=34, fieldFlags="multiline")
    form.choice(name="b", value="North", options=["North", "South"], x=200, y=520, width=90, height=20, tooltip="Berth")
    form.radio(name="kind", value="sail", selected=True, x=200, y=480)
    form.radio(name="kind", value="motor", selected=False, x=250, y=480)
    page.save()
    text = read(sandbox, made.getvalue(), "a.pdf").text
    assert text.endswith(
        "- Name of the ship: Grey Heron\n- Surname: Oduya\n- By the year: yes\n"
        "- Reason (please print): A new boat from Bergen\n- Berth: North\n- kind: sail\n"
    )
    assert "First name:" not in text, "nobody filled it in"


def test_notes_and_marked_words_are_read(sandbox: Sandbox) -> None:
    made, page = canvas()
    page.setFont("Helvetica", 11)
    page.drawString(72, 750, "The herons left the weir in spring, as everybody knows by now.")
    quad = (72, 762, 225, 762, 72, 747, 225, 747)
    page.highlightAnnotation("Which spring?", Rect=[72, 747, 225, 762], QuadPoints=quad, Color=[1, 1, 0])
    page.highlightAnnotation("", Rect=[72, 747, 225, 762], QuadPoints=quad, Color=[1, 1, 0])
    page.textAnnotation("Ask Ana\nabout it", Rect=[300, 700, 320, 720])
    page.linkURL("https://example.org/", (72, 700, 200, 720))
    page.showPage()
    page.line(10, 10, 20, 10)
    page.textAnnotation("On a page without words", Rect=[300, 700, 320, 720])
    page.save()
    text = read(sandbox, made.getvalue(), "a.pdf").text
    quoted = text.partition("Note on “")[2].partition("”")[0]
    assert "The herons left the weir in".startswith(quoted[:20])
    assert f"- Note on “{quoted}”: Which spring?\n- Marked: “{quoted}”\n- Note: Ask Ana about it\n" in text
    assert "## Page 2\n\n- Note: On a page without words\n" in text


def test_where_links_lead_is_read_unless_their_words_say_it(sandbox: Sandbox) -> None:
    made, page = canvas()
    for _ in range(2):
        page.drawString(72, 750, "Register here for the regatta")
        page.linkURL("https://quay.example/register?year=2026", (72, 745, 240, 765))
        page.drawString(72, 700, "or look at www.quay.example/regatta")
        page.linkURL("http://www.quay.example/regatta/", (72, 695, 280, 715))
        page.linkURL("file:///etc/passwd", (72, 645, 240, 665))
        page.showPage()
    page.save()
    text = read(sandbox, made.getvalue(), "a.pdf").text
    assert text.count("- Link “Register here for the regatta”: https://quay.example/register?year=2026\n") == 1
    assert text.count("- Link") == 1
