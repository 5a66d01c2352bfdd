"""Printed pages by RapidOCR, the engine that comes as a package, and by Tesseract where the system has it."""

from __future__ import annotations

import difflib
import shutil
from io import BytesIO

import pytest
from PIL import Image

from memdir.ingest.extractors import ocr
from memdir_bench.ingest import documents

LINES = (
    "Log every 50 steps; every step overloaded the tracking server.",
    "The dead-letter queue is replayed with `qpctl dlq replay --topic`; look at the r",
    "We stay on the pages router; the app router broke the preview of the CMS.",
    "Error messages shown to customers go through the translation files, never as lit",
    "ADC channel 3 shares its pin with the LED; sample with the LED off.",
    "GraphQL was rejected in January: carriers' partners can only do REST with pollin",
    "Protobuf with buf for internal calls; JSON is only at the edge.",
)


@pytest.mark.promise("extract.kinds")
@pytest.mark.parametrize("engine", ["rapidocr", *(["tesseract"] if shutil.which("tesseract") else [])])
@pytest.mark.parametrize("turned", [0, 90, 180, 270])
def test_a_printed_page_is_read_however_it_lies(monkeypatch: pytest.MonkeyPatch, turned: int, engine: str) -> None:
    """RapidOCR's classifier of directions took these lines for upside down, and noise was read."""
    monkeypatch.setattr(ocr, "engine", lambda: engine)
    lines = LINES[: 3 if turned else None]
    page = Image.open(BytesIO(documents.page(lines))).crop((0, 0, 1240, 640)).rotate(turned, expand=True)
    wanted, found = "".join("".join(lines).split()), "".join(ocr.recognised(page).split())
    same = sum(block.size for block in difflib.SequenceMatcher(None, wanted, found, autojunk=False).get_matching_blocks())
    assert same / len(wanted) >= 0.97, found


def test_a_picture_without_text_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ocr, "engine", lambda: "rapidocr")
    assert ocr.recognised(Image.new("RGB", (400, 300), "white")) == ""
