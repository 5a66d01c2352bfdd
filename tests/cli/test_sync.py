"""`memdir sync --confirm-deletions` and what `memdir status` says of deletions that are held back."""

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
    assert out.startswith("notes: 40 deletions confirmed\n")
    assert [op for op, _ in mount.calls] == ["confirm", "sync"]
    assert json.loads(run("sync", "notes", "--confirm-deletions", "--json")[1])["confirmed_deletions"] == 40


def test_nothing_held_back_is_said(run: Run, fake_mount: Mounts) -> None:
    fake_mount(sync=synced, confirm=lambda _: {"confirmed": 0})
    assert run("sync", "notes", "--confirm-deletions")[1].startswith("notes: no deletion is held back\n")


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
