"""Searching local files by words and byte for byte."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from memdir.api.search import SearchHit
from memdir.core.errors import UsageError
from memdir.core.limits import MIB
from memdir.core.paths import app_paths
from memdir.core.patterns.matcher import Pattern
from memdir.core.siblings import sibling_of
from memdir.daemon import word_search
from memdir.daemon.exact import ExactSearch
from memdir.daemon.grep import NO_SYNC_NOTE, Grep
from memdir.daemon.line_positions import placed
from memdir.daemon.registry import MountRegistry, MountSpec
from memdir.daemon.syncing import Syncing
from memdir.daemon.word_search import WordSearch, entries_below, scope_files
from memdir.fs.memory import MemoryFs
from memdir.fs.views import ProfileView, render_profile


@pytest.fixture
def tree() -> MemoryFs:
    fs = MemoryFs(uid=os.getuid(), gid=os.getgid())
    for path, content in {
        "/a.md": b"first line\nThe launch is planned for March.\r\nlast",
        "/dir/b.md": b"launches\nnothing here\n",
        "/dir.md": b"launch\n",
        "/bin": b"launch\0launch\n",
        "/empty": b"",
        "/latin": "launch caf\xe9\n".encode("latin-1"),
    }.items():
        fs.put_file(path, [content], mode=0o644, mtime_ns=0, expected=None)
    return fs


def exact(tree: MemoryFs, text: str, scope: str, limit: int) -> list[dict[str, Any]]:
    return ExactSearch(tree, Pattern(text=text)).run(entries_below(tree, [scope]), limit)


def test_a_literal_search_is_grep_rnf(tree: MemoryFs) -> None:
    hits = exact(tree, "launch", "/", 100)
    assert [(hit["path"], hit["start_line"], hit["text"]) for hit in hits] == [
        ("/a.md", 2, "The launch is planned for March.\r"),
        ("/dir/b.md", 1, "launches"),
        ("/dir.md", 1, "launch"),
        ("/latin", 1, "launch caf\udce9"),
    ]
    assert {hit["kind"] for hit in hits} == {"literal"}


def test_a_literal_search_is_exact_and_keeps_its_scope_and_limit(tree: MemoryFs) -> None:
    assert exact(tree, "Launch", "/", 100) == []
    assert exact(tree, "l.unch", "/", 100) == []
    assert [hit["path"] for hit in exact(tree, "launch", "/dir", 100)] == ["/dir/b.md"]
    assert [hit["path"] for hit in exact(tree, "launch", "/dir.md", 100)] == ["/dir.md"]
    assert len(exact(tree, "launch", "/", 2)) == 2


def test_words_are_found_in_other_forms_and_the_fullest_line_is_first(tree: MemoryFs) -> None:
    hits = WordSearch(tree, "When are the launches planned?").run(scope_files(tree, ["/"]), 10)
    assert (hits[0]["path"], hits[0]["start_line"]) == ("/a.md", 2)
    assert {hit["path"] for hit in hits} == {"/a.md", "/dir/b.md", "/dir.md", "/latin"}
    assert all(0 <= hit["score"] <= 0.5 for hit in hits)
    assert {hit["kind"] for hit in hits} == {"pending"}


def test_a_query_of_common_words_only_still_works(tree: MemoryFs) -> None:
    assert WordSearch(tree, "the is").run(scope_files(tree, ["/"]), 10)[0]["path"] == "/a.md"
    assert WordSearch(tree, "?!").run(scope_files(tree, ["/"]), 10) == []


def test_only_lines_that_hold_a_text(tree: MemoryFs) -> None:
    every = WordSearch(tree, "launch").run(scope_files(tree, ["/"]), 10)
    text = every[0]["text"].split()[0]
    held = WordSearch(tree, "something else", containing=[text.upper()]).run(scope_files(tree, ["/"]), 10)
    assert held
    assert all(text.casefold() in hit["text"].casefold() for hit in held)
    assert WordSearch(tree, "launch", containing=[text[:-1]]).run(scope_files(tree, ["/"]), 10) == []
    assert WordSearch(tree, "launch", containing=[text, "zanzibar"]).run(scope_files(tree, ["/"]), 10) == []


def test_a_search_of_too_many_files_says_so() -> None:
    fs = MemoryFs(uid=os.getuid(), gid=os.getgid())
    for number in range(510):
        fs.put_file(f"/{number:04d}", [b"word\n"], mode=0o644, mtime_ns=0, expected=None)
    search = WordSearch(fs, "word")
    search.run(scope_files(fs, ["/"]), 10)
    assert "only 500 files" in (search.note or "")


def test_a_file_that_is_too_large_is_searched_as_far_as_it_may_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(word_search, "BYTES_MAX", 3 * MIB)
    fs = MemoryFs(uid=os.getuid(), gid=os.getgid())
    fs.put_file(
        "/big", [b"a rocket\n", bytes(4 * MIB).replace(b"\0", b"-"), b"\na rocket\n"], mode=0o644, mtime_ns=0, expected=None
    )
    fs.put_file("/more", [b"a rocket\n"], mode=0o644, mtime_ns=0, expected=None)
    search = WordSearch(fs, "rocket")
    assert [(hit["path"], hit["start_line"]) for hit in search.run(["/big", "/more"], 10)] == [("/big", 1)]
    assert search.note == "only 1 file (3.0 MiB) searched in place"


@pytest.fixture
def grep(tree: MemoryFs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Grep:
    monkeypatch.setenv("MEMDIR_HOME", str(tmp_path / "home"))
    record = MountRegistry(app_paths()).allocate(MountSpec(name="n", path=str(tmp_path / "n"), sync=False))
    syncing = Syncing(app_paths(), record, tree, ProfileView())
    syncing.start()
    return Grep("n", tree, syncing)


def test_without_sync_a_search_is_by_words_and_says_so(grep: Grep) -> None:
    answer = grep.run({"q": "planned launch", "paths": ["/"]})
    assert answer["hits"][0]["path"] == "/a.md"
    assert answer["note"] == NO_SYNC_NOTE
    assert answer["offline"] is False
    assert answer["timing_ms"] >= 0


@pytest.mark.promise("grep.scope-file")
def test_the_profile_is_searched_as_the_file_it_looks_like(
    tree: MemoryFs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMDIR_HOME", str(tmp_path / "home"))
    record = MountRegistry(app_paths()).allocate(MountSpec(name="n", path=str(tmp_path / "n"), sync=False))
    view = ProfileView()
    grep = Grep("n", tree, Syncing(app_paths(), record, tree, view))
    view.set_text(render_profile(["allergic to penicillin"], []))
    for mode in ("literal", "semantic"):
        (hit,) = grep.run({"q": "penicillin", "paths": ["/profile.md"], "mode": mode})["hits"]
        assert (hit["path"], hit["start_line"], hit["text"]) == ("/profile.md", 7, "- allergic to penicillin")
        assert grep.run({"q": "launch", "paths": ["/profile.md"], "mode": mode})["hits"] == []


def test_lines_are_counted_as_sed_counts_them(tree: MemoryFs) -> None:
    data = "one\x0bstill one\u2028still\x85\x0cone\rand one\nrocket two\r\n".encode()
    tree.put_file("/odd", [data], mode=0o644, mtime_ns=0, expected=None)
    assert [hit["start_line"] for hit in WordSearch(tree, "rocket").run(["/odd"], 10)] == [2]
    assert [hit["start_line"] for hit in exact(tree, "rocket", "/odd", 10)] == [2]


def test_blanks_can_be_looked_for_literally(grep: Grep) -> None:
    hits = grep.run({"q": " ", "paths": ["/a.md"], "mode": "literal"})["hits"]
    assert [hit["start_line"] for hit in hits] == [1, 2]


@pytest.mark.parametrize(
    "args",
    [
        {"q": ""},
        {"q": "", "mode": "literal"},
        {"q": "  \n"},
        {"q": None},
        {"q": "x" * 5000},
        {"q": "x", "paths": ["relative"]},
        {"q": "x", "paths": ["/../etc"]},
        {"q": "x", "paths": []},
        {"q": "x", "paths": ["/"] * 1001},
        {"q": "x", "limit": 0},
        {"q": "x", "limit": 201},
        {"q": "x", "limit": True},
        {"q": "x(", "mode": "regex"},
        {"q": "x", "mode": "magic"},
    ],
)
def test_bad_arguments_are_refused_with_a_sentence(grep: Grep, args: dict[str, object]) -> None:
    from memdir.core.errors import MemdirError

    with pytest.raises(MemdirError) as caught:
        grep.run(args)
    assert caught.value.message


def test_a_trailing_slash_and_doubled_ones_are_the_same_scope(grep: Grep) -> None:
    assert grep.run({"q": "launch", "paths": ["//dir/"]})["hits"] == grep.run({"q": "launch", "paths": ["/dir"]})["hits"]


def test_usage_errors_are_of_the_project(grep: Grep) -> None:
    with pytest.raises(UsageError, match="no path in the mount"):
        grep.run({"q": "x", "paths": ["relative"]})


def test_what_is_not_there_is_named_and_the_rest_is_searched(grep: Grep) -> None:
    for mode in ("literal", "semantic"):
        answer = grep.run({"q": "launch", "paths": ["/missing", "/dir.md", "/dir", "/dir.md"], "mode": mode})
        assert answer["unresolved"] == ["/missing"]
        assert {hit["path"] for hit in answer["hits"]} == {"/dir.md", "/dir/b.md"}


def test_exact_searches_know_case_words_and_expressions(grep: Grep) -> None:
    def lines(**args: object) -> list[tuple[str, int]]:
        return [(hit["path"], hit["start_line"]) for hit in grep.run({"paths": ["/"], **args})["hits"]]

    assert lines(q="LAUNCH", mode="literal", ignore_case=True, files_only=True) == [
        ("/a.md", 2), ("/dir/b.md", 1), ("/dir.md", 1), ("/latin", 1)
    ]  # fmt: skip
    assert lines(q="launch", mode="literal", whole_words=True) == [("/a.md", 2), ("/dir.md", 1), ("/latin", 1)]
    assert lines(q="^launch(es)?$", mode="regex") == [("/dir/b.md", 1), ("/dir.md", 1)]
    assert grep.run({"q": "launch", "paths": ["/"], "mode": "literal"})["binary"] == ["/bin"]


@pytest.mark.parametrize(
    ("data", "text", "line", "now"),
    [
        (b"one\ntwo\nthree\n", "two", 2, (2, 2)),
        (b"new\none\ntwo\n", "two", 2, (3, 3)),
        (b"one\n  two\n", "two", 2, (2, 2)),
        (b"one\ntwo\nthree\n", "two\nthree", 2, (2, 3)),
        (b"one\n", "two", 2, None),
        (b"", "two", 1, None),
        (b"two", "two", 9, (1, 1)),
        (b"x\n\none\n\ntwo\n", "\none", 9, (2, 3)),
        (b"x\nwrapped\nin another\nway\n", "wrapped in\nanother way", 1, (2, 4)),
        ("x\nKühl".encode("cp1252"), "Kühl", 2, (2, 2)),
        ("x\nKühl".encode("utf-16"), "Kühl", 1, (2, 2)),
        ("x\nKühl".encode("utf-32"), "Kühl", 2, (2, 2)),
        ("日本語\n".encode() + b"broken \xe6\x97 byte\n", "broken \ufffd\ufffd byte", 2, (2, 2)),
    ],
)
def test_a_hit_is_shown_where_its_text_is_now(data: bytes, text: str, line: int, now: tuple[int, int] | None) -> None:
    assert placed(data, text, line, line + text.count("\n")) == now


@pytest.mark.parametrize(
    ("beside", "path", "line"),
    [
        (b"# Scan\n\nThe warranty ends\nin May.\n", "/scan.pdf.pdf-transcription.md", 3),
        (b"# Scan\n\nSomething else\n", "/scan.pdf", 7),
        (None, "/scan.pdf", 7),
    ],
)
def test_a_hit_in_a_file_that_is_no_text_is_one_in_the_text_beside_it(
    tree: MemoryFs, grep: Grep, beside: bytes | None, path: str, line: int
) -> None:
    tree.put_file("/scan.pdf", [b"%PDF-1.7\n\0"], mode=0o644, mtime_ns=0, expected=None)
    if beside is not None:
        tree.put_file("/scan.pdf.pdf-transcription.md", [beside], mode=0o644, mtime_ns=0, expected=None)
    hit = SearchHit(
        path="/scan.pdf", document_id="D", kind="chunk", start_line=7, end_line=7, start_byte=0, end_byte=9,
        text="The warranty ends in May.", score=0.5,
    )  # fmt: skip
    shown = grep._as_it_is_now(hit)
    assert shown is not None
    assert (shown["path"], shown["start_line"]) == (path, line)


def test_a_search_in_a_file_that_is_no_text_is_one_in_the_text_beside_it(tree: MemoryFs, grep: Grep) -> None:
    for name in ("/talk.mp3", "/talk.mp3.audio-transcription.md"):
        tree.put_file(name, [b"a launch\n" if name.endswith("md") else b"ID3\0"], mode=0o644, mtime_ns=0, expected=None)
    assert [hit["path"] for hit in grep.run({"q": "launch", "paths": ["/talk.mp3"]})["hits"]] == [
        "/talk.mp3.audio-transcription.md"
    ]


@pytest.mark.parametrize(
    ("path", "sibling"),
    [
        ("/a/research paper.PDF", "/a/research paper.PDF.pdf-transcription.md"),
        ("/meeting.mp3", "/meeting.mp3.audio-transcription.md"),
        ("/d.png", "/d.png.image-transcription.md"),
        ("/v.mov", "/v.mov.video-transcription.md"),
        ("/notes.md", None),
        ("/pdf", None),
        ("/.png", None),
        ("/x.pdf/readme", None),
        (f"/{'x' * 240}.pdf", None),
    ],
)
def test_the_name_of_the_text_beside(path: str, sibling: str | None) -> None:
    assert sibling_of(path) == sibling
