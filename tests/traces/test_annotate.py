"""`memdir habits --model`: a real command against an endpoint on loopback."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memdir.core.paths import app_paths
from memdir.traces.log import TraceLog
from tests.research.endpoint import Answer, served

from .made import created, event
from .test_habits import usual

KEY = "ghp_" + "a1B2c3D4e5F6g7H8i9J0" + "k1L2m3N4o5P6q7R8"
Said = Callable[[str, str], Any]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Nine sessions as usual, one that cleans up."""
    monkeypatch.setenv("MEMDIR_HOME", str(tmp_path / "home"))
    odd = [event("file_delete", f"/old{at}.md", at_ms=9 * 10**7 + at, session="odd") for at in range(12)]
    odd += [created(f"/{KEY}.md", "canary in a text", at_ms=9 * 10**7 + 50, session="odd")]
    TraceLog(app_paths().traces_dir).add([*(one for number in range(9) for one in usual(number)), *odd])
    return tmp_path


def habits(said: Said, *arguments: str) -> tuple[subprocess.CompletedProcess[str], list[str]]:
    """What the command prints with a model that says `said(system, prompt)`, and what it was asked."""
    asked: list[str] = []

    def answer(_path: str, body: bytes) -> Answer:
        system, prompt = [one["content"] for one in json.loads(body)["messages"]]
        asked.append(prompt)
        message = {"role": "assistant", "content": json.dumps(said(system, prompt))}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        found = {"id": "x", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice], "usage": usage}
        return 200, {"Content-Type": "application/json"}, json.dumps(found).encode()

    with served(answer) as address:
        run = subprocess.run(
            [sys.executable, "-m", "memdir.cli", "habits", "--model", "openai:m", "--model-url", f"{address}/v1", *arguments],
            capture_output=True, text=True, check=False, timeout=120, env=os.environ,
        )  # fmt: skip
    return run, asked


def plausible(system: str, prompt: str) -> Any:
    if "episode" in system:
        return {
            "episodes": [
                {"number": 1, "title": "Clearing\x1b[2J out\nold drafts", "summary": "Twelve old files were deleted."},
                {"number": 99, "title": "Nothing", "summary": "There is none."},
            ]
        }
    return {
        "sessions": [
            {"session": "odd", "is_change": False, "reason": "Old drafts were cleared out."},
            {"session": "another", "is_change": True, "reason": "There is none."},
        ]
    }


def test_a_model_names_episodes_and_judges_what_was_otherwise_by_names_and_numbers_alone(home: Path) -> None:
    run, asked = habits(plausible)
    assert run.returncode == 0, run.stderr
    (otherwise,) = [line for line in run.stdout.splitlines() if line.startswith("- Otherwise")]
    assert otherwise.endswith("; a model says: its task explains it: Old drafts were cleared out.")
    assert re.search(r"out old drafts — odd: Twelve old files were deleted\. \d+ events \(", run.stdout)
    assert "\x1b" not in run.stdout
    assert "There is none" not in run.stdout
    assert len(asked) == 2
    assert "total_deletes 12 (usually 0)" in asked[1]
    assert not any("canary" in one or KEY in one for one in asked)
    found, _ = habits(plausible, "--json")
    assert json.loads(found.stdout)["verdicts"] == {"odd": {"is_change": False, "reason": "Old drafts were cleared out."}}


def test_an_answer_that_is_no_json_of_the_kind_is_an_error_and_without_sessions_nothing_is_asked(home: Path) -> None:
    run, _ = habits(lambda _system, _prompt: {"episodes": "none"})
    assert run.returncode == 2
    assert "did not answer with the JSON" in run.stderr
    assert "Traceback" not in run.stderr
    run, asked = habits(plausible, "--session", "none")
    assert (run.returncode, asked) == (1, [])
