"""What `memdir bench posix` makes of its measurements, and the order it takes them in."""

from __future__ import annotations

import json
import runpy
from pathlib import Path

import pytest

from memdir.core.errors import UsageError
from memdir_bench.figures import Figure
from memdir_bench.posix import report, trees
from memdir_bench.posix.command import exit_code, workloads_of
from memdir_bench.posix.goals import GOALS, UNITS
from memdir_bench.posix.growth import Growth
from memdir_bench.posix.measure import Sample, difference
from memdir_bench.posix.run import DEFAULT_TARGETS, TARGETS, Failure, Outcome, Plan, check_folder, order
from memdir_bench.posix.sizes import Sizes
from memdir_bench.posix.suites import SUITES, WORKLOADS

SMALL = Sizes(files=20, stream_mib=1)


def sample(workload: str, target: str, round_: int, wall_s: float, **more: object) -> Sample:
    defaults: dict[str, object] = {
        "ops": 10, "unit": "file", "size_bytes": 0, "client_cpu_s": 0.001, "cpu_s": None, "requests": None, "rss_mib": None,
    }  # fmt: skip
    values = defaults | more
    return Sample(workload=workload, target=target, round=round_, wall_s=wall_s, **values)  # type: ignore[arg-type]


def outcome_of(*samples: Sample, peers: tuple[str, ...] = ("bindfs",)) -> Outcome:
    names = dict.fromkeys(one.target for one in samples)
    return Outcome(
        samples=list(samples), targets={name: f"what {name} is" for name in names}, peers=peers, disk="ext4",
        cold_means="dropped", rounds_done=2, elapsed_s=1.0,
    )  # fmt: skip


def report_of(outcome: Outcome, *figures: Figure) -> dict[str, object]:
    outcome.figures.extend(figures)
    made = report.as_json(Plan(sizes=SMALL, rounds=2), outcome)
    parsed: dict[str, object] = json.loads(json.dumps(made, allow_nan=False))
    return parsed


CREATED = (
    sample("create", "native", 0, 1.0),
    sample("create", "native", 1, 2.0),
    sample("create", "memdir", 0, 2.0, cpu_s=0.001, requests={"LOOKUP": 10, "MKNOD": 40}),
    sample("create", "memdir", 1, 8.0, cpu_s=0.003, requests={"LOOKUP": 10, "MKNOD": 20}),
    sample("create", "bindfs", 0, 6.0, cpu_s=0.5),
    sample("create", "bindfs", 1, 4.0, cpu_s=0.5),
)


def goal(shown: dict[str, object], name: str, target: str = "memdir") -> dict[str, object]:
    goals = shown["goals"]
    assert isinstance(goals, list)
    (found,) = (one for one in goals if (one["name"], one["target"]) == (name, target))
    assert isinstance(found, dict)
    return found


@pytest.mark.promise("bench.posix-random-order")
def test_the_order_is_random_and_the_same_for_the_same_seed() -> None:
    plan = Plan(sizes=SMALL, rounds=3, seed=7)
    once = list(order(plan, ["native", "memdir", "bindfs"]))
    assert once == list(order(plan, ["native", "memdir", "bindfs"]))
    assert once != list(order(Plan(sizes=SMALL, rounds=3, seed=8), ["native", "memdir", "bindfs"]))
    assert len(once) == len(set(once)) == 3 * 3 * len(SUITES)
    # Every target of a suite in a row, so that neighbours are compared; and not always the same one first.
    firsts = set()
    for start in range(0, len(once), 3):
        row = once[start : start + 3]
        assert {one[:2] for one in row} == {row[0][:2]}
        assert {one[2] for one in row} == {"native", "memdir", "bindfs"}
        firsts.add(row[0][2])
    assert len(firsts) > 1


def test_ratios_are_taken_round_by_round_and_goals_say_whether_they_were_met() -> None:
    shown = report_of(outcome_of(*CREATED))
    workloads = shown["workloads"]
    assert isinstance(workloads, list)
    (create,) = workloads
    memdir = create["targets"]["memdir"]
    assert memdir["ratio_native"] == {"median": 0.375, "min": 0.25, "max": 0.5, "samples": 2}
    assert memdir["ratio_best_peer"] == {"median": 1.75, "min": 0.5, "max": 3.0, "samples": 2, "peer": "bindfs"}
    assert memdir["ratio_native_cpu"] == {"median": 0.375, "min": 0.25, "max": 0.5, "samples": 2}
    assert memdir["wall_us_per_op"]["median"] == 500_000
    assert memdir["cpu_us_per_op"]["median"] == 200
    assert memdir["requests_per_op"]["median"] == 4
    assert memdir["requests"] == {"MKNOD": 20, "LOOKUP": 10}
    assert "cpu_us_per_op" not in create["targets"]["native"]
    missed, met = goal(shown, "create.ratio_native"), goal(shown, "create.requests_per_op")
    assert (missed["value"], missed["goal"], missed["met"]) == (0.375, 0.5, False)
    assert (met["value"], met["met"]) == (4, True)
    assert goal(shown, "untar.ratio_native")["met"] is None


def test_a_figure_of_its_own_reaches_its_goal_by_name() -> None:
    slow = Figure(name="find_100000", value=2.5, unit="s", samples=1)
    quick = Figure(name="remount_after_kill", value=0.3, unit="s", samples=1)
    shown = report_of(outcome_of(*CREATED), slow, quick)
    assert goal(shown, "find_100000")["met"] is False
    assert goal(shown, "remount_after_kill")["met"] is True


def test_the_lookup_is_compared_with_the_fastest_compiled_program() -> None:
    samples = (
        sample("lookup", "memdir", 0, 2.0, cpu_s=0.00007),
        sample("lookup", "native", 0, 0.1),
        sample("lookup", "memdir-observed", 0, 0.2),
        sample("lookup", "bindfs", 0, 4.0),
        sample("lookup", "passthrough", 0, 3.0),
    )
    shown = report_of(outcome_of(*samples, peers=("bindfs", "passthrough")))
    assert goal(shown, "lookup.ratio_compiled")["value"] == 1.5
    assert goal(shown, "lookup.cpu_us_per_op")["met"] is True


def test_the_table_shows_times_goals_and_what_is_missing() -> None:
    outcome = outcome_of(*CREATED)
    outcome.skipped.append("passthrough: no compiler")
    outcome.failures.append(Failure(target="bindfs", part="stream", round=0, reason="out of luck"))
    text = report.table(report_of(outcome))
    lines = text.splitlines()
    assert lines[0].startswith("fewer than 5 rounds")
    (times,) = (line for line in lines if line.startswith("create") and "150000" in line)
    assert "150000 (100000-200000)" in times
    assert "500000 (200000-800000)" in times
    (details,) = (line for line in lines if line.startswith("create ") and "NO" in line)
    assert "bindfs" in details
    assert "4.00 (MKNOD 2.00, LOOKUP 1.00)" in details
    assert "not measured: passthrough: no compiler" in lines
    assert "FAILED: stream on bindfs, round 1: out of luck" in lines
    assert all(line == line.rstrip() for line in lines)


def test_only_a_failure_of_memdir_or_of_the_native_folder_is_an_error() -> None:
    outcome = outcome_of(*CREATED)
    outcome.failures.append(Failure(target="bindfs", part="stream", round=0, reason="x"))
    assert exit_code(outcome) == 0
    outcome.failures.append(Failure(target="memdir", part="stream", round=0, reason="x"))
    assert exit_code(outcome) == 2


@pytest.mark.promise("bench.posix-goals")
def test_every_goal_is_about_something_that_is_measured() -> None:
    names = [(one.name, one.target) for one in GOALS]
    assert len(names) == len(set(names))
    for one in GOALS:
        assert one.target in TARGETS
        assert one.measure == "figure" or one.subject in WORKLOADS
        assert one.unit or one.measure in UNITS
        assert one.is_met(one.goal)


def test_a_suite_stands_for_its_workloads() -> None:
    assert workloads_of(["stream", "create"]) == {
        "create",
        *(name for name in WORKLOADS if name.startswith(("stream", "random"))),
    }
    assert workloads_of([]) == frozenset()
    with pytest.raises(UsageError, match="there is no workload 'frob'"):
        workloads_of(["create", "frob"])


def test_the_default_targets_exist() -> None:
    assert set(DEFAULT_TARGETS) <= set(TARGETS)


def test_a_folder_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    assert check_folder(Plan(sizes=SMALL, folder=tmp_path)) == tmp_path.resolve()
    with pytest.raises(UsageError, match="is not a folder"):
        check_folder(Plan(sizes=SMALL, folder=tmp_path / "nowhere"))
    with pytest.raises(UsageError, match="MiB free, and the run needs"):
        check_folder(Plan(sizes=Sizes(files=20, stream_mib=1 << 40), folder=tmp_path))


def test_requests_in_between_are_counted_by_kind() -> None:
    assert difference({"LOOKUP": 3, "READ": 1}, {"LOOKUP": 5, "READ": 1, "WRITE": 2}) == {"LOOKUP": 2, "WRITE": 2}


def test_the_trees_are_the_same_for_the_same_seed(tmp_path: Path) -> None:
    suites = frozenset({"documents", "sources"})
    made = []
    for number, seed in enumerate((1, 1, 2)):
        folder = tmp_path / str(number)
        folder.mkdir()
        fixtures = trees.build(folder, SMALL, seed=seed, has_git=False, wanted=suites)
        assert (fixtures.documents.files, fixtures.documents.needles) == (40, 1)
        assert fixtures.sources.files == 20
        found = [path for path in sorted(fixtures.documents.folder.rglob("*")) if path.is_file()]
        assert len(found) == 40
        assert sum(trees.NEEDLE.encode() in path.read_bytes() for path in found) == 1
        made.append((fixtures.archive.read_bytes(), [(path.name, path.read_bytes()) for path in found]))
    assert made[0] == made[1]
    assert made[0] != made[2]


def test_the_page_of_figures_shows_every_workload_and_every_goal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scripts = Path(__file__).parents[2] / "scripts"
    monkeypatch.syspath_prepend(scripts)
    script = runpy.run_path(str(scripts / "posix_figures.py"))
    page = tmp_path / "benchmarks.md"
    page.write_text(f"before\n{script['BEGIN']}\nstale\n{script['END']}\nafter\n")
    files = []
    for number, outcome in enumerate((outcome_of(*CREATED), outcome_of())):
        if number:
            outcome.figures.append(Figure(name="find_100000", value=1.5, unit="s", samples=1, note="cold"))
            outcome.growth.append(Growth(workload="create", target="memdir", us_per_op={10: 2.0, 100: 3.0}))
        files.append(tmp_path / f"{number}.json")
        files[-1].write_text(json.dumps(report.as_json(Plan(sizes=SMALL, rounds=2), outcome)))
    main = script["main"]
    monkeypatch.setitem(main.__globals__, "PAGE", page)
    assert main([str(file) for file in files]) == 0
    text = page.read_text()
    assert text.startswith("before\n")
    assert text.endswith("after\n")
    assert "stale" not in text
    assert "| `create.ratio_native` | memdir | 0.38 x native | 0.5 | no |" in text
    assert "| `find_100000` | memdir | 1.50 s | 2 | yes |" in text
    assert "| `untar.ratio_native` | memdir | not measured | 0.3 | no |" in text
    assert "| `create` | memdir | 2.00 | 3.00 | 1.50 |" in text
    page.write_text("no marks")
    assert main([str(files[0])]) == 2
