"""`bench retrieval`: judgements as they are meant, measures as the books define them, a small collection to its figures."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

from memdir.cli.main import main
from memdir.core.errors import UsageError
from memdir_bench.retrieval import collections, exact
from memdir_bench.retrieval.corpus import Memory, Question
from memdir_bench.retrieval.metrics import difference, interval, measured, ndcg, recall, reciprocal_rank, wilson

DOCUMENTS = {
    1: ("heating", "The boiler was serviced in October by Mr Kern, and the radiators were bled."),
    2: ("night train", "The sleeper from Vienna to Rome leaves in the evening; the lower berth is quieter."),
    3: ("bread", "Rye flour and a spoon of starter rise overnight and are baked in the morning."),
    4: ("loan", "The mortgage is fixed until the end of the decade at a low rate of interest."),
    5: ("tomatoes", "Blight came in August; next year they stand under the edge of the roof."),
    6: ("violin", "The highest string broke twice this month while practising the slow movement."),
    7: ("", ""),
}
QUESTIONS = {1: "overnight railway to Italy", 4: "home loan interest rate", 9: "recipe with sourdough"}


@pytest.fixture
def cranfield(tmp_path: Path) -> Path:
    """Queries are numbered 1, 4 and 9 in their file, and 1, 2 and 3 in the judgements."""
    folder = tmp_path / "cranfield"
    folder.mkdir()
    parts = [
        f".I {number}\n.T\n{title}\n.A\nsomebody\n.B\nj. things, 1958.\n.W\n{title}\n{text}\n"
        for number, (title, text) in DOCUMENTS.items()
    ]
    (folder / "cran.all.1400").write_text("".join(parts))
    (folder / "cran.qry").write_text("".join(f".I {number:03}\n.W\n{text}\n" for number, text in QUESTIONS.items()))
    (folder / "cranqrel").write_text("1 2 1\n1 6 -1\n2 4 2 \n2 1 4\n2 5 5\n3 3 3\n")
    return folder


@pytest.fixture
def cisi(tmp_path: Path) -> Path:
    folder = tmp_path / "cisi"
    folder.mkdir()
    parts = [f".I {number}\n.T\n{title}\n.W\n{text}\n.X\n1\t5\t1\n" for number, (title, text) in DOCUMENTS.items()]
    (folder / "CISI.ALL").write_text(".X\n" + "".join(parts))
    asked = [f".I {number}\n.T\nA title\n.W\n{text}\n.B\n(JASIS, 1980)\n" for number, text in QUESTIONS.items()]
    (folder / "CISI.QRY").write_text("".join(asked))
    (folder / "CISI.REL").write_text("     1      2\t0\t0.000000\n     4      4\t0\t0.000000\n")
    return folder


def test_cranfields_judgements_number_queries_by_position_and_grade_the_best_with_one(cranfield: Path) -> None:
    made = collections.cranfield(cranfield)
    assert [(question.text, dict(question.gains)) for question in made.questions] == [
        (QUESTIONS[1], {"/0002.md": 4}),
        (QUESTIONS[4], {"/0004.md": 3, "/0001.md": 1}),
        (QUESTIONS[9], {"/0003.md": 2}),
    ]


def test_a_title_that_the_abstract_repeats_stands_there_once(cranfield: Path) -> None:
    texts = {text.path: text.text for text in collections.cranfield(cranfield).texts}
    assert texts["/0002.md"] == f"# night train\n\n{DOCUMENTS[2][1]}\n"
    assert len(texts) == len(DOCUMENTS)


def test_cisis_questions_are_their_text_and_those_nobody_judged_are_left_out(cisi: Path) -> None:
    made = collections.cisi(cisi)
    assert [(question.name, question.text, dict(question.gains)) for question in made.questions] == [
        ("1", QUESTIONS[1], {"/0002.md": 1}),
        ("4", QUESTIONS[4], {"/0004.md": 1}),
    ]
    assert [text.path for text in made.texts] == [f"/{number:04d}.md" for number in DOCUMENTS]


def test_a_collection_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"cranqrel cannot be read"):
        collections.cranfield(tmp_path)


def test_the_measures_are_those_of_the_books() -> None:
    gains = {"a": 4, "b": 1, "c": 2}
    ranking = ["x", "a", "b"]
    best = 4 + 2 / math.log2(3) + 1 / 2
    assert ndcg(ranking, gains, 10) == pytest.approx((4 / math.log2(3) + 1 / 2) / best)
    assert ndcg(["a", "c", "b"], gains, 10) == pytest.approx(1.0)
    assert ndcg(ranking, gains, 1) == 0.0
    assert recall(ranking, gains, 2) == pytest.approx(1 / 3)
    assert reciprocal_rank(ranking, gains) == 0.5
    assert reciprocal_rank(["x"], gains) == 0.0
    each = measured([ranking, ["a"]], [gains, gains])
    assert each["success_1"].tolist() == [0.0, 1.0]
    assert each["recall_10"].tolist() == pytest.approx([2 / 3, 1 / 3])


def test_an_interval_holds_the_mean_and_is_the_same_every_time() -> None:
    values = np.random.default_rng(3).random(200)
    low, high = interval(values)
    assert low < values.mean() < high
    assert high - low < 0.1
    assert interval(values) == (low, high)
    gap, (below, above) = difference(values + 0.05, values)
    assert gap == pytest.approx(0.05)
    assert below == pytest.approx(0.05)
    assert above == pytest.approx(0.05), "what is hard for both is no noise"
    assert wilson(0, 40)[0] == 0.0
    assert 0.05 < wilson(0, 40)[1] < 0.1


@pytest.mark.promise("ranked.quality")
def test_the_command_ranks_each_stage_and_each_ablation_with_intervals(
    cranfield: Path, cisi: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MEMDIR_HOME", str(tmp_path / "home"))
    arguments = ["bench", "retrieval", "--cranfield", str(cranfield), "--cisi", str(cisi), "--json"]
    assert main(arguments) == 0
    report = json.loads(capsys.readouterr().out)
    figures = {figure["name"]: figure for figure in report["figures"]}
    for stage in ("lexical", "static", "dense", "at_once", "full"):
        for measure in ("ndcg_10", "recall_5", "recall_10", "recall_100", "mrr", "success_1"):
            figure = figures[f"cranfield.{stage}.{measure}"]
            assert figure["spread"][0] <= figure["value"] <= figure["spread"][1]
    assert figures["cranfield.full.ndcg_10"]["goal"] == 0.42
    assert figures["cisi.full.ndcg_10"]["value"] == 1.0
    assert figures["cisi.lexical.ndcg_10"]["value"] < 1.0, "the words of one question do not stand in its answer"
    assert "cisi.without_dense.ndcg_10" in figures
    assert "cisi.full_over_lexical.ndcg_10" in figures
    assert figures["cisi.shown_for_unrelated"]["goal"] == 0.05
    curve = [figures[f"cisi.shown_for_unrelated_at_{at}"]["value"] for at in ("0.1", "0.2", "0.3", "0.4", "0.5")]
    assert curve == sorted(curve, reverse=True)
    assert figures["cisi.shown_for_related_at_0.1"]["value"] == 1.0, "a file that answers is shown, not just any"
    kept = tmp_path / "home" / "cache" / "bench"
    before = {path.name: path.stat().st_mtime_ns for path in kept.iterdir()}
    assert main(arguments) == 0
    assert json.loads(capsys.readouterr().out)["figures"] == report["figures"]
    assert {path.name: path.stat().st_mtime_ns for path in kept.iterdir()} == before, "nothing had to be embedded again"


def test_answers_outside_of_the_printed_lines_are_counted_by_half(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = "mill, door code: 4411\nbarn, door code: 8603\nkiln, door code: 7091\n"

    def asked(place: str, answer: str, half: str) -> Question:
        start = text.index(answer)
        return Question(text=f"door code of the {place}", path="/a.txt", start=start, end=start + 4, kind="pairs", half=half)

    questions = (asked("mill", "4411", "fit"), asked("barn", "8603", "held"), asked("kiln", "4411", "held"))
    monkeypatch.setattr(exact, "memory", lambda **_: Memory(files={"/a.txt": text}, questions=questions))
    monkeypatch.setenv("MEMDIR_HOME", str(tmp_path / "home"))
    assert main(["bench", "retrieval", "--lines", "--json"]) == 0
    figures = {figure["name"]: figure for figure in json.loads(capsys.readouterr().out)["figures"]}
    for way in ("static", "dense"):
        assert figures[f"lines.{way}"]["value"] == pytest.approx(2 / 3, abs=0.001)
        assert figures[f"lines.{way}"]["met"] is False
        assert (figures[f"lines.{way}.fit"]["value"], figures[f"lines.{way}.held"]["value"]) == (1.0, 0.5)
