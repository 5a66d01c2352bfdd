"""`memdir sh`: a shell in a memory, without a mount."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from memdir.cli.command import Command, Parser, bounded_int
from memdir.cli.output import Output
from memdir.cli.text import is_terminal, plural, visible
from memdir.core.errors import UsageError

if TYPE_CHECKING:
    from memdir.shell.interpreter import ShellResult
    from memdir.shell.shell import Shell

_SCRIPT_MAX_BYTES: Final = 1 << 20
"""Of standard input; what is longer is refused by the interpreter."""
_TIMEOUT_MAX_S: Final = 24 * 3600
_TIMEOUT_S: Final = 60
_PASSED_ON: Final = ("TZ", "LANG", "LC_ALL", "USER")
"""Of this machine's environment, for how times and names are shown."""


def _configure(parser: Parser) -> None:
    add = parser.add_argument
    add("name", metavar="NAME", nargs="?", help="the memory (default, with --directory: none, the files stay there)")
    add("-c", dest="script", metavar="SCRIPT", help="run this and end")
    add(
        "--directory", metavar="DIR", type=Path,
        help="keep the files in a database in this folder, which is new or empty at first; without NAME they are not synced",
    )  # fmt: skip
    add("--read-only", action="store_true", help="refuse every change")
    add(
        "--timeout", metavar="SECONDS", type=bounded_int(1, _TIMEOUT_MAX_S), default=_TIMEOUT_S,
        help=f"for each script, or each line of a session (default: {_TIMEOUT_S})",
    )  # fmt: skip
    add("--network", metavar="URL", action="append", default=[], help="let curl ask for URLs that begin so")


def _run(args: argparse.Namespace, out: Output) -> int:
    from memdir.cli.targets import check_container_name
    from memdir.shell.interpreter import ShellLimits
    from memdir.shell.shell import Shell

    if args.name is None and args.directory is None:
        raise UsageError("the following arguments are required: NAME", hint="see `memdir sh --help`")
    name = None if args.name is None else check_container_name(args.name)
    script = args.script if args.script is not None else _piped()
    if script is None and out.json:
        raise UsageError("--json is for a script", hint="give one with -c, or on standard input")
    env = {key: os.environ[key] for key in _PASSED_ON if os.environ.get(key)}
    limits = ShellLimits(timeout_s=float(args.timeout))
    shell = Shell(
        name, directory=args.directory, read_only=args.read_only, env=env, limits=limits, network=args.network
    )  # fmt: skip
    try:
        if shell.trouble:
            out.note(f"the memory may not be whole here: {shell.trouble}")
        if script is not None:
            return _print(shell.run_sync(script), out)
        return _session(shell, out)
    finally:
        left = shell.close()
        if left:
            out.note(f"{plural(left, 'change')} could not be pushed yet; the next `memdir sh {args.name}` pushes them")


def _piped() -> str | None:
    """The script on standard input, None when that is a terminal."""
    if is_terminal(sys.stdin):
        return None
    return sys.stdin.buffer.read(_SCRIPT_MAX_BYTES + 1).decode("utf-8", "surrogateescape")


def _print(result: ShellResult, out: Output) -> int:
    if out.json:
        out.document(
            {
                "stdout": result.stdout,
                "stderr": result.stderr,
                "exit_code": result.exit_code,
                "truncated": result.truncated,
            }
        )
        return result.exit_code
    sys.stdout.write(_safe(result.stdout) if out.is_terminal else result.stdout)
    sys.stdout.flush()
    sys.stderr.write(_safe(result.stderr) if is_terminal(sys.stderr) else result.stderr)
    if result.truncated:
        out.note("there was more output than 1 MiB, which was cut off; write it into a file and look at parts")
    return result.exit_code


def _safe(text: str) -> str:
    """For a terminal: what a file holds must not steer it."""
    return "\n".join("\t".join(visible(cell) for cell in line.split("\t")) for line in text.split("\n"))


def _session(shell: Shell, out: Output) -> int:
    """Lines that a person types, until Ctrl-D or `exit`."""
    import contextlib

    with contextlib.suppress(ImportError):
        import readline  # noqa: F401  arrow keys and history
    out.note(f"a shell in {shell.name}, without a mount; Ctrl-D ends it")
    code, text = 0, ""
    while True:
        try:
            text += input(f"{shell.cwd}$ " if not text else "> ") + "\n"
            if not shell.is_complete(text):
                continue
            words, text = text, ""
            code = _print(shell.run_sync(words), out)
            if words.split()[:1] == ["exit"]:
                return code
        except EOFError:
            sys.stderr.write("\n")
            return code
        except KeyboardInterrupt:  # at any of these moments
            sys.stderr.write("\n")
            code, text = 130, ""


COMMAND = Command(
    name="sh",
    usage="[OPTIONS] NAME [-c SCRIPT]",
    description=(
        "A shell of bash in a memory, in this process: no mount, no FUSE, no other program. The files are those of the memory\n"
        "on the server, at /NAME; what is changed is synced. `memdir grep` finds by meaning. Without -c a session begins, or\n"
        "a script is read from standard input. Files outside the memory, as in /tmp, end with the shell. Nothing of\n"
        "this machine is seen. See docs/shell.md."
    ),
    examples=[
        ("memdir sh notes", "a session"),
        ("memdir sh notes -c 'grep -rn token work | head -5'", "one script"),
        ("memdir sh notes --json < tidy.sh", "for programs"),
        ("memdir sh --directory ./scratch -c 'echo hi > a; ls -l'", "files that stay on this machine"),
    ],
    exit_codes=[
        (0, "the exit code of the script, here and otherwise"),
        (124, "the script had no time left"),
        (2, "an error; the message says what to do"),
    ],
    configure=_configure,
    run=_run,
)
