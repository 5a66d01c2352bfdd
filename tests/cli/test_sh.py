"""`memdir sh`: scripts, sessions on a terminal, and the tool of `memdir mcp --shell`, as processes with a real server."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import select
import subprocess
import sys
import termios
import time
from pathlib import Path

import anyio
import mcp_types as types
import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from tests.cli.test_end_to_end import Shell, shell

__all__ = ["shell"]

WAIT_S = 60.0


def test_scripts_run_their_exit_code_and_json_come_back(shell: Shell) -> None:
    done = shell.run("sh", "notes", "-c", "mkdir work; echo 'the parser was chosen for its speed' > work/a.md; ls work; exit 3")
    assert (done.returncode, done.stdout) == (3, "a.md\n")
    assert shell.ok("sh", "notes", "-c", "cat work/a.md") == "the parser was chosen for its speed\n"
    assert shell.json("grep", "--container", "notes", "why this parser")[0]["path"] == "/work/a.md"
    piped = subprocess.run(
        shell.command("sh", "notes", "--json"), input="for f in work/*; do\n  echo $f\ndone\nls nosuch\n", cwd=shell.cwd,
        env=shell.environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    answer = json.loads(piped.stdout)
    assert (piped.returncode, answer["exit_code"], answer["stdout"]) == (2, 2, "work/a.md\n")
    assert "nosuch" in answer["stderr"]
    late = shell.run("sh", "notes", "-c", "sleep 30", "--timeout", "1")
    assert (late.returncode, "timeout" in late.stderr) == (124, True)


def test_files_can_stay_here_and_can_be_read_only(shell: Shell) -> None:
    folder = str(shell.cwd / "store")
    assert shell.ok("sh", "--directory", folder, "-c", "echo hi > a; ls") == "a\nprofile.md\n"
    refused = shell.run("sh", "--directory", folder, "--read-only", "-c", "cat a; echo x > a")
    assert (refused.returncode, refused.stdout) == (1, "hi\n")
    assert "Read-only" in refused.stderr
    assert "'a b' is not a name" in shell.run("sh", "a b").stderr
    assert shell.run("sh").returncode == 2
    assert shell.json("server", "status")["running"] is False


def _take_terminal() -> None:
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


class Terminal:
    """A person at `memdir sh`."""

    def __init__(self, shell: Shell, *arguments: str) -> None:
        self.master, slave = pty.openpty()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "memdir.cli", "sh", *arguments], stdin=slave, stdout=slave, stderr=slave, cwd=shell.cwd,
            env={**shell.environment, "TERM": "dumb", "HOME": str(shell.home)}, start_new_session=True,
            preexec_fn=_take_terminal,  # noqa: PLW1509  no threads here; without a terminal of its own Ctrl-C is no signal
        )  # fmt: skip
        os.close(slave)
        self.seen = ""

    def until(self, wanted: str) -> str:
        deadline_s = time.monotonic() + WAIT_S
        while wanted not in self.seen:
            assert time.monotonic() < deadline_s, self.seen
            ready, _, _ = select.select([self.master], [], [], 1.0)
            if ready:
                self.seen += os.read(self.master, 4096).decode()
        before, _, self.seen = self.seen.partition(wanted)
        return before

    def type(self, text: str) -> None:
        os.write(self.master, text.encode())

    def end(self) -> int:
        self.type("\x04")
        code = self.process.wait(timeout=WAIT_S)
        os.close(self.master)
        return code


def test_a_session_on_a_terminal(shell: Shell) -> None:
    terminal = Terminal(shell, "--directory", str(shell.cwd / "store"))
    terminal.until("/memory$ ")
    terminal.type("mkdir d; cd d\n")
    terminal.until("/memory/d$ ")
    terminal.type("for i in 1 2; do\n")
    terminal.until("> ")
    terminal.type("echo n$((i+40)); done\n")
    terminal.until("n41\r\nn42\r\n")
    terminal.type("printf '\\e]0;stolen\\a'; echo\n")
    shown = terminal.until("/memory/d$ ")
    assert "\x1b]0;stolen" not in terminal.until("/memory/d$ ") + shown.rpartition("\n")[2]
    terminal.type("while :; do sleep 1; done\n")
    terminal.until("done\r\n")
    terminal.type("\x03")
    terminal.until("/memory/d$ ")
    terminal.type("false\n")
    terminal.until("/memory/d$ ")
    assert terminal.end() == 1
    assert shell.ok("sh", "--directory", str(shell.cwd / "store"), "-c", "ls") == "d\nprofile.md\n"


@pytest.mark.promise("shell.tool")
def test_a_host_calls_the_tool_over_mcp(shell: Shell) -> None:
    async def work() -> tuple[list[str], list[types.CallToolResult]]:
        command = shell.command("mcp", "--shell", "notes", "--project", "-")
        server = StdioServerParameters(command=command[0], args=command[1:], env=shell.environment, cwd=str(shell.cwd))
        async with Client(stdio_client(server), read_timeout_seconds=WAIT_S) as client:
            names = [tool.name for tool in (await client.list_tools()).tools]
            calls = [
                "mkdir -p work && cd work && echo 'tokens rotate daily' > auth.md",
                "pwd; cat auth.md; exit 5",
                "seq 1 20000",
            ]
            return names, [await client.call_tool("bash", {"command": one}) for one in calls]

    names, (first, second, third) = anyio.run(work)
    assert names[-1] == "bash"
    assert len(names) == 11
    texts = [one.content[0].text for one in (first, second, third) if isinstance(one.content[0], types.TextContent)]
    assert texts[:2] == ["[no output]", "/notes/work\ntokens rotate daily\n[exit code 5]"]
    assert "characters are left out here" in texts[2]
    assert second.structured_content == {
        "stdout": "/notes/work\ntokens rotate daily\n", "stderr": "", "exit_code": 5, "truncated": False,
    }  # fmt: skip
    assert (third.structured_content or {})["truncated"] is True
    assert shell.ok("sh", "notes", "-c", "cat work/auth.md") == "tokens rotate daily\n"


def test_mcp_without_the_option_has_no_shell_and_a_bad_name_is_refused(shell: Shell) -> None:
    assert "is not a name of a memory" in shell.run("mcp", "--shell", "a/b").stderr
    assert not Path(shell.home, "data", "shells").exists()
