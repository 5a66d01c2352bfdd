"""The questions of examples/questions.json, asked through the command line on the example memory."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.driver import Memdir

pytestmark = pytest.mark.mount

EXAMPLES = Path(__file__).parents[2] / "examples"
QUESTIONS: list[dict[str, Any]] = json.loads((EXAMPLES / "questions.json").read_text(encoding="utf-8"))["questions"]
FOUND_SHARE_MIN = 0.94
FIRST_SHARE_MIN = 0.8


@pytest.fixture(scope="module")
def atlas(memdir: Memdir) -> Iterator[Path]:
    place = memdir.mount("atlas")
    shutil.copytree(EXAMPLES / "atlas", place, dirs_exist_ok=True)
    memdir.run("sync", "atlas", "--wait", "--timeout", "150", limit_s=170)
    yield place
    memdir.run("unmount", "atlas")


@pytest.mark.promise("grep.by-meaning", "parts.local-model")
def test_questions_find_their_files_without_sharing_a_word(memdir: Memdir, atlas: Path) -> None:
    ranks: dict[str, int | None] = {}
    for question in (q for q in QUESTIONS if q["kind"] == "meaning"):
        scope = [question["scope"]] if question["scope"] else []
        hits = memdir.hits(question["query"], *scope, "-k", "10", "--threshold", "0", cwd=atlas)
        paths = list(dict.fromkeys(hit["path"] for hit in hits))
        ranks[question["id"]] = paths.index(question["expect_path"]) + 1 if question["expect_path"] in paths else None
    found = [name for name, rank in ranks.items() if rank is not None and rank <= 3]
    first = [name for name, rank in ranks.items() if rank == 1]
    assert len(found) >= FOUND_SHARE_MIN * len(ranks), {name: rank for name, rank in ranks.items() if name not in found}
    assert len(first) >= FIRST_SHARE_MIN * len(ranks), {name: rank for name, rank in ranks.items() if rank != 1}


def test_nothing_shown_says_how_close_the_best_came(memdir: Memdir, atlas: Path) -> None:
    query = "recipe for homemade loaf with natural yeast"
    assert memdir.hits(query, cwd=atlas)[0]["path"] == "notes/2026-11-17-sourdough.md"
    silent = memdir.run("grep", "--threshold", "1", query, cwd=atlas, expect=1)
    assert silent.out == ""
    assert "the closest scores 0." in silent.err


def test_hits_stay_in_their_scope(memdir: Memdir, atlas: Path) -> None:
    for folder in ("de", "mail", "code"):
        for query in ("river level", "who pays the invoice"):
            paths = [hit["path"] for hit in memdir.hits(query, folder, "-k", "20", cwd=atlas)]
            assert all(path.startswith(f"{folder}/") for path in paths)


def test_a_question_without_an_answer_scores_below_those_with_one(memdir: Memdir, atlas: Path) -> None:
    def best(question: dict[str, Any]) -> float:
        return max((hit["score"] for hit in memdir.hits(question["query"], "-k", "1", cwd=atlas)), default=0.0)

    nothing = [best(question) for question in QUESTIONS if question["kind"] == "nothing"]
    answered = [best(question) for question in QUESTIONS if question["kind"] == "meaning"][:15]
    assert sum(nothing) / len(nothing) < sum(answered) / len(answered)
