"""The two forms that memdir writes: JSON for programs, Markdown for people. Both are read again.

JSON is one object with a memory a line; its first members are `format` and `version`. In Markdown each memory stands between
two comments, of which the first has what the text does not say:

    <!-- memory {"id": …, "project": …, "tags": […], "createdAt": …} -->
    ## my-saas · 2026-11-20 · auth, backend

    The text, as it is.
    <!-- /memory -->

A line of the text that looks like one of these comments gets a backslash in front of it, and loses it again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import IO, Any, Final

from memdir.agents.portable.item import BadItemError, Item, Left, PortableError, made
from memdir.agents.portable.jsonstream import ENTRY_MAX_CHARS, entries
from memdir.core.frontmatter import parse, render

FORMAT: Final = "memdir-memories"
VERSION: Final = 1
_OPENING: Final = re.compile(r"<!-- memory (\{.*\}) -->\s*$")
_CLOSING: Final = "<!-- /memory -->"
_COMMENT: Final = re.compile(r"(?m)^(?=\\*<!-- /?memory\b)")
_ESCAPED: Final = re.compile(r"(?m)^\\(?=\\*<!-- /?memory\b)")
_HEAD_MAX_LINES: Final = 50


def write_json(memories: Iterable[Mapping[str, Any]], *, container: str, exported_at: str) -> Iterator[str]:
    """Pieces of the document. `memories` are `AgentMemory` of the wire."""
    head = {"format": FORMAT, "version": VERSION, "exportedAt": exported_at, "container": container}
    yield json.dumps(head, ensure_ascii=False)[:-1] + ', "memories": ['
    between = "\n"
    for memory in memories:
        yield between + json.dumps(_told(memory), ensure_ascii=False)
        between = ",\n"
    yield "\n]}\n"


def write_markdown(memories: Iterable[Mapping[str, Any]], *, container: str, exported_at: str) -> Iterator[str]:
    """Pieces of the document."""
    yield render({"format": FORMAT, "version": VERSION, "exported": exported_at, "container": container}, "# Memories\n")
    for memory in memories:
        told = _told(memory)
        content = told.pop("content")
        title = [memory["project"] or "no project", str(memory["createdAt"])[:10], ", ".join(memory["tags"])]
        fields = json.dumps(told, ensure_ascii=False).replace("-->", "--\\u003e")
        heading = " ".join(" · ".join(part for part in title if part).split())
        escaped = _COMMENT.sub(r"\\", content)
        yield f"\n<!-- memory {fields} -->\n## {heading}\n\n{escaped}\n{_CLOSING}\n"


def read_json(source: IO[str], left: Left) -> Iterator[Item | BadItemError]:
    """What `write_json` wrote."""
    for entry in entries(source):
        if entry.key == "version":
            _check_version(entry.value)
        elif entry.key == "memories" and entry.index is not None:
            yield _item(entry.value, f"line {entry.line}")
        elif entry.index is not None:
            left.add(entry.key)


def read_markdown(source: IO[str], left: Left) -> Iterator[Item | BadItemError]:
    """What `write_markdown` wrote, and people may have changed. PortableError for a memory that does not end."""
    del left  # what stands between the memories is there for people
    lines = _numbered(source)
    head = [line for _, line in (next(lines, (0, "")) for _ in range(_HEAD_MAX_LINES))]
    _check_version(parse("".join(head))[0].get("version"))
    source.seek(0)
    lines = _numbered(source)
    for number, line in lines:
        found = _OPENING.match(line)
        if found is None:
            continue
        try:
            fields = json.loads(found[1])
        except ValueError as error:
            raise PortableError(f"line {number}: what stands in the comment is no JSON: {error}") from None
        yield _item({**fields, "content": _content(lines, number)}, f"line {number}")


def _told(memory: Mapping[str, Any]) -> dict[str, Any]:
    kept = ("id", "project", "tags", "createdAt", "updatedAt", "accessCount", "metadata", "content")
    return {name: memory[name] for name in kept if memory.get(name) not in (None, {}, [])}


def _item(value: Any, where: str) -> Item | BadItemError:
    if not isinstance(value, dict):
        return BadItemError(f"{where}: a memory is an object")
    tags, metadata = value.get("tags") or [], value.get("metadata") or {}
    if not isinstance(tags, list) or not isinstance(metadata, dict):
        return BadItemError(f"{where}: tags are a list, metadata is an object")
    try:
        return made(
            value.get("content"), where, tags=tags, project=value.get("project"), created=value.get("createdAt"),
            updated=value.get("updatedAt"), access_count=value.get("accessCount", 0), metadata=metadata,
        )  # fmt: skip
    except BadItemError as error:
        return error


def _check_version(version: Any) -> None:
    if str(version) != str(VERSION):
        raise PortableError(
            f"the file has version {version!s:.20} of this format, and this memdir reads {VERSION}",
            hint="a newer memdir reads it" if str(version).isdecimal() else "",
        )


def _content(lines: Iterator[tuple[int, str]], opened: int) -> str:
    """The text of one memory: behind its heading and the empty line below, up to the closing comment."""
    kept: list[str] = []
    size = 0
    for place, (_, line) in enumerate(lines):
        if line.rstrip("\r\n") == _CLOSING:
            text = "".join(kept).removesuffix("\r\n" if line.endswith("\r\n") else "\n")
            return _ESCAPED.sub("", text)
        if (place == 0 and line.startswith("## ")) or (place == 1 and not line.strip()):
            continue
        kept.append(line)
        size += len(line)
        if size > ENTRY_MAX_CHARS:
            break
    raise PortableError(f"line {opened}: the memory that begins here does not end with {_CLOSING}")


def _numbered(source: IO[str]) -> Iterator[tuple[int, str]]:
    """Lines that end in a newline and in nothing else, each cut at the longest entry there may be."""
    number = 0
    try:
        while line := source.readline(ENTRY_MAX_CHARS):
            number += 1
            yield number, line
    except UnicodeDecodeError as error:
        raise PortableError(f"line {number + 1}: it is no UTF-8: {error.reason}") from None
