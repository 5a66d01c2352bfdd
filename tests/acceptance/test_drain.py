"""What is left when a mount ends: pushed with a bar, or said honestly and pushed by the next mount."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.acceptance.driver import Memdir, eventually, is_mounted

pytestmark = pytest.mark.mount


@contextmanager
def halted_server(memdir: Memdir) -> Iterator[None]:
    """The server hangs: it answers nothing and refuses nothing."""
    pid = int(json.loads((memdir.home / "state" / "server.json").read_text())["pid"])
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


class Terminal:
    """A terminal that a command has as its standard error."""

    def __init__(self) -> None:
        self._master, self.slave = pty.openpty()
        self.shown = b""
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        while True:
            try:
                self.shown += os.read(self._master, 4096)
            except OSError:  # EIO: the last process with the other end has gone
                return

    def close(self) -> None:
        os.close(self.slave)
        self._reader.join(10)
        os.close(self._master)


@pytest.mark.promise("sync.drain")
def test_offline_the_rest_is_counted_with_the_reason_and_goes_on_at_the_next_mount(memdir: Memdir, name: str) -> None:
    place = memdir.mount(name)
    memdir.run("sync", place, "--wait")
    memdir.run("server", "stop")
    for number in range(3):
        (place / f"{number}.md").write_text("waits\n")
    ended = memdir.run("unmount", place, "--json").json()
    assert (ended["left"], ended["interrupted"]) == (3, False)
    assert ended["why_left"].startswith("offline since ")
    memdir.mount(name)
    (place / "3.md").write_text("waits, too\n")
    memdir.run("sync", place, "--wait")
    assert memdir.run("queue", place, expect=1).out == ""
    assert "everything is pushed" in memdir.run("unmount", place).out


@pytest.mark.promise("sync.drain")
def test_ctrl_c_ends_the_wait_and_nothing_is_lost(memdir: Memdir, name: str) -> None:
    place = memdir.mount(name)
    memdir.run("sync", place, "--wait")
    terminal = Terminal()
    with halted_server(memdir):
        for number in range(4):
            (place / f"{number}.md").write_text("in no hurry\n")
        command = [sys.executable, "-m", "memdir.cli", "unmount", str(place), "--drain-timeout", "600"]
        with subprocess.Popen(
            command, cwd=memdir.folder, env=memdir.env, stdout=subprocess.PIPE, stderr=terminal.slave, text=True
        ) as child:
            eventually(lambda: b"pushing: " in terminal.shown, "a bar is shown")
            assert not is_mounted(place)
            assert b"0/4 changes" in terminal.shown
            child.send_signal(signal.SIGINT)
            out, _ = child.communicate(timeout=60)
        assert child.returncode == 130, (out, terminal.shown)
        assert out.endswith("; 4 changes wait for the next mount: you ended the wait\n"), out
    terminal.close()
    memdir.mount(name)
    memdir.run("sync", place, "--wait")
    assert memdir.status(name)["queue_length"] == 0
    assert sorted(path.name for path in Path(place).glob("?.md")) == ["0.md", "1.md", "2.md", "3.md"]
    assert "everything is pushed" in memdir.run("unmount", place).out
