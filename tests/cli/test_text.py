"""Foreign text on a terminal: safe, short, readable."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memdir.cli.text import human_bytes, human_duration, one_line, plural, shortened, visible


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("plain.md", "plain.md"),
        ("Ünïcode 記憶 🗂", "Ünïcode 記憶 🗂"),
        ("\x1b[2Jgone", r"\x1b[2Jgone"),
        ("a\nb\tc\rd", r"a\nb\tc\rd"),
        ("\x9b31m", r"\x9b31m"),
        ("abc\u202etxt.exe", r"abc\u202etxt.exe"),
        ("bad\udcff name", r"bad\xff name"),
        ("bell\x07\x7f", r"bell\x07\x7f"),
        ("line\u2028sep", r"line\u2028sep"),
        ("lone \ud800", r"lone \ud800"),
    ],
)
def test_control_characters_are_written_out(raw: str, shown: str) -> None:
    assert visible(raw) == shown


def test_bytes_of_a_name_are_kept_for_a_program() -> None:
    assert visible("bad\udcff", keep_raw_bytes=True) == "bad\udcff"


@given(st.text())
def test_nothing_that_steers_a_terminal_gets_through(text: str) -> None:
    shown = one_line(text)
    assert not any(ord(character) < 0x20 or 0x7F <= ord(character) <= 0x9F for character in shown)
    assert not any("\ud800" <= character <= "\udfff" or "\u202a" <= character <= "\u202e" for character in shown)
    assert "\n" not in shown


def test_runs_of_whitespace_become_one_space() -> None:
    assert one_line("  two\n\n  lines\t and\u00a0more  ") == "two lines and more"


def test_long_text_is_cut_with_an_ellipsis() -> None:
    assert shortened("abcdef", 4) == "abc…"
    assert shortened("abcd", 4) == "abcd"


@pytest.mark.parametrize(
    ("size", "shown"), [(0, "0 B"), (1023, "1023 B"), (1536, "1.5 KiB"), (3 << 30, "3.0 GiB"), (5 << 40, "5.0 TiB")]
)
def test_sizes_read_well(size: int, shown: str) -> None:
    assert human_bytes(size) == shown


@pytest.mark.parametrize(("span", "shown"), [(0.4, "0 s"), (61, "1 min 1 s"), (7320, "2 h 2 min"), (90_000, "1 d 1 h")])
def test_durations_read_well(span: float, shown: str) -> None:
    assert human_duration(span) == shown


def test_counts_read_well() -> None:
    assert (plural(1, "file"), plural(1200, "file"), plural(2, "entry", "entries")) == ("1 file", "1,200 files", "2 entries")
