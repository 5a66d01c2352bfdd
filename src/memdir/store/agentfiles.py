"""An agent's memory as a Markdown file: front matter, then the text. Written one way, read in any that a person may write."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

from memdir.core.clock import iso_ms
from memdir.store.words import fold

TOKEN_CHARS: Final = 4
"""About, as the seed counts: 512 tokens are about 2,048 characters."""
PIECE_MAX_CHARS: Final = 512 * TOKEN_CHARS
PIECE_MIN_CHARS: Final = 64 * TOKEN_CHARS
OVERLAP_CHARS: Final = 64 * TOKEN_CHARS
TAGS_MAX: Final = 20
TAG_MAX_CHARS: Final = 64
PROJECT_MAX_CHARS: Final = 100
_SLUG_WORDS: Final = 6
_SLUG_MAX_CHARS: Final = 48
_FRONT_MAX_LINES: Final = 200
_PAIR: Final = re.compile(r"([A-Za-z_][\w-]*)\s*:\s*(.*)")
_PLAIN: Final = re.compile(r"[^\W\d_][\w .+/@#-]*")
_UNSAFE: Final = re.compile(r"[\x00-\x1f\x7f/\\]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentFile:
    """What a file says. Times are None where it says nothing that is a time."""

    content: str
    tags: tuple[str, ...] = ()
    created_at_ms: int | None = None
    updated_at_ms: int | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)


def project_folder(name: str) -> str:
    """The name of a project as its folder spells it: one path component, nothing hidden."""
    text = _UNSAFE.sub("-", name).strip().strip(".").strip()[:PROJECT_MAX_CHARS]
    while len(text.encode("utf-8", "replace")) > 200:
        text = text[:-1]
    return text if text.strip("-") else "project"


def slug(content: str, digest: str) -> str:
    """A name for the file that tells people what it says: its first words, and six digits of its hash."""
    listed = re.findall(r"[^\W_]+", fold(content))[:_SLUG_WORDS]
    text = "-".join(listed)[:_SLUG_MAX_CHARS].strip("-")
    while len(text.encode("utf-8", "replace")) > 200:
        text = text[:-1]
    return f"{text}-{digest[:6]}" if text else digest[:12]


def rendered(
    content: str,
    *,
    tags: Sequence[str],
    project: str | None,
    created_at_ms: int,
    updated_at_ms: int,
    metadata: Mapping[str, Any],
) -> bytes:
    """The file."""
    lines = ["---", f"tags: [{', '.join(map(_scalar, tags))}]"]
    if project is not None:
        lines.append(f"project: {_scalar(project)}")
    lines += [f"created: {iso_ms(created_at_ms)}", f"updated: {iso_ms(updated_at_ms)}"]
    if metadata:
        lines.append(f"metadata: {json.dumps(dict(metadata), ensure_ascii=False, sort_keys=True)}")
    return ("\n".join([*lines, "---", ""]) + content + "\n").encode("utf-8", "replace")


def parsed(text: str) -> AgentFile:
    """What a file says, however its front matter is written; without any, all of it is the text."""
    text = text.removeprefix("\ufeff").replace("\r\n", "\n")
    front, body = _divided(text)
    pairs = _pairs(front)
    return AgentFile(
        content=body.strip(),
        tags=_tags(pairs.get("tags") or pairs.get("tag") or ""),
        created_at_ms=_moment(pairs.get("created") or pairs.get("date") or ""),
        updated_at_ms=_moment(pairs.get("updated") or pairs.get("modified") or ""),
        metadata=_object(pairs.get("metadata", "")),
    )


def pieces(content: str) -> list[str]:
    """The text, cut into pieces of at most 512 tokens that overlap by 64, none below 64, at white space where there is some."""
    if len(content) <= PIECE_MAX_CHARS:
        return [content]
    found: list[str] = []
    start = 0
    while True:
        end = min(start + PIECE_MAX_CHARS, len(content))
        if end < len(content):
            end = _break_before(content, start + PIECE_MAX_CHARS * 3 // 4, end)
        found.append(content[start:end].strip())
        if end == len(content):
            return [piece for piece in found if piece]
        start = _break_before(content, end - OVERLAP_CHARS - 32, end - OVERLAP_CHARS)


def _break_before(content: str, low: int, high: int) -> int:
    """Behind the last line, or else the last word, that ends in the range; its end when there is none."""
    for mark in ("\n", " "):
        at = content.rfind(mark, low, high)
        if at >= 0:
            return at + 1
    return high


def _divided(text: str) -> tuple[list[str], str]:
    if not text.startswith("---\n"):
        return [], text
    lines = text.split("\n", _FRONT_MAX_LINES + 2)
    for at in range(1, len(lines)):
        if lines[at].strip() in ("---", "..."):
            return lines[1:at], "\n".join(lines[at + 1 :])
    return [], text


def _pairs(lines: Sequence[str]) -> dict[str, str]:
    """Keys and values of one level; the items of a list under a key are put between commas."""
    found: dict[str, str] = {}
    key = ""
    for line in lines:
        pair = _PAIR.fullmatch(line.rstrip())
        if pair is not None:
            key = pair[1].casefold()
            found[key] = pair[2].strip()
        elif key and line.strip().startswith("- "):
            item = line.strip()[2:].strip()
            found[key] = f"{found[key]}, {item}" if found[key] else item
    return found


def _tags(value: str) -> tuple[str, ...]:
    text = value.strip()
    if text.startswith("[") and text.endswith("]"):
        text = text[1:-1]
    items = re.findall(r'"(?:[^"\\]|\\.)*"|\'[^\']*\'|[^,]+', text)
    tags = dict.fromkeys(filter(None, (_unquoted(item.strip()).lstrip("#").strip()[:TAG_MAX_CHARS] for item in items)))
    return tuple(tags)[:TAGS_MAX]


def _unquoted(item: str) -> str:
    if len(item) >= 2 and item[0] == item[-1] == '"':
        try:
            return str(json.loads(item))
        except ValueError:  # not JSON's way of quoting: what stands between the quotes
            return item[1:-1]
    if len(item) >= 2 and item[0] == item[-1] == "'":
        return item[1:-1]
    return item


def _scalar(text: str) -> str:
    """A YAML scalar: plain where nothing in it means something else."""
    plain = _PLAIN.fullmatch(text) and text == text.strip() and "# " not in text and " #" not in text
    return (
        text
        if plain and text.casefold() not in ("true", "false", "null", "yes", "no")
        else json.dumps(text, ensure_ascii=False)
    )


def _moment(value: str) -> int | None:
    text = _unquoted(value.strip())
    if not text:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:  # a person wrote something else there; the file's own time counts
        return None
    aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    try:
        return int(aware.timestamp() * 1000)
    except (OverflowError, ValueError):  # a year that no clock has
        return None


def moment_ms(value: str | None) -> int | None:
    """A time of the wire; None for none, or for text that is no time."""
    return None if value is None else _moment(value)


def _object(value: str) -> Mapping[str, Any]:
    if not value.startswith("{"):
        return {}
    try:
        found = json.loads(value)
    except ValueError:  # YAML that is no JSON: kept in the file, not read
        return {}
    return found if isinstance(found, dict) else {}
