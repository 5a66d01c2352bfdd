"""What a passage says, statement by statement, and what each stands under: the structure that lines are chosen by.

A statement is a line, a sentence of a long line, or a sentence that is wrapped over lines. It stands under the heading, the
question, the key, the signature or the list item that leads on to it: words asked for may be there, and the answer below.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from memdir.retrieval.units import Unit
from memdir.store.text.sentences import sentences
from memdir.store.text.wrapping import is_rule, is_title, starts_anew

PARENTS_MAX: Final = 6
ANSWERS_MAX: Final = 3
"""Statements right below a question that may answer it."""
WIDTH_MIN: Final = 44
"""A text is not wrapped at less; one without spaces may be at UNSPACED_WIDTH_MIN."""
UNSPACED_WIDTH_MIN: Final = 15
SLACK: Final = 3
"""Characters that a line may be shorter than it had to be: writers hyphenate and break before long words."""
_SHORT_LEAD_WORDS: Final = 4
"""A line with no more words that has indented ones below it names what they are about."""

_HEADING: Final = re.compile(r"\s*(?:#{1,6}\s|={2,}\s|\*{2,}\s|---|\*\*[^*]{1,80}\*\*:?$|\[+[^\]\n]{1,80}\]+$)")
_COMMENT: Final = re.compile(r"\s*(?://|/\*|\*\s|#[^#!\s]|# |--\s|;;)")
_MAIL_HEADER: Final = re.compile(
    r"(?:from|to|cc|date|reply-to|return-path|received|message-id|in-reply-to|references|mime-version|content-[a-z-]+): \S",
    re.IGNORECASE,
)
_QUOTED: Final = re.compile(r"\s*>")
_LEADS_ON: Final = ("?", "？", ":", "：", "{", "(", "[", "?**", ":**", "=>", "か。")
_STOP: Final = re.compile(r"[.!?…][\"')»”]*(?:\s|$)")
_CODE_ENDS: Final = ("{", "}", ";", "(", "[", "=", "\\", "|", "`", "：", '"""')
_ITEM: Final = re.compile(r"\s*(?:[-*+•]|\d{1,3}[.)])\s")
_MARKUP: Final = re.compile(r"(?::[\w:-]+:)?(`{1,2})[^`]+\1_{0,2}|<https?://[^>\s]+>`?_{0,2}")
"""Code and references within prose: a word of it."""
_PROSE_WORDS: Final = re.compile(r"(?<!\S)[(\"'“„«]*[^\W\d_][\w'’-]*[.,;:!?…)\"'”»]*(?!\S)")
_PAIR: Final = re.compile(r"[^:.!?]{2,80}: \S[^:!?]{0,40}$|[^=.!?]{1,80} ?= ?\S[^=]{0,40}$|[^|]+\|")
"""A key and its value: a line of its own, however full it is."""
_UNSPACED_LINE: Final = re.compile("[\u3040-\u30ff\u3400-\u9fff\u0e00-\u0eff].*[\u3040-\u30ff\u3400-\u9fff\u0e00-\u0eff]")


@dataclass(slots=True, kw_only=True)
class Statement:
    """Units `first` to `last` (inclusive) of a passage hold it; characters `start` to `end` are its own."""

    first: int
    last: int
    start: int
    end: int
    indent: int
    heading: bool
    lead: bool
    """Says what comes next; alone it answers nothing."""
    mail_header: bool
    """Of a mail, and not its subject."""
    comment: bool
    """Says what comes next is about."""
    parents: tuple[int, ...] = ()
    """Numbers of the statements it stands under, the nearest first."""


def statements_of(text: str, units: Sequence[Unit]) -> list[Statement]:
    """All statements of a passage in order; every unit is in at least one."""
    found: list[Statement] = []
    for first, last, title in _paragraphs(text, units):
        found.extend(_of_run(text, units, first, last, title))
    for number, statement in enumerate(found):
        if not statement.lead and number + 1 < len(found):
            statement.lead = _names_what_follows(text, statement, found[number + 1])
    _find_parents(text, units, found)
    return found


def _of_run(text: str, units: Sequence[Unit], first: int, last: int, title: int | None) -> list[Statement]:
    """One unit is one statement, and so is a `title` with its rules; wrapped lines are sentences that may begin and end
    anywhere in them."""
    spans = [(units[first].start, units[last].end)]
    if title is not None:
        spans = [(units[title].start, units[title].end)]
    elif first < last:
        spans = list(sentences(text, *spans[0]))
    made = []
    for start, end in spans:
        own = [first, last]
        if title is None:
            own = [number for number in range(first, last + 1) if units[number].start < end and start < units[number].end]
        said = text[start:end]
        heading = title is not None or _HEADING.match(said) is not None
        made.append(
            Statement(
                first=own[0],
                last=own[-1],
                start=start,
                end=end,
                indent=_indent(text, units[first]),
                heading=heading,
                lead=heading or said.endswith(_LEADS_ON),
                mail_header=_MAIL_HEADER.match(said) is not None,
                comment=first == last and _COMMENT.match(said) is not None,
            )
        )
    return made


def _indent(text: str, unit: Unit) -> int:
    """Columns before a line's first character; 0 for a sentence further in."""
    before = text[text.rfind("\n", 0, unit.start) + 1 : unit.start]
    return 0 if before.strip() else len(before) + 3 * before.count("\t")


def _paragraphs(text: str, units: Sequence[Unit]) -> Iterator[tuple[int, int, int | None]]:
    """First and last unit of each wrapped paragraph, and of each title with its rules, and then which one is the title; every
    other line by itself."""
    position = 0
    while position < len(units):
        stop = position
        title = _title(text, units, position)
        if title is not None:
            yield position, title + 1, title
            position = title + 2
            continue
        while stop + 1 < len(units) and _may_go_on(text, units[stop], units[stop + 1]):
            stop += 1
        if stop > position and _is_wrapped(text, units[position : stop + 1]):
            yield position, stop, None
        else:
            yield from ((number, number, None) for number in range(position, stop + 1))
        position = stop + 1


def _title(text: str, units: Sequence[Unit], first: int) -> int | None:
    """The unit that is a title with a rule below it, of which unit `first` is the first: the title, or a rule above it."""
    for number in (first, first + 1):
        lines = units[first : number + 2]
        if len(lines) < number + 2 - first or lines[-1].line - lines[0].line != len(lines) - 1:
            return None
        said, below = (text[line.start : line.end] for line in lines[-2:])
        if not is_rule(said):
            return number if is_title(said, below) else None
    return None


def _may_go_on(text: str, left: Unit, right: Unit) -> bool:
    """Whether the next line could be the rest of a paragraph of prose."""
    if right.line - left.line != 1:
        return False
    before, after = _MARKUP.sub("code", text[left.start : left.end]), text[right.start : right.end]
    if starts_anew(after) or _HEADING.match(before) or before.endswith(_CODE_ENDS):
        return False
    if _COMMENT.match(before):
        return False
    inwards = _indent(text, right) - _indent(text, left)
    if inwards < 0 or (inwards > 0 and not _ITEM.match(before)):
        return False
    if _UNSPACED_LINE.search(before):
        return True
    words = len(before.split())
    return (words >= 3 or left.end - left.start >= WIDTH_MIN) and 10 * len(_PROSE_WORDS.findall(before)) >= 6 * words


def _is_wrapped(text: str, units: Sequence[Unit]) -> bool:
    """Sentences were broken where the next word had no room: nearly all such lines are full. Scripts without spaces, and a list
    item that goes on below its text, need less."""
    said = [text[unit.start : unit.end] for unit in units]
    if sum(_UNSPACED_LINE.search(line) is not None for line in said) * 2 > len(said):
        return max(len(line) for line in said) >= UNSPACED_WIDTH_MIN
    if not any(_STOP.search(line) for line in said):
        return False
    if 4 * sum(_PAIR.match(line) is not None for line in said) >= 3 * len(said):
        return False
    width = max(WIDTH_MIN, *(len(line) for line in said))
    broken = [(line, after) for line, after in pairwise(said) if not _STOP.search(line[-4:])]
    full = sum(
        len(line) + 1 + len(after.split(None, 1)[0]) > width - SLACK or (after[0].islower() and 5 * len(line) >= 3 * width)
        for line, after in broken
    )
    return 4 * full >= 3 * len(broken)


def _names_what_follows(text: str, statement: Statement, following: Statement) -> bool:
    said = text[statement.start : statement.end]
    if _QUOTED.match(said):
        return _QUOTED.match(text[following.start : following.end]) is None
    return following.indent > statement.indent and len(said.split()) <= _SHORT_LEAD_WORDS + (_ITEM.match(said) is not None)


def _find_parents(text: str, units: Sequence[Unit], found: list[Statement]) -> None:
    """Headings reach to the next heading, indentation as far as it goes, a question or comment to what is right below it."""
    heading: int | None = None
    above: list[int] = []
    opener: int | None = None
    left = 0
    for number, statement in enumerate(found):
        while above and found[above[-1]].indent >= statement.indent:
            above.pop()
        if statement.heading:
            heading, above, opener = number, [], None
            continue
        near: list[int] = []
        if opener is not None and _under(text, units, found, opener, number, left):
            near.append(opener)
            left -= 1
        else:
            opener = None
        near.extend(reversed(above))
        if heading is not None:
            near.append(heading)
        chain = [ancestor for parent in near for ancestor in (parent, *found[parent].parents)]
        statement.parents = tuple(dict.fromkeys(chain))[:PARENTS_MAX]
        if statement.lead or statement.comment:
            opener, left = number, ANSWERS_MAX
        above.append(number)


def _under(text: str, units: Sequence[Unit], found: Sequence[Statement], opener: int, number: int, left: int) -> bool:
    """Whether a statement is what its opener leads on to: list items of any number, else the next ones without a gap."""
    statement, before = found[number], found[number - 1]
    gap = units[statement.first].line - units[before.last].line
    if _ITEM.match(text[statement.start : statement.end]) and not _ITEM.match(text[found[opener].start : found[opener].end]):
        return gap <= 2
    if found[opener].indent != statement.indent or left <= 0:
        return False
    return gap <= 2 if number == opener + 1 else gap <= 1 and not starts_anew(text[statement.start : statement.end])
