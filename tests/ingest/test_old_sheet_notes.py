"""Comments, text boxes, headers and footers of Excel before 2007, in the fewest records that make a workbook."""

from __future__ import annotations

import random
import struct

from memdir.ingest.extractors import old_sheet_notes
from memdir.ingest.sandbox import Sandbox

from .compound import compound
from .reading import read


def record(kind: int, data: bytes = b"") -> bytes:
    return struct.pack("<HH", kind, len(data)) + data


def text(said: str, width: str) -> bytes:
    """Behind its length (`B` or `H`): in one byte a character where that is enough."""
    wide = not said.isascii()
    return struct.pack(f"<{width}", len(said)) + bytes([wide]) + said.encode("utf-16-le" if wide else "latin-1")


def shape(number: int, *pieces: str) -> bytes:
    """An object with a text that goes on over several records."""
    found = record(0x5D, struct.pack("<HHHH", 0x15, 18, 6, number) + bytes(18))
    found += record(0x1B6, bytes(10) + struct.pack("<HHI", sum(map(len, pieces)), 16, 0))
    found += b"".join(record(0x3C, text(piece, "H")[2:]) for piece in pieces)
    return found + record(0x3C, bytes(16))


def workbook(sheets: dict[str, bytes]) -> bytes:
    begin = record(0x809, struct.pack("<HHHHII", 0x600, 5, 0, 0, 0, 0))
    heads = sum(len(record(0x85, bytes(6) + text(name, "B"))) for name in sheets)
    at = len(begin) + heads + len(record(0x0A))
    found, bodies = begin, b""
    for name, inside in sheets.items():
        found += record(0x85, struct.pack("<IH", at + len(bodies), 0) + text(name, "B"))
        bodies += record(0x809, struct.pack("<HHHHII", 0x600, 16, 0, 0, 0, 0)) + inside + record(0x0A)
    return found + record(0x0A) + bodies


def note(row: int, column: int, number: int, author: str) -> bytes:
    return record(0x1C, struct.pack("<4H", row, column, 0, number) + text(author, "H") + b"\0")


FLEET = (
    record(0x14, text('&L&"Arial,Bold"Fleet&RPage &P', "H"))
    + record(0x15, text("&CFür Ana", "H"))
    + record(0x203, struct.pack("<HHHd", 0, 0, 0, 7.0))
    + shape(3, "Boxed ", "wörds")
    + shape(4, "Ana:\nis it not 26?")
    + note(2, 27, 4, "Ana")
)


def test_comments_boxes_and_margins_stand_under_their_sheet(sandbox: Sandbox) -> None:
    data = compound({"Workbook": workbook({"Fleet": FLEET, "Häfen": shape(3, "Piers") + note(0, 0, 9, "Bo")})})
    assert read(sandbox, data, "a.xls").text == (
        "## Sheet: Fleet\n\n| row | 7 |\n| --- | --- |\n\n- Text box: Boxed wörds\n- Comment of Ana on AB3: is it not 26?\n"
        "- Header and footer: Fleet, Page, Für Ana\n\n## Sheet: Häfen\n\n- Text box: Piers\n"
    )


def test_damaged_records_bring_what_stands_before_them() -> None:
    chance = random.Random(4)
    whole = workbook({"Fleet": FLEET})
    for _ in range(3_000):
        harmed = bytearray(whole)
        for _ in range(chance.randrange(1, 8)):
            harmed[chance.randrange(len(harmed))] = chance.randrange(256)
        found: dict[str, list[str]] = {}
        try:
            old_sheet_notes._add(bytes(harmed[: chance.randrange(len(harmed)) + 1]), found)
        except struct.error:
            continue
        assert all(isinstance(line, str) for lines in found.values() for line in lines)
