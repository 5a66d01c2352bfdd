"""A checkout's own machinery: the order of the CI script, what the targets run, the import rules."""

from __future__ import annotations

import os
import subprocess
import sys
from graphlib import TopologicalSorter
from pathlib import Path

import grimp
import pytest

ROOT = Path(__file__).parent.parent
LIMIT_S = 120


def run(*command: str, env: dict[str, str] | None = None, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        cwd=cwd,
        env=os.environ | (env or {}),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )


def stub_make(folder: Path, *, failing: str = "") -> dict[str, str]:
    """An environment in which `make` only notes its targets, and fails at one of them."""
    folder.mkdir()
    script = folder / "make"
    script.write_text(f'#!/bin/sh\necho "$@" >> "{folder}/calls"\ncase "$*" in *"{failing or "?none?"}"*) exit 9;; esac\n')
    script.chmod(0o755)
    return {"PATH": f"{folder}{os.pathsep}{os.environ['PATH']}"}


def calls_of(folder: Path) -> list[list[str]]:
    """The targets of each call."""
    calls = (folder / "calls").read_text().splitlines()
    return [[word for word in line.split() if not word.startswith("-")] for line in calls]


@pytest.mark.promise("setup.ci-order")
def test_ci_runs_lint_types_and_import_rules_and_then_the_tests(tmp_path: Path) -> None:
    done = run("bash", ".ci/run", env=stub_make(tmp_path / "bin"))
    assert done.returncode == 0
    assert calls_of(tmp_path / "bin") == [["setup"], ["lint", "typecheck", "imports", "collect"], ["test"]]


@pytest.mark.promise("setup.ci-order")
@pytest.mark.parametrize("target", ["setup", "lint", "typecheck", "imports", "collect", "test"])
def test_ci_stops_at_the_first_failure(tmp_path: Path, target: str) -> None:
    done = run("bash", ".ci/run", env=stub_make(tmp_path / "bin", failing=target))
    assert done.returncode != 0
    assert target in calls_of(tmp_path / "bin")[-1]


@pytest.mark.parametrize("target", ["test", "demo", "lint", "typecheck", "imports", "collect", "bench"])
def test_every_target_sets_up_first(target: str) -> None:
    commands = run("make", "--no-print-directory", "-n", target).stdout.splitlines()
    assert commands[0] == "bash scripts/setup.sh"
    assert len(commands) >= 2


@pytest.mark.promise("parts.imports")
def test_the_import_rules_hold() -> None:
    done = run(str(Path(sys.executable).parent / "lint-imports"), "--no-cache")
    assert done.returncode == 0, done.stdout
    assert "0 broken" in done.stdout


@pytest.mark.promise("parts.imports")
def test_an_import_against_the_rules_is_noticed(tmp_path: Path) -> None:
    """The rules of this checkout, on a copy of the package in which the filesystem reaches for the server."""
    package = tmp_path / "src" / "memdir"
    for root in ("src", "bench/src"):
        for path in (ROOT / root).rglob("*.py"):
            target = tmp_path / "src" / path.relative_to(ROOT / root)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(path.read_bytes())
    (tmp_path / "pyproject.toml").write_bytes((ROOT / "pyproject.toml").read_bytes())
    with open(package / "fs" / "path.py", "a", encoding="utf-8") as out:
        out.write("\nimport memdir.server.http.guard\n")
    tool = str(Path(sys.executable).parent / "lint-imports")
    done = run(tool, "--no-cache", env={"PYTHONPATH": str(tmp_path / "src")}, cwd=tmp_path)
    assert done.returncode != 0
    assert "memdir.fs.path -> memdir.server.http.guard" in done.stdout


def test_no_module_imports_in_a_circle() -> None:
    """Imports inside functions and for type checkers count: a circle is two modules that are one."""
    graph = grimp.build_graph("memdir")
    imports = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
    assert len(tuple(TopologicalSorter(imports).static_order())) == len(imports)


def test_setup_refuses_a_python_it_cannot_use(tmp_path: Path) -> None:
    """Nothing is made when no interpreter fits; the message says what to install."""
    (tmp_path / "scripts").mkdir()
    (tmp_path / "scripts" / "setup.sh").write_bytes((ROOT / "scripts" / "setup.sh").read_bytes())
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in ("bash", "dirname", "id", "timeout", "cat", "sha256sum", "cut"):
        (tools / name).symlink_to(f"/usr/bin/{name}")
    (tools / "id").unlink()
    (tools / "id").write_text("#!/bin/bash\necho 1000\n")  # an ordinary user: no package is installed
    (tools / "id").chmod(0o755)
    script = (tmp_path / "scripts" / "setup.sh").read_text().replace("/usr/bin/python3", str(tmp_path / "none"))
    (tmp_path / "scripts" / "setup.sh").write_text(script)
    done = run("/usr/bin/bash", "scripts/setup.sh", env={"PATH": str(tools)}, cwd=tmp_path)
    assert done.returncode == 1
    assert "no Python 3.11 to 3.13" in done.stderr
    assert "apt-get install" in done.stderr
    assert not (tmp_path / ".venv").exists()
