"""What was sent and not answered is known as ours whenever the server turns out to hold it, whatever happened here since."""

from __future__ import annotations

from pathlib import Path

import pytest

from memdir.core.sqlite import Database
from memdir.sync.model import Fact
from memdir.sync.push.unanswered import TRIES_MAX, Sent
from tests.sync.conftest import Mount
from tests.sync.fake_server import FakeServer

BATCH = ("POST", "/v1/files:batch")


def lose_answer(server: FakeServer, *, before: bool = False) -> None:
    server.fault(*BATCH, before=before)


def in_agreement(mount: Mount, server: FakeServer) -> bool:
    mount.clock.advance(60)
    mount.sync()
    assert mount.engine.status().conflicts == 0
    return server.tree() == mount.tree()


@pytest.mark.parametrize("was_there", [True, False])
@pytest.mark.parametrize("lost", [1, 3])
def test_edits_after_a_lost_answer_whose_requests_are_lost_too_are_no_conflict(
    mount: Mount, server: FakeServer, lost: int, was_there: bool
) -> None:
    if was_there:
        mount.write("/a", b"0")
        mount.sync()
    mount.write("/a", b"1")
    lose_answer(server)
    mount.step()
    for number in range(lost):
        mount.write("/a", b"edit %d" % number)
        lose_answer(server, before=True)
        mount.clock.advance(60)
        mount.step()
    assert in_agreement(mount, server)
    assert mount.tree() == {"/a": ("file", b"edit %d" % (lost - 1))}


def test_an_edit_that_meets_the_unanswered_write_at_the_server_is_no_conflict(mount: Mount, server: FakeServer) -> None:
    mount.sync()
    mount.write("/a", b"1")
    lose_answer(server)
    mount.step()
    server.fault("GET", "/v1/changes", status=500)  # so that the next push does not know of it
    mount.write("/a", b"2")
    assert in_agreement(mount, server)
    assert mount.tree() == {"/a": ("file", b"2")}


def test_a_file_renamed_after_a_lost_answer_does_not_come_back_under_its_old_name(mount: Mount, server: FakeServer) -> None:
    mount.sync()
    mount.write("/a", b"1")
    lose_answer(server)
    mount.step()
    mount.mv("/a", "/b")
    mount.restart()
    assert in_agreement(mount, server)
    assert mount.tree() == {"/b": ("file", b"1")}


def test_what_others_put_on_top_of_an_unanswered_write_is_taken(mount: Mount, server: FakeServer) -> None:
    mount.sync()
    mount.write("/a", b"1")
    lose_answer(server)
    mount.step()
    server.write("/a", b"theirs, on top of 1")
    assert in_agreement(mount, server)
    assert mount.tree() == {"/a": ("file", b"theirs, on top of 1")}


def test_a_write_taken_back_before_its_answer_stays_taken_back(mount: Mount, server: FakeServer) -> None:
    mount.write("/a", b"old")
    mount.sync()
    mount.write("/a", b"new")
    lose_answer(server)
    mount.step()
    mount.write("/a", b"old")
    assert in_agreement(mount, server)
    assert mount.tree() == {"/a": ("file", b"old")}


def test_somebody_elses_contents_are_never_taken_for_ours(mount: Mount, server: FakeServer) -> None:
    mount.sync()
    mount.write("/a", b"1")
    lose_answer(server, before=True)
    mount.step()
    server.write("/a", b"theirs")
    mount.clock.advance(60)
    mount.sync()
    assert mount.engine.status().conflicts == 1
    assert sorted(content for _, content in server.tree().values()) == [b"1", b"theirs"]


def test_the_notes_of_a_path_are_bounded_and_end_with_a_decision(tmp_path: Path) -> None:
    db = Database(tmp_path / "sync.db", migrations="memdir.sync.schema")
    sent = Sent(db)

    def fact(number: int, revision: int = 0) -> Fact:
        return Fact(kind="file", content_hash=f"{number:064x}", mode=0o644, revision=revision)

    with db.write() as tx:
        for number in range(TRIES_MAX + 5):
            sent.note(tx, "/a", fact(number), on_revision=7)
            sent.note(tx, "/a", fact(number), on_revision=7)
    assert [sent.is_ours("/a", fact(number, 8)) for number in range(TRIES_MAX + 5)] == [False] * 5 + [True] * TRIES_MAX
    assert not sent.is_ours("/a", fact(TRIES_MAX, 7)), "that stood there before"
    assert not sent.is_ours("/b", fact(TRIES_MAX, 8))
    with db.write() as tx:
        sent.decided(tx, "/a", 7)
    assert sent.is_ours("/a", fact(TRIES_MAX, 8)), "7 is what it was sent on top of"
    with db.write() as tx:
        sent.note(tx, "/a", fact(1), on_revision=0)
        sent.overtaken(tx, "/a", 8)
    assert not sent.is_ours("/a", fact(TRIES_MAX, 9))
    assert sent.is_ours("/a", fact(1, 9)), "8 may be deleted, and then it comes through"
    with db.write() as tx:
        sent.decided(tx, "/a", 9)
    assert not sent.is_ours("/a", fact(1, 9))
    db.close()


def test_what_was_sent_to_an_empty_place_is_ours_also_when_it_arrived_after_somebody_elses(
    mount: Mount, server: FakeServer
) -> None:
    mount.sync()
    server.write("/a", b"theirs")
    server.remove("/a")
    server.fault("GET", "/v1/changes", status=500, times=2)  # so that the mount knows of neither
    mount.write("/a", b"1")
    lose_answer(server)
    mount.step()
    mount.write("/a", b"2")
    assert in_agreement(mount, server)
    assert mount.tree() == {"/a": ("file", b"2")}


def test_nothing_is_pushed_before_the_first_comparison(mount: Mount, server: FakeServer) -> None:
    mount.write("/a", b"1")
    mount.engine._take_in_all()
    mount.clock.advance(3)
    mount.engine.link.call(lambda client: client.changes("c", since=0))  # somebody else opens the connection
    assert not mount.engine._pusher.work_once()
    assert server.tree() == {}
    assert in_agreement(mount, server)
    assert server.tree() == {"/a": ("file", b"1")}


MOVE = ("POST", "/v1/files:move")


@pytest.mark.parametrize("rest", ["deleted", "rewritten", "deleted and rewritten later"])
def test_a_rename_whose_answer_was_lost_is_ours_whatever_became_of_the_file_since(
    mount: Mount, server: FakeServer, rest: str
) -> None:
    mount.write("/a", b"0")
    mount.sync()
    server.fault(*MOVE, status=502, before=False)
    server.fault("GET", "/v1/changes", status=500, times=1000)  # it comes late: it has a thread of its own
    mount.mv("/a", "/b")
    mount.step()
    assert "/b" in server.tree(), "done there, its answer lost"
    mount.rm("/b")
    if rest == "rewritten":
        mount.write("/b", b"1")
    mount.clock.advance(60)
    mount.step()
    server.faults.clear()
    if rest == "deleted and rewritten later":
        mount.write("/b", b"1")
    assert in_agreement(mount, server)
    assert mount.tree().get("/b") == (None if rest == "deleted" else ("file", b"1"))
