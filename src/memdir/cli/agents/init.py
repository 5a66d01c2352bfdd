"""`memdir init`: sets agent hosts up (`cli.agents.setup`) or, with `--shell`, defines a shell function that makes
`grep "words"`, typed in a mount, a search by meaning.

Opt-in: printed by itself, written into the shell's start-up file with `--install`. The text itself goes in, so that no
shell starts Python when it starts. A marked block holds it, and its first line says what else has to be undone, so that
`--uninstall` gives back the bytes that were there.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final

from memdir.cli.agents import setup as agent_setup
from memdir.cli.command import EXIT_NOTHING, EXIT_OK, Command, Parser
from memdir.core.errors import StorageError, UsageError
from memdir.core.othersfiles import read_file, replace_file

if TYPE_CHECKING:
    from memdir.cli.output import Output

SHELLS: Final = ("bash", "zsh", "fish")
_FILES: Final = {"bash": "bash.sh", "zsh": "zsh.sh", "fish": "fish.fish"}
_BEGIN: Final = b"# >>> memdir shell >>>"
_END: Final = b"# <<< memdir shell <<<"
_MADE: Final = b" (file made)"
_LINE_ENDED: Final = b" (line ended)"
_FILE_MAX_BYTES: Final = 4 << 20
_BY_HAND: Final = "use --print, and put the text there"


def function_text(shell: str) -> str:
    """The functions for one of SHELLS."""
    return (Path(__file__).parent / "shells" / _FILES[shell]).read_text(encoding="utf-8")


def start_file(shell: str) -> Path:
    """What an interactive shell of this user reads when it starts."""
    home = Path(os.path.expanduser("~"))
    if shell == "bash":
        return home / ".bashrc"
    if shell == "zsh":
        return Path(os.environ.get("ZDOTDIR") or home) / ".zshrc"
    return Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config") / "fish" / "config.fish"


def _configure(parser: Parser) -> None:
    agent_setup.add_choice(parser, every="those that you use")
    parser.add_argument("--check", action="store_true", help="tell how the hosts are set up, change nothing")
    parser.add_argument("--shell", choices=SHELLS, help="set up a shell instead: the one you type into")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--print", action="store_true", help="with --shell: print the functions (the default)")
    what.add_argument("--install", action="store_true", help="with --shell: write them into its start-up file")
    what.add_argument("--uninstall", action="store_true", help="with --shell: take them out again")


def _run(args: argparse.Namespace, out: Output) -> int:
    if args.shell is None:
        if args.print or args.install or args.uninstall:
            raise UsageError("--print, --install and --uninstall are for --shell", hint="see `memdir init --help`")
        return agent_setup.check(args, out) if args.check else agent_setup.install(args, out)
    if args.agent or args.check or args.project or args.user:
        raise UsageError("--shell sets up a shell, --agent an agent host", hint="call `memdir init` once for each")
    text = function_text(args.shell)
    if not args.install and not args.uninstall:
        if out.json:
            out.document({"shell": args.shell, "text": text})
        else:
            out.line(text.rstrip("\n"))
        return EXIT_OK
    path = Path(os.path.realpath(start_file(args.shell)))

    def wanted(before: bytes | None) -> bytes | None:
        head, tail, made = _around_block(before or b"", path)
        if args.install:
            return _with_block(head, text.encode(), made=made or before is None) + tail
        return None if (made or before is None) and not head + tail else head + tail

    changed = _replace(path, wanted)
    done = ("installed" if args.install else "uninstalled") if changed else "unchanged"
    if out.json:
        out.document({"shell": args.shell, "file": str(path), "state": done})
    else:
        hint = "; open a new shell to use it" if changed and args.install else ""
        out.note(f"{path}: {done}{hint}")
    return EXIT_OK if args.install or changed else EXIT_NOTHING


def _with_block(data: bytes, text: bytes, *, made: bool) -> bytes:
    ended = bool(data) and not data.endswith(b"\n")
    notes = (_MADE if made else b"") + (_LINE_ENDED if ended else b"")
    return data + (b"\n" if ended else b"") + _BEGIN + notes + b"\n" + text + _END + b"\n"


def _around_block(data: bytes, path: Path) -> tuple[bytes, bytes, bool]:
    """What stands before and behind our block, and whether it says that we made the file. UsageError for half a block."""
    lines = data.splitlines(keepends=True)
    begins = [number for number, line in enumerate(lines) if line.startswith(_BEGIN)]
    ends = [number for number, line in enumerate(lines) if line.rstrip() == _END]
    if not begins and not ends:
        return data, b"", False
    if len(begins) != 1 or len(ends) != 1 or ends[0] < begins[0]:
        raise UsageError(
            f"{path} has a damaged block of memdir",
            hint=f"take out what is between '{_BEGIN.decode()}' and '{_END.decode()}' by hand, these lines too",
        )
    head, tail = b"".join(lines[: begins[0]]), b"".join(lines[ends[0] + 1 :])
    first = lines[begins[0]]
    if _LINE_ENDED in first and not tail:
        head = head.removesuffix(b"\n")
    return head, tail, _MADE in first


def _replace(path: Path, wanted: Callable[[bytes | None], bytes | None]) -> bool:
    """Put what `wanted` makes of the file's bytes in their place; None: no file. Whether that changed anything."""
    try:
        read = read_file(path, max_bytes=_FILE_MAX_BYTES)
        before, info = (None, None) if read is None else read
        after = wanted(before)
        if after is None:
            path.unlink(missing_ok=True)
        elif after != before:
            path.parent.mkdir(parents=True, exist_ok=True)
            replace_file(path, after, info)
        return after != before
    except StorageError as error:
        raise StorageError(f"{path} is left as it is: {error.message}", hint=_BY_HAND) from None
    except OSError as error:
        raise StorageError(f"{path} is left as it is: {error.strerror}", hint=_BY_HAND) from error


COMMAND = Command(
    name="init",
    usage="[--agent HOSTS] [--project | --user] [--yes | --dry-run | --check] | --shell SHELL [--install | --uninstall]",
    description=(
        "Give agent hosts a memory: the MCP server, the hooks that tell every prompt what is known, and a block in the guide\n"
        "file. Shows what changes, keeps each file as it was, changes nothing else in it, and does nothing the second time.\n"
        "`memdir deinit` brings every byte back. --user (the default) writes your own settings; --project those of the\n"
        "repository around you, which others check out.\n"
        "\n"
        'With --shell: make `grep "words"` and `grep "words" PATH`, typed in a mounted memory, a search by meaning.\n'
        "The real grep stays what it is for everything else: any flag, patterns with one of \\ ^ $ * [ ] |, input from a pipe\n"
        "or file, several paths, paths outside a memory, scripts, functions, shells that nobody types into."
    ),
    examples=[
        ("memdir init", "which hosts, for whom, and see it first"),
        ("memdir init --agent claude-code,codex --user --yes", "without a question"),
        ("memdir init --agent cursor --project --dry-run", "only show what would change"),
        ("memdir init --check", "are they set up?"),
        ("memdir init --shell bash", "read what would be installed"),
        ('eval "$(memdir init --shell zsh)"', "try it in this shell only"),
        ("memdir init --shell fish --install", "into config.fish, from the next shell on"),
        ("memdir init --shell bash --uninstall", "the start-up file is as it was"),
    ],
    exit_codes=[
        (0, "done; with --check: all is set up"),
        (1, "nothing was done: you said no; --uninstall found nothing; --check misses something"),
    ],
    configure=_configure,
    run=_run,
)
