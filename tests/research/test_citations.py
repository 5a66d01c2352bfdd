"""Citations and sentences: where they are, what they lead to, and what the lines hold."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memdir.research import outline as plans
from memdir.research.archive import Archive, Page, one_sentence_a_line
from memdir.research.checks import Checks
from memdir.research.citations import citations, sentences, span_hash, stamped
from memdir.research.evidence import is_factual, missing, numbers
from memdir.research.workspace import Workspace

LINES = ["one", "two", "three", "four"]


def test_a_citation_is_stamped_with_the_hash_of_its_lines() -> None:
    text = stamped(
        "A [sources/a.md#L2-L3]. B (../sources/a.md#L2). C sources/b.md#L1-9 D",
        lambda path: LINES if path == "sources/a.md" else [],
    )
    both = span_hash(LINES, 2, 3)
    assert text == f"A [sources/a.md#L2-L3@{both}]. B ([sources/a.md#L2-L2@{span_hash(LINES, 2, 2)}]). C [sources/b.md#L1-L9] D"
    assert stamped(text, lambda _path: ["other"] * 9) == text.replace(
        "[sources/b.md#L1-L9]", f"[sources/b.md#L1-L9@{span_hash(['other'] * 9, 1, 9)}]"
    )


_PARTS = st.lists(
    st.sampled_from(
        [
            "Ants build. ",
            "Bees fly 5 km",
            " [sources/a.md#L1-L2] ",
            "[sources/b.md#L3@12345678]",
            ". ",
            "\n",
            "\n\n",
            "- ",
            "| a | b |\n",
            "```\n",
            "# H\n",
            "e.g. x ",
            "? ",
            "\ue001",
        ]
    ),
    max_size=30,
)


@given(_PARTS)
def test_sentences_stand_where_they_say_in_their_order(parts: list[str]) -> None:
    text = "".join(parts)
    found = sentences(text)
    assert all(0 <= one.start < one.end <= len(text) for one in found)
    assert all(before.end <= after.start for before, after in pairwise(found))
    for one in found:
        assert [str(cited) for _line, cited in citations(text[one.start : one.end])] == [str(cited) for cited in one.citations]
        assert text.count("\n", 0, one.start) + 1 == one.line


@given(_PARTS)
def test_stamping_twice_is_stamping_once(parts: list[str]) -> None:
    once = stamped("".join(parts), lambda _path: LINES)
    assert stamped(once, lambda _path: LINES) == once


def test_paragraphs_items_and_rows_are_taken_apart() -> None:
    text = (
        "# Not this one 5\n\nThe limit is 5 MB. [sources/a.md#L1] Dr. Who, e.g. in 2020, saw it [sources/b.md#L2].\n"
        "- item one\n  goes on. [sources/c.md#L1]\n\n| Name | Size |\n|---|---|\n| x | 7 [sources/d.md#L1] |\n\n"
        "```\ncode 9\n```\nIs it so?\n"
    )
    found = [(one.text, [cited.path for cited in one.citations], one.line) for one in sentences(text)]
    assert found == [
        ("The limit is 5 MB.", ["sources/a.md"], 3),
        ("Dr. Who, e.g. in 2020, saw it.", ["sources/b.md"], 3),
        ("item one goes on.", ["sources/c.md"], 4),
        ("x | 7 |", ["sources/d.md"], 9),
        ("Is it so?", [], 14),
    ]


@pytest.mark.promise("research.cites")
@pytest.mark.parametrize(
    ("sentence", "span", "lost"),
    [
        ("The limit is 1,200 bytes.", "a limit of 1200 bytes", []),
        ("The limit is 1 200 bytes.", "a limit of 1,200 bytes", []),
        ("It fell by 2.50 percent.", "it fell by 2.5 %", []),
        ("It fell by 25 percent.", "it fell by 2.5 %", ["25"]),
        ("There are three of them, since 2019.", "3 of them since 2019", []),
        ("There are 3 of them.", "three of them", []),
        ("Vacuum every three billion transactions.", "at least once every two billion transactions", ["3"]),
        ("Vacuum every two billion transactions.", "at least once every two billion transactions", []),
        ("It began on 2020-05-01.", "it began on May 1, 2020", []),
        ("It began in 2021.", "it began in 2020", ["2021"]),
        ("Port 80 is open.", "ports 8080 and 443 are open", ["80"]),
        ("The answer is 42.", "version 42.1 of it", ["42"]),
        ("Guido van Rossum wrote the language.", "it was written by Guido van Rossum", []),
        (
            "The language was written by Guido van Rossum in the Netherlands.",
            "it was written by Guido",
            ["Rossum", "Netherlands"],
        ),
        ("Use `json.dumps` for it.", "call **json.dumps** for it", []),
        ("Use `json.dump` for it.", "call pickle.dump for it", ["json.dump"]),
        ("The SQLite library is used.", "the sqlite library is used", []),
        ("The PostgreSQL server is used.", "the sqlite library is used", ["PostgreSQL"]),
        ('He said "it will never work at all" of it.', "he said: it will never work at all", []),
        ('He said "it works every single time" of it.', "he said it never works", ["it works every single time"]),
        ("Der Grenzwert liegt bei 5 Gramm.", "the limit is 5 grams", []),
        ("The Berlin office has 12 people.", "Our office in Berlin has a dozen people", []),
        ("It costs $5.", "costs 5 dollars", []),
        ("The colonies hold 500,000 ants.", "500.000 ants", ["500000"]),
    ],
)
def test_numbers_names_code_and_quotations_must_stand_in_the_lines(sentence: str, span: str, lost: list[str]) -> None:
    assert missing(sentence, [span]) == lost


def test_what_the_title_and_the_topic_say_needs_no_line() -> None:
    assert (
        missing("The timeout of Python 3.11 is 5 seconds.", ["the timeout is 5"], "socket — Python 3.11.2 documentation 3.11")
        == []
    )


@given(st.text(max_size=200))
def test_a_sentence_is_borne_by_itself(text: str) -> None:
    assert [one for one in missing(text, [text]) if one in numbers(text)] == []


@pytest.mark.parametrize(
    ("text", "factual"),
    [
        ("In short, it depends.", False),
        ("What follows from this?", False),
        ("The next part compares both.", False),
        ("It grew by 5 percent.", True),
        ("They moved the office to Berlin.", True),
        ("Use `fsync` before the rename.", True),
        ("This design has turned out to be a good deal slower than what it was meant to replace.", True),
    ],
)
def test_transitions_need_no_citation(text: str, factual: bool) -> None:
    assert is_factual(text) is factual


def test_a_page_is_archived_once_and_a_citation_of_it_survives_only_as_it_is(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path)
    workspace.make()
    archive = Archive(workspace)
    page = Page(
        url="https://example.org/a?b=c#d",
        title='Quoted "title": with, marks',
        media_type="text/html",
        text="# T\n\nThe sky is blue.\n",
    )
    source = archive.add(page, 1_700_000_000_000)
    assert archive.add(page, 1_800_000_000_000) == source
    assert source.path.startswith("sources/example-org-quoted-title-with-marks-")
    again = Archive(workspace).get(source.path)
    assert again is not None
    assert (again.url, again.title, again.text) == (page.url, page.title, "# T\n\nThe sky is blue.\n")
    line = again.lines.index("The sky is blue.") + 1
    checks = Checks(workspace, archive)
    text = stamped(f"The sky is blue [{source.path}#L{line}].", archive.lines)
    assert checks.text("x.md", text, strict=True) == []
    at = tmp_path / source.path
    at.write_text(at.read_text().replace("blue", "green"))
    changed = Checks(workspace, Archive(workspace))
    assert [one.check for one in changed.text("x.md", text, strict=True)] == ["citation"]
    assert "immutable" in [one.check for one in changed.sources()]


@pytest.mark.promise("research.cites")
@pytest.mark.parametrize(
    ("cited", "message"),
    [
        ("sources/none.md#L9", "does not exist"),
        ("sources/../topic.md#L1", "does not exist"),
        ("{path}#L1", "has its text in lines"),
        ("{path}#L999", "has its text in lines"),
        ("{path}#L12-L9", "has its text in lines"),
        ("{path}#L9-L200", "more than 60 lines"),
        ("{path}#L10", "are empty"),
        ("{path}#L9@00000000", "not the ones that were cited"),
    ],
)
def test_citations_that_lead_nowhere_are_found(tmp_path: Path, cited: str, message: str) -> None:
    workspace = Workspace(tmp_path)
    workspace.make()
    archive = Archive(workspace)
    page = Page(url="https://example.org/", title="T", media_type="text/plain", text="first\n\n" + "line\n" * 300)
    path = archive.add(page, 0).path
    found = Checks(workspace, archive).text("report.md", f"Something is said [{cited.format(path=path)}].\n", strict=True)
    assert [one.check for one in found] == ["citation"]
    assert message in found[0].message


@pytest.mark.promise("research.evidence")
@pytest.mark.parametrize(
    ("url", "lost"),
    [("/home/8/scans/ants.html", 1), ("/home/ana/ants-8.html", 0), ("https://example.org/8/ants", 0)],
)
def test_an_address_bears_a_number_and_the_folders_of_a_file_do_not(tmp_path: Path, url: str, lost: int) -> None:
    workspace = Workspace(tmp_path)
    workspace.make()
    archive = Archive(workspace)
    source = archive.add(Page(url=url, title="Ants", media_type="text/plain", text="It builds nests from 7 leaves.\n"), 0)
    line = source.lines.index("It builds nests from 7 leaves.") + 1
    said = f"It builds nests from 8 leaves [{source.path}#L{line}].\n"
    assert len(Checks(workspace, archive).text("report.md", said, strict=True)) == lost


def test_prose_becomes_a_sentence_a_line_and_code_stays(tmp_path: Path) -> None:
    prose = "The first sentence is here, and it is long enough\nto be broken by the page. " + "The second one is longer. " * 8
    code = "```\nline = 1\n" + "x = " + "1 + " * 80 + "1\n```"
    text = one_sentence_a_line(f"# Head\n\n{prose}\n- item\n  of two lines\n\n{code}\n\n| a | b |\n", joined=True)
    lines = text.split("\n")
    assert lines[2] == "The first sentence is here, and it is long enough to be broken by the page."
    assert lines[3] == "The second one is longer."
    assert "- item of two lines" in lines
    assert code in text
    assert one_sentence_a_line("a\nb\n", joined=False) == "a\nb\n"


def test_the_plans_are_read_as_people_write_them() -> None:
    index = (
        "# Index\n## Target Hierarchy\n- knowledge_base/\n  - models/\n    - `lsm-trees.md` — how they work\n    - b-trees.md\n"
        "- knowledge_base/history/first-paper.md\n\n## TODO\n- [x] done\n* [ ] open one\n- [~] half\n- not one\n\n"
        "## Unused Sources\n- `sources/x-1.md`: too old\n\n## Round Log\n### Round 1\n- [ ] not a todo\n"
    )
    assert list(plans.hierarchy(index)) == [
        "knowledge_base/models/lsm-trees.md",
        "knowledge_base/models/b-trees.md",
        "knowledge_base/history/first-paper.md",
    ]
    assert [(todo.text, todo.status) for todo in plans.todos(index)] == [
        ("done", "complete"),
        ("open one", "open"),
        ("half", "in progress"),
    ]
    assert plans.unused(index) == {"sources/x-1.md"}
    assert plans.without_part(index, "Round Log").endswith("too old\n")
    outline = (
        "# My report\n\nintro\n\n## 1. First: a/b\nPoints.\nEvidence: knowledge_base/models/b-trees.md, `knowledge_base/x.md`\n"
        "### sub\n## Second\nNo evidence\n"
    )
    first, second = plans.sections(outline)
    assert (first.title, first.path, first.notes) == (
        "First: a/b",
        "sections/01-first-a-b.md",
        ("knowledge_base/models/b-trees.md", "knowledge_base/x.md"),
    )
    assert (second.number, second.notes) == (2, ())
    assert plans.title(outline) == "My report"
