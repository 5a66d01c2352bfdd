"""`memdir sync --confirm-deletions` and `--upload-again`, and what is said of files that are held back."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.cli.fakes import FakeMount

Run = Callable[..., tuple[int, str, str]]
Mounts = Callable[..., FakeMount]


def synced(_: dict[str, Any]) -> dict[str, Any]:
    return {"queue_length": 0, "parked": 0, "drained": True, "searchable": True, "online": True, "problem": None}


@pytest.mark.promise("cli.confirm-deletions")
def test_confirming_comes_before_the_sync_and_says_how_many(run: Run, fake_mount: Mounts) -> None:
    mount = fake_mount(sync=synced, confirm=lambda _: {"confirmed": 40})
    code, out, err = run("sync", "notes", "--confirm-deletions")
    assert (code, err) == (0, "")
    assert out.startswith("notes: 40 files will be deleted here\n")
    assert [op for op, _ in mount.calls] == ["confirm", "sync"]
    assert json.loads(run("sync", "notes", "--confirm-deletions", "--json")[1])["confirmed_deletions"] == 40


def test_nothing_held_back_is_said(run: Run, fake_mount: Mounts) -> None:
    fake_mount(sync=synced, confirm=lambda _: {"confirmed": 0})
    assert run("sync", "notes", "--confirm-deletions")[1].startswith("notes: nothing is held back\n")


def test_putting_it_back_is_the_other_way_out_and_not_both(run: Run, fake_mount: Mounts) -> None:
    mount = fake_mount(sync=synced, upload_again=lambda _: {"uploaded": 1})
    code, out, _ = run("sync", "notes", "--upload-again")
    assert code == 0
    assert out.startswith("notes: 1 file will be put at the server again\n")
    assert [op for op, _ in mount.calls] == ["upload_again", "sync"]
    assert json.loads(run("sync", "notes", "--upload-again", "--json")[1])["uploaded_again"] == 1
    assert run("sync", "notes", "--upload-again", "--confirm-deletions")[0] == 2


def test_a_sync_says_what_is_still_held_back_and_both_ways_out(run: Run, fake_mount: Mounts) -> None:
    fake_mount(sync=lambda args: synced(args) | {"held_deletions": 3, "other_life": True})
    out = run("sync", "notes")[1]
    assert "3 files missing at the server, which was wiped or restored, or is another one, stay here" in out
    assert "--upload-again` puts them back there" in out
    assert "--confirm-deletions` deletes them here" in out


def test_a_plain_sync_confirms_nothing(run: Run, fake_mount: Mounts) -> None:
    mount = fake_mount(sync=synced)
    code, out, _ = run("sync", "notes", "--json")
    assert code == 0
    assert "confirmed_deletions" not in json.loads(out)
    assert [op for op, _ in mount.calls] == ["sync"]


@pytest.mark.promise("cli.confirm-deletions")
def test_status_names_the_command_that_lets_them_happen(run: Run, fake_mount: Mounts) -> None:
    fake_mount(status=lambda _: {"uptime_s": 3.0, "queue_length": 0, "held_deletions": 40, "server": None, "pid": 1})
    out = run("status", "notes")[1]
    assert "40 files missing at the server stay here" in out
    assert "`memdir sync notes --confirm-deletions`" in out


@pytest.mark.promise("sync.queue-command")
def test_a_folder_alone_can_be_waited_for_and_what_is_parked_in_it_is_not_done(run: Run, fake_mount: Mounts) -> None:
    parked = {"parked": 1, "parked_here": 1}
    mount = fake_mount(
        sync=lambda args: synced(args) | (parked if args.get("path") == "/work" else {"parked": 1, "parked_here": 0})
    )
    (mount.path / "work").mkdir()
    code, out, _ = run("sync", "notes/work", "--wait")
    assert (code, out) == (1, "notes/work: everything else is pushed and searchable; 1 parked, see `memdir queue`\n")
    assert mount.calls[-1][1]["path"] == "/work"
    assert run("sync", "notes/other", "--wait")[0] == 0
    assert run("sync", "notes", "--wait")[0] == 0
    assert "path" not in mount.calls[-1][1]
