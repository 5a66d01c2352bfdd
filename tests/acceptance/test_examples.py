"""The example memory is what we say it is: many kinds, many languages, and questions that words alone cannot answer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from memdir_bench.words import shared_stems

EXAMPLES = Path(__file__).parents[2] / "examples"
ATLAS = EXAMPLES / "atlas"
QUESTIONS: list[dict[str, Any]] = json.loads((EXAMPLES / "questions.json").read_text(encoding="utf-8"))["questions"]
ANSWERED = [question for question in QUESTIONS if question["kind"] != "nothing"]


def name_of(question: dict[str, Any]) -> str:
    return str(question["id"])


@pytest.mark.promise("demo.corpus")
def test_the_corpus_is_varied() -> None:
    files = [path for path in ATLAS.rglob("*") if path.is_file()]
    kinds = {path.suffix for path in files}
    assert len(files) >= 70
    assert kinds >= {
        ".md",
        ".txt",
        ".eml",
        ".json",
        ".jsonl",
        ".yaml",
        ".csv",
        ".tsv",
        ".log",
        ".py",
        ".go",
        ".ts",
        ".sql",
        ".sh",
    }
    assert {path.name for path in ATLAS.iterdir() if path.is_dir()} >= {"de", "es", "fr", "ru", "ja", "zh", "memory", "user"}


def test_every_file_is_short_text_and_no_two_are_equal() -> None:
    texts = {path: path.read_text(encoding="utf-8") for path in ATLAS.rglob("*") if path.is_file()}
    assert len(set(texts.values())) == len(texts)
    assert [path.name for path, text in texts.items() if not 5 <= text.count("\n") <= 120] == []


def test_mail_addresses_lead_nowhere() -> None:
    """Only the reserved `.example` names may stand in an address."""
    for path in ATLAS.rglob("*.eml"):
        for word in path.read_text(encoding="utf-8").split():
            if "@" in word:
                assert word.strip("<>,;\"'").endswith(".example"), f"{path.name}: {word}"


def test_ids_are_unique_and_there_are_enough_questions() -> None:
    ids = [question["id"] for question in QUESTIONS]
    assert len(ids) == len(set(ids))
    assert sum(question["kind"] == "meaning" for question in QUESTIONS) >= 30
    assert sum(question["kind"] == "nothing" for question in QUESTIONS) >= 3


@pytest.mark.parametrize("question", ANSWERED, ids=name_of)
def test_no_word_of_the_question_stands_in_its_answer(question: dict[str, Any]) -> None:
    text = (ATLAS / question["expect_path"]).read_text(encoding="utf-8")
    assert shared_stems(question["query"], text) == set()


@pytest.mark.parametrize("question", ANSWERED, ids=name_of)
def test_the_expected_line_stands_in_the_expected_file(question: dict[str, Any]) -> None:
    text = (ATLAS / question["expect_path"]).read_text(encoding="utf-8").casefold()
    assert any(part.casefold() in text for part in question["expect_line_contains"])
    if question["scope"]:
        assert question["expect_path"].startswith(question["scope"])


@pytest.mark.parametrize("question", [q for q in QUESTIONS if q["kind"] == "nothing"], ids=name_of)
def test_a_question_without_an_answer_shares_no_word_with_any_file(question: dict[str, Any]) -> None:
    for path in ATLAS.rglob("*"):
        if path.is_file():
            assert shared_stems(question["query"], path.read_text(encoding="utf-8")) == set(), path
