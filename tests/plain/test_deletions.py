"""Deletions show by absence only: what is believed, what is asked about, and what is never concluded."""

from __future__ import annotations

import pytest

from tests.plain.conftest import PlainMount, settled
from tests.plain.double import PlainServer

pytestmark = pytest.mark.promise("sync.plain")


def filled(mount: PlainMount, server: PlainServer, count: int) -> None:
    server.slow = 0
    for number in range(count):
        mount.write(f"/{number:03}", b"%d" % number)
    mount.sync()


def later(mount: PlainMount) -> None:
    mount.clock.advance(5)
    mount.sync()


def test_a_deletion_at_the_server_is_noticed_by_the_total_at_the_next_look(mount: PlainMount, server: PlainServer) -> None:
    filled(mount, server, 8)
    server.remove("/003")
    later(mount)
    assert len(mount.files()) == 7


def test_a_deletion_together_with_a_creation_is_noticed(mount: PlainMount, server: PlainServer) -> None:
    filled(mount, server, 8)
    server.remove("/003")
    server.put("/new", "new")
    later(mount)
    assert set(mount.files()) == {f"/{number:03}" for number in range(8) if number != 3} | {"/new"}


def test_an_unsynced_edit_survives_the_deletion(mount: PlainMount, server: PlainServer) -> None:
    filled(mount, server, 3)
    server.remove("/001")
    mount.write("/001", b"edited")
    settled(mount)
    assert mount.read("/001") == b"edited"
    server.settle()
    assert server.paths() == ["/000", "/001", "/002"]


def test_a_list_that_leaves_out_what_is_there_deletes_nothing(mount: PlainMount, server: PlainServer) -> None:
    filled(mount, server, 40)
    for hidden in (3, 35):
        server.hidden = {f"/{number:03}" for number in range(hidden)}
        mount.clock.advance(5)
        mount.engine.run_until_idle()
        assert len(mount.files()) == 40
    server.hidden = set()
    settled(mount)
    assert len(server.paths()) == 40


def test_a_list_that_changes_under_every_reading_deletes_nothing(mount: PlainMount, server: PlainServer) -> None:
    server.slow = 0
    for number in range(450):
        server.put(f"/{number:03}", str(number))
    mount.sync()
    server.remove("/400")
    names = iter(range(1000, 2000))

    def always(method: str, path: str) -> None:
        if path == "/v3/documents/list":
            server.put(f"/n{next(names)}", "new")
            server.remove(f"/{next(names) - 1000:03}")
        server.between = always

    server.between = always
    mount.clock.advance(5)
    mount.engine.run_until_idle()
    server.between = None
    assert all(path in mount.files() for path in server.paths() if not path.startswith("/n"))
    settled(mount)
    assert sorted(mount.files()) == server.paths()


def test_most_of_a_tree_missing_is_asked_about_first(mount: PlainMount, server: PlainServer) -> None:
    filled(mount, server, 60)
    for number in range(50):
        server.remove(f"/{number:03}")
    later(mount)
    assert len(mount.files()) == 60
    assert mount.engine.status().held_deletions == 50
    mount.engine.confirm_deletions()
    later(mount)
    assert len(mount.files()) == 10
    assert len(server.paths()) == 10


def test_what_is_being_processed_is_not_deleted(mount: PlainMount, other: PlainMount, server: PlainServer) -> None:
    filled(mount, server, 3)
    other.sync()
    server.slow, server.held = 3, True
    mount.write("/001", b"new contents")
    mount.step()
    other.clock.advance(1000)
    other.engine.run_until_idle()
    assert other.files()["/001"] == b"1"
    server.held = False
    settled(mount, other)
    assert other.read("/001") == b"new contents"


def test_a_folder_deleted_here_takes_only_what_was_known_of_it(mount: PlainMount, server: PlainServer) -> None:
    mount.mkdir("/d")
    mount.write("/d/a", b"1")
    mount.sync()
    mount.rm("/d/a")
    mount.rmdir("/d")

    def faster(method: str, path: str) -> None:
        if method != "DELETE":
            server.between = faster
            return
        server.put("/d/b", "written at the same moment")

    server.between = faster
    settled(mount)
    assert mount.files() == {"/d/b": b"written at the same moment"}
    assert server.paths() == ["/d/b"]
