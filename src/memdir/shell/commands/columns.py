"""Commands that set lines anew or spread them over files: column, split."""

from __future__ import annotations

import itertools
import re
from typing import Final

from memdir.core.errors import UsageError
from memdir.fs.errors import FsError
from memdir.shell.commands.call import Call
from memdir.shell.commands.options import parsed

_WIDTH: Final = 80
_TAB: Final = 8
_PIECES_MAX: Final = 10_000
_LINE: Final = re.compile(rb"[^\n]*\n|[^\n]+")
_UNITS: Final = {"": 1, "b": 512, "k": 1024, "K": 1024, "KB": 1000, "M": 1 << 20, "MB": 10**6, "G": 1 << 30, "GB": 10**9}


def column(call: Call) -> None:
    """column [-t] [-s SEPARATORS] [-o TEXT] [-c WIDTH] [-x] [-N NAMES] [FILE]..."""
    long = {
        "table": "t", "separator=": "s", "output-separator=": "o", "output-width=": "c", "fillrows": "x",
        "table-columns=": "N", "table-right=": "R", "keep-empty-lines": "L", "table-noheadings": "d",
    }  # fmt: skip
    found, operands = parsed(call.args, "txLdne", "socNR", long)
    options = dict(found)
    text = ""
    for path in operands or ["-"]:
        try:
            text += call.read(path).decode("utf-8", "surrogateescape")
        except FsError as error:
            call.fail(f"cannot open {path}: {error.message}")
    lines = [line for line in text.split("\n") if line.strip() or "L" in options]
    if "L" in options and lines and not lines[-1]:
        lines.pop()
    if "t" in options:
        _table(call, lines, options)
    else:
        _filled(call, lines, int(options.get("c", _WIDTH)), across="x" in options)


def _table(call: Call, lines: list[str], options: dict[str, str]) -> None:
    if "s" in options:
        rows = [re.split(f"[{re.escape(options['s'])}]", line) if options["s"] else [line] for line in lines]
    else:
        rows = [line.split() for line in lines]
    if "N" in options and rows:
        rows.insert(0, options["N"].split(","))
    columns = max((len(row) for row in rows), default=0)
    widths = [max((len(row[at]) for row in rows if at < len(row)), default=0) for at in range(columns)]
    right = {int(one) - 1 for one in options.get("R", "").split(",") if one.isdigit()}
    between = options.get("o", "  ")
    for row in rows:
        cells = [
            cell.rjust(widths[at]) if at in right else cell if at == columns - 1 else cell.ljust(widths[at])
            for at, cell in enumerate(row + [""] * (columns - len(row)))
        ]
        call.say(between.join(cells))


def _filled(call: Call, lines: list[str], width: int, *, across: bool) -> None:
    if not lines:
        return
    step = (max(map(len, lines)) // _TAB + 1) * _TAB
    columns = max(1, width // step)
    rows = -(-len(lines) // columns)
    for row in range(rows):
        picked = lines[row * columns : (row + 1) * columns] if across else lines[row::rows]
        text = ""
        for number, cell in enumerate(picked):
            text += cell
            if number < len(picked) - 1:
                text += "\t" * -(-(step - len(cell)) // _TAB)
        call.say(text)


def split(call: Call) -> None:
    """split [-l LINES | -b SIZE | -C SIZE | -n CHUNKS] [-a N] [-d] [--additional-suffix=TEXT] [FILE [PREFIX]]"""
    long = {
        "lines=": "l", "bytes=": "b", "line-bytes=": "C", "number=": "n", "suffix-length=": "a", "numeric-suffixes?": "d",
        "additional-suffix=": "suffix", "verbose": "v", "elide-empty-files": "e",
    }  # fmt: skip
    given = [f"-l{arg[1:]}" if re.fullmatch(r"-\d+", arg) else arg for arg in call.args]
    found, operands = parsed(given, "dxe", "lbCnat", long)
    options = dict(found)
    source, prefix = (operands[0] if operands else "-"), (operands[1] if len(operands) > 1 else "x")
    data = call.read(source)
    pieces = _pieces(data, options)
    if "e" in options:
        pieces = [piece for piece in pieces if piece]
    if len(pieces) > _PIECES_MAX:
        raise UsageError(f"more than {_PIECES_MAX:,} files")
    length = int(options.get("a", "2"))
    base = 10 if "d" in options else 16 if "x" in options else 26
    if len(pieces) > base**length:
        raise UsageError("output file suffixes exhausted")
    for number, piece in enumerate(pieces):
        name = prefix + _suffix(number, length, base) + options.get("suffix", "")
        if "v" in options:
            call.say(f"creating file '{name}'")
        call.space.write(name, piece)


def _pieces(data: bytes, options: dict[str, str]) -> list[bytes]:
    if "n" in options:
        return _chunks(data, options["n"])
    lines = _LINE.findall(data)
    if "b" in options:
        size = _size(options["b"])
        return [data[at : at + size] for at in range(0, len(data), size)]
    if "C" in options:
        size = _size(options["C"])
        pieces = [b""]
        for line in lines:
            if pieces[-1] and len(pieces[-1]) + len(line) > size:
                pieces.append(b"")
            pieces[-1] += line
        return [piece for piece in pieces if piece]
    count = _size(options.get("l", "1000"))
    return [b"".join(lines[at : at + count]) for at in range(0, len(lines), count)]


def _chunks(data: bytes, how: str) -> list[bytes]:
    kind, _, number = how.rpartition("/")
    count = _size(number)
    if count > _PIECES_MAX:
        raise UsageError(f"invalid number of chunks: '{how}'")
    lines = _LINE.findall(data)
    if kind == "r":
        return [b"".join(lines[at::count]) for at in range(count)]
    step = len(data) // count
    bounds = [step * at for at in range(count)] + [len(data)]
    if not kind:
        return [data[first:last] for first, last in itertools.pairwise(bounds)]
    pieces = [b""] * count
    at = 0
    for line in lines:
        pieces[min(at // step if step else 0, count - 1)] += line
        at += len(line)
    return pieces


def _size(text: str) -> int:
    match = re.fullmatch(r"(\d{1,15})([a-zA-Z]{0,2})", text)
    if match is None or match.group(2) not in _UNITS or not int(match.group(1)):
        raise UsageError(f"invalid number of bytes or lines: '{text}'")
    return int(match.group(1)) * _UNITS[match.group(2)]


def _suffix(number: int, length: int, base: int) -> str:
    letters = "abcdefghijklmnopqrstuvwxyz" if base == 26 else "0123456789abcdef"
    text = ""
    for _ in range(length):
        number, digit = divmod(number, base)
        text = letters[digit] + text
    return text
