"""winmail.dat, and text that Outlook packed. Those of others (the samples of two libraries) were tried by hand."""

from __future__ import annotations

import random
import struct

import pytest

from memdir.ingest.extractors import tnef
from memdir.ingest.extractors.output import ExtractionError
from memdir.ingest.sandbox import Sandbox

from .reading import read

PACKED = bytes.fromhex("2d0000002b0000004c5a4675f1c5c7a703000a007263706731323542320af32068656c090020627705b06c647d0a800fa0")
"""The example of [MS-OXRTFCP] 4.1.1, less its checksum."""


def attribute(kind: int, data: bytes) -> bytes:
    return struct.pack("<BII", 1, kind, len(data)) + data + b"\0\0"


def properties(*some: tuple[int, int, bytes]) -> bytes:
    """Type, number and value: of variable length, or of a fixed one."""
    found = struct.pack("<I", len(some))
    for kind, number, data in some:
        found += struct.pack("<HH", kind, number)
        if number >= 0x8000:
            name = "Named".encode("utf-16-le") + b"\0\0"
            found += bytes(16) + struct.pack("<II", 1, len(name)) + name
        if kind in (0x1E, 0x1F, 0x0D, 0x102):
            found += struct.pack("<II", 1, len(data))
        found += data + bytes(-len(data) % 4)
    return found


def winmail(*attributes: bytes) -> bytes:
    return b"\x78\x9f\x3e\x22\x01\x00" + b"".join(attributes)


def test_text_and_files_of_winmail_dat_are_read(sandbox: Sandbox) -> None:
    data = winmail(
        attribute(0x00069007, struct.pack("<II", 1251, 0)),
        attribute(0x00018004, "Привет\0".encode("cp1251")),
        attribute(0x0002800C, "Сколько тонн?\0".encode("cp1251")),
        attribute(0x00069002, bytes(14)),
        attribute(0x00018010, b"SHORT~1.TXT\0"),
        attribute(0x0006800F, b"words of the file"),
        attribute(
            0x00069005,
            properties(
                (0x0B, 0x8001, bytes(4)), (3, 0x0E20, bytes(4)), (0x1F, 0x3707, "длинное имя.txt\0".encode("utf-16-le"))
            ),
        ),
        attribute(0x00069002, bytes(14)),
        attribute(0x00069005, properties((0x0D, 0x3701, bytes(16) + b"an object"), (0x1E, 0x3707, b"object.txt"))),
    )
    found = read(sandbox, data, "winmail.dat")
    assert (found.kind, found.title) == ("mail", "Привет")
    assert found.text == (
        "# Привет\n\nСколько тонн?\n\n## Attachment: длинное имя.txt\n\nwords of the file\n\n"
        "## Attachment: object.txt\n\nan object\n"
    )


@pytest.mark.parametrize(
    ("number", "data"),
    [(0x1013, b"<p>hello <b>world</b></p>"), (0x1009, PACKED), (0x1000, b"hello world")],
    ids=["page", "packed", "plain"],
)
def test_the_text_may_be_a_property_of_the_message(sandbox: Sandbox, number: int, data: bytes) -> None:
    kind = 0x1E if number == 0x1000 else 0x102
    mail = winmail(attribute(0x00069003, properties((0x1E, 0x0037, b"Ships"), (kind, number, data))))
    found = read(sandbox, mail, "winmail.dat")
    assert found.title == "Ships"
    assert "hello " in found.text
    assert "world" in found.text


def test_packed_text_is_as_the_specification_says() -> None:
    assert tnef.unpacked(PACKED) == b"{\\rtf1\\ansi\\ansicpg1252\\pard hello world}\r\n"
    over = bytes.fromhex("1a0000001c0000004c5a4675e2d44b51410004205758595a0d6e7d010eb0")
    assert tnef.unpacked(over) == b"{\\rtf1 WXYZWXYZWXYZWXYZWXYZ}", "what is copied overlaps what it makes"
    assert tnef.unpacked(struct.pack("<II", 10, 6) + b"MELA" + bytes(4) + b"{\\rtf}") == b"{\\rtf}"
    with pytest.raises(ExtractionError, match="unknown way"):
        tnef.unpacked(bytes(20))


def test_what_is_damaged_is_read_as_far_as_it_goes(sandbox: Sandbox) -> None:
    chance = random.Random(3)
    body = properties((0x1E, 0x0037, b"Ships"), (0x102, 0x1009, PACKED), (0x101E, 0x1234, b""))
    whole = winmail(attribute(0x0002800C, b"words"), attribute(0x00069003, body))
    assert read(sandbox, whole[:-30], "winmail.dat").text == "words\n"
    for _ in range(3_000):
        harmed = bytearray(whole)
        for _ in range(chance.randrange(1, 8)):
            harmed[chance.randrange(6, len(harmed))] = chance.randrange(256)
        try:
            for _kind, data in tnef._attributes(bytes(harmed)):
                for _number, value in tnef._properties(data):
                    tnef.unpacked(value)
        except ExtractionError:
            continue
