"""`memdir logs`: the end of a file, rotation, and nothing that steers a terminal."""

from __future__ import annotations

import json
import os
import queue
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from memdir.cli.follow import follow
from memdir.cli.mounts.logs import tail
from tests.cli.fakes import FakeMount

Run = Callable[..., tuple[int, str, str]]
Mounts = Callable[..., FakeMount]


@pytest.mark.parametrize("count", [1, 2, 50, 5000])
@pytest.mark.parametrize("ending", ["", "\n"])
def test_tail_gives_the_last_lines(count: int, ending: str, tmp_path: Path) -> None:
    lines = [f"line {number} {'x' * (number % 300)}" for number in range(3000)]
    (tmp_path / "log").write_text("\n".join(lines) + ending, encoding="utf-8")
    assert tail(tmp_path / "log", count) == lines[-count:]


def test_tail_of_nothing_is_nothing(tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(b"")
    assert tail(tmp_path / "log", 10) == []
    assert tail(tmp_path / "missing", 10) == []
    assert tail(tmp_path / "log", 0) == []


def test_a_mount_s_log_is_shown(run: Run, fake_mount: Mounts) -> None:
    mount = fake_mount()
    Path(mount.record.log_file).write_bytes(b"one\ntwo \x1b[31m\xff\n")
    assert run("logs", "notes") == (0, "one\ntwo \\x1b[31m\\xff\n", "")
    assert run("logs", "-n", "1")[1] == "two \\x1b[31m\\xff\n"
    assert json.loads(run("logs", "--json")[1])["lines"] == ["one", "two \x1b[31m\\xff"]


def test_a_log_that_does_not_exist_yet_is_exit_code_1(run: Run, fake_mount: Mounts) -> None:
    fake_mount()
    code, out, err = run("logs", "notes")
    assert (code, out) == (1, "")
    assert "does not exist yet" in err


def test_the_server_s_log_is_shown(run: Run, home: Path) -> None:
    (home / "state").mkdir(exist_ok=True)
    (home / "state" / "server.log").write_text("started\n", encoding="utf-8")
    assert run("logs", "--server") == (0, "started\n", "")


def test_follow_and_json_exclude_each_other(run: Run, fake_mount: Mounts) -> None:
    fake_mount()
    assert run("logs", "-f", "--json")[0] == 2
    assert run("logs", "notes", "--server")[0] == 2


def test_following_gives_added_lines_and_survives_rotation(tmp_path: Path) -> None:
    file = tmp_path / "log"
    file.write_text("old\n", encoding="utf-8")
    seen: queue.Queue[str] = queue.Queue()
    started = threading.Event()

    def reader() -> None:
        lines = follow(file)
        started.set()
        for line in lines:
            if line == "end":
                return
            seen.put(line)

    thread = threading.Thread(target=reader)
    thread.start()
    assert started.wait(10)
    # The generator opens the file at its first step; write until it has noticed, so that the test needs no pause.
    first = ""
    for _ in range(10_000):
        with open(file, "a", encoding="utf-8") as handle:
            handle.write("tick\n")
        try:
            first = seen.get(timeout=0.05)
            break
        except queue.Empty:
            continue
    assert first == "tick"
    with open(file, "a", encoding="utf-8") as handle:
        handle.write("half ")
        handle.flush()
        handle.write("line\n")
    os.rename(file, tmp_path / "log.1")
    file.write_text("new file\nend\n", encoding="utf-8")
    thread.join(20)
    assert not thread.is_alive()
    rest = [line for line in list(seen.queue) if line != "tick"]
    assert rest == ["half line", "new file"]


def test_following_in_a_folder_that_does_not_exist_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        next(follow(tmp_path / "missing" / "log"))
