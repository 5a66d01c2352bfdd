"""The whole product in a minute, with public commands only: mount, copy, search by meaning, profile, edit, unmount.

Runs in a temporary folder with its own MEMDIR_HOME, so nothing of the user's is touched. Any step that goes wrong ends the demo
with exit code 1 and says which. `--svg FILE` also draws the session (for the README).
"""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from terminal_svg import Line, cut, render

from memdir_bench.words import shared_stems

ROOT: Final = Path(__file__).resolve().parent.parent
STEP_LIMIT_S: Final = 60
SYNC_LIMIT_S: Final = 240
PROFILE_LIMIT_S: Final = 30
LINE_COLUMNS: Final = 160
"""Longer lines of output are cut on the screen (the checks see them whole)."""

GREPS: Final = (
    ("recipe for homemade loaf with natural yeast", "notes/2026-11-17-sourdough.md"),
    ("fraudulent email that steals credentials", "mail/2026-10-27-phishing-warning.eml"),
    ("exponentially increasing delay among repeated transmissions", "code/retry_queue.go"),
    ("client demands erasure of records", "runbooks/data-deletion.md"),
)
"""Query and the file it must find; that they share no word is checked before each search."""

EDITED_FILE: Final = "user/health.md"
EDIT: Final = "- Root canal on 20 November; the molar has to be looked at again in January."
EDIT_QUERY: Final = "tooth treatment by the dentist"


class StepError(Exception):
    """What went wrong, in one sentence; the step's name is added by whoever runs it."""


@dataclass(slots=True, kw_only=True)
class Session:
    """A terminal in a folder: shows each command with its output and keeps both for the picture."""

    folder: Path
    env: dict[str, str]
    colour: bool
    lines: list[Line] = field(default_factory=list)

    def run(self, command: str, *, limit_s: float = STEP_LIMIT_S, drawn_lines: int = 12, cwd: Path | None = None) -> str:
        """Run one shell command; a non-zero exit or too much time is a failed step. The picture draws `drawn_lines` of it."""
        self.show(Line(kind="command", text=command))
        started = time.monotonic()
        code, output, errors = execute(command, cwd=cwd or self.folder, env=self.env, limit_s=limit_s)
        elapsed_s = time.monotonic() - started
        printed = output.rstrip("\n").split("\n") if output.strip() else []
        talk = errors.rstrip("\n").split("\n") if errors.strip() else []
        for line in [*talk, *printed[:drawn_lines]]:
            self.show(Line(kind="output", text=line))
        for line in printed[drawn_lines:]:
            self.write(Line(kind="output", text=line))
        if len(printed) > drawn_lines:
            self.lines.append(Line(kind="output", text=f"… {len(printed) - drawn_lines} more lines"))
        if code is None:
            raise StepError(f"`{command}` was still running after {limit_s:.0f} s")
        if code != 0:
            raise StepError(f"`{command}` ended with exit code {code} after {elapsed_s:.1f} s")
        return output

    def note(self, text: str) -> None:
        self.show(Line(kind="note", text=f"# {text}"))

    def show(self, line: Line) -> None:
        """Print it and keep it for the picture."""
        self.lines.append(line)
        self.write(line)

    def write(self, line: Line) -> None:
        """Print it."""
        text = cut(f"$ {line.text}" if line.kind == "command" else line.text, LINE_COLUMNS)
        if self.colour:
            code = {"command": "1", "output": "0", "note": "32"}[line.kind]
            text = f"\033[{code}m{text}\033[0m"
        sys.stdout.write(text + "\n")
        sys.stdout.flush()


def execute(command: str, *, cwd: Path, env: dict[str, str], limit_s: float) -> tuple[int | None, str, str]:
    """Exit code (None after the time limit), stdout, stderr. The command has a process group of its own, which is ended whole.

    Output goes to files: a background process that kept a pipe open would otherwise hold the demo.
    """
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        child = subprocess.Popen(
            ["bash", "-c", command], cwd=cwd, env=env, stdin=subprocess.DEVNULL, stdout=out, stderr=err, start_new_session=True
        )
        try:
            code: int | None = child.wait(timeout=limit_s)
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)
            child.wait()
            code = None
        out.seek(0)
        err.seek(0)
        return code, out.read().decode("utf-8", "replace"), err.read().decode("utf-8", "replace")


@dataclass(frozen=True, slots=True, kw_only=True)
class Demo:
    """The steps, in order; each either returns or raises StepError."""

    session: Session

    @property
    def mount(self) -> Path:
        return self.session.folder / "notes"

    def steps(self) -> Sequence[tuple[str, Callable[[], None]]]:
        return (
            ("mount", self.mount_memory),
            ("copy", self.copy_files),
            ("sync", self.wait_until_searchable),
            *((f"grep {number} of {len(GREPS)}", self.grep_step(*pair)) for number, pair in enumerate(GREPS, 1)),
            ("profile", self.read_profile),
            ("edit", self.edit_and_find),
            ("unmount", self.unmount),
            ("stop the server", self.stop_server),
        )

    def mount_memory(self) -> None:
        started = time.monotonic()
        self.session.run("memdir mount notes")
        if not os.path.ismount(self.mount):
            raise StepError(f"{self.mount} is not a mount point")
        if "profile.md" not in os.listdir(self.mount):
            raise StepError("profile.md is missing in the fresh mount")
        self.session.note(f"usable after {time.monotonic() - started:.2f} s")

    def copy_files(self) -> None:
        source = self.session.folder / "examples" / "atlas"
        self.session.run("cp -r examples/atlas/. notes/")
        wanted = sorted(str(path.relative_to(source)) for path in source.rglob("*") if path.is_file())
        for name in wanted:
            if (self.mount / name).read_bytes() != (source / name).read_bytes():
                raise StepError(f"{name} has other bytes in the mount than in examples/")
        self.session.note(f"{len(wanted)} files, every byte compared")

    def wait_until_searchable(self) -> None:
        started = time.monotonic()
        self.session.run(f"memdir sync notes --wait --timeout {SYNC_LIMIT_S - 10}", limit_s=SYNC_LIMIT_S)
        self.session.note(f"all searchable after {time.monotonic() - started:.1f} s")

    def grep_step(self, query: str, expected: str) -> Callable[[], None]:
        def step() -> None:
            text = (self.mount / expected).read_text(encoding="utf-8")
            shared = shared_stems(query, text)
            if shared:
                raise StepError(f"the query and {expected} share words: {', '.join(sorted(shared))}")
            self.expect_first(query, expected, "")

        return step

    def expect_first(self, query: str, expected: str, text: str) -> None:
        output = self.session.run(f"memdir grep -k 2 {shlex.quote(query)}", cwd=self.mount)
        first = output.split("\n", 1)[0]
        if not first.startswith(f"{expected}:"):
            raise StepError(f"expected {expected} first, got: {first or 'nothing'}")
        if text not in first:
            raise StepError(f"the first hit does not show {text!r}: {first}")

    def read_profile(self) -> None:
        deadline = time.monotonic() + PROFILE_LIMIT_S
        while True:
            facts = [
                line for line in (self.mount / "profile.md").read_text(encoding="utf-8").split("\n") if line.startswith("- ")
            ]
            if len(facts) >= 5:
                break
            if time.monotonic() > deadline:
                raise StepError(f"profile.md lists {len(facts)} facts after {PROFILE_LIMIT_S} s")
            time.sleep(0.1)
        self.session.run("cat notes/profile.md", drawn_lines=16)

    def edit_and_find(self) -> None:
        self.session.run(f"echo {shlex.quote(EDIT)} >> notes/{EDITED_FILE}")
        shared = shared_stems(EDIT_QUERY, (self.mount / EDITED_FILE).read_text(encoding="utf-8"))
        if shared:
            raise StepError(f"the query and the edited file share words: {', '.join(sorted(shared))}")
        self.expect_first(EDIT_QUERY, EDITED_FILE, "molar")

    def unmount(self) -> None:
        self.session.run("memdir unmount notes")
        if os.path.ismount(self.mount):
            raise StepError(f"{self.mount} is still mounted")

    def stop_server(self) -> None:
        self.session.run("memdir server stop")


def clean_up(session: Session) -> str:
    """Leave nothing behind, whatever went wrong. Returns what could not be undone, or nothing."""
    mount = session.folder / "notes"
    if is_mounted(mount):
        execute("memdir unmount notes --force", cwd=session.folder, env=session.env, limit_s=30)
    execute("memdir server stop", cwd=session.folder, env=session.env, limit_s=30)
    if is_mounted(mount):
        execute(f"umount -l {shlex.quote(str(mount))}", cwd=session.folder, env=session.env, limit_s=10)
    if is_mounted(mount):
        return f"{mount} is still mounted; its folder was left as it is"
    shutil.rmtree(session.folder, ignore_errors=True)
    return f"{session.folder} could not be removed" if session.folder.exists() else ""


def is_mounted(path: Path) -> bool:
    """By the kernel's table: a mount whose daemon died cannot be asked."""
    table = Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="surrogateescape")
    return any(fields[4] == str(path) for fields in (line.split(" ") for line in table.split("\n")) if len(fields) > 4)


def open_session() -> Session:
    folder = Path(tempfile.mkdtemp(prefix="memdir-demo-")).resolve()
    (folder / "examples").symlink_to(ROOT / "examples")
    env = {name: value for name, value in os.environ.items() if not name.startswith("MEMDIR_")}
    env["MEMDIR_HOME"] = str(folder / "home")
    env["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{env.get('PATH', '')}"
    env["NO_COLOR"] = "1"
    colour = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
    return Session(folder=folder, env=env, colour=colour)


def play(session: Session) -> int:
    """Run the steps; returns the exit code."""
    demo = Demo(session=session)
    for name, step in demo.steps():
        try:
            step()
        except (StepError, OSError) as error:
            sys.stdout.flush()
            sys.stderr.write(f"\ndemo: step {name!r} failed: {error}\n")
            return 1
    return 0


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0] if __doc__ else None)
    parser.add_argument("--svg", type=Path, metavar="FILE", help="also draw the session as a picture")
    options = parser.parse_args(argv)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: sys.exit(143))
    session = open_session()
    code = 1
    try:
        code = play(session)
    finally:
        left = clean_up(session)
        if left:
            sys.stderr.write(f"demo: {left}\n")
    if left:
        return 1
    if code == 0:
        if options.svg:
            options.svg.parent.mkdir(parents=True, exist_ok=True)
            options.svg.write_text(render(session.lines, title="memdir: a memory as a directory"), encoding="utf-8")
        sys.stdout.write("\ndemo: everything worked\n")
    return code


if __name__ == "__main__":
    sys.exit(main())
