"""kill -9 of a worker at every step boundary: the next one goes on, and everything has its effect once."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

RUN_S = 600.0


@pytest.mark.promise("pipeline.resumes")
@pytest.mark.parametrize(
    ("engine", "every"),
    [("sqlite", 2), ("postgres", 8), *(pytest.param(engine, 1, marks=pytest.mark.long) for engine in ("sqlite", "postgres"))],
)
def test_a_worker_killed_after_any_commit_leaves_nothing_undone_and_nothing_twice(
    tmp_path: Path, request: pytest.FixtureRequest, engine: str, every: int
) -> None:
    url = request.getfixturevalue("database_url") if engine == "postgres" else ""
    ran = subprocess.run(
        [sys.executable, "-m", "tests.server.pipeline.crash_points", str(tmp_path), str(every)],
        cwd=Path(__file__).parents[3],
        env={**os.environ, "MEMDIR_HOME": str(tmp_path), "MEMDIR_DATABASE_URL": url},
        capture_output=True,
        timeout=RUN_S,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr.decode()[-2000:]
    cases = [json.loads(line) for line in ran.stdout.splitlines()]
    whole = cases.pop()
    assert whole.pop("commits") == 0
    assert {path: document["status"] for path, document in whole["documents"].items()} == dict.fromkeys(
        whole["documents"], "done"
    )
    assert (whole["memories"], whole["failed"], whole["stuck"]) == (["I live in Lisbon.", "I prefer tea over coffee."], 0, [])
    assert len(cases) > 15 / every
    for case in cases:
        assert case == {"commits": case["commits"]} | whole
