"""`memdir mount` up to the moment the daemon is started (that is a fake here), and `memdir unmount` and the others against a
daemon that is one."""

from __future__ import annotations

import dataclasses
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import memdir.daemon
from memdir.cli.targets import check_container_name
from memdir.core.errors import MemdirError, UsageError
from memdir.core.paths import app_paths
from memdir.daemon.registry import MountRecord, MountRegistry, MountSpec
from memdir.fs.cache import SqliteFs
from memdir.fs.types import ROOT_INO
from tests.cli.fakes import FakeMount

Run = Callable[..., tuple[int, str, str]]
Mounts = Callable[..., FakeMount]


class FakeLaunch(ModuleType):
    """`daemon.launch` without a daemon: writes down what it was asked."""

    def __init__(self) -> None:
        super().__init__("memdir.daemon.launch")
        self.specs: list[MountSpec] = []
        self.error: MemdirError | None = None

    def start(self, spec: MountSpec, *, foreground: bool, timeout_s: float) -> MountRecord:
        if self.error is not None:
            raise self.error
        self.specs.append(spec)
        registry = MountRegistry(app_paths())
        return dataclasses.replace(registry.allocate(spec), pid=os.getpid())


@pytest.fixture
def launch(monkeypatch: pytest.MonkeyPatch) -> FakeLaunch:
    fake = FakeLaunch()
    monkeypatch.setitem(sys.modules, "memdir.daemon.launch", fake)
    monkeypatch.setattr(memdir.daemon, "launch", fake, raising=False)
    return fake


@pytest.mark.parametrize("name", ["notes", "a", "A-b_c.d:9", "x" * 100, "...", ".hidden", "a-"])
def test_good_names_are_accepted(name: str) -> None:
    assert check_container_name(name) == name


@pytest.mark.parametrize(
    "name",
    ["", "a b", "a/b", "/", "../x", ".", "..", "x" * 101, "naïve", "a\0b", "a\n", "a@b", "~", "a\udcff", "-", "-x", "--help"],
)
def test_bad_names_are_refused_with_a_hint(name: str) -> None:
    with pytest.raises(UsageError) as caught:
        check_container_name(name)
    assert caught.value.hint


def test_a_path_as_a_name_says_how_to_write_it(run: Run, launch: FakeLaunch) -> None:
    code, _, err = run("mount", "./my notes/")
    assert code == 2
    assert "memdir mount my-notes --path './my notes/'" in err
    assert launch.specs == []


def test_it_mounts_beside_you_and_makes_the_directory(run: Run, launch: FakeLaunch, tmp_path: Path) -> None:
    code, out, err = run("mount", "notes")
    assert (code, out, err) == (0, f"notes is mounted at {tmp_path}/notes\n", "")
    [spec] = launch.specs
    assert (spec.name, spec.path, spec.sync, spec.read_only, spec.created_dir) == (
        "notes",
        f"{tmp_path}/notes",
        True,
        False,
        True,
    )
    assert (tmp_path / "notes").is_dir()


def test_options_reach_the_daemon(run: Run, launch: FakeLaunch, tmp_path: Path) -> None:
    arguments = ["--path", "x/y", "--no-sync", "--read-only", "--profile", "observed", "--drain-timeout", "2.5"]
    assert run("mount", "notes", *arguments)[0] == 0
    [spec] = launch.specs
    assert (spec.path, spec.sync, spec.read_only) == (f"{tmp_path}/x/y", False, True)
    assert (spec.profile, spec.drain_timeout_s) == ("observed", 2.5)


def test_json_says_what_was_mounted(run: Run, launch: FakeLaunch, tmp_path: Path) -> None:
    answer = json.loads(run("mount", "notes", "--json")[1])
    assert answer["name"] == "notes"
    assert answer["path"] == f"{tmp_path}/notes"
    assert answer["pid"] == os.getpid()
    assert (answer["created_directory"], answer["already_mounted"], answer["import"]) == (True, False, None)


def test_an_empty_directory_is_used_as_it_is(run: Run, launch: FakeLaunch, tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    assert run("mount", "notes")[0] == 0
    assert launch.specs[0].created_dir is False


def test_a_link_to_a_directory_is_followed(run: Run, launch: FakeLaunch, tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "notes").symlink_to("real")
    assert run("mount", "notes")[0] == 0
    assert launch.specs[0].path == f"{tmp_path}/real"


@pytest.mark.parametrize("what", ["file", "dangling"])
def test_something_else_at_the_place_is_refused(what: str, run: Run, launch: FakeLaunch, tmp_path: Path) -> None:
    if what == "file":
        (tmp_path / "notes").write_text("x", encoding="utf-8")
    else:
        (tmp_path / "notes").symlink_to(tmp_path / "notes" / "loop")
    code, _, err = run("mount", "notes")
    assert code == 2
    assert "hint:" in err
    assert launch.specs == []


def test_a_directory_with_files_is_refused_and_left_alone(run: Run, launch: FakeLaunch, tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / ".hidden").write_text("x", encoding="utf-8")
    code, out, err = run("mount", "notes")
    assert (code, out) == (2, "")
    assert "is not empty (1 entry)" in err
    assert "--import" in err
    assert launch.specs == []
    assert os.listdir(tmp_path / "notes") == [".hidden"]


def test_import_copies_first_and_lists_what_it_left_out(run: Run, launch: FakeLaunch, tmp_path: Path) -> None:
    folder = tmp_path / "notes"
    (folder / "sub").mkdir(parents=True)
    (folder / "a.md").write_text("hello", encoding="utf-8")
    (folder / "sub" / ".env").write_text("A=1", encoding="utf-8")
    (folder / ".gitignore").write_text("*.log\n", encoding="utf-8")
    for number in range(30):
        (folder / f"{number:02}.log").write_text("x", encoding="utf-8")
    code, out, _ = run("mount", "notes", "--import")
    assert code == 0
    assert "imported 2 files, 1 folder" in out
    assert "skipped 31 paths" in out
    assert "  00.log: ignored by .gitignore: *.log" in out
    assert "… and 11 more (--json lists all)" in out
    [spec] = launch.specs
    assert spec.imported
    assert spec.mount_id is not None
    cache = SqliteFs.open(Path(MountRegistry(app_paths()).get(spec.mount_id).cache_dir))
    assert cache.lookup(ROOT_INO, b"a.md").size == 5
    cache.close()
    assert sorted(os.listdir(folder))[-3:] == ["29.log", "a.md", "sub"]


def test_import_in_json_lists_every_skipped_path(run: Run, launch: FakeLaunch, tmp_path: Path) -> None:
    (tmp_path / "notes" / ".git").mkdir(parents=True)
    for number in range(25):
        (tmp_path / "notes" / f"{number}.pem").write_text("x", encoding="utf-8")
    answer = json.loads(run("mount", "notes", "--import", "--json")[1])["import"]
    assert len(answer["skipped"]) == 26
    assert {"path", "reason"} == set(answer["skipped"][0])


def test_after_an_import_the_same_place_can_be_mounted_again(run: Run, launch: FakeLaunch, tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "a.md").write_text("x", encoding="utf-8")
    assert run("mount", "notes", "--import")[0] == 0
    assert run("mount", "notes")[0] == 0
    assert run("mount", "other", "--path", "notes")[0] == 2


def test_import_of_a_missing_directory_is_an_error(run: Run, launch: FakeLaunch, tmp_path: Path) -> None:
    code, _, err = run("mount", "notes", "--import")
    assert code == 2
    assert "nothing to import" in err
    assert not (tmp_path / "notes").exists()


def test_a_directory_made_for_a_mount_that_fails_is_removed_again(run: Run, launch: FakeLaunch, tmp_path: Path) -> None:
    launch.error = MemdirError("/dev/fuse does not exist", hint="modprobe fuse")
    assert run("mount", "notes") == (2, "", "memdir: /dev/fuse does not exist\n  hint: modprobe fuse\n")
    assert not (tmp_path / "notes").exists()
    (tmp_path / "notes").mkdir()
    assert run("mount", "notes")[0] == 2
    assert (tmp_path / "notes").exists()


def test_mounting_what_is_mounted_says_so_and_succeeds(run: Run, launch: FakeLaunch, fake_mount: Mounts) -> None:
    mount = fake_mount()
    assert run("mount", "notes") == (0, f"notes is already mounted at {mount.path}\n", "")
    assert json.loads(run("mount", "notes", "--json")[1])["already_mounted"] is True
    assert "another --read-only" in run("mount", "notes", "--read-only")[2]
    assert launch.specs == []


def test_another_memory_at_a_mounted_place_is_refused(run: Run, launch: FakeLaunch, fake_mount: Mounts) -> None:
    mount = fake_mount()
    code, _, err = run("mount", "other", "--path", "notes")
    assert code == 2
    assert str(mount.path) in err


def test_a_mount_inside_a_mount_is_refused(run: Run, launch: FakeLaunch, fake_mount: Mounts) -> None:
    fake_mount()
    code, _, err = run("mount", "inner", "--path", "notes/inner")
    assert code == 2
    assert "inside the mount of notes" in err
    assert launch.specs == []


def test_a_second_place_for_the_same_memory_is_mentioned(run: Run, launch: FakeLaunch, fake_mount: Mounts) -> None:
    mount = fake_mount()
    code, _, err = run("mount", "notes", "--path", "elsewhere")
    assert code == 0
    assert f"also mounted at {mount.path}" in err


def test_another_filesystem_s_mountpoint_is_refused(run: Run, launch: FakeLaunch) -> None:
    code, _, err = run("mount", "notes", "--path", "/proc")
    assert code == 2
    assert "another filesystem is mounted at /proc" in err


@pytest.mark.parametrize("what", ["data", "parent of data", "program", "environment", "root"])
def test_a_mount_may_not_cover_what_memdir_lives_on(what: str, run: Run, launch: FakeLaunch, home: Path) -> None:
    import memdir

    place = {
        "data": home / "data",
        "parent of data": home,
        "program": Path(memdir.__file__).parent.parent,
        "environment": Path(sys.prefix),
        "root": Path("/"),
    }[what]
    for extra in ([], ["--import"]):
        code, _, err = run("mount", "notes", "--path", str(place), *extra)
        assert code == 2
        assert "memdir has its" in err
    assert launch.specs == []


def test_the_empty_path_is_refused(run: Run, launch: FakeLaunch) -> None:
    assert run("mount", "notes", "--path", "")[0] == 2


# --- list, status ----------------------------------------------------------------------------------------------------


def status_answer(args: dict[str, Any]) -> dict[str, Any]:
    return {
        "name": "notes", "pid": os.getpid(), "uptime_s": 75.0, "queue_length": 3, "parked": 1, "sync": True, "conflicts": 2,
        "server": {"url": "http://127.0.0.1:1", "online": False, "since": "2026-11-21T00:00:00Z", "error": "refused"},
        "cache_bytes": 2048, "last_synced_at": None, "version": "0",
    }  # fmt: skip


def test_list_shows_running_and_dead_mounts(run: Run, fake_mount: Mounts) -> None:
    fake_mount("notes")
    fake_mount("work").die()
    code, out, err = run("list")
    assert code == 0
    assert [line.split()[:2] for line in out.splitlines()] == [["notes", "mounted"], ["work", "dead"]]
    assert "memdir mount work" in err
    answer = json.loads(run("list", "--json")[1])
    assert [(row["name"], row["state"], row["pid"]) for row in answer] == [
        ("notes", "mounted", os.getpid()),
        ("work", "dead", None),
    ]


def test_list_without_mounts_is_an_empty_array(run: Run) -> None:
    assert run("list", "--json") == (0, "[]\n", "")


def test_list_all_also_shows_what_is_unmounted(run: Run) -> None:
    MountRegistry(app_paths()).allocate(MountSpec(name="old", path="/somewhere/old"))
    assert json.loads(run("list", "--json")[1]) == []
    assert json.loads(run("list", "--all", "--json")[1])[0]["state"] == "unmounted"


def test_an_unreadable_record_is_said_and_hides_nothing(run: Run, fake_mount: Mounts) -> None:
    mount = fake_mount()
    broken = Path(mount.record.cache_dir).parent / "broken"
    broken.mkdir()
    (broken / "mount.json").write_text("{", encoding="utf-8")
    code, out, err = run("list")
    assert (code, out.split()[0]) == (0, "notes")
    assert str(broken) in err


def test_status_of_one_mount_is_one_object(run: Run, fake_mount: Mounts) -> None:
    mount = fake_mount(status=status_answer)
    code, out, _ = run("status", "notes", "--json")
    answer = json.loads(out)
    assert code == 0
    assert {"name", "path", "pid", "uptime_s", "queue_length", "server"} <= set(answer)
    assert (answer["name"], answer["path"], answer["state"]) == ("notes", str(mount.path), "mounted")
    assert (answer["uptime_s"], answer["queue_length"], answer["server"]["online"]) == (75.0, 3, False)


def test_status_of_all_is_an_array(run: Run, fake_mount: Mounts) -> None:
    fake_mount("notes", status=status_answer)
    fake_mount("work", status=status_answer).die()
    code, out, _ = run("status", "--json")
    assert code == 1
    assert [(row["name"], row["state"]) for row in json.loads(out)] == [("notes", "mounted"), ("work", "dead")]


def test_status_for_people_says_all_that_matters(run: Run, fake_mount: Mounts) -> None:
    fake_mount(status=status_answer)
    out = run("status")[1]
    for part in (
        "up 1 min 15 s",
        "offline since 2026-11-21T00:00:00Z: refused",
        "3 changes to push; 1 parked",
        "2 files kept twice",
    ):
        assert part in out


def test_status_of_a_dead_mount_says_what_to_do(run: Run, fake_mount: Mounts) -> None:
    fake_mount().die()
    code, out, _ = run("status", "notes")
    assert code == 1
    assert "dead" in out
    assert "`memdir mount notes` goes on where it was" in out
    answer = json.loads(run("status", "notes", "--json")[1])
    assert (answer["state"], answer["pid"], answer["server"]) == ("dead", None, None)


def test_status_of_a_daemon_that_does_not_answer_is_unresponsive(run: Run, fake_mount: Mounts) -> None:
    fake_mount()
    code, out, _ = run("status", "notes", "--json")
    assert (code, json.loads(out)["state"]) == (1, "unresponsive")


def test_an_unknown_name_lists_what_is_mounted(run: Run, fake_mount: Mounts) -> None:
    mount = fake_mount()
    code, _, err = run("status", "nots")
    assert code == 2
    assert f"notes at {mount.path}" in err


def test_a_mount_is_found_by_any_path_inside_it(run: Run, fake_mount: Mounts, monkeypatch: pytest.MonkeyPatch) -> None:
    mount = fake_mount("notes", status=status_answer)
    fake_mount("work", status=status_answer)
    assert json.loads(run("status", "notes/deep/er", "--json")[1])["path"] == str(mount.path)
    monkeypatch.chdir(mount.path)
    assert json.loads(run("status", ".", "--json")[1])["path"] == str(mount.path)


def test_a_name_that_is_mounted_twice_needs_the_path(run: Run, fake_mount: Mounts, tmp_path: Path) -> None:
    fake_mount("notes", status=status_answer)
    second = fake_mount("notes", path=tmp_path / "two", status=status_answer)
    code, _, err = run("status", "notes")
    assert code == 2
    assert "mounted 2 times" in err
    assert json.loads(run("status", str(second.path), "--json")[1])["path"] == str(second.path)


# --- sync, queue, retry ----------------------------------------------------------------------------------------------


def test_sync_starts_and_returns(run: Run, fake_mount: Mounts) -> None:
    mount = fake_mount(sync=lambda args: {"queue_length": 2, "parked": 0, "drained": False, "searchable": False})
    code, out, _ = run("sync")
    assert (code, out) == (0, "notes: 2 changes still to push, in the background\n")
    assert mount.calls == [("sync", {"wait": False, "timeout_s": 0.0})]


def test_sync_wait_goes_on_until_all_is_searchable(run: Run, fake_mount: Mounts) -> None:
    answers = [
        {"queue_length": 2, "parked": 0, "drained": False, "searchable": False},
        {"queue_length": 0, "parked": 0, "drained": True, "searchable": False},
        {"queue_length": 0, "parked": 0, "drained": True, "searchable": True},
    ]
    mount = fake_mount(sync=lambda args: answers.pop(0))
    assert run("sync", "notes", "--wait") == (0, "notes: everything is pushed and searchable\n", "")
    assert len(mount.calls) == 3


def test_sync_wait_that_runs_out_of_time_is_exit_code_1(run: Run, fake_mount: Mounts) -> None:
    fake_mount(sync=lambda args: {"queue_length": 1, "parked": 4, "drained": False, "searchable": False})
    code, out, _ = run("sync", "--wait", "--timeout", "0")
    assert code == 1
    assert out == "notes: 1 change still to push; 4 parked, see `memdir queue`\n"
    answer = json.loads(run("sync", "--wait", "--timeout", "0", "--json")[1])
    assert (answer["name"], answer["drained"], answer["queue_length"]) == ("notes", False, 1)


def test_sync_of_a_mount_without_sync_is_an_error(run: Run, fake_mount: Mounts) -> None:
    fake_mount(options={"sync": False})
    code, _, err = run("sync")
    assert code == 2
    assert "--no-sync" in err


def test_the_queue_shows_what_waits_and_why(run: Run, fake_mount: Mounts) -> None:
    row = {"from": None, "since": None, "waits_s": None, "next_try_s": None}
    rows = [
        row | {"path": "/a\n.md", "op": "put", "state": "ready", "attempts": 0, "why": "it is next", "waits_s": 12.5},
        row | {"path": "/b", "op": "put", "state": "parked", "attempts": 3, "why": "too large"},
        row | {"path": "/c", "from": "/d", "op": "move", "state": "ready", "attempts": 1, "why": "503", "next_try_s": 3.2},
    ]
    server = {"online": False, "since": "10:02", "error": "connection refused"}
    answer = {"rows": rows, "waiting": 2, "parked": 1, "server": server, "problem": None}
    mount = fake_mount(queue=lambda args: answer)
    code, out, err = run("queue")
    assert code == 0
    assert out.splitlines() == [
        "ready     put          12 s  /a\\n.md: it is next",
        "parked    put                /b: too large (tried 3 times)",
        "ready     move               /c (was /d): 503 (tried 1 time, again in 4 s)",
    ]
    assert "2 changes wait in notes, 1 parked" in err
    assert "offline since 10:02: connection refused" in err
    assert json.loads(run("queue", "-n", "7", "--json")[1]) == answer
    assert mount.calls[-1] == ("queue", {"limit": 7})


def test_an_empty_queue_is_exit_code_1(run: Run, fake_mount: Mounts) -> None:
    fake_mount(queue=lambda args: {"rows": []})
    assert run("queue") == (1, "", "memdir: nothing waits in notes\n")


@pytest.mark.parametrize(("target", "path"), [(None, None), ("notes", None), ("./notes", None), ("notes/big.bin", "/big.bin")])
def test_retry_takes_a_mount_or_one_file(target: str | None, path: str | None, run: Run, fake_mount: Mounts) -> None:
    mount = fake_mount(retry=lambda args: {"requeued": 1})
    assert run("retry", *([target] if target else [])) == (0, "notes: 1 change queued again\n", "")
    assert mount.calls == [("retry", {"path": path})]


# --- unmount of what is not there ------------------------------------------------------------------------------------


def test_unmount_of_an_unknown_name_is_an_error(run: Run) -> None:
    code, _, err = run("unmount", "nothing")
    assert code == 2
    assert "there is no mount 'nothing'" in err


def test_unmount_of_a_dead_daemon_cleans_up(run: Run, fake_mount: Mounts) -> None:
    mount = fake_mount(options={"created_dir": True})
    mount.die()
    code, out, _ = run("unmount", "notes")
    assert code == 0
    assert "kept for the next mount" in out
    assert not mount.path.exists()
    assert MountRegistry(app_paths()).get(mount.record.id).state == "stopped"
    assert run("unmount", "notes")[0] == 1


def test_unmount_keeps_a_directory_that_it_did_not_make_or_that_is_not_empty(
    run: Run, fake_mount: Mounts, tmp_path: Path
) -> None:
    plain = fake_mount("plain")
    full = fake_mount("full", options={"created_dir": True})
    (full.path / "kept.md").write_text("x", encoding="utf-8")
    for mount in (plain, full):
        mount.die()
        assert run("unmount", str(mount.path))[0] == 0
    assert plain.path.is_dir()
    assert (full.path / "kept.md").exists()


def test_unmount_of_a_path_inside_a_mount_names_the_mountpoint(run: Run, fake_mount: Mounts) -> None:
    mount = fake_mount()
    code, _, err = run("unmount", "notes/sub")
    assert code == 2
    assert f"use {mount.path}" in err
    assert mount.calls == []
