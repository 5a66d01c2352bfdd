"""`date`, `file`, and what else says something about one thing."""

from __future__ import annotations

import json
import re
import time
from datetime import datetime
from typing import Final

from memdir.core.errors import UsageError
from memdir.fs.errors import FsError
from memdir.shell.commands.call import Call
from memdir.shell.commands.dates import formatted, parsed_date, zone
from memdir.shell.commands.options import parsed

_LOOKED_AT_BYTES: Final = 1 << 20
_CSV_LINES: Final = 10

_MAGIC: Final = (
    (b"%PDF-", "PDF document, version {}", "application/pdf"),
    (b"\x89PNG\r\n", "PNG image data", "image/png"),
    (b"\xff\xd8\xff", "JPEG image data", "image/jpeg"),
    (b"GIF8", "GIF image data", "image/gif"),
    (b"PK\x03\x04", "Zip archive data, at least v2.0 to extract", "application/zip"),
    (b"\x1f\x8b", "gzip compressed data", "application/gzip"),
    (b"BZh", "bzip2 compressed data", "application/x-bzip2"),
    (b"\xfd7zXZ\0", "XZ compressed data", "application/x-xz"),
    (b"\x7fELF", "ELF binary", "application/x-executable"),
    (b"SQLite format 3\0", "SQLite 3.x database", "application/vnd.sqlite3"),
    (b"OggS", "Ogg data", "audio/ogg"),
    (b"ID3", "Audio file with ID3", "audio/mpeg"),
    (b"RIFF", "RIFF (little-endian) data", "audio/x-wav"),
)


def date(call: Call) -> None:
    """date [-u] [-d TEXT | -r FILE] [-I[WHAT]] [-R] [+FORMAT]"""
    long = {
        "date=": "d", "utc": "u", "universal": "u", "reference=": "r", "iso-8601?": "I", "rfc-3339=": "rfc-3339",
        "rfc-email": "R", "set=": "s",
    }  # fmt: skip
    given = [f"--iso-8601={arg[2:]}" if arg.startswith("-I") and len(arg) > 2 else arg for arg in call.args]
    found, operands = parsed(given, "uRI", "drs", long)
    options = dict(found)
    where = zone({"TZ": "UTC"} if "u" in options else call.env)
    moment = datetime.fromtimestamp(time.time(), where)
    if "s" in options:
        raise UsageError("cannot set date: Operation not permitted")
    if "r" in options:
        moment = datetime.fromtimestamp(call.space.stat(options["r"]).mtime_ns / 1e9, where)
    if "d" in options:
        moment = parsed_date(options["d"], moment)
    if len(operands) > 1:
        raise UsageError(f"extra operand '{operands[1]}'")
    if operands and not operands[0].startswith("+"):
        raise UsageError(f"invalid date '{operands[0]}'")
    call.say(formatted(moment, _pattern(options, operands)))


def _pattern(options: dict[str, str], operands: list[str]) -> str:
    if operands:
        return operands[0][1:]
    if "R" in options:
        return "%a, %d %b %Y %H:%M:%S %z"
    if "rfc-3339" in options:
        return {"date": "%Y-%m-%d", "seconds": "%Y-%m-%d %H:%M:%S%:z"}.get(options["rfc-3339"], "%Y-%m-%d %H:%M:%S.%N%:z")
    if "I" in options:
        what = options["I"] or "date"
        shapes = {"date": "", "hours": "T%H%:z", "minutes": "T%H:%M%:z", "seconds": "T%H:%M:%S%:z", "ns": "T%H:%M:%S,%N%:z"}
        full = [name for name in shapes if name.startswith(what)]
        if not full:
            raise UsageError(f"invalid argument '{what}' for '--iso-8601'")
        return "%Y-%m-%d" + shapes[full[0]]
    return "%a %b %e %H:%M:%S %Z %Y"


def file(call: Call) -> None:
    """file [-b] [-i | --mime-type] FILE..."""
    long = {"brief": "b", "mime": "i", "mime-type": "mime-type", "mime-encoding": "mime-encoding", "dereference": "L"}
    found, operands = parsed(call.args, "bihLNs", "", long)
    flags = {name for name, _ in found}
    if not operands:
        raise UsageError("missing operand")
    width = max(map(len, operands)) + 1
    for path in operands:
        try:
            text = _described(call, path, flags)
        except FsError as error:
            text = f"cannot open `{path}' ({error.message})"
        call.say(text if "b" in flags else f"{path + ':':<{width}} {text}")


def _described(call: Call, path: str, flags: set[str]) -> str:
    attributes = call.space.stat(path) if "L" in flags else call.space.lstat(path)
    if attributes.is_dir:
        words, mime, charset = "directory", "inode/directory", "binary"
    elif attributes.is_symlink:
        words, mime, charset = f"symbolic link to {call.space.readlink(path)}", "inode/symlink", "binary"
    else:
        words, mime, charset = _kind(call.space.read(path)[:_LOOKED_AT_BYTES])
    if "i" in flags:
        return f"{mime}; charset={charset}"
    return mime if "mime-type" in flags else charset if "mime-encoding" in flags else words


def _kind(data: bytes) -> tuple[str, str, str]:
    """What file(1) says of contents: words, MIME type, character set."""
    if not data:
        return "empty", "inode/x-empty", "binary"
    for magic, words, mime in _MAGIC:
        if data.startswith(magic):
            return words.format(data[5:8].decode("ascii", "replace")), mime, "binary"
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        if error.start < len(data) - 4 or b"\0" in data:
            return "data", "application/octet-stream", "binary"
        text = data[: error.start].decode()
    if "\0" in text:
        return "data", "application/octet-stream", "binary"
    charset = "us-ascii" if text.isascii() else "utf-8"
    encoding = "ASCII text" if text.isascii() else "Unicode text, UTF-8 text"
    words, mime = _kind_of_text(text, encoding)
    return words, mime, charset


def _kind_of_text(text: str, encoding: str) -> tuple[str, str]:
    try:
        json.loads(text)
    except ValueError:
        pass
    else:
        if text.lstrip()[:1] in ("{", "["):
            return "JSON text data", "application/json"
    first = text.splitlines()[0] if text.splitlines() else ""
    if first.startswith("#!"):
        program = first[2:].split("/")[-1].split()[-1] if "/" in first else first[2:].strip()
        named = {"bash": "Bourne-Again shell", "sh": "POSIX shell", "python3": "Python", "python": "Python"}.get(
            program, program
        )
        return f"{named} script, {encoding} executable", "text/x-script.python" if "ython" in named else "text/x-shellscript"
    if re.search(r"^(import \w+|from \w+ import |def \w+\(.*\):\s*$)", text, re.MULTILINE) and "def " in text:
        return f"Python script, {encoding} executable", "text/x-script.python"
    if re.match(r"\s*<!doctype html|\s*<html", text, re.IGNORECASE):
        return f"HTML document, {encoding}", "text/html"
    if text.startswith("<?xml"):
        return f"XML 1.0 document, {encoding}", "text/xml"
    counts = {line.count(",") for line in text.splitlines()[:_CSV_LINES]}
    if len(counts) == 1 and counts != {0} and len(text.splitlines()) > 1:
        return "CSV text", "text/csv"
    return encoding + (", with CRLF line terminators" if "\r\n" in text else ""), "text/plain"
