"""`memdir init --shell`: what the functions make of a grep that is typed, in real shells on a terminal, on a real mount."""

from __future__ import annotations

import os
import pty
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from memdir.cli.agents.init import SHELLS, function_text

TIMEOUT_S = 10
START = {
    "bash": ("bash", "--norc", "--noprofile", "-i"),
    "zsh": ("zsh", "-f", "-i"),
    "fish": ("fish", "--no-config", "-i"),
}
_PROMPT = {
    "bash": "PS1='' PS2=''; unset PROMPT_COMMAND",
    "zsh": "PS1='' PS2=''; unsetopt zle prompt_cr",
    "fish": "function fish_prompt; end",
}


class Person:
    """Somebody who types into a shell. `say` gives what the terminal shows until the command is done, and its exit code."""

    def __init__(self, shell: str, folder: Path, environment: dict[str, str]) -> None:
        self.shell = shell
        pid, self._master = pty.fork()
        if not pid:
            os.chdir(folder)
            os.execvpe(START[shell][0], START[shell], environment | {"TERM": "xterm", "LC_ALL": "C.UTF-8"})
        self._pid = pid
        self._said = 0
        self.say(_PROMPT[shell])
        self.say(f"source '{function_file(shell, folder.parent)}'")

    def say(self, line: str) -> tuple[int, str]:
        self._said += 1
        mark, code = f"done{self._said}", "$status" if self.shell == "fish" else "$?"
        os.write(self._master, f"{line}\n".encode())
        # Split, so that the echo of what is typed is not taken for what is printed.
        os.write(self._master, f"printf '%s%s:%s.' {mark[:2]} {mark[2:]} {code}\n".encode())
        shown = ""
        deadline_s = time.monotonic() + TIMEOUT_S
        while not (found := re.search(rf"{mark}:(\d+)\.", shown)):
            assert select.select([self._master], [], [], max(0.0, deadline_s - time.monotonic()))[0], shown
            shown += os.read(self._master, 65536).decode("utf-8", "replace")
        return int(found[1]), shown

    def close(self) -> None:
        os.kill(self._pid, signal.SIGKILL)
        os.waitpid(self._pid, 0)
        os.close(self._master)


def function_file(shell: str, folder: Path) -> Path:
    path = folder / f"functions.{shell}"
    path.write_text(function_text(shell), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def mount(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A mount in a folder with a blank, with a program `memdir` beside it that only says what it was called with."""
    base = tmp_path_factory.mktemp("shell") / "a place"
    base.mkdir()
    home = Path(tempfile.mkdtemp(prefix="md-"))
    environment = os.environ | {"MEMDIR_HOME": str(home)}
    command = (sys.executable, "-m", "memdir.cli")
    made = subprocess.run(
        (*command, "mount", "notes", "--no-sync"), env=environment, cwd=base, capture_output=True, check=False
    )
    assert made.returncode == 0, made.stderr
    (base / "notes" / "deep").mkdir()
    (base / "notes" / "plan.md").write_text("the plan\nanother line\n")
    (base / "outside.md").write_text("the plan\n")
    (base / "bin").mkdir()
    (base / "bin" / "memdir").write_text(  # says what it was called with, in one piece: the terminal echoes between two
        "#!/bin/sh\nsaid=$(printf '[%s]' \"$@\")\nprintf 'by-meaning%s\\n' \"$said\"\nexit 1\n"
    )
    (base / "bin" / "memdir").chmod(0o755)
    yield base / "notes"
    ended = subprocess.run((*command, "unmount", str(base / "notes")), env=environment, capture_output=True, check=False)
    assert ended.returncode == 0, ended.stderr
    shutil.rmtree(home)


@pytest.fixture(scope="module", params=SHELLS)
def person(request: pytest.FixtureRequest, mount: Path) -> Iterator[Person]:
    if shutil.which(request.param) is None:
        pytest.skip(f"there is no {request.param} here")
    environment = os.environ | {"PATH": f"{mount.parent}/bin:{os.environ['PATH']}"}
    made = Person(request.param, mount, environment)
    yield made
    made.close()


pytestmark = pytest.mark.mount


@pytest.mark.promise("retrieval.shell")
def test_words_typed_in_a_mount_are_looked_for_by_meaning_with_the_exit_code_of_the_search(person: Person) -> None:
    code, shown = person.say("grep 'what is planned?'")
    assert "by-meaning[grep][--][what is planned?]" in shown
    assert code == 1
    assert "by-meaning[grep][--][words][deep]" in person.say("grep words deep")[1]
    assert "by-meaning[grep][--][words][./plan.md]" in person.say("grep words ./plan.md")[1]
    assert "by-meaning[grep][--][words]" in person.say("cd deep; grep words; cd ..")[1]
    assert "by-meaning[grep][--][words][deep]" in person.say("grep -- words deep")[1]


def test_what_is_typed_works_with_another_separator_of_words(person: Person) -> None:
    if person.shell == "fish":
        pytest.skip("fish has no IFS")
    person.say("was=$IFS; IFS=x")
    assert "by-meaning[grep][--][words]" in person.say("grep words")[1]
    person.say("IFS=$was")


def test_a_path_in_a_mount_is_enough(person: Person, mount: Path) -> None:
    assert f"by-meaning[grep][--][words][{mount}]" in person.say(f"cd /; grep words '{mount}'; cd '{mount}'")[1]


@pytest.mark.promise("retrieval.shell")
@pytest.mark.parametrize(
    "line",
    [
        "grep -n plan plan.md",
        "grep plan -n plan.md",
        "grep -e plan plan.md",
        "grep 'pl.*' plan.md",
        "grep '^the' plan.md",
        "grep plan ../outside.md",
        "grep plan plan.md ../outside.md",
        "grep -- plan ../outside.md",
        "cat plan.md | grep plan",
        "grep plan < plan.md",
        "cd ..; grep plan outside.md; cd notes",
        "command grep plan plan.md",
        "sh -c 'grep plan plan.md'",
        "env grep plan plan.md",
        "grep '' plan.md",
    ],
)
def test_every_other_grep_is_the_real_one(person: Person, line: str) -> None:
    code, shown = person.say(line)
    assert "by-meaning" not in shown
    assert "the plan" in re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", shown), shown
    assert code == 0


def test_the_exit_codes_of_the_real_grep_pass_through(person: Person) -> None:
    assert person.say("grep -q plan plan.md")[0] == 0
    assert person.say("grep -q nothing plan.md")[0] == 1
    assert person.say("grep -q plan missing.md")[0] == 2
    assert person.say("grep plan missing.md")[0] == 2


def test_functions_and_sourced_files_get_the_real_grep(person: Person, mount: Path) -> None:
    script = mount.parent / "script"
    script.write_text("grep plan plan.md\n")
    assert "by-meaning" not in person.say("source ../script")[1]
    body = "function mine; grep plan plan.md; end" if person.shell == "fish" else "mine() { grep plan plan.md; }"
    person.say(body)
    code, shown = person.say("mine")
    assert code == 0
    assert "by-meaning" not in shown


def test_the_usual_alias_makes_no_difference(person: Person, mount: Path) -> None:
    if person.shell == "fish":
        pytest.skip("fish has no alias of grep, but a function, whose place ours takes")
    person.say("alias grep='grep --color=auto'")
    person.say(f"source '{function_file(person.shell, mount.parent)}'")
    assert "by-meaning[grep][--][words]" in person.say("grep words")[1]
    shown = person.say("grep -n plan plan.md")[1]
    assert "\x1b[" in shown
    assert "by-meaning" not in shown
    person.say("unalias grep")


def test_without_the_program_grep_stays_what_it_is(person: Person) -> None:
    keep, lose, back = (
        ("set -g kept $PATH", "set PATH /usr/bin /bin", "set PATH $kept")
        if person.shell == "fish"
        else ("kept=$PATH", "PATH=/usr/bin:/bin", "PATH=$kept")
    )
    person.say(keep)
    if shutil.which("memdir", path="/usr/bin:/bin") is not None:
        pytest.skip("memdir is installed for the whole system")
    person.say(lose)
    code, shown = person.say("grep plan plan.md")
    person.say(back)
    assert code == 0
    assert "by-meaning" not in shown


@pytest.mark.parametrize("shell", SHELLS)
def test_a_shell_that_nobody_types_into_has_the_real_grep(shell: str, mount: Path) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"there is no {shell} here")
    source = f"source '{function_file(shell, mount.parent)}'; grep plan plan.md"
    environment = os.environ | {"PATH": f"{mount.parent}/bin:{os.environ['PATH']}"}
    done = subprocess.run((shell, "-c", source), cwd=mount, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "the plan\n", "")


# --- the rc file ---------------------------------------------------------------------------------------------------------

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def rc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    for variable in ("ZDOTDIR", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(variable, raising=False)
    return tmp_path / ".bashrc"


@pytest.mark.parametrize("shell", SHELLS)
def test_print_is_what_it_does_by_itself(shell: str, run: Run, rc: Path) -> None:
    assert run("init", "--shell", shell) == (0, function_text(shell), "")
    assert list(rc.parent.iterdir()) == []


@pytest.mark.parametrize("before", [None, b"", b"alias l=ls\n", b"no line end", b"\xff\n\n\n"])
def test_installing_and_uninstalling_leaves_the_file_as_it_was(before: bytes | None, run: Run, rc: Path) -> None:
    if before is not None:
        rc.write_bytes(before)
        rc.chmod(0o640)
    assert run("init", "--shell", "bash", "--install")[0] == 0
    once = rc.read_bytes()
    assert once.startswith(before or b"")
    assert function_text("bash").encode() in once
    assert run("init", "--shell", "bash", "--install")[0] == 0
    assert rc.read_bytes() == once
    assert run("init", "--shell", "bash", "--uninstall")[0] == 0
    if before is None:
        assert not rc.exists()
    else:
        assert (rc.read_bytes(), rc.stat().st_mode & 0o777) == (before, 0o640)
    assert list(rc.parent.iterdir()) == ([] if before is None else [rc])
    assert run("init", "--shell", "bash", "--uninstall")[0] == 1


def test_what_was_written_around_the_block_stays(run: Run, rc: Path) -> None:
    rc.write_bytes(b"one")
    run("init", "--shell", "bash", "--install")
    rc.write_bytes(rc.read_bytes() + b"two\n")
    run("init", "--shell", "bash", "--install")
    assert rc.read_bytes().endswith(b"two\n")
    run("init", "--shell", "bash", "--uninstall")
    assert rc.read_bytes() == b"one\ntwo\n"


def test_an_older_block_is_renewed_and_a_broken_one_left_alone(run: Run, rc: Path) -> None:
    rc.write_bytes(b"one\n# >>> memdir shell >>>\nold\n# <<< memdir shell <<<\n")
    run("init", "--shell", "bash", "--install")
    assert b"\nold\n" not in rc.read_bytes()
    broken = b"one\n# >>> memdir shell >>>\nold\n"
    rc.write_bytes(broken)
    for option in ("--install", "--uninstall"):
        code, _, err = run("init", "--shell", "bash", option)
        assert code == 2
        assert "# <<< memdir shell <<<" in err
    assert rc.read_bytes() == broken


def test_a_linked_rc_file_stays_a_link(run: Run, rc: Path) -> None:
    kept = rc.parent / "dotfiles"
    kept.mkdir()
    (kept / "bashrc").write_text("one\n")
    rc.symlink_to(kept / "bashrc")
    run("init", "--shell", "bash", "--install")
    assert rc.is_symlink()
    assert function_text("bash") in (kept / "bashrc").read_text()
    run("init", "--shell", "bash", "--uninstall")
    assert (kept / "bashrc").read_text() == "one\n"


def test_zsh_and_fish_have_their_own_places(run: Run, rc: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run("init", "--shell", "zsh", "--install")[0] == 0
    assert run("init", "--shell", "fish", "--install", "--json")[0] == 0
    assert (rc.parent / ".zshrc").exists()
    assert (rc.parent / ".config" / "fish" / "config.fish").exists()
    monkeypatch.setenv("ZDOTDIR", str(rc.parent / "z"))
    assert run("init", "--shell", "zsh", "--install")[0] == 0
    assert (rc.parent / "z" / ".zshrc").exists()
