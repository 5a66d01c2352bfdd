"""The repair pass: what the feed never told is found, little is asked for it, and it runs when it should."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from memdir.client.errors import OfflineError
from memdir.core.clock import FakeClock
from memdir.sync.contents.retention import KeepingPolicy
from memdir.sync.plain.remote import PlainRemote
from memdir.sync.pull import repair
from memdir.sync.pull.repair import AGAIN_S, DONE_KEY, PERIOD_S, SPREAD_S
from memdir.sync.push.max_delete import MaxDelete
from tests.plain.conftest import PlainMount
from tests.plain.double import PlainServer
from tests.sync.conftest import Mount
from tests.sync.fake_server import FakeServer, Fault
from tests.sync.test_threads import Running, eventually, running

__all__ = ["running"]
LISTING = "GET /v1/files"
HOUR_S = 3600


def untold(server: FakeServer, change: Callable[[], None]) -> None:
    """The server changes and counts on, and its feed never says so."""
    told = len(server.changes)
    change()
    del server.changes[told:]


def fill(mount: Mount, count: int) -> None:
    mount.mkdir("/d")
    for number in range(count):
        mount.write(f"/d/{number}", str(number).encode())
    mount.sync()
    mount.engine.run_until_idle()


def damage(mount: Mount, sql: str, *bindings: object) -> None:
    with mount.engine._db.write() as tx:
        tx.execute(sql, bindings)  # type: ignore[arg-type]


def rows_of(mount: Mount, table: str) -> list[tuple[object, ...]]:
    return [tuple(row) for row in mount.engine._db.all(f"select * from {table}")]


def repaired(mount: Mount) -> int:
    found = mount.engine.repair()
    mount.sync()
    return found


def answering(server: FakeServer, monkeypatch: pytest.MonkeyPatch, *, entries: int = 1000) -> list[Callable[[], None]]:
    """Pages of the listing have so many entries, and before each the server does the next of the returned list."""
    real, meanwhile = server.handle, []  # type: ignore[var-annotated]

    def handle(request: httpx.Request):  # type: ignore[no-untyped-def]
        if request.url.path != "/v1/files":
            return real(request)
        request.url = request.url.copy_set_param("limit", str(entries))
        if meanwhile:
            meanwhile.pop(0)()
        return real(request)

    monkeypatch.setattr(server, "handle", handle)
    return meanwhile


# --- what is found ---------------------------------------------------------------------------------------------------


@pytest.mark.promise("sync.scan")
@pytest.mark.parametrize(
    ("change", "count"),
    [
        (lambda server: server.write("/d/new", b"new"), 1),
        (lambda server: server.write("/d/1", b"of somebody else"), 1),
        (lambda server: server.write("/d/1", b"1", mode=0o755), 1),
        (lambda server: server.write("/link", b"d/1", kind="symlink"), 1),
        (lambda server: server.remove("/d/2"), 1),
        (lambda server: server.remove("/d"), 6),
        (lambda server: server.rename("/d/3", "/e"), 2),
    ],
)
def test_what_the_feed_never_told_is_found_and_comes_into_the_mount(
    mount: Mount, server: FakeServer, change: Callable[[FakeServer], None], count: int
) -> None:
    fill(mount, 5)
    before = mount.tree(), mount.mode("/d/1")
    untold(server, lambda: change(server))
    mount.step()
    assert (mount.tree(), mount.mode("/d/1")) == before, "the feed alone must not have told it"
    there = server.tree()
    assert repaired(mount) == count
    assert mount.tree() == there == server.tree()
    assert {path: mount.mode(path) for path, entry in server.entries.items() if entry.kind == "file"} == {
        path: entry.mode for path, entry in server.entries.items() if entry.kind == "file"
    }
    assert mount.engine.repair() == 0


@pytest.mark.parametrize(
    "sql",
    [
        "delete from remote where path = cast('/d/1' as blob)",
        "delete from remote",
        "update remote set content_hash = 'other' where path = cast('/d/1' as blob)",
        "update remote set revision = revision + 1000, mode = 0 where path >= cast('/d/1' as blob)",
        "insert into remote select cast('/d/ghost' as blob), kind, content_hash, mode, revision, 0, 0 from remote limit 1",
    ],
)
def test_damaged_records_of_the_server_are_healed_and_cost_nobody_a_file(mount: Mount, server: FakeServer, sql: str) -> None:
    fill(mount, 5)
    before, seq, remote = mount.tree(), server.seq, rows_of(mount, "remote")
    damage(mount, sql)
    assert rows_of(mount, "remote") != remote
    assert repaired(mount) > 0
    assert rows_of(mount, "remote") == remote
    assert mount.tree() == server.tree() == before
    assert server.seq == seq
    assert mount.engine.repair() == 0


def test_an_edit_that_waits_here_is_kept_when_the_feed_never_told_of_another(mount: Mount, server: FakeServer) -> None:
    fill(mount, 3)
    untold(server, lambda: server.write("/d/1", b"theirs"))
    mount.write("/d/1", b"ours")
    mount.write("/d/2", b"edited")
    assert repaired(mount) == 1
    assert mount.tree() == server.tree()
    contents = {content for _, content in server.tree().values()}
    assert {b"theirs", b"ours", b"edited"} <= contents


def test_files_that_came_without_contents_do_not_differ(tmp_path: Path, server: FakeServer) -> None:
    mount = Mount(tmp_path / "lazy", server, keeping=KeepingPolicy(prefetch_bytes=0))
    for name in "abc":
        server.write(f"/{name}", name.encode() * 100)
    mount.sync()
    assert mount.engine.repair() == 0
    untold(server, lambda: server.write("/b", b"newer"))
    assert repaired(mount) == 1
    assert mount.read("/b") == b"newer"
    mount.engine.close()


# --- how much may go -------------------------------------------------------------------------------------------------


@pytest.mark.promise("sync.scan")
def test_more_missing_files_than_may_go_are_held_back_until_somebody_decides(tmp_path: Path, server: FakeServer) -> None:
    mount = Mount(tmp_path / "m", server, max_delete=MaxDelete(count=3, share=0.0))
    fill(mount, 8)
    before = mount.tree()
    for number in range(4):
        untold(server, lambda number=number: server.remove(f"/d/{number}"))  # type: ignore[misc]
    assert repaired(mount) == 4
    assert mount.tree() == before
    assert mount.engine.status().held_deletions == 4
    assert repaired(mount) == 0, "what is held back is known and is not found again"
    mount.engine.confirm_deletions()
    mount.sync()
    assert mount.tree() == server.tree()
    assert len(mount.tree()) == 5
    mount.engine.close()


# --- what it costs ---------------------------------------------------------------------------------------------------


def test_when_nothing_differs_one_listing_is_read_and_nothing_written(
    mount: Mount, server: FakeServer, caplog: pytest.LogCaptureFixture
) -> None:
    fill(mount, 5)
    kept = {table: rows_of(mount, table) for table in ("base", "remote", "queue", "mark")}
    server.requests.clear()
    caplog.clear()  # of the filling, when a test before left the log at this level
    with caplog.at_level(logging.INFO, "memdir.sync"):
        assert mount.engine.repair() == 0
    assert server.requests == ["GET /v1/changes", LISTING]
    assert {table: rows_of(mount, table) for table in kept} == kept
    assert caplog.messages == []


def test_a_finding_is_one_line_with_counts_and_paths(
    mount: Mount, server: FakeServer, caplog: pytest.LogCaptureFixture
) -> None:
    fill(mount, 5)
    untold(server, lambda: server.write("/d/1", b"x"))
    untold(server, lambda: server.remove("/d/2"))
    untold(server, lambda: server.write("/new", b"x"))
    mount.engine.repair()
    lines = [line for line in caplog.messages if "repair" in line]
    assert len(lines) == 1
    for part in ("3 paths", "1 not known here", "1 known only here", "1 other than known", "'/d/1', '/d/2', '/new'"):
        assert part in lines[0]


@pytest.mark.parametrize("entries", [1, 2, 3, 7])
def test_pages_are_compared_in_the_order_of_bytes(
    mount: Mount, server: FakeServer, monkeypatch: pytest.MonkeyPatch, entries: int
) -> None:
    """Folders, what sorts between a folder and what is in it, and characters that other orders put elsewhere."""
    for path in ("/a/b", "/a-b", "/a", "/a!", "/a0", "/ä", "/Z", "/\uffee", "/\U0001d11e", "/im/plied/folder", "/a/b-c", "/z"):
        server.write(path, b"" if path == "/a" else path.encode(), kind="dir" if path == "/a" else "file")
    mount.sync()
    answering(server, monkeypatch, entries=entries)
    server.requests.clear()
    assert mount.engine.repair() == 0
    assert server.requests.count(LISTING) >= 12 / entries
    untold(server, lambda: server.remove("/a-b"))
    untold(server, lambda: server.write("/\U0001d11e", b"other"))
    untold(server, lambda: server.write("/zz", b"last"))
    assert repaired(mount) == 3
    assert mount.tree().keys() >= server.tree().keys()
    assert "/a-b" not in mount.tree()


# --- a server that does not stand still ------------------------------------------------------------------------------


def test_what_changes_while_the_listing_is_read_is_no_finding(
    mount: Mount, server: FakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(mount, 9)
    meanwhile = answering(server, monkeypatch, entries=1)
    meanwhile += [
        lambda: server.write("/d/1", b"changed"), lambda: server.rename("/d/8", "/a"), lambda: server.remove("/d/0"),
        lambda: server.write("/d/2", b"changed"), lambda: server.write("/zz", b"new"), lambda: server.rename("/d", "/e"),
    ]  # fmt: skip
    assert mount.engine.repair() == 0
    assert meanwhile == []
    mount.sync()
    assert mount.tree() == server.tree()


@pytest.mark.promise("sync.scan")
def test_a_difference_is_found_although_the_server_never_stands_still(
    mount: Mount, server: FakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(mount, 9)
    untold(server, lambda: server.write("/d/4", b"untold"))
    meanwhile = answering(server, monkeypatch, entries=3)
    meanwhile += [
        lambda number=number: server.write("/d/3", str(number).encode())  # type: ignore[misc]
        for number in range(60)
    ]
    assert repaired(mount) == 1
    meanwhile.clear()
    mount.sync()
    assert mount.tree() == server.tree()
    assert mount.tree()["/d/4"] == ("file", b"untold")


def test_another_life_that_begins_meanwhile_is_left_to_the_feed(
    mount: Mount, server: FakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(mount, 60)
    before = mount.tree()
    answering(server, monkeypatch, entries=10).append(server.wipe)
    assert mount.engine.repair() == 0
    mount.sync()
    assert mount.tree() == before
    assert mount.engine.status().held_deletions == 61


# --- when ------------------------------------------------------------------------------------------------------------


def follow(mount: Mount, seconds: float, *, look_s: float = 25.0) -> int:
    """Let time pass as the feed's thread does; how many passes were made. The server is up."""
    begun = mount.server.requests.count(LISTING)
    for _ in range(int(seconds / look_s)):
        mount.clock.advance(look_s)
        mount.engine._puller.read_all()
        while mount.engine._repair.step_if_due():
            mount.engine._puller.read_all()
    return mount.server.requests.count(LISTING) - begun


def test_a_pass_comes_about_every_hour_and_not_in_step(tmp_path: Path, server: FakeServer) -> None:
    moments, late = set(), set()
    for seed in range(3):
        mount = Mount(tmp_path / str(seed), server, seed=seed)
        mount.sync()
        assert follow(mount, PERIOD_S / 2) == 0, "everything was just compared"
        assert 9 <= follow(mount, 10 * HOUR_S, look_s=100.0) <= 14
        moments.add(mount.engine._db.one("select value from meta where key = ?", (DONE_KEY,)))
        mount.clock.advance(2 * HOUR_S)  # all were without a server, and all hear at once that it is back
        late.add(next(second for second in range(99) if follow(mount, 1.0, look_s=1.0)))
        mount.engine.close()
    assert len(moments) == len(late) == 3
    assert max(late) <= SPREAD_S + 1


def test_restarts_neither_put_a_pass_off_nor_begin_with_one(mount: Mount) -> None:
    mount.sync()
    passes = 0
    for _ in range(30):
        passes += follow(mount, 600.0)
        mount.restart()
    assert 4 <= passes <= 7, "in five hours"
    mount.clock.advance(3 * HOUR_S)
    mount.restart()
    assert follow(mount, SPREAD_S + 60.0) == 1, "nobody looked for three hours"


def test_a_wall_clock_that_was_put_back_does_not_stop_it(mount: Mount) -> None:
    mount.sync()
    follow(mount, 2 * HOUR_S)
    mount.clock = FakeClock(now_ns=mount.clock.now_ns() - 86_400 * 10**9)
    mount.restart()
    assert follow(mount, SPREAD_S + 60.0) == 1


@pytest.mark.promise("sync.scan")
def test_after_more_than_an_hour_without_a_server_a_pass_comes_soon_but_not_offline(mount: Mount, server: FakeServer) -> None:
    fill(mount, 3)
    untold(server, lambda: server.remove("/d/1"))
    follow(mount, 300.0)
    server.down = True
    mount.clock.advance(HOUR_S + 60.0)
    before = mount.tree(), rows_of(mount, "remote")
    with pytest.raises(OfflineError):
        mount.engine.repair()
    assert LISTING not in server.requests[-2:]
    assert (mount.tree(), rows_of(mount, "remote")) == before
    server.down = False
    assert follow(mount, SPREAD_S + 60.0) >= 1
    mount.sync()
    assert mount.tree() == server.tree()


def test_a_listing_that_fails_breaks_the_pass_off_and_does_not_close_the_connection(mount: Mount, server: FakeServer) -> None:
    fill(mount, 3)
    follow(mount, 60.0)
    done = rows_of(mount, "meta")
    server.fault("GET", "/v1/files", status=500)
    mount.clock.advance(HOUR_S)
    assert follow(mount, SPREAD_S + 60.0) == 1
    assert mount.engine.link.is_open()
    assert rows_of(mount, "meta") == done
    assert follow(mount, AGAIN_S - 200.0) == 0
    assert follow(mount, 300.0) == 1
    assert rows_of(mount, "meta") != done


def test_a_comparison_that_fails_is_made_before_anything_is_pushed(mount: Mount, server: FakeServer) -> None:
    fill(mount, 3)
    untold(server, lambda: server.write("/d/1", b"theirs"))
    passed = server.requests.count(LISTING) + 1
    server.faults.append(
        Fault(matches=lambda request: request.url.path == "/v1/files" and server.requests.count(LISTING) > passed)
    )
    with pytest.raises(OfflineError):
        mount.engine.repair()
    mount.write("/d/1", b"ours")
    mount.restart()
    mount.clock.advance(60.0)
    mount.sync()
    assert mount.tree() == server.tree()
    assert {b"ours", b"theirs"} <= {content for _, content in server.tree().values()}


def test_a_plain_server_has_its_own_scan_and_is_asked_no_second_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    server = PlainServer()
    mount = PlainMount(tmp_path, server.client)
    mount.write("/a.md", b"a")
    mount.sync()
    monkeypatch.setattr(PlainRemote, "list_files", None)  # whoever calls it fails
    assert mount.engine.repair() == 0
    mount.close()


# --- the thread ------------------------------------------------------------------------------------------------------


@pytest.mark.promise("sync.scan")
def test_the_feed_s_thread_makes_the_pass_and_hears_of_changes_meanwhile(
    running: Running, server: FakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(repair, "SPREAD_S", 0.0)
    for number in range(30):
        server.write(f"/{number:02}", b"x")
    assert eventually(server, running, "/29", b"x")
    untold(server, lambda: server.write("/07", b"untold"))
    answering(server, monkeypatch, entries=2).append(lambda: server.write("/new", b"told"))
    running.engine._repair._due_s = 0.0
    server.write("/wake", b"told")
    assert eventually(server, running, "/07", b"untold")
    assert eventually(server, running, "/new", b"told")
