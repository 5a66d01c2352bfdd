"""What operations were: saves, copies, renames, and that changes rebuild the files."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memdir.fs.operations import Operation
from memdir.traces.collect import BULK_FILES, BULK_MS, IDLE_MS, SETTLE_MS, Collector, derived, naming
from memdir.traces.events import Event, applied, counted, delta

from .made import event, events_of, op, told

TEXT = st.lists(st.sampled_from(["a\n", "b\n", "c", "\n", "d\r\n", "ü\n"]), max_size=12).map("".join)


def swapped(file: str, *, new: str, old: str) -> list[Operation]:
    """A save: written under one name, the former text put aside under another, swapped, the former text deleted."""
    return [
        op("write", new, after=b"new\n", created=True), op("rename", file, old, after=b"old\n"),
        op("rename", new, file, after=b"new\n"), op("delete", old, before=b"old\n"),
    ]  # fmt: skip


@pytest.mark.promise("traces.saves")
@pytest.mark.parametrize(
    ("operations", "found"),
    [
        (  # sed -i, most editors: a temporary file takes the place of the file
            [
                op("write", "/a.md.tmp", after=b"new\n", created=True),
                op("rename", "/a.md.tmp", "/a.md", before=b"old\n", after=b"new\n", replaced=True),
            ],
            [("file_edit", "/a.md")],
        ),
        (  # vim with a backup
            [
                op("write", "/4913", after=b"", created=True), op("delete", "/4913"),
                op("rename", "/a.md", "/a.md~", after=b"old\n"),
                op("write", "/a.md", after=b"new\n", created=True),
                op("delete", "/a.md~"),
            ],
            [("file_edit", "/a.md")],
        ),
        (  # JetBrains' editors: the old one aside, the new one in its place, the old one deleted
            swapped("/a.md", new="/a.md___jb_tmp___", old="/a.md___jb_old___"),
            [("file_edit", "/a.md")],
        ),
        (  # Word
            swapped("/a.docx", new="/~WRD0001.tmp", old="/~WRL0002.tmp"),
            [("file_edit", "/a.docx")],
        ),
        (  # Helix
            [
                op("rename", "/a.md", "/a.mdAbC123.bck", after=b"old\n"),
                op("write", "/a.md", after=b"new\n", created=True),
                op("delete", "/a.mdAbC123.bck", before=b"old\n"),
            ],
            [("file_edit", "/a.md")],
        ),
        (  # zip tries whether it may write, and writes beside
            [
                op("write", "/a.zip", after=b"", created=True), op("delete", "/a.zip", before=b""),
                op("write", "/ziSM5ePQ", after=b"PK", created=True), op("rename", "/ziSM5ePQ", "/a.zip", after=b"PK"),
            ],
            [("file_write", "/a.zip")],
        ),
        (  # the same in a watched folder, where the first look is late
            [
                op("write", "/a.zip", after=b"PK", created=True), op("delete", "/a.zip"),
                op("write", "/ziSM5ePQ", created=True), op("rename", "/ziSM5ePQ", "/a.zip", after=b"PK"),
            ],
            [("file_write", "/a.zip")],
        ),
        (  # a browser holds the name while it downloads
            [
                op("write", "/f.pdf", after=b"", created=True),
                op("write", "/f.Xy3dEf.pdf.part", after=b"%PDF", created=True),
                op("rename", "/f.Xy3dEf.pdf.part", "/f.pdf", before=b"", after=b"%PDF", replaced=True),
            ],
            [("file_write", "/f.pdf")],
        ),
        (  # an empty file that is deleted by somebody else was there
            [op("write", "/a.md", after=b"", created=True, pid=1), op("delete", "/a.md", before=b"", pid=2)],
            [("file_write", "/a.md"), ("file_delete", "/a.md")],
        ),
        (  # emacs keeps the backup
            [op("rename", "/a.md", "/a.md~", after=b"old\n"), op("write", "/a.md", after=b"new\n", created=True)],
            [("file_copy", "/a.md~"), ("file_edit", "/a.md")],
        ),
        (  # a download
            [op("write", "/f.pdf.part", after=b"x", created=True), op("rename", "/f.pdf.part", "/f.pdf", after=b"x")],
            [("file_write", "/f.pdf")],
        ),
        (  # rsync: a copy under a name that may look like a word
            [op("copy", "/src/a.md", "/.a.md.reports", after=b"x"), op("rename", "/.a.md.reports", "/a.md", after=b"x")],
            [("file_copy", "/a.md")],
        ),
        (  # the same over a file that was there
            [
                op("copy", "/src/a.md", "/.a.md.Xy12Zt", after=b"x\n"),
                op("rename", "/.a.md.Xy12Zt", "/a.md", before=b"y\n", after=b"x\n", replaced=True),
            ],
            [("file_edit", "/a.md")],
        ),
        (  # a program that writes beside and renames
            [op("write", "/a.json.new", after=b"x", created=True), op("rename", "/a.json.new", "/a.json", after=b"x")],
            [("file_write", "/a.json")],
        ),
        ([op("rename", "/.a.md.Xy12Zt", "/a.md", after=b"x")], [("file_write", "/a.md")]),  # nobody looked when it was made
        (
            [op("write", "/2026-a.md", after=b"x", created=True), op("rename", "/2026-a.md", "/a.md", after=b"x")],
            [("file_write", "/2026-a.md"), ("file_rename", "/a.md")],
        ),
        (
            [op("copy", "/a.md", "/b.md", after=b"x"), op("rename", "/b.md", "/x/b.md", after=b"x")],
            [("file_copy", "/b.md"), ("file_move", "/x/b.md")],
        ),
        ([op("rename", "/a.md.bak", "/a.md", after=b"x")], [("file_rename", "/a.md")]),  # a backup is put back
        ([op("rename", "/a.md", "/b.md")], [("file_rename", "/b.md")]),
        ([op("rename", "/a.md", "/x/a.md")], [("file_move", "/x/a.md")]),
        ([op("read", "/a"), op("copy", "/a", "/b", after=b"x")], [("file_copy", "/b")]),
        ([op("copy", "/a", "/b", after=b"x"), op("read", "/a")], [("file_copy", "/b")]),
        ([op("read", "/a", pid=1), op("copy", "/a", "/b", pid=2, after=b"x")], [("file_read", "/a"), ("file_copy", "/b")]),
        ([op("write", "/a", before=b"x", after=b"x")], []),
        ([op("write", "/a", before=b"\0", after=b"\1\0")], [("file_write", "/a")]),
        (
            [op("write", "/a", before=b"1\n", after=b"2\n"), op("write", "/a", before=b"2\n", after=b"3\n", at_ms=10)],
            [("file_edit", "/a"), ("file_edit", "/a")],
        ),
        (  # touch, and then filled
            [op("write", "/a", after=b"", created=True), op("write", "/a", before=b"", after=b"3\n", at_ms=10)],
            [("file_write", "/a")],
        ),
        ([op("browse", "/"), op("browse", "/", at_ms=5)], [("file_browse", "/")]),
        ([op("read", "/a"), op("read", "/a", at_ms=5)], [("file_read", "/a")]),
        ([op("write", "/x.db-journal", after=b"1", created=True), op("delete", "/x.db-journal")], []),
        *(  # what people call files is no temporary name
            ([op("write", f"/{name}", after=b"1", created=True), op("delete", f"/{name}")],
             [("file_write", f"/{name}"), ("file_delete", f"/{name}")])
            for name in ("README.Debian", "log.202411", "work-journal", "NOTES.BACKUP", ".eslintrc.config", "intro.swf")
        ),
        ([op("write", "/inputrc.arrows", after=b"1", created=True)], [("file_write", "/inputrc.arrows")]),
    ],
)  # fmt: skip
def test_an_event_is_what_somebody_did(operations: list[object], found: list[tuple[str, str]]) -> None:
    assert told(*operations) == found  # type: ignore[arg-type]


def test_a_save_says_what_changed() -> None:
    (one,) = events_of(
        op("write", "/.a.md.Xq12Zt", after=b"1\nTWO\n3\n", created=True),
        op("rename", "/.a.md.Xq12Zt", "/a.md", before=b"1\n2\n3\n", after=b"1\nTWO\n3\n", replaced=True),
    )
    assert (one.fields["lines_added"], one.fields["lines_deleted"], one.fields["lines_modified"]) == (1, 1, 1)
    assert applied("1\n2\n3\n", one.fields["delta"]) == "1\nTWO\n3\n"


@pytest.mark.promise("traces.rebuilt")
@given(TEXT, TEXT)
def test_changes_rebuild_a_text(before: str, after: str) -> None:
    changes = delta(before, after)
    assert applied(before, changes) == after
    added, deleted, _ = counted(changes)
    assert len(after.splitlines()) - len(before.splitlines()) == added - deleted
    assert (changes == []) == (before == after)


def test_nothing_is_told_before_it_has_settled_and_an_idle_hour_begins_a_session() -> None:
    collector = Collector("/r")
    collector.take(op("mkdir", "/a", at_ms=1000))
    assert collector.settled(1000 + SETTLE_MS - 1) == []
    (first,) = collector.settled(1000 + SETTLE_MS)
    collector.take(op("read", "/a/b", at_ms=2000))
    collector.take(op("read", "/a/b", at_ms=3500))
    collector.take(op("read", "/a/b", at_ms=3500 + IDLE_MS + 1))
    second, again, later = collector.settled(0, everything=True)
    assert first.session == second.session == again.session != later.session
    assert (second.fields["view_count"], again.fields["view_count"], later.fields["view_count"]) == (1, 2, 1)
    assert again.fields["revisit_ms"] == 1500


def test_events_survive_their_json_and_derived_ones_are_marked() -> None:
    events = [event("file_read", "/a"), event("file_write", "/b", operation="create"), event("file_read", "/b")]
    assert [Event.of_json(one.as_json()) for one in events] == events
    made = derived(events)
    assert [(one.type, one.path) for one in made] == [("context_switch", "/b"), ("cross_file_ref", "/b")]
    assert all(one.is_derived for one in made)
    with pytest.raises(ValueError, match="no type"):
        Event.of_json({"type": "x"})


@pytest.mark.parametrize(
    ("name", "style"),
    [
        ("2026-01-02 x.md", "dated"), ("a_b.md", "snake"), ("a-b.md", "kebab"), ("MyFile.md", "camel"), ("a b.md", "spaced"),
        ("plan.md", "plain"), ("README", "plain"),
    ],
)  # fmt: skip
def test_names_have_a_style(name: str, style: str) -> None:
    assert naming(f"/x/{name}") == style


def test_work_in_bulk_is_marked_keeps_no_contents_and_ends_when_it_rests() -> None:
    unpacked = [
        op("write", f"/t/{at}.md", after=b"text\n", created=True, at_ms=at * 20, pid=at % 3, actor="cp")
        for at in range(BULK_FILES + 1)
    ]
    by_hand = [op("write", f"/{at}.md", after=b"mine\n", created=True, at_ms=at * 20, actor="vi") for at in range(BULK_FILES)]
    one_file = [op("write", "/log", after=b"mine\n", before=b"0", at_ms=at * 20, actor="log") for at in range(2 * BULK_FILES)]
    found = events_of(*unpacked, *by_hand, *one_file)
    assert [one.actor for one in found if one.fields.get("is_bulk")] == ["cp"] * (BULK_FILES + 1)
    assert {one.actor for one in found if one.is_counted} == {"vi", "log"}
    assert {"content" in one.fields for one in found if one.actor == "cp"} == {False}
    assert {one.fields["content"] for one in found if one.actor == "vi"} == {"mine\n"}
    later = op("write", "/later.md", after=b"mine\n", created=True, at_ms=unpacked[-1].at_ms + BULK_MS + 1, actor="cp")
    assert events_of(*unpacked, later)[-1].fields["content"] == "mine\n"
    going_on = [op("read", f"/t/{at}.md", at_ms=at * BULK_MS // 2) for at in range(BULK_FILES + 9)]
    assert not any(one.fields.get("is_bulk") for one in events_of(*going_on))
