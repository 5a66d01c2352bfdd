"""Every test here has its own MEMDIR_HOME, deep enough below /tmp for socket names to fit."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from memdir.cli.main import main
from tests.cli.fakes import FakeMount, Handler


@pytest.fixture(autouse=True)
def home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="md-"))
    monkeypatch.setenv("MEMDIR_HOME", str(folder))
    for variable in ("MEMDIR_SERVER_URL", "MEMDIR_API_KEY", "MEMDIR_DEBUG", "NO_COLOR"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.chdir(tmp_path)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def fake_mount(tmp_path: Path) -> Iterator[Callable[..., FakeMount]]:
    """Make a FakeMount: fake_mount("notes", grep=handler, path=…, read_only=True …)."""
    made: list[FakeMount] = []

    def make(
        name: str = "notes", *, path: Path | None = None, options: dict[str, Any] | None = None, **ops: Handler
    ) -> FakeMount:
        mount = FakeMount(name, path or tmp_path / name, ops, **(options or {}))
        made.append(mount)
        return mount

    yield make
    for mount in made:
        mount.close()


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """Run one command line in this process: (exit code, standard output, standard error)."""

    def call(*arguments: str) -> tuple[int, str, str]:
        capsys.readouterr()
        code = main(list(arguments))
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call
