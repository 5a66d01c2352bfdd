"""Pages, Numbers and Keynote: what Apple's programs wrote was tried by hand (2009, 2013, 2018); these are made here."""

from __future__ import annotations

import random
import struct

import pytest

from memdir.ingest.extractors import iwa
from memdir.ingest.extractors.output import ExtractionError
from memdir.ingest.sandbox import Sandbox

from .iwork_made import cell, decimal, literal, message, packed, reference, storage, stored, table, varint
from .iwork_made import iwa as packed_blocks
from .reading import read

NUMBERS = {
    "Index/Document.iwa": [
        stored(1, 1, message((1, reference(2)), (1, reference(3)))),
        stored(2, 2, message((1, "Fleet"), (2, reference(10)), (2, reference(50)))),
        stored(3, 2, message((1, "Harbours"))),
        stored(50, 2011, message((1, message((7, reference(51)))))),
        storage(51, "Boxed words"),
        stored(60, 212, message((1, "Ana"))),
        stored(61, 3056, message((1, "check this"), (3, reference(60)))),
    ],
    "Index/Tables/Tile.iwa": [
        table(
            10,
            "Ships",
            [
                [cell(3, (8, struct.pack("<I", 1))), cell(3, (8, struct.pack("<I", 2))), None],
                [cell(9, (16, struct.pack("<I", 1))), cell(2, (1, decimal(12345, -1))), None],
                [None, cell(10, (1, decimal(7, 2, negative=True))), cell(6, (2, struct.pack("<d", 1.0)))],
                [cell(5, (4, struct.pack("<d", 86400.0))), cell(7, (2, struct.pack("<d", 90.0))), cell(0)],
            ],
            ["Name", "Tons | gross"],
            rich="Grey\nHeron",
        )
    ],
    "Index/MasterSlide.iwa": [storage(90, "of a master")],
}
KEYNOTE = {
    "Index/Document.iwa": [
        stored(1, 1, message((2, reference(2)))),
        stored(2, 2, message((3, message((2, reference(4)), (2, reference(3)))))),
        stored(3, 4, message((2, reference(30)))),
        stored(4, 4, message((2, reference(40)))),
    ],
    "Index/Slide.iwa": [
        stored(30, 5, message((5, reference(31)))),
        stored(31, 7, message((1, message((3, reference(32)))))),
        storage(32, "Second"),
    ],
    "Index/Slide-2.iwa": [
        stored(40, 5, message((5, reference(41)), (27, reference(44)))),
        stored(41, 7, message((1, message((3, reference(42)))))),
        storage(42, "First"),
        storage(43, "Ships\ufffc and piers"),
        stored(44, 15, message((1, reference(45)))),
        storage(45, "Speak slowly", 4),
    ],
}  # fmt: skip


def test_sheets_tables_and_comments_of_numbers(sandbox: Sandbox) -> None:
    found = read(sandbox, packed(NUMBERS), "fleet.numbers")
    assert found.text == (
        "## Sheet: Fleet\n\nShips\n\n| Name | Tons \\| gross |  |\n| --- | --- | --- |\n| Grey Heron | 1234.5 |  |\n"
        "|  | -700 | TRUE |\n| 2001-01-02 | 0:01:30 |  |\n\nBoxed words\n\n## Sheet: Harbours\n\n[comment of Ana: check this]\n"
    )
    assert found.kind == "office"


def test_slides_of_keynote_in_the_order_of_the_show_with_their_notes(sandbox: Sandbox) -> None:
    found = read(sandbox, packed(KEYNOTE), "talk.key")
    assert found.text == "## Slide 1: First\n\nShips and piers\n\nNotes: Speak slowly\n\n## Slide 2: Second\n"
    assert found.facts["slides"] == 2
    inner = packed({"Talk.key/Index.zip": packed(KEYNOTE)})
    assert read(sandbox, inner, "talk.zip").text == found.text, "a folder of older programs, packed"


def test_the_text_of_pages(sandbox: Sandbox) -> None:
    parts = [storage(2, "Running head", 1), storage(3, "In a box"), storage(4, "One.\nTwo.", 0), storage(5, "A note", 2)]
    found = read(sandbox, packed({"Index/Document.iwa": [stored(1, 10000, b""), *parts]}), "letter.pages")
    assert found.text == (
        "One.\nTwo.\n\n## Text boxes\n\nIn a box\n\n## Footnotes\n\nA note\n\n## Headers and footers\n\nRunning head\n"
    )


def test_documents_from_before_2013_are_xml(sandbox: Sandbox) -> None:
    text = (
        b'<d xmlns:sf="a" xmlns:key="b" xmlns:sfa="c"><key:theme-list><sf:p>of a theme</sf:p></key:theme-list><key:slide>'
        b'<sf:p>Ships <sf:span>and\n piers</sf:span></sf:p><sf:tabular-model sf:name="Fleet"><sf:grid>'
        b'<sf:columns sf:count="2"/><sf:datasource>'
        b'<sf:t><sf:ct sfa:s="Name"/></sf:t><sf:t><sf:ct sfa:s="Tons"/></sf:t><sf:t><sf:ct sfa:s="Heron"/></sf:t>'
        b'<sf:n sf:v="-872.39999999999998"/></sf:datasource></sf:grid></sf:tabular-model></key:slide></d>'
    )
    data = packed({"index.apxl": text, "buildVersionHistory.plist": b"x"})
    assert read(sandbox, data, "a.key").text == (
        "## Slide 1\n\nShips and piers\n\nFleet\n\n| Name | Tons |\n| --- | --- |\n| Heron | -872.4 |\n"
    )
    with pytest.raises(ExtractionError, match="password"):
        read(sandbox, packed({"index.xml": b"\x8a\x01 no XML", "buildVersionHistory.plist": b"x"}), "a.pages")


def test_one_with_a_password_says_so(sandbox: Sandbox) -> None:
    with pytest.raises(ExtractionError, match="password"):
        read(sandbox, packed({"Index/Document.iwa": b"x", ".iwph": b"x"}), "a.pages")


def test_copies_of_snappy_may_overlap_what_they_make() -> None:
    block = varint(26) + bytes([2 << 2]) + b"abc" + bytes([(10 - 4) << 2 | 1, 3]) + bytes([(12 - 1) << 2 | 2, 13, 0]) + b"\x00z"
    data = message((1, 7), (2, message((1, 9), (3, 26))))
    unpacked = b"abc" + b"abcabcabca" + b"abcabcabcabc" + b"z"
    found = dict(iwa._in_file(iwa._unpacked(packed_blocks(literal(varint(len(data)) + data), block)), "a.iwa"))
    assert found[7].data == unpacked
    assert found[7].kind == 9
    with pytest.raises(ExtractionError, match="refers to nothing"):
        iwa._unpacked(packed_blocks(varint(8) + bytes([(8 - 4) << 2 | 1, 3])))


def test_damaged_documents_are_read_as_far_as_they_go_or_refused() -> None:
    chance = random.Random(5)
    whole = iwa._unpacked(packed_blocks(literal(b"".join(NUMBERS["Index/Document.iwa"]))))
    for _ in range(3_000):
        harmed = bytearray(literal(whole))
        for _ in range(chance.randrange(1, 6)):
            harmed[chance.randrange(len(harmed))] = chance.randrange(256)
        try:
            for thing in dict(iwa._in_file(iwa._unpacked(packed_blocks(bytes(harmed))), "a.iwa")).values():
                assert isinstance(thing.fields, dict)
        except (ExtractionError, IndexError):
            continue
