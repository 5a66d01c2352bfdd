"""The commands as processes, on real mounts. Most run with --no-sync, so that they test the command line and not the server."""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.mount

TIMEOUT_S = 120


class Shell:
    """A user's shell: a home of its own, a working directory, and the `memdir` command."""

    def __init__(self, home: Path, cwd: Path) -> None:
        self.home = home
        self.cwd = cwd
        self.environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("MEMDIR_")},
            "MEMDIR_HOME": str(home),
            "MEMDIR_MODELS_DIR": os.environ["MEMDIR_MODELS_DIR"],
        }

    def command(self, *arguments: str) -> list[str]:
        return [sys.executable, "-m", "memdir.cli", *arguments]

    def run(self, *arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.command(*arguments), cwd=cwd or self.cwd, env=self.environment, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, timeout=TIMEOUT_S, check=False,
        )  # fmt: skip

    def ok(self, *arguments: str, cwd: Path | None = None) -> str:
        done = self.run(*arguments, cwd=cwd)
        assert done.returncode == 0, (arguments, done.returncode, done.stdout, done.stderr)
        return done.stdout

    def json(self, *arguments: str) -> Any:
        return json.loads(self.run(*arguments, "--json").stdout)


@contextmanager
def private_home() -> Iterator[Path]:
    """A home with a short name; the server that is started in it ends with it."""
    home = Path(tempfile.mkdtemp(prefix="md-"))
    try:
        yield home
    finally:
        Shell(home, home).run("server", "stop")
        shutil.rmtree(home)


@contextmanager
def users_shell(home: Path, cwd: Path) -> Iterator[Shell]:
    """What was mounted in it is unmounted in the end."""
    made = Shell(home, cwd)
    yield made
    for row in made.json("list"):
        made.run("unmount", row["path"], "--force")
    assert made.json("list") == []


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    with private_home() as home, users_shell(home, tmp_path) as made:
        yield made


def mountpoints() -> set[str]:
    lines = Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    return {line.split()[4] for line in lines}


def runs(pid: int) -> bool:
    """Whether the process lives. One that has ended may stay a zombie until its parent, or init, looks."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace").rpartition(") ")[2][0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_a_mount_is_usable_when_the_command_returns(shell: Shell) -> None:
    began_s = time.monotonic()
    out = shell.ok("mount", "notes", "--no-sync")
    took_s = time.monotonic() - began_s
    notes = shell.cwd / "notes"
    assert out == f"notes is mounted at {notes}\n"
    assert took_s < 15, "2 s on an idle machine; the bench measures it"
    assert str(notes) in mountpoints()
    assert (notes / "profile.md").read_text(encoding="utf-8").startswith("# Memory Profile")
    (notes / "a.md").write_text("hello\n", encoding="utf-8")
    status = shell.json("status", "notes")
    assert (status["name"], status["path"], status["state"]) == ("notes", str(notes), "mounted")
    assert status["uptime_s"] >= 0
    assert runs(status["pid"])
    assert [row["path"] for row in shell.json("list")] == [str(notes)]
    assert "already mounted" in shell.ok("mount", "notes")


def test_bytes_survive_unmount_and_mount_and_the_directory_goes_away(shell: Shell) -> None:
    notes = shell.cwd / "notes"
    shell.ok("mount", "notes", "--no-sync")
    pid = shell.json("status", "notes")["pid"]
    (notes / "bytes").write_bytes(bytes(range(256)) * 1000)
    assert "unmounted" in shell.ok("unmount", "notes")
    assert not runs(pid)
    assert not notes.exists()
    shell.ok("mount", "notes", "--no-sync", "--path", "elsewhere")
    assert (shell.cwd / "elsewhere" / "bytes").read_bytes() == bytes(range(256)) * 1000


def test_after_kill_9_mounting_again_goes_on(shell: Shell) -> None:
    notes = shell.cwd / "notes"
    shell.ok("mount", "notes", "--no-sync")
    for number in range(50):
        (notes / f"{number}.md").write_text(f"text {number}", encoding="utf-8")
    os.kill(shell.json("status", "notes")["pid"], signal.SIGKILL)
    dead = shell.run("status", "notes")
    assert dead.returncode == 1
    assert "`memdir mount notes` goes on where it was" in dead.stdout
    refused = shell.run("grep", "text", "notes")
    assert refused.returncode == 2
    assert "memdir mount notes" in refused.stderr
    shell.ok("mount", "notes", "--no-sync")
    assert {(notes / f"{number}.md").read_text(encoding="utf-8") for number in range(50)} == {f"text {n}" for n in range(50)}


def test_after_kill_9_unmount_clears_the_dead_mount(shell: Shell) -> None:
    notes = shell.cwd / "notes"
    shell.ok("mount", "notes", "--no-sync")
    os.kill(shell.json("status", "notes")["pid"], signal.SIGKILL)
    assert "its daemon was dead" in shell.ok("unmount", "notes")
    assert str(notes) not in mountpoints()
    assert not notes.exists()
    assert shell.run("unmount", "notes").returncode == 1


def test_commands_started_inside_a_dead_mount_explain_themselves(shell: Shell) -> None:
    notes = shell.cwd / "notes"
    shell.ok("mount", "notes", "--no-sync")
    with subprocess.Popen(
        ["/bin/sh", "-c", 'read go; "$@"', "sh", sys.executable, "-P", "-m", "memdir.cli", "grep", "x"],
        cwd=notes, env=shell.environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as inside:  # fmt: skip
        daemon = os.pidfd_open(shell.json("status", "notes")["pid"])
        signal.pidfd_send_signal(daemon, signal.SIGKILL)
        assert select.select([daemon], [], [], TIMEOUT_S)[0], "it takes a moment to be gone"
        os.close(daemon)
        out, err = inside.communicate("\n", timeout=60)
    assert (inside.returncode, out) == (2, "")
    assert f"memdir mount notes --path {notes}" in err


def test_mounting_the_same_memory_three_times_at_once_mounts_it_once(shell: Shell) -> None:
    children = [
        subprocess.Popen(
            shell.command("mount", "notes", "--no-sync", "--json"), cwd=shell.cwd, env=shell.environment,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
        )
        for _ in range(3)
    ]  # fmt: skip
    answers = [json.loads(child.communicate(timeout=TIMEOUT_S)[0]) for child in children]
    assert [child.returncode for child in children] == [0, 0, 0], answers
    assert sorted(answer["already_mounted"] for answer in answers) == [False, True, True]
    assert len({answer["pid"] for answer in answers}) == 1
    lines = Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    assert sum(line.split()[4] == str(shell.cwd / "notes") for line in lines) == 1


def test_a_dead_mount_that_nobody_knows_any_more_can_be_cleared(shell: Shell) -> None:
    notes = shell.cwd / "notes"
    shell.ok("mount", "notes", "--no-sync")
    status = shell.json("status", "notes")
    daemon = os.pidfd_open(status["pid"])
    os.kill(status["pid"], signal.SIGKILL)
    assert select.select([daemon], [], [], 30)[0]  # until it is gone, the mount is alive
    os.close(daemon)
    (Path(status["log_file"]).parent / "mount.json").unlink()
    assert shell.ok("unmount", "./notes") == f"cleared the dead mount at {notes}\n"
    assert str(notes) not in mountpoints()
    assert shell.run("unmount", "./notes").returncode == 2


def test_literal_grep_finds_exact_bytes_from_anywhere(shell: Shell) -> None:
    notes = shell.cwd / "notes"
    shell.ok("mount", "notes", "--no-sync")
    (notes / "work").mkdir()
    (notes / "work" / "a.md").write_text("one\ntwo [x](y) \x1b[31m end\nthree\n", encoding="utf-8")
    (notes / "b.md").write_text("nothing\n", encoding="utf-8")
    assert shell.ok("grep", "--literal", "[x](y)", "notes") == "notes/work/a.md:2:two [x](y) \x1b[31m end\n"
    assert shell.ok("grep", "--literal", "[x](y)", cwd=notes / "work") == "a.md:2:two [x](y) \x1b[31m end\n"
    assert shell.ok("grep", "--literal", "[x](y)", str(notes / "work"), cwd=Path("/")).startswith(f"{notes}/work/a.md:2:")
    assert shell.run("grep", "--literal", "[x](y)", "notes/b.md").returncode == 1
    assert shell.run("grep", "--literal", "[x](y)", "notes/missing").returncode == 2
    assert shell.run("grep", "--literal", "[x](y)", "/usr").returncode == 2
    [hit] = json.loads(shell.ok("grep", "--literal", "three", "notes", "--json"))
    assert (hit["path"], hit["start_line"], hit["end_line"], hit["kind"]) == ("notes/work/a.md", 3, 3, "literal")


def test_without_a_server_a_search_by_words_still_answers(shell: Shell) -> None:
    shell.ok("mount", "notes", "--no-sync")
    (shell.cwd / "notes" / "a.md").write_text("The ferry leaves at nine.\n", encoding="utf-8")
    done = shell.run("grep", "ferry", "notes")
    assert done.returncode == 0
    assert done.stdout == "notes/a.md:1:The ferry leaves at nine.\n"
    assert done.stderr.startswith("memdir: ")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=["SIGTERM", "Ctrl-C"])
def test_a_foreground_mount_unmounts_at_a_signal(number: signal.Signals, shell: Shell) -> None:
    notes = shell.cwd / "notes"
    with subprocess.Popen(
        shell.command("mount", "notes", "--no-sync", "--foreground"), cwd=shell.cwd, env=shell.environment,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as child:  # fmt: skip
        try:
            assert child.stderr is not None
            while "is mounted at" not in (line := child.stderr.readline()):
                assert line, "it ended before it was mounted"
            (notes / "a.md").write_text("kept", encoding="utf-8")
            child.send_signal(number)
            child.communicate(timeout=60)
        finally:
            child.kill()
    assert child.returncode == 0
    assert str(notes) not in mountpoints()
    shell.ok("mount", "notes", "--no-sync")
    assert (notes / "a.md").read_text(encoding="utf-8") == "kept"


def test_import_brings_a_folder_in_and_unmount_shows_the_original_again(shell: Shell) -> None:
    folder = shell.cwd / "project"
    (folder / "docs").mkdir(parents=True)
    (folder / "docs" / "a.md").write_text("hello\n", encoding="utf-8")
    (folder / ".env").write_text("A=1\n", encoding="utf-8")
    refused = shell.run("mount", "project", "--no-sync")
    assert refused.returncode == 2
    assert "--import" in refused.stderr
    answer = shell.json("mount", "project", "--no-sync", "--import")
    assert answer["import"]["files"] == 1
    assert [entry["path"] for entry in answer["import"]["skipped"]] == [".env"]
    assert sorted(os.listdir(folder)) == ["docs", "profile.md"]
    (folder / "new.md").write_text("new", encoding="utf-8")
    shell.ok("unmount", "project")
    assert sorted(os.listdir(folder)) == [".env", "docs"]
    shell.ok("mount", "project", "--no-sync")
    assert sorted(os.listdir(folder)) == ["docs", "new.md", "profile.md"]


def test_a_read_only_mount_refuses_changes(shell: Shell) -> None:
    shell.ok("mount", "notes", "--no-sync")
    (shell.cwd / "notes" / "a.md").write_text("x", encoding="utf-8")
    shell.ok("unmount", "notes")
    shell.ok("mount", "notes", "--no-sync", "--read-only")
    assert (shell.cwd / "notes" / "a.md").read_text(encoding="utf-8") == "x"
    with pytest.raises(OSError, match="Read-only"):
        (shell.cwd / "notes" / "b.md").write_text("x", encoding="utf-8")


def test_an_odd_mountpoint_works_in_every_command(shell: Shell) -> None:
    place = shell.cwd / "über \\040 raum\n" / "😀"
    shell.ok("mount", "odd:name.1", "--no-sync", "--path", str(place))
    (place / "a.md").write_text("x\n", encoding="utf-8")
    assert shell.json("status", str(place))["path"] == str(place)
    assert shell.run("grep", "--literal", "x", str(place)).returncode == 0
    shell.ok("unmount", str(place))
    assert shell.json("list") == []


def test_fsck_refuses_a_mounted_memory_and_passes_an_unmounted_one(shell: Shell) -> None:
    shell.ok("mount", "notes", "--no-sync")
    for number in range(20):
        (shell.cwd / "notes" / f"{number}.md").write_text("x", encoding="utf-8")
    refused = shell.run("fsck", "notes")
    assert refused.returncode == 2
    assert "memdir unmount notes" in refused.stderr
    shell.ok("unmount", "notes")
    assert shell.ok("fsck", "notes") == "notes: clean\n"
    [answer] = shell.json("fsck")
    assert (answer["name"], answer["found"], answer["left"]) == ("notes", [], [])


def test_fsck_repairs_a_damaged_memory(shell: Shell) -> None:
    shell.ok("mount", "notes", "--no-sync")
    (shell.cwd / "notes" / "a.md").write_text("x", encoding="utf-8")
    folder = Path(shell.json("status", "notes")["log_file"]).parent
    shell.ok("unmount", "notes")
    import apsw

    connection = apsw.Connection(str(folder / "cache.db"))
    connection.execute("update inode set nlink = 7 where ino = (select ino from dentry where name = cast('a.md' as blob))")
    assert connection.changes() == 1
    connection.close()
    found = shell.run("fsck", "notes")
    assert found.returncode == 1
    assert "--repair" in found.stderr
    assert "notes: repaired" in shell.ok("fsck", "notes", "--repair")
    assert shell.ok("fsck", "notes") == "notes: clean\n"
    shell.ok("mount", "notes", "--no-sync")
    assert (shell.cwd / "notes" / "a.md").read_text(encoding="utf-8") == "x"


def test_the_log_of_a_mount_can_be_read(shell: Shell) -> None:
    shell.ok("mount", "notes", "--no-sync")
    assert "notes" in shell.ok("logs", "notes")


def test_the_main_job_with_a_server(shell: Shell) -> None:
    """Mount, write, find by meaning with and without the mount; the server's own commands; the doctor."""
    notes = shell.cwd / "notes"
    assert shell.run("server", "status").returncode == 1
    shell.ok("mount", "notes")
    (notes / "ferry.md").write_text("The ferry to the island leaves the harbour at nine in the morning.\n", encoding="utf-8")
    (notes / "tax.md").write_text("The tax form has to be handed in before the end of May.\n", encoding="utf-8")
    assert shell.ok("sync", "--wait", "--timeout", "90") == "notes: everything is pushed and searchable\n"
    first = shell.ok("grep", "when does the boat depart", "notes").splitlines()[0]
    assert first == "notes/ferry.md:1:The ferry to the island leaves the harbour at nine in the morning."
    server = shell.json("server", "status")
    assert server["running"] is True
    assert {"url", "pid", "data_dir", "version"} <= set(server)
    assert server["data_dir"].startswith(str(shell.home))
    assert shell.run("queue").returncode == 1
    [best, *_] = json.loads(shell.ok("grep", "--container", "notes", "--json", "when does the boat depart"))
    assert (best["path"], best["kind"]) == ("/ferry.md", "chunk")
    assert shell.ok("grep", "--container", "notes", "--literal", "tax form") == (
        "/tax.md:1:The tax form has to be handed in before the end of May.\n"
    )
    unknown = shell.run("grep", "--container", "ntoes", "anything")
    assert unknown.returncode == 2
    assert "no memory called ntoes" in unknown.stderr
    doctor = shell.run("doctor", "--json")
    report = json.loads(doctor.stdout)
    assert [check for check in report["checks"] if check["status"] == "fail"] == []
    assert doctor.returncode in (0, 1)
    assert {"fuse device", "folders", "disk", "models", "server", "round trip"} <= {check["name"] for check in report["checks"]}
    assert [row["name"] for row in shell.json("list", "--all")] == ["notes"], "the doctor cleans up"
    shell.ok("unmount", "notes")
    shell.ok("server", "stop")
    assert shell.run("server", "stop").returncode == 1
    assert not runs(server["pid"])


def test_a_foreground_server_ends_at_a_signal(shell: Shell) -> None:
    with subprocess.Popen(
        shell.command("server", "run"), cwd=shell.cwd, env=shell.environment,
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
    ) as child:  # fmt: skip
        try:
            assert child.stderr is not None
            while "listening on" not in (line := child.stderr.readline()):
                assert line, "it ended before it listened"
            assert shell.json("server", "status")["pid"] == child.pid
            second = shell.run("server", "run")
            assert second.returncode == 2
            assert f"pid {child.pid}" in second.stderr
            child.send_signal(signal.SIGTERM)
            child.communicate(timeout=60)
        finally:
            child.kill()
    assert child.returncode == 0
    assert shell.run("server", "status").returncode == 1
