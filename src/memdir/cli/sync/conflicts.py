"""`memdir conflicts [show|resolve]`: files that two sides changed differently, and settling them."""

from __future__ import annotations

import argparse
import os
import shutil
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from memdir.cli.command import EXIT_NOTHING, EXIT_OK, Command, Parser
from memdir.cli.text import human_bytes, plural, visible
from memdir.core.errors import BusyError, NotFoundError, UsageError

if TYPE_CHECKING:
    from memdir.cli.output import Output
    from memdir.daemon.registry import MountRecord

_TIMEOUT_S: Final = 30.0
_PUSH_TIMEOUT_S: Final = 20.0
_TEXT_MAX_BYTES: Final = 1 << 20
_MERGED_MAX_BYTES: Final = 512 << 20
_COPY_PIECE_BYTES: Final = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    """A conflict, and where its two sides stand in this machine's tree."""

    record: MountRecord
    row: dict[str, Any]

    @property
    def copy(self) -> Path:
        return _place(self.record, str(self.row["copy"]))

    @property
    def original(self) -> Path:
        return _place(self.record, str(self.row["original"]))


def _place(record: MountRecord, path: str) -> Path:
    return Path(record.path + path)


def _configure(parser: Parser) -> None:
    parser.add_argument(
        "name", metavar="NAME", nargs="?", help="a name or a path (default: the mount around you, or the only one)"
    )


def _configure_show(parser: Parser) -> None:
    parser.add_argument("path", metavar="PATH", help="a conflict copy, or the file it is a copy of")


def _configure_resolve(parser: Parser) -> None:
    parser.add_argument("path", metavar="PATH", help="a conflict copy, or the file it is the only copy of")
    keep = parser.add_mutually_exclusive_group(required=True)
    keep.add_argument("--keep", choices=("original", "copy", "both"), help="which side stays; both: they are two files now")
    keep.add_argument("--merged", metavar="FILE", help="the contents of FILE become the file, and the copy goes")
    parser.add_argument(
        "--force", action="store_true", help="also while the server does not have both sides, so that it cannot be undone"
    )


def _rows(record: MountRecord) -> list[dict[str, Any]]:
    from memdir.cli.targets import control

    rows: list[dict[str, Any]] = control(record).call("conflicts", _TIMEOUT_S).get("rows") or []
    return rows


def _list(args: argparse.Namespace, out: Output) -> int:
    from memdir.cli.targets import find_mount, open_registry, require_running

    record = require_running(find_mount(open_registry(), args.name))
    rows = _rows(record)
    if out.json:
        out.document(rows)
    elif not rows:
        out.note(f"no file of {record.name} is in conflict")
    for row in [] if out.json else rows:
        found = _Found(record=record, row=row)
        who = f"{visible(str(row['when']))}  {visible(str(row['host']))}"
        out.line(f"{out.name(_shown(found.copy))}  {out.style(who, 'dim')}")
    if rows and not out.json:
        out.note(f"{plural(len(rows), 'file')} kept twice; `memdir conflicts show PATH`, then `memdir conflicts resolve PATH`")
    return EXIT_OK if rows else EXIT_NOTHING


def _shown(path: Path) -> str:
    """Relative to the current folder when it is below, as one would type it."""
    from memdir.cli.targets import current_folder

    here = Path(os.path.realpath(current_folder()))
    return str(path.relative_to(here)) if path.is_relative_to(here) else str(path)


def _find(target: str) -> list[_Found]:
    """The conflicts that a path means: the one whose copy it is, or all of the file."""
    from memdir.cli.targets import current_folder, describe_mounts, open_registry, require_running

    registry = open_registry()
    found = registry.find_by_path(Path(current_folder(), target))
    if found is None:
        raise UsageError(f"{target} is not inside a mounted memory", hint=describe_mounts(registry))
    record, path = require_running(found[0]), found[1]
    return [_Found(record=record, row=row) for row in _rows(record) if path in (row["copy"], row["original"])]


# --- show --------------------------------------------------------------------------------------------------------


def _show(args: argparse.Namespace, out: Output) -> int:
    conflicts = _find(args.path)
    shown = [one.row | {"diff": _difference(one)} for one in conflicts]
    if out.json:
        out.document(shown)
    elif not shown:
        out.note(f"{args.path} is not in conflict; `memdir conflicts` lists what is")
    for row in [] if out.json else shown:
        for line in row["diff"]:
            kind = {"+": "ok", "-": "fail", "@": "dim"}.get(line[:1])
            text = visible(line, keep_raw_bytes=not out.is_terminal)
            out.line(out.style(text, kind) if kind else text)
    return EXIT_OK if shown else EXIT_NOTHING


def _difference(one: _Found) -> list[str]:
    """Lines of a unified diff from the original to the copy; one line that says what they are where that cannot be."""
    from memdir.sync.conflicts.text_diff import unified

    sides = [_text(one.original), _text(one.copy)]
    labels = [_shown(one.original), _shown(one.copy)]
    if any(isinstance(side, str) for side in sides):
        return [f"{label}: {side if isinstance(side, str) else 'text'}" for label, side in zip(labels, sides, strict=True)]
    before, after = (side for side in sides if isinstance(side, list))
    return unified(before, after, labels[0], labels[1])


def _text(place: Path) -> list[str] | str:
    """The lines of a text, or in words what it is."""
    from memdir.sync.conflicts.text_diff import lines_of

    try:
        status = place.lstat()
    except FileNotFoundError:
        return "not there"
    if stat.S_ISDIR(status.st_mode):
        return "a folder"
    if stat.S_ISLNK(status.st_mode):
        return f"a link to {os.readlink(place)}"
    if status.st_size > _TEXT_MAX_BYTES:
        return f"{human_bytes(status.st_size)}, too long to be compared line by line"
    content = place.read_bytes()
    try:
        if b"\0" not in content:
            return [line.decode("utf-8") for line in lines_of(content)]
    except UnicodeDecodeError:
        pass
    return f"{human_bytes(status.st_size)}, no text"


# --- resolve -----------------------------------------------------------------------------------------------------


def _resolve(args: argparse.Namespace, out: Output) -> int:
    conflicts = _find(args.path)
    if not conflicts:
        raise NotFoundError(f"{args.path} is not in conflict", hint="`memdir conflicts` lists what is")
    if len(conflicts) > 1:
        copies = ", ".join(_shown(one.copy) for one in conflicts)
        raise UsageError(f"{args.path} has {len(conflicts)} copies: {copies}", hint="give the copy that is to be settled")
    one = conflicts[0]
    kept = "merged" if args.merged is not None else str(args.keep)
    if kept != "both" and not args.force:
        _require_pushed(one)
    if kept == "both":
        _keep_both(one)
    elif kept == "copy":
        _require_same_kind(one)
        os.replace(one.copy, one.original)
    else:
        if kept == "merged":
            _put_merged(Path(args.merged), one)
        _remove(one.copy)
    if out.json:
        out.document({"copy": one.row["copy"], "original": one.row["original"], "kept": kept})
    else:
        words = {
            "original": "the copy is gone",
            "copy": "it has the contents of the copy now",
            "merged": f"it has the contents of {visible(str(args.merged))} now, and the copy is gone",
            "both": f"{visible(_shown(one.copy))} is a file of its own now",
        }
        out.line(f"{out.name(_shown(one.original))}: {words[kept]}")
    return EXIT_OK


def _require_pushed(one: _Found) -> None:
    """What goes has to be a version at the server, so that it can come back."""
    from memdir.cli.targets import control

    sides = [str(one.row["copy"]), str(one.row["original"])]
    answer = control(one.record).call("push", _PUSH_TIMEOUT_S + _TIMEOUT_S, paths=sides, timeout_s=_PUSH_TIMEOUT_S)
    missing = [path for path in sides if path not in (answer.get("pushed") or [])]
    if missing:
        raise BusyError(
            f"the server does not have {' and '.join(missing)} yet, so this could not be undone",
            hint="`memdir queue` says why; --force settles it all the same",
        )


def _require_same_kind(one: _Found) -> None:
    if not one.original.is_symlink() and one.original.is_dir() != (one.copy.is_dir() and not one.copy.is_symlink()):
        raise UsageError(
            f"{one.original} and its copy are a folder and a file",
            hint="move or remove them as you like: a copy with another name is settled",
        )
    if one.original.is_dir() and not one.original.is_symlink():
        raise UsageError(f"{one.original} is a folder", hint="move what you want from one to the other, then --keep original")


def _put_merged(file: Path, one: _Found) -> None:
    """Write FILE's contents to the original in one step; its mode stays."""
    try:
        content = file.read_bytes() if file.stat().st_size <= _MERGED_MAX_BYTES else None
    except FileNotFoundError:
        raise NotFoundError(f"there is no file {file}") from None
    if content is None:
        raise UsageError(f"{file} is larger than {human_bytes(_MERGED_MAX_BYTES)}", hint="a memory does not sync such files")
    if os.path.abspath(file) == str(one.original):
        return  # it was merged in its place
    mode = stat.S_IMODE(one.original.stat().st_mode) if one.original.exists() else 0o644
    if one.original.is_dir():
        raise UsageError(f"{one.original} is a folder", hint="--merged takes the place of a file")
    beside = one.original.with_name(f".{os.getpid()}.memdir-merged.swp")  # a name that stays on this machine
    try:
        with open(beside, "xb") as handle:
            for offset in range(0, len(content), _COPY_PIECE_BYTES):
                handle.write(content[offset : offset + _COPY_PIECE_BYTES])
        os.chmod(beside, mode)
        os.replace(beside, one.original)
    finally:
        beside.unlink(missing_ok=True)


def _remove(place: Path) -> None:
    if place.is_dir() and not place.is_symlink():
        shutil.rmtree(place)
    else:
        place.unlink(missing_ok=True)


def _keep_both(one: _Found) -> None:
    from memdir.cli.targets import control

    if not control(one.record).call("keep_both", _TIMEOUT_S, path=one.row["copy"]).get("settled"):
        raise NotFoundError(f"{one.row['copy']} is not in conflict any more")


LIST = Command(
    name="conflicts",
    usage="[OPTIONS] [NAME]",
    description=(
        "List the files that two sides changed differently: the server's version keeps its name, the other stands beside it\n"
        "as `name (conflict DATE HOST)`, whichever machine made it. A copy that is renamed or deleted is settled."
    ),
    examples=[("memdir conflicts", "copies, when and where they were made"), ("memdir conflicts notes --json", "for programs")],
    exit_codes=[(0, "there are conflicts"), (1, "there are none")],
    configure=_configure,
    run=_list,
)

SHOW = Command(
    name="conflicts show",
    usage="[OPTIONS] PATH",
    description="Show how a conflict copy differs from the file it is a copy of, line by line (unified diff).",
    examples=[
        ("memdir conflicts show notes/plan.md", "all copies of a file"),
        ("memdir conflicts show 'notes/plan (conflict 2026-11-21 laptop).md'", "one copy"),
    ],
    exit_codes=[(0, "it is in conflict"), (1, "it is not")],
    configure=_configure_show,
    run=_show,
)

RESOLVE = Command(
    name="conflicts resolve",
    usage="[OPTIONS] PATH --keep original|copy|both | --merged FILE",
    description=(
        "Settle a conflict: keep one side, both, or what you made of them. It is done with files as you would do it, so\n"
        "`memdir versions PATH` has what went. With --keep both the copy is not listed any more on this machine; a copy that\n"
        "gets a name of its own is settled everywhere."
    ),
    examples=[
        ("memdir conflicts resolve notes/plan.md --keep original", "the copy goes"),
        ("memdir conflicts resolve notes/plan.md --keep copy", "it takes the file's place"),
        ("memdir conflicts resolve notes/plan.md --merged /tmp/plan.md", "after merging by hand"),
    ],
    exit_codes=[(0, "it is settled")],
    configure=_configure_resolve,
    run=_resolve,
)
