"""`memdir export` and `memdir import` against a real server."""

from __future__ import annotations

import json
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.cli.fakes import FakeMount
from tests.servers import ServerProcess, start

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    server = start(tmp_path_factory.mktemp("home"), "--port", "0")
    yield server
    assert server.stop() == 0


@pytest.fixture(autouse=True)
def notes(running: ServerProcess, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A memory with three files."""
    monkeypatch.setenv("MEMDIR_SERVER_URL", running.url)
    monkeypatch.setenv("MEMDIR_API_KEY", running.key)
    with running.client() as client:
        for path in ("/a.md", "/work/b.md", "/work/c.md"):
            client.put(f"/v1/files{path}", params={"containerTag": "notes"}, content=path.encode()).raise_for_status()
        yield
        for name in ("notes", "other"):
            client.delete(f"/v3/container-tags/{name}")


def names(file: Path) -> list[str]:
    with tarfile.open(file) as archive:
        return [name for name in archive.getnames() if not name.startswith(".memdir")]


@pytest.mark.parametrize("suffix", ["tar", "tgz", "tar.gz", "zip"])
def test_a_memory_goes_into_a_file_and_into_another_memory(run: Run, tmp_path: Path, suffix: str) -> None:
    file = tmp_path / f"notes.{suffix}"
    code, out, _ = run("export", "--json", "notes", str(file))
    assert code == 0
    assert json.loads(out)["size_bytes"] == file.stat().st_size
    assert file.stat().st_mode & 0o777 == 0o600
    code, out, _ = run("import", "--json", str(file), "other")
    assert (code, json.loads(out)["created"]) == (0, 3)
    assert run("import", str(file), "other", "--merge", "skip")[:2] == (0, "other: 3 there already\n")


def test_a_folder_of_a_mount_is_exported(run: Run, fake_mount: Callable[..., FakeMount], tmp_path: Path) -> None:
    fake_mount()
    assert run("export", "notes/work", "work.tar")[0] == 0
    assert names(tmp_path / "work.tar") == ["work/b.md", "work/c.md"]


def test_a_file_that_exists_is_replaced_only_when_asked_to(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "n.tar"
    file.write_text("precious")
    assert run("export", "notes", str(file))[0] == 2
    assert file.read_text() == "precious"
    assert run("export", "--force", "notes", str(file))[0] == 0
    assert names(file) == ["a.md", "work/b.md", "work/c.md"]


def test_a_failed_export_leaves_no_file(run: Run, tmp_path: Path) -> None:
    assert run("export", "nothing-there", str(tmp_path / "n.tar"))[0] == 2
    assert list(tmp_path.iterdir()) == []


def test_what_is_refused_is_exit_code_2_and_what_could_not_be_taken_is_1(
    run: Run, tmp_path: Path, running: ServerProcess
) -> None:
    text = tmp_path / "text"
    text.write_text("no archive")
    code, _, err = run("import", str(text), "other")
    assert (code, "archive" in err) == (2, True)
    assert run("import", str(tmp_path / "missing"), "other")[0] == 2
    file = tmp_path / "n.tar"
    run("export", "notes", str(file))
    assert run("import", str(file), "notes")[0] == 2
    with running.client() as client:
        client.put("/v1/files/a.md/x", params={"containerTag": "other"}, content=b"a.md is a folder here")
    code, out, err = run("import", str(file), "other", "--merge", "replace")
    assert (code, out) == (1, "other: 2 new, 1 failed\n")
    assert err.startswith("memdir: /a.md: ")
