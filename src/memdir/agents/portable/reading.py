"""Which system wrote a file, and the memories in it."""

from __future__ import annotations

import gzip
import io
import json
import zipfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import IO, Any, Final

from memdir.agents.portable import claudemem, graph, mem0, notes, ours
from memdir.agents.portable.item import BadItemError, Item, Left, PortableError
from memdir.core.frontmatter import parse, single

FORMATS: Final = ("memdir", "mcp-memory", "mem0", "basic-memory", "claude-mem")
_HEAD_CHARS: Final = 64 << 10
_OPENMEMORY_LINES: Final = "memories.jsonl.gz"
_UNPACKED_MAX_BYTES: Final = 4 << 30
Items = Iterator[Item | BadItemError]
_Reader = Callable[[IO[str], Left], Items]
_HINT: Final = f"--from says what it is: {', '.join(FORMATS)}; an archive of files needs a NAME: `memdir import FILE NAME`"


def read(path: Path, left: Left, *, form: str | None = None) -> Items:
    """The memories of a file, folder or zip, one by one; bad entries among them as errors, for the caller to decide. `left`
    counts what is not taken over. `form` is one of FORMATS, None to find out.

    PortableError with line and reason when the file as a whole cannot be read; what was read before stands.
    """
    if path.is_dir():
        if form not in (None, "basic-memory", "memdir"):
            raise PortableError(f"{path} is a folder, and {form} writes a file", hint=_HINT)
        yield from notes.read_folder(path, left)
        return
    with ExitStack() as held:
        with path.open("rb") as opened:
            magic = opened.read(4)
        if magic == b"PK\x03\x04":
            yield from _zipped(path, left, held)
            return
        raw: io.BufferedIOBase = gzip.GzipFile(path) if magic[:2] == b"\x1f\x8b" else path.open("rb")
        source = held.enter_context(_text(held.enter_context(raw)))
        try:
            reader = _reader(_head(source), path, form)
            source.seek(0)
            yield from reader(source, left)
        except UnicodeDecodeError as error:
            raise PortableError(f"{path.name} is no UTF-8: {error.reason}", hint=_HINT) from None
        except (gzip.BadGzipFile, EOFError) as error:
            raise PortableError(f"{path.name} is damaged: {error}") from None


def _text(raw: io.BufferedIOBase) -> io.TextIOWrapper:
    return io.TextIOWrapper(io.BufferedReader(_Bounded(raw)), encoding="utf-8-sig", newline="\n")


def _head(source: IO[str]) -> str:
    return source.read(_HEAD_CHARS)


class _Bounded(io.RawIOBase):
    """At most so many bytes: a small packed file may hold a very large one."""

    def __init__(self, source: io.BufferedIOBase) -> None:
        self._source = source
        self._passed_bytes = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = 0) -> int:
        self._passed_bytes = 0
        return self._source.seek(offset, whence)

    def tell(self) -> int:
        return self._source.tell()

    def readinto(self, buffer: Any) -> int:
        data = self._source.read(len(buffer))
        self._passed_bytes += len(data)
        if self._passed_bytes > _UNPACKED_MAX_BYTES:
            raise PortableError(f"the file has more than {_UNPACKED_MAX_BYTES >> 30} GiB", hint="import it in parts")
        buffer[: len(data)] = data
        return len(data)


def _zipped(path: Path, left: Left, held: ExitStack) -> Items:
    """The backup of OpenMemory, or notes."""
    try:
        archive = held.enter_context(zipfile.ZipFile(path))
    except zipfile.BadZipFile as error:
        raise PortableError(f"{path.name} is a damaged zip: {error}") from None
    lines = next((name for name in archive.namelist() if name.rsplit("/", 1)[-1] == _OPENMEMORY_LINES), None)
    if lines is None:
        if not any(name.lower().endswith(".md") for name in archive.namelist()):
            raise PortableError(
                f"{path.name} holds neither {_OPENMEMORY_LINES} nor notes",
                hint=_HINT,
            )
        yield from notes.read_zip(archive, left)
        return
    try:
        with archive.open(lines) as packed, gzip.GzipFile(fileobj=packed) as raw, _text(raw) as source:
            yield from mem0.read_lines(source, left)
    except (zipfile.BadZipFile, gzip.BadGzipFile, EOFError) as error:
        raise PortableError(f"{lines} in {path.name} is damaged: {error}") from None


def _reader(head: str, path: Path, form: str | None) -> _Reader:
    """By how the file begins. PortableError for what nothing here has written."""
    if not head.strip():
        raise PortableError(f"{path.name} is empty")
    found = _found(head, path)
    if found is None and form is None:
        raise PortableError(f"{path.name} is no export that is known here", hint=_HINT)
    if found is None or (form is not None and found[0] != form):
        if found is not None:
            raise PortableError(f"{path.name} looks like an export of {found[0]}, not of {form}", hint="leave --from away")
        return {"memdir": ours.read_json, "mcp-memory": graph.read_lines, "mem0": mem0.read_results,
                "claude-mem": claudemem.read, "basic-memory": _a_note(path)}[form or ""]  # fmt: skip
    return found[1]


def _found(head: str, path: Path) -> tuple[str, _Reader] | None:
    """The system and its reader; None when it is not known."""
    if head.lstrip()[0] not in "{[":
        fields, _ = parse(head)
        if single(fields.get("format")) == ours.FORMAT:
            return "memdir", ours.read_markdown
        return ("basic-memory", _a_note(path)) if fields or path.suffix.lower() in (".md", ".markdown") else None
    first = _first_line(head)
    if first.get("type") in ("entity", "relation"):
        return "mcp-memory", graph.read_lines
    if "content" in first and ("state" in first or "categories" in first):
        return "mem0", mem0.read_lines
    if f'"{ours.FORMAT}"' in head[:1000]:
        return "memdir", ours.read_json
    if '"exportedAtEpoch"' in head or ('"observations"' in head and '"summaries"' in head):
        return "claude-mem", claudemem.read
    if '"entities"' in head:
        return "mcp-memory", graph.read_object
    return ("mem0", mem0.read_results) if '"memory"' in head else None


def _a_note(path: Path) -> _Reader:
    return partial(notes.read_text, path.name)


def _first_line(head: str) -> dict[str, Any]:
    """The first line, when it is a whole object, as in JSON Lines."""
    try:
        found = json.loads(head.lstrip().partition("\n")[0])
    except ValueError:  # an object over many lines
        return {}
    return found if isinstance(found, dict) else {}
