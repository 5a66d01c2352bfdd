"""The arithmetic that judges' answers go through, the formats that other benchmarks read, and the questions out of manuals."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

from memdir_bench.research.judges import deepconsult, deepresearch_bench, fact, mean_race, race, with_addresses
from memdir_bench.research.rubric import POSTGRESQL, PYTHON, facts
from tests.research.made import researched

CRITERIA = {
    "dimension_weight": {"comprehensiveness": 0.4, "insight": 0.3, "instruction_following": 0.2, "readability": 0.1},
    "criterions": {
        "comprehensiveness": [{"criterion": "breadth", "weight": 0.75}, {"criterion": "depth", "weight": 0.25}],
        "insight": [{"criterion": "why", "weight": 1.0}],
        "instruction_following": [{"criterion": "asked", "weight": 1.0}],
        "readability": [{"criterion": "clear", "weight": 1.0}],
    },
}


def scored(criterion: str, target: float, reference: float) -> dict[str, object]:
    return {"criterion": criterion, "article_1_score": target, "article_2_score": reference}


def test_race_weighs_criteria_then_dimensions_then_takes_the_share() -> None:
    judged = {
        "comprehensiveness": [scored("breadth", 8, 4), scored("depth", 4, 8), scored("not a criterion", 10, 0)],
        "insight": [scored("why", 6, 6)],
        "instruction_following": [scored("asked", 10, 5)],
        "readability": [scored("clear", 0, 10)],
    }
    found = race(judged, CRITERIA)
    # 0.4*(0.75*8+0.25*4) + 0.3*6 + 0.2*10 + 0 = 6.6; 0.4*(0.75*4+0.25*8) + 0.3*6 + 0.2*5 + 0.1*10 = 5.8
    assert found.overall == pytest.approx(6.6 / (6.6 + 5.8))
    assert found.dimensions == pytest.approx(
        {"comprehensiveness": 7 / 12, "insight": 0.5, "instruction_following": 10 / 15, "readability": 0.0}
    )
    assert race({"insight": [scored("why", 3, 3)]}, CRITERIA).overall == 0.5
    assert race({"insight": [scored("why", 0, 0)]}, CRITERIA).overall == 0.0
    with pytest.raises(ValueError, match="no criterion"):
        race({"insight": [scored("other", 3, 3)]}, CRITERIA)


def test_race_over_tasks_is_the_mean_of_tasks() -> None:
    one = race({"insight": [scored("why", 9, 3)]}, CRITERIA)
    other = race({"readability": [scored("clear", 2, 6)]}, CRITERIA)
    mean = mean_race([one, other])
    assert mean.overall == pytest.approx((0.75 + 0.25) / 2)
    assert mean.dimensions == pytest.approx({"insight": 0.75, "readability": 0.25})


def test_fact_counts_what_was_judged() -> None:
    found = fact([["supported", "unsupported", "unknown"], ["supported"] * 3, [], ["unknown"]])
    assert (found.accuracy, found.effective, found.citations, found.tasks) == (
        0.8,
        pytest.approx(4 / 3),
        pytest.approx(5 / 3),
        3,
    )
    assert fact([]).accuracy == 0.0


def test_reports_go_out_as_other_benchmarks_read_them() -> None:
    lines = deepresearch_bench([(1, "Wie?", "Ärtikel\nzwei"), ("b", "q", "a")]).splitlines()
    assert json.loads(lines[0]) == {"id": 1, "prompt": "Wie?", "article": "Ärtikel\nzwei"}
    assert len(lines) == 2
    rows = list(csv.DictReader(io.StringIO(deepconsult([("q,1", 'a "b"\nc', "ours")]))))
    assert rows == [{"question": "q,1", "baseline_answer": 'a "b"\nc', "candidate_answer": "ours"}]


def test_a_report_for_judges_cites_addresses() -> None:
    report = "# T\n\nOne [sources/a.md#L1-L2@12345678]. Two [sources/b.md#L3]. Three [sources/a.md#L9].\n\n## Sources\n\n- x\n"
    shown = with_addresses(report, {"sources/a.md": "https://a.org/"})
    assert shown == (
        "# T\n\nOne [1](https://a.org/). Two [2](sources/b.md). Three [1](https://a.org/).\n\n"
        "## References\n\n[1] https://a.org/\n[2] sources/b.md\n"
    )


def test_the_commands_write_and_score(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from memdir.cli.main import main

    researched(tmp_path / "ws", topic="Ants\n- From what does the weaver ant build nests?\n")
    assert main(["bench", "research", "export", str(tmp_path / "ws"), "--output", str(tmp_path / "out.jsonl")]) == 0
    row = json.loads((tmp_path / "out.jsonl").read_text())
    assert row["id"] == 1
    assert row["prompt"].startswith("Ants")
    assert "[1](book:ants)" in row["article"]
    (tmp_path / "base.csv").write_text(deepconsult([(row["prompt"], "theirs", "")]))
    command = [
        "bench",
        "research",
        "export",
        str(tmp_path / "ws"),
        "--format",
        "deepconsult",
        "--baseline",
        str(tmp_path / "base.csv"),
    ]
    assert main(command) == 0
    [pair] = csv.DictReader(io.StringIO(capsys.readouterr().out))
    assert pair["baseline_answer"] == "theirs"
    assert "living leaves" in pair["candidate_answer"]
    assert main(["bench", "research", "export", str(tmp_path)]) == 1
    (tmp_path / "fact.jsonl").write_text('{"id": 1, "citations": ["supported", "unsupported"]}\n')
    assert main(["bench", "research", "score", str(tmp_path / "fact.jsonl"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["citation_accuracy"] == 0.5
    (tmp_path / "race.jsonl").write_text(json.dumps({"id": 1, "insight": [scored("why", 9, 3)]}) + "\n")
    (tmp_path / "criteria.jsonl").write_text(json.dumps({"id": 1, **CRITERIA}) + "\n")
    assert (
        main(["bench", "research", "score", str(tmp_path / "race.jsonl"), "--criteria", str(tmp_path / "criteria.jsonl")]) == 0
    )
    assert "0.7500" in capsys.readouterr().out
    (tmp_path / "race.jsonl").write_text("nonsense\n")
    assert main(["bench", "research", "score", str(tmp_path / "race.jsonl")]) == 2


def test_questions_come_out_of_the_manuals_with_their_answers() -> None:
    if not (PYTHON.is_dir() and POSTGRESQL.is_dir()):
        pytest.skip("apt-get install python3.11-doc postgresql-doc-15")
    found = facts(400, 1)
    assert len(found) > 200
    known = {fact.question: fact.answer for fact in found}
    all_of = known | {fact.question: fact.answer for seed in range(8) for fact in facts(400, seed)}
    assert all_of["What is the default of the seq_page_cost parameter?"] == "1.0"
    assert all_of["What is the default of the wal_writer_delay parameter?"].startswith("200")
    assert all_of["In which version was functools.cached_property added, new in version?"] == "3.8"
    assert facts(40, 3) == facts(40, 3) != facts(40, 4)
