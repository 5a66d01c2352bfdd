"""Files of memories: ours come back as they went, those of others are read as their makers document them."""

from __future__ import annotations

import gzip
import io
import json
import random
import tracemalloc
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from memdir.agents.portable import jsonstream, ours
from memdir.agents.portable.item import BadItemError, Item, Left, PortableError
from memdir.agents.portable.reading import read
from memdir.core.limits import ACCESSES_MAX

Memory = dict[str, Any]


def memory(content: str, number: int = 1, **more: Any) -> Memory:
    """As the server answers it."""
    return {
        "id": f"m{number}", "path": f"/memory/saas/{number}.md", "content": content, "tags": ["auth", "bug fix"],
        "project": "my-saas", "createdAt": "2026-11-20T10:00:00Z", "updatedAt": "2026-11-21T10:00:00Z", "accessCount": 3,
        "metadata": {"a": {"b": [1]}},
    } | more  # fmt: skip


def written(memories: list[Memory], form: str) -> str:
    write = {"json": ours.write_json, "markdown": ours.write_markdown}[form]
    return "".join(write(memories, container="agents", exported_at="2026-11-22T00:00:00Z"))


def items(path: Path, left: Left | None = None, form: str | None = None) -> list[Item]:
    found = list(read(path, left or Left(), form=form))
    assert not [one for one in found if isinstance(one, BadItemError)]
    return [one for one in found if isinstance(one, Item)]


def save(folder: Path, name: str, text: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


HARD = [
    "plain", "two\nlines\n", "\n\nbegins with nothing", "# a heading\n\n## another", "ends in spaces  ",
    "<!-- /memory -->", "\\<!-- /memory -->\n<!-- memory {} -->", "x <!-- /memory --> y", "a\rb\r\nc\r", "--> … \u2028 \x0b",
    '{"json": [1]}', "---\nformat: memdir-memories\n---",
]  # fmt: skip


@pytest.mark.parametrize("form", ["json", "markdown"])
def test_what_was_exported_is_read_back_as_it_was(tmp_path: Path, form: str) -> None:
    memories = [memory(text, number) for number, text in enumerate(HARD)] + [
        memory("bare", 99, tags=[], project=None, metadata={})
    ]
    path = save(tmp_path, f"m.{form}", written(memories, form))
    found = items(path)
    assert [one.content for one in found] == [one["content"] for one in memories]
    assert found[0].tags == ("auth", "bug fix")
    assert (found[0].project, found[0].access_count, found[0].metadata) == ("my-saas", 3, {"a": {"b": [1]}})
    assert (found[0].created_at, found[0].updated_at) == ("2026-11-20T10:00:00Z", "2026-11-21T10:00:00Z")
    assert (found[-1].project, found[-1].tags, found[-1].metadata) == (None, (), {})


@pytest.mark.parametrize("form", ["json", "markdown"])
def test_random_texts_come_back(tmp_path: Path, form: str) -> None:
    random_ = random.Random(3)
    parts = ["<!-- memory", "<!-- /memory -->", "\\", "\n", "## ", "---", " ", "a", "ä", "\r", '"', "-->", "{"]
    texts = ["x" + "".join(random_.choice(parts) for _ in range(random_.randrange(12))) for _ in range(300)]
    path = save(tmp_path, f"m.{form}", written([memory(text, number) for number, text in enumerate(texts)], form))
    assert [one.content for one in items(path)] == texts


def test_markdown_that_a_person_changed_is_read(tmp_path: Path) -> None:
    text = written([memory("first"), memory("second", 2)], "markdown").replace("first", "first, corrected")
    text = text.replace("# Memories", "# Memories\n\nKept by me.").replace("\n", "\r\n")
    assert [one.content for one in items(save(tmp_path, "m.md", text))] == ["first, corrected", "second"]


def test_an_empty_export_is_a_file_with_nothing_in_it(tmp_path: Path) -> None:
    for form in ("json", "markdown"):
        assert items(save(tmp_path, f"e.{form}", written([], form))) == []


@pytest.mark.parametrize("form", ["json", "markdown"])
def test_a_newer_version_is_refused_and_says_so(tmp_path: Path, form: str) -> None:
    text = written([memory("x")], form).replace('"version": 1', '"version": 2').replace("version: 1", "version: 2")
    with pytest.raises(PortableError, match="version 2 of this format") as raised:
        items(save(tmp_path, f"m.{form}", text))
    assert "newer memdir" in raised.value.hint


@pytest.mark.parametrize(
    ("name", "text", "why"),
    [
        ("a.json", "", "empty"),
        ("a.json", '{"format": "memdir-memories", "version": 1, "memories": [\n{"content": "a"},\n{"content": }]}', "line 3"),
        ("a.json", '{"format": "memdir-memories", "version": 1, "memories": [\n{"content": "a"}', "line 2"),
        ("a.json", '{"format": "memdir-memories", "version": 1, "memories": []} more', "behind the end"),
        ("a.md", "---\nformat: memdir-memories\nversion: 1\n---\n\n<!-- memory {} -->\n## x\n\ntext\n", "line 6"),
        ("a.md", "---\nformat: memdir-memories\nversion: 1\n---\n<!-- memory {oops} -->\n", "line 5"),
        ("a.txt", "some text", "no export that is known"),
        ("a.json", '{"what": "else"}', "no export that is known"),
        ("a.json", b"{\xff\xfe", "UTF-8"),
        ("a.zip", b"PK\x03\x04rubbish", "damaged"),
        ("a.gz", gzip.compress(b'{"format": "memdir-memories"', mtime=0)[:-9], "damaged"),
    ],
)
def test_a_bad_file_is_refused_with_line_and_reason(tmp_path: Path, name: str, text: str | bytes, why: str) -> None:
    with pytest.raises(PortableError, match=why):
        list(read(save(tmp_path, name, text), Left()))


def test_a_memory_that_was_used_beyond_what_an_import_may_say_is_taken(tmp_path: Path) -> None:
    row = {"content": "often", "accessCount": ACCESSES_MAX + 1}
    (one,) = items(save(tmp_path, "m.json", json.dumps({"format": "memdir-memories", "version": 1, "memories": [row]})))
    assert one.access_count == ACCESSES_MAX


def test_a_line_that_was_cut_off_spoils_itself_alone(tmp_path: Path) -> None:
    path = save(tmp_path, "m.jsonl", '{"type": "entity", "name": "a", "observations": ["b"]}\n\n{"type": ')
    found = list(read(path, Left()))
    assert [type(one) for one in found] == [Item, BadItemError]
    assert isinstance(found[1], BadItemError)
    assert found[1].message.startswith("line 3: it is no JSON")


def test_entries_that_are_no_memories_are_told_by_line_beside_those_that_are(tmp_path: Path) -> None:
    rows = [{"content": "good"}, {"content": "  "}, 7, {"content": "x", "createdAt": "soon"}, {"content": "y" * 100_001}]
    lines = ",\n".join(json.dumps(row) for row in rows)
    path = save(tmp_path, "m.json", '{"format": "memdir-memories", "version": 1, "memories": [\n' + lines + "]}")
    found = list(read(path, Left()))
    assert [type(one) for one in found] == [Item] + [BadItemError] * 4
    told = [one.message for one in found if isinstance(one, BadItemError)]
    assert [text.partition(":")[0] for text in told] == ["line 3", "line 4", "line 5", "line 6"]
    assert "'soon' is no time" in told[2]


# --- others ------------------------------------------------------------------------------------------------------------


@pytest.mark.promise("agent.foreign")
def test_the_graph_of_the_reference_mcp_server_is_read(tmp_path: Path) -> None:
    records = [
        {"type": "entity", "name": "John_Smith", "entityType": "person", "observations": ["Speaks Spanish", "Likes tea"]},
        {"type": "relation", "from": "John_Smith", "to": "Anthropic", "relationType": "works_at"},
        {"type": "entity", "name": "Anthropic", "entityType": "organization", "observations": ["An AI company"]},
        {"type": "relation", "from": "Nobody", "to": "Anthropic", "relationType": "knows"},
    ]
    left = Left()
    found = items(save(tmp_path, "memory.jsonl", "\n".join(map(json.dumps, records))), left)
    assert found[0].content == "John_Smith\n- Speaks Spanish\n- Likes tea\n- John_Smith works_at Anthropic"
    assert (found[1].content, found[1].tags) == ("Anthropic: An AI company", ("organization",))
    assert left.counts == {"relations of no entity": 1}
    plain = [{name: value for name, value in record.items() if name != "type"} for record in records]
    graph = {"entities": [plain[0], plain[2]], "relations": [plain[1], plain[3]]}
    assert [one.content for one in items(save(tmp_path, "graph.json", json.dumps(graph, indent=2)))] == [
        one.content for one in found
    ]


@pytest.mark.promise("agent.foreign")
def test_what_mem0_answered_is_read(tmp_path: Path) -> None:
    rows = [
        {
            "id": "892db2ae", "memory": "Prefers async meetings", "user_id": "arjun", "hash": "x", "categories": ["preference"],
            "metadata": {"type": "preference", "project": "api"}, "created_at": "2025-07-01T12:00:00-07:00", "updated_at": None,
        },
        {"id": "2", "memory": "Leads the API redesign", "metadata": None, "created_at": "2025-07-02T00:00:00"},
    ]  # fmt: skip
    left = Left()
    answer = {"results": rows, "relations": [{"source": "arjun", "relationship": "leads", "target": "api"}]}
    found = items(save(tmp_path, "mem0.json", json.dumps(answer)), left)
    assert [one.content for one in found] == ["Prefers async meetings", "Leads the API redesign"]
    assert (found[0].tags, found[0].project, found[0].created_at) == (("preference",), "api", "2025-07-01T19:00:00Z")
    assert found[0].metadata["user_id"] == "arjun"
    assert left.counts == {"relations": 1}
    assert len(items(save(tmp_path, "list.json", json.dumps(rows)))) == 2
    paged = {"count": 2, "next": None, "previous": None, "results": rows}
    assert len(items(save(tmp_path, "page.json", json.dumps(paged, indent=1)))) == 2


@pytest.mark.promise("agent.foreign")
def test_a_backup_of_openmemory_is_read_without_what_was_deleted(tmp_path: Path) -> None:
    rows = [
        {"id": "1", "content": "Uses pnpm", "metadata": {}, "created_at": "2025-05-01T00:00:00+00:00", "state": "active",
         "app": "cursor", "categories": ["tools"]},
        {"id": "2", "content": "Uses npm", "metadata": {}, "state": "deleted", "app": "cursor", "categories": []},
    ]  # fmt: skip
    path = tmp_path / "memories_export.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("memories.json", "{}")
        archive.writestr("memories.jsonl.gz", gzip.compress("\n".join(map(json.dumps, rows)).encode()))
    left = Left()
    found = items(path, left)
    assert [(one.content, one.tags, one.metadata["app"]) for one in found] == [("Uses pnpm", ("tools",), "cursor")]
    assert left.counts == {"deleted memories": 1}


NOTE = """---
title: Authentication Design
type: note
tags: [auth, security]
permalink: specs/authentication-design
created: 2026-01-03
---

# Authentication Design

## Observations
- [decision] Using JWT tokens #backend (after review)
- [constraint] Tokens expire after 15 minutes

## Relations
- implements [[API Security Requirements]]
"""


@pytest.mark.promise("agent.foreign")
def test_notes_of_basic_memory_are_read_from_file_folder_and_zip(tmp_path: Path) -> None:
    folder = tmp_path / "notes"
    (folder / "specs").mkdir(parents=True)
    (folder / ".obsidian").mkdir()
    save(folder / ".obsidian", "x.md", "hidden")
    save(folder / "specs", "auth.md", NOTE)
    save(folder, "plain.md", "Only words.")
    save(folder, "picture.png", b"\x89PNG")
    left = Left()
    found = items(folder, left)
    assert [one.where for one in found] == ["plain.md", "specs/auth.md"]
    assert found[1].tags == ("auth", "security", "backend")
    assert found[1].content.startswith("# Authentication Design\n\n## Observations\n- [decision] Using JWT")
    assert (found[1].created_at, found[1].metadata["permalink"]) == ("2026-01-03T00:00:00Z", "specs/authentication-design")
    assert left.counts == {"files that are no notes": 1}
    with zipfile.ZipFile(tmp_path / "notes.zip", "w") as archive:
        for one in ("plain.md", "specs/auth.md"):
            archive.write(folder / one, one)
    assert [one.content for one in items(tmp_path / "notes.zip")] == [one.content for one in found]
    assert items(folder / "specs" / "auth.md")[0].content == found[1].content


@pytest.mark.promise("agent.foreign")
def test_an_export_of_claude_mem_is_read(tmp_path: Path) -> None:
    export = {
        "exportedAt": "2026-01-03T00:00:00.000Z", "exportedAtEpoch": 1767398400000, "query": "windows", "totalObservations": 1,
        "totalSessions": 1, "totalSummaries": 1, "totalPrompts": 1,
        "observations": [{
            "id": 7, "memory_session_id": "s1", "project": "my-app", "type": "bugfix", "title": "Path separators",
            "subtitle": "On Windows", "narrative": "Joined with a slash.", "facts": '["use path.join", "tested on 11"]',
            "concepts": ["gotcha"], "files_read": "[]", "files_modified": '["src/a.ts"]', "created_at": "2026-01-02T00:00:00Z",
            "created_at_epoch": 1767312000000,
        }],
        "sessions": [{"memory_session_id": "s1"}],
        "summaries": [{"id": 1, "project": "my-app", "request": "Fix paths", "learned": "Never join by hand", "completed": ""}],
        "prompts": [{"id": 1, "prompt_text": "fix it"}],
    }  # fmt: skip
    left = Left()
    found = items(save(tmp_path, "c.json", json.dumps(export, indent=2)), left)
    assert found[0].content == "Path separators · On Windows\n\nJoined with a slash.\n\n- use path.join\n- tested on 11"
    assert (found[0].tags, found[0].project, found[0].created_at) == (("bugfix", "gotcha"), "my-app", "2026-01-02T00:00:00Z")
    assert found[0].metadata["filesModified"] == ["src/a.ts"]
    assert (found[1].content, found[1].tags) == ("Asked for: Fix paths\nLearned: Never join by hand", ("session-summary",))
    assert left.counts == {"sessions": 1, "prompts": 1}


def test_a_form_that_is_named_has_to_fit(tmp_path: Path) -> None:
    path = save(tmp_path, "m.json", written([memory("x")], "json"))
    assert len(items(path, form="memdir")) == 1
    with pytest.raises(PortableError, match="looks like an export of memdir"):
        items(path, form="mem0")


# --- large files -------------------------------------------------------------------------------------------------------


def rows(count: int) -> Iterator[Memory]:
    for number in range(count):
        yield memory(f"memory {number}: " + "words and more words " * 5, number)


@pytest.mark.parametrize("write", [ours.write_json, ours.write_markdown])
def test_a_large_file_is_read_in_bounded_memory(tmp_path: Path, write: Callable[..., Iterator[str]]) -> None:
    path = tmp_path / "large"
    with path.open("w", newline="") as target:
        target.writelines(write(rows(6000), container="agents", exported_at="2026-11-22T00:00:00Z"))
    assert path.stat().st_size > 1_500_000
    tracemalloc.start()
    try:
        count = sum(1 for _ in read(path, Left()))
        peak_bytes = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert count == 6000
    assert peak_bytes < 1_500_000 + 4 * jsonstream.PIECE_CHARS


@pytest.mark.parametrize("piece", [1, 2, 7, 64])
def test_entries_are_the_same_however_the_file_is_cut(piece: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jsonstream, "PIECE_CHARS", piece)
    text = ' {"a": 12,\n "b": [1, 23, "x\\n\\u00e4", {"c": []},\n null], "d": [], "e": -1.5e3 }\n'
    found = [(one.key, one.index, one.line, one.value) for one in jsonstream.entries(io.StringIO(text))]
    assert found == [
        ("a", None, 1, 12), ("b", 0, 2, 1), ("b", 1, 2, 23), ("b", 2, 2, "x\nä"), ("b", 3, 2, {"c": []}), ("b", 4, 3, None),
        ("e", None, 3, -1500.0),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "line"), [('{"a": 1\n "b": 2}', 2), ("[1,\n2,\n,3]", 3), ("[1", 1), ("{\n1: 2}", 2), ("7", 1)]
)
def test_an_error_says_its_line_however_the_file_is_cut(text: str, line: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for piece in (1, 3, 1000):
        monkeypatch.setattr(jsonstream, "PIECE_CHARS", piece)
        with pytest.raises(PortableError, match=f"^line {line}:"):
            list(jsonstream.entries(io.StringIO(text)))
