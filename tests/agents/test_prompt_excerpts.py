"""What of a long prompt is looked at: what a person typed around what was pasted, and the errors in that."""

from __future__ import annotations

import pytest

from memdir.retrieval.agents.prompt_classifier import excerpts

LOG = "\n".join(f"2026-11-28 00:00:{at % 60:02} worker {at} took the next job from the queue" for at in range(400))
QUESTION = "the staging pods are gone since this morning, look into it"


def test_a_short_prompt_is_looked_at_whole() -> None:
    assert excerpts(f" {QUESTION}\n\nthanks \n") == [f"{QUESTION}\n\nthanks"]
    assert excerpts(" \n") == []


@pytest.mark.parametrize("text", [f"{QUESTION}\n\n{LOG}", f"{LOG}\n \n{QUESTION}\n"])
def test_what_stands_before_or_behind_what_was_pasted_is_looked_at_by_itself(text: str) -> None:
    assert QUESTION in excerpts(text)


def test_so_are_questions_and_errors_within() -> None:
    found = excerpts(f"{LOG}\nis this the proxy again?\n{LOG}\nOSError: [Errno 122] Disk quota exceeded\n{LOG}")
    assert {"is this the proxy again?", "OSError: [Errno 122] Disk quota exceeded"} <= set(found)


def test_a_line_that_only_speaks_of_errors_is_none() -> None:
    found = excerpts(f"{LOG}\n  * Fix error handling, and warnings that could not be seen.\n{LOG}")
    assert not any("Fix error" in one for one in found)


@pytest.mark.parametrize("text", ["x" * 100_000, "?" * 100_000, "error: " * 20_000, "\n" * 99_999 + "x", "a\n\n" * 30_000])
def test_whatever_it_is_little_is_looked_at(text: str) -> None:
    assert sum(map(len, excerpts(text))) <= 6 * 400
