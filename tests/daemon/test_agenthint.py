"""The agent hint in files: whose they are, what they are, and who takes it out again."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from memdir.core.paths import app_paths
from memdir.daemon import agent_hint
from memdir.daemon.recovery import clear
from memdir.daemon.registry import MountRecord, MountRegistry, MountSpec


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MEMDIR_HOME", str(tmp_path / "home"))
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


def mounted(project: Path, name: str = "notes", *, place: Path | None = None, create: bool = False) -> MountRecord:
    spec = MountSpec(name=name, path=str(place or project / name), hint_folder=str(project), hint_create=create)
    return MountRegistry(app_paths()).allocate(spec)


def told(record: MountRecord, *mounts: str) -> agent_hint.HintNotes:
    return agent_hint.put(record, set(mounts))


def forget(record: MountRecord) -> None:
    agent_hint.take_out(Path(record.cache_dir))


def test_files_that_are_there_are_told_and_none_is_made(project: Path) -> None:
    (project / "CLAUDE.md").write_text("# Rules\n")
    notes = told(record := mounted(project))
    assert [known.path for known in notes.files] == [str(project / "CLAUDE.md")]
    assert "./notes/" in (project / "CLAUDE.md").read_text()
    assert not (project / "AGENTS.md").exists()
    forget(record)
    assert (project / "CLAUDE.md").read_bytes() == b"# Rules\n"
    assert os.listdir(project) == ["CLAUDE.md"], "nothing half-written is left"


def test_telling_twice_is_telling_once(project: Path) -> None:
    (project / "AGENTS.md").write_text("x")
    told(record := mounted(project))
    once = (project / "AGENTS.md").read_bytes()
    told(record)
    assert (project / "AGENTS.md").read_bytes() == once
    forget(record)
    forget(record)
    assert (project / "AGENTS.md").read_bytes() == b"x"


def test_files_that_were_made_for_it_go_with_it_unless_somebody_wrote_into_them(project: Path) -> None:
    told(record := mounted(project, create=True))
    assert sorted(os.listdir(project)) == ["AGENTS.md", "CLAUDE.md"]
    with open(project / "AGENTS.md", "a") as file:
        file.write("Mine.\n")
    forget(record)
    assert os.listdir(project) == ["AGENTS.md"]
    assert (project / "AGENTS.md").read_text() == "Mine.\n"


@pytest.mark.parametrize("content", [b"", b"no newline", b"# T\r\n\r\nx\r\n", b"\xef\xbb\xbf# T\n"])
@pytest.mark.parametrize("first", [0, 1])
def test_several_mounts_have_a_block_each_and_leave_in_any_order(project: Path, content: bytes, first: int) -> None:
    file = project / "AGENTS.md"
    file.write_bytes(content)
    records = [mounted(project, "one"), mounted(project, "two")]
    for record in records:
        told(record)
    text = file.read_bytes()
    assert (text.count(b"memdir:begin one -->"), text.count(b"memdir:begin two -->")) == (1, 1)
    forget(records[first])
    assert file.read_bytes().count(b"memdir:begin") == 1
    forget(records[1 - first])
    assert file.read_bytes() == content


def test_two_mounts_of_one_memory_do_not_take_each_others_block_away(project: Path) -> None:
    (project / "AGENTS.md").write_text("x\n")
    one = mounted(project, place=project / "a")
    folder = Path(one.cache_dir).with_name("abcdef012345")
    folder.mkdir()
    other = dataclasses.replace(one, id=folder.name, cache_dir=str(folder), path=str(project / "b"))
    told(one)
    told(other)
    assert (project / "AGENTS.md").read_text().count("memdir:begin notes") == 2
    forget(one)
    assert "./b/" in (project / "AGENTS.md").read_text()
    forget(other)
    assert (project / "AGENTS.md").read_text() == "x\n"


def test_a_link_from_one_file_to_the_other_is_followed_once(project: Path) -> None:
    (project / "AGENTS.md").write_text("x\n")
    (project / "CLAUDE.md").symlink_to("AGENTS.md")
    notes = told(record := mounted(project))
    assert [known.path for known in notes.files] == [str(project / "AGENTS.md")]
    forget(record)
    assert (project / "CLAUDE.md").is_symlink()
    assert (project / "AGENTS.md").read_text() == "x\n"


def test_mode_owner_and_attributes_stay(project: Path) -> None:
    file = project / "CLAUDE.md"
    file.write_text("x\n")
    file.chmod(0o640)
    os.setxattr(file, "user.note", b"kept")
    told(record := mounted(project))
    forget(record)
    info = file.stat()
    assert (info.st_mode & 0o7777, info.st_uid) == (0o640, os.geteuid())
    assert os.getxattr(file, "user.note") == b"kept"


def read_only(file: Path) -> None:
    file.chmod(0o444)


def hard_linked(file: Path) -> None:
    os.link(file, file.with_name("other-name"))


def utf16(file: Path) -> None:
    file.write_bytes("x\n".encode("utf-16"))


def elsewhere(file: Path) -> None:
    outside = file.parent.parent / "dotfiles.md"
    file.rename(outside)
    file.symlink_to(outside)


def a_pipe(file: Path) -> None:
    file.unlink()
    os.mkfifo(file)


@pytest.mark.parametrize("make", [read_only, hard_linked, utf16, elsewhere, a_pipe])
def test_a_file_that_cannot_be_changed_safely_is_left_alone_with_a_warning(project: Path, make: Callable[[Path], None]) -> None:
    file = project / "CLAUDE.md"
    file.write_bytes(b"x\n")
    make(file)
    before = b"" if file.is_fifo() else file.read_bytes()
    notes = told(record := mounted(project))
    assert notes.files == ()
    assert len(notes.warnings) == 1
    assert str(file) in notes.warnings[0]
    assert before == (b"" if file.is_fifo() else file.read_bytes())
    assert agent_hint.read_notes(Path(record.cache_dir)).warnings == notes.warnings
    forget(record)


def test_nothing_is_written_into_a_memory(project: Path) -> None:
    (project / "AGENTS.md").write_text("x\n")
    assert told(mounted(project, place=project)) == agent_hint.HintNotes()
    assert told(mounted(project, place=project / "notes"), str(project)) == agent_hint.HintNotes()
    assert (project / "AGENTS.md").read_text() == "x\n"


def test_after_a_crash_unmount_and_recover_take_it_out(project: Path) -> None:
    (project / "AGENTS.md").write_text("x\n")
    told(record := mounted(project))
    clear(MountRegistry(app_paths()), record)  # what both of them do with a mount that nobody serves
    assert (project / "AGENTS.md").read_text() == "x\n"


def test_after_a_crash_the_next_mount_without_a_hint_takes_it_out(project: Path) -> None:
    (project / "AGENTS.md").write_text("x\n")
    told(mounted(project))
    spec = MountSpec(name="notes", path=str(project / "notes"), hint_folder=None)
    told(MountRegistry(app_paths()).allocate(spec))
    assert (project / "AGENTS.md").read_text() == "x\n"


def test_a_file_that_was_deleted_meanwhile_is_not_missed(project: Path) -> None:
    (project / "AGENTS.md").write_text("x\n")
    told(record := mounted(project))
    (project / "AGENTS.md").unlink()
    forget(record)
    assert os.listdir(project) == []


def test_a_file_that_cannot_be_written_at_the_end_is_tried_again(project: Path) -> None:
    file = project / "AGENTS.md"
    file.write_text("x\n")
    told(record := mounted(project))
    file.chmod(0o444)
    forget(record)
    assert "memdir:begin" in file.read_text()
    file.chmod(0o644)
    forget(record)
    assert file.read_text() == "x\n"
