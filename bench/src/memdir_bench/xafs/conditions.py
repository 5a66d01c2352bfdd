"""What an agent has in each condition: a plain folder with a shell, the mount with `memdir grep`, or the shell in process."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import subprocess
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from memdir.shell import Shell
from memdir_bench.mcp_client import Tools
from memdir_bench.xafs.policy import Step

_LINES: Final = 60
"""Of a page that an agent looks at."""
_PAGES_MAX: Final = 12
_RANKS: Final = ((1, 10), (11, 40))
"""Of what is found by meaning, looked at one after the other."""
COMMAND_S: Final = 120.0
"""That a command may take, as in the shells of hosts."""
_AROUND: Final = "{0,160}"
_LINE_MAX_CHARS: Final = 700

Run = Callable[[str], str]
_BASE: Final = "The files of the drive are in the working directory. Answer the question by them. You have a shell."
_HINT: Final = (
    ' `memdir grep "QUESTION"` finds lines by meaning, also in PDF, office files and pictures, as path:line:text; '
    '`--containing "NAME"` only those that hold the name.'
)
INSTRUCTIONS: Final = {
    "plain": _BASE, "mount": _BASE + _HINT, "mount-without-hint": _BASE, "shell": _BASE + _HINT, "mcp": _BASE + _HINT,
}  # fmt: skip
"""What an agent is told; without the hint it does not know of the search by meaning."""


class ShellCommands:
    """Looks for a name with grep, page by page; then in office files with what turns them into text on this machine."""

    def __init__(self, run: Run, *, semantic: bool, converters: bool) -> None:
        self._run = run
        self._semantic = semantic
        self._converters = _converters() if converters else []
        self._lines: dict[str, list[str]] = {}

    def search(self, question: str, subject: str, number: int) -> Step | None:
        """See `policy.Commands`."""
        if self._semantic:
            if number < len(_RANKS):
                return self._by_meaning(question, subject, *_RANKS[number])
            number -= len(_RANKS)
        for template in [_GREP, *self._converters]:
            command = template.replace("@", shlex.quote(_escaped(subject)))
            lines = self._lines.get(command)
            if lines is None:
                lines = self._lines[command] = [line[:_LINE_MAX_CHARS] for line in self._run(command).splitlines()]
            pages = min(max(1, -(-len(lines) // _LINES)), _PAGES_MAX)
            if number < pages:
                first = number * _LINES
                shown = f"{command} | sed -n {first + 1},{first + _LINES}p"
                return _step(shown, lines[first : first + _LINES])
            number -= pages
        return None

    def _by_meaning(self, question: str, subject: str, first: int, last: int) -> Step:
        """What is said of it, from one rank to another."""
        command = f"memdir grep -k {last} {shlex.quote(question)} --containing {shlex.quote(subject)}"
        command += f" | tail -n +{first}" if first > 1 else ""
        return _step(command, self._run(command).splitlines())


_GREP: Final = f"grep -rnoE '.{_AROUND}'@'.{_AROUND}' ."


def _converters() -> list[str]:
    """Commands that look for a name in office files, as far as this machine has the programs."""
    found = []
    around = f"grep -oE '.{_AROUND}'@'.{_AROUND}' | sed \"s|^|$f:|\"; done"
    if shutil.which("pdftotext"):
        found.append(f"find . -name '*.pdf' | while read -r f; do pdftotext \"$f\" - 2>/dev/null | tr '\\n' ' ' | {around}")
    if shutil.which("unzip"):
        pages = (
            "unzip -p \"$f\" 'word/document.xml' 'xl/sharedStrings.xml' 'ppt/slides/*.xml' 2>/dev/null | sed 's/<[^>]*>/ /g'"
        )
        found.append(f"find . -name '*.docx' -o -name '*.xlsx' -o -name '*.pptx' | while read -r f; do {pages} | {around}")
    return found


def _escaped(name: str) -> str:
    return re.sub(r"([.\\+*?\[\](){}|^$])", r"\\\1", name)


def _step(command: str, lines: list[str]) -> Step:
    by_file: dict[str, list[str]] = defaultdict(list)
    for line in lines:
        path, _, rest = line.partition(":")
        by_file[path].append(re.sub(r"^\d+(?:-\d+)?:", "", rest))
    return Step(command, "\n".join(lines) + "\n", {path: "\n".join(texts) for path, texts in by_file.items()})


def run_within(words: Sequence[str], folder: Path, env: Mapping[str, str], seconds: float) -> tuple[int, str, str]:
    """Exit code and both outputs; what has not ended in time is ended with all that it started, and its code is 0."""
    with subprocess.Popen(
        words, cwd=folder, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        encoding="utf-8", errors="replace", start_new_session=True,
    ) as process:  # fmt: skip
        try:
            printed, told = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            printed, told = process.communicate()
            return 0, printed, told
        return process.returncode, printed, told


def in_folder(folder: Path, env: Mapping[str, str]) -> Run:
    """Real bash in a folder; programs of the machine. Of a command that takes longer than COMMAND_S what it printed so far."""
    return lambda command: run_within(["bash", "-c", command], folder, {**os.environ, **env}, COMMAND_S)[1]


def in_mcp(tools: Tools) -> Run:
    """The tool `bash` of `memdir mcp --shell`."""
    return lambda command: str(tools.call("bash", {"command": command})[1]["stdout"])


def in_shell(shell: Shell) -> Run:
    """The in-process shell."""
    return lambda command: shell.run_sync(command).stdout
