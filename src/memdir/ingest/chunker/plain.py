"""Plain text: paragraphs."""

from __future__ import annotations

from memdir.ingest.chunker.blocks import Block, Line, Outline, lines_of


def paragraphs(text: str, start: int, end: int, *, heading: tuple[str, ...] = (), hard: bool = False) -> list[Block]:
    """Blocks that end before the first line after a blank one; they cover `start` to `end`. The first one may be hard."""
    blocks: list[Block] = []
    opened = start
    blank_before = False
    for line in lines_of(text[start:end]):
        if blank_before and not line.blank and start + line.start > opened:
            blocks.append(Block(start=opened, end=start + line.start, heading=heading, hard=hard and not blocks))
            opened = start + line.start
        blank_before = line.blank
    if opened < end:
        blocks.append(Block(start=opened, end=end, heading=heading, hard=hard and not blocks))
    return blocks


def outline(text: str) -> Outline:
    """A short first line that stands alone is the title."""
    return Outline(title=first_line_title(text), blocks=paragraphs(text, 0, len(text)))


def first_line_title(text: str) -> str:
    """The first line when it is short, stands alone and does not end like a sentence."""
    lines: list[Line] = []
    for line in lines_of(text[:2000]):
        if not lines and line.blank:
            continue
        lines.append(line)
        if len(lines) == 2:
            break
    if len(lines) < 2 or not lines[1].blank:
        return ""
    first = lines[0].text.strip()
    return (
        first
        if 2 < len(first) <= 80 and not first.startswith("..") and not first.endswith((".", ",", ";", ":", "!", "?"))
        else ""
    )
