"""The main job on a real mount with a real server: write, find by meaning, edit, rename, delete, mount again."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest

from tests.acceptance.driver import Memdir, eventually, tree_of

pytestmark = pytest.mark.mount

KEYS = "The spare key hangs at the bakery downstairs.\n"
ASK_KEYS = "how do I get in when locked out"


@pytest.mark.promise("grep.by-meaning", "grep.own-writes", "grep.scope-exact-lines")
def test_a_file_is_found_by_meaning_right_after_it_was_written(memdir: Memdir, notes: Path) -> None:
    (notes / "house").mkdir()
    (notes / "house" / "keys.md").write_text(f"# House\n\nThe boiler is serviced in May.\n\n{KEYS}\nBins go out on Tuesday.\n")
    (notes / "cake.md").write_text("Two eggs, flour, butter and a lemon.\n")
    best = memdir.hits(ASK_KEYS, notes)[0]
    assert best["path"].endswith("house/keys.md")
    assert best["kind"] == "chunk"
    assert best["start_line"] <= 5 <= best["end_line"]
    assert "bakery" in best["text"]


@pytest.mark.promise("grep.json")
def test_json_hits_have_every_field(memdir: Memdir, notes: Path) -> None:
    (notes / "keys.md").write_text(KEYS)
    hit = memdir.hits(ASK_KEYS, notes)[0]
    assert hit.keys() >= {"path", "start_line", "end_line", "text", "score", "kind", "document_id"}
    assert 0 <= hit["score"] <= 1
    assert (hit["start_line"], hit["end_line"]) == (1, 1)


def test_a_file_that_the_server_cannot_take_is_found_by_its_words(memdir: Memdir, notes: Path) -> None:
    (notes / "keys.md").write_text(KEYS)
    Path(os.fsdecode(os.fsencode(notes) + b"/caf\xe9.md")).write_text("The zebra lives in the attic.\n")
    hits = [hit for hit in memdir.hits("zebra", notes) if "zebra" in hit["text"]]
    assert [(hit["kind"], hit["start_line"]) for hit in hits] == [("pending", 1)]
    again = memdir.run("grep", "zebra", notes)
    assert "The zebra lives in the attic." in again.out


def test_an_edit_is_found_and_the_old_text_is_not(memdir: Memdir, notes: Path) -> None:
    (notes / "pet.md").write_text("Our dog is called Bruno.\n")
    assert "Bruno" in memdir.hits("name of the canine", notes / "pet.md")[0]["text"]
    (notes / "pet.md").write_text("Our cat is called Minka.\n")
    texts = [hit["text"] for hit in memdir.hits("name of the feline", notes)]
    assert "Minka" in texts[0]
    assert not any("Bruno" in text for text in texts)


def test_a_renamed_file_is_found_at_its_new_place_only(memdir: Memdir, notes: Path) -> None:
    (notes / "old.md").write_text(KEYS)
    assert memdir.hits(ASK_KEYS, notes)[0]["path"].endswith("old.md")
    (notes / "deep").mkdir()
    (notes / "old.md").rename(notes / "deep" / "new.md")
    assert {Path(hit["path"]).name for hit in memdir.hits(ASK_KEYS, notes)} == {"new.md"}


def test_a_renamed_folder_takes_its_files_along(memdir: Memdir, notes: Path) -> None:
    (notes / "a" / "b").mkdir(parents=True)
    (notes / "a" / "b" / "keys.md").write_text(KEYS)
    assert memdir.hits(ASK_KEYS, notes) != []
    (notes / "a").rename(notes / "z")
    assert [hit["path"].split("/", 1)[-1] for hit in memdir.hits(ASK_KEYS, cwd=notes)] == ["b/keys.md"]


def test_a_deleted_file_is_found_no_more(memdir: Memdir, notes: Path) -> None:
    (notes / "keys.md").write_text(KEYS)
    assert memdir.hits(ASK_KEYS, notes) != []
    (notes / "keys.md").unlink()
    assert memdir.run("grep", ASK_KEYS, notes, expect=1).out == ""


@pytest.mark.promise("grep.anywhere", "grep.relative-path", "grep.line-format")
def test_lines_name_paths_as_the_caller_sees_them(memdir: Memdir, notes: Path) -> None:
    (notes / "house").mkdir()
    (notes / "house" / "keys.md").write_text(f"one\n\n{KEYS}")
    inside = memdir.run("grep", "where is the spare key", cwd=notes / "house").lines[0]
    assert re.fullmatch(r"keys\.md:\d+(-\d+)?:.*bakery.*", inside)
    outside = memdir.run("grep", "where is the spare key", notes, cwd=memdir.home).lines[0]
    assert outside.startswith(f"{notes}/house/keys.md:")


def test_text_of_several_lines_is_shown_on_one(memdir: Memdir, notes: Path) -> None:
    (notes / "poem.md").write_text("The spare key\thangs\r\nat the bakery\x1b[31m downstairs.\n")
    lines = memdir.run("grep", "where is the spare key", cwd=notes).lines
    assert lines != []
    for line in lines:
        assert re.match(r"poem\.md:\d+(-\d+)?:", line)
        assert "\x1b" not in line


@pytest.mark.promise("grep.scope-folder", "grep.scope-file", "grep.scope-all")
def test_the_scope_is_kept_exactly(memdir: Memdir, notes: Path) -> None:
    for folder in ("a", "ab", "a.b", "a_"):
        (notes / folder).mkdir()
        (notes / folder / "keys.md").write_text(f"{KEYS}Written in {folder}.\n")  # equal files would take one place
    (notes / "a" / "other.md").write_text(f"{KEYS}Written elsewhere.\n")
    memdir.run("sync", notes, "--wait")  # a search waits 30 ms for what was just saved, which a busy machine may not keep

    def found(*scope: str) -> set[str]:
        return {hit["path"] for hit in memdir.hits(ASK_KEYS, *scope, "-k", "50", cwd=notes)}

    assert found("a") == found("a/") == {"a/keys.md", "a/other.md"}
    assert found("a/keys.md") == {"a/keys.md"}
    assert found() == found(".") == {"a/keys.md", "a/other.md", "ab/keys.md", "a.b/keys.md", "a_/keys.md"}


@pytest.mark.promise("grep.outside-error", "grep.exit-codes")
def test_exit_codes_are_those_of_grep(memdir: Memdir, notes: Path, tmp_path: Path) -> None:
    (notes / "keys.md").write_text(KEYS)
    assert memdir.run("grep", ASK_KEYS, notes).code == 0
    assert memdir.run("grep", "--literal", "no such bytes", notes, expect=1).out == ""
    wrong = memdir.run("grep", "anything", tmp_path, expect=2)
    assert "not inside a mounted memory" in wrong.err
    assert "hint:" in wrong.err
    assert memdir.run("grep", "", notes, expect=2).out == ""
    assert memdir.run("grep", "anything", notes / "missing.md", expect=2).out == ""


@pytest.mark.promise("grep.limit", "grep.best-first")
def test_hits_are_bounded_and_the_best_comes_first(memdir: Memdir, notes: Path) -> None:
    for number in range(6):
        (notes / f"lunch-{number}.md").write_text(f"Lunch number {number} was soup with bread.\n")
    (notes / "keys.md").write_text(KEYS)
    hits = memdir.hits(ASK_KEYS, notes, "-k", "3")
    assert 1 <= len(hits) <= 3
    assert hits[0]["path"].endswith("keys.md")
    assert [hit["score"] for hit in hits] == sorted((hit["score"] for hit in hits), reverse=True)


@pytest.mark.promise("grep.literal")
def test_literal_search_is_exact_and_complete(memdir: Memdir, notes: Path) -> None:
    contents = {
        "a.txt": "x.*y\nxx\n  x.*y twice x.*y\n",
        "b/c.txt": "no match\r\nX.*Y\r\n",
        "b/ünï.md": "ends without newline: x.*y",
        "binary.bin": "x.*y\0x.*y",
        "empty": "",
    }
    for path, text in contents.items():
        (notes / path).parent.mkdir(exist_ok=True)
        (notes / path).write_bytes(text.encode())
    found = [(hit["path"], hit["start_line"], hit["kind"]) for hit in memdir.hits("x.*y", "--literal", cwd=notes)]
    assert found == [("a.txt", 1, "literal"), ("a.txt", 3, "literal"), ("b/ünï.md", 1, "literal")]


@pytest.mark.promise("grep.container")
def test_a_container_is_searched_without_a_mount(memdir: Memdir, name: str) -> None:
    place = memdir.mount(name)
    (place / "keys.md").write_text(KEYS)
    memdir.run("sync", name, "--wait")
    memdir.run("unmount", name)
    assert memdir.hits(ASK_KEYS, "--container", name)[0]["path"].endswith("keys.md")
    assert memdir.hits("spare key", "--literal", "--container", name)[0]["start_line"] == 1
    assert memdir.run("grep", ASK_KEYS, "--container", "never-made", expect=(1, 2)).out == ""


@pytest.mark.promise("profile.first-second", "profile.read-only")
def test_the_profile_is_there_at_once_and_cannot_be_changed(notes: Path) -> None:
    profile = notes / "profile.md"
    assert "profile.md" in os.listdir(notes)
    assert profile.read_text().startswith("# Memory Profile\n")
    changes = (
        lambda: profile.write_text("mine"),
        profile.unlink,
        lambda: profile.rename(notes / "other.md"),
        lambda: profile.chmod(0o600),
        lambda: os.truncate(profile, 0),
        lambda: (notes / "new.md").rename(profile),
    )
    (notes / "new.md").write_text("new")
    for change in changes:
        with pytest.raises(OSError, match=r"Read-only|denied|not permitted"):
            change()
    assert (notes / "new.md").read_text() == "new"


@pytest.mark.promise("profile.facts")
def test_the_profile_lists_facts_from_memory_paths_only(memdir: Memdir, notes: Path) -> None:
    (notes / "memory").mkdir()
    (notes / "elsewhere").mkdir()
    (notes / "memory" / "me.md").write_text(
        "# Me\n\n- Nadia prefers the train over flying.\n- Nadia works at Ferncliff Sensors.\n"
    )
    (notes / "elsewhere" / "no.md").write_text("- Nadia prefers secret places.\n")
    memdir.run("sync", notes, "--wait")
    profile = notes / "profile.md"
    eventually(lambda: "train" in profile.read_text() and "Ferncliff" in profile.read_text(), "the facts in profile.md")
    assert "secret places" not in profile.read_text()
    (notes / "memory" / "me.md").write_text("# Me\n\n- Nadia works at Ferncliff Sensors.\n")
    memdir.run("sync", notes, "--wait")
    eventually(lambda: "train" not in profile.read_text(), "the removed fact leaving profile.md")


@pytest.mark.promise("profile.pages", "facts.when")
def test_what_is_known_reads_as_pages_and_answers_for_a_day(memdir: Memdir, notes: Path) -> None:
    diary = notes / "memory" / "diary"
    diary.mkdir(parents=True)
    (diary / "2026-05-20.md").write_text("I moved to Lisbon. Ana Ruiz works at Tessera.\n")
    (diary / "2026-01-10.md").write_text("I live in Porto. My partner is Ines.\n")
    memdir.run("sync", notes, "--wait")
    pages = notes / "profile"
    eventually(lambda: pages.is_dir() and "Lisbon" in (pages / "core.md").read_text(), "the pages of the profile")
    assert sorted(os.listdir(pages)) == ["changes.md", "core.md", "people.md", "projects.md", "recent.md"]
    assert "~~I live in Porto.~~ → I moved to Lisbon. (memory/diary/2026-05-20.md:1" in (pages / "changes.md").read_text()
    assert "## Ana Ruiz\n- Ana Ruiz works at Tessera." in (pages / "people.md").read_text()
    (diary / "2026-06-01.md").write_text("Ana Ruiz works at Quorum Pay.\n")
    memdir.run("sync", notes, "--wait")
    eventually(lambda: "Quorum" in (pages / "people.md").read_text(), "the new fact")
    assert "Tessera" not in (pages / "people.md").read_text()
    with pytest.raises(OSError, match="Read-only"):
        (pages / "core.md").write_text("mine")
    asked = ("memory", "search", "--json", "where do I live")
    (now,) = json.loads(memdir.run(*asked, "-k", "1", cwd=notes).out)["facts"]
    (then,) = json.loads(memdir.run(*asked, "-k", "1", "--at", "2026-02-01", cwd=notes).out)["facts"]
    assert (now["text"], then["text"], then["validTo"][:10]) == ("I moved to Lisbon.", "I live in Porto.", "2026-05-20")
    assert "memory/diary/2026-01-10.md:1" in memdir.run("memory", "why", "memory/diary/2026-01-10.md:1", cwd=notes).out
    assert '"user" -> "ines" [label="partner"];' in memdir.run("memory", "graph", "--dot", "me", cwd=notes).out
    listed = memdir.run("memory", "list", "--kind", "fact", "--subject", "ana", cwd=notes).out
    assert "Quorum Pay" in listed
    assert "Lisbon" not in listed
    memdir.run("memory", "show", listed.split()[0], cwd=notes)
    assert memdir.run("memory", "graph", "nobody", cwd=notes, expect=(1,)).out == ""


@pytest.mark.promise("files.survive-remount", "cli.unmount")
def test_every_byte_survives_unmount_and_mount(memdir: Memdir, name: str) -> None:
    place = memdir.mount(name)
    contents = {
        "text.md": b"line\n" * 3,
        "no newline.txt": b"end",
        "empty": b"",
        "big.bin": os.urandom(3 * 1024 * 1024 + 7),
        "ünïcödé/日本/😀.txt": "öäü".encode(),
        "x" * 255: b"long name",
        ".hidden": b"dot",
    }
    for path, data in contents.items():
        (place / path).parent.mkdir(parents=True, exist_ok=True)
        (place / path).write_bytes(data)
    os.chmod(place / "text.md", 0o600)
    os.symlink("text.md", place / "link")
    os.utime(place / "empty", ns=(1_000_000_000, 1_234_567_891))
    memdir.run("unmount", name)
    assert not place.exists() or os.listdir(place) == []
    memdir.mount(name)
    assert tree_of(place) == {**contents, "link": contents["text.md"]}
    assert (place / "text.md").stat().st_mode & 0o777 == 0o600
    assert os.readlink(place / "link") == "text.md"
    assert (place / "empty").stat().st_mtime_ns == 1_234_567_891
    memdir.run("unmount", name)
