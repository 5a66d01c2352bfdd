"""What `memdir mount` may be told about the memory and the folder around it: memory paths, and the agent hint."""

from __future__ import annotations

import argparse
import os
from typing import TYPE_CHECKING, Any, Final

from memdir.core.errors import MemdirError, UsageError

if TYPE_CHECKING:
    from memdir.cli.command import Parser
    from memdir.cli.output import Output
    from memdir.daemon.registry import MountRecord

MEMORY_PATHS_MAX: Final = 256
"""As the server takes them."""
HINT_VARIABLE: Final = "MEMDIR_AGENT_HINT"
_HINTS: Final = ("existing", "create", "off")
_TIMEOUT_S: Final = 10.0


def add_options(parser: Parser) -> None:
    parser.add_argument(
        "--memory-paths", metavar="LIST", type=memory_paths, default=None,
        help="facts for profile.md are read in these paths of the memory, with commas between them: '/notes/' is the folder "
        "and all below it, '/journal.md' one file, '' none (default: as it is; new: /memory/,/user/,/memory.md,/user.md)",
    )  # fmt: skip
    parser.add_argument(
        "--agent-hint", choices=_HINTS, default=None,
        help=f"tell agents of the mount in CLAUDE.md and AGENTS.md of the current folder, until it is unmounted: existing "
        f"(default) in those that are there, create: also make them, off (the variable {HINT_VARIABLE} sets the default)",
    )  # fmt: skip
    parser.add_argument(
        "--no-agent-hint", dest="agent_hint", action="store_const", const="off", help="the same as --agent-hint off"
    )


def memory_paths(text: str) -> tuple[str, ...]:
    """An argparse type: paths of a memory with commas between them; nothing at all means none."""
    from memdir.fs.errors import FsError
    from memdir.fs.path import checked

    if not text.strip():
        return ()
    found: list[str] = []
    for word in (word.strip() for word in text.split(",")):
        if not word.startswith("/"):
            what = f"{word!r} does not begin with '/'" if word else "there is nothing between two commas"
            raise argparse.ArgumentTypeError(f"{what}; write /notes/ for a folder, /journal.md for a file, '' for none")
        try:
            path = checked(word)
            word.encode("utf-8")
        except (FsError, UnicodeEncodeError):
            raise argparse.ArgumentTypeError(f"{word!r} is no path of a memory; leave out '..' and what is no text") from None
        path += "/" if word.endswith("/") and path != "/" else ""
        if path not in found:
            found.append(path)
    if len(found) > MEMORY_PATHS_MAX:
        raise argparse.ArgumentTypeError(f"{len(found)} paths are too many, at most {MEMORY_PATHS_MAX}")
    return tuple(found)


def hint_wish(args: argparse.Namespace, folder: str) -> dict[str, Any]:
    """What a MountSpec says about the hint. UsageError for a setting that is none."""
    wish = args.agent_hint
    if wish is None:
        wish = os.environ.get(HINT_VARIABLE) or _HINTS[0]
        if wish not in _HINTS:
            raise UsageError(f"{HINT_VARIABLE} is {wish!r}", hint=f"it can be {', '.join(_HINTS)}")
    return {"hint_folder": None if wish == "off" else folder, "hint_create": wish == "create"}


def say_hint(record: MountRecord, out: Output) -> list[str]:
    """Say which files tell agents of the mount now, and what hindered that. Returns the files."""
    from pathlib import Path

    from memdir.daemon.agent_hint import read_notes

    notes = read_notes(Path(record.cache_dir))
    for warning in notes.warnings:
        out.note(warning)
    files = [known.path for known in notes.files]
    if files:
        named = " and ".join(os.path.basename(path) for path in files)
        out.note(f"{named} tells agents about it until it is unmounted (--no-agent-hint leaves it out)")
    return files


def change_memory_paths(record: MountRecord, paths: tuple[str, ...], out: Output) -> None:
    """Of a mount that runs already."""
    from memdir.cli.targets import control

    if not record.sync:
        raise UsageError(f"{record.name} is mounted with --no-sync", hint="unmount it and mount it again without --no-sync")
    try:
        control(record).call("memory_paths", _TIMEOUT_S, paths=list(paths))
    except MemdirError as error:
        raise UsageError(f"the memory paths were not changed: {error.message}", hint=error.hint) from error
    out.note(f"its memory paths are {said(list(paths))} from now on")


def said(paths: list[str]) -> str:
    """For people."""
    return ", ".join(paths) if paths else "none: no facts are read"
