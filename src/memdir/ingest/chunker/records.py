"""Records: CSV and TSV rows, JSON, JSON Lines, YAML, TOML, INI. One block a record."""

from __future__ import annotations

import re
from typing import Final

from memdir.ingest.chunker.blocks import Block, Outline, clip, lines_of

TABLES: Final = frozenset({"csv", "tsv", "psv"})
JSON: Final = frozenset({"json", "geojson", "ipynb", "json5"})
LINES: Final = frozenset({"jsonl", "ndjson", "log"})
KEYED: Final = frozenset({"yaml", "yml", "toml", "ini", "cfg", "conf", "properties", "env"})

_JSON_KEY: Final = re.compile(r"\s*\"((?:[^\"\\]|\\.){1,80})\"\s*:")
_KEY: Final = re.compile(r"([A-Za-z_\"'][\w .\"'/-]{0,80}?)\s*[:=](?:\s|$)")
_SECTION: Final = re.compile(r"\[+\s*([^\]]{1,80}?)\s*\]+\s*(?:[#;].*)?$")
_RECORD_LINES_MAX: Final = 2000
"""A quoted field that never ends must not swallow the file."""


def table(text: str) -> Outline:
    """Rows, with the header row as the context of each passage; a quoted field may span lines."""
    blocks: list[Block] = []
    header = ""
    start = 0
    open_quote = False
    held = 0
    for line in lines_of(text):
        whole = text[line.start : line.end]
        open_quote ^= whole.count('"') % 2 == 1
        held += 1
        if open_quote and held < _RECORD_LINES_MAX:
            continue
        open_quote, held = False, 0
        if not header and not line.blank:
            header = clip(re.sub(r"[\t,;|]+", ", ", line.text.replace('"', "")), 160)
            blocks.append(Block(start=start, end=line.end))
        else:
            blocks.append(Block(start=start, end=line.end, note=header))
        start = line.end
    if start < len(text):
        blocks.append(Block(start=start, end=len(text), note=header))
    return Outline(title="", blocks=blocks)


def json_lines(text: str) -> Outline:
    """A block a line."""
    return Outline(title="", blocks=[Block(start=line.start, end=line.end) for line in lines_of(text)])


def json_like(text: str) -> Outline:
    """Pretty-printed: a block for each member of the outermost array or object. On one line: cut by size."""
    lines = list(lines_of(text))
    depth = min((line.indent for line in lines if not line.blank and line.indent > 0), default=0)
    starts = [0]
    names = {0: ""}
    if depth:
        for line in lines:
            if line.indent == depth and line.text.strip()[:1] not in {"", "}", "]", ")"}:
                starts.append(line.start)
                found = _JSON_KEY.match(line.text)
                names[line.start] = found.group(1) if found else ""
    return _outline(text, starts, names)


def keyed(text: str) -> Outline:
    """A block for each key, list item or section that starts in the first column; comments go with what follows."""
    starts = [0]
    names = {0: ""}
    section = ""
    pending: int | None = None
    for line in lines_of(text):
        if line.blank or line.indent > 0 or line.text.startswith("---"):
            pending = None if not line.blank else pending
            continue
        if line.text.startswith(("#", ";", "//")):
            pending = line.start if pending is None else pending
            continue
        start = pending if pending is not None else line.start
        pending = None
        found_section = _SECTION.match(line.text)
        if found_section is not None:
            section = found_section.group(1)
            starts.append(start)
            names[start] = section
            continue
        found = _KEY.match(line.text)
        starts.append(start)
        key = found.group(1).strip("\"' ") if found else ""
        names[start] = section or key
    return _outline(text, starts, names)


def _outline(text: str, starts: list[int], names: dict[int, str]) -> Outline:
    unique = sorted(set(starts))
    bounds = [*unique, len(text)]
    blocks = [
        Block(start=bounds[i], end=bounds[i + 1], heading=(names[bounds[i]],) if names.get(bounds[i]) else ())
        for i in range(len(unique))
        if bounds[i + 1] > bounds[i]
    ]
    return Outline(title="", blocks=blocks)
