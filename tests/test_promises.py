"""Every promise has a test, every test's promise exists: read from the source, so that no test has to run for it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from memdir_bench.agents.goals import GOALS as AGENT_GOALS
from memdir_bench.posix.goals import GOALS
from memdir_bench.scale.goals import GOALS as SIZE_GOALS
from memdir_bench.server.goals import GOALS as SERVER_GOALS
from memdir_bench.sync.goals import GOALS as SYNC_GOALS
from tests.promises import MEASURED, OPEN, PROMISES

TESTS = Path(__file__).parent
RANKINGS = {"ranked.cranfield", "ranked.cisi", "ranked.lines", "ranked.multihop", "ranked.negatives"}
"""Promises whose figures are those of `memdir bench retrieval`."""
SIZES = SIZE_GOALS.keys() - {"100000.lexical_top10_equal"}
"""Figures of `memdir bench scale` that promises are about."""


def marked_ids(source: str) -> Iterator[str]:
    """The ids in every `pytest.mark.promise("…", …)` of a module, decorators and `pytestmark` alike."""
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.func.attr != "promise":
            continue
        owner = node.func.value
        if not (isinstance(owner, ast.Attribute) and owner.attr == "mark"):
            continue
        if not node.args or node.keywords:
            raise TypeError(f"line {node.lineno}: promise() takes at least one id and no keywords")
        for argument in node.args:
            if not (isinstance(argument, ast.Constant) and isinstance(argument.value, str)):
                raise TypeError(f"line {node.lineno}: a promise id is written out as a string")
            yield argument.value


@cache
def proven_ids() -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for path in sorted(TESTS.rglob("test_*.py")):
        source = path.read_text(encoding="utf-8")
        for promise_id in marked_ids(source) if "promise(" in source else ():
            found.setdefault(promise_id, set()).add(str(path.relative_to(TESTS)))
    return found


def test_ids_are_unique_and_sentences_are_sentences() -> None:
    ids = [promise.id for promise in PROMISES]
    assert len(ids) == len(set(ids))
    assert [promise.id for promise in PROMISES if not promise.sentence.endswith(".") or not promise.source] == []


@pytest.mark.promise("parts.promises")
def test_no_test_names_an_unknown_promise() -> None:
    known = {promise.id for promise in PROMISES}
    assert {name: files for name, files in proven_ids().items() if name not in known} == {}


@pytest.mark.promise("parts.promises")
def test_every_promise_that_is_not_open_has_a_test() -> None:
    proven = proven_ids()
    unproven = [promise.id for promise in PROMISES if promise.id not in proven and promise.id not in MEASURED]
    assert [promise_id for promise_id in unproven if promise_id not in OPEN] == []


@pytest.mark.promise("parts.promises")
def test_a_promise_about_speed_names_figures_of_the_benchmark_that_have_goals() -> None:
    source = (TESTS.parent / "bench" / "src" / "memdir_bench" / "smoke.py").read_text(encoding="utf-8")
    page = (TESTS.parent / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    ids = {promise.id for promise in PROMISES}
    posix = {goal.name for goal in GOALS}
    for promise_id, figures in MEASURED.items():
        assert promise_id in ids
        for figure in figures:
            if figure in posix or figure in SYNC_GOALS or promise_id.startswith(("scale.", "ranked.", "agent.")):
                continue
            assert promise_id not in OPEN
            stem = figure.removesuffix("_p95").removeprefix("ratio_")
            assert f'"{stem}"' in source, f"{promise_id}: the benchmark has no {figure}"
            assert figure in page, f"{promise_id}: docs/benchmarks.md does not report {figure}"


@pytest.mark.promise("parts.promises")
def test_a_promise_about_the_servers_speed_is_open_unless_the_recorded_run_met_its_goals_on_each_store() -> None:
    page = (TESTS.parent / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    met = dict(re.findall(r"^\| `((?:sqlite|postgres)\.\w+)` \| [^|]+ \| [^|]+ \| (yes|no) \|$", page, re.MULTILINE))
    promised = {promise_id: figures for promise_id, figures in MEASURED.items() if promise_id.startswith("scale.")}
    assert {figure.partition(".")[2] for figures in promised.values() for figure in figures} == set(SERVER_GOALS)
    missed = {promise_id for promise_id, figures in promised.items() if any(met.get(figure) != "yes" for figure in figures)}
    assert {promise_id for promise_id in OPEN if promise_id.startswith("scale.")} == missed


@pytest.mark.promise("parts.promises")
def test_a_promise_about_the_syncs_speed_is_open_unless_the_recorded_run_met_its_goals() -> None:
    page = (TESTS.parent / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    recorded = page.partition("<!-- figures of memdir bench sync")[2]
    met = dict(re.findall(r"^\| `(\w+)` \| [^|]+ \| [^|]+ \| (yes|no) \|", recorded, re.MULTILINE))
    promised = {name: figures for name, figures in MEASURED.items() if set(figures) & set(SYNC_GOALS)}
    assert {figure for figures in promised.values() for figure in figures} == set(SYNC_GOALS)
    missed = {promise_id for promise_id, figures in promised.items() if any(met.get(figure) != "yes" for figure in figures)}
    assert promised.keys() & OPEN.keys() == missed


@pytest.mark.promise("parts.promises")
def test_a_promise_about_rankings_is_open_unless_the_recorded_run_met_its_goals() -> None:
    page = (TESTS.parent / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    recorded = page.partition("<!-- figures of memdir bench retrieval")[2].partition("<!-- end -->")[0]
    met = dict(re.findall(r"^\| `([\w.]+)` \|.* \| (yes|no) \|$", recorded, re.MULTILINE))
    promised = {name: figures for name, figures in MEASURED.items() if name in RANKINGS}
    assert promised.keys() == RANKINGS
    missed = {promise_id for promise_id, figures in promised.items() if any(met.get(figure) != "yes" for figure in figures)}
    assert promised.keys() & OPEN.keys() == missed


@pytest.mark.promise("parts.promises")
def test_a_promise_about_figures_of_agents_memories_is_open_unless_the_recorded_run_met_its_goals() -> None:
    page = (TESTS.parent / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    recorded = page.partition("<!-- figures of memdir bench agents")[2].partition("<!-- end -->")[0]
    met = dict(re.findall(r"^\| `([\w.]+)` \| [^|]+ \| [^|]+ \| (yes|no) \|$", recorded, re.MULTILINE))
    promised = {name: figures for name, figures in MEASURED.items() if name.startswith("agent.")}
    assert len(promised) == 6
    assert {figure for figures in promised.values() for figure in figures} <= set(AGENT_GOALS)
    missed = {promise_id for promise_id, figures in promised.items() if any(met.get(figure) != "yes" for figure in figures)}
    assert promised.keys() & OPEN.keys() == missed


@pytest.mark.promise("parts.promises")
def test_a_promise_about_size_is_open_unless_the_recorded_run_met_its_goals() -> None:
    page = (TESTS.parent / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    recorded = page.partition("<!-- figures of memdir bench scale")[2].partition("<!-- end -->")[0]
    met = dict(re.findall(r"^\| `([\w.]+)` \| [^|]+ \| [^|]+ \| (yes|no) \|$", recorded, re.MULTILINE))
    promised = {name: figures for name, figures in MEASURED.items() if set(figures) & SIZES}
    assert {figure for figures in promised.values() for figure in figures} == SIZES
    missed = {promise_id for promise_id, figures in promised.items() if any(met.get(figure) != "yes" for figure in figures)}
    assert promised.keys() & OPEN.keys() == missed


@pytest.mark.promise("parts.promises")
def test_a_promise_about_the_filesystems_speed_is_open_while_the_recorded_run_missed_one_of_its_goals() -> None:
    page = (TESTS.parent / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    met = {
        (row[1], row[2]): row[5]
        for line in page.splitlines()
        if len(row := [cell.strip(" `") for cell in line.split("|")]) == 7
    }
    promised = {figure: promise_id for promise_id, figures in MEASURED.items() for figure in figures}
    tested = {"requests_per_op"}
    missed = set()
    for goal in GOALS:
        if goal.measure in tested:
            continue
        promise_id = promised.get(goal.name)
        assert promise_id is not None, f"no promise is about {goal.name}"
        assert met.get((goal.name, goal.target)) in ("yes", "no"), (
            f"docs/benchmarks.md does not report {goal.name} of {goal.target}"
        )
        if met[goal.name, goal.target] == "no":
            missed.add(promise_id)
    assert {
        promise_id for figure, promise_id in promised.items() if figure in {goal.name for goal in GOALS}
    } & OPEN.keys() == missed


@pytest.mark.promise("parts.promises")
def test_a_promise_with_a_test_is_not_listed_as_open() -> None:
    proven = proven_ids()
    assert [promise.id for promise in PROMISES if promise.open and promise.id in proven] == []


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("@pytest.mark.promise('a.b')\ndef test_x(): ...", ["a.b"]),
        ("pytestmark = pytest.mark.promise('a', 'b')", ["a", "b"]),
        ("pytestmark = [pytest.mark.mount, pytest.mark.promise('c')]", ["c"]),
        ("self.promise('no marker')", []),
    ],
)
def test_markers_are_read_wherever_they_stand(source: str, expected: list[str]) -> None:
    assert list(marked_ids(source)) == expected


@pytest.mark.parametrize("source", ["pytest.mark.promise()", "pytest.mark.promise(NAME)", "pytest.mark.promise('a', ids=1)"])
def test_a_marker_that_cannot_be_read_is_refused(source: str) -> None:
    with pytest.raises(TypeError, match="line 1"):
        list(marked_ids(source))
