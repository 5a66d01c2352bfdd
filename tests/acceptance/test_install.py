"""`pip install .` in an environment of one's own: what the wheel holds, and that the command works without the checkout."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from collections.abc import Iterator
from email import message_from_string
from email.message import Message
from pathlib import Path

import pytest

from tests.acceptance.driver import Memdir

ROOT = Path(__file__).parents[2]
STEP_LIMIT_S = 120.0


def _source_files() -> set[str]:
    """What a wheel has to hold, by its name in it."""
    return {
        path.relative_to(ROOT / "src").as_posix()
        for path in (ROOT / "src" / "memdir").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built as pip builds it (PEP 517), from a copy; `make setup` left the build backend in uv's cache."""
    base = tmp_path_factory.mktemp("wheel").resolve()
    copy = base / "checkout"
    copy.mkdir()
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy2(ROOT / name, copy)
    shutil.copytree(ROOT / "src", copy / "src", ignore=shutil.ignore_patterns("__pycache__"))
    search = f"{os.environ['PATH']}{os.pathsep}{ROOT / '.tools' / 'bin'}"
    uv = shutil.which("uv", path=search)
    assert uv is not None, "make setup installs uv"
    _run([uv, "build", "--quiet", "--wheel", "--python", sys.executable, "--out-dir", str(base), str(copy)])
    (built,) = base.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Memdir]:
    """A new environment with the wheel, the locked dependencies beside it, and no way to the checkout's source."""
    base = tmp_path_factory.mktemp("install").resolve()
    python = base / "venv" / "bin" / "python"
    _run([sys.executable, "-m", "venv", str(base / "venv")])
    pip = [str(python), "-m", "pip", "--disable-pip-version-check", "--no-input"]
    _run([*pip, "install", "--quiet", "--no-index", "--no-deps", str(wheel)])
    # A folder that a .pth file names goes on the path, but the .pth files in it (the editable memdir) are not read.
    (site,) = (base / "venv" / "lib").glob("python*/site-packages")
    (site / "locked.pth").write_text(sysconfig.get_path("purelib") + "\n")
    (base / "work").mkdir()
    runner = Memdir(folder=base / "work", home=base / "home")
    for name in ("PYTHONPATH", "VIRTUAL_ENV"):
        runner.env.pop(name, None)
    runner.env["PATH"] = f"{python.parent}{os.pathsep}{os.defpath}"
    try:
        yield runner
    finally:
        runner.close()


def _run(command: list[str]) -> None:
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=STEP_LIMIT_S, check=False)
    assert done.returncode == 0, f"{command}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}"


def _metadata(wheel: Path) -> Message:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        return message_from_string(archive.read(name).decode("utf-8"))


def test_the_wheel_holds_every_file_of_the_package_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        entry_points = next(archive.read(name).decode() for name in names if name.endswith("/entry_points.txt"))
    packed = {name for name in names if ".dist-info/" not in name}
    assert packed == _source_files()
    assert "memdir/py.typed" in packed
    assert any(name.endswith(".sql") for name in packed)
    assert any(name.endswith(".dist-info/licenses/LICENSE") for name in names)
    assert "memdir = memdir.cli.main:main" in entry_points


def test_the_metadata_says_what_is_needed(wheel: Path) -> None:
    metadata = _metadata(wheel)
    assert metadata["Name"] == "memdir"
    assert metadata["License-Expression"] == "Apache-2.0"
    needed = metadata.get_all("Requires-Dist") or []
    assert any(line.startswith("apsw") for line in needed)
    assert not any(line.startswith(("pytest", "mypy", "ruff", "torch")) for line in needed)


@pytest.mark.mount
@pytest.mark.promise("setup.pip-install")
def test_the_installed_command_mounts_and_searches_without_the_checkout(installed: Memdir) -> None:
    inside = installed.shell("cd / && python -c 'import memdir; print(memdir.__file__)'").out.strip()
    assert Path(inside).is_relative_to(installed.folder.parent / "venv")
    installed.shell("python -m pip check --disable-pip-version-check")
    assert installed.shell("memdir --version").out.startswith("memdir 0.")
    used = installed.shell(
        "set -eu\n"
        "memdir mount notes\n"
        "echo 'The spare key hangs at the bakery downstairs.' > notes/keys.md\n"
        "memdir sync notes --wait\n"
        "memdir grep 'how do I get in when locked out' notes\n"
        "memdir unmount notes\n"
    )
    assert "notes/keys.md:1:The spare key hangs at the bakery downstairs." in used.out.splitlines()
