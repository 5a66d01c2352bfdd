"""What splitters hand to the packer: blocks that cover the text in order, without gaps."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

CONTEXT_MAX_CHARS: Final = 200
"""Title and headings are cut to this before they are embedded: they must not crowd out the passage."""


TITLE_MAX_CHARS: Final = 120


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A piece of structure: characters `start` to `end`, half open."""

    start: int
    end: int
    heading: tuple[str, ...] = ()
    note: str = ""
    """Context of this block alone, such as a table's header row."""
    hard: bool = False
    """A passage never reaches across the start of this block."""
    skip: bool = False
    """Not text a person wrote (an encoded attachment): left out of the index."""
    turn: bool = False
    """One turn of a conversation: the next passage repeats a short last turn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outline:
    """A document's title, if it has one, and its blocks."""

    title: str
    blocks: list[Block]


class Line(NamedTuple):
    """One line: characters `start` to `end` with its line feed; `text` without line end, at most `LINE_LOOK_CHARS`."""

    start: int
    end: int
    text: str

    @property
    def blank(self) -> bool:
        return not self.text or self.text.isspace()

    @property
    def indent(self) -> int:
        """Columns of leading white space, a tab counted as four."""
        stripped = self.text.lstrip(" \t")
        lead = self.text[: len(self.text) - len(stripped)]
        return len(lead) + 3 * lead.count("\t")


LINE_LOOK_CHARS: Final = 400
"""Structure is recognised by the beginning of a line; a line of a megabyte is not looked at whole."""


def lines_of(text: str) -> Iterator[Line]:
    """The lines of `text`, split at line feeds only."""
    start = 0
    length = len(text)
    while start < length:
        found = text.find("\n", start)
        end = length if found < 0 else found + 1
        stop = min(end, start + LINE_LOOK_CHARS)
        yield Line(start, end, text[start:stop].rstrip("\r\n"))
        start = end


def clip(text: str, limit: int = CONTEXT_MAX_CHARS) -> str:
    """White space folded, cut at `limit` characters."""
    folded = " ".join(text.split())
    return folded if len(folded) <= limit else folded[: limit - 1] + "…"
