"""Which conflicts there are: made here, made elsewhere, settled; and what waits in the queue and why."""

from __future__ import annotations

import pytest

from memdir.sync.conflicts.copies import named
from memdir.sync.push.pending import Waiting
from tests.sync.conftest import Mount
from tests.sync.fake_server import FakeServer


def make_conflict(mount: Mount, server: FakeServer, path: str = "/a.md") -> str:
    mount.write(path, b"base\n")
    mount.sync()
    mount.write(path, b"ours\n")
    server.write(path, b"theirs\n")
    mount.sync()
    [conflict] = [one for one in mount.engine.left.conflicts(10) if one.original == path]
    return conflict.copy


@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("/n/a (conflict 2026-11-21 laptop).md", ("/n/a.md", "2026-11-21", "laptop")),
        ("/a (conflict 2026-11-21 my-host.x 12).tar.gz", None),
        ("/a.tar (conflict 2026-11-21 my-host 12).gz", ("/a.tar.gz", "2026-11-21", "my-host")),
        ("/Makefile (conflict 2026-11-21 h)", ("/Makefile", "2026-11-21", "h")),
        ("/a (conflict 2026-11-21 h) (conflict 2026-11-22 i).md", ("/a (conflict 2026-11-21 h).md", "2026-11-22", "i")),
        ("/a (conflict of interest).md", None),
        ("/ (conflict 2026-11-21 h)", None),
    ],
)
def test_a_name_tells_what_it_is_a_copy_of(path: str, told: tuple[str, str, str] | None) -> None:
    assert named(path) == told


@pytest.mark.promise("sync.conflicts-command")
def test_a_conflict_made_here_is_listed_with_its_revisions(mount: Mount, server: FakeServer) -> None:
    copy = make_conflict(mount, server)
    [conflict] = mount.engine.left.conflicts(10)
    assert (conflict.copy, conflict.original, conflict.host, conflict.day) == (copy, "/a.md", "laptop", "2023-11-14")
    assert (conflict.base_revision, conflict.remote_revision) == (1, 2)
    assert conflict.at_ms is not None
    assert mount.engine.status().conflicts == 1


@pytest.mark.promise("sync.conflicts-command")
def test_a_conflict_of_another_machine_is_listed_too(mount: Mount, other: Mount, server: FakeServer) -> None:
    copy = make_conflict(mount, server)
    other.sync()
    [conflict] = other.engine.left.conflicts(10)
    assert (conflict.copy, conflict.original, conflict.host, conflict.at_ms) == (copy, "/a.md", "laptop", None)
    other.rm(copy)
    assert other.engine.left.conflicts(10) == []
    other.sync()
    mount.sync()
    assert mount.engine.left.conflicts(10) == []
    assert mount.engine.status().conflicts == 0


def test_a_copy_that_gets_a_name_of_its_own_is_settled_everywhere(mount: Mount, other: Mount, server: FakeServer) -> None:
    copy = make_conflict(mount, server)
    other.sync()
    mount.mv(copy, "/mine.md")
    assert mount.engine.left.conflicts(10) == []
    mount.sync()
    other.sync()
    assert other.engine.left.conflicts(10) == []


@pytest.mark.parametrize("made_here", [True, False])
def test_keeping_both_takes_it_off_the_list_until_there_is_another(
    mount: Mount, other: Mount, server: FakeServer, made_here: bool
) -> None:
    copy = make_conflict(mount, server)
    other.sync()
    one = mount if made_here else other
    assert one.engine.left.keep_both(copy)
    assert not one.engine.left.keep_both(copy)
    one.restart()
    assert one.engine.left.conflicts(10) == []
    assert one.tree()[copy] == ("file", b"ours\n")
    one.rm(copy)
    one.sync()
    one.write(copy, b"again\n")
    one.sync()
    assert [conflict.copy for conflict in one.engine.left.conflicts(10)] == [copy]


def test_files_that_only_sound_like_copies_are_none(mount: Mount) -> None:
    mount.write("/a (conflict of interest).md", b"1")
    mount.sync()
    assert mount.engine.left.conflicts(10) == []
    assert not mount.engine.left.keep_both("/a (conflict of interest).md")


def waiting(mount: Mount) -> dict[str, Waiting]:
    return {row.path: row for row in mount.engine.left.waiting(100)}


@pytest.mark.promise("sync.queue-command")
def test_the_queue_says_what_waits_since_when_and_why(mount: Mount, server: FakeServer) -> None:
    for path in ("/edited", "/gone", "/old"):
        mount.write(path, b"1")
    mount.sync()
    server.fault("POST", "/v1/files", status=503, times=100)
    began_ms = mount.clock.now_ns() // 1_000_000
    mount.write("/edited", b"2")
    mount.write("/new", b"3")
    mount.rm("/gone")
    mount.mv("/old", "/moved")
    mount.engine._take_in_all()
    rows = waiting(mount)
    assert {path: row.op for path, row in rows.items() if path != "/moved"} == {
        "/edited": "put",
        "/new": "put",
        "/gone": "delete",
    }
    assert rows["/new"].why == "it changed a moment ago"
    moved = next(row for row in mount.engine.left.waiting(100) if row.op == "move")
    assert (moved.source, moved.path) == ("/old", "/moved")
    assert {row.since_ms for row in rows.values()} == {began_ms}
    mount.clock.advance(3)
    mount.engine.run_until_idle()
    row = waiting(mount)["/new"]
    assert row.attempts >= 1
    assert "503" in row.why
    assert row.next_try_s is not None
    assert row.next_try_s < 120
    assert row.since_ms == began_ms


@pytest.mark.promise("sync.queue-command")
def test_the_queue_says_that_the_server_is_away_and_what_it_refused(mount: Mount, server: FakeServer) -> None:
    server.reject["/bad"] = 422
    mount.write("/bad", b"1")
    mount.sync()
    server.down = True
    mount.write("/a", b"1")
    mount.step()
    rows = waiting(mount)
    assert rows["/a"].why == "the server is away"
    assert rows["/bad"].state == "parked"
    assert "refused on purpose" in rows["/bad"].why
    server.down = False
    server.reject.clear()
    assert mount.engine.retry("/bad") == 1
    mount.sync()
    assert waiting(mount) == {}
    assert server.tree() == {"/a": ("file", b"1"), "/bad": ("file", b"1")}


def test_what_comes_from_the_server_is_told_from_what_goes_there(mount: Mount, server: FakeServer) -> None:
    for path in ("/changed", "/deleted", "/both"):
        mount.write(path, b"1")
    mount.sync()
    server.fault("GET", "/v1/files/", status=503, times=100)
    mount.write("/both", b"2")
    server.write("/both", b"3")
    server.write("/changed", b"2")
    server.write("/added", b"2")
    server.remove("/deleted")
    mount.engine._take_in_all()
    mount.engine._puller.read_all()
    ops = {row.path: row.op for row in mount.engine.left.waiting(100)}
    assert ops == {"/both": "compare", "/changed": "fetch", "/added": "fetch", "/deleted": "remove"}
