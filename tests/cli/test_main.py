"""The command line itself: dispatch, exit codes, errors, help."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from memdir import __version__
from memdir.cli import main as main_module
from memdir.cli.command import Command
from memdir.cli.docs import DEFAULT_FILE, render
from memdir.cli.main import all_commands, load_command
from memdir.core.sqlite import DiskFullError

Run = Callable[..., tuple[int, str, str]]

COMMANDS = all_commands()

BAD_COMMAND_LINES: dict[str, list[str]] = {
    "mount": ["mount"],
    "unmount": ["unmount", "--bogus"],
    "list": ["list", "surplus"],
    "status": ["status", "a", "b"],
    "grep": ["grep"],
    "init": ["init", "--agent", "emacs"],
    "deinit": ["deinit", "--agent", "emacs"],
    "sync": ["sync", "--timeout", "soon"],
    "queue": ["queue", "-n", "0"],
    "retry": ["retry", "a", "b"],
    "ignore list": ["ignore", "list", "a", "b"],
    "ignore add": ["ignore", "add"],
    "ignore remove": ["ignore", "remove"],
    "ignore why": ["ignore", "why"],
    "conflicts": ["conflicts", "a", "b"],
    "conflicts show": ["conflicts", "show"],
    "conflicts resolve": ["conflicts", "resolve", "a", "--keep", "none"],
    "logs": ["logs", "-n", "-1"],
    "history": ["history", "a", "b"],
    "restore": ["restore"],
    "undelete": ["undelete", "a", "b"],
    "export": ["export", "a"],
    "import": ["import"],
    "server run": ["server", "run", "--port", "99999"],
    "server start": ["server", "start", "x"],
    "memory export": ["memory", "export", "--format", "tar"],
    "memory import": ["memory", "import", "--from", "nobody"],
    "sh": ["sh"],
    "mcp": ["mcp", "--port", "none"],
    "research": ["research", "x", "--rounds", "0"],
    "research status": ["research", "status"],
    "research check": ["research", "check"],
    "research archive": ["research", "archive", "."],
    "research report": ["research", "report"],
    "research export": ["research", "export", ".", "--format", "odt"],
    "research note": ["research", "note", "."],
    "research pause": ["research", "pause"],
    "cost": ["cost", "--turns", "0"],
    "memory store": ["memory", "store", "--bogus"],
    "memory search": ["memory", "search", "--limit", "none", "x"],
    "memory list": ["memory", "list", "--bogus"],
    "memory show": ["memory", "show"],
    "memory edit": ["memory", "edit"],
    "memory tag": ["memory", "tag"],
    "memory delete": ["memory", "delete"],
    "memory review": ["memory", "review", "--limit", "none"],
    "memory confirm": ["memory", "confirm"],
    "memory history": ["memory", "history"],
    "memory why": ["memory", "why"],
    "traces list": ["traces", "list", "--limit", "0"],
    "traces status": ["traces", "status", "x"],
    "traces watch": ["traces", "watch"],
    "traces import": ["traces", "import"],
    "traces pause": ["traces", "pause", "x"],
    "traces resume": ["traces", "resume", "x"],
    "traces forget": ["traces", "forget", "--since", "never"],
    "habits": ["habits", "--since", "never"],
    "habits drift": ["habits", "drift", "--plot"],
    "habits suggest": ["habits", "suggest"],
    "habits procedures": ["habits", "procedures", "x"],
    "forget": ["forget", "--path"],
    "forget verify": ["forget", "verify", "a", "b"],
    "memory graph": ["memory", "graph"],
    "memory stats": ["memory", "stats", "--bogus"],
    "server stop": ["server", "stop", "--now"],
    "server status": ["server", "status", "x"],
    "server migrate": ["server", "migrate", "x"],
    "server backup": ["server", "backup"],
    "server restore": ["server", "restore"],
    "server check": ["server", "check", "x"],
    "server reindex": ["server", "reindex", "--what", "everything"],
    "server vacuum": ["server", "vacuum", "--history-days", "0"],
    "server worker": ["server", "worker", "--workers", "0"],
    "server jobs": ["server", "jobs", "x"],
    "server jobs retry": ["server", "jobs", "retry", "a", "b"],
    "server key create": ["server", "key", "create"],
    "server key list": ["server", "key", "list", "x"],
    "server key revoke": ["server", "key", "revoke"],
    "server key rotate": ["server", "key", "rotate", "x", "--keep", "soon"],
    "server user add": ["server", "user", "add"],
    "server user list": ["server", "user", "list", "x"],
    "server user remove": ["server", "user", "remove"],
    "server org add": ["server", "org", "add"],
    "server org list": ["server", "org", "list", "x"],
    "server org remove": ["server", "org", "remove"],
    "server audit": ["server", "audit", "--action", "fly"],
    "login": ["login"],
    "whoami": ["whoami", "x"],
    "logout": ["logout", "x"],
    "doctor": ["doctor", "x"],
    "recover": ["recover", "a", "b"],
    "fsck": ["fsck", "a", "b"],
    "bench smoke": ["bench", "smoke", "x"],
    "bench agents": ["bench", "agents", "--sizes", "1"],
    "bench sync": ["bench", "sync", "--bogus"],
    "bench posix": ["bench", "posix", "--rounds", "-1"],
    "bench ingest": ["bench", "ingest", "x"],
    "bench memory": ["bench", "memory", "x"],
    "bench xafs make": ["bench", "xafs", "make", "--sizes", "1", "--out", "x"],
    "bench xafs run": ["bench", "xafs", "run", "--out", "x"],
    "bench xafs report": ["bench", "xafs", "report"],
    "bench shell": ["bench", "shell", "--seed", "x"],
    "bench nfs": ["bench", "nfs", "x"],
    "bench research": ["bench", "research", "--rounds", "x"],
    "bench research export": ["bench", "research", "export"],
    "bench research score": ["bench", "research", "score"],
    "bench traces": ["bench", "traces", "x"],
    "bench retrieval": ["bench", "retrieval", "x"],
    "bench scale": ["bench", "scale", "--sizes", "1000,none"],
    "bench server": ["bench", "server", "--seconds", "0"],
}

PARSED = sorted({*COMMANDS} - {"hook"})
"""`memdir hook` refuses nothing: a host would keep the prompt from the model (tests/agents/test_hook.py)."""


def start(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """A whole process, as a shell starts it."""
    return subprocess.run(
        [sys.executable, "-m", "memdir.cli", *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        stdin=subprocess.DEVNULL,
        env={**os.environ, **environment},
    )


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_explains_itself_with_examples_and_exit_codes(name: str, run: Run) -> None:
    code, out, err = run(*name.split(), "--help")
    assert (code, err) == (0, "")
    assert out.startswith(f"usage: memdir {name}")
    assert len(load_command(name).description) > 20
    assert f"examples:\n  memdir {name}" in out
    assert "\nexit codes:\n  0  " in out
    assert "\n  2  " in out
    assert "--json" in out


@pytest.mark.parametrize("name", PARSED)
def test_every_command_refuses_a_bad_command_line_with_2_and_a_hint(name: str, run: Run) -> None:
    code, out, err = run(*BAD_COMMAND_LINES[name])
    assert (code, out) == (2, "")
    assert err.startswith("memdir: ")
    assert f"hint: see `memdir {name} --help`" in err


@pytest.mark.parametrize("name", PARSED)
def test_every_command_reports_errors_as_json_when_asked(name: str, run: Run) -> None:
    code, out, err = run(*BAD_COMMAND_LINES[name], "--json")
    assert (code, err) == (2, "")
    answer = json.loads(out)
    assert set(answer) == {"error", "hint"}
    assert answer["error"]


def test_the_page_in_docs_is_what_help_says() -> None:
    assert DEFAULT_FILE.read_text(encoding="utf-8") == render(), "run `python -m memdir.cli.docs`"


def test_every_command_is_in_the_docs_page() -> None:
    page = render()
    for name in COMMANDS:
        assert f"## memdir {name}\n" in page


def test_every_module_of_a_command_is_registered() -> None:
    folder = Path(main_module.__file__).parent
    defining = {file.stem for file in folder.glob("*.py") if " = Command(" in file.read_text(encoding="utf-8")}
    assert defining == {module for module, _, _ in COMMANDS.values() if "." not in module}


def test_the_version_is_the_package_s(run: Run) -> None:
    assert run("--version") == (0, f"memdir {__version__}\n", "")
    assert json.loads(run("--version", "--json")[1]) == {"version": __version__}


def test_the_overview_names_every_command(run: Run) -> None:
    for arguments in (["--help"], ["-h"], ["help"]):
        code, out, _ = run(*arguments)
        assert code == 0
        assert all(f"  {name} " in out for name in COMMANDS)


def test_benchmarks_that_are_not_installed_say_how_to_get_them(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.metadata.entry_points", lambda **_: ())
    code, out, err = run("bench", "smoke")
    assert (code, out) == (2, "")
    assert "pip install memdir-bench" in err
    assert "bench smoke" not in run("--help")[1]


def test_help_before_a_command_is_that_command_s_help(run: Run) -> None:
    assert run("help", "grep")[1] == run("grep", "--help")[1]


def test_a_group_without_a_command_says_which_there_are(run: Run) -> None:
    assert "run, start, stop, status" in run("server")[2]
    code, out, _ = run("server", "--help")
    assert code == 0
    assert "server status" in out


@pytest.mark.parametrize(
    ("typed", "meant"),
    [("moutn", "mount"), ("stauts", "status"), ("gerp", "grep"), ("serve", "server"), ("umont", "unmount"), ("fcsk", "fsck")],
)
def test_a_misspelt_command_gets_a_suggestion(typed: str, meant: str, run: Run) -> None:
    code, out, err = run(typed)
    assert (code, out) == (2, "")
    assert f"did you mean `memdir {meant}`?" in err


def test_a_misspelt_command_of_a_group_gets_a_suggestion(run: Run) -> None:
    assert "did you mean `memdir server status`?" in run("server", "staus")[2]


def test_no_command_at_all_is_an_error(run: Run) -> None:
    code, _, err = run()
    assert code == 2
    assert "memdir --help" in err


def test_an_option_before_the_command_is_explained(run: Run) -> None:
    code, _, err = run("--json-lines", "list")
    assert code == 2
    assert "before the command" in err


def test_common_other_spellings_work(run: Run) -> None:
    assert run("umount", "--help")[1] == run("unmount", "--help")[1]
    assert run("ls")[0] == 0


def test_options_cannot_be_abbreviated_by_accident(run: Run) -> None:
    assert run("list", "--js")[0] == 2


def test_help_needs_no_heavy_module() -> None:
    heavy = ["apsw", "httpx", "pydantic", "numpy", "json", "dataclasses", "subprocess", "memdir.daemon.registry"]
    program = (
        "import sys; from memdir.cli.main import main; code = main(['grep', '--help']);"
        f"loaded = [name for name in {heavy!r} if name in sys.modules];"
        "sys.exit(code or (f'imported {loaded}' if loaded else 0))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr


def test_an_unexpected_error_is_one_line_and_its_traceback_is_in_a_file(
    run: Run, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(args: object, out: object) -> int:
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr(main_module, "load_command", lambda name: _command(broken))
    code, out, err = run("list")
    assert (code, out) == (2, "")
    assert err.splitlines()[0] == "memdir: unexpected error: ZeroDivisionError: a bug"
    file = home / "state" / "cli-error.log"
    assert str(file) in err
    assert "Traceback" not in err
    assert "in broken" in file.read_text(encoding="utf-8")
    assert file.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (OSError(errno.ENOSPC, "No space left on device", "/data/x"), "memdir: the disk is full: /data/x"),
        (OSError(errno.EROFS, "Read-only file system", b"/data"), "memdir: /data: read-only file system"),
        (DiskFullError("database or disk is full"), "memdir: the disk is full"),
        (OSError(errno.EMFILE, "Too many open files"), "memdir: too many files are open"),
    ],
)
def test_what_the_machine_refuses_is_said_plainly(
    error: Exception, says: str, run: Run, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(args: object, out: object) -> int:
        raise error

    monkeypatch.setattr(main_module, "load_command", lambda name: _command(refused))
    code, out, err = run("list")
    assert (code, out) == (2, "")
    assert err.splitlines()[0] == says
    assert "hint: " in err
    assert not (home / "state" / "cli-error.log").exists()


@pytest.mark.parametrize("how", ["option", "environment"])
def test_debug_shows_the_traceback(how: str, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(args: object, out: object) -> int:
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr(main_module, "load_command", lambda name: _command(broken))
    if how == "environment":
        monkeypatch.setenv("MEMDIR_DEBUG", "1")
    _, _, err = run("list", *(["--debug"] if how == "option" else []))
    assert "Traceback (most recent call last)" in err


def test_ctrl_c_is_130_without_a_traceback(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(args: object, out: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(main_module, "load_command", lambda name: _command(interrupted))
    assert run("list") == (130, "", "\n")


def test_a_reader_that_goes_away_ends_the_command_quietly() -> None:
    """`memdir --help | head -0`, with the pipe closed before anything is written."""
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "memdir.cli", "--help"], stdout=writing, stderr=subprocess.PIPE, timeout=60, check=False
        )
    finally:
        os.close(writing)
    assert done.returncode == 141
    assert done.stderr == b""


def test_a_bad_home_is_an_error_with_2() -> None:
    done = start("list", MEMDIR_HOME="not/absolute")
    assert done.returncode == 2
    assert "MEMDIR_HOME must be an absolute path" in done.stderr


def test_any_locale_can_print_any_text(home: Path) -> None:
    done = start("unmount", "überraschung-記憶", PYTHONIOENCODING="ascii", LC_ALL="C")
    assert done.returncode == 2
    assert "Traceback" not in done.stderr


def test_no_colour_codes_go_into_a_pipe() -> None:
    assert "\x1b" not in start("--help").stdout


def _command(body: Callable[..., int]) -> Command:
    return Command(name="list", usage="", description="", examples=[], exit_codes=[], configure=lambda parser: None, run=body)
