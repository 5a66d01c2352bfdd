"""Front matter: what is written is read back, and what people write is understood."""

from __future__ import annotations

import random

import pytest

from memdir.core.frontmatter import listed, parse, render, single


@pytest.mark.parametrize(
    ("text", "fields", "body"),
    [
        ("---\ntags: [auth, bug]\nproject: saas\n---\n\nText.\n", {"tags": ["auth", "bug"], "project": "saas"}, "Text.\n"),
        ("---\r\ntitle: A: B\r\n---\r\n\r\nText", {"title": "A: B"}, "Text"),
        ("---\ntags:\n  - a\n  - 'b, c'\nnext: 1 # why\n---\nText", {"tags": ["a", "b, c"], "next": "1"}, "Text"),
        ('---\ntags: ["a, b", c]\n---\n', {"tags": ["a, b", "c"]}, ""),
        ("---\nmeta:\n  deep: 1\n\nok: yes\n---\nx", {"meta": [], "ok": "yes"}, "x"),
        ("\ufeff---\na: b\n---\nx", {"a": "b"}, "x"),
        ("no fields\n---\na: b\n---\n", {}, "no fields\n---\na: b\n---\n"),
        ("---\nnever closed: 1\n", {}, "---\nnever closed: 1\n"),
        ("---\nurl: https://x.org/a#b\n---\n", {"url": "https://x.org/a#b"}, ""),
    ],
)  # fmt: skip
def test_what_people_write_is_understood(text: str, fields: dict[str, object], body: str) -> None:
    assert parse(text) == (fields, body)


def test_what_is_written_is_read_back() -> None:
    random_ = random.Random(7)
    letters = "ab :#,[]{}\"'\\-\n\tä— "
    for _ in range(500):
        word = "".join(random_.choice(letters) for _ in range(random_.randrange(1, 12)))
        words = ["".join(random_.choice(letters) for _ in range(random_.randrange(1, 6))) for _ in range(3)]
        fields = {"one": word, "many": words, "number": 3}
        assert parse(render(fields, "body\n\n---\nmore")) == ({"one": word, "many": words, "number": "3"}, "body\n\n---\nmore")


def test_a_list_may_be_a_text_with_commas() -> None:
    assert listed("a, b,,c ") == ["a", "b", "c"]
    assert listed(None) == []
    assert single([]) is None
    assert single(" x ") == "x"
