"""Mail: one message after another, headers as context, paragraphs of the body, encoded parts left out."""

from __future__ import annotations

import re
from email.errors import HeaderParseError
from email.header import decode_header, make_header
from typing import Final

from memdir.ingest.chunker.blocks import TITLE_MAX_CHARS, Block, Line, Outline, clip, lines_of
from memdir.ingest.chunker.plain import paragraphs

_HEADER: Final = re.compile(r"([A-Za-z][A-Za-z0-9-]{1,60}):[ \t]?(.*)$")
_TYPICAL: Final = frozenset(
    {"from", "to", "cc", "subject", "date", "message-id", "received", "reply-to", "return-path", "mime-version"}
)
_ENVELOPE: Final = re.compile(r"From \S+ .*\d{4}\s*$")
_BASE64: Final = re.compile(r"[A-Za-z0-9+/=]{60,}\s*$")
_HEADERS_MAX_LINES: Final = 400


def looks_like(text: str) -> bool:
    """At least three typical headers in the first lines, before the first blank one."""
    names = set()
    for number, line in enumerate(lines_of(text[:8000])):
        if line.blank or number > 40:
            break
        if _ENVELOPE.match(line.text):
            continue
        found = _HEADER.match(line.text)
        if found is None and not line.text[:1].isspace():
            return False
        if found is not None:
            names.add(found.group(1).lower())
    return len(names & _TYPICAL) >= 3 and "from" in names


def outline(text: str) -> Outline:
    """Each message is a section of its own; its subject, sender and date are the context of its passages."""
    lines = list(lines_of(text))
    starts = [0] + [
        index for index in range(1, len(lines)) if lines[index - 1].blank and _ENVELOPE.match(lines[index].text) is not None
    ]
    blocks: list[Block] = []
    title = ""
    for number, first in enumerate(starts):
        stop = starts[number + 1] if number + 1 < len(starts) else len(lines)
        subject, message = _message(text, lines[first:stop], hard=number > 0)
        title = title or subject
        blocks.extend(message)
    return Outline(title=clip(title, TITLE_MAX_CHARS) if len(starts) == 1 else "", blocks=blocks)


def _message(text: str, lines: list[Line], *, hard: bool) -> tuple[str, list[Block]]:
    headers: dict[str, str] = {}
    body = 0
    last = ""
    for index, line in enumerate(lines[:_HEADERS_MAX_LINES]):
        if line.blank:
            body = index
            break
        found = _HEADER.match(line.text)
        if found is not None:
            last = found.group(1).lower()
            headers.setdefault(last, found.group(2))
        elif line.text[:1].isspace() and last:
            headers[last] += " " + line.text.strip()
        elif not (index == 0 and _ENVELOPE.match(line.text)):
            body = 0
            break
    if not lines:
        return "", []
    subject = clip(_decoded(headers.get("subject", "")), 120)
    sender = clip(_decoded(headers.get("from", "")), 60)
    heading = tuple(part for part in (subject, f"from {sender}" if sender else "") if part)
    split = lines[body].start if body else lines[0].start
    blocks = [Block(start=lines[0].start, end=split, heading=heading, hard=hard)] if split > lines[0].start else []
    blocks.extend(_body(text, split, lines[-1].end, heading, hard=hard and not blocks))
    return subject, blocks


def _body(text: str, start: int, end: int, heading: tuple[str, ...], *, hard: bool) -> list[Block]:
    """Paragraphs; a paragraph of base64 (an attachment) is skipped."""
    blocks = []
    for block in paragraphs(text, start, end, heading=heading, hard=hard):
        sample = text[block.start : min(block.end, block.start + 2000)].strip().split("\n")
        encoded = len(sample) >= 3 and all(_BASE64.match(line) for line in sample[:3])
        blocks.append(
            Block(start=block.start, end=block.end, heading=heading, hard=block.hard, skip=True) if encoded else block
        )
    return blocks


def _decoded(value: str) -> str:
    """RFC 2047 words decoded; as it stands when they are malformed."""
    if "=?" not in value:
        return value.strip()
    try:
        return str(make_header(decode_header(value))).strip()
    except (HeaderParseError, LookupError, UnicodeError, ValueError):
        return value.strip()
