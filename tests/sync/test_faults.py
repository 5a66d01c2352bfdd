"""What goes wrong on the way: lost answers, refusals, crashes, a server that is away, wiped or restored."""

from __future__ import annotations

import random

import pytest

from memdir.client.errors import AuthError
from memdir.client.remote import Remote
from memdir.core.clock import FakeClock
from memdir.sync.link import Link
from tests.sync.conftest import Mount
from tests.sync.fake_server import KEY, FakeServer


def test_a_mount_works_without_a_server_and_converges_when_it_comes(mount: Mount, server: FakeServer) -> None:
    server.down = True
    mount.write("/a", b"1")
    mount.step()
    status = mount.engine.status()
    assert not status.link.online
    assert status.link.since_ms is not None
    assert status.queue_length == 1
    assert mount.tree() == {"/a": ("file", b"1")}
    server.down = False
    mount.clock.advance(60)
    mount.sync()
    assert server.tree() == mount.tree()
    assert mount.engine.status().link.online


def test_offline_is_told_since_its_beginning(mount: Mount, server: FakeServer) -> None:
    mount.sync()
    before_ms = mount.clock.now_ns() // 1_000_000
    server.down = True
    for _ in range(5):
        mount.clock.advance(60)
        mount.engine.run_until_idle()
    since_ms = mount.engine.status().link.since_ms
    assert since_ms is not None
    assert before_ms <= since_ms <= before_ms + 60_000


@pytest.mark.parametrize("call", [("POST", "/v1/files:batch"), ("POST", "/v1/files:move"), ("PUT", "/v1/files/")])
@pytest.mark.parametrize("status", [None, 500, 503, 408])
@pytest.mark.parametrize("before", [True, False])
def test_a_lost_request_or_answer_neither_loses_nor_repeats(
    mount: Mount, server: FakeServer, call: tuple[str, str], status: int | None, before: bool
) -> None:
    mount.mkdir("/d")
    mount.write("/d/a", b"1")
    mount.sync()
    server.fault(*call, status=status, before=before)
    mount.mv("/d", "/e")
    mount.write("/small", b"2")
    mount.write("/large", b"3" * 3_000_000)
    mount.rm("/e/a")
    mount.sync()
    mount.clock.advance(300)
    mount.sync()
    assert server.faults[0].times == 0, "the fault was met"
    assert server.tree() == mount.tree()
    assert mount.engine.status().conflicts == 0


def test_an_edit_after_a_lost_answer_is_no_conflict(mount: Mount, server: FakeServer) -> None:
    mount.write("/a", b"1")
    mount.sync()
    mount.write("/a", b"2")
    server.fault("POST", "/v1/files:batch", status=None, before=False)
    mount.step()
    assert server.tree()["/a"] == ("file", b"2")
    mount.write("/a", b"3")
    mount.clock.advance(60)
    mount.sync()
    assert server.tree() == mount.tree() == {"/a": ("file", b"3")}
    assert mount.engine.status().conflicts == 0


def test_a_crash_after_a_lost_answer_and_an_edit_is_no_conflict(mount: Mount, server: FakeServer) -> None:
    mount.write("/a", b"1")
    server.fault("POST", "/v1/files:batch", status=None, before=False)
    mount.step()
    mount.restart()
    mount.write("/a", b"2")
    mount.sync()
    assert server.tree() == mount.tree() == {"/a": ("file", b"2")}


def test_put_delete_put_of_the_same_bytes_is_not_mistaken_for_a_repetition(mount: Mount, server: FakeServer) -> None:
    for _ in range(3):
        mount.write("/a", b"same")
        mount.sync()
        assert server.tree() == {"/a": ("file", b"same")}
        mount.rm("/a")
        mount.sync()
        assert server.tree() == {}


def test_429_is_waited_for_as_long_as_asked(mount: Mount, server: FakeServer) -> None:
    mount.sync()
    mount.write("/a", b"1")
    server.fault("POST", "/v1/files:batch", status=429, headers={"Retry-After": "30"})
    mount.step()
    count = server.requests.count("POST /v1/files:batch")
    mount.clock.advance(20)
    mount.engine.run_until_idle()
    assert server.requests.count("POST /v1/files:batch") == count
    mount.clock.advance(15)
    mount.sync()
    assert server.tree() == {"/a": ("file", b"1")}


@pytest.mark.parametrize("status", [413, 415, 422, 400])
def test_a_rejected_file_is_parked_with_the_reason_until_it_is_edited(mount: Mount, server: FakeServer, status: int) -> None:
    server.reject["/bad"] = status
    mount.write("/bad", b"1")
    mount.write("/good", b"2")
    mount.sync()
    assert set(server.tree()) == {"/good"}
    [row] = mount.engine.parked_rows(10)
    assert "refused on purpose" in row.error
    count = server.requests.count("POST /v1/files:batch")
    mount.step()
    assert server.requests.count("POST /v1/files:batch") == count, "a parked row is not sent again by itself"
    del server.reject["/bad"]
    mount.write("/bad", b"3")
    mount.sync()
    assert server.tree()["/bad"] == ("file", b"3")
    assert mount.engine.status().parked == 0


def test_retry_gives_a_parked_file_a_new_try(mount: Mount, server: FakeServer) -> None:
    server.reject["/bad"] = 422
    mount.write("/bad", b"1")
    mount.sync()
    server.reject.clear()
    assert mount.engine.retry("/elsewhere") == 0
    assert mount.engine.retry(None) == 1
    mount.sync()
    assert server.tree() == mount.tree()


def test_a_wrong_key_stops_the_pushes_and_keeps_the_queue(mount: Mount, server: FakeServer) -> None:
    mount.sync()
    server.key = "another"
    mount.write("/a", b"1")
    mount.step()
    status = mount.engine.status()
    assert status.queue_length == 1
    assert status.parked == 0
    assert not status.link.online
    assert "401" in (status.link.error or "")
    assert status.link.hint
    server.key = "md_test_key_0123456789abcdef"
    mount.clock.advance(60)
    mount.sync()
    assert server.tree() == mount.tree()


def test_a_key_that_may_not_change_a_path_parks_it_and_everything_else_goes_on(mount: Mount, server: FakeServer) -> None:
    mount.sync()
    server.reject["/theirs"] = 403
    mount.write("/theirs", b"1")
    mount.write("/mine", b"2")
    mount.sync()
    server.write("/new", b"3")
    mount.sync()
    assert mount.engine.status().link.online
    assert [(row.path, "may not change" in row.error) for row in mount.engine.parked_rows(9)] == [("/theirs", True)]
    assert {"/mine", "/new"} <= set(server.tree())
    assert "/new" in mount.tree()
    del server.reject["/theirs"]
    server.down = True
    mount.step()
    server.down = False
    mount.clock.advance(60)
    mount.sync()
    assert server.tree() == mount.tree()


def test_credentials_that_changed_are_used_with_the_next_call(server: FakeServer) -> None:
    stamps = ["old"]
    link = Link(server.client, clock=FakeClock(), rng=random.Random(1), stamp=lambda: stamps[0])
    server.key = "another"
    with pytest.raises(AuthError):
        link.call(lambda client: client.processing_count("c"))
    server.key = KEY
    assert link.wait_s() > 10
    assert not link.look_at_credentials()
    stamps[0] = "new"
    assert link.look_at_credentials()
    assert link.wait_s() == 0
    assert link.call(lambda client: client.processing_count("c")) == 0
    assert not link.look_at_credentials()


def test_credentials_that_come_with_the_connection_are_no_others(server: FakeServer) -> None:
    """Connecting may start the local server, whose address is part of the credentials."""
    stamps = ["stopped"]

    def started() -> Remote:
        stamps[0] = "running"
        return server.client()

    link = Link(started, clock=FakeClock(), rng=random.Random(1), stamp=lambda: stamps[0])
    assert link.call(lambda client: client.processing_count("c")) == 0
    assert not link.look_at_credentials()
    assert link.is_open()


def test_an_unsynced_edit_survives_a_crash_of_the_daemon_at_any_step(mount: Mount, server: FakeServer) -> None:
    mount.write("/a", b"1")
    mount.restart()
    mount.clock.advance(1)
    mount.restart()
    mount.engine.run_until_idle()
    mount.restart()
    mount.write("/a", b"2")
    mount.engine.run_until_idle()
    mount.restart()
    mount.sync()
    assert server.tree() == mount.tree() == {"/a": ("file", b"2")}


def test_a_rename_survives_a_crash_between_the_answer_and_the_feed(mount: Mount, server: FakeServer) -> None:
    mount.write("/a", b"1")
    mount.sync()
    mount.mv("/a", "/b")
    server.fault("GET", "/v1/changes", status=None, times=0)
    mount.step()
    mount.restart()
    mount.sync()
    assert server.tree() == mount.tree() == {"/b": ("file", b"1")}


def test_a_feed_that_was_cut_off_is_replaced_by_a_comparison(mount: Mount, server: FakeServer) -> None:
    for number in range(10):
        server.write(f"/{number}", b"1")
    mount.sync()
    server.remove("/3")
    server.write("/4", b"2")
    server.feed_from = server.seq
    mount.step()
    mount.sync()
    assert mount.tree() == server.tree()


def test_a_comparison_that_would_delete_most_of_a_tree_asks_first(mount: Mount, server: FakeServer) -> None:
    for number in range(60):
        server.write(f"/{number}", b"1")
    mount.sync()
    for number in range(50):
        server.remove(f"/{number}")
    server.feed_from = server.seq
    mount.step()
    mount.sync()
    assert len(mount.tree()) == 60
    assert mount.engine.status().held_deletions == 50
    mount.engine.confirm_deletions()
    mount.step()
    mount.sync()
    assert mount.tree() == server.tree()
    assert mount.engine.status().held_deletions == 0


def test_a_file_that_changes_at_the_server_while_it_is_fetched_is_fetched_again(mount: Mount, server: FakeServer) -> None:
    mount.sync()
    server.write("/a", b"1")
    seen: list[str] = []
    real = server.handle

    def handle(request):  # type: ignore[no-untyped-def]
        if request.method == "GET" and request.url.path == "/v1/files/a" and not seen:
            seen.append("once")
            server.write("/a", b"newer")
        return real(request)

    server.handle = handle  # type: ignore[method-assign]
    mount.sync()
    assert seen
    assert mount.tree() == server.tree() == {"/a": ("file", b"newer")}


def test_a_502_page_instead_of_json_is_an_outage_and_not_a_crash(mount: Mount, server: FakeServer) -> None:
    mount.sync()
    mount.write("/a", b"1")
    server.fault("POST", "/v1/files:batch", status=502, times=3)
    mount.step()
    mount.clock.advance(300)
    mount.sync()
    assert server.tree() == mount.tree()


def test_a_delete_by_another_of_a_put_whose_answer_was_lost_is_final(mount: Mount, server: FakeServer) -> None:
    mount.write("/a", b"1")
    server.fault("POST", "/v1/files:batch", status=None, before=False)
    mount.step()
    server.remove("/a")
    mount.clock.advance(60)
    mount.sync()
    assert mount.tree() == server.tree() == {}
