"""xAFS: corpora whose questions are proved, an agent that stops by evidence, and a report that tells both sides."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache
from html.parser import HTMLParser
from pathlib import Path

import pytest

from memdir.core.errors import UsageError
from memdir.llm.port import Message, Reply, ToolCall, Usage
from memdir_bench.xafs import model_agent
from memdir_bench.xafs.audits import audit
from memdir_bench.xafs.conditions import ShellCommands, in_folder
from memdir_bench.xafs.corpus import (
    PLANS_FILE,
    QUESTIONS,
    QUESTIONS_FILE,
    SIZES,
    Readings,
    make_corpus,
    questions_of,
)
from memdir_bench.xafs.policy import Budget, Step, answer
from memdir_bench.xafs.questions import SHARES, Question, is_right, wanted_families
from memdir_bench.xafs.report import change, load, markdown, page, report
from memdir_bench.xafs.run import Place, Runner, corpora_in, in_copy, questions_in, run_all
from memdir_bench.xafs.solver import proved, solved, stated
from memdir_bench.xafs.solver import readings as readings_of
from memdir_bench.xafs.world import Fact


@pytest.fixture(scope="module")
def readings() -> Iterator[Readings]:
    made = Readings()
    yield made
    made.close()


@pytest.fixture(scope="module")
def corpora(tmp_path_factory: pytest.TempPathFactory, readings: Readings) -> Path:
    folder = tmp_path_factory.mktemp("corpora")
    for size, count in ((5, 2), (16, 5)):
        made = make_corpus(folder / f"c{size:05d}", seed=3, size=size, count=count, readings=readings)
        assert made["files"] == size
    return folder


@lru_cache(maxsize=8)
def texts(corpus: Path, readings: Readings) -> dict[str, str]:
    """What is read in every file; once, as recordings take long."""
    files = [file for file in (corpus / "files").rglob("*") if file.is_file()]
    return {str(file.relative_to(corpus / "files")): readings.text(file.name, file.read_bytes()) for file in files}


@pytest.mark.promise("xafs.proved")
def test_each_question_is_answered_by_its_gold_files_and_by_no_part_of_them(corpora: Path, readings: Readings) -> None:
    for corpus in corpora_in(corpora):
        found = texts(corpus, readings)
        told = json.loads((corpus / QUESTIONS_FILE).read_text())["questions"]
        plans = json.loads((corpus / PLANS_FILE).read_text())
        assert {one["id"] for one in told} == plans.keys()
        for one, (question_id, question) in zip(told, questions_in(corpus), strict=True):
            assert one["id"] == question_id
            gold = {path: found[path] for path in one["gold_file_ids"]}
            assert proved(question, gold), one
            for fact in question.facts:
                said = [stated([readings_of(text)], fact.subject, fact.relation) for text in found.values()]
                assert said.count(fact.value) == 1, one
            if one["family"] == "format_spanning":
                assert len({path.rpartition(".")[2] for path in gold}) > 1


def test_the_same_seed_makes_the_same_drive_and_another_seed_another(corpora: Path, tmp_path: Path, readings: Readings) -> None:
    again = make_corpus(tmp_path / "again", seed=3, size=16, count=5, readings=readings)
    other = make_corpus(tmp_path / "other", seed=4, size=16, count=5, readings=readings)
    first = json.loads((corpora / "c00016" / QUESTIONS_FILE).read_text())
    assert again["questions"] == first["questions"]
    assert {one["prompt"] for one in other["questions"]}.isdisjoint({one["prompt"] for one in first["questions"]})
    named = [
        sorted(str(file.relative_to(base)) for file in base.rglob("*")) for base in (corpora / "c00016", tmp_path / "again")
    ]
    assert named[0] == named[1]


def test_there_are_110_questions_in_the_proportions_of_the_seed() -> None:
    counts = questions_of(SIZES, QUESTIONS)
    assert sum(counts.values()) == QUESTIONS == 110
    assert len(SIZES) == 13
    assert sum(SIZES) == 19_169
    families = Counter(wanted_families(111, random.Random(1)))
    assert families == SHARES


@pytest.mark.parametrize(
    ("given", "gold", "right"),
    [
        ("1,257,200 EUR", "1257200", True), ("27 June 2024", "27 june 2024", True), ("The night train", "night train", True),
        ("12,570 EUR", "125,700 EUR", False), ("Porto", "Portorož", False), ("", "Porto", False),
    ],
)  # fmt: skip
def test_answers_are_compared_without_case_articles_and_separators(given: str, gold: str, right: bool) -> None:
    assert is_right(given, gold) is right


def test_a_statement_is_read_in_prose_and_tables_and_not_of_another() -> None:
    assert (
        stated([readings_of("**Blue Heron** has to be handed over on 3 May 2026, say they.")], "Blue Heron", "deadline")
        == "3 May 2026"
    )
    assert stated([readings_of("| 4 | Blue Heron | handover | 3 May 2026 |")], "Blue Heron", "deadline") == "3 May 2026"
    assert stated(["Blue Heron has to be handed over on 3 May 2026."], "Red Heron", "deadline") is None
    both = "Blue Heron has to be handed over on 3 May 2026. The last day for Blue Heron is 4 May 2026."
    assert stated([both], "Blue Heron", "deadline") is None


def test_the_agent_follows_names_stops_by_evidence_and_pays_for_what_it_sent() -> None:
    facts = (Fact("Blue Heron", "lead", "Ada Dahl"), Fact("Ada Dahl", "extension", "4711"))
    question = Question(
        prompt="Internal number of who leads Blue Heron?", family="multi_hop", facts=facts, answer="4711", kind="number"
    )
    asked: list[str] = []

    class Scripted:
        def search(self, _question: str, subject: str, number: int) -> Step | None:
            asked.append(subject)
            pages = {
                "Blue Heron": [{"drafts/a.md": "Zora Weiss runs Blue Heron."}, {"b.md": "Ada Dahl runs Blue Heron."}],
                "Ada Dahl": [{"c.md": "Desk phone of Ada Dahl: 4711."}],
            }[subject]
            return Step("x" * 40, "y" * 400, pages[number]) if number < len(pages) else None

    given, account = answer(question, Scripted(), instructions="i" * 400, budget=Budget(), seed="1")
    assert (given, asked, account.calls) == ("4711", ["Blue Heron", "Blue Heron", "Ada Dahl"], 3)
    start = 101 + len(question.prompt) // 4 + 1
    each = 11 + 101
    assert account.tokens_in == sum(start + number * each for number in range(4))
    assert account.tokens_cached == account.tokens_in - start
    poor, cost = answer(question, Scripted(), instructions="", budget=Budget(calls=1), seed="1")
    assert (poor, cost.calls) == ("", 1)
    assert solved(question, ["Ada Dahl runs Blue Heron."]) is None


@pytest.mark.promise("xafs.report")
def test_runs_are_kept_and_the_report_tells_both_sides(corpora: Path, tmp_path: Path) -> None:
    said: list[str] = []
    out = tmp_path / "runs"
    for _ in range(2):
        run_all(corpora_in(corpora), Runner(out, Budget(), said.append), conditions=["plain"])
    kept = sorted(out.glob("plain/*/*.json"))
    assert len(kept) == 7
    assert "transcript" in json.loads(kept[0].read_text())
    assert said[0] == said[2]
    for file in kept:  # as if another condition had cost half, and had failed once
        row = json.loads(file.read_text()) | {"condition": "mount"}
        row["tokens"] //= 2
        copy = out / "mount" / file.parent.name / file.name
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text(json.dumps(row))
    (out / "ingest").mkdir()
    (out / "ingest" / "c00016.json").write_text(
        json.dumps(
            {
                "corpus": 16,
                "files_per_s": 2.0,
                "cpu_s": 9.0,
                "server_peak_mib": 400.0,
                "failed": 0,
                "search_during_p95_ms": 210.5,
                "search_after_p95_ms": None,
            }
        )
    )
    found = report(out)
    lower = found["change"]["mount"]
    assert lower is not None
    assert lower["lower_by"] == pytest.approx(0.5, abs=0.01)
    assert lower["from"] <= lower["lower_by"] <= lower["to"]
    assert set(found["by_corpus"]) == {5, 16}
    assert "tokens per right answer lower by 50%" in markdown(found)
    assert "| c00016 | 2.0 | 9.0 | 400 | 0 | 210.5 | none |" in markdown(found)
    assert change(load(out), "shell") is None
    parser = HTMLParser()
    parser.feed(page(found))
    assert page(found).count("<svg") == 2
    assert "http" not in page(found)


def test_shortcuts_are_told(corpora: Path, readings: Readings) -> None:
    corpus = corpora_in(corpora)[1]
    shares = audit([question for _, question in questions_in(corpus)], texts(corpus, readings))
    assert shares["the question itself"] == shares["names of files"] == 0.0
    assert all(0.0 <= share <= 1.0 for share in shares.values())


def test_what_is_missing_is_said(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no corpus"):
        corpora_in(tmp_path)
    with pytest.raises(UsageError, match="no runs"):
        load(tmp_path)


def test_what_fits_the_question_comes_before_every_page_of_the_name() -> None:
    ran: list[str] = []

    def run(command: str) -> str:
        ran.append(command)
        if command.startswith("memdir"):
            return "drafts/old.md:1:no\nnotes/a b.md:3:perhaps\n"
        return "".join(f"./f{number}.md:{number}:Blue Heron\n" for number in range(130))

    commands = ShellCommands(run, semantic=True, converters=False)
    steps = [commands.search("When is Blue Heron due?", "Blue Heron", number) for number in range(6)]
    shown = [step.command for step in steps if step is not None]
    assert shown[0] == "memdir grep -k 10 'When is Blue Heron due?' --containing 'Blue Heron'"
    assert shown[1] == "memdir grep -k 40 'When is Blue Heron due?' --containing 'Blue Heron' | tail -n +11"
    assert [one.rpartition("sed -n ")[2] for one in shown[2:]] == ["1,60p", "61,120p", "121,180p"]
    assert steps[5] is None
    assert sum(command.startswith("grep -rno") for command in ran) == 1
    plain = ShellCommands(run, semantic=False, converters=False)
    first = plain.search("When is Blue Heron due?", "Blue Heron", 0)
    assert first is not None
    assert first.by_file["./f3.md"] == "Blue Heron"


def _called(name: str, arguments: dict[str, str] | None, usage: Usage) -> Reply:
    return Reply(text="", calls=(ToolCall(id=name, name=name, arguments=arguments),), usage=usage)


def test_a_model_is_given_the_shell_and_pays_what_its_provider_counts(tmp_path: Path) -> None:
    class Scripted:
        name = "test:scripted"

        def __init__(self) -> None:
            self.replies = iter(
                [
                    _called("bash", {"command": "cat note"}, Usage(input_tokens=100, output_tokens=10)),
                    _called("sh", None, Usage(input_tokens=150, output_tokens=10, cached_tokens=90)),
                    _called("answer", {"text": " Porto "}, Usage(input_tokens=200, output_tokens=5)),
                ]
            )
            self.seen: list[str] = []

        def ask(self, system: str, messages: Sequence[Message], **_: object) -> Reply:
            assert "`answer`" in system
            self.seen.append(messages[-1].text)
            return next(self.replies)

    model = Scripted()
    given, account = model_agent.answer(
        "Where?", lambda command: f"ran {command}", model, instructions="Look.", budget=Budget()
    )
    assert (given, account.calls, account.tokens_in, account.tokens_out, account.tokens_cached) == ("Porto", 3, 450, 25, 90)
    assert model.seen[1] == "ran cat note"
    assert "there is no such call" in model.seen[2]
    runner = Runner(tmp_path, Budget(), lambda _: None)
    run_all([], runner, conditions=["plain"])
    with pytest.raises(UsageError, match="keeps runs of the agent scripted"):
        run_all([], Runner(tmp_path, Budget(), lambda _: None, model), conditions=["plain"])


def test_each_run_finds_the_drive_as_it_was_made(corpora: Path, tmp_path: Path) -> None:
    class Careless:
        """Answers with what it finds, then changes, deletes and makes files."""

        name = "test:careless"

        def ask(self, system: str, messages: Sequence[Message], **_: object) -> Reply:
            if len(messages) == 1:
                damage = "f=$(find . -type f | sort | head -1); echo gone > $f; rm -r mail; mkdir -p mine/a; echo x > mine/a/b"
                damage += (
                    "; rm -r notes; echo x > notes; g=$(find . -type f | sort | tail -1); rm $g; mkdir $g; ln -s /etc $g/l"
                )
                return _called("bash", {"command": f"find . -type f | xargs cat | md5sum; {damage}"}, Usage())
            return _called("answer", {"text": messages[-1].text.split()[0]}, Usage())

    corpus = corpora / "c00016"
    for parallel in (1, 3):
        out = tmp_path / f"out{parallel}"
        runner = Runner(out, Budget(), lambda _: None, Careless(), parallel)
        with in_copy(corpus) as drive:
            runner("plain", Place(run=in_folder(drive, {}), drive=drive, folder=drive, env={}), corpus)
            made = {path.relative_to(corpus / "files") for path in (corpus / "files").rglob("*")}
            assert {path.relative_to(drive) for path in drive.rglob("*")} == made
        rows = [json.loads(file.read_text()) for file in sorted((out / "plain" / corpus.name).glob("*.json"))]
        assert len(rows) == len(questions_in(corpus))
        if parallel == 1:
            assert len({row["answer"] for row in rows}) == 1


def test_a_model_has_the_seconds_of_the_budget(tmp_path: Path) -> None:
    class Slow:
        name = "test:slow"

        def ask(self, system: str, messages: Sequence[Message], **_: object) -> Reply:
            return _called("bash", {"command": "sleep 1"}, Usage())

    given, account = model_agent.answer(
        "Where?", in_folder(tmp_path, {}), Slow(), instructions="Look.", budget=Budget(seconds=1.5)
    )
    assert (given, account.calls) == ("", 2)
