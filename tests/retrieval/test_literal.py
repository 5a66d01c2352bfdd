"""Byte-exact search."""

from __future__ import annotations

from memdir.retrieval.literal import LINE_TEXT_MAX_BYTES, LiteralSource, search

FILES = {
    "/a.txt": b"first\nneedle here, needle there\r\nlast needle",
    "/b.bin": b"\x00needle",
    "/c.txt": b"Needle\n" + "naïve needle\n".encode() + b"\xff needle\n",
    "/d.txt": b"",
}


def sources(read: list[str] | None = None) -> list[LiteralSource]:
    def reader(path: str) -> bytes:
        if read is not None:
            read.append(path)
        return FILES[path]

    return [LiteralSource(path=path, document_id=path, read=lambda path=path: reader(path)) for path in FILES]  # type: ignore[misc]


def test_each_line_that_holds_the_bytes_is_one_hit() -> None:
    hits = search(sources(), b"needle", limit=100)
    assert [(hit.path, hit.line, hit.text) for hit in hits] == [
        ("/a.txt", 2, "needle here, needle there"),
        ("/a.txt", 3, "last needle"),
        ("/c.txt", 2, "naïve needle"),
        ("/c.txt", 3, "\N{REPLACEMENT CHARACTER} needle"),
    ]
    for hit in hits:
        assert FILES[hit.path][hit.start_byte : hit.end_byte] == b"needle"


def test_nothing_is_a_pattern_and_case_counts() -> None:
    assert search(sources(), b"n.edle", limit=10) == []
    assert [hit.line for hit in search(sources(), b"Needle", limit=10)] == [1]


def test_a_needle_may_hold_a_line_end() -> None:
    (hit,) = search(sources(), b"first\nneedle", limit=10)
    assert (hit.line, hit.start_byte, hit.end_byte) == (1, 0, 12)


def test_an_empty_needle_finds_nothing() -> None:
    assert search(sources(), b"", limit=10) == []


def test_reading_stops_at_the_limit() -> None:
    read: list[str] = []
    assert len(search(sources(read), b"needle", limit=2)) == 2
    assert read == ["/a.txt"]


def test_a_long_line_is_shown_around_the_match() -> None:
    data = b"x" * 100_000 + b"needle" + b"y" * 100_000
    (hit,) = search([LiteralSource(path="/l", document_id="l", read=lambda: data)], b"needle", limit=5)
    assert len(hit.text) <= LINE_TEXT_MAX_BYTES
    assert "needle" in hit.text
