"""A text that both sides changed: merged where that is clear, kept twice where it is not; whatever fails meanwhile."""

from __future__ import annotations

from pathlib import Path

import pytest

from memdir.fs.tree import LocalChangedError
from tests.sync.conftest import Mount
from tests.sync.fake_server import FakeServer

BASE = b"".join(b"line %d\n" % number for number in range(10))
OURS = BASE.replace(b"line 1\n", b"ours\n")
THEIRS = BASE.replace(b"line 8\n", b"theirs\n")
BOTH = OURS.replace(b"line 8\n", b"theirs\n")
COPY = "/a (conflict 2023-11-14 laptop).md"


@pytest.fixture
def changed(mount: Mount, server: FakeServer) -> Mount:
    """Both sides changed `/a.md` at different places, and neither knows of the other."""
    mount.write("/a.md", BASE)
    mount.sync()
    mount.write("/a.md", OURS)
    server.write("/a.md", THEIRS)
    return mount


def conflict_copies(mount: Mount) -> list[str]:
    return [path for path in mount.tree() if "(conflict" in path]


@pytest.mark.promise("sync.merge")
def test_changes_at_different_places_are_merged_on_both_sides(changed: Mount, server: FakeServer) -> None:
    changed.sync()
    assert changed.tree() == server.tree() == {"/a.md": ("file", BOTH)}
    status = changed.engine.status()
    assert (status.merged, status.conflicts) == (1, 0)


@pytest.mark.promise("sync.merge")
def test_the_other_mount_gets_the_merged_text(changed: Mount, other: Mount) -> None:
    changed.sync()
    other.sync()
    assert other.tree() == {"/a.md": ("file", BOTH)}


def test_the_same_line_changed_differently_is_kept_twice(changed: Mount, server: FakeServer) -> None:
    server.write("/a.md", BASE.replace(b"line 1\n", b"theirs\n"))
    changed.sync()
    assert changed.tree() == server.tree()
    assert changed.tree()[COPY] == ("file", OURS)
    assert changed.engine.status().merged == 0


def test_two_notes_appended_at_the_end_are_kept_twice(changed: Mount, server: FakeServer) -> None:
    changed.write("/a.md", BASE + b"our note\n")
    server.write("/a.md", BASE + b"their note\n")
    changed.sync()
    assert changed.tree() == {"/a.md": ("file", BASE + b"their note\n"), COPY: ("file", BASE + b"our note\n")}


def test_the_base_is_found_in_another_file_where_the_server_keeps_no_versions(mount: Mount, server: FakeServer) -> None:
    mount.write("/same.md", BASE)
    mount.write("/a.md", BASE)
    mount.sync()
    mount.write("/a.md", OURS)
    server.write("/a.md", THEIRS)
    server.remove("/same.md")
    server.versions.clear()
    mount.sync()
    assert mount.tree()["/a.md"] == ("file", BOTH)


def test_the_base_is_found_under_another_name_at_the_server(tmp_path: Path, changed: Mount, server: FakeServer) -> None:
    server.write("/elsewhere.md", BASE)
    server.versions.clear()
    changed.sync()
    assert changed.tree()["/a.md"] == ("file", BOTH)


@pytest.mark.parametrize("status", [404, 405, 501])
def test_without_the_base_both_are_kept(changed: Mount, server: FakeServer, status: int) -> None:
    server.fault("GET", "/v1/versions", status=status, times=1000)
    changed.sync()
    assert changed.tree() == {"/a.md": ("file", THEIRS), COPY: ("file", OURS)}


def test_while_the_server_is_away_nothing_is_decided(changed: Mount, server: FakeServer) -> None:
    server.fault("GET", "/v1/versions", status=None, times=3)
    changed.sync()
    assert changed.tree() == server.tree() == {"/a.md": ("file", BOTH)}


@pytest.mark.parametrize("content", [b"\0" * 4, b"\xff\xfe", BASE * 20_000])
def test_what_is_no_text_or_too_long_is_kept_twice(changed: Mount, server: FakeServer, content: bytes) -> None:
    changed.write("/a.md", BASE + content)
    changed.sync()
    assert changed.tree()[COPY] == ("file", BASE + content)


def test_a_chmod_here_and_another_there_are_merged_with_the_text(changed: Mount, server: FakeServer) -> None:
    changed.chmod("/a.md", 0o600)
    changed.sync()
    assert changed.mode("/a.md") == server.entries["/a.md"].mode == 0o600
    changed.write("/a.md", BOTH.replace(b"line 2\n", b"two\n"))
    server.write("/a.md", BOTH.replace(b"line 7\n", b"seven\n"), mode=0o640)
    changed.sync()
    assert changed.mode("/a.md") == server.entries["/a.md"].mode == 0o640
    assert changed.tree() == server.tree()


def test_json_that_would_be_broken_by_a_merge_is_kept_twice(mount: Mount, server: FakeServer) -> None:
    base = b'{\n"a": 1,\n"b": 2,\n"c": 3\n}\n'
    mount.write("/x.json", base)
    mount.sync()
    mount.write("/x.json", base.replace(b'"a": 1', b'"d": 4'))
    server.write("/x.json", base.replace(b'"c": 3', b'"d": 5'))
    mount.sync()
    assert len(conflict_copies(mount)) == 1


def test_an_edit_during_the_merge_wins_the_race_and_nothing_is_lost(
    changed: Mount, server: FakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    put, raced = changed.fs.put_file, []

    def edit_first(*args: object, **kwargs: object) -> object:
        if not raced:
            raced.append(True)
            changed.write("/a.md", OURS.replace(b"line 4\n", b"later\n"))
        return put(*args, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setattr(changed.fs, "put_file", edit_first)
    changed.sync()
    assert changed.tree() == server.tree() == {"/a.md": ("file", BOTH.replace(b"line 4\n", b"later\n"))}


def test_the_server_moving_on_during_the_merge_is_merged_as_well(changed: Mount, server: FakeServer) -> None:
    server.fault("POST", "/v1/files:batch", status=503)
    changed.engine.run_until_idle()
    assert changed.tree()["/a.md"] == ("file", BOTH)
    assert server.tree()["/a.md"] == ("file", THEIRS)
    server.write("/a.md", THEIRS.replace(b"line 5\n", b"five\n"))
    changed.sync()
    assert changed.tree() == server.tree() == {"/a.md": ("file", BOTH.replace(b"line 5\n", b"five\n"))}


class Crash(BaseException):
    """The process dies here."""


@pytest.mark.parametrize("step", range(1, 8))
def test_a_crash_between_any_two_steps_comes_out_the_same(
    changed: Mount, server: FakeServer, monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    """Steps: writes to the mount and transactions, counted from the first one of the merge."""
    counted = [0]

    def count() -> None:
        counted[0] += 1
        if counted[0] == step:
            raise Crash

    changed.engine.run_until_idle()
    put, queue = changed.fs.put_file, changed.engine._ctx.queue
    transaction = queue.transaction

    def put_and_count(*args: object, **kwargs: object) -> object:
        count()
        done = put(*args, **kwargs)  # type: ignore[arg-type]
        count()
        return done

    def transaction_and_count() -> object:
        if counted[0]:
            count()
        return transaction()

    monkeypatch.setattr(changed.fs, "put_file", put_and_count)
    monkeypatch.setattr(queue, "transaction", transaction_and_count)
    changed.clock.advance(3)
    try:
        changed.engine.run_until_idle()
    except Crash:
        counted[0] = -1_000_000
        changed.restart()
    assert counted[0] < 0 or counted[0] < step
    counted[0] = -1_000_000
    changed.sync()
    assert changed.tree() == server.tree() == {"/a.md": ("file", BOTH)}


def test_a_merge_is_refused_while_the_file_changes(changed: Mount, monkeypatch: pytest.MonkeyPatch) -> None:
    tries = []

    def refuse(*_: object, **__: object) -> object:
        tries.append(True)
        raise LocalChangedError("it changes")

    with monkeypatch.context() as patched:
        patched.setattr(changed.fs, "put_file", refuse)
        changed.step()
        changed.step()
    assert tries
    assert changed.tree() == {"/a.md": ("file", OURS)}
    changed.sync()
    assert changed.tree() == {"/a.md": ("file", BOTH)}
