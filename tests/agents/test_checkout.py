"""A memory that names a file which is gone: the hook says so, from the checkout that it runs in."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from memdir.agents.checkout import missing
from memdir.agents.service import AgentMemories
from memdir.client.local import ensure_server
from memdir.core.paths import AppPaths
from memdir.server.agents.context import _paths


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    root = tmp_path / "shop"
    (root / "services" / "auth").mkdir(parents=True)
    (root / "src").mkdir()
    (root / "src" / "new.py").touch()
    (root / "services" / "auth" / "tokens.py").touch()
    for words in (["init", "-q"], ["add", "services"]):
        subprocess.run(["git", *words], cwd=root, check=True)
    return root


def test_what_the_tree_or_the_index_has_is_not_missing(shop: Path, tmp_path: Path) -> None:
    (shop / "services" / "auth" / "tokens.py").unlink()  # tracked, not checked out: a sparse checkout
    named = ["src/new.py", "auth/tokens.py", "services/auth/tokens.py", "src/old.py", "uth/tokens.py2"]
    assert missing(named, str(shop)) == ["src/old.py", "uth/tokens.py2"]
    assert missing(["new.py/x.py", "../x/y.py"], str(shop / "src")) == ["new.py/x.py", "../x/y.py"]
    assert missing([f"a/{n}.py" for n in range(9)], str(shop)) == [f"a/{n}.py" for n in range(5)]
    assert missing(named, str(tmp_path)) == [], "no repository, nothing to tell"
    (shop / ".git" / "index").write_bytes(b"DIRC\0\0\0\4packed")
    assert missing(named, str(shop)) == [], "an index that is packed says nothing"


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("The row lock is in auth/tokens.py, see src/db/pool.ts.", ["auth/tokens.py", "src/db/pool.ts"]),
        ("Run .github/workflows/ci.yml by hand (tests/a-b/test_x.py).", [".github/workflows/ci.yml", "tests/a-b/test_x.py"]),
        ("See https://example.org/docs/x.html, example.org/docs/y.html, s3://raw/x.csv and /etc/nginx/x.conf.", []),
        ("Either and/or, 3/4, km/h, ~/x/y.py, $HOME/x/y.py, src/*.py, a/b.", []),
    ],
)
def test_relative_paths_of_files_are_told_from_addresses_and_fractions(text: str, named: list[str]) -> None:
    assert _paths([text, text]) == named


@pytest.mark.promise("agent.named-files")
def test_the_hook_says_which_files_of_its_memories_are_gone(home: AppPaths, shop: Path) -> None:
    memories = AgentMemories(server=ensure_server(home))
    memories.store("Refresh tokens are rotated under a row lock in src/tokens.py and src/new.py.", project="shop")
    memories.store("The user keeps notes about tokens in notes/tokens.md.")
    told = {"hook_event_name": "SessionStart", "source": "startup", "session_id": "s", "cwd": str(shop)}
    done = subprocess.run(
        [sys.executable, "-m", "memdir.cli", "hook", "--host", "claude-code", "--plain"], input=json.dumps(told).encode(),
        capture_output=True, check=True, timeout=60, env=dict(os.environ),
    )  # fmt: skip
    lines = done.stdout.decode().splitlines()
    assert lines[-2:] == ["(Named above and not in this checkout: src/tokens.py)", "</memdir-memory>"]
