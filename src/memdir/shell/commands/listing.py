"""Commands that show what stands in folders: ls, tree, stat."""

from __future__ import annotations

import fnmatch
import posixpath
import re
import stat
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from memdir.core.errors import UsageError
from memdir.fs.errors import FsError
from memdir.fs.types import Inode
from memdir.shell.commands.call import Call, joined
from memdir.shell.commands.dates import formatted, full_time, zone
from memdir.shell.commands.options import parsed

_HALF_YEAR_S: Final = 15_778_476
"""Older (or future) times are shown with their year, as GNU ls does."""
_BLOCK_BYTES: Final = 4096
"""A folder's size, and the unit that files take on a disk, as on most of them."""
_WIDTH: Final = 80
_SPACING: Final = 2
_KIND_NAMES: Final = {
    stat.S_IFDIR: "directory", stat.S_IFLNK: "symbolic link", stat.S_IFIFO: "fifo", stat.S_IFSOCK: "socket",
    stat.S_IFCHR: "character special file", stat.S_IFBLK: "block special file",
}  # fmt: skip

_LS_LONG: Final = {
    "all": "a", "almost-all": "A", "directory": "d", "reverse": "r", "recursive": "R", "classify?": "F",
    "indicator-style=": "indicator", "human-readable": "h", "ignore=": "I", "ignore-backups": "B", "quote-name": "Q",
    "color?": "-", "group-directories-first": "dirs", "time-style=": "style", "full-time": "full", "sort=": "sort",
    "inode": "i", "size": "s", "dereference": "L", "numeric-uid-gid": "n", "no-group": "G", "si": "h", "format=": "format",
    "width=": "-", "time=": "-", "hide=": "I", "literal": "N", "escape": "-",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Item:
    """One name to show; `path` leads to it."""

    name: str
    path: str
    stat: Inode


def ls(call: Call) -> None:
    """ls [OPTION]... [PATH]..."""
    found, operands = parsed(call.args, "aAdrRpF1lhSUtXvQBCxmnogGicuskLHNbqfT", "Iw", _LS_LONG)
    options = dict(found)
    ignored = [value for name, value in found if name == "I"]
    if "f" in options:
        options |= {"a": "", "U": ""}
    if {"n", "o", "g", "full"} & options.keys():
        options["l"] = ""
    listing = _Listing(call, options, ignored)
    files: list[_Item] = []
    folders: list[_Item] = []
    for path in operands or ["."]:
        try:
            follows = "L" in options or ("l" not in options and "d" not in options and "F" not in options)
            attributes = call.space.stat(path) if follows and call.space.exists(path) else call.space.lstat(path)
        except FsError as error:
            call.fail(f"cannot access '{path}': {error.message}", 2)
            continue
        goes_in = attributes.is_dir and "d" not in options
        (folders if goes_in else files).append(_Item(path, path, attributes))
    listing.show(listing.ordered(files))
    headed = len(operands) > 1 or "R" in options
    for number, folder in enumerate(listing.ordered(folders)):
        listing.folder(folder.path, head=headed, gap=bool(files) or number > 0)


class _Listing:
    """The options of one `ls`, and what is shown by them."""

    def __init__(self, call: Call, options: dict[str, str], ignored: Sequence[str]) -> None:
        self._call = call
        self._options = options
        self._ignored = ignored
        self._zone = zone(call.env)

    def folder(self, path: str, *, head: bool, gap: bool) -> None:
        """One folder, and with -R those below it."""
        call, options = self._call, self._options
        if gap:
            call.say("")
        if head:
            call.say(f"{self._quoted(path) if 'Q' in options else path}:")
        try:
            items = [_Item(name, joined(path, name), call.space.lstat(joined(path, name))) for name in call.space.names(path)]
        except FsError as error:
            call.fail(f"cannot open directory '{path}': {error.message}", 2)
            return
        shown = self.ordered([item for item in items if self._is_shown(item.name)])
        dots = []
        if "a" in options:
            above = posixpath.dirname(call.space.resolved(path))
            dots = [_Item(".", path, call.space.stat(path)), _Item("..", above, call.space.stat(above))]
            shown = dots + shown if "r" not in options else shown + dots[::-1]
        if {"l", "s"} & options.keys():
            call.say(f"total {sum(_blocks(item.stat) for item in shown)}")
        self.show(shown)
        if "R" in options:
            for item in shown:
                if item.stat.is_dir and item.name not in (".", ".."):
                    self.folder(item.path, head=True, gap=True)

    def _is_shown(self, name: str) -> bool:
        if name.startswith(".") and not {"a", "A"} & self._options.keys():
            return False
        if "B" in self._options and name.endswith("~"):
            return False
        return not any(fnmatch.fnmatchcase(name, pattern) for pattern in self._ignored)

    def ordered(self, items: list[_Item]) -> list[_Item]:
        """In the order that was asked for."""
        options = self._options
        how = options.get("sort", "")
        by: Callable[[_Item], Any] = lambda item: item.name  # noqa: E731
        if "U" in options or how == "none":
            return items
        if "S" in options or how == "size":
            by = lambda item: (-_size(item.stat), item.name)  # noqa: E731
        elif "t" in options or how == "time":
            by = lambda item: (-item.stat.mtime_ns, item.name)  # noqa: E731
        elif "X" in options or how == "extension":
            by = lambda item: (posixpath.splitext(item.name)[1], item.name)  # noqa: E731
        elif "v" in options or how == "version":
            by = lambda item: [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", item.name)]  # noqa: E731
        found = sorted(items, key=by, reverse="r" in options)
        if "dirs" in options:
            found.sort(key=lambda item: not item.stat.is_dir)
        return found

    def show(self, items: list[_Item]) -> None:
        """Their lines."""
        options = self._options
        names = [self._named(item) for item in items]
        if "l" in options:
            self._long(items, names)
        elif "m" in options or options.get("format", "").startswith("comma"):
            self._commas(names)
        elif "x" in options or options.get("format") in ("across", "horizontal"):
            self._columns(names, across=True)
        elif "C" in options or options.get("format") in ("vertical",):
            self._columns(names, across=False)
        else:
            for name in names:
                self._call.say(name)

    def _named(self, item: _Item) -> str:
        options, name = self._options, item.name
        if "Q" in options:
            name = self._quoted(name)
        if "F" in options or options.get("indicator") == "classify":
            name += "/" if item.stat.is_dir else "@" if item.stat.is_symlink and "l" not in options else (
                "*" if item.stat.is_file and item.stat.mode & 0o111 else "|" if stat.S_ISFIFO(item.stat.mode) else ""
            )  # fmt: skip
        elif ("p" in options or options.get("indicator") == "slash") and item.stat.is_dir:
            name += "/"
        if "s" in options:
            name = f"{_blocks(item.stat)} {name}"
        return f"{item.stat.ino} {name}" if "i" in options else name

    @staticmethod
    def _quoted(name: str) -> str:
        return '"' + name.replace("\\", "\\\\").replace('"', '\\"') + '"'

    def _long(self, items: list[_Item], names: list[str]) -> None:
        options, call = self._options, self._call
        user = call.env.get("USER", "user")
        rows = []
        for item, name in zip(items, names, strict=True):
            owners = [] if "g" in options else [str(item.stat.uid) if "n" in options else user]
            owners += [] if {"o", "G"} & options.keys() else [str(item.stat.gid) if "n" in options else user]
            size = _size(item.stat)
            to = f" -> {call.space.readlink(item.path)}" if item.stat.is_symlink else ""
            rows.append([
                stat.filemode(item.stat.mode), str(item.stat.nlink), *owners, human(size) if "h" in options else str(size),
                self._time(item.stat.mtime_ns), name + to,
            ])  # fmt: skip
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        last = len(widths) - 1
        for row in rows:
            cells = [
                cell if column in (0, last) else cell.ljust(width) if 2 <= column < last - 2 else cell.rjust(width)
                for column, (cell, width) in enumerate(zip(row, widths, strict=True))
            ]
            call.say(" ".join(cells))

    def _time(self, mtime_ns: int) -> str:
        style = "full-iso" if "full" in self._options else self._options.get("style", "")
        if style == "full-iso":
            return full_time(mtime_ns, self._zone)
        moment = datetime.fromtimestamp(mtime_ns / 1e9, self._zone)
        if style == "long-iso":
            return formatted(moment, "%Y-%m-%d %H:%M")
        if style.startswith("+"):
            return formatted(moment, style[1:])
        is_recent = 0 <= time.time() - mtime_ns / 1e9 < _HALF_YEAR_S
        return formatted(moment, "%b %e %H:%M" if is_recent else "%b %e  %Y")

    def _commas(self, names: list[str]) -> None:
        line = ""
        for number, name in enumerate(names):
            piece = name + ("," if number < len(names) - 1 else "")
            if line and len(line) + 1 + len(piece) >= _WIDTH:
                self._call.say(line)
                line = ""
            line += (" " if line else "") + piece
        if line:
            self._call.say(line)

    def _columns(self, names: list[str], *, across: bool) -> None:
        for count in range(min(len(names), _WIDTH // 3), 0, -1):
            rows = -(-len(names) // count)
            grid = [names[row * count : (row + 1) * count] if across else names[row::rows] for row in range(rows)]
            columns = max((len(row) for row in grid), default=0)
            widths = [max(len(row[column]) for row in grid if column < len(row)) + _SPACING for column in range(columns)]
            if sum(widths) - _SPACING < _WIDTH or count == 1:
                for row in grid:
                    cells = [name.ljust(widths[column]) for column, name in enumerate(row[:-1])]
                    self._call.say("".join(cells) + row[-1])
                return


def tree(call: Call) -> None:
    """tree [-adfiLIPs] [FOLDER]..."""
    long = {"noreport": "noreport", "dirsfirst": "dirs", "filelimit=": "-", "prune": "prune"}
    found, operands = parsed(call.args, "adfisDhpl", "LIP", long)
    options = dict(found)
    drawing = _Tree(call, options)
    for folder in operands or ["."]:
        if not call.space.is_dir(folder):
            call.say(f"{folder}  [error opening dir]")
            call.status = 2
            continue
        drawing.folders += 1
        call.say(drawing.sized(folder) + folder)
        drawing.below(folder, "", 1)
    if "noreport" not in options:
        folders = f"{drawing.folders} director{'y' if drawing.folders == 1 else 'ies'}"
        files = "" if "d" in options else f", {drawing.files} file{'' if drawing.files == 1 else 's'}"
        call.say(f"\n{folders}{files}")


class _Tree:
    """Draws, and counts."""

    def __init__(self, call: Call, options: dict[str, str]) -> None:
        self._call = call
        self._options = options
        self.folders = 0
        self.files = 0
        try:
            self._depth = int(options.get("L", "1000"))
        except ValueError:
            raise UsageError("Invalid level, must be greater than 0.") from None

    def below(self, folder: str, margin: str, depth: int) -> None:
        if depth > self._depth:
            return
        space, options = self._call.space, self._options
        items = [(name, space.lstat(joined(folder, name))) for name in space.names(folder)]
        shown = [(name, found) for name, found in items if self._is_shown(name, found)]
        if "dirs" in options:
            shown.sort(key=lambda item: not item[1].is_dir)
        for number, (name, found) in enumerate(shown):
            is_last = number == len(shown) - 1
            path = joined(folder, name)
            branch = "" if "i" in options else margin + ("└── " if is_last else "├── ")
            label = path if "f" in options else name
            label += f" -> {space.readlink(path)}" if found.is_symlink else ""
            self._call.say(branch + self.sized(path) + label)
            self.folders += found.is_dir
            self.files += not found.is_dir
            if found.is_dir:
                self.below(path, margin + ("    " if is_last else "│\xa0\xa0 "), depth + 1)

    def sized(self, path: str) -> str:
        if not {"s", "h"} & self._options.keys():
            return ""
        size = _size(self._call.space.lstat(path))
        return f"[{human(size):>4}]  " if "h" in self._options else f"[{size:>11}]  "

    def _is_shown(self, name: str, found: Inode) -> bool:
        options = self._options
        if (name.startswith(".") and "a" not in options) or ("d" in options and not found.is_dir):
            return False
        if "I" in options and any(fnmatch.fnmatchcase(name, pattern) for pattern in options["I"].split("|")):
            return False
        return found.is_dir or "P" not in options or any(fnmatch.fnmatchcase(name, one) for one in options["P"].split("|"))


def stat_command(call: Call) -> None:
    """stat [-L] [-c FORMAT | --printf=FORMAT] FILE..."""
    long = {"format=": "c", "printf=": "printf", "dereference": "L", "terse": "t", "file-system": "f"}
    found, operands = parsed(call.args, "Lt", "c", long)
    options = dict(found)
    if not operands:
        raise UsageError("missing operand")
    for path in operands:
        try:
            attributes = call.space.stat(path) if "L" in options else call.space.lstat(path)
        except FsError as error:
            call.fail(f"cannot statx '{path}': {error.message}")
            continue
        fields = _Fields(call, path, attributes)
        if "printf" in options:
            call.say(fields.filled(_unescaped(options["printf"])), end="")
        elif "c" in options:
            call.say(fields.filled(options["c"]))
        elif "t" in options:
            call.say(fields.filled("%n %s %b %f %u %g 0 %i %h 0 0 %X %Y %Z 0 4096"))
        else:
            call.say(fields.filled(_WHOLE))


def realpath(call: Call) -> None:
    """realpath [-e | -m] [-s] [-q] [-z] [--relative-to=FOLDER] PATH..."""
    long = {
        "canonicalize-existing": "e", "canonicalize-missing": "m", "strip": "s", "no-symlinks": "s", "quiet": "q", "zero": "z",
        "relative-to=": "to", "relative-base=": "-", "logical": "L", "physical": "P",
    }  # fmt: skip
    found, operands = parsed(call.args, "emsqzLP", "", long)
    options = dict(found)
    if not operands:
        raise UsageError("missing operand")
    for path in operands:
        try:
            place = call.space.absolute(path) if "s" in options else call.space.resolved(path)
            if "e" in options or "m" not in options:
                call.space.stat(path if "e" in options else posixpath.dirname(place))
        except FsError as error:
            if "q" not in options:
                call.fail(f"{path}: {error.message}")
            call.status = 1
            continue
        if "to" in options:
            place = posixpath.relpath(place, call.space.resolved(options["to"]))
        call.say(place, end="\0" if "z" in options else "\n")


_WHOLE: Final = (
    "  File: %N\n  Size: %s      \tBlocks: %b          IO Block: 4096   %F\nDevice: 0,0\tInode: %i  Links: %h\n"
    "Access: (%a/%A)  Uid: (%u/%U)   Gid: (%g/%G)\nAccess: %x\nModify: %y\nChange: %z\n Birth: -"
)


class _Fields:
    """What the directives of `stat -c` say of one file."""

    def __init__(self, call: Call, path: str, attributes: Inode) -> None:
        self._path = path
        self._stat = attributes
        self._zone = zone(call.env)
        self._user = call.env.get("USER", "user")
        self._target = call.space.readlink(path) if attributes.is_symlink else None

    def filled(self, pattern: str) -> str:
        return re.sub(r"%[-#+0]*\d*([a-zA-Z%])", lambda match: self._one(match.group(1), match.group(0)), pattern)

    def _one(self, letter: str, whole: str) -> str:
        found = self._stat
        quoted = f"'{self._path}'" if self._path.isascii() else self._path
        values: dict[str, str] = {
            "a": f"{stat.S_IMODE(found.mode):o}", "A": stat.filemode(found.mode), "b": str(_blocks(found) * 2), "B": "512",
            "f": f"{found.mode:x}", "F": self._kind(), "g": str(found.gid), "G": self._user, "h": str(found.nlink),
            "i": str(found.ino), "n": self._path, "o": "4096", "s": str(_size(found)), "u": str(found.uid), "U": self._user,
            "N": quoted if self._target is None else f"{quoted} -> '{self._target}'", "d": "0", "m": "/", "%": "%", "w": "-",
            "W": "0", "t": "0", "T": "0",
        }  # fmt: skip
        times = {"x": found.atime_ns, "y": found.mtime_ns, "z": found.ctime_ns}
        if letter.lower() in times:
            when = times[letter.lower()]
            if letter.isupper():
                return str(when // 1_000_000_000)
            return full_time(when, self._zone)
        return values.get(letter, whole)

    def _kind(self) -> str:
        if self._stat.is_file:
            return "regular file" if self._stat.size else "regular empty file"
        return _KIND_NAMES.get(stat.S_IFMT(self._stat.mode), "weird file")


def _unescaped(text: str) -> str:
    return re.sub(r"\\([nt\\0])", lambda match: {"n": "\n", "t": "\t", "\\": "\\", "0": "\0"}[match.group(1)], text)


def _size(found: Inode) -> int:
    return _BLOCK_BYTES if found.is_dir else found.size


def _blocks(found: Inode) -> int:
    """In KiB, as on a disk of whole blocks."""
    if found.is_symlink:
        return 0
    return -(-_size(found) // _BLOCK_BYTES) * (_BLOCK_BYTES // 1024)


def human(size: int) -> str:
    """`1.5K`, rounded up as GNU does."""
    if size < 1024:
        return str(size)
    power = min((size.bit_length() - 1) // 10, 6)
    value, unit = size / 1024**power, " KMGTPE"[power]
    if value < 10:
        up = -(-int(value * 1000) // 100) / 10 if value * 10 != int(value * 10) else value
        return f"{up:.1f}{unit}" if up < 10 else f"10{unit}"
    return f"{-int(-value // 1)}{unit}"
