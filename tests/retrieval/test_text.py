"""Bytes to text, with the way back to the bytes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memdir.ingest import text as text_module
from memdir.ingest.text import DecodedText, decode, media_type

PROSE = "Grüße aus Zürich – 東京は晴れ 😀\nsecond line\r\nthird"


def check_map(data: bytes, decoded: DecodedText) -> None:
    """Every character's bytes decode to that character."""
    for index, char in enumerate(decoded.text):
        piece = data[decoded.byte_at(index) : decoded.byte_at(index + 1)]
        if char != "\N{REPLACEMENT CHARACTER}":
            assert piece.decode(decoded.encoding) == char
    assert decoded.byte_at(len(decoded.text)) == len(data)


@pytest.mark.parametrize(
    ("bom", "encoding"),
    [
        (b"", "utf-8"),
        (b"\xef\xbb\xbf", "utf-8"),
        (b"\xff\xfe", "utf-16-le"),
        (b"\xfe\xff", "utf-16-be"),
        (b"\xff\xfe\x00\x00", "utf-32-le"),
        (b"\x00\x00\xfe\xff", "utf-32-be"),
    ],
)
def test_unicode_encodings_are_read_and_every_character_knows_its_bytes(bom: bytes, encoding: str) -> None:
    data = bom + PROSE.encode(encoding)
    decoded = decode(data)
    assert decoded is not None
    assert decoded.text == PROSE
    check_map(data, decoded)


def test_western_text_without_a_mark_is_read_as_windows_1252() -> None:
    data = "Café à la carte – “naïve” €5".encode("cp1252")
    decoded = decode(data)
    assert decoded is not None
    assert decoded.encoding == "cp1252"
    assert decoded.text == "Café à la carte – “naïve” €5"
    check_map(data, decoded)


def test_one_broken_byte_does_not_turn_utf8_into_another_encoding() -> None:
    data = ("Jürgen schrieb über Äpfel. " * 20).encode() + b"\xff" + b" Ende\n"
    decoded = decode(data)
    assert decoded is not None
    assert decoded.text.count("\N{REPLACEMENT CHARACTER}") == 1
    assert "über Äpfel" in decoded.text
    check_map(data, decoded)


@pytest.mark.parametrize(
    "data",
    [
        b"\x7fELF\x02\x01\x01" + bytes(range(256)),
        b"\x89PNG\r\n\x1a\n" + b"IHDR" * 20,
        b"%PDF-1.7\nall of this is ascii\n",
        b"text with\x00a nul",
        bytes(range(128, 256)) * 4,
        b"\x01\x02\x03\x04" * 100,
        b"\xff\xfe\x41",
        b"\xff\xfe\x00\xd8\x41\x00",
    ],
)
def test_binary_data_is_not_text(data: bytes) -> None:
    assert decode(data) is None
    assert media_type("/x", data) != "text/plain"


def test_an_empty_file_is_text_without_lines() -> None:
    decoded = decode(b"")
    assert decoded is not None
    assert decoded.text == ""


@given(st.binary(max_size=400))
def test_decoding_never_fails_and_its_map_covers_the_bytes(data: bytes) -> None:
    decoded = decode(data)
    if decoded is not None:
        positions = [decoded.byte_at(index) for index in range(len(decoded.text) + 1)]
        assert positions == sorted(set(positions))
        assert positions[-1] == len(data)


@given(st.text(max_size=300).filter(lambda text: "\x00" not in text and text.isprintable()))
def test_all_utf8_text_survives(text: str) -> None:
    data = text.encode()
    decoded = decode(data)
    if decoded is not None:
        bom = text.startswith("\ufeff")
        assert decoded.text == text.removeprefix("\ufeff") if bom else decoded.text == text


def test_lines_are_counted_at_line_feeds_only() -> None:
    decoded = decode(b"a\r\nb\x0cc\nd\n")
    assert decoded is not None
    assert [decoded.line_at(index) for index in range(len(decoded.text))] == [1, 1, 1, 2, 2, 2, 2, 3, 3]


def test_a_huge_text_is_indexed_up_to_the_bound_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_module, "TEXT_MAX_BYTES", 1001)
    decoded = decode("é".encode() * 5000)
    assert decoded is not None
    assert decoded.truncated
    assert decoded.size_bytes == 10_000
    assert decoded.text == "é" * 500


@pytest.mark.parametrize(
    ("path", "data", "kind"),
    [
        ("/a.md", b"# hi", "text/markdown"),
        ("/a", b"hi", "text/plain"),
        ("/a.PY", b"x = 1", "text/x-python"),
        ("/a.txt", b"%PDF-1.4", "application/pdf"),
        ("/a.docx", b"PK\x03\x04rest", "application/vnd.openxmlformats-officedocument.wordprocessingml.document"),
        ("/a.md", b"\x00\x01\x02", "application/octet-stream"),
        (None, b"", "text/plain"),
    ],
)
def test_the_media_type_comes_from_content_then_name(path: str | None, data: bytes, kind: str) -> None:
    assert media_type(path, data) == kind
