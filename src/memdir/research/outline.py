"""The two plans that agents write as Markdown: `index.md` (target hierarchy, TODO list) and `report_outline.md` (sections)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from memdir.research.workspace import NOTES, SECTIONS, slug, split_lines

SECTIONS_MAX: Final = 40
HIERARCHY: Final = "Target Hierarchy"
TODO: Final = "TODO"
UNUSED: Final = "Unused Sources"
ROUND_LOG: Final = "Round Log"
_HEADING: Final = re.compile(r"(#{1,6})\s+(.*?)\s*#*$")
_BULLET: Final = re.compile(r"(\s*)[-*+]\s+(.*)$")
_TODO_ITEM: Final = re.compile(r"\s*[-*+]\s+\[([ xX~])\]\s+(.+)$")
_NOTE: Final = re.compile(rf"{NOTES}/[^\s`\[\](),;#]+?\.md")
_SOURCE: Final = re.compile(r"sources/[^\s`\[\](),;#]+?\.md")


@dataclass(frozen=True, slots=True, kw_only=True)
class Todo:
    text: str
    status: str
    """open, in progress, complete"""
    line: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """`number` counts from 1; `path` is where its text goes."""

    number: int
    title: str
    brief: str
    notes: tuple[str, ...]
    path: str
    line: int


def part(text: str, heading: str) -> list[tuple[int, str]]:
    """The numbered lines below the heading, down to the next one of the same or a higher level."""
    found: list[tuple[int, str]] = []
    level = 0
    for number, line in enumerate(split_lines(text), start=1):
        match = _HEADING.match(line)
        if match and level and len(match[1]) <= level:
            break
        if match and not level and match[2].casefold() == heading.casefold():
            level = len(match[1])
        elif level:
            found.append((number, line))
    return found


def todos(index: str) -> list[Todo]:
    statuses = {" ": "open", "~": "in progress"}
    return [
        Todo(text=match[2].strip(), status=statuses.get(match[1], "complete"), line=number)
        for number, line in part(index, TODO)
        if (match := _TODO_ITEM.match(line))
    ]


def hierarchy(index: str) -> dict[str, int]:
    """The notes that are planned, with the line that plans each: nested items, or whole paths."""
    found: dict[str, int] = {}
    above: list[tuple[int, str]] = []
    for number, line in part(index, HIERARCHY):
        match = _BULLET.match(line)
        if match is None:
            continue
        depth = len(match[1].expandtabs(4))
        name = match[2].strip().strip("`*").split(" ")[0].strip("`*:").removeprefix("./")
        if not name:
            continue
        while above and above[-1][0] >= depth:
            above.pop()
        is_whole = name.startswith(f"{NOTES}/") or name == NOTES
        path = name if is_whole or not above else f"{above[-1][1].rstrip('/')}/{name}"
        above.append((depth, path))
        if path.endswith(".md"):
            found[path if path.startswith(f"{NOTES}/") else f"{NOTES}/{path}"] = number
    return found


def unused(index: str) -> set[str]:
    """The sources that are listed as not used."""
    return {path for _number, line in part(index, UNUSED) for path in _SOURCE.findall(line)}


def title(outline: str) -> str:
    for line in split_lines(outline):
        match = _HEADING.match(line)
        if match and len(match[1]) == 1:
            return match[2]
    return ""


def sections(outline: str) -> list[Section]:
    """One for each heading of the second level."""
    result: list[Section] = []
    for line_number, heading, brief in _headed(outline):
        bare = re.sub(r"^\d+[.)]?\s+", "", heading).strip() or heading
        number = len(result) + 1
        notes = tuple(dict.fromkeys(_NOTE.findall(brief)))
        path = f"{SECTIONS}/{number:02d}-{slug(bare, 50)}.md"
        result.append(Section(number=number, title=bare, brief=brief.strip(), notes=notes, path=path, line=line_number))
    return result


def _headed(outline: str) -> Iterator[tuple[int, str, str]]:
    at, heading, lines = 0, "", list[str]()
    for number, line in enumerate(split_lines(outline), start=1):
        match = _HEADING.match(line)
        if match and len(match[1]) <= 2:
            if heading:
                yield at, heading, "\n".join(lines)
            at, heading, lines = number, match[2] if len(match[1]) == 2 else "", []
        else:
            lines.append(line)
    if heading:
        yield at, heading, "\n".join(lines)


def without_part(text: str, heading: str) -> str:
    """The text without a heading and what stands below it."""
    all_lines = split_lines(text)
    headed = (match[2].casefold() if (match := _HEADING.match(line)) else "" for line in all_lines)
    at = next((number for number, found in enumerate(headed) if found == heading.casefold()), None)
    if at is None:
        return text
    below = part(text, heading)
    kept = all_lines[:at] + all_lines[below[-1][0] if below else at + 1 :]
    return "\n".join(kept).rstrip("\n") + "\n"
