"""`memdir bench posix` for real, on few files: every workload on every target that is here, and nothing left behind."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from memdir_bench.posix import clocks, latency, peers
from memdir_bench.posix import run as running
from memdir_bench.posix.measure import Meter, timed
from memdir_bench.posix.run import Plan
from memdir_bench.posix.sizes import Sizes
from memdir_bench.posix.steps import Program, Step, expect
from memdir_bench.posix.suites import WORKLOADS, Suite
from memdir_bench.posix.targets import Memdir
from memdir_bench.session import BenchError, clear_left, mounts_below, open_session

pytestmark = pytest.mark.mount

FILES = 20
SMALL = Sizes(files=FILES, stream_mib=1)
LIMIT_S = 120.0


def wait_for(what: Callable[[], bool], *, limit_s: float = LIMIT_S) -> None:
    deadline_s = time.monotonic() + limit_s
    pause = threading.Event()
    while not what():
        assert time.monotonic() < deadline_s
        pause.wait(0.02)


def command(*options: str) -> list[str]:
    return [sys.executable, "-m", "memdir.cli", "bench", "posix", *options]


def assert_nothing_left(folder: Path) -> None:
    assert mounts_below(folder) == []
    assert os.listdir(folder) == []


@pytest.mark.promise("bench.posix-side-by-side", "bench.posix-json", "bench.posix-leaves-nothing")
def test_every_workload_runs_on_every_target_and_the_figures_are_sane(tmp_path: Path) -> None:
    done = subprocess.run(
        command("--files", str(FILES), "--stream-mib", "1", "--rounds", "1", "--json", "--dir", str(tmp_path)),
        capture_output=True, text=True, timeout=LIMIT_S, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    shown = json.loads(done.stdout)
    assert shown["failed"] == []
    assert (shown["benchmark"], shown["schema"], shown["settings"]["rounds_done"]) == ("posix", 1, 1)
    assert "minutes" in done.stderr
    expected = set(WORKLOADS)
    if shutil.which("rg") is None:
        expected -= {"ripgrep_warm", "ripgrep_cold"}
    if shutil.which("git") is None:
        expected -= {"git_clone", "git_status_warm", "git_status_cold"}
    by_name = {one["name"]: one for one in shown["workloads"]}
    assert set(by_name) == expected
    assert {"native", "memdir"} <= set(shown["targets"])
    for one in by_name.values():
        expected_targets = set(shown["targets"])
        if not one["name"].startswith(("stream", "random")):
            expected_targets -= {"memdir-passthrough"}
        assert set(one["targets"]) == expected_targets
        assert one["ops"] > 0
        for name, values in one["targets"].items():
            assert values["wall_us_per_op"]["min"] > 0
            assert ("cpu_us_per_op" in values) == (name != "native")
        assert one["targets"]["memdir"]["ratio_native"]["median"] > 0
    assert by_name["create"]["targets"]["memdir"]["requests"]["MKNOD"] == FILES
    assert by_name["unlink"]["targets"]["memdir"]["requests"]["UNLINK"] == FILES
    assert by_name["save_by_rename"]["targets"]["memdir"]["requests"].get("RENAME2", FILES) == FILES
    assert by_name["stat_warm"]["targets"]["memdir"]["requests"] == {}
    assert by_name["find_warm"]["ops"] == 2 * FILES
    assert_nothing_left(tmp_path)


def interrupted(folder: Path, number: int, *, only_leader: bool = False) -> subprocess.CompletedProcess[str]:
    """A run that gets a signal as soon as something is mounted and a workload runs."""
    process = subprocess.Popen(
        command("--files", "2000", "--stream-mib", "64", "--dir", str(folder)),
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    try:
        wait_for(lambda: bool(mounts_below(folder)) and bool(list(folder.glob("memdir-bench-*/*/round-0-*"))))
        if only_leader:
            os.kill(process.pid, number)
        else:
            os.killpg(process.pid, number)  # as a terminal does
        out, err = process.communicate(timeout=LIMIT_S)
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


@pytest.mark.promise("bench.posix-leaves-nothing")
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupted_run_takes_its_mounts_and_folders_away(tmp_path: Path, number: int, code: int) -> None:
    done = interrupted(tmp_path, number)
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    assert_nothing_left(tmp_path)


@pytest.mark.long
@pytest.mark.promise("bench.posix-leaves-nothing")
def test_what_a_killed_run_left_behind_goes_with_the_next_one(tmp_path: Path) -> None:
    done = interrupted(tmp_path, signal.SIGKILL, only_leader=True)
    assert done.returncode == -signal.SIGKILL
    (left,) = tmp_path.iterdir()
    assert mounts_below(tmp_path)
    with open_session(tmp_path) as running_now:
        assert not left.exists()
        assert mounts_below(tmp_path) == []
        assert clear_left(tmp_path) == []  # a session that runs is left alone
        assert running_now.folder.exists()
    assert_nothing_left(tmp_path)


def failing_suite(folder: Path, *_: object) -> Iterator[Step]:
    def fail() -> None:
        raise OSError(f"no luck in {folder.name}")

    def make() -> None:
        (folder / "made").write_bytes(b"x")

    yield Step(name="create", ops=1, unit="file", changes=True, work=make)
    yield Step(name="stat_warm", ops=1, unit="file", work=fail)


@pytest.mark.long
def test_a_workload_that_fails_is_named_and_does_not_stop_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    good = next(suite for suite in running.SUITES if suite.name == "small")
    bad = Suite(name="documents", names=("find_warm",), steps=failing_suite)
    monkeypatch.setattr(running, "SUITES", (good, bad))
    outcome = running.run(Plan(sizes=SMALL, rounds=2, targets=("native", "memdir"), folder=tmp_path))
    assert len(outcome.failures) == 4
    assert {failure.target for failure in outcome.failures} == {"native", "memdir"}
    assert all("no luck in round-" in failure.reason for failure in outcome.failures)
    assert {one.workload for one in outcome.samples} >= set(good.names)
    assert outcome.rounds_done == 2
    assert_nothing_left(tmp_path)


def test_a_daemon_that_hangs_is_killed_and_the_target_started_anew(tmp_path: Path) -> None:
    with open_session(tmp_path) as session, contextlib.ExitStack() as undo:
        target = Memdir("memdir", session, options=("--profile", "fast"))
        target.start()
        undo.callback(target.stop)
        (target.root / "file").write_bytes(b"x")

        def stop_daemon() -> None:
            assert target.pid is not None
            os.kill(target.pid, signal.SIGSTOP)

        step = Step(name="create", ops=1, unit="file", work=lambda: os.mkdir(target.root / "never"))
        stop_daemon()
        with pytest.raises(BenchError, match="its daemon was killed"):
            _run_unsettled(Meter(drops=False, limit_s=0.5), target, step)
        assert not target.is_well()
        target.restart()
        assert target.is_well()
        assert (target.root / "file").read_bytes() == b"x"
    assert_nothing_left(tmp_path)


def _run_unsettled(meter: Meter, target: Memdir, step: Step) -> None:
    """Only the limited part: a stopped daemon answers no question before it."""
    with meter.limited(target):
        timed(step)


def test_a_peer_that_is_not_there_or_does_not_compile_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peers, "EXAMPLE_FOLDERS", (tmp_path,))
    missing = peers.find("passthrough", tmp_path / "build")
    assert isinstance(missing, str)
    assert "neither installed nor" in missing
    if shutil.which("cc") is None or shutil.which("pkg-config") is None:
        pytest.skip("no compiler here")
    (tmp_path / "passthrough.c").write_text("int main(void) { return frob(; }\n")
    broken = peers.find("passthrough", tmp_path / "build")
    assert isinstance(broken, str)
    assert "\n" not in broken
    assert "does not compile" in broken or "does not know fuse3" in broken


def test_processor_time_counts_children_too() -> None:
    burn = "import time\nend = time.process_time() + 0.1\nwhile time.process_time() < end: pass\n"
    code = f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {burn!r}])\nprint('done', flush=True)\ninput()\n"
    process = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "done\n"
        assert clocks.cpu_s(process.pid) >= 0.1
        assert clocks.resident_mib(process.pid) > 1
    finally:
        process.communicate("\n", timeout=30)
    with pytest.raises(clocks.ProcessGoneError):
        clocks.cpu_s(process.pid)


def test_a_program_that_fails_is_an_error_with_its_own_words(tmp_path: Path) -> None:
    with pytest.raises(BenchError, match="ended with 2"):
        Program("ls", str(tmp_path / "nowhere"))()
    listing = Program("ls", str(tmp_path))
    listing()
    assert listing.lines == 0
    with pytest.raises(BenchError, match="files: 3 instead of 4"):
        expect("files", 3, 4)


@pytest.mark.long
def test_growth_is_measured_at_each_size_and_says_what_the_largest_means_for_memdir(tmp_path: Path) -> None:
    plan = Plan(sizes=SMALL, rounds=0, targets=("native", "memdir"), folder=tmp_path, grow=(20, 60))
    outcome = running.run(plan)
    assert outcome.failures == []
    assert outcome.samples == []
    rows = {(row.workload, row.target): row for row in outcome.growth}
    workloads = {workload for workload, _ in rows}
    assert workloads >= {"create", "stat_warm", "find_cold", "rm_rf"}
    assert set(rows) == {(workload, target) for workload in workloads for target in ("native", "memdir")}
    assert all(set(row.us_per_op) == {20, 60} and min(row.us_per_op.values()) > 0 for row in rows.values())
    figures = {figure.name: figure.value for figure in outcome.figures}
    assert set(figures) == {"mount_60", "find_60", "resident_60", "resident_60_mounted_anew"}
    assert 10 < figures["resident_60_mounted_anew"] <= figures["resident_60"] < 1000
    assert_nothing_left(tmp_path)


FEW = latency.Amounts(creates=40, changes=5, many=60, documents=24, lookups_min=24, kills=2, files_before_kill=30)


@pytest.mark.long
def test_waits_for_a_remote_change_and_for_a_mount_after_a_kill_are_measured(tmp_path: Path) -> None:
    with open_session(tmp_path) as session:
        found = [*latency.remote_changes(session, FEW), *latency.kills(session, FEW)]
        figures = {figure.name: figure for figure in found}
        assert set(figures) == {
            "remote_change_visible_p50", "remote_change_visible", "invalidate_60", "apply_60", "remount_after_kill",
            "lost_after_kill",
        }  # fmt: skip
        assert figures["remote_change_visible"].samples == 5
        assert "120 notifications" in figures["invalidate_60"].note or "60 notifications" in figures["invalidate_60"].note
        assert (figures["lost_after_kill"].value, figures["lost_after_kill"].samples) == (0, 60)
        assert all(figure.value > 0 for figure in found if figure.name != "lost_after_kill")
    assert_nothing_left(tmp_path)


@pytest.mark.long
def test_every_latency_is_measured_beside_an_indexing_server(tmp_path: Path) -> None:
    outcome = running.run(Plan(sizes=Sizes(files=100, stream_mib=1), rounds=0, folder=tmp_path, latency=True))
    assert outcome.failures == []
    names = {figure.name for figure in outcome.figures}
    assert names >= {
        "create_p99",
        "native_create_p99",
        "lookup_p99_while_indexing",
        "remote_change_visible",
        "remount_after_kill",
    }
    assert_nothing_left(tmp_path)
