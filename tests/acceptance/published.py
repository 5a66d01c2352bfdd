"""Published clients, installed from their registries for the tests: once for a run, each in a folder of its own.

They run in interpreters that see nothing of ours. Without the registry or without node the tests are skipped, with the reason.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.acceptance.driver import SERVER_VARIABLES

CLIENTS = Path(__file__).parent / "clients"
INSTALL_LIMIT_S = 300
RUN_LIMIT_S = 170
_CLIENT_VARIABLES = ("SUPERMEMORY_API_KEY", "SUPERMEMORY_BASE_URL", "SUPERMEMORY_CUSTOM_HEADERS", "PYTHONPATH")


def packages_folder(factory: pytest.TempPathFactory) -> Path:
    """The same for all workers of a run."""
    base = factory.getbasetemp()
    folder = (base.parent if os.environ.get("PYTEST_XDIST_WORKER") else base) / "published"
    folder.mkdir(exist_ok=True)
    return folder


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    with (folder.parent / f"{folder.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _install(folder: Path, command: list[str], *, cwd: Path | None = None) -> None:
    """Once; what went wrong the first time is not tried again by the others."""
    verdict = folder.parent / f"{folder.name}.json"
    with _alone(folder):
        if not verdict.exists():
            try:
                done = subprocess.run(
                    command,
                    cwd=cwd,
                    capture_output=True,
                    text=True,
                    timeout=INSTALL_LIMIT_S,
                    check=False,
                    stdin=subprocess.DEVNULL,
                )
                problem = None if done.returncode == 0 else done.stderr.strip()[-400:] or f"exit code {done.returncode}"
            except subprocess.TimeoutExpired:
                problem = f"not installed within {INSTALL_LIMIT_S} s"
            verdict.write_text(json.dumps(problem))
    problem = json.loads(verdict.read_text())
    if problem is not None:
        pytest.skip(f"{' '.join(command[:3])} … {command[-1]} failed: {problem}")


def python_package(requirement: str, factory: pytest.TempPathFactory) -> Path:
    """The folder with a package of PyPI and what it needs."""
    folder = packages_folder(factory) / requirement.replace("=", "-")
    uv = shutil.which("uv", path=f"{os.environ['PATH']}{os.pathsep}{Path(__file__).parents[2] / '.tools' / 'bin'}")
    assert uv is not None, "make setup installs uv"
    interpreter = ["--python", sys.executable, "--target", str(folder)]
    _install(folder, [uv, "pip", "install", "--quiet", *interpreter, requirement])
    return folder


def node_package(requirement: str, factory: pytest.TempPathFactory) -> Path:
    """A folder with node_modules."""
    npm = shutil.which("npm")
    if npm is None or shutil.which("node") is None:
        pytest.skip("node and npm are not installed")
    folder = packages_folder(factory) / requirement.replace("/", "-")
    folder.mkdir(exist_ok=True)
    options = ["--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error"]
    _install(folder, [npm, "install", *options, requirement], cwd=folder)
    return folder


def run_python(package: Path, script: str, *arguments: str) -> None:
    """Run a script of `clients` with a package and the standard library, nothing else."""
    _run([sys.executable, "-S", str(CLIENTS / script), *arguments], {"PYTHONPATH": str(package)}, package)


def run_node(package: Path, script: str, *arguments: str) -> None:
    """Run a script of `clients` beside a node_modules."""
    node = shutil.which("node")
    assert node is not None
    _run([node, str(CLIENTS / script), *arguments], {}, package)


def _run(command: list[str], extra: dict[str, str], cwd: Path) -> None:
    hidden = (*SERVER_VARIABLES, *_CLIENT_VARIABLES)
    env = {name: value for name, value in os.environ.items() if name not in hidden} | extra
    done = subprocess.run(
        command, cwd=cwd, env=env, capture_output=True, text=True, timeout=RUN_LIMIT_S, check=False, stdin=subprocess.DEVNULL
    )
    assert done.returncode == 0, f"{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
