"""`memdir bench smoke` measures the real product; here on a small corpus, for the shape of its answer and the easy goals."""

from __future__ import annotations

import json
import resource
from collections.abc import Callable

import pytest

from memdir_bench import smoke, workloads
from memdir_bench.session import open_session
from tests.acceptance.driver import mounts_below


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same run with fewer of everything: a quarter of a minute instead of many."""
    for name, value in {"CORPUS_FILES": 12, "CHUNKS_MIN": 12, "FRESH_TRIALS": 3, "GREP_TRIALS": 3, "SEARCH_TRIALS": 10,
                        "START_TRIALS": 5, "MOUNT_TRIALS": 2, "ROUNDS": 2}.items():  # fmt: skip
        monkeypatch.setattr(smoke, name, value)
    monkeypatch.setattr(workloads, "SMALL_FILES", 200)
    monkeypatch.setattr(workloads, "SAVES", 50)
    monkeypatch.setattr(workloads, "STREAM_BYTES", 4 * 1024 * 1024)
    monkeypatch.setattr(workloads, "can_drop_caches", lambda: False)


@pytest.mark.long
@pytest.mark.mount
@pytest.mark.timeout(300)
@pytest.mark.promise("bench.smoke-json")
def test_the_figures_come_as_json(small: None, capsys: pytest.CaptureFixture[str]) -> None:
    code = smoke.main(["--json"])
    report = json.loads(capsys.readouterr().out)
    assert report["failed"] == {}
    assert code == 0
    figures = {figure["name"]: figure for figure in report["figures"]}
    assert figures.keys() >= {
        "close_to_found_p50", "close_to_found_p95", "search_in_server_p50", "search_in_server_p95", "grep_command_p50",
        "grep_command_p95", "grep_help_start_p95", "mount", "import_files_per_s", "ratio_create", "ratio_stat_first",
        "ratio_open_read_warm", "ratio_save_by_rename", "ratio_list_tree_warm", "daemon_peak_rss", "server_peak_rss",
    }  # fmt: skip
    assert all(figure["value"] is not None and figure["samples"] > 0 for figure in figures.values())
    assert all("met" in figure for figure in figures.values() if "goal" in figure)
    assert figures["fresh_files_not_found"]["value"] == 0


@pytest.mark.mount
def test_a_failing_part_is_named_and_leaves_nothing_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    folders = []

    def broken(session: object) -> list[object]:
        folders.append(session.folder)  # type: ignore[attr-defined]
        session.mount("left-mounted", "--no-sync")  # type: ignore[attr-defined]
        raise OSError("no measurement today")

    for part in ("start_up", "filesystem", "search"):
        monkeypatch.setattr(smoke, part, broken)
    report = smoke.run()
    assert set(report["failed"].values()) == {"no measurement today"}
    assert [folder for folder in folders if folder.exists() or mounts_below(folder)] == []


@pytest.mark.promise("bench.help-150ms")
def test_help_is_quick() -> None:
    """In processor time, the least of ten starts: a busy machine delays a start, slow imports cost in every one."""
    with open_session() as session:
        session.memdir("grep", "--help")
        assert min(processor_s(lambda: session.memdir("grep", "--help")) for _ in range(10)) <= 0.150


def processor_s(work: Callable[[], object]) -> float:
    """What the children of this process used while `work` ran."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    work()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
