"""What goes wrong between a mount and a server without `/v1`, and that nothing is lost or made twice by it."""

from __future__ import annotations

import pytest

from tests.plain.conftest import PlainMount, settled
from tests.plain.double import POISON, PlainServer

pytestmark = pytest.mark.promise("sync.plain")
CALLS = [("POST", "/v3/documents"), ("POST", "/v3/documents/file"), ("PATCH", "/v3/documents/"), ("DELETE", "/v3/documents/")]


def posts(server: PlainServer) -> int:
    return sum(request in ("POST /v3/documents", "POST /v3/documents/file") for request in server.requests)


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("before", [True, False])
def test_a_lost_request_or_answer_neither_loses_nor_repeats(
    mount: PlainMount, server: PlainServer, call: tuple[str, str], before: bool
) -> None:
    mount.mkdir("/d")
    for name in ("a", "b", "gone"):
        mount.write(f"/d/{name}", name.encode())
    mount.sync()
    method, path = call
    server.faults = []
    server.fault(method, path, status=None, before=before)
    server.faults[0].matches = lambda verb, url: (
        verb == method and (url == path or (path.endswith("/") and url.startswith(path)))
    )
    mount.write("/new.md", b"new\n")
    mount.write("/new.bin", b"\xff\x00")
    mount.write("/d/a", b"changed")
    mount.rm("/d/gone")
    mount.mv("/d", "/e")
    settled(mount)
    assert server.faults[0].times == 0, "the fault was met"
    assert mount.files() == {"/new.md": b"new\n", "/new.bin": b"\xff\x00", "/e/a": b"changed", "/e/b": b"b"}
    server.settle()
    assert server.paths() == sorted(mount.files()), "one document for each file"
    assert mount.engine.status().conflicts == 0


def test_a_request_to_wait_is_followed(mount: PlainMount, server: PlainServer) -> None:
    mount.sync()
    mount.write("/a", b"1")
    server.fault("POST", "/v3/documents", status=429, headers={"Retry-After": "30"})
    server.faults[0].matches = lambda method, path: (method, path) == ("POST", "/v3/documents")
    mount.step()
    count = len(server.requests)
    mount.clock.advance(20)
    mount.engine.run_until_idle()
    assert len(server.requests) == count
    mount.clock.advance(15)
    settled(mount)
    assert server.paths() == ["/a"]


def test_a_wrong_key_keeps_the_queue(mount: PlainMount, server: PlainServer) -> None:
    mount.sync()
    server.fault("POST", "/v3/documents", status=401, times=100)
    mount.write("/a", b"1")
    mount.step()
    status = mount.engine.status()
    assert (status.queue_length, status.parked, status.link.online) == (1, 0, False)
    server.faults.clear()
    settled(mount)
    assert server.paths() == ["/a"]


def test_what_the_server_cannot_process_is_parked_with_its_reason_and_stays_here(
    mount: PlainMount, server: PlainServer
) -> None:
    text = f"this {POISON}".encode()
    mount.write("/bad.md", text)
    mount.write("/good.md", b"good")
    mount.sync()
    [row] = mount.engine.parked_rows(5)
    assert row.path == "/bad.md"
    assert "no text could be made of it" in row.error
    for _ in range(server.drop_after + 5):
        server.handle("GET", "/v3/nothing", {}, b"")
    settled(mount)
    assert server.paths() == ["/good.md"], "the server dropped it"
    assert mount.files() == {"/bad.md": text, "/good.md": b"good"}
    mount.write("/bad.md", b"better")
    settled(mount)
    assert server.paths() == ["/bad.md", "/good.md"]


def test_a_file_whose_new_contents_fail_keeps_them_here_and_nobody_loses_the_old_ones(
    mount: PlainMount, other: PlainMount, server: PlainServer
) -> None:
    mount.write("/a", b"old")
    settled(mount, other)
    bad = f"new, and {POISON}".encode()
    mount.write("/a", bad)
    mount.sync()
    other.clock.advance(5)
    other.sync()
    for _ in range(server.drop_after + 5):
        server.handle("GET", "/v3/nothing", {}, b"")
    for one in (mount, other):
        one.clock.advance(1000)
        one.sync()
    assert server.paths() == []
    assert (mount.read("/a"), other.read("/a")) == (bad, b"old")
    mount.write("/a", b"better")
    settled(mount, other)
    assert other.read("/a") == b"better"


def test_one_document_that_cannot_be_read_does_not_hold_up_the_others(mount: PlainMount, server: PlainServer) -> None:
    mount.sync()
    made = server.put("/first", "1")
    server.put("/second", "2")
    server.fault("GET", f"/v3/documents/{made}", status=500, times=1000)
    mount.clock.advance(5)
    mount.engine.run_until_idle()
    assert mount.files() == {"/second": b"2"}
    server.faults.clear()
    settled(mount)
    assert mount.files() == {"/first": b"1", "/second": b"2"}


def test_documents_with_equal_times_on_several_pages_all_arrive(mount: PlainMount, server: PlainServer) -> None:
    server.same_times = 100_000
    server.put("/before", "0")
    mount.sync()
    for number in range(450):
        server.put(f"/d/{number:03}", f"text {number}")
        if number == 220:
            mount.clock.advance(5)
            mount.engine.run_until_idle()
    settled(mount)
    assert len(mount.files()) == 451


def test_an_edit_between_our_look_and_our_change_is_a_conflict_and_keeps_both(mount: PlainMount, server: PlainServer) -> None:
    mount.write("/a.md", b"first")
    mount.sync()
    server.put("/a.md", "theirs")
    mount.write("/a.md", b"ours")
    settled(mount)
    assert sorted(mount.files().values()) == [b"ours", b"theirs"]
    assert mount.read("/a.md") == b"theirs"


def test_two_creations_at_one_path_keep_both(mount: PlainMount, other: PlainMount, server: PlainServer) -> None:
    mount.sync()
    other.sync()
    mount.write("/a.md", b"from the laptop")
    other.write("/a.md", b"from the desktop")

    def faster(method: str, path: str) -> None:
        if (method, path) != ("POST", "/v3/documents"):
            server.between = faster
            return
        other.clock.advance(3)
        other.engine.run_until_idle()

    server.between = faster
    mount.step()
    settled(mount, other)
    assert sorted(mount.files().values()) == [b"from the desktop", b"from the laptop"]
    server.settle()
    assert server.paths() == sorted(mount.files())


def test_two_documents_of_others_at_one_path_are_both_shown(mount: PlainMount, other: PlainMount, server: PlainServer) -> None:
    server.put_file("/a.bin", b"\xff1")
    server.put_file("/a.bin", b"\xff2")
    settled(mount, other)
    files = mount.files()
    assert files.pop("/a.bin") == b"\xff1", "the older keeps the name"
    [(path, content)] = files.items()
    assert path.startswith("/a (conflict 2023-11-15 ")
    assert content == b"\xff2"


def test_a_document_in_the_place_of_a_folder_moves_aside(mount: PlainMount, server: PlainServer) -> None:
    server.put("/d", "in the way")
    server.put("/d/x", "below")
    settled(mount)
    assert mount.read("/d/x") == b"below"
    assert sorted(mount.files().values()) == [b"below", b"in the way"]


def test_a_server_that_was_put_back_loses_nothing(mount: PlainMount, other: PlainMount, server: PlainServer) -> None:
    for number in range(3):
        mount.write(f"/old-{number}", b"1")
    settled(mount, other)
    restore = server.snapshot()
    mount.write("/old-0", b"2")
    mount.write("/new", b"3")
    settled(mount, other)
    epoch = mount.records.epoch
    restore()
    settled(mount, other)
    assert mount.records.epoch != epoch
    assert {b"1", b"2", b"3"} <= set(mount.files().values())


def test_a_wiped_container_gets_everything_back(mount: PlainMount, other: PlainMount, server: PlainServer) -> None:
    for number in range(5):
        mount.write(f"/{number}", b"%d" % number)
    settled(mount, other)
    before = mount.files()
    server.documents.clear()
    for one in (mount, other):
        one.restart()
        one.clock.advance(5)
        one.sync()
        assert one.files() == before
        assert one.engine.status().held_deletions == 5, "asked first"
    assert server.paths() == []
    assert mount.engine.upload_again() == 5
    mount.sync()
    assert other.engine.upload_again() == 5
    settled(mount, other)
    assert mount.files() == other.files() == before
    server.settle()
    assert server.paths() == sorted(before)


def test_lost_records_are_learned_again_and_nothing_is_deleted(mount: PlainMount, server: PlainServer) -> None:
    for number in range(40):
        mount.write(f"/{number}", b"%d" % number)
    mount.sync()
    before = mount.files()
    mount.close()
    for file in mount.folder.glob("plain.db*"):
        file.unlink()
    mount.reopen()
    settled(mount)
    assert mount.files() == before
    assert len(server.paths()) == 40
