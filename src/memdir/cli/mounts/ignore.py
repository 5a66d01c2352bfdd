"""`memdir ignore`: what of a mount stays on this machine, why, and how to change that."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from memdir.cli.command import EXIT_NOTHING, EXIT_OK, Command, Parser
from memdir.cli.output import Output
from memdir.cli.text import plural, visible
from memdir.core.ignore_rules import MEMDIR_IGNORE

if TYPE_CHECKING:
    from memdir.daemon.registry import MountRecord

EVERYTHING: Final = "!*"
"""The pattern that brings everything back that tools made."""
_TIMEOUT_S: Final = 60.0


def patterns_of(mount: Path) -> list[str]:
    """The lines of the mount's ignore file."""
    try:
        return (mount / MEMDIR_IGNORE).read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except FileNotFoundError:
        return []


def add_pattern(mount: Path, pattern: str) -> bool:
    """Whether it was not there before."""
    lines = patterns_of(mount)
    if pattern in lines:
        return False
    _write_patterns(mount, [*lines, pattern])
    return True


def _write_patterns(mount: Path, lines: Sequence[str]) -> None:
    text = "".join(f"{line}\n" for line in lines)
    (mount / MEMDIR_IGNORE).write_text(text, encoding="utf-8", errors="surrogateescape")


def _target(parser: Parser) -> None:
    parser.add_argument(
        "name", metavar="NAME", nargs="?", help="a name or a path (default: the mount around you, or the only one)"
    )


def _configure_pattern(parser: Parser) -> None:
    parser.add_argument("pattern", metavar="PATTERN", help="as in .gitignore; '!name/' brings a folder back")
    _target(parser)


def _configure_why(parser: Parser) -> None:
    parser.add_argument("path", metavar="PATH", help="a file or folder in a mount")


def _found(target: str | None) -> MountRecord:
    from memdir.cli.targets import find_mount, open_registry, require_running

    return require_running(find_mount(open_registry(), target))


def _asked(record: MountRecord, **args: Any) -> dict[str, Any]:
    from memdir.cli.targets import control

    answer: dict[str, Any] = control(record).call("ignored", _TIMEOUT_S, **args)
    return answer


def _list(args: argparse.Namespace, out: Output) -> int:
    record = _found(args.name)
    folders = _asked(record)["folders"]
    patterns = [line for line in patterns_of(Path(record.path)) if line.strip() and not line.startswith("#")]
    if out.json:
        out.document({"name": record.name, "patterns": patterns, "folders": folders})
        return EXIT_OK if folders or patterns else EXIT_NOTHING
    for pattern in patterns:
        out.line(f"{out.style(visible(pattern), 'path')}  {MEMDIR_IGNORE}")
    for row in folders:
        out.line(f"{out.style(out.name(row['path']), 'path')}  {plural(int(row['files']), 'file')}: {visible(row['reason'])}")
    files = sum(int(row["files"]) for row in folders)
    if folders:
        out.note(f"{plural(files, 'file')} that tools made stay on this machine; `memdir ignore add '!NAME/'` syncs a folder")
    return EXIT_OK if folders or patterns else EXIT_NOTHING


def _add(args: argparse.Namespace, out: Output) -> int:
    record = _found(args.name)
    changed = add_pattern(Path(record.path), args.pattern)
    _asked(record)
    if out.json:
        out.document({"name": record.name, "pattern": args.pattern, "changed": changed})
    else:
        out.line(f"{record.name}: {visible(args.pattern)} {'added' if changed else 'was there'}")
    return EXIT_OK


def _remove(args: argparse.Namespace, out: Output) -> int:
    record = _found(args.name)
    lines = patterns_of(Path(record.path))
    changed = args.pattern in lines
    if changed:
        _write_patterns(Path(record.path), [line for line in lines if line != args.pattern])
        _asked(record)
    if out.json:
        out.document({"name": record.name, "pattern": args.pattern, "changed": changed})
    else:
        out.line(f"{record.name}: {visible(args.pattern)} {'removed' if changed else 'is not there'}")
    return EXIT_OK if changed else EXIT_NOTHING


def _why(args: argparse.Namespace, out: Output) -> int:
    from memdir.cli.targets import find_mount, open_registry, path_in_mount, require_running

    registry = open_registry()
    record = require_running(find_mount(registry, args.path))
    path = path_in_mount(registry, record, args.path) or "/"
    reason = _asked(record, path=path)["reason"]
    if out.json:
        out.document({"name": record.name, "path": path, "ignored": reason is not None, "reason": reason})
    else:
        out.line(f"{out.name(path)} stays on this machine: {visible(reason)}" if reason else f"{out.name(path)} is synced")
    return EXIT_OK if reason else EXIT_NOTHING


_WHAT: Final = (
    "What tools made and can make again (.git, node_modules, Python environments, caches, target/build/dist beside their\n"
    "manifest) stays on this machine and is not searched; so does what .memdirignore names, at the root and below it."
)
LIST = Command(
    name="ignore list",
    usage="[OPTIONS] [NAME]",
    description=f"Show what of a mount stays on this machine, and how many files that are.\n{_WHAT}",
    examples=[
        ("memdir ignore list", "patterns, and folders that tools made"),
        ("memdir ignore list notes --json", "for programs"),
    ],
    exit_codes=[(0, "something stays here"), (1, "everything is synced")],
    configure=_target,
    run=_list,
)
ADD = Command(
    name="ignore add",
    usage="[OPTIONS] PATTERN [NAME]",
    description=f"Add a pattern to the mount's .memdirignore.\n{_WHAT}",
    examples=[
        ("memdir ignore add 'drafts/'", "a folder of this name is never sent"),
        ("memdir ignore add '!node_modules/' notes", "sync it all the same"),
        ("memdir ignore add '!*'", "sync whatever tools made, too, as `memdir mount --all`"),
    ],
    exit_codes=[(0, "it is there now")],
    configure=_configure_pattern,
    run=_add,
)
REMOVE = Command(
    name="ignore remove",
    usage="[OPTIONS] PATTERN [NAME]",
    description="Take a pattern out of the mount's .memdirignore.",
    examples=[("memdir ignore remove 'drafts/'", "sync them again")],
    exit_codes=[(0, "it was taken out"), (1, "it is not there")],
    configure=_configure_pattern,
    run=_remove,
)
WHY = Command(
    name="ignore why",
    usage="[OPTIONS] PATH",
    description="Say whether a path stays on this machine, and why.",
    examples=[("memdir ignore why notes/app/node_modules/left-pad/index.js", "which folder decides, and what it is")],
    exit_codes=[(0, "it stays here"), (1, "it is synced")],
    configure=_configure_why,
    run=_why,
)
