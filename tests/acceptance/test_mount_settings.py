"""What a mount is told about its memory and its surroundings: memory paths, and the hint for agents."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from tests.acceptance.driver import Memdir, eventually, kill

pytestmark = pytest.mark.mount

FACT = "I work at Okafor Press in Lisbon.\n"


def profile_has(place: Path, text: str) -> bool:
    return text in (place / "profile.md").read_text()


@pytest.mark.promise("sync.memory-paths")
def test_facts_are_read_where_memory_paths_say_and_go_when_none_are_left(memdir: Memdir, name: str) -> None:
    place = memdir.mount(name)
    (place / "notes").mkdir()
    (place / "notes" / "x.md").write_text(FACT)
    (place / "memory.md").write_text("I live in Porto.\n")
    memdir.run("sync", name, "--wait")
    eventually(lambda: profile_has(place, "Porto"), "what the default paths hold is in the profile")
    assert not profile_has(place, "Okafor")
    memdir.run("unmount", name)

    memdir.mount(name, "--memory-paths", "/notes/,/journal.md")
    eventually(lambda: profile_has(place, "Okafor"), "the paths that were given are read")
    eventually(lambda: not profile_has(place, "Porto"), "the others are not")
    memdir.run("unmount", name)

    memdir.mount(name)
    eventually(
        lambda: memdir.status(name)["memory_paths"] == ["/notes/", "/journal.md"], "a mount that says nothing changes nothing"
    )
    assert "/notes/, /journal.md" in memdir.run("status", name).out

    again = memdir.run("mount", name, "--memory-paths", "")
    assert "memory paths are none" in again.err
    eventually(lambda: not profile_has(place, "Okafor"), "nothing given means no facts")
    eventually(lambda: memdir.status(name)["memory_paths"] == [], "and status says so")
    memdir.run("unmount", name)


def test_memory_paths_wait_in_the_record_while_there_is_no_server(memdir: Memdir, name: str) -> None:
    place = memdir.mount(name, "--no-sync", "--memory-paths", "/notes/")
    assert memdir.status(name)["memory_paths_waiting"] == ["/notes/"]
    (place / "notes").mkdir()
    (place / "notes" / "x.md").write_text(FACT)
    memdir.run("unmount", name)
    memdir.mount(name)
    eventually(lambda: profile_has(place, "Okafor"), "the mount that found the server told it")
    status = memdir.status(name)
    assert (status["memory_paths"], status["memory_paths_waiting"]) == (["/notes/"], None)
    memdir.run("unmount", name)


@pytest.mark.parametrize("paths", ["notes/", "/a,,/b", "/../x", "/a/../b"])
def test_memory_paths_that_are_none_are_refused_with_a_hint(memdir: Memdir, name: str, paths: str) -> None:
    ran = memdir.run("mount", name, "--memory-paths", paths, expect=2)
    assert "--memory-paths" in ran.err
    assert "hint" in ran.err


@pytest.mark.promise("sync.agent-hint")
def test_agents_are_told_of_a_mount_while_it_stands(memdir: Memdir, name: str, tmp_path: Path) -> None:
    (tmp_path / "CLAUDE.md").write_bytes(b"# Rules\r\n\r\nBe kind.")
    (tmp_path / "AGENTS.md").symlink_to("CLAUDE.md")
    ran = memdir.run("mount", name, cwd=tmp_path)
    text = (tmp_path / "CLAUDE.md").read_bytes()
    assert text.startswith(b"# Rules\r\n\r\nBe kind.\r\n\r\n<!-- memdir:begin ")
    assert f"memdir grep 'why were retries turned off' ./{name}/".encode() in text
    assert "CLAUDE.md tells agents about it" in ran.err
    assert text.count(b"memdir:begin") == 1
    assert memdir.run("mount", name, cwd=tmp_path).err == ""
    assert (tmp_path / "CLAUDE.md").read_bytes() == text, "mounted already: told already"
    memdir.run("unmount", name)
    assert (tmp_path / "CLAUDE.md").read_bytes() == b"# Rules\r\n\r\nBe kind."
    assert (tmp_path / "AGENTS.md").is_symlink()


def test_the_hint_goes_after_a_kill_and_at_a_signal(memdir: Memdir, name: str, tmp_path: Path) -> None:
    file = tmp_path / "AGENTS.md"
    memdir.run("mount", name, "--agent-hint", "create", cwd=tmp_path)
    assert "memdir grep" in file.read_text()
    kill(memdir.status(name)["pid"])
    assert file.exists()
    memdir.run("recover", name)
    assert not file.exists(), "it was made for the hint alone"
    memdir.run("mount", name, "--agent-hint", "create", cwd=tmp_path)
    kill(memdir.status(name)["pid"], signal.SIGTERM)
    assert not file.exists()
    memdir.run("unmount", name, expect=(0, 1))


def test_a_mount_goes_on_without_the_hint_that_it_cannot_give(memdir: Memdir, name: str, tmp_path: Path) -> None:
    file = tmp_path / "CLAUDE.md"
    file.write_text("x\n")
    file.chmod(0o444)
    assert "CLAUDE.md is left as it is: it is read-only" in memdir.run("mount", name, cwd=tmp_path).err
    memdir.run("unmount", name)
    file.chmod(0o644)
    assert memdir.run("mount", name, "--no-agent-hint", cwd=tmp_path).err == ""
    assert file.read_text() == "x\n"
    memdir.run("unmount", name)
