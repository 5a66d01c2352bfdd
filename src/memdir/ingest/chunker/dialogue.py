"""Conversations: transcripts with speakers, chat logs, subtitles. One block a turn."""

from __future__ import annotations

import re
from typing import Final

from memdir.ingest.chunker.blocks import Block, Line, Outline, clip, lines_of

_TIME: Final = (
    r"(?:\d{4}-\d{2}-\d{2}[T ]|\d{1,2}[./]\d{1,2}[./]\d{2,4},?[ ])?\d{1,2}:\d{2}(?::\d{2})?(?:[.,]\d{1,3})?(?: ?[AaPp][Mm])?"
)
_NAME: Final = r"[^\W\d_][\w.'’-]*(?:[ ][^\W_][\w.'’-]*){0,3}(?:[ ]\([^)\n]{1,30}\))?"
_STAMPED: Final = re.compile(
    rf"(?:\[{_TIME}\]|\({_TIME}\)|{_TIME})[ ]*[-–—]?[ ]*(?:<[^>\n]{{1,40}}>|\*{{0,2}}{_NAME}\*{{0,2}}[ ]?:|{_NAME}$)"
)
_SPEAKER: Final = re.compile(rf"\*{{0,2}}(?P<name>{_NAME})(?:[ ][\[(]{_TIME}[\])])?\*{{0,2}}[ ]?:\*{{0,2}}(?=[ \t]|$)")
_NICK: Final = re.compile(r"<[^>\s]{1,40}>[ ]")
_CUE: Final = re.compile(r"\d{1,2}:\d{2}(?::\d{2})?[.,]\d{3} --> ")
_LOOK_CHARS: Final = 20_000


def _speaker(line: str) -> str | None:
    """The turn's marker at the start of a line, normalised; None when no turn starts here."""
    found = _STAMPED.match(line) or _NICK.match(line)
    if found is not None:
        return re.sub(r"[\d:.,/\[\]() -]+", " ", found.group(0)).strip()
    named = _SPEAKER.match(line)
    return named["name"] if named is not None and len(named["name"]) <= 40 else None


def looks_like(text: str) -> bool:
    """At least four turns, four in ten of the non-blank lines start one, and speakers come back."""
    lines = [line for line in lines_of(text[:_LOOK_CHARS]) if not line.blank]
    turns = [name for name in (_speaker(line.text) for line in lines) if name is not None]
    if len(turns) < 4 or len(turns) * 10 < 4 * min(len(lines), 3 * len(turns)):
        return False
    stamped = sum(1 for line in lines if _STAMPED.match(line.text) or _NICK.match(line.text))
    return stamped * 2 > len(turns) or (len(set(turns)) * 2 <= len(turns) and len(turns) * 10 >= 3 * len(lines))


def outline(text: str) -> Outline:
    """What stands before the first turn is a block of its own."""
    starts = []
    title = ""
    heading: str = ""
    blocks: list[Block] = []
    for line in lines_of(text):
        if line.text.startswith("#"):
            found = clip(line.text.lstrip("# "), 100)
            title = title or found
            starts.append((line, False, found))
        elif _speaker(line.text) is not None:
            starts.append((line, True, ""))
    positions = [0] + [line.start for line, _, _ in starts if line.start > 0]
    turns = {line.start: (turn, name) for line, turn, name in starts}
    for number, start in enumerate(positions):
        end = positions[number + 1] if number + 1 < len(positions) else len(text)
        turn, name = turns.get(start, (False, ""))
        heading = name or heading
        path = (heading,) if heading else ()
        blocks.append(Block(start=start, end=end, heading=path, turn=turn))
    return Outline(title=title, blocks=[block for block in blocks if block.end > block.start])


def subtitles(text: str) -> Outline:
    """WebVTT and SubRip: a block a cue, the number line above the time included."""
    previous: Line | None = None
    starts = [0]
    for line in lines_of(text):
        if _CUE.match(line.text):
            above = previous is not None and not previous.blank and previous.text.strip().isdigit()
            starts.append(previous.start if above and previous is not None else line.start)
        previous = line
    starts.append(len(text))
    unique = sorted(set(starts))
    blocks = [Block(start=unique[i], end=unique[i + 1], turn=i > 0) for i in range(len(unique) - 1)]
    return Outline(title="", blocks=blocks)
