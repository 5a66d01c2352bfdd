"""The generated corpus knows its answers, and the printed lines hold them."""

from __future__ import annotations

from memdir_bench.retrieval.corpus import FACTS_PER_FILE, memory
from memdir_bench.retrieval.layouts import CLOSE, LAYOUTS, OPEN


def test_the_same_seed_gives_the_same_files_and_another_one_others() -> None:
    assert memory(seed=3, files_per_layout=1) == memory(seed=3, files_per_layout=1)
    assert memory(seed=3, files_per_layout=1) != memory(seed=4, files_per_layout=1)


def test_every_question_has_its_answer_where_it_says_and_no_other_question_has_its_words() -> None:
    made = memory(files_per_layout=2)
    assert len(made.questions) == 2 * FACTS_PER_FILE * sum(len(layouts) for layouts in LAYOUTS.values())
    assert len({question.text for question in made.questions}) == len(made.questions)
    for question in made.questions:
        text = made.files[question.path]
        answer = text[question.start : question.end]
        assert answer.strip() == answer != ""
        assert OPEN not in text
        assert CLOSE not in text


def test_the_halves_share_no_layout_and_no_wording() -> None:
    kinds = [{layout.name for layout in layouts} for layouts in LAYOUTS.values()]
    assert not kinds[0] & kinds[1]
