"""`memdir versions` and `memdir restore` against a real server; the mount is only in the registry."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import pytest

from tests.cli.fakes import FakeMount
from tests.server.conftest import ServerProcess, start

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    running = start(tmp_path_factory.mktemp("home"), "--port", "0")
    yield running
    assert running.stop() == 0


@pytest.fixture
def files(server: ServerProcess, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str, str, bytes | None], None]]:
    """Put a content, or with None delete: files("notes", "/a", b"text"). Commands talk to the same server."""
    monkeypatch.setenv("MEMDIR_SERVER_URL", server.url)
    monkeypatch.setenv("MEMDIR_API_KEY", server.key)

    with server.client() as client:

        def change(container: str, path: str, content: bytes | None) -> None:
            where = {"containerTag": container}
            url = f"/v1/files{path}"
            answer = client.delete(url, params=where) if content is None else client.put(url, params=where, content=content)
            assert answer.status_code < 300

        change("notes", "/keep", b"")
        yield change
        client.delete("/v3/container-tags/notes")


def listed(run: Run, *arguments: str) -> list[dict[str, object]]:
    code, out, _ = run("versions", "--json", *arguments)
    rows: list[dict[str, object]] = json.loads(out)
    assert code == (0 if rows else 1)
    return rows


def test_versions_of_a_file_in_a_mount(
    run: Run, fake_mount: Callable[..., FakeMount], files: Callable[[str, str, bytes | None], None]
) -> None:
    fake_mount()
    for text in (b"one\n", b"two\n", b"three\n"):
        files("notes", "/plan.md", text)
    rows = listed(run, "notes/plan.md")
    assert [row["reason"] for row in rows] == ["replaced", "replaced"]
    code, out, err = run("versions", "notes/plan.md")
    assert (code, err, len(out.splitlines())) == (0, "", 2)
    assert str(rows[0]["version"]) in out.splitlines()[0]


def test_a_version_is_shown_and_restored(
    files: Callable[[str, str, bytes | None], None], capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    for text in (b"one\x00\xff", b"two"):
        files("notes", "/plan.md", text)
    where = ("--container", "notes", "/plan.md")
    from memdir.cli.main import main

    assert main(["versions", "--json", *where]) == 0
    (row,) = json.loads(capfdbinary.readouterr().out)
    assert main(["versions", *where, "--show", str(row["version"])]) == 0
    assert capfdbinary.readouterr().out == b"one\x00\xff"
    assert main(["restore", *where, "--version", str(row["version"]), "--json"]) == 0
    assert json.loads(capfdbinary.readouterr().out)["version"] == row["version"]
    assert main(["restore", *where]) == 0
    capfdbinary.readouterr()
    assert main(["versions", *where, "--show", str(row["version"])]) == 0
    assert capfdbinary.readouterr().out == b"one\x00\xff"


def test_a_deleted_file_is_listed_and_comes_back(run: Run, files: Callable[[str, str, bytes | None], None]) -> None:
    files("notes", "/d/a.md", b"one")
    files("notes", "/d/a.md", None)
    (row,) = listed(run, "--container", "notes", "--deleted", "/d")
    assert (row["path"], row["reason"]) == ("/d/a.md", "deleted")
    code, out, _ = run("restore", "--container", "notes", "/d/a.md")
    assert code == 0
    assert out.startswith("/d/a.md: version")
    assert listed(run, "--container", "notes", "--deleted") == []


def test_where_there_is_no_version_the_exit_code_is_1(run: Run, files: Callable[[str, str, bytes | None], None]) -> None:
    files("notes", "/once", b"1")
    assert run("versions", "--container", "notes", "/once")[0] == 1
    assert run("versions", "--container", "notes", "/never")[0] == 1
    assert run("restore", "--container", "notes", "/never")[0] == 1
    assert run("restore", "--container", "notes", "/once", "--version", "999999999")[0] == 1


@pytest.mark.parametrize(
    "arguments", [("versions",), ("versions", "/nowhere/a"), ("versions", "a", "--show", "1", "--json"), ("restore",)]
)
def test_a_command_line_that_makes_no_sense_is_exit_code_2(run: Run, arguments: tuple[str, ...]) -> None:
    assert run(*arguments)[0] == 2
