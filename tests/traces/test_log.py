"""The log: bounded, torn lines, pausing, and forgetting to the last byte."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from memdir.traces.log import FORGOTTEN_MAX, SEGMENT_MAX_BYTES, Selection, TraceLog, is_ignored, path_key
from memdir.traces.published import NotPublishedError, read

from .made import created, event


def test_what_is_added_comes_back_in_order_and_torn_lines_are_passed_over(tmp_path: Path) -> None:
    log = TraceLog(tmp_path / "t")
    assert list(log.events()) == []
    events = [event("file_read", f"/{number}") for number in range(3)]
    log.add(events)
    with open(next((tmp_path / "t").glob("events-*")), "ab") as handle:
        handle.write(b'{"id": "torn", "type": "file_re')
    log.add([])
    assert list(log.events()) == events
    assert (tmp_path / "t").stat().st_mode & 0o777 == 0o700
    assert next((tmp_path / "t").glob("events-*")).stat().st_mode & 0o777 == 0o600


def test_it_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memdir.traces.log.LOG_MAX_BYTES", 2 * SEGMENT_MAX_BYTES)
    log = TraceLog(tmp_path)
    text = "x" * 200_000
    for number in range(100):
        log.add([created(f"/{number}.md", text)])
    assert log.size_bytes < 3.5 * SEGMENT_MAX_BYTES
    paths = [one.path for one in log.events()]
    assert paths[-1] == "/99.md"
    assert "/0.md" not in paths


def test_nothing_is_added_while_it_is_paused(tmp_path: Path) -> None:
    log = TraceLog(tmp_path)
    log.pause()
    log.add([event("file_read")])
    assert log.is_paused
    log.resume()
    assert list(log.events()) == []
    log.add([event("file_read")])
    assert len(list(log.events())) == 1


@pytest.mark.promise("traces.forgotten")
def test_a_canary_is_nowhere_after_forgetting(tmp_path: Path) -> None:
    log = TraceLog(tmp_path)
    made = [created("/x/Quibblefrost/a.md", "x"), created("/x/Quibblefrost/b.md", "about Quibblefrost")]
    log.add([*made, event("file_read", "/x/c.md")])
    assert log.forget(Selection(path=path_key("/x/Quibblefrost"))) == 2
    assert [one.path for one in log.events()] == ["/x/c.md"]
    assert all(b"Quibblefrost" not in path.read_bytes() for path in tmp_path.iterdir())
    assert log.forget(Selection(session="none")) == 0
    assert TraceLog(tmp_path / "none").forget(Selection()) == 0


@pytest.mark.promise("traces.forgotten")
def test_what_is_on_its_way_is_forgotten_too(tmp_path: Path) -> None:
    """Operations wait before they become events, and a mount writes what it knows when it is left in peace."""
    log = TraceLog(tmp_path)
    log.add([event("file_read", "/b.md")])
    late, other = event("file_read", "/private/a.md"), event("file_read", "/privateer.md")
    log.forget(Selection(path=path_key("/private/"), until_ms=late.timestamp_ms))
    after = replace(late, timestamp_ms=late.timestamp_ms + 1)
    log.add([late, other, after])
    assert list(log.events())[1:] == [other, after]
    log.add([late], recorded=False)
    assert list(log.events())[3:] == [late]
    for number in range(FORGOTTEN_MAX + 5):
        log.forget(Selection(session=str(number)))
    assert (tmp_path / "forgotten").stat().st_size < 200 * FORGOTTEN_MAX


@pytest.mark.parametrize(
    ("path", "left_out"),
    [
        ("/.git/HEAD", True), ("/a/.git/objects/x", True), ("/a/x.pyc", True), ("/secrets/id.key", True),
        ("/a/notes.md", False),
        ("/private/x", True), ("/private/x/y", True), ("/a/private/x", False), ("/privateer/x", False), ("/a/drafts/x", True),
        ("/.memdirignore", True), ("/.ssh/id_rsa", True), ("/.ssh/known_hosts", True), ("/home/.cache/a/b", True),
        ("/.cache/x", True), ("/node_modules/x/index.js", True), ("/app/.env", True), ("/.env.local", True),
        ("/.bash_history", True), ("/medical_history/a.md", False),
        ("/backup/id_ed25519.pub", True), ("/environment.md", False), ("/keys.md", False),
    ],
)  # fmt: skip
def test_what_nobody_wants_to_be_seen_is_left_out(tmp_path: Path, path: str, left_out: bool) -> None:
    (tmp_path / "ignore").write_text("# mine\nprivate/*\ndrafts/\n")
    assert is_ignored(path, TraceLog(tmp_path).ignored) is left_out


def test_a_published_trajectory_is_taken_over_with_its_names() -> None:
    rows = [
        {"event_type": "file_read", "timestamp": 1700000000.5, "file_path": "docs/a.md", "view_count": 2, "model_name": "m"},
        {"event_type": "tool_call", "timestamp": 1700000001},
        {"type": "file_write", "timestamp_ms": 1700000002000, "path": "/b.md", "content_length": 12, "operation": "create"},
        {"event_type": "dir_create", "timestamp": "2023-11-14T22:13:23+00:00", "dir_path": "out"},
    ]
    first, second, third = read(json.dumps({"session_id": "p1_t01", "events": rows}), "x")
    assert (first.path, first.session, first.timestamp_ms, first.fields["view_count"]) == (
        "/docs/a.md",
        "p1_t01",
        1700000000500,
        2,
    )
    assert "model_name" not in first.fields
    assert (second.fields["length"], second.fields["file_type"]) == (12, "md")
    assert third.timestamp_ms == 1700000003000
    for bad in ("{", "3", '[{"type": "fly"}]', "[1]", '[{"type": "file_read", "timestamp": "noon"}]'):
        with pytest.raises(NotPublishedError):
            list(read(bad, "x"))
