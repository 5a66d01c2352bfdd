"""The memory tool on a folder and on a server: documented texts, bounds, and paths that want out."""

from __future__ import annotations

import itertools
import os
import stat
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from memdir.agents.memory_tool import MemoryTool, MemoryToolError
from memdir.agents.memory_tool.commands import VIEW_MAX_CHARS
from memdir.agents.memory_tool.files import ENTRIES_MAX, FILE_MAX_BYTES
from memdir.agents.memory_tool.paths import names_of
from memdir.agents.memory_tool.remote import FOLDER, ServerFiles
from memdir.client.http import Client
from memdir.client.local import ensure_server, stop_server
from memdir.core.paths import AppPaths, under_home
from tests.exercise.vectors import vectors

_numbers = itertools.count(1)
SAFE = "canary, do not touch\n"


class Stand:
    """A memory tool, and a way to put and see files that does not go through it."""

    def __init__(self, tool: MemoryTool, put: Callable[[str, bytes], None], get: Callable[[str], bytes]) -> None:
        self.tool = tool
        self.put = put
        self.get = get

    def said(self, command: str, **given: Any) -> str:
        """The text of a command that works."""
        reply = self.tool.run({"command": command, **given})
        assert not reply.is_error, reply.text
        return reply.text

    def refused(self, command: str, **given: Any) -> str:
        """The text of a command that does not."""
        reply = self.tool.run({"command": command, **given})
        assert reply.is_error, reply.text
        return reply.text


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AppPaths]:
    """A home with a server that runs."""
    paths = under_home(tmp_path_factory.mktemp("tool"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MEMDIR_HOME", str(paths.config_dir.parent))
        ensure_server(paths)
        yield paths
        stop_server(paths)


@pytest.fixture(params=["folder", "server"])
def stand(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Stand]:
    if request.param == "folder":
        root = tmp_path / "memory"
        tool = MemoryTool.on_folder(root)

        def put(path: str, content: bytes) -> None:
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_bytes(content)

        yield Stand(tool, put, lambda path: (root / path).read_bytes())
        return
    info = ensure_server(request.getfixturevalue("home"))
    container = f"tool-{next(_numbers)}"
    with Client.to(info) as client:
        yield Stand(
            MemoryTool(ServerFiles(client, container)),
            lambda path, content: client.put_file(container, f"{FOLDER}/{path}", content) and None,
            lambda path: client.read_file(container, f"{FOLDER}/{path}"),
        )


@pytest.mark.promise("agent.memory-tool")
def test_the_six_commands_answer_in_the_documented_words(stand: Stand) -> None:
    path = "/memories/shop/notes.md"
    assert stand.said("create", path=path, file_text="one\ntwo\nthree\n") == f"File created successfully at: {path}"
    assert stand.refused("create", path=path, file_text="x") == f"Error: File {path} already exists"
    assert stand.said("view", path=path) == (
        f"Here's the content of {path} with line numbers:\n     1\tone\n     2\ttwo\n     3\tthree"
    )
    assert stand.said("view", path=path, view_range=[2, -1]).splitlines()[1:] == ["     2\ttwo", "     3\tthree"]
    assert stand.said("str_replace", path=path, old_str="two", new_str="zwei\ndos") == (
        "The memory file has been edited.\n     1\tone\n     2\tzwei\n     3\tdos\n     4\tthree"
    )
    assert stand.said("insert", path=path, insert_line=0, insert_text="zero\n") == f"The file {path} has been edited."
    assert stand.said("insert", path=path, insert_line=5, insert_text="last") == f"The file {path} has been edited."
    assert stand.get("shop/notes.md") == b"zero\none\nzwei\ndos\nthree\nlast\n"
    moved = "/memories/archive/2026/notes.md"
    assert stand.said("rename", old_path=path, new_path=moved) == f"Successfully renamed {path} to {moved}"
    assert stand.get("archive/2026/notes.md").startswith(b"zero\n")
    assert stand.said("delete", path="/memories/archive") == "Successfully deleted /memories/archive"
    assert stand.refused("view", path=moved) == f"The path {moved} does not exist. Please provide a valid path."


def test_a_view_of_a_folder_shows_two_levels_with_sizes_and_leaves_hidden_ones_out(stand: Stand) -> None:
    for path, size in {
        "a.md": 5632, "b/c.md": 10, "b/d/e.md": 7, "b/d/f/g.md": 1, ".secret": 3, "node_modules/x.js": 3, "z.md": 0,
    }.items():  # fmt: skip
        stand.put(path, b"x" * size)
    head, *lines = stand.said("view", path="/memories/").splitlines()
    assert head == (
        "Here're the files and directories up to 2 levels deep in /memories, excluding hidden items and node_modules:"
    )
    listed = dict(reversed(line.split("\t")) for line in lines)
    assert list(listed) == [
        "/memories", "/memories/a.md", "/memories/b", "/memories/b/c.md", "/memories/b/d", "/memories/z.md",
    ]  # fmt: skip
    assert (listed["/memories/a.md"], listed["/memories/b/c.md"], listed["/memories/z.md"]) == ("5.5K", "10B", "0B")


def test_what_cannot_be_done_is_said_in_the_documented_words_and_changes_nothing(stand: Stand) -> None:
    stand.put("n.md", b"same\nother\nsame\n")
    stand.put("f/x.md", b"x\n")
    path, gone = "/memories/n.md", "/memories/gone.md"
    no_path = f"Error: The path {gone} does not exist"
    please = ". Please provide a valid path."
    assert stand.refused("str_replace", path=gone, old_str="a", new_str="b") == no_path + please
    assert stand.refused("str_replace", path=path, old_str="never", new_str="b") == (
        f"No replacement was performed, old_str `never` did not appear verbatim in {path}."
    )
    assert stand.refused("str_replace", path=path, old_str="same", new_str="b") == (
        "No replacement was performed. Multiple occurrences of old_str `same` in lines: 1, 3. Please ensure it is unique"
    )
    assert stand.refused("insert", path=gone, insert_line=0, insert_text="a") == no_path
    for line in (4, -1, "1", None, True):
        assert stand.refused("insert", path=path, insert_line=line, insert_text="a") == (
            f"Error: Invalid `insert_line` parameter: {line}. It should be within the range of lines of the file: [0, 3]"
        )
    for view_range in ([0, 1], [2, 1], [1, 4], [1], "1-2", [True, 2], [1, 2, 3], [1.0, 2]):
        assert "Invalid `view_range`" in stand.refused("view", path=path, view_range=view_range)
    assert stand.refused("delete", path=gone) == no_path
    assert stand.refused("rename", old_path=gone, new_path="/memories/m.md") == no_path
    assert stand.refused("rename", old_path=path, new_path="/memories/f/x.md") == (
        "Error: The destination /memories/f/x.md already exists"
    )
    assert "into itself" in stand.refused("rename", old_path="/memories/f", new_path="/memories/f/g/h")
    assert "does not exist" in stand.refused("str_replace", path="/memories/f", old_str="a", new_str="b")
    assert "does not exist" in stand.refused("insert", path="/memories/f", insert_line=0, insert_text="b")
    for command in ("create", "delete"):
        assert "itself cannot be" in stand.refused(command, path="/memories", file_text="x")
    assert "itself cannot be" in stand.refused("rename", old_path="/memories", new_path="/memories/x")
    assert "already exists" in stand.refused("rename", old_path="/memories/f", new_path="/memories")
    assert "already exists" in stand.refused("create", path="/memories/n.md/below.md", file_text="x")
    assert "no such command" in stand.refused("undo_edit", path=path)
    assert "no such command" in stand.tool.run(["view", path]).text
    assert "`file_text` is required" in stand.refused("create", path=gone)
    assert stand.get("n.md") == b"same\nother\nsame\n"


def test_sizes_are_bounded_and_what_is_no_text_is_left_alone(stand: Stand) -> None:
    stand.put("long.md", "".join(f"line {number}\n" for number in range(5000)).encode())
    stand.put("wide.md", b"w" * (VIEW_MAX_CHARS * 2))
    stand.put("huge.md", b"h" * (FILE_MAX_BYTES + 1))
    stand.put("picture.png", b"\x89PNG\xff\xfe")
    text = stand.said("view", path="/memories/long.md")
    assert len(text) < VIEW_MAX_CHARS + 300
    cut = text.splitlines()[-1]
    assert "view_range" in cut
    start = int(cut.split("line ")[1].split()[0])
    rest = stand.said("view", path="/memories/long.md", view_range=[start, -1])
    assert rest.splitlines()[1] == f"{start:6d}\tline {start - 1}"
    assert len(stand.said("view", path="/memories/wide.md")) < VIEW_MAX_CHARS + 300
    for command in ("view", "str_replace"):
        assert "larger than" in stand.refused(command, path="/memories/huge.md", old_str="h", new_str="i")
        assert "not a text file" in stand.refused(command, path="/memories/picture.png", old_str="P", new_str="Q")
    big = "x" * FILE_MAX_BYTES
    assert "at most" in stand.refused("create", path="/memories/big.md", file_text=big + "x")
    assert "at most" in stand.refused("insert", path="/memories/long.md", insert_line=0, insert_text=big)
    assert "surrogate" in stand.refused("create", path="/memories/s.md", file_text="\ud800")
    assert stand.get("picture.png") == b"\x89PNG\xff\xfe"


def test_a_folder_with_very_many_files_is_shown_in_part(tmp_path: Path) -> None:
    for number in range(ENTRIES_MAX + 5):
        (tmp_path / f"{number:05}.md").touch()
    reply = MemoryTool.on_folder(tmp_path).run({"command": "view", "path": "/memories"})
    assert len(reply.text.splitlines()) == ENTRIES_MAX + 3
    assert "only the first" in reply.text


# --- paths that want out ------------------------------------------------------------------------------------------

_FRONTS = ("", "/memories/", "/memories", "/memories/a/", "/memories//", "/memories/./")


def escapes() -> list[str]:
    """Every vector of the mount's tests behind each beginning."""
    return [front + vector for vector in vectors() for front in _FRONTS]


@pytest.mark.promise("agent.memory-tool")
def test_no_path_leads_out_of_the_root_whatever_it_is_made_of(tmp_path: Path) -> None:
    """With symlinks out of the root in place, as somebody with a shell in the mount may have put them."""
    root, canary = tmp_path / "in" / "memory", tmp_path / "in" / "canary"
    tool = MemoryTool.on_folder(root)
    canary.write_text(SAFE)
    (root / "a").mkdir()
    (root / "link").symlink_to(tmp_path / "in")
    (root / "up").symlink_to("..")
    (root / "file").symlink_to(canary)
    (root / "a" / "self").symlink_to("/proc/self")
    tried = [*escapes(), "/memories/file", "/memories/link/canary", "/memories/up/canary", "/memories/a/self/environ"]
    assert len(tried) > 3000
    before = _tree(tmp_path, but=root)
    for path in tried:
        replies = [
            tool.run({"command": "view", "path": path}),
            tool.run({"command": "create", "path": path, "file_text": "x"}),
            tool.run({"command": "str_replace", "path": path, "old_str": "canary", "new_str": "x"}),
            tool.run({"command": "insert", "path": path, "insert_line": 0, "insert_text": "x"}),
            tool.run({"command": "rename", "old_path": path, "new_path": "/memories/got"}),
            tool.run({"command": "rename", "old_path": "/memories/a", "new_path": path}),
            tool.run({"command": "delete", "path": path}),
        ]
        assert not any("do not touch" in reply.text for reply in replies), path
        if not (root / "a").is_dir():  # it was renamed, or deleted, inside
            (root / "a").mkdir()
    assert _tree(tmp_path, but=root) == before
    assert canary.read_text() == SAFE


def _tree(folder: Path, *, but: Path) -> list[tuple[str, int, bytes]]:
    """Everything below a folder but what is below `but`: names, kinds, contents."""
    found = []
    for place, names, files in os.walk(folder):
        if Path(place) == but:
            names.clear()
            continue
        for name in (*names, *files):
            path = Path(place) / name
            mode = path.lstat().st_mode
            found.append((str(path), stat.S_IFMT(mode), path.read_bytes() if stat.S_ISREG(mode) else b""))
    return sorted(found)


REFUSED = [
    "memories/x", "/Memories/x", "/memoriesx", "/memories\\x", "/memories/../x", "/memories/a/../../x", "/memories/..",
    "/memories/.", "/memories//x", "/memories/a//b", "/memories/\0", "/memories/a\0.md", "/memories/a\n", "/memories/\u202ea",
    "/memories/\u200b", "/memories/%2e%2e/x", "/memories/%252e%252e/x", "/memories/a%2fb", "/memories/a%00", "/memories/%c0%ae",
    "/memories/\uff0e\uff0e/x", "/memories/\u2025/x", "/memories/\u2024\u2024/x", "/memories/a\u2215b", "/memories/a\uff0fb",
    "/memories/a\u2044b", "/memories/\ud800", "/memories/ x", "/memories/x ", "/memories/" + "x" * 256,
    "/memories/" + "a/" * 2100 + "b", "", "/", "/etc/passwd", "file:///memories/x", "~/memories/x", None, 7,
    ["/memories/x"], b"/memories/x",
]  # fmt: skip


@pytest.mark.promise("agent.memory-tool")
@pytest.mark.parametrize("path", REFUSED, ids=[ascii(path)[:40] for path in REFUSED])
def test_a_path_that_is_not_plainly_inside_is_refused(path: object) -> None:
    with pytest.raises(MemoryToolError) as refused:
        names_of(path)
    assert len(refused.value.message) < 1000
    assert refused.value.message.isprintable()


@pytest.mark.parametrize(
    ("path", "names"),
    [
        ("/memories", ()), ("/memories/", ()), ("/memories/a.md", ("a.md",)), ("/memories/a/b/", ("a", "b")),
        ("/memories/.hidden", (".hidden",)), ("/memories/a..b", ("a..b",)), ("/memories/100%.md", ("100%.md",)),
        ("/memories/ü/日本語.md", ("ü", "日本語.md")), ("/memories/v1.2.3", ("v1.2.3",)), ("/memories/a b", ("a b",)),
    ],
)  # fmt: skip
def test_plain_paths_are_taken_as_they_are(path: str, names: tuple[str, ...]) -> None:
    assert names_of(path) == names


def test_devices_and_pipes_are_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    tool = MemoryTool.on_folder(tmp_path)
    assert "does not exist" in tool.run({"command": "view", "path": "/memories/pipe"}).text
    assert tool.run({"command": "create", "path": "/memories/pipe", "file_text": "x"}).is_error


def test_tools_that_edit_one_file_at_once_lose_nothing(stand: Stand) -> None:
    stand.put("log.md", b"")

    def write(number: int) -> None:
        for turn in range(8):
            stand.said("insert", path="/memories/log.md", insert_line=0, insert_text=f"{number}:{turn}")

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(write, range(4)))
    lines = stand.get("log.md").decode().splitlines()
    assert sorted(lines) == sorted(f"{number}:{turn}" for number in range(4) for turn in range(8))
