"""Hits of a file joined where they touch, lines around them, and a budget in tokens."""

from __future__ import annotations

import random

import pytest

from memdir.retrieval.grouping import (
    HEAD_TOKENS,
    LEFT_OUT_PATHS_MAX,
    SPAN_MAX_BYTES,
    Place,
    Span,
    filled,
    joined,
    together,
    tokens_of,
)


def span_of(data: bytes, first: int, last: int, *, path: str = "/a", score: float = 0.5, number: int = 0) -> Span:
    """The lines `first` to `last` of `data`, counted from 1."""
    lines = data.splitlines(keepends=True)
    start = len(b"".join(lines[: first - 1]))
    text = b"".join(lines[first - 1 : last]).rstrip(b"\r\n")
    place = Place(start_line=first, end_line=last, start_byte=start, end_byte=start + len(text))
    return Span(document_id=path, path=path, score=score, place=place, text=text.decode(), hits=(number,))


def some_text(rng: random.Random) -> bytes:
    end = rng.choice((b"\n", b"\r\n"))
    lines = [rng.choice(("", "one", "zwölf", "本文 hier", "x" * 30)).encode() for _ in range(rng.randrange(3, 40))]
    return end.join([b"first", *lines, b"last"]) + rng.choice((b"", end))


@pytest.mark.promise("retrieval.grouping")
def test_what_is_joined_is_the_lines_that_are_there() -> None:
    rng = random.Random(1)
    several = 0
    for _ in range(400):
        data = some_text(rng)
        count = len(data.splitlines())
        context = rng.choice((0, 0, 1, 2, 50))
        filled_lines = [n for n, line in enumerate(data.splitlines(), start=1) if line]
        spans = []
        for number in range(rng.randrange(1, 6)):
            first = rng.choice(filled_lines)
            last = rng.choice([n for n in filled_lines if first <= n <= first + 3])
            spans.append(span_of(data, first, last, score=rng.random(), number=number))
        made = joined(spans, {"/a": data}.get, context_lines=context)
        wanted = {
            line
            for span in spans
            for line in range(max(1, span.place.start_line - context), min(count, span.place.end_line + context) + 1)
        }
        shown = [line for span in made for line in range(span.place.start_line, span.place.end_line + 1)]
        if len(spans) > 1 or context:
            assert sorted(shown) == sorted(wanted), "every line once"
        for span in made:
            assert data[span.place.start_byte : span.place.end_byte].decode() == span.text
            assert span_of(data, span.place.start_line, span.place.end_line).text == span.text.rstrip("\r\n")
            assert span.score == max(spans[number].score for number in span.hits)
        assert sorted(number for span in made for number in span.hits) == list(range(len(spans)))
        assert [span.score for span in made] == sorted((span.score for span in made), reverse=True)
        several += len(made) < len(spans)
    assert several > 50, "hits that touch must occur"


def test_a_document_that_changed_or_is_gone_keeps_its_hits_as_they_were() -> None:
    data = b"alpha\nbeta\ngamma\n"
    spans = [span_of(data, 1, 1, score=0.9), span_of(data, 2, 2, score=0.8, number=1)]
    assert len(joined(spans, {"/a": data}.get)) == 1
    assert joined(spans, {"/a": b"other text"}.get, context_lines=3) == spans
    assert joined(spans, lambda _: None, context_lines=3) == spans


def test_context_is_bounded_however_long_the_lines_are() -> None:
    data = b"\n".join([b"x" * 10_000] * 100)
    (span,) = joined([span_of(data, 50, 50)], {"/a": data}.get, context_lines=100)
    assert 40_000 < len(span.text) <= SPAN_MAX_BYTES
    with pytest.raises(ValueError, match="at most"):
        joined([], {}.get, context_lines=10_000)


def test_hits_of_a_file_stand_together_behind_its_best() -> None:
    data = b"1\n2\n3\n4\n5\n"
    spans = [
        span_of(data, 5, 5, path="/b", score=0.9),
        span_of(data, 1, 1, path="/a", score=0.8),
        span_of(data, 1, 1, path="/b", score=0.3),
        span_of(data, 3, 3, path="/a", score=0.2),
    ]
    assert [(span.path, span.place.start_line) for span in together(spans)] == [("/b", 1), ("/b", 5), ("/a", 1), ("/a", 3)]


@pytest.mark.promise("retrieval.grouping")
def test_a_budget_takes_the_best_first_then_what_is_worth_its_tokens_and_names_the_rest() -> None:
    def one(path: str, score: float, words: int) -> Span:
        data = b"word " * words
        return span_of(data, 1, 1, path=path, score=score)

    long, short, same, other = one("/a", 0.9, 200), one("/b", 0.5, 20), one("/b", 0.45, 20), one("/c", 0.4, 20)
    everything = filled([long, short, same, other], 10_000)
    assert everything.spans == (long, short, same, other)
    assert (everything.left_out.count, everything.left_out.paths) == (0, ())
    some = filled([long, short, same, other], 320)
    assert some.spans == (long, short, other), "a second file before a second place in one"
    assert (some.left_out.count, some.left_out.paths) == (1, ("/b",))
    assert some.tokens == sum(HEAD_TOKENS + tokens_of(span.text) + tokens_of(span.path) for span in some.spans)
    assert filled([long, short, same, other], 100).spans == (short, same, other), "the best one does not fit"
    nothing = filled([long, short], 5)
    assert (nothing.spans, nothing.tokens, nothing.left_out.count) == ((), 0, 2)


def test_a_budget_is_kept_and_the_choice_does_not_depend_on_the_order() -> None:
    rng = random.Random(2)
    for _ in range(60):
        spans = [
            span_of(b"lorem " * rng.randrange(1, 80), 1, 1, path=f"/{rng.randrange(12)}", score=rng.random()) for _ in range(30)
        ]
        budget = rng.randrange(1, 1500)
        found = filled(spans, budget)
        assert found.tokens <= budget
        assert len(found.spans) + found.left_out.count == len(spans)
        again = filled(rng.sample(spans, len(spans)), budget)
        assert set(again.spans) == set(found.spans)


def test_paths_left_out_are_bounded_and_counted() -> None:
    spans = [span_of(b"text", 1, 1, path=f"/{number}") for number in range(300)]
    left_out = filled(spans, 1).left_out
    assert (left_out.count, len(left_out.paths)) == (300, LEFT_OUT_PATHS_MAX)


@pytest.mark.parametrize(("text", "tokens"), [("", 0), ("word", 1), ("words", 2), ("本文", 2), ("naïve", 2)])
def test_tokens_are_told_from_characters(text: str, tokens: int) -> None:
    assert tokens_of(text) == tokens
