"""The demo fails loudly: each way of going wrong ends with a non-zero code and the name of the step."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.acceptance.driver import mounts_below

ROOT = Path(__file__).parents[2]
LIMIT_S = 120


def play(root: Path, tmp_path: Path, **env: str) -> subprocess.CompletedProcess[str]:
    """Run the demo of the checkout-like folder `root`, with temporary files below `tmp_path`."""
    temporary = tmp_path / "t"
    temporary.mkdir()
    done = subprocess.run(
        [sys.executable, str(root / "scripts" / "demo.py")],
        env=os.environ | {"TMPDIR": str(temporary)} | env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    assert mounts_below(temporary) == []
    assert list(temporary.glob("memdir-demo-*")) == [], "the demo left its folder behind"
    return done


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """The parts of a checkout that the demo reads, free to be broken."""
    root = tmp_path / "checkout"
    shutil.copytree(ROOT / "scripts", root / "scripts", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / "examples", root / "examples")
    return root


@pytest.mark.long
@pytest.mark.mount
@pytest.mark.promise("demo.says-which")
def test_a_missing_corpus_is_named(checkout: Path, tmp_path: Path) -> None:
    shutil.rmtree(checkout / "examples" / "atlas")
    done = play(checkout, tmp_path)
    assert done.returncode == 1
    assert "step 'copy' failed" in done.stderr


@pytest.mark.long
@pytest.mark.mount
@pytest.mark.promise("demo.says-which", "demo.words-absent")
def test_a_target_that_shares_a_word_with_its_query_is_named(checkout: Path, tmp_path: Path) -> None:
    with open(checkout / "examples" / "atlas" / "notes" / "2026-11-17-sourdough.md", "a", encoding="utf-8") as out:
        out.write("\nMy favourite recipes.\n")
    done = play(checkout, tmp_path)
    assert done.returncode == 1
    assert "step 'grep 1 of 4' failed" in done.stderr
    assert "recip" in done.stderr


@pytest.mark.promise("demo.says-which")
def test_a_command_that_fails_is_named(checkout: Path, tmp_path: Path) -> None:
    """The command the demo finds is the one beside its interpreter; here it can only fail."""
    tools = tmp_path / "bin"
    tools.mkdir()
    (tools / "memdir").write_text("#!/bin/sh\necho no memory today >&2\nexit 7\n")
    (tools / "memdir").chmod(0o755)
    script = checkout / "scripts" / "demo.py"
    changed = script.read_text(encoding="utf-8").replace("Path(sys.executable).parent", f"Path({str(tools)!r})")
    script.write_text(changed, encoding="utf-8")
    done = play(checkout, tmp_path)
    assert done.returncode == 1
    assert "step 'mount' failed" in done.stderr
    assert "exit code 7" in done.stderr
    assert "no memory today" in done.stdout


def test_the_picture_is_well_formed() -> None:
    from xml.etree import ElementTree

    sys.path.insert(0, str(ROOT / "scripts"))
    try:
        from terminal_svg import LINES_MAX, Line, cut, render
    finally:
        sys.path.remove(str(ROOT / "scripts"))
    lines = [Line(kind="command", text="echo '<&>' 日本"), *(Line(kind="output", text="x" * 500) for _ in range(LINES_MAX))]
    root = ElementTree.fromstring(render(lines, title="a & b"))
    texts = ["".join(node.itertext()) for node in root.iter("{http://www.w3.org/2000/svg}text")]
    assert texts[0] == "$ echo '<&>' 日本"
    assert texts[-1] == "… 2 more lines"
    assert cut("日本語", 4) == "日…"
