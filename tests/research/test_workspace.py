"""The workspace is the only door: hostile paths end at it, and what a stage may not write stays as it is."""

from __future__ import annotations

import os
from itertools import product
from pathlib import Path

import pytest

from memdir.llm.port import ToolCall
from memdir.research.agent import Result
from memdir.research.archive import Archive
from memdir.research.checks import Checks
from memdir.research.state import Stage
from memdir.research.tools import FinishRound, Permission, Toolbox
from memdir.research.workspace import ConfinementError, Workspace, slug

_UP = [
    "..",
    "../..",
    "../../..",
    "%2e%2e",
    "..%2f",
    "....//",
    "..;",
    "．．",
    "‥",
    "․․",
    "\u2024\u2024",
    ".\u200b.",
    "..\\",
    "..\x00",
]
_TARGETS = ["etc/passwd", "root/.ssh/authorized_keys", "sibling.md", "sources/x.md", "x.md"]
_PREFIXES = ["", "/", "./", "knowledge_base/", "knowledge_base/../", "//", "~/", "file:///", "C:\\", "\\\\host\\"]
HOSTILE = [
    *(f"{prefix}{up}/{target}" for prefix, up, target in product(_PREFIXES, _UP[:10], _TARGETS)),
    *(f"knowledge_base/{name}.md" for name in ("a\nb", "a\x00b", "\x1b[2J", "x" * 250, ".hidden", "..", ".", "")),
    "/etc/passwd", "/work/../etc/passwd", "knowledge_base", "", ".", "..", "...", "~", "~root/x",
    "\\..\\..\\x", "a/b/c/d/e/f/g/h/i/j.md",
    ".memdir-research/journal.jsonl", "./.memdir-research/pause", "index.md/../topic.md", "INDEX.md", "topic.md",
    "state.json", "checks/x.json",
    "sources/forged.md", "./sources/forged.md", "sources/../sources/forged.md", "report.md", "report.html", "sections/01-x.md",
    "knowledge_base/x.txt", "knowledge_base/x.md/", "knowledge_base//x.md", "knowledge_base/./x.md",
    "link/x.md", "knowledge_base/link.md",
]  # fmt: skip


def toolbox(workspace: Workspace) -> Toolbox:
    class Nowhere:
        def search(self, query: str) -> Result:
            raise AssertionError

        def fetch(self, urls: object, question: str) -> Result:
            raise AssertionError

    archive = Archive(workspace)
    builder = Permission(
        tools=("list_files", "read", "search", "grep", "write", "edit", "move", "delete"),
        may_write=lambda path: path == "index.md" or (path.startswith("knowledge_base/") and path.endswith(".md")),
        where="notes",
        findings=lambda _said: [],
        finish=FinishRound,
    )
    return Toolbox(workspace, archive, Checks(workspace, archive), Nowhere(), builder)


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    made = Workspace(tmp_path / "work")
    made.make()
    made.write("knowledge_base/real.md", "real\n")
    (tmp_path / "sibling.md").write_text("outside\n")
    (made.root / "link").symlink_to(tmp_path)
    (made.root / "knowledge_base" / "link.md").symlink_to(tmp_path / "sibling.md")
    return made


def tree(root: Path) -> dict[str, bytes | str]:
    return {
        str(path.relative_to(root)): os.readlink(path) if path.is_symlink() else path.read_bytes()
        for path in root.rglob("*")
        if path.is_symlink() or path.is_file()
    }


@pytest.mark.promise("research.confined")
def test_no_hostile_path_writes_anything_anywhere(workspace: Workspace, tmp_path: Path) -> None:
    assert len(HOSTILE) >= 500
    tools = toolbox(workspace)
    stage = Stage(name="round-1")
    before = tree(tmp_path)
    for path in HOSTILE:
        calls = [
            ("write", {"path": path, "text": "owned"}),
            ("edit", {"path": path, "old": "r", "new": "owned"}),
            ("move", {"path": "knowledge_base/real.md", "to": path}),
            ("move", {"path": path, "to": "knowledge_base/stolen.md"}),
            ("delete", {"path": path}),
        ]
        for name, arguments in calls:
            result = tools.run(ToolCall(id="1", name=name, arguments=arguments), stage)
            # What a tool lets through is confined all the same: only names of notes and the index come out of it.
            for written in result.files or {}:
                assert written == "index.md" or written.startswith("knowledge_base/"), (name, path)
                place = workspace.place(written)
                assert place.is_relative_to(workspace.root), (name, path)
                assert not place.is_symlink(), (name, path)
            if path.startswith(("/", "~", "..", "sources", "link", "checks")) or "\x00" in path:
                assert not result.files, (name, path)
    assert tree(tmp_path) == before


@pytest.mark.promise("research.confined")
@pytest.mark.parametrize(
    "path", ["../sibling.md", "link/sibling.md", "knowledge_base/link.md", "/etc/passwd", ".memdir-research/journal.jsonl"]
)
def test_nothing_outside_is_read(workspace: Workspace, path: str) -> None:
    result = toolbox(workspace).run(ToolCall(id="1", name="read", arguments={"path": path}), Stage(name="round-1"))
    assert result.text.startswith("Refused")
    assert "outside\n" not in result.text


def test_a_link_that_appears_later_is_not_followed(workspace: Workspace, tmp_path: Path) -> None:
    (workspace.root / "knowledge_base" / "real.md").unlink()
    (workspace.root / "knowledge_base" / "real.md").symlink_to(tmp_path / "sibling.md")
    with pytest.raises(ConfinementError, match="symbolic link"):
        workspace.write("knowledge_base/real.md", "owned")
    assert "knowledge_base/real.md" not in workspace.files()
    assert (tmp_path / "sibling.md").read_text() == "outside\n"


def test_a_pipe_is_no_file(workspace: Workspace) -> None:
    os.mkfifo(workspace.root / "knowledge_base" / "pipe.md")
    assert workspace.read("knowledge_base/pipe.md") is None
    assert "knowledge_base/pipe.md" not in workspace.files()


def test_a_deleted_note_takes_its_empty_folder_along(workspace: Workspace) -> None:
    workspace.write("knowledge_base/area/deep/note.md", "x\n")
    workspace.delete("knowledge_base/area/deep/note.md")
    assert not (workspace.root / "knowledge_base" / "area").exists()
    assert (workspace.root / "knowledge_base").is_dir()


@pytest.mark.parametrize(
    ("title", "name"),
    [
        ("json — JSON encoder", "json-json-encoder"),
        ("日本語のページ", "日本語のページ"),
        ("Größe & Maß", "größe-maß"),
        ("../../etc/passwd", "etc-passwd"),
        ("   ", "page"),
        ("🎉🎉", "page"),
        ("a" * 300, "a" * 60),
        ("ｆｕｌｌ　ｗｉｄｔｈ", "full-width"),
    ],
)
def test_titles_of_every_script_make_names(title: str, name: str) -> None:
    assert slug(title) == name


def test_writing_what_was_read_changes_nothing(workspace: Workspace) -> None:
    text = "one\r\ntwo\x0cthree\u2028four\n"
    workspace.write("knowledge_base/a.md", text)
    assert workspace.lines("knowledge_base/a.md") == ["one\r", "two\x0cthree\u2028four"]
