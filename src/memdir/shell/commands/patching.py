"""`patch`: carries a diff over to files."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from memdir.shell.commands.call import Call
from memdir.shell.commands.comparing import NO_NEWLINE, lines_of
from memdir.shell.commands.options import parsed

_HUNK: Final = re.compile(r"^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")


@dataclass(slots=True)
class _Change:
    """One hunk: where it was, and its lines with their marks."""

    line: int
    lines: list[tuple[str, str]]

    def side(self, marks: str) -> list[str]:
        return [line for mark, line in self.lines if mark in marks]


def patch(call: Call) -> None:
    """patch [-pN] [-R] [-i PATCH] [-o OUT] [-b] [-s] [--dry-run] [FILE [PATCH]]"""
    long = {
        "strip=": "p", "reverse": "R", "input=": "i", "output=": "o", "backup": "b", "silent": "s", "quiet": "s",
        "dry-run": "dry", "directory=": "d", "forward": "N", "force": "f", "batch": "t", "fuzz=": "F", "verbose": "-",
        "unified": "u", "remove-empty-files": "E",
    }  # fmt: skip
    found, operands = parsed(call.args, "RbsNftuElcn", "piodFrBzV", long)
    options = dict(found)
    if "d" in options:
        call.space.cwd = call.space.absolute(options["d"])
    source = options.get("i") or (operands[1] if len(operands) > 1 else "-")
    text = call.read(source).decode("utf-8", "surrogateescape")
    patches = list(_read_patch(text))
    if not patches:
        call.say("patch: **** Only garbage was found in the patch input.") if text.strip() else None
        call.status = 2 if text.strip() else 0
        return
    for old, new, changes in patches:
        name = operands[0] if operands else _target(call, *_names(old, new), int(options.get("p", "-1") or 0))
        if name is None:
            call.say("can't find file to patch")
            call.status = 1
            continue
        _apply(call, name, old, new, changes, options)


def _read_patch(text: str) -> Iterator[tuple[str, str, list[_Change]]]:
    """The two names (as `---` and `+++` say them, times too) and the hunks of each file."""
    lines = lines_of(text)
    at = 0
    old = new = ""
    changes: list[_Change] = []
    while at < len(lines):
        line = lines[at]
        if line.startswith("--- ") and at + 1 < len(lines) and lines[at + 1].startswith("+++ "):
            if changes:
                yield old, new, changes
            old, new = (one[4:].rstrip("\n") for one in lines[at : at + 2])
            changes = []
            at += 2
        elif (match := _HUNK.match(line)) is not None:
            left, right = (int(match.group(group) or 1) for group in (2, 4))
            at += 1
            body: list[tuple[str, str]] = []
            while at < len(lines) and (left > 0 or right > 0 or lines[at].startswith("\\")):
                mark, content = lines[at][:1], lines[at][1:]
                if mark == "\\":
                    if body:
                        body[-1] = (body[-1][0], body[-1][1].rstrip("\n"))
                elif mark in " +-\n":
                    mark, content = (" ", "\n") if mark == "\n" else (mark, content)
                    body.append((mark, content))
                    left -= mark in " -"
                    right -= mark in " +"
                else:
                    break
                at += 1
            changes.append(_Change(int(match.group(1)), body))
        else:
            at += 1
    if changes:
        yield old, new, changes


def _names(old: str, new: str) -> tuple[str, str]:
    return old.split("\t", maxsplit=1)[0], new.split("\t", maxsplit=1)[0]


def _target(call: Call, old: str, new: str, strip: int) -> str | None:
    names = []
    for name in (old, new):
        if name != "/dev/null":
            parts = name.split("/")
            names.append("/".join(parts[strip:]) if strip >= 0 else posixpath.basename(name))
    names = [name for name in names if name]
    there = [name for name in names if call.space.exists(name)]
    if there:
        return min(there, key=lambda name: (name.count("/"), len(posixpath.basename(name)), len(name)))
    return names[-1] if names and old == "/dev/null" else None


def _apply(call: Call, name: str, old: str, new: str, changes: list[_Change], options: dict[str, str]) -> None:
    space = call.space
    before = space.read(name) if space.exists(name) else b""
    lines = lines_of(before.decode("utf-8", "surrogateescape"))
    backwards = "R" in options
    out_name = options.get("o", name)
    verb = "checking" if "dry" in options else "patching"
    if "s" not in options:
        call.say(f"{verb} file {out_name}" + (f" (read from {name})" if "o" in options else ""))
    failed, offset = [], 0
    for number, change in enumerate(changes, 1):
        wanted, put = (change.side(" +"), change.side(" -")) if backwards else (change.side(" -"), change.side(" +"))
        place = _found(lines, wanted, max(change.line - 1, 0) + offset)
        if place is None and number == 1 and _found(lines, put, max(change.line - 1, 0)) is not None and put != wanted:
            word = "Unreversed" if backwards else "Reversed (or previously applied)"
            call.say(f"{word} patch detected!  Assume -R? [n] \nApply anyway? [n] \nSkipping patch.")
            call.say(f"{len(changes)} out of {len(changes)} hunk{'s' if len(changes) > 1 else ''} ignored", end="")
            call.say(f" -- saving rejects to file {out_name}.rej")
            if "dry" not in options:
                space.write(f"{out_name}.rej", _rejects(old, new, changes))
            call.status = 1
            return
        if place is None:
            failed.append(change)
            call.say(f"Hunk #{number} FAILED at {change.line}.")
            continue
        moved = place - max(change.line - 1, 0)
        if moved != offset and "s" not in options:
            call.say(f"Hunk #{number} succeeded at {place + 1} (offset {moved} line{'s' if abs(moved) != 1 else ''}).")
        offset = moved + len(put) - len(wanted)
        lines[place : place + len(wanted)] = put
    if failed:
        call.say(f"{len(failed)} out of {len(changes)} hunk{'s' if len(changes) > 1 else ''} FAILED", end="")
        call.say(f" -- saving rejects to file {out_name}.rej")
        call.status = 1
    if "dry" in options:
        return
    if failed:
        space.write(f"{out_name}.rej", _rejects(old, new, failed))
    if "b" in options and space.exists(name):
        space.write(f"{name}.orig", before)
    data = "".join(lines).encode("utf-8", "surrogateescape")
    if not data and _names(old, new)[0 if backwards else 1] == "/dev/null":
        space.remove(name)
    elif data != before or "o" in options:
        space.write(out_name, data)


def _found(lines: list[str], wanted: list[str], near: int) -> int | None:
    """Where `wanted` stands, nearest to `near`."""
    last = len(lines) - len(wanted)
    for distance in range(max(len(lines), near) + 1):
        for place in {near - distance, near + distance}:
            if 0 <= place <= last and lines[place : place + len(wanted)] == wanted:
                return place
    return None


def _rejects(old: str, new: str, changes: list[_Change]) -> bytes:
    parts = [f"--- {old}\n+++ {new}\n"]
    for change in changes:
        left, right = len(change.side(" -")), len(change.side(" +"))
        parts.append(f"@@ -{change.line},{left} +{change.line},{right} @@\n")
        parts += [mark + (line if line.endswith("\n") else f"{line}\n{NO_NEWLINE}\n") for mark, line in change.lines]
    return "".join(parts).encode("utf-8", "surrogateescape")
