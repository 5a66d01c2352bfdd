"""Taking what is to be forgotten out of texts, and finding it again by hashes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memdir.memory.forget import holds, phrase, windows, without

PIECES = st.sampled_from(
    (
        "Ana",
        "Ruiz",
        "ana ruiz",
        "Ana  Ruiz",
        ". ",
        "\n",
        "\n\n",
        "- ",
        "I met ",
        " went home",
        "1. ",
        "Banana",
        "\r\n",
        "ü",
        "  ",
    )
)
TEXTS = st.lists(PIECES, max_size=20).map("".join)


@pytest.mark.parametrize(
    ("text", "left", "gone"),
    [
        ("One. Ana Ruiz came. Two.\n", "One. Two.\n", ["Ana Ruiz came."]),
        ("a\n- Ana  ruiz: 3 May\n- b\n", "a\n- b\n", ["- Ana  ruiz: 3 May"]),
        ("> Ana Ruiz\nx", "x", ["> Ana Ruiz"]),
        ("I met Ana\nRuiz today\nx\n", "x\n", ["I met Ana\nRuiz today"]),
        ("Banana Ruizian\n", "Banana Ruizian\n", []),
        ("", "", []),
        ("Ana Ruiz", "", ["Ana Ruiz"]),
        ("x\r\nAna Ruiz came. Good.\r\ny", "x\r\nGood.\r\ny", ["Ana Ruiz came."]),
    ],
)
def test_the_sentence_goes_and_no_more(text: str, left: str, gone: list[str]) -> None:
    found, removed = without(text, phrase("Ana Ruiz"))
    assert (found, [one.text for one in removed]) == (left, gone)


def test_spans_go_whatever_they_say() -> None:
    text = "Ana came. She is ill. I went.\n"
    at = text.index("She")
    assert without(text, phrase("Ana"), spans=[(at, at + 3)])[0] == "I went.\n"


@given(TEXTS)
def test_nothing_is_left_and_lines_without_it_stay(text: str) -> None:
    matches = phrase("Ana Ruiz")
    left, removed = without(text, matches)
    assert not matches(left)
    if not removed:
        assert left == text
    assert without(left, matches) == (left, [])
    kept = [line for line in left.splitlines() if line.strip()]
    assert all(any(line.strip() in before or before.startswith(line[:1]) for before in text.splitlines()) for line in kept)


@given(st.lists(st.sampled_from(("a", "b", "c", "Ä")), min_size=1, max_size=12), TEXTS, TEXTS)
def test_words_are_found_by_their_hashes_wherever_they_stand(words: list[str], before: str, after: str) -> None:
    said = " ".join(words)
    key = b"k" * 32
    wanted = {size: frozenset(hashes) for size, hashes in windows([said], key).items()}
    assert holds(f"{before} {said.upper()}, {after}", wanted, key)
    assert not holds("d e f", wanted, key)
    assert not holds(said, wanted, b"l" * 32)
