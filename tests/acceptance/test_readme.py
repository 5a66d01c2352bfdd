"""The README's commands, run in a fresh clone: what a newcomer does in the first five minutes."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.driver import Memdir

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```sh\n(.*?)^```", README, flags=re.DOTALL | re.MULTILINE)
NOT_RUN_HERE = {"make test": "this very test is one of those it runs; `.ci/run` calls it"}
CLONE_LIMIT_S = 280.0


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Memdir]:
    """A clone of the committed state with a memdir home of its own. Package downloads come from uv's cache."""
    base = tmp_path_factory.mktemp("readme").resolve()
    trusted = {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "safe.directory", "GIT_CONFIG_VALUE_0": "*"}
    if (ROOT / ".git").exists():
        command = ["git", "clone", "-q", str(ROOT), str(base / "memdir")]
        subprocess.run(command, check=True, timeout=120, env=os.environ | trusted)
    else:
        leave = shutil.ignore_patterns(".venv", ".tools", "__pycache__", ".*_cache")
        shutil.copytree(ROOT, base / "memdir", symlinks=True, ignore=leave)
    runner = Memdir(folder=base / "memdir", home=base / "home")
    runner.env["PATH"] = f"{ROOT / '.tools' / 'bin'}{os.pathsep}{runner.env['PATH']}"
    for name in ("VIRTUAL_ENV", "MAKEFLAGS", "MFLAGS", "MAKELEVEL"):  # of the make that runs these tests
        runner.env.pop(name, None)
    runner.env["PYTHON"] = str(Path(os.path.realpath(ROOT / ".venv" / "bin" / "python")))
    try:
        yield runner
    finally:
        runner.close()
        shutil.rmtree(base, ignore_errors=True)  # 39,000 files, which pytest would keep for three runs


def commands_of(block: str) -> list[str]:
    return [line.split("  #")[0].strip() for line in block.splitlines() if line.strip() and not line.startswith("#")]


def test_every_shell_block_is_known() -> None:
    """A new block in the README must be run here too."""
    assert [commands_of(block)[0] for block in BLOCKS] == [
        "make demo",
        "make setup",
        "memdir mount notes",
        "memdir init",
        "memdir server start",
    ]
    skipped = [command for block in BLOCKS for command in commands_of(block) if command in NOT_RUN_HERE]
    assert skipped == list(NOT_RUN_HERE)


@pytest.mark.mount
@pytest.mark.timeout(CLONE_LIMIT_S + 20)
@pytest.mark.promise("setup.readme-runs")
def test_install_and_use(clone: Memdir) -> None:
    install, use = BLOCKS[1], BLOCKS[2]
    ran = clone.shell(f"set -eu\n{install}\n{use}", limit_s=CLONE_LIMIT_S)
    assert "memdir 0." in ran.out
    example = re.search(r"`(house/keys\.md:1:[^`]+)`", README)
    assert example is not None
    assert ran.out.count(f"notes/{example.group(1)}") == 2, ran.out
    assert "# Memory Profile" in ran.out
    settings = clone.home / "person" / ".claude" / "settings.json"
    settings.parent.mkdir(parents=True)
    settings.write_text("{}")
    hosts = re.sub(r"^memdir (de)?init\b", r"\g<0> --yes", BLOCKS[3], flags=re.MULTILINE)
    remembered = clone.shell(f"set -eu\n{install}\nexport HOME={clone.home / 'person'}\n{hosts}", limit_s=60)
    assert "We use pnpm" in remembered.out
    assert "bm25 1.0000" in remembered.out
    assert [file.name for file in settings.parent.parent.rglob("*") if file.is_file()] == ["settings.json"]
    assert settings.read_text() == "{}"
    called = clone.shell(f"set -eu\n{install}\n{BLOCKS[4]}", limit_s=60)
    assert '"status":"queued"' in called.out
    again = clone.shell("make setup", limit_s=20)
    assert again.out + again.err == ""


@pytest.mark.mount
@pytest.mark.timeout(CLONE_LIMIT_S + 20)
@pytest.mark.promise("setup.readme-runs", "demo.one-command", "demo.words-absent")
def test_make_demo(clone: Memdir) -> None:
    ran = clone.shell("make demo", limit_s=CLONE_LIMIT_S)
    assert ran.out.rstrip().endswith("demo: everything worked")
    assert ran.out.count("$ memdir grep") == 5


def test_links_lead_somewhere() -> None:
    documents = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]
    broken = [
        f"{document.relative_to(ROOT)}: {target}"
        for document in documents
        for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", document.read_text(encoding="utf-8"))
        if "://" not in target and not (document.parent / target).exists()
    ]
    assert broken == []
