"""`memdir history`, `restore` and `undelete` against a real server; the mount is only in the registry."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta

import pytest

from memdir.api import v1
from memdir.cli.main import main
from memdir.cli.search.remote import connected
from memdir.client.errors import NotFoundError
from tests.cli.fakes import FakeMount
from tests.plain.double import PlainServer
from tests.servers import ServerProcess, start

Run = Callable[..., tuple[int, str, str]]
Files = Callable[[str, str, bytes | None], None]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    running = start(tmp_path_factory.mktemp("home"), "--port", "0")
    yield running
    assert running.stop() == 0


@pytest.fixture
def files(server: ServerProcess, monkeypatch: pytest.MonkeyPatch) -> Iterator[Files]:
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
    code, out, _ = run("history", "--json", *arguments)
    rows: list[dict[str, object]] = json.loads(out)
    assert code == (0 if rows else 1)
    return rows


def former(run: Run, *arguments: str) -> list[dict[str, object]]:
    return [row for row in listed(run, *arguments) if row["version"] is not None]


def number_of(run: Run, path: str, place: int = 0) -> str:
    """The number of a former revision, 0 for the newest."""
    return str(former(run, "--container", "notes", path)[place]["version"])


def stands(path: str) -> bytes | None:
    """What the server has at a path, asked without the commands under test."""
    with connected(lambda _: None) as client:
        try:
            return client.read_file("notes", path)
        except NotFoundError:
            return None


def test_the_present_content_comes_first_then_former_ones_newest_first(
    run: Run, fake_mount: Callable[..., FakeMount], files: Files
) -> None:
    fake_mount()
    for text in (b"one\n", b"two\n", b"three\n"):
        files("notes", "/plan.md", text)
    rows = listed(run, "notes/plan.md")
    assert [row["reason"] for row in rows] == ["current", "replaced", "replaced"]
    assert [row["began_at"] for row in rows[:-1]] == [row["ended_at"] for row in rows[1:]]
    code, out, err = run("history", "notes/plan.md")
    assert (code, err, len(out.splitlines())) == (0, "", 3)
    assert out.splitlines()[0].split()[0] == "now"
    assert out.splitlines()[1].split()[0] == str(rows[1]["version"])


def test_the_old_name_of_the_command_still_works(run: Run, files: Files) -> None:
    files("notes", "/a", b"1")
    assert run("versions", "--container", "notes", "/a") == run("history", "--container", "notes", "/a")


def test_a_revision_is_shown_compared_and_restored(files: Files, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    for text in (b"one\x00\xff", b"two\nsame\n", b"three\nsame"):
        files("notes", "/plan.md", text)
    where = ("--container", "notes", "/plan.md")

    def said(*arguments: str, code: int = 0) -> bytes:
        assert main(list(arguments)) == code
        return capfdbinary.readouterr().out

    _, two, one = (str(row["version"]) for row in json.loads(said("history", "--json", *where)))
    assert said("history", *where, "--show", one) == b"one\x00\xff"
    assert said("history", *where, "--diff", two).splitlines()[2:] == [
        b"@@ -1,2 +1,2 @@", b"-two", b"-same", b"+three", b"+same", b"\\ No newline at end of file",
    ]  # fmt: skip
    assert b"are no text" in said("history", *where, "--diff", f"{one}..{two}")
    assert said("history", *where, "--diff", f"{two}..{two}", code=1) == b""
    assert json.loads(said("restore", *where, "--rev", one, "--json"))["version"] == int(one)
    said("restore", *where)
    assert said("history", *where, "--show", one) == b"one\x00\xff"


def test_a_history_follows_its_file_and_tells_its_renames(run: Run, files: Files) -> None:
    files("notes", "/d/a.md", b"one")
    files("notes", "/d/a.md", b"two")
    with connected(lambda _: None) as client:
        client.move(v1.MoveRequest(container_tag="notes", from_path="/d", to_path="/e"))
    rows = listed(run, "--container", "notes", "/e/a.md")
    assert [(row["reason"], row.get("from")) for row in rows] == [("current", None), ("moved", "/d/a.md"), ("replaced", None)]
    changes = json.loads(run("history", "--container", "notes", "/e", "--json")[1])
    assert [(row["reason"], row["path"]) for row in changes] == [("move", "/e")]
    assert [row["reason"] for row in json.loads(run("history", "--container", "notes", "--json")[1])][:2] == ["move", "put"]


def test_a_path_that_was_deleted_and_made_again_shows_both_lives(run: Run, files: Files) -> None:
    for content in (b"one", None, b"two", b"three"):
        files("notes", "/a", content)
    assert [row["reason"] for row in listed(run, "--container", "notes", "/a")] == ["current", "replaced", "deleted"]


def test_a_deleted_file_is_listed_and_comes_back(run: Run, files: Files) -> None:
    files("notes", "/d/a.md", b"one")
    files("notes", "/d/a.md", None)
    (row,) = listed(run, "--container", "notes", "--deleted", "/d")
    assert (row["path"], row["reason"]) == ("/d/a.md", "deleted")
    code, out, _ = run("restore", "--container", "notes", "/d/a.md")
    assert code == 0
    assert out.startswith("/d/a.md: revision")
    assert listed(run, "--container", "notes", "--deleted") == []


def moment() -> str:
    """Now, between two changes: the server's times have milliseconds, so that the next change is in a later one."""
    now = datetime.now(UTC)
    while datetime.now(UTC) - now < timedelta(milliseconds=2):
        pass
    return now.isoformat()


@pytest.mark.promise("sync.restore")
def test_a_file_and_a_folder_come_back_as_they_were_at_a_moment(run: Run, files: Files) -> None:
    where = ("--container", "notes")
    files("notes", "/d/a.md", b"one")
    files("notes", "/d/x/b.md", b"kept")
    then = moment()
    files("notes", "/d/a.md", b"two")
    files("notes", "/d/new.md", b"later")
    with connected(lambda _: None) as client:
        client.move(v1.MoveRequest(container_tag="notes", from_path="/d/x", to_path="/d/y"))
    code, out, err = run("restore", *where, "/d", "--at", then, "--dry-run")
    assert (code, sorted(line.split()[2] for line in out.splitlines())) == (0, ["/d/a.md", "/d/x/b.md"])
    assert "2 paths would change" in err
    assert stands("/d/a.md") == b"two", "a dry run changes nothing"
    assert run("restore", *where, "/d", "--at", then)[0] == 0
    assert [stands(path) for path in ("/d/a.md", "/d/x/b.md", "/d/y/b.md", "/d/new.md")] == [
        b"one", b"kept", b"kept", b"later",
    ]  # fmt: skip
    assert json.loads(run("restore", *where, "/d", "--at", then, "--json")[1])["unchanged"] == 2
    assert run("restore", *where, "/d", "--at", then, "--exact")[0] == 0
    assert [stands(path) for path in ("/d/y/b.md", "/d/new.md")] == [None, None]
    assert {row["path"] for row in listed(run, *where, "--deleted")} == {"/d/y/b.md", "/d/new.md"}, "and can be undeleted"


def test_a_file_that_was_renamed_comes_back_as_it_was_under_its_former_name(run: Run, files: Files) -> None:
    files("notes", "/a.md", b"one")
    then = moment()
    files("notes", "/a.md", b"two")
    with connected(lambda _: None) as client:
        client.move(v1.MoveRequest(container_tag="notes", from_path="/a.md", to_path="/b.md"))
    code, _, err = run("restore", "--container", "notes", "/b.md", "--at", then)
    assert (code, stands("/b.md")) == (0, b"one")
    assert "it stood at /a.md then" in err


@pytest.mark.promise("sync.history")
def test_how_long_revisions_are_kept_is_a_setting_and_their_bytes_go(run: Run, files: Files, server: ServerProcess) -> None:
    large = b"revision %d\n" + b"x" * 300_000
    for number in range(4):
        files("notes", "/big.bin", large % number)
    blobs = server.home / "data" / "server" / "blobs"
    assert len([file for file in blobs.rglob("*") if file.is_file() and file.stat().st_size > 200_000]) == 4
    assert [row["reason"] for row in listed(run, "--container", "notes", "/big.bin")] == ["current"] + ["replaced"] * 3
    code, out, _ = run("history", "--container", "notes", "--keep-count", "1", "--keep-days", "7")
    assert code == 0
    assert "of each file 1 former revision at most, for 7 days" in out
    assert len(former(run, "--container", "notes", "/big.bin")) == 1
    deadline = time.monotonic() + 30
    while len([file for file in blobs.rglob("*") if file.is_file() and file.stat().st_size > 200_000]) > 2:
        assert time.monotonic() < deadline, "the bytes of pruned revisions stay"
    run("history", "--container", "notes", "--keep-count", "50", "--keep-days", "90")


def test_undelete_brings_back_what_went_with_the_last_deletion(run: Run, files: Files) -> None:
    for name in "abc":
        files("notes", f"/d/{name}", name.encode())
    with connected(lambda _: None) as client:
        client.delete_file("notes", "/d", recursive=True)
    code, out, _ = run("undelete", "--container", "notes", "/d", "--list", "--json")
    assert (code, sorted(row["path"] for row in json.loads(out))) == (0, ["/d/a", "/d/b", "/d/c"])
    files("notes", "/d/a", b"something else")
    code, out, err = run("undelete", "--container", "notes", "/d")
    assert code == 2
    assert "/d/a: stays deleted" in out
    assert "--force" in err
    assert [stands(f"/d/{name}") for name in "abc"] == [b"something else", b"b", b"c"]
    assert run("undelete", "--container", "notes", "/d", "--force")[0] == 0
    names = [entry["path"] for entry in json.loads(run("history", "--container", "notes", "/d", "--json")[1])]
    (beside,) = {name for name in names if "(deleted " in str(name)}
    assert (stands(str(beside)), stands("/d/a")) == (b"a", b"something else")
    assert run("undelete", "--container", "notes", "/d")[0] == 1


def test_undelete_since_a_moment_takes_all_deletions_since_then(run: Run, files: Files) -> None:
    files("notes", "/old", b"1")
    files("notes", "/old", None)
    then = moment()
    files("notes", "/new", b"1")
    files("notes", "/new", None)
    rows = json.loads(run("undelete", "--container", "notes", "--since", then, "--list", "--json")[1])
    assert [row["path"] for row in rows] == ["/new"]


def test_nothing_is_restored_while_changes_of_the_mount_wait(
    run: Run, fake_mount: Callable[..., FakeMount], files: Files
) -> None:
    for text in (b"one", b"two"):
        files("notes", "/plan.md", text)
    fake_mount(flush=lambda args: {"waiting": ["/plan.md"], "seen": False, "problem": "the server is away"})
    for command in (("restore",), ("restore", "--at", "now"), ("undelete",)):
        code, _, err = run(*command, "notes/plan.md")
        assert code == 2
        assert "/plan.md: changed here and not pushed yet: the server is away" in err
        assert "memdir sync" in err
    assert stands("/plan.md") == b"two"


def test_where_there_is_nothing_the_exit_code_is_1(run: Run, files: Files) -> None:
    files("notes", "/once", b"1")
    assert [row["reason"] for row in listed(run, "--container", "notes", "/once")] == ["current"]
    assert run("history", "--container", "notes", "/never")[0] == 1
    assert run("restore", "--container", "notes", "/never")[0] == 1
    assert run("restore", "--container", "notes", "/once", "--rev", "999999999")[0] == 1
    assert run("undelete", "--container", "notes", "/once")[0] == 1
    code, _, err = run("restore", "--container", "notes", "/once", "--at", "2001-01-01")
    assert code == 1
    assert "nothing stood at /once on 2001-01-01 00:00:00" in err


@pytest.mark.parametrize(
    "arguments",
    [
        ("history", "/nowhere/a"),
        ("history", "a", "--show", "1", "--json"),
        ("history", "a", "--diff", "x"),
        ("restore",),
        ("restore", "a", "--at", "tomorrow"),
        ("restore", "a", "--at", "now", "--rev", "1"),
        ("restore", "a", "--exact"),
        ("undelete", "--since", "2100-01-01"),
    ],
)
def test_a_command_line_that_makes_no_sense_is_exit_code_2(run: Run, arguments: tuple[str, ...]) -> None:
    assert run(*arguments)[0] == 2


@pytest.mark.parametrize("command", ["history", "restore", "undelete"])
def test_a_server_that_keeps_no_revisions_says_so(run: Run, command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memdir.cli.search.remote.connected", lambda _: PlainServer().client())
    code, _, err = run(command, "--container", "notes", "/a")
    assert code == 2
    assert "keeps no revisions" in err


def test_a_mount_without_sync_has_no_history(run: Run, fake_mount: Callable[..., FakeMount]) -> None:
    fake_mount(options={"sync": False})
    code, _, err = run("history", "notes/a")
    assert code == 2
    assert "--no-sync" in err
