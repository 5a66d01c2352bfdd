"""Contents on the server only, with a real mount, a real daemon and a real server that is killed, stopped and started again."""

from __future__ import annotations

import contextlib
import os
import signal
import statistics
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from memdir.client.http import Client
from memdir.client.local import ensure_server, running_server, stop_server
from memdir.core.paths import app_paths
from memdir.daemon import launch
from memdir.daemon.registry import MountRecord, MountSpec
from tests.daemon.test_mount import STOP_S, Home, gone, home, until

pytestmark = pytest.mark.mount
__all__ = ["home"]
FETCH_TIMEOUT_S = 3.0
GREP_MAX_S = 8.0
"""A search waits 2 s for a server that hangs, then looks here."""


def mount_lazily(home: Home, place: Path, *, sync: bool = True, **options: object) -> MountRecord:
    with contextlib.suppress(OSError):  # it is there, or a dead mount that the daemon clears
        place.mkdir()
    wanted = {"prefetch_bytes": 0, **options}
    spec = MountSpec(name="notes", path=str(place), sync=sync, drain_timeout_s=20.0, **wanted)  # type: ignore[arg-type]
    return launch.start(spec, foreground=False, timeout_s=60.0)


@contextlib.contextmanager
def server_client() -> Iterator[Client]:
    info = ensure_server(app_paths())
    with Client(info.url, info.api_key) as client:
        yield client


def put(files: dict[str, bytes]) -> None:
    with server_client() as client:
        for path, content in files.items():
            client.put_file("notes", path, content)


def outcome(call: Callable[[], object]) -> tuple[int, float]:
    """errno (0 for success), and how long it took."""
    started_s = time.monotonic()
    try:
        call()
    except OSError as error:
        return error.errno or -1, time.monotonic() - started_s
    return 0, time.monotonic() - started_s


def names_come(place: Path, count: int) -> None:
    until(lambda: len([name for name in os.listdir(place) if name != "profile.md"]) >= count)


@pytest.mark.promise("lazy.reads-end", "lazy.reads-wait-alone", "lazy.status")
def test_a_server_that_is_stopped_killed_or_hangs_keeps_nobody_from_what_is_here(home: Home) -> None:
    put({f"/f{number}.md": f"text {number}\n".encode() for number in range(4)})
    put({"/far/away/one.md": b"one\n", "/very/far/away/two.md": b"two\n"})
    record = mount_lazily(home, home.place, fetch_timeout_s=FETCH_TIMEOUT_S)
    names_come(home.place, 6)
    far, very_far = home.place / "far" / "away" / "one.md", home.place / "very" / "far" / "away" / "two.md"
    # whoever reads two files of a folder, or of folders beside each other, gets the others with them
    until(lambda: bool(home.server_of(record)["online"]))
    assert (home.place / "f0.md").read_text() == "text 0\n"
    status = home.call(record, "status")
    assert (status["absent_files"], status["absent_bytes"]) == (5, 29)

    server = running_server(app_paths())
    assert server is not None
    os.kill(server.pid, signal.SIGSTOP)  # it keeps its connections and answers nothing
    try:
        began_s = time.monotonic()
        answer = home.call(record, "grep", q="text", mode="literal", paths=["/"], limit=10)
        assert time.monotonic() - began_s < GREP_MAX_S
        assert {hit["path"] for hit in answer["hits"]} - {"/profile.md"} == {"/f0.md"}  # type: ignore[attr-defined]
        assert "5 files left out: the contents are on the server only" in str(answer["note"])
        number, took_s = outcome((home.place / "f1.md").read_text)
        assert number == 5
        assert took_s < FETCH_TIMEOUT_S * 4
        for call in (
            (home.place / "f0.md").read_text,
            lambda: os.listdir(home.place),
            lambda: os.stat(home.place / "f1.md"),
            lambda: (home.place / "new.md").write_text("new"),
            lambda: os.rename(home.place / "f2.md", home.place / "moved.md"),
        ):
            number, took_s = outcome(call)
            assert number == 0
            assert took_s < FETCH_TIMEOUT_S
    finally:
        os.kill(server.pid, signal.SIGCONT)
    until(lambda: outcome((home.place / "f1.md").read_text)[0] == 0)
    assert (home.place / "moved.md").read_text() == "text 2\n"

    os.kill(server.pid, signal.SIGKILL)
    until(lambda: outcome(far.read_text)[0] == 0)  # a crashed server is started again

    stop_server(app_paths(), timeout_s=STOP_S)
    until(lambda: not home.server_of(record)["online"])
    number, took_s = outcome(very_far.read_text)
    assert number == 5
    assert took_s < FETCH_TIMEOUT_S, "at once: the server is known to be away"
    assert far.read_text() == "one\n"
    ensure_server(app_paths())
    until(lambda: outcome(very_far.read_text)[0] == 0)
    assert home.stop(record) == 0


@pytest.mark.promise("lazy.crash")
def test_absent_files_stay_what_they_are_over_kills_and_mounts_without_sync(home: Home) -> None:
    put({f"/f{number}.md": f"text {number}\n".encode() for number in range(5)} | {"/large.bin": os.urandom(3 << 20)})
    record = mount_lazily(home, home.place)
    names_come(home.place, 6)
    assert record.pid is not None
    os.kill(record.pid, signal.SIGKILL)
    assert gone(record.pid)
    record = mount_lazily(home, home.place)
    assert (home.place / "f0.md").read_text() == "text 0\n"
    assert home.stop(record) == 0
    record = mount_lazily(home, home.place, sync=False)
    number, took_s = outcome((home.place / "f1.md").read_text)
    assert number == 5
    assert took_s < FETCH_TIMEOUT_S
    assert (home.place / "f0.md").read_text() == "text 0\n"
    (home.place / "f2.md").unlink()
    home.stop(record)
    record = mount_lazily(home, home.place, prefetch_bytes=None)
    until(lambda: home.call(record, "status")["absent_files"] == 0)
    assert (home.place / "f1.md").read_text() == "text 1\n"
    with server_client() as client:
        assert (home.place / "large.bin").read_bytes() == client.read_file("notes", "/large.bin")
        until(lambda: "/f2.md" not in {entry.path for entry in client.list_files("notes").entries})
    assert home.stop(record) == 0


@pytest.mark.promise("lazy.evict-clean")
def test_a_full_cache_forgets_what_the_server_has(home: Home) -> None:
    record = mount_lazily(home, home.place, cache_limit_bytes=1 << 20)
    contents = {f"f{number}.bin": os.urandom(300 << 10) for number in range(8)}
    for name, content in contents.items():
        (home.place / name).write_bytes(content)
    until(lambda: bool(home.call(record, "sync", wait=True, timeout_s=30)["drained"]))
    until(lambda: int(str(home.call(record, "status")["absent_files"])) >= 4)
    subprocess.run(["sync", "-f", home.place], check=True)
    for name, content in contents.items():
        assert (home.place / name).read_bytes() == content
    assert home.stop(record) == 0


class Terminal:
    """A shell that stays open in a folder and answers one command at a time."""

    def __init__(self, folder: Path) -> None:
        self._shell = subprocess.Popen(["bash"], cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def run(self, command: str) -> str:
        assert self._shell.stdin is not None
        assert self._shell.stdout is not None
        self._shell.stdin.write(f"{{ {command} ; }} 2>&1; echo END\n")
        self._shell.stdin.flush()
        lines = []
        while (line := self._shell.stdout.readline()) not in ("END\n", ""):
            lines.append(line)
        return "".join(lines)

    def seconds_until(self, command: str, wanted: str) -> float:
        """How long until the command prints what is wanted; STOP_S at most."""
        started_s = time.monotonic()
        while self.run(command) != wanted:
            assert time.monotonic() - started_s < STOP_S, f"{command} never printed {wanted!r}"
        return time.monotonic() - started_s

    def close(self) -> None:
        self._shell.communicate("exit\n", timeout=STOP_S)


@pytest.mark.promise("remote.seen-within-a-second")
def test_a_change_from_elsewhere_is_seen_in_an_open_terminal(home: Home, tmp_path: Path) -> None:
    """From the server's answer until an open shell shows it, with everything cached by the kernel before. Half of the tries
    must make it within the promised second, whatever else the machine does."""
    here, there = mount_lazily(home, home.place), mount_lazily(home, tmp_path / "there")
    (home.place / "d").mkdir()
    (home.place / "d" / "f").write_text("0\n")
    terminal = Terminal(tmp_path / "there")
    terminal.seconds_until("cat d/f", "0\n")
    taken_s = []
    with server_client() as client:
        for step in range(1, 6):
            terminal.run("ls d; cat d/f; stat d/f; cat d/missing")
            client.put_file("notes", "/d/f", b"%d\n" % step)
            taken_s.append(terminal.seconds_until("cat d/f", f"{step}\n"))
            assert terminal.run("stat -c %s d/f") == "2\n"
            client.put_file("notes", "/d/missing", b"now\n")
            taken_s.append(terminal.seconds_until("ls d", "f\nmissing\n"))
            assert terminal.run("cat d/missing") == "now\n"
            client.delete_file("notes", "/d/missing")
            taken_s.append(terminal.seconds_until("ls d; test -e d/missing && echo there", "f\n"))
    (home.place / "d" / "f").write_text("from the other mount\n")
    terminal.seconds_until("cat d/f", "from the other mount\n")
    os.rename(home.place / "d", home.place / "e")
    terminal.seconds_until("cat e/f; ls", "from the other mount\ne\nprofile.md\n")
    assert statistics.median(taken_s) < 1.0, taken_s
    terminal.close()
    assert home.stop(there) == 0
    assert home.stop(here) == 0
