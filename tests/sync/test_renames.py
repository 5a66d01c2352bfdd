"""Renames are repeated at the server, however often and in whatever order: nothing is sent anew."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.sync.conftest import Mount
from tests.sync.fake_server import FakeServer


def folder_of(mount: Mount, path: str, count: int) -> None:
    mount.mkdir(path)
    for number in range(count):
        mount.write(f"{path}/{number}", f"{path} {number}".encode())
    mount.sync()


def puts(server: FakeServer, since: int) -> list[str]:
    """What was sent anew behind `since`."""
    return [change["path"] for change in server.changes if change["seq"] > since and change["kind"] == "put"]


def kinds(server: FakeServer, since: int) -> list[str]:
    return [change["kind"] for change in server.changes if change["seq"] > since]


def moved(server: FakeServer, since: int) -> list[tuple[str, str]]:
    return [(c["fromPath"], c["path"]) for c in server.changes if c["seq"] > since and c["kind"] == "move"]


@pytest.mark.parametrize("pause", [False, True])
@pytest.mark.promise("sync.rename-cheap")
def test_a_folder_of_a_thousand_files_renamed_twice_sends_no_byte(mount: Mount, server: FakeServer, pause: bool) -> None:
    folder_of(mount, "/a", 1000)
    since = server.seq
    server.requests.clear()
    mount.mv("/a", "/b")
    if pause:
        mount.step()
    mount.mv("/b", "/c")
    mount.sync()
    assert server.tree() == mount.tree()
    assert moved(server, since) == ([("/a", "/b"), ("/b", "/c")] if pause else [("/a", "/c")])
    assert puts(server, since) == []
    assert [request for request in server.requests if not request.startswith("GET /v1/changes")] == ["POST /v1/files:move"] * (
        1 + pause
    )


@pytest.mark.promise("sync.rename-cheap")
def test_a_rename_behind_one_that_was_sent_waits_for_it_and_follows(mount: Mount, server: FakeServer) -> None:
    folder_of(mount, "/a", 20)
    since = server.seq
    server.fault("POST", "/v1/files:move", before=False)
    mount.mv("/a", "/b")
    mount.step()  # done there, its answer lost
    mount.mv("/b", "/c")
    mount.mv("/c", "/d")
    mount.sync()
    assert server.tree() == mount.tree()
    assert moved(server, since) == [("/a", "/b"), ("/b", "/d")]
    assert puts(server, since) == []


@pytest.mark.promise("sync.rename-cheap")
def test_renames_made_offline_and_over_a_restart_are_led_together(mount: Mount, server: FakeServer) -> None:
    folder_of(mount, "/a", 20)
    since = server.seq
    server.down = True
    mount.step()
    for source, path in (("/a", "/b"), ("/b", "/c"), ("/c", "/d"), ("/d", "/e")):
        mount.mv(source, path)
        mount.step()
        mount.restart()
    server.down = False
    mount.clock.advance(600)
    mount.sync()
    assert server.tree() == mount.tree()
    assert moved(server, since)[-1][1] == "/e"
    assert len(moved(server, since)) <= 2, "one may have been tried before the server was found away"
    assert puts(server, since) == []


def test_a_rename_there_and_back_is_none(mount: Mount, server: FakeServer) -> None:
    folder_of(mount, "/a", 20)
    since = server.seq
    mount.mv("/a", "/b")
    mount.mv("/b", "/a")
    mount.sync()
    assert server.seq == since
    assert mount.engine.renames(10) == []
    assert server.tree() == mount.tree()


@pytest.mark.promise("sync.rename-cheap")
def test_two_folders_swapped_by_a_temporary_name_are_three_renames(mount: Mount, server: FakeServer) -> None:
    folder_of(mount, "/a", 20)
    folder_of(mount, "/b", 20)
    since = server.seq
    for source, path in (("/a", "/t"), ("/b", "/a"), ("/t", "/b")):
        mount.mv(source, path)
    mount.sync()
    assert kinds(server, since) == ["move"] * 3
    assert server.tree() == mount.tree()
    assert server.tree()["/a/3"] == ("file", b"/b 3")


@pytest.mark.promise("sync.rename-cheap")
def test_edits_in_a_renamed_folder_are_all_that_is_sent(mount: Mount, server: FakeServer) -> None:
    folder_of(mount, "/a", 20)
    since = server.seq
    mount.write("/a/1", b"before")
    mount.mv("/a", "/b")
    mount.write("/b/2", b"between")
    mount.rm("/b/3")
    mount.mv("/b", "/c")
    mount.write("/c/4", b"after")
    mount.sync()
    assert server.tree() == mount.tree()
    assert kinds(server, since)[0] == "move"
    assert sorted(puts(server, since)) == ["/c/1", "/c/2", "/c/4"]


def test_a_folder_renamed_while_half_of_it_was_never_sent(mount: Mount, server: FakeServer) -> None:
    folder_of(mount, "/a", 10)
    since = server.seq
    for number in range(10, 20):
        mount.write(f"/a/{number}", b"new")
    mount.mv("/a", "/b")
    mount.sync()
    assert server.tree() == mount.tree()
    assert sorted(puts(server, since)) == sorted(f"/b/{number}" for number in range(10, 20))


def test_a_rename_that_only_changes_the_case(mount: Mount, server: FakeServer) -> None:
    folder_of(mount, "/notes", 5)
    since = server.seq
    mount.mv("/notes", "/Notes")
    mount.mv("/Notes/1", "/Notes/ONE")
    mount.mv("/Notes/ONE", "/Notes/One")
    mount.sync()
    assert server.tree() == mount.tree()
    assert moved(server, since) == [("/notes", "/Notes"), ("/Notes/1", "/Notes/One")]
    assert puts(server, since) == []


@pytest.mark.promise("sync.rename-cheap")
def test_a_folder_that_takes_the_name_of_a_removed_one(mount: Mount, server: FakeServer) -> None:
    folder_of(mount, "/build", 20)
    folder_of(mount, "/build.new", 20)
    since = server.seq
    for number in range(20):
        mount.rm(f"/build/{number}")
    mount.rmdir("/build")
    mount.mv("/build.new", "/build")
    mount.sync()
    assert server.tree() == mount.tree()
    assert kinds(server, since) == ["delete", "move"]
    assert server.tree()["/build/3"] == ("file", b"/build.new 3")


def test_what_others_put_into_the_removed_folder_is_not_lost_to_the_one_that_takes_its_name(
    mount: Mount, server: FakeServer
) -> None:
    folder_of(mount, "/build", 5)
    folder_of(mount, "/build.new", 5)
    for number in range(5):
        mount.rm(f"/build/{number}")
    mount.rmdir("/build")
    mount.mv("/build.new", "/build")
    server.write("/build/theirs", b"new")
    mount.sync()
    assert server.tree() == mount.tree()
    assert server.tree()["/build/theirs"] == ("file", b"new")
    assert server.tree()["/build/3"] == ("file", b"/build.new 3")


def theirs_edit(server: FakeServer) -> None:
    server.write("/a/1", b"theirs")


def theirs_new(server: FakeServer) -> None:
    server.write("/a/new", b"theirs")


def theirs_gone(server: FakeServer) -> None:
    server.remove("/a/1")


@pytest.mark.parametrize("theirs", [theirs_edit, theirs_new, theirs_gone])
@pytest.mark.parametrize("seen", [False, True])
@pytest.mark.promise("sync.rename-cheap")
def test_what_others_did_in_a_folder_that_is_renamed_here_moves_along(
    mount: Mount, server: FakeServer, theirs: Callable[[FakeServer], None], seen: bool
) -> None:
    folder_of(mount, "/a", 20)
    mount.mv("/a", "/b")
    if seen:
        mount.engine._take_in_all()
    theirs(server)
    since = server.seq
    mount.sync()
    assert server.tree() == mount.tree()
    assert not any(path == "/a" or path.startswith("/a/") for path in server.tree())
    expected = {f"/b/{number}": ("file", f"/a {number}".encode()) for number in range(20)} | {"/b": ("dir", b"")}
    if theirs is theirs_gone:
        del expected["/b/1"]
    else:
        expected["/b/1" if theirs is theirs_edit else "/b/new"] = ("file", b"theirs")
    assert server.tree() == expected
    assert puts(server, since) == []


def test_the_same_file_edited_here_after_a_rename_and_there_before_it_is_kept_twice(mount: Mount, server: FakeServer) -> None:
    folder_of(mount, "/a", 3)
    mount.mv("/a", "/b")
    mount.write("/b/1", b"mine")
    server.write("/a/1", b"theirs")
    mount.sync()
    assert server.tree() == mount.tree()
    assert server.tree()["/b/1"] == ("file", b"theirs")
    assert ("file", b"mine") in server.tree().values()


def test_a_folder_renamed_away_and_replaced_by_a_new_one_of_its_name(mount: Mount, server: FakeServer) -> None:
    folder_of(mount, "/a", 10)
    since = server.seq
    mount.mv("/a", "/b")
    mount.mkdir("/a")
    mount.write("/a/1", b"new")
    mount.mv("/b", "/c")
    mount.sync()
    assert server.tree() == mount.tree()
    assert moved(server, since) == [("/a", "/c")]
    assert sorted(puts(server, since)) == ["/a", "/a/1"]


def test_a_file_renamed_over_another_and_then_on_leaves_nothing_behind(mount: Mount, server: FakeServer) -> None:
    for name in "ab":
        mount.write(f"/{name}", name.encode())
    mount.sync()
    mount.mv("/a", "/b")
    mount.mv("/b", "/c")
    mount.sync()
    assert server.tree() == mount.tree() == {"/c": ("file", b"a")}
