"""Commands that change what stands in folders: cp, mv, rm, mkdir, touch, ln."""

from __future__ import annotations

import errno
import posixpath
import re
import secrets
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, tzinfo
from functools import partial
from typing import Final

from memdir.core.errors import UsageError
from memdir.fs.errors import FsError
from memdir.shell.commands.call import Call, base, joined
from memdir.shell.commands.dates import parsed_date, zone
from memdir.shell.commands.options import parsed

_PLACING: Final = {
    "target-directory=": "t", "no-target-directory": "T", "verbose": "v", "force": "f", "interactive": "i", "no-clobber": "n",
    "update": "u", "backup?": "b",
}  # fmt: skip
_MODE: Final = re.compile(r"([ugoa]*)([-+=])([rwxXst]*)")
_NS: Final = 1_000_000_000


def cp(call: Call) -> None:
    """cp [OPTION]... SOURCE... TARGET"""
    long = _PLACING | {
        "recursive": "r", "archive": "a", "preserve?": "p", "parents": "parents", "link": "l", "symbolic-link": "s",
        "no-dereference": "P", "dereference": "L", "no-preserve=": "-", "reflink?": "-", "sparse=": "-", "one-file-system": "-",
    }  # fmt: skip
    found, operands = parsed(call.args, "rRapfinuvTbdlsPLHx", "tS", long)
    options = dict(found)
    options |= {"r": "", "p": "", "P": ""} if "a" in options else {}
    for source, target in _pairs(call, options, operands):
        with _told(call, "copy", source, target):
            _copy(call, source, target, options, top=True)


def mv(call: Call) -> None:
    """mv [OPTION]... SOURCE... TARGET"""
    found, operands = parsed(call.args, "finuvTb", "tS", _PLACING)
    options = dict(found)
    for source, target in _pairs(call, options, operands):
        with _told(call, "move", source, target):
            _move(call, source, target, options)


def rm(call: Call) -> None:
    """rm [OPTION]... FILE..."""
    long = {"recursive": "r", "force": "f", "dir": "d", "verbose": "v", "interactive?": "-", "preserve-root?": "-"}
    found, operands = parsed(call.args, "rRfdvIi", "", long)
    options = dict(found)
    if not operands and "f" not in options:
        raise UsageError("missing operand")
    for path in operands:
        if base(path) in (".", ".."):
            call.fail(f"refusing to remove '.' or '..' directory: skipping '{path}'")
            continue
        try:
            _remove(call, path, options)
        except FsError as error:
            if "f" not in options or error.errno not in (errno.ENOENT, errno.ENOTDIR):
                call.fail(f"cannot remove '{path}': {error.message}")


def mkdir(call: Call) -> None:
    """mkdir [-p] [-m MODE] [-v] FOLDER..."""
    found, operands = parsed(call.args, "pv", "m", {"parents": "p", "verbose": "v", "mode=": "m"})
    options = dict(found)
    if not operands:
        raise UsageError("missing operand")
    for path in operands:
        try:
            if "p" in options and not {"v", "m"} & options.keys():
                call.space.mkdir(path, parents=True)
                continue
            parts = path.rstrip("/").split("/")
            above = ["/".join(parts[:count]) for count in range(1, len(parts))] if "p" in options else []
            for folder in (*(one for one in above if one), path):
                if "p" in options and call.space.is_dir(folder):
                    continue
                call.space.mkdir(folder)
                if "v" in options:
                    call.say(f"mkdir: created directory '{folder}'")
            if "m" in options:
                call.space.chmod(path, mode_of(options["m"], 0o777, is_dir=True))
        except FsError as error:
            call.fail(f"cannot create directory '{path}': {error.message}")


def touch(call: Call) -> None:
    """touch [-acm] [-d TEXT | -t STAMP | -r FILE] FILE..."""
    long = {"date=": "d", "reference=": "r", "no-create": "c", "time=": "-", "no-dereference": "h"}
    found, operands = parsed(call.args, "acmfh", "dtr", long)
    options = dict(found)
    if not operands:
        raise UsageError("missing file operand")
    atime_ns, mtime_ns = _times(call, options)
    for path in operands:
        try:
            if not call.space.exists(path):
                if "c" in options:
                    continue
                call.space.write(path, b"")
                if not {"d", "t", "r"} & options.keys():
                    continue
            call.space.set_times(
                path, atime_ns=None if "m" in options else atime_ns, mtime_ns=None if "a" in options else mtime_ns
            )
        except FsError as error:
            if error.errno != errno.EPERM or {"d", "t", "r"} & options.keys():  # outside the memory files have no times
                call.fail(f"cannot touch '{path}': {error.message}")


def ln(call: Call) -> None:
    """ln [-s] [-f] [-n] [-r] [-v] TARGET... NAME"""
    long = _PLACING | {"symbolic": "s", "relative": "r", "no-dereference": "n", "logical": "L", "physical": "P"}
    found, operands = parsed(call.args, "sfnrvTbiLP", "tS", long)
    options = dict(found)
    if len(operands) == 1 and "t" not in options:
        operands.append(".")
    into = "n" not in options or not call.space.is_there(operands[-1]) or not call.space.lstat(operands[-1]).is_symlink
    for source, name in _pairs(call, options | ({} if into else {"T": ""}), operands, check=False):
        try:
            target = source
            if "s" in options and "r" in options:
                target = posixpath.relpath(call.space.absolute(source), posixpath.dirname(call.space.absolute(name)))
            make = partial(call.space.symlink if "s" in options else call.space.link, target)
            if "f" not in options:
                make(name)
            elif _same(call, source, name):
                call.fail(f"'{source}' and '{name}' are the same file")
                continue
            else:
                _put_link(call, make, name)
            if "v" in options:
                call.say(f"'{name}' {'->' if 's' in options else '=>'} '{target}'")
        except FsError as error:
            kind = "symbolic" if "s" in options else "hard"
            call.fail(f"failed to create {kind} link '{name}': {error.message}")


def mode_of(text: str, before: int, *, is_dir: bool) -> int:
    """The mode that `755` or `u+x,go-w` makes of `before`."""
    if re.fullmatch(r"[0-7]{1,4}", text):
        return int(text, 8)
    mode = before
    for clause in text.split(","):
        match = _MODE.fullmatch(clause)
        if match is None:
            raise UsageError(f"invalid mode '{text}'")
        who, operator, letters = match.groups()
        bits = 0
        for letter in letters:
            one = {"r": 0o444, "w": 0o222, "x": 0o111, "X": 0o111 if is_dir or before & 0o111 else 0}.get(letter, 0)
            bits |= one
        mask = 0o777 if not who or "a" in who else sum({"u": 0o700, "g": 0o070, "o": 0o007}[one] for one in set(who))
        bits &= mask
        mode = mode | bits if operator == "+" else mode & ~bits if operator == "-" else (mode & ~mask) | bits
    return mode


# --- inside ------------------------------------------------------------------------------------------------------


def _pairs(call: Call, options: dict[str, str], operands: list[str], *, check: bool = True) -> list[tuple[str, str]]:
    """What goes where."""
    if not operands:
        raise UsageError("missing file operand")
    if "t" in options:
        folder, sources = options["t"], operands
    elif len(operands) == 1:
        raise UsageError(f"missing destination file operand after '{operands[0]}'")
    else:
        *sources, folder = operands
        if "T" in options or not call.space.is_dir(folder):
            if len(sources) > 1:
                raise UsageError(f"target '{folder}' is not a directory" if "T" not in options else "extra operand")
            return [(sources[0], folder)]
    if not call.space.is_dir(folder):
        raise UsageError(f"target directory '{folder}': No such file or directory")
    if "parents" in options:
        _make_parents(call, sources, folder)
        return [(source, joined(folder, source.strip("/"))) for source in sources]
    named = [(source, folder if base(source) in (".", "..") else joined(folder, base(source))) for source in sources]
    seen: set[str] = set()
    kept = []
    for source, target in named:
        if check and target in seen:
            call.fail(f"will not overwrite just-created '{target}' with '{source}'")
            continue
        seen.add(target)
        kept.append((source, target))
    return kept


def _make_parents(call: Call, sources: list[str], folder: str) -> None:
    for source in sources:
        at = folder
        for part in posixpath.dirname(source.strip("/")).split("/"):
            at = joined(at, part) if part else at
            if not call.space.is_dir(at):
                call.space.mkdir(at)


@contextmanager
def _told(call: Call, verb: str, source: str, target: str) -> Iterator[None]:
    """What goes wrong with one file is said, and the others are gone on with."""
    try:
        yield
    except FsError as error:
        if error.errno == errno.ENOENT and not call.space.is_there(source):
            call.fail(f"cannot stat '{source}': {error.message}")
        else:
            call.fail(f"cannot {verb} '{source}' to '{target}': {error.message}")


def _may_replace(call: Call, source: str, target: str, options: dict[str, str]) -> bool:
    """Whether `target` may be written over; keeps a copy of it with -b."""
    if not call.space.is_there(target):
        return True
    if "n" in options:
        return False
    if "i" in options:  # nobody is there to say yes
        call.fail(f"overwrite '{target}'? not overwritten")
        return False
    if "u" in options and call.space.lstat(source).mtime_ns <= call.space.lstat(target).mtime_ns:
        return False
    if "b" in options and not call.space.is_dir(target):
        call.space.rename(target, f"{target}~")
    return True


def _same(call: Call, source: str, target: str) -> bool:
    if not call.space.is_there(target):
        return False
    return call.space.resolved(source, last=False) == call.space.resolved(target, last=False)


def _put_link(call: Call, make: Callable[[str], None], name: str) -> None:
    """A link at `name`, which `make` makes; what stands there stays until it can be replaced."""
    space = call.space
    if not space.is_there(name):
        make(name)
        return
    beside = joined(posixpath.dirname(name) or ".", f".link-{secrets.token_hex(8)}")
    make(beside)
    try:
        space.rename(beside, name)
    finally:
        if space.is_there(beside):  # it failed, or both were one file already: rename(2) does nothing then
            space.remove(beside)


def _copy(call: Call, source: str, target: str, options: dict[str, str], *, top: bool = False) -> None:
    space = call.space
    keeps_links = {"P", "d"} & options.keys() or ({"r", "R"} & options.keys() and not top and "L" not in options)
    attributes = space.lstat(source) if keeps_links else space.stat(source)
    if attributes.is_dir:
        _copy_folder(call, source, target, options)
        return
    if _same(call, source, target):
        call.fail(f"'{source}' and '{target}' are the same file")
        return
    if space.is_dir(target):
        call.fail(f"cannot overwrite directory '{target}' with non-directory '{source}'")
        return
    if not _may_replace(call, source, target, options):
        return
    if attributes.is_symlink or "s" in options or "l" in options:
        if "l" in options and not attributes.is_symlink:
            make = partial(space.link, source)
        else:
            make = partial(space.symlink, space.readlink(source) if attributes.is_symlink else source)
        _put_link(call, make, target)
    else:
        is_new = not space.exists(target)
        space.write(target, space.read(source))
        if is_new or "p" in options:
            space.chmod(target, stat.S_IMODE(attributes.mode))
        if "p" in options:
            space.set_times(target, atime_ns=attributes.atime_ns, mtime_ns=attributes.mtime_ns)
    if "v" in options:
        call.say(f"'{source}' -> '{target}'")


def _copy_folder(call: Call, source: str, target: str, options: dict[str, str]) -> None:
    space = call.space
    if not {"r", "R"} & options.keys():
        call.fail(f"-r not specified; omitting directory '{source}'")
        return
    inside = space.resolved(target) + "/"
    if inside.startswith(space.resolved(source).rstrip("/") + "/") and space.resolved(source) != space.resolved(target):
        call.fail(f"cannot copy a directory, '{source}', into itself, '{target}'")
        return
    if not space.is_there(target):
        space.mkdir(target)
        if "v" in options:
            call.say(f"'{source}' -> '{target}'")
    elif not space.is_dir(target):
        call.fail(f"cannot overwrite non-directory '{target}' with directory '{source}'")
        return
    for name in space.names(source):
        below, there = joined(source, name), joined(target, name)
        with _told(call, "copy", below, there):
            _copy(call, below, there, options)


def _move(call: Call, source: str, target: str, options: dict[str, str]) -> None:
    space = call.space
    attributes = space.lstat(source)
    if _same(call, source, target):
        call.fail(f"'{source}' and '{target}' are the same file")
        return
    if attributes.is_dir and (space.resolved(target) + "/").startswith(space.resolved(source) + "/"):
        call.fail(f"cannot move '{source}' to a subdirectory of itself, '{target}'")
        return
    if space.is_dir(target) and not attributes.is_dir:
        call.fail(f"cannot overwrite directory '{target}' with non-directory '{source}'")
        return
    if not _may_replace(call, source, target, options):
        return
    try:
        space.rename(source, target)
    except FsError as error:
        if error.errno != errno.EXDEV:
            raise
        before = len(call.err)  # the status may tell of an earlier operand
        _copy(call, source, target, {"r": "", "P": ""})
        if len(call.err) == before:
            _remove(call, source, {"r": "", "f": ""})
    if "v" in options:
        call.say(f"renamed '{source}' -> '{target}'")


def _remove(call: Call, path: str, options: dict[str, str]) -> None:
    attributes = call.space.lstat(path)
    if attributes.is_dir:
        if not {"r", "R", "d"} & options.keys():
            raise FsError(errno.EISDIR)
        if {"r", "R"} & options.keys():
            for name in call.space.names(path):
                _remove(call, joined(path, name), options)
    call.space.remove(path)
    if "v" in options:
        call.say(f"removed {'directory ' if attributes.is_dir else ''}'{path}'")


def _times(call: Call, options: dict[str, str]) -> tuple[int, int]:
    where = zone(call.env)
    now_ns = time.time_ns()
    if "r" in options:
        attributes = call.space.stat(options["r"])
        return attributes.atime_ns, attributes.mtime_ns
    if "d" in options:
        moment = parsed_date(options["d"], datetime.fromtimestamp(now_ns / _NS, where))
        stamp = round(moment.timestamp() * 1_000_000) * 1000
        return stamp, stamp
    if "t" in options:
        stamp = int(_stamped(options["t"], where).timestamp()) * _NS
        return stamp, stamp
    return now_ns, now_ns


def _stamped(text: str, where: tzinfo) -> datetime:
    """`[[CC]YY]MMDDhhmm[.ss]`."""
    match = re.fullmatch(r"(\d{2}|\d{4})?(\d{2})(\d{2})(\d{2})(\d{2})(?:\.(\d{2}))?", text)
    wrong = UsageError(f"invalid date format '{text}'")
    if match is None:
        raise wrong
    year, month, day, hour, minute, second = match.groups()
    full = datetime.now(where).year if year is None else int(year) + (2000 if len(year) == 2 else 0)
    try:
        return datetime(full, int(month), int(day), int(hour), int(minute), int(second or 0), tzinfo=where)
    except ValueError:
        raise wrong from None
