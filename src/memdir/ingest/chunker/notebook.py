"""Jupyter notebooks (nbformat 4, nbformat.readthedocs.io): each cell is a piece of text or code with its number.

nbformat writes a line of JSON for each line of a cell. `flattened` leaves the cells' own words at their places and puts spaces
over everything else, so that lines and bytes stay those of the file; outputs, metadata and a notebook on one line are no text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from memdir.ingest.chunker.blocks import Block, Outline, lines_of

_CELL: Final = re.compile(r'\s*"cell_type":\s*"(\w+)"')
_SOURCE: Final = re.compile(r'\s*"source":\s*\[\s*\Z')
_STRING: Final = re.compile(r'\s*"((?:[^"\\]|\\.)*)",?\s*\Z', re.DOTALL)
_END: Final = re.compile(r"\s*\],?\s*\Z")
_ESCAPE: Final = re.compile(r"\\(?:u[0-9a-fA-F]{4}|.)", re.DOTALL)
_PLAIN: Final = {"n": " ", "t": " ", "r": " ", "b": " ", "f": " "}
_HEADING: Final = re.compile(r"\s*#{1,6}\s+(.{1,120}?)\s*\Z")


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One that has lines."""

    number: int
    kind: str
    lines: list[tuple[int, int]]
    """Characters of each line of its source, without the quotes around it."""


def cells_of(text: str) -> list[Cell]:
    """Its cells in order; none of a notebook that was written on one line, whose cells cannot be told apart."""
    return list(_cells(text))


def flattened(text: str, cells: Iterable[Cell]) -> str:
    """The words of `cells`, as long as `text`, line for line."""
    parts: list[str] = []
    at = 0
    for cell in cells:
        for start, end in cell.lines:
            parts += [_blank(text[at:start]), _ESCAPE.sub(_unescaped, text[start:end])]
            at = end
    parts.append(_blank(text[at:]))
    return "".join(parts)


def outline(text: str, cells: Iterable[Cell]) -> Outline:
    """A block for each of `cells` of `text`, which is not flattened; what stands between them is left out."""
    blocks: list[Block] = []
    title = ""
    heading: tuple[str, ...] = ()
    at = 0
    for cell in cells:
        start = text.rfind("\n", 0, cell.lines[0][0]) + 1
        end = text.find("\n", cell.lines[-1][1]) + 1 or len(text)
        if start > at:
            blocks.append(Block(start=at, end=start, skip=True, hard=True))
        if cell.kind == "markdown":
            first = _HEADING.match(_ESCAPE.sub(_unescaped, text[slice(*cell.lines[0])]))
            if first is not None:
                heading = (first[1],)
                title = title or first[1]
        kind = "text" if cell.kind == "markdown" else cell.kind
        blocks.append(Block(start=start, end=end, heading=heading, note=f"cell {cell.number} ({kind})", hard=True))
        at = end
    if at < len(text):
        blocks.append(Block(start=at, end=len(text), skip=True, hard=True))
    return Outline(title=title, blocks=blocks)


def _cells(text: str) -> Iterator[Cell]:
    number, kind = 0, ""
    lines: list[tuple[int, int]] | None = None
    for line in lines_of(text):
        whole = text[line.start : line.end]
        if lines is None:
            said = _CELL.match(line.text)
            if said is not None:
                number, kind = number + 1, said[1]
            elif number and _SOURCE.match(whole):
                lines = []
            continue
        string = _STRING.match(whole)
        if string is not None:
            lines.append((line.start + string.start(1), line.start + string.end(1)))
        elif _END.match(whole):
            if lines:
                yield Cell(number=number, kind=kind, lines=lines)
            lines = None


def _unescaped(found: re.Match[str]) -> str:
    """One character and spaces, as long as the escape."""
    escape = found[0]
    if escape[1] == "u" and len(escape) == 6:
        character = chr(int(escape[2:], 16))
        return (character if character.isprintable() else " ") + " " * 5
    return " " + _PLAIN.get(escape[1], escape[1])


def _blank(text: str) -> str:
    return "\n".join(" " * len(line) for line in text.split("\n"))
