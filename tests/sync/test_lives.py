"""Another life of the server: wiped, put back from an old backup, grown on from there; and what is held back until asked."""

from __future__ import annotations

from pathlib import Path

import pytest

from memdir.core.errors import UsageError
from memdir.sync.pull.epochs import MARKS_MAX, Marks
from memdir.sync.push.max_delete import MaxDelete, parse_max_delete
from tests.sync.conftest import Mount
from tests.sync.fake_server import FakeServer


def settle(*mounts: Mount) -> None:
    """Let everybody hear of everybody."""
    for _ in range(3):
        for mount in mounts:
            mount.step()
            mount.sync()


def conflicts(tree: dict[str, tuple[str, bytes]]) -> list[str]:
    return [path for path in tree if "(conflict" in path]


def texts(tree: dict[str, tuple[str, bytes]]) -> dict[str, bytes]:
    return {path: content for path, (kind, content) in tree.items() if kind == "file"}


# --- wiped -----------------------------------------------------------------------------------------------------------


def fill(mount: Mount, count: int) -> None:
    mount.mkdir("/d")
    for number in range(count):
        mount.write(f"/d/{number}", str(number).encode())
    mount.sync()


@pytest.mark.parametrize("count", [3, 60])
def test_after_a_wipe_nothing_is_deleted_and_nothing_is_put_before_somebody_decides(
    mount: Mount, server: FakeServer, count: int
) -> None:
    fill(mount, count)
    before = mount.tree()
    server.wipe()
    settle(mount)
    assert mount.tree() == before
    assert server.tree() == {}
    assert mount.engine.status().held_deletions == count + 1
    assert mount.engine.status().other_life


def test_what_a_wiped_server_lost_is_put_again_when_somebody_says_so(mount: Mount, server: FakeServer) -> None:
    fill(mount, 5)
    before = mount.tree()
    server.wipe()
    settle(mount)
    assert mount.engine.upload_again() == 6
    settle(mount)
    assert server.tree() == mount.tree() == before
    assert mount.engine.status().held_deletions == 0


def test_what_a_wiped_server_lost_is_deleted_here_when_somebody_says_so(mount: Mount, server: FakeServer) -> None:
    fill(mount, 40)
    server.wipe()
    settle(mount)
    assert mount.engine.confirm_deletions() == 41
    settle(mount)
    assert server.tree() == mount.tree() == {}


def test_while_files_are_held_back_the_mount_works_on_and_new_work_is_pushed(mount: Mount, server: FakeServer) -> None:
    fill(mount, 40)
    server.wipe()
    settle(mount)
    mount.write("/new", b"new")
    mount.write("/d/1", b"edited")
    mount.mv("/d/2", "/moved")
    mount.rm("/d/3")
    settle(mount)
    assert texts(server.tree()) == {"/new": b"new", "/d/1": b"edited", "/moved": b"2"}
    assert len(texts(mount.tree())) == 40
    assert mount.engine.status().held_deletions == 38
    mount.restart()
    settle(mount)
    assert mount.engine.status().held_deletions == 38
    mount.engine.upload_again()
    settle(mount)
    assert server.tree() == mount.tree()


def test_a_stranger_s_file_at_a_held_path_takes_nothing_away(mount: Mount, server: FakeServer) -> None:
    fill(mount, 40)
    server.wipe()
    settle(mount)
    server.write("/d/1", b"a stranger's")
    server.write("/d/2", b"2")
    settle(mount)
    kept = texts(mount.tree())
    assert kept["/d/1"] == b"a stranger's"
    assert b"1" in {content for path, content in kept.items() if "(conflict" in path}
    assert len(conflicts(mount.tree())) == 1


def test_of_two_mounts_one_puts_everything_again_and_the_other_agrees(mount: Mount, other: Mount, server: FakeServer) -> None:
    fill(mount, 40)
    settle(mount, other)
    before = mount.tree()
    server.wipe()
    settle(mount, other)
    assert other.engine.status().held_deletions == 41
    mount.engine.upload_again()
    settle(mount, other)
    assert mount.tree() == other.tree() == server.tree() == before
    assert other.engine.status().held_deletions == 0


# --- put back from a backup ------------------------------------------------------------------------------------------


def test_what_came_after_the_backup_is_done_again(mount: Mount, server: FakeServer) -> None:
    for name in ("edited", "deleted", "moved", "same"):
        mount.write(f"/{name}", b"old")
    mount.sync()
    back = server.snapshot()
    mount.write("/edited", b"newer")
    mount.rm("/deleted")
    mount.mv("/moved", "/moved-on")
    mount.write("/new", b"new")
    mount.sync()
    wanted = mount.tree()
    back()
    settle(mount)
    assert server.tree() == mount.tree() == wanted


def test_a_server_that_counted_on_after_it_was_put_back_is_noticed(mount: Mount, other: Mount, server: FakeServer) -> None:
    mount.write("/a", b"old")
    settle(mount, other)
    back = server.snapshot()
    mount.write("/b", b"lost at the server")
    mount.sync()
    back()
    for number in range(5):
        server.write(f"/theirs-{number}", b"theirs")  # beyond the number that `mount` has reached, in the same epoch
    assert server.seq > 2
    settle(mount, other)
    assert texts(mount.tree()) == texts(other.tree()) == texts(server.tree())
    assert texts(mount.tree()) == {
        "/a": b"old", "/b": b"lost at the server", **{f"/theirs-{number}": b"theirs" for number in range(5)}
    }  # fmt: skip


def test_two_edits_on_top_of_the_backup_are_both_kept(mount: Mount, server: FakeServer) -> None:
    mount.write("/a", b"old")
    mount.sync()
    back = server.snapshot()
    mount.write("/a", b"of the lost day")
    mount.sync()
    back()
    server.write("/a", b"of the new day")
    server.write("/c", b"more")
    settle(mount)
    assert {b"of the lost day", b"of the new day"} <= set(texts(server.tree()).values())
    assert server.tree() == mount.tree()


def test_an_edit_after_the_backup_of_what_nobody_touched_since_is_an_ordinary_pull(mount: Mount, server: FakeServer) -> None:
    mount.write("/a", b"old")
    mount.sync()
    back = server.snapshot()
    mount.write("/b", b"1")
    mount.sync()
    back()
    server.write("/a", b"new")
    settle(mount)
    assert texts(mount.tree()) == {"/a": b"new", "/b": b"1"}
    assert conflicts(mount.tree()) == []


def test_a_file_deleted_before_the_backup_does_not_come_back(mount: Mount, other: Mount, server: FakeServer) -> None:
    for name in "abc":
        mount.write(f"/{name}", name.encode())
    settle(mount, other)
    server.remove("/a")
    back = server.snapshot()
    mount.sync()
    mount.write("/d", b"d")
    mount.sync()
    back()
    settle(mount, other)
    assert texts(mount.tree()) == texts(other.tree()) == texts(server.tree()) == {"/b": b"b", "/c": b"c", "/d": b"d"}


def test_a_backup_younger_than_all_this_mount_knows_is_no_other_life_for_it(mount: Mount, server: FakeServer) -> None:
    """`memdir server restore` gives every container a new epoch; the history up to here is still the same."""
    mount.write("/a", b"old")
    mount.sync()
    server.write("/b", b"theirs")
    server.remove("/a")
    server.epoch += "-restored"
    settle(mount)
    assert texts(mount.tree()) == texts(server.tree()) == {"/b": b"theirs"}


def test_edits_that_were_never_sent_survive_the_restored_server(mount: Mount, server: FakeServer) -> None:
    mount.write("/a", b"old")
    mount.sync()
    back = server.snapshot()
    mount.write("/a", b"sent")
    mount.sync()
    server.down = True
    mount.write("/a", b"never sent")
    mount.write("/n", b"new")
    mount.step()
    back()
    server.down = False
    mount.clock.advance(60)
    settle(mount)
    assert server.tree() == mount.tree()
    assert texts(server.tree()) == {"/a": b"never sent", "/n": b"new"}


def test_a_backup_that_lacks_most_of_it_is_a_question_too(tmp_path: Path, server: FakeServer) -> None:
    mount = Mount(tmp_path / "m", server)
    mount.write("/first", b"1")
    mount.sync()
    back = server.snapshot()
    fill(mount, 40)
    before = mount.tree()
    back()
    settle(mount)
    assert mount.engine.status().held_deletions == 41
    assert server.tree() == {"/first": ("file", b"1")}
    mount.engine.upload_again()
    settle(mount)
    assert server.tree() == mount.tree() == before
    mount.engine.close()


def test_many_deletions_that_a_backup_undid_are_not_repeated_unasked(mount: Mount, server: FakeServer) -> None:
    fill(mount, 60)
    back = server.snapshot()
    for number in range(50):
        mount.rm(f"/d/{number}")
    mount.sync()
    assert len(texts(server.tree())) == 10
    back()
    settle(mount)
    assert len(texts(server.tree())) == len(texts(mount.tree())) == 60


# --- the ladder of marks -----------------------------------------------------------------------------------------------


def test_the_common_point_is_found_close_to_where_the_histories_part(mount: Mount, server: FakeServer) -> None:
    for number in range(300):
        server.write(f"/{number % 20}", str(number).encode())
        mount.engine._puller.read_all()
        if number == 250:
            back = server.snapshot()
    marks = Marks(mount.engine._db)
    link = mount.engine.link
    assert marks.common_point(link, "c") == 300
    back()
    for number in range(100):
        server.write("/x", str(number).encode())
    assert 200 < marks.common_point(link, "c") <= 251
    kept = mount.engine._db.all("select seq from mark order by seq")
    assert len(kept) <= MARKS_MAX
    assert kept[0][0] < 50, "the ladder reaches back to the beginning"
    server.wipe()
    assert marks.common_point(link, "c") == 0


def test_a_server_without_tokens_has_no_common_point(mount: Mount, server: FakeServer) -> None:
    mount.write("/a", b"1")
    mount.sync()
    server.tokens.clear()
    marks = Marks(mount.engine._db)
    assert marks.common_point(mount.engine.link, "c") == 0


# --- how much may go ---------------------------------------------------------------------------------------------------


def test_how_much_may_go_is_a_number_or_a_share() -> None:
    assert parse_max_delete("") == MaxDelete()
    assert parse_max_delete("7").allows(7, 10)
    assert not parse_max_delete("7").allows(8, 1000)
    assert parse_max_delete("50%").allows(5, 10)
    assert not parse_max_delete("50%").allows(6, 10)
    assert not parse_max_delete("0").allows(1, 1000)
    for text in ("-1", "101%", "half", "1.5"):
        with pytest.raises(UsageError, match="neither a number"):
            parse_max_delete(text)


def test_a_mount_asks_before_more_than_its_own_bound_goes(tmp_path: Path, server: FakeServer) -> None:
    mount = Mount(tmp_path / "m", server, max_delete=MaxDelete(count=2, share=0.0))
    for name in "abcdef":
        server.write(f"/{name}", b"1")
    mount.sync()
    for name in "abc":
        server.remove(f"/{name}")
    server.feed_from = server.seq
    settle(mount)
    assert len(mount.tree()) == 6
    assert mount.engine.status().held_deletions == 3
    mount.engine.confirm_deletions()
    settle(mount)
    assert mount.tree() == server.tree()
    mount.engine.close()


# --- one moment of a listing -------------------------------------------------------------------------------------------


def test_a_file_renamed_between_two_pages_of_a_listing_is_not_lost(
    mount: Mount, server: FakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.write("/b", b"b")
    server.write("/y", b"y")
    server.write("/z", b"z")
    mount.sync()
    real, pages = server.handle, []

    def handle(request):  # type: ignore[no-untyped-def]
        if request.url.path == "/v1/files" and request.url.params.get("prefix") == "/":
            request.url = request.url.copy_set_param("limit", "2")
            answer = real(request)
            pages.append(answer)
            if len(pages) == 1:
                server.rename("/z", "/a")
                server.remove("/y")
            return answer
        return real(request)

    monkeypatch.setattr(server, "handle", handle)
    server.feed_from = server.seq  # what is known is too old: list everything
    server.write("/c", b"c")
    server.feed_from = server.seq
    mount.step()
    monkeypatch.setattr(server, "feed_from", 0)
    settle(mount)
    assert len(pages) >= 2
    assert mount.tree() == server.tree()
    assert "/a" in mount.tree()
