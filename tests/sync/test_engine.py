"""The engine on one mount: what the user does arrives at the server, what the server holds arrives in the mount."""

from __future__ import annotations

import pytest

from memdir.sync.model import Row
from memdir.sync.push.moves import CLAIM_MAX
from memdir.sync.untracked_changes import note_unseen_changes
from tests.sync.conftest import Mount
from tests.sync.fake_server import FakeServer


def test_every_kind_of_change_reaches_the_server(mount: Mount, server: FakeServer) -> None:
    mount.mkdir("/notes")
    mount.write("/notes/a.md", b"one\n")
    mount.write("/notes/empty", b"")
    mount.write("/bin", bytes(range(256)), mode=0o755)
    mount.symlink("/link", b"notes/a.md")
    mount.sync()
    assert server.tree() == mount.tree()
    assert server.entries["/bin"].mode == 0o755
    mount.write("/notes/a.md", b"two, without a newline")
    mount.rm("/notes/empty")
    mount.chmod("/bin", 0o600)
    mount.sync()
    assert server.tree() == mount.tree()
    assert server.entries["/bin"].mode == 0o600


def test_an_emptied_file_is_pushed(mount: Mount, server: FakeServer) -> None:
    mount.write("/a", b"text")
    mount.sync()
    mount.write("/a", b"")
    mount.sync()
    assert server.tree()["/a"] == ("file", b"")


def test_a_large_file_is_streamed(mount: Mount, server: FakeServer) -> None:
    content = bytes(range(256)) * 4 * 1024 * 3
    mount.write("/big", content)
    mount.sync()
    assert server.tree()["/big"] == ("file", content)
    assert "PUT /v1/files/big" in server.requests


def test_a_quiet_mount_asks_for_nothing_but_the_feed(mount: Mount, server: FakeServer) -> None:
    mount.write("/a", b"1")
    mount.sync()
    server.requests.clear()
    mount.step()
    assert set(server.requests) == {"GET /v1/changes"}


def test_many_writes_to_one_path_are_one_put(mount: Mount, server: FakeServer) -> None:
    for number in range(50):
        mount.write("/a", str(number).encode())
    mount.sync()
    assert server.seq == 1
    assert server.tree()["/a"] == ("file", b"49")


def test_a_path_is_pushed_only_after_it_was_quiet(mount: Mount, server: FakeServer) -> None:
    mount.engine.run_until_idle()
    mount.write("/a", b"1")
    mount.engine.run_until_idle()
    assert server.tree() == {}
    mount.clock.advance(0.25)
    mount.engine.run_until_idle()
    assert server.tree() == {"/a": ("file", b"1")}


def test_a_file_that_never_rests_is_pushed_every_two_seconds(mount: Mount, server: FakeServer) -> None:
    mount.engine.run_until_idle()
    for number in range(25):
        mount.write("/log", str(number).encode())
        mount.engine.run_until_idle()
        mount.clock.advance(0.1)
    assert server.seq >= 1


def test_what_the_server_holds_comes_into_a_fresh_mount(mount: Mount, server: FakeServer) -> None:
    server.write("/x/y/z.md", b"deep", mode=0o640)
    server.write("/empty", b"")
    server.write("/folder", b"", kind="dir", mode=0o700)
    server.write("/link", b"x/y/z.md", kind="symlink")
    mount.sync()
    assert mount.tree() == {**server.tree(), "/x": ("dir", b""), "/x/y": ("dir", b"")}
    assert mount.mode("/x/y/z.md") == 0o640
    assert mount.mode("/folder") == 0o700


def test_remote_edits_deletes_and_chmods_arrive(mount: Mount, server: FakeServer) -> None:
    for path in ("/a", "/b", "/d/c"):
        server.write(path, b"1")
    mount.sync()
    server.write("/a", b"2")
    server.remove("/b")
    server.remove("/d")
    server.write("/a", b"2", mode=0o755)
    mount.sync()
    assert mount.tree() == {"/a": ("file", b"2")}
    assert mount.mode("/a") == 0o755


def test_a_rename_of_a_folder_is_one_call_and_moves_no_bytes(mount: Mount, server: FakeServer) -> None:
    mount.mkdir("/a")
    for number in range(5):
        mount.write(f"/a/{number}", b"x" * number)
    mount.sync()
    ids = {path[2:]: entry.document_id for path, entry in server.entries.items()}
    server.requests.clear()
    mount.mv("/a", "/b")
    mount.sync()
    assert server.tree() == mount.tree()
    assert {path[2:]: entry.document_id for path, entry in server.entries.items()} == ids
    assert server.requests.count("POST /v1/files:move") == 1
    assert "POST /v1/files:batch" not in server.requests


def test_a_file_edited_and_then_renamed_before_the_push_keeps_the_edit(mount: Mount, server: FakeServer) -> None:
    mount.write("/a", b"1")
    mount.sync()
    mount.write("/a", b"2")
    mount.mv("/a", "/b")
    mount.sync()
    assert server.tree() == {"/b": ("file", b"2")}


def test_a_save_by_rename_is_a_put_of_the_file(mount: Mount, server: FakeServer) -> None:
    mount.write("/a", b"1")
    mount.sync()
    document = server.entries["/a"].document_id
    mount.write("/a.new", b"2")
    mount.mv("/a.new", "/a")
    mount.sync()
    assert server.tree() == {"/a": ("file", b"2")}
    assert server.entries["/a"].document_id == document


@pytest.mark.parametrize("pause", [False, True])
def test_chains_and_swaps_of_renames_arrive(mount: Mount, server: FakeServer, pause: bool) -> None:
    for name in "abc":
        mount.write(f"/{name}", name.encode())
    mount.sync()
    for source, path in (("/a", "/t"), ("/b", "/a"), ("/t", "/b"), ("/c", "/d"), ("/d", "/e")):
        mount.mv(source, path)
        if pause:
            mount.step()
    mount.sync()
    assert server.tree() == {"/a": ("file", b"b"), "/b": ("file", b"a"), "/e": ("file", b"c")}
    assert mount.tree() == server.tree()


def test_a_folder_renamed_while_new_files_in_it_wait(mount: Mount, server: FakeServer) -> None:
    mount.mkdir("/d")
    mount.write("/d/old", b"1")
    mount.sync()
    mount.write("/d/new", b"2")
    mount.mv("/d", "/e")
    mount.write("/e/newer", b"3")
    mount.sync()
    assert server.tree() == mount.tree()
    assert set(server.tree()) == {"/e", "/e/old", "/e/new", "/e/newer"}


def test_a_new_folder_renamed_before_its_first_push(mount: Mount, server: FakeServer) -> None:
    mount.mkdir("/d")
    mount.write("/d/f", b"1")
    mount.mv("/d", "/e")
    mount.sync()
    assert server.tree() == mount.tree() == {"/e": ("dir", b""), "/e/f": ("file", b"1")}


def test_a_folder_renamed_again_while_its_files_are_being_compared_does_not_come_back(
    mount: Mount, server: FakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    mount.mkdir("/d")
    for number in range(CLAIM_MAX + 40):
        mount.write(f"/d/{number}.md", f"{number}".encode())
    mount.sync()
    mount.mkdir("/all")
    mount.mv("/d", "/all/d")
    work = mount.engine._pusher._work
    renamed: list[bool] = []

    def rename_meanwhile(rows: list[Row], open_rows: dict[str, Row]) -> None:
        if not renamed and "/all/d" in open_rows and server.tree().get("/all/d"):
            mount.mv("/all", "/all2")
            renamed.append(mount.engine._take_in_all())
        work(rows, open_rows)

    monkeypatch.setattr(mount.engine._pusher, "_work", rename_meanwhile)
    mount.sync()
    assert renamed
    names = {"/all2", "/all2/d", *(f"/all2/d/{number}.md" for number in range(CLAIM_MAX + 40))}
    assert set(mount.tree()) == names
    assert set(server.tree()) == names


def test_delete_and_recreate_before_a_push(mount: Mount, server: FakeServer) -> None:
    mount.write("/a", b"1")
    mount.sync()
    mount.rm("/a")
    mount.mkdir("/a")
    mount.write("/a/b", b"2")
    mount.sync()
    assert server.tree() == mount.tree()
    mount.rm("/a/b")
    mount.rmdir("/a")
    mount.write("/a", b"3")
    mount.sync()
    assert server.tree() == {"/a": ("file", b"3")}


def test_a_tree_removed_at_once_is_gone_at_the_server(mount: Mount, server: FakeServer) -> None:
    mount.mkdir("/d")
    mount.mkdir("/d/e")
    for number in range(100):
        mount.write(f"/d/e/{number}", b"x")
    mount.sync()
    for number in range(100):
        mount.rm(f"/d/e/{number}")
    mount.rmdir("/d/e")
    mount.rmdir("/d")
    mount.sync()
    assert server.tree() == {}
    assert mount.tree() == {}


def remove_all(mount: Mount, folder: str) -> None:
    """`rm -r`."""
    for entry in mount.fs.children(folder):
        if entry.kind == "dir":
            remove_all(mount, entry.path)
        else:
            mount.rm(entry.path)
    mount.rmdir(folder)


def grown(mount: Mount, count: int) -> None:
    mount.mkdir("/d")
    mount.mkdir("/d/e")
    for number in range(count):
        mount.write(f"/d/e/{number}", b"x")
    mount.sync()


@pytest.mark.parametrize("lost", [False, True])
def test_a_folder_removed_with_all_in_it_is_one_deletion_at_the_server(mount: Mount, server: FakeServer, lost: bool) -> None:
    grown(mount, 300)
    before = server.seq
    server.requests.clear()
    remove_all(mount, "/d")
    if lost:
        server.fault("POST", "/v1/files:batch", before=False)
    mount.sync()
    assert server.tree() == mount.tree() == {}
    assert server.seq == before + 1
    assert server.requests.count("POST /v1/files:batch") <= 2 + lost
    assert mount.engine.queue_rows(10) == []


def test_what_others_put_into_a_folder_removed_here_survives_and_the_rest_goes(mount: Mount, server: FakeServer) -> None:
    grown(mount, 20)
    remove_all(mount, "/d")
    batch = server._batch_item

    def meanwhile(item: dict[str, object]) -> dict[str, object]:
        server._batch_item = batch  # type: ignore[method-assign]
        server._put("/d/e/theirs", "file", b"new", 0o644, 0, None, False)
        server._put("/d/e/7", "file", b"edited", 0o644, 0, None, False)
        return batch(item)

    server._batch_item = meanwhile  # type: ignore[method-assign]
    mount.sync()
    left = {"/d": ("dir", b""), "/d/e": ("dir", b""), "/d/e/7": ("file", b"edited"), "/d/e/theirs": ("file", b"new")}
    assert server.tree() == mount.tree() == left


def test_a_folder_removed_and_made_again_with_other_things_in_it(mount: Mount, server: FakeServer) -> None:
    grown(mount, 20)
    remove_all(mount, "/d")
    mount.mkdir("/d")
    mount.mkdir("/d/e")
    mount.write("/d/e/3", b"again")
    mount.write("/d/new", b"new")
    mount.sync()
    left = {"/d": ("dir", b""), "/d/e": ("dir", b""), "/d/e/3": ("file", b"again"), "/d/new": ("file", b"new")}
    assert server.tree() == mount.tree() == left


def test_a_folder_that_became_a_file_takes_its_contents_along_at_the_server(mount: Mount, server: FakeServer) -> None:
    grown(mount, 20)
    server.requests.clear()
    remove_all(mount, "/d")
    mount.write("/d", b"a file now")
    mount.sync()
    assert server.tree() == mount.tree() == {"/d": ("file", b"a file now")}
    assert server.requests.count("POST /v1/files:batch") == 1


def test_a_removal_inside_a_folder_that_is_then_renamed_is_not_forgotten(mount: Mount, server: FakeServer) -> None:
    grown(mount, 20)
    mount.write("/d/kept", b"1")
    mount.sync()
    remove_all(mount, "/d/e")
    mount.mv("/d", "/f")
    mount.sync()
    assert server.tree() == mount.tree() == {"/f": ("dir", b""), "/f/kept": ("file", b"1")}


def test_a_folder_that_only_its_contents_made_goes_in_one_step_too(mount: Mount, server: FakeServer) -> None:
    for number in range(20):
        server.write(f"/x/y/{number}", b"1")
    mount.sync()
    before = server.seq
    remove_all(mount, "/x")
    mount.sync()
    assert server.tree() == mount.tree() == {}
    assert server.seq == before + 1


def test_a_remote_rename_is_done_here_without_a_download(mount: Mount, server: FakeServer) -> None:
    server.write("/a/f", b"1")
    server.write("/a/g", b"2")
    mount.sync()
    ino = mount.ino("/a/f")
    server.requests.clear()
    server.rename("/a", "/b")
    mount.sync()
    assert mount.tree() == {"/b": ("dir", b""), "/b/f": ("file", b"1"), "/b/g": ("file", b"2")}
    assert mount.ino("/b/f") == ino
    assert set(server.requests) == {"GET /v1/changes"}


def test_an_edit_here_of_a_file_that_was_renamed_there_is_kept(mount: Mount, server: FakeServer) -> None:
    server.write("/a/f", b"1")
    mount.sync()
    mount.write("/a/f", b"edited")
    server.rename("/a", "/b")
    mount.sync()
    assert ("file", b"edited") in server.tree().values()
    assert mount.tree() == {**server.tree(), **{path: kind for path, kind in mount.tree().items() if kind[0] == "dir"}}


def test_an_edit_against_an_edit_keeps_both(mount: Mount, server: FakeServer) -> None:
    server.write("/plan.md", b"base")
    mount.sync()
    mount.write("/plan.md", b"mine")
    server.write("/plan.md", b"theirs")
    mount.sync()
    copy = "/plan (conflict 2023-11-14 laptop).md"
    assert server.tree() == mount.tree() == {"/plan.md": ("file", b"theirs"), copy: ("file", b"mine")}
    assert mount.engine.status().conflicts == 1
    mount.rm(copy)
    mount.sync()
    assert mount.engine.status().conflicts == 0


def test_the_same_edit_on_both_sides_is_no_conflict(mount: Mount, server: FakeServer) -> None:
    server.write("/a", b"base")
    mount.sync()
    mount.write("/a", b"same")
    server.write("/a", b"same")
    mount.sync()
    assert mount.tree() == server.tree() == {"/a": ("file", b"same")}


def test_a_delete_here_against_an_edit_there_keeps_the_edit(mount: Mount, server: FakeServer) -> None:
    server.write("/a", b"base")
    mount.sync()
    mount.rm("/a")
    server.write("/a", b"edited")
    mount.sync()
    assert mount.tree() == server.tree() == {"/a": ("file", b"edited")}


def test_an_edit_here_against_a_delete_there_keeps_the_edit(mount: Mount, server: FakeServer) -> None:
    server.write("/a", b"base")
    mount.sync()
    mount.write("/a", b"edited")
    server.remove("/a")
    mount.sync()
    assert mount.tree() == server.tree() == {"/a": ("file", b"edited")}


def test_a_folder_removed_there_with_an_edit_in_it_here_stays(mount: Mount, server: FakeServer) -> None:
    server.write("/d", b"", kind="dir", mode=0o755)
    server.write("/d/a", b"1")
    server.write("/d/b", b"2")
    mount.sync()
    mount.write("/d/a", b"edited")
    server.remove("/d")
    mount.sync()
    assert mount.tree() == server.tree() == {"/d": ("dir", b""), "/d/a": ("file", b"edited")}


def test_a_folder_removed_here_with_something_new_in_it_there_comes_back(mount: Mount, server: FakeServer) -> None:
    server.write("/d", b"", kind="dir", mode=0o755)
    server.write("/d/a", b"1")
    mount.sync()
    mount.rm("/d/a")
    mount.rmdir("/d")
    server.write("/d/new", b"2")
    mount.sync()
    assert mount.tree() == server.tree() == {"/d": ("dir", b""), "/d/new": ("file", b"2")}


def test_a_folder_here_and_a_file_there_are_both_kept(mount: Mount, server: FakeServer) -> None:
    mount.mkdir("/x")
    mount.write("/x/inner", b"1")
    server.write("/x", b"file")
    mount.sync()
    copy = "/x (conflict 2023-11-14 laptop)"
    assert mount.tree() == server.tree()
    assert mount.tree() == {"/x": ("file", b"file"), copy: ("dir", b""), f"{copy}/inner": ("file", b"1")}


def test_views_are_never_synced_in_either_direction(mount: Mount, server: FakeServer) -> None:
    server.write("/profile.md", b"of the server")
    mount.write("/profile.md", b"shadowed")
    mount.sync()
    assert server.tree()["/profile.md"] == ("file", b"of the server")
    assert mount.tree()["/profile.md"] == ("file", b"shadowed")


def test_a_name_that_is_not_utf8_is_parked_and_hinders_nobody(mount: Mount, server: FakeServer) -> None:
    mount.write("/bad\udcff", b"1")
    mount.write("/good", b"2")
    mount.sync()
    assert set(server.tree()) == {"/good"}
    [row] = mount.engine.parked_rows(10)
    assert row.path == "/bad\udcff"
    assert "UTF-8" in row.error
    mount.mv("/bad\udcff", "/fine")
    mount.sync()
    assert server.tree()["/fine"] == ("file", b"1")
    assert mount.engine.status().parked == 0


def test_a_profile_that_grew_is_announced(mount: Mount, server: FakeServer) -> None:
    mount.sync()
    server.profile_version = 3
    mount.step()
    mount.step()
    assert mount.profiles == [3]


def test_two_mounts_converge(mount: Mount, other: Mount, server: FakeServer) -> None:
    mount.mkdir("/shared")
    mount.write("/shared/a", b"1")
    mount.sync()
    other.sync()
    other.write("/shared/a", b"2")
    other.mv("/shared", "/ours")
    other.sync()
    mount.write("/top", b"3")
    mount.sync()
    other.sync()
    assert mount.tree() == other.tree() == server.tree()
    assert mount.tree()["/ours/a"] == ("file", b"2")


def test_what_went_while_nobody_looked_goes_at_the_server_too(mount: Mount, server: FakeServer) -> None:
    for name in ("kept", "gone", "renamed"):
        mount.write(f"/{name}", name.encode())
    mount.mkdir("/folder")
    mount.write("/folder/inside", b"1")
    mount.sync()
    mount.engine.close()
    note_unseen_changes(mount.folder)
    mount.rm("/gone")
    mount.mv("/renamed", "/other")
    mount.rm("/folder/inside")
    mount.rmdir("/folder")
    for intent in mount.fs.intents(0, 100):  # a mount without sync records none; the next one names what is there
        mount.fs.acknowledge(intent.seq)
    mount.chmod("/other", 0o600)
    server.write("/new", b"of another machine")
    mount.engine = mount._open()
    mount.sync()
    assert set(server.tree()) == {"/kept", "/other", "/new"} == set(mount.tree())


def test_what_others_put_into_a_new_folder_survives_its_rename_here(mount: Mount, server: FakeServer) -> None:
    mount.sync()
    mount.mkdir("/d")
    server.write("/d/theirs", b"2")
    mount.engine._puller.read_all()
    mount.mv("/d", "/e")
    mount.sync()
    assert mount.tree()["/d/theirs"] == ("file", b"2")
    assert server.tree()["/e"] == ("dir", b"")
