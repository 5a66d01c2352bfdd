"""The agent hint in the bytes of a file: in once, out without a trace, and whatever somebody wrote meanwhile stays."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memdir.core.markedblock import handed_over, with_block, without_block
from memdir.daemon.hint_text import hint_lines

LINES = hint_lines("notes", "./notes")
BEGIN, END = b"<!-- memdir:begin notes -->", b"<!-- memdir:end notes -->"
texts = st.lists(
    st.sampled_from([b"a", b"\n", b"\r\n", b"\n\n", b"# T\n", b"x y", b"\xef\xbb\xbf", b"\xff", b" "]), max_size=12
).map(b"".join)


def test_the_block_says_where_the_memory_is_and_how_to_search_it() -> None:
    text = with_block(b"# Project\n", "notes", LINES)[0].decode()
    assert text.startswith("# Project\n\n<!-- memdir:begin notes -->\n")
    assert text.endswith("<!-- memdir:end notes -->\n")
    assert "memdir grep 'why were retries turned off' ./notes/" in text
    assert "grep -rn TEXT ./notes/" in text
    assert "./notes/profile.md" in text


@given(data=texts)
@settings(max_examples=100)
def test_put_in_and_taken_out_the_bytes_are_what_they_were(data: bytes) -> None:
    longer, inserted = with_block(data, "notes", LINES)
    assert longer.count(BEGIN) == longer.count(END) == 1
    assert longer.startswith(data)
    assert without_block(longer, "notes", inserted) == data


@given(data=texts, first_out=st.sampled_from([0, 1]))
@settings(max_examples=60)
def test_two_blocks_go_in_any_order_without_a_trace(data: bytes, first_out: int) -> None:
    one, first = with_block(data, "one", LINES)
    both, second = with_block(one, "two", LINES)
    if first_out == 0:
        found = handed_over(both, first, second)
        assert found is not None
        rest, second = found
        assert without_block(rest, "two", second) == data
    else:
        assert without_block(without_block(both, "two", second), "one", first) == data


@given(data=texts, before=texts, after=texts)
@settings(max_examples=60)
def test_what_is_written_around_it_stays_byte_for_byte(data: bytes, before: bytes, after: bytes) -> None:
    longer, inserted = with_block(data, "notes", LINES)
    before += b"\n"
    edited = before + longer + b"mine\n" + after
    rest = without_block(edited, "notes", inserted)
    assert BEGIN not in rest
    assert rest.endswith(b"mine\n" + after)
    assert rest.replace(b"\r", b"").replace(b"\n", b"") == (before + data + b"mine" + after).replace(b"\r", b"").replace(
        b"\n", b""
    )


def test_the_last_line_and_what_was_added_behind_the_block_stay_two_lines() -> None:
    longer, inserted = with_block(b"no newline", "notes", LINES)
    assert without_block(longer + b"added\n", "notes", inserted) == b"no newline\nadded\n"


def test_what_somebody_wrote_into_the_block_stays() -> None:
    longer, inserted = with_block(b"# Project\n", "notes", LINES)
    edited = longer.replace(END, b"Ask Ada before you delete anything.\n" + END)
    rest = without_block(edited, "notes", inserted)
    assert b"Ask Ada before you delete anything.\n" in rest
    assert b"memdir" not in rest


def test_without_its_end_marker_only_lines_of_ours_go() -> None:
    longer, inserted = with_block(b"# Project\n", "notes", LINES)
    rest = without_block(longer.replace(END + b"\n", b"") + b"My rules.\n", "notes", inserted)
    assert rest == b"# Project\nMy rules.\n"


def test_a_block_of_which_no_record_is_left_goes_as_well() -> None:
    longer, _ = with_block(b"# Project\n", "notes", LINES)
    assert without_block(longer, "notes", None) == b"# Project\n"
    assert without_block(longer + longer, "notes", None).count(BEGIN) == 0


def test_another_memorys_block_is_not_ours() -> None:
    longer, _ = with_block(b"", "notes-2", LINES)
    assert without_block(longer, "notes", None) == longer


@pytest.mark.parametrize("data", [b"a\r\nb\r\n", b"a\r\nb"])
def test_line_ends_are_those_of_the_file(data: bytes) -> None:
    longer, inserted = with_block(data, "notes", LINES)
    assert longer.count(b"\n") == longer.count(b"\r\n")
    assert without_block(longer, "notes", inserted) == data
