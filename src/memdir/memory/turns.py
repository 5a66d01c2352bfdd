"""Who says what in a text that several speak in: a conversation with a model, a chat that was exported, a letter or a mail
with its head. Pure.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date
from typing import Final

from memdir.memory.dates import is_day_first, written_on

_ROLE: Final = re.compile(
    r"^(?P<who>user|human|assistant|ai|system|developer|tool|function)(?: \([^)\n]{1,256}\))?[ \t]*:[ \t]*",
    re.IGNORECASE | re.MULTILINE,
)
"""How a turn of a conversation begins; `user (name):` names the speaker."""
_WHO: Final = r"(?P<who>[^\W\d_][^\n:<>\[\]|]{0,38}?|\+?\d[\d ()-]{6,20}\d)"
"""A name, or the telephone number of somebody who has none there."""
_TIME: Final = r"(?:\d{1,4}[./-]\d{1,2}[./-]\d{1,4},?[T ]+)?\d{1,2}[:.]\d{2}(?:[:.]\d{2})?(?: ?[AaPp]\.?[Mm]\.?)?"
_LINES: Final = (
    re.compile(rf"^[-*\t ]*(?:\[{_TIME}\]|\({_TIME}\)|{_TIME}(?: -)?) (?:{_WHO}: )?", re.MULTILINE),
    re.compile(rf"^[-*\t ]*(?:[\[(]?{_TIME}[\])]? )?<[@+ ]?{_WHO}> ", re.MULTILINE),
    re.compile(
        rf"^(?:\*\*)?{_WHO}(?:\*\*)? {{1,3}}[\[(]?{_TIME}[\])]?[ \t]*$(?=\n[^\n]*\S)(?!\n[^\n]* {_TIME}[ \t]*$)", re.MULTILINE
    ),
    re.compile(rf"^[-*\t ]*(?:\*\*)?{_WHO}(?:\*\*)? [\[(]{_TIME}[\])]:?(?: |$)", re.MULTILINE),
)
"""How a message begins in what chat programs export: `[10:02] Ana: …`, `12.11.26, 10:02 - Ana: …`, `<ana> …`,
`Ana [10:02] …`, `Ana  10:02 AM` above it."""
_MESSAGES_MIN: Final = 2
_SPOKEN: Final = re.compile(
    r"^[-*\t ]*(?:\*\*)?(?P<who>[^\W\d_][\w'’.-]{0,24}(?: [A-ZÀ-Þ][\w'’.-]{0,24}){0,2})(?:\*\*)?:(?:\*\*)?[ \t]+(?=\S)",
    re.MULTILINE,
)
"""`Ana: …`, which may be a key, too: a message where the user speaks of themselves in another."""
_OF_MYSELF: Final = re.compile(
    r"(?<![\w'’-])(?:I|I['’](?:m|ve|d|ll)|[Mm]y|[Ww]e|[Oo]ur|[Ii]ch|[Mm]eine?[mnrs]?|[Jj]e|[Yy]o|[Mm]i) "
)
_FORWARDED: Final = re.compile(r"[-_ \t]*(?:Begin )?(?:[Ff]orwarded|[Oo]riginal) [Mm]essage:?[-_ \t]*\n\s*")
_HEAD: Final = re.compile(
    r"(?:From [^\n]+\n)?(?:[ \t]*\n|[ \t]+\S[^\n]*\n|"
    r"(?:\*\*)?[A-Za-zÀ-ÿ][\w-]{1,40}(?:\*\*)?:(?:\*\*)?[ \t]+\S[^\n]*\n){2,64}(?=[ \t]*\n)"
)
"""Lines with the fields of a mail, some over several lines (RFC 5322, 2.2.3), up to the first empty one."""
_FROM: Final = re.compile(
    r"^(?:\*\*)?(?:From|Von|De|Från|Da)(?:\*\*)?:(?:\*\*)?[ \t]+\"?(?P<who>[^\n<\"(]*)", re.IGNORECASE | re.MULTILINE
)
_MAIL: Final = re.compile(r"^(?:\*\*)?(?:Subject|Betreff|Objet|Asunto|Ämne)\b|\w@\w", re.IGNORECASE | re.MULTILINE)
_OF_A_PROGRAM: Final = re.compile(
    r"^(?:MIME-Version|Content-Type|Message-ID|Received|Return-Path): ", re.IGNORECASE | re.MULTILINE
)
"""Fields that nobody types."""
SELF: Final = frozenset({"me", "myself", "ich", "moi", "yo", "jag", "ik"})
"""How people call themselves in what they write down, in lower case."""
_USER: Final = SELF | {"user", "human", "you", "du"}
_MACHINES: Final = frozenset(
    """
    assistant ai system developer tool function bot agent model claude chatgpt gpt gpt-4 gpt-4o gpt-5 gemini copilot codex
    cursor perplexity llama mistral grok siri alexa slackbot
    """.split()  # noqa: SIM905
)
ME: Final = ""
"""The speaker who is the user."""


@dataclass(frozen=True, slots=True)
class Turn:
    """Characters `start` to `end` of a text, who says them (`ME`, or a name), and on which day where that is told."""

    start: int
    end: int
    speaker: str
    day: date | None = None


def turns(text: str, position: int = 0, called: frozenset[str] = frozenset()) -> list[Turn] | None:
    """What people say in a text from a character on, in order, without what models and tools do; None where it has one voice.

    The user is who is called "me" or "user", or as the user is `called` (in lower case); else the only one who speaks with a
    model. Without any all are called by their names.
    """
    blank = re.compile(r"\s*").match(text, position)
    begin = blank.end() if blank else position
    users = _USER | called
    if _ROLE.match(text, begin) is not None:
        return _said([(found["who"], found) for found in _ROLE.finditer(text, begin)], len(text), users)
    forwarded = _FORWARDED.match(text, begin)
    head = _HEAD.match(text, begin if forwarded is None else forwarded.end())
    sender = None if head is None or _MAIL.search(head[0]) is None else _FROM.search(head[0])
    if head is not None and (sender is not None or _OF_A_PROGRAM.search(head[0]) is not None):
        who = ("" if sender is None else " ".join(sender["who"].split())) or "Somebody"
        return [Turn(head.end(), len(text), ME if who.casefold() in users else who, written_on(head[0]))]
    lines = sum(bool(line.strip()) for line in text[begin:].splitlines())
    for pattern in _LINES:
        found = list(pattern.finditer(text, begin))
        if sum(one["who"] is not None for one in found) >= max(_MESSAGES_MIN, lines / 3):
            return _said([((one["who"] or "").strip(" *"), one) for one in found], len(text), users)
    return _spoken(text, begin, lines, users)


def _spoken(text: str, begin: int, lines: int, users: frozenset[str]) -> list[Turn] | None:
    """Of lines that begin with names, one of them the user's, who says "I" there."""
    found = [(mark["who"], mark) for mark in _SPOKEN.finditer(text, begin)]
    if len(found) < _MESSAGES_MIN or len(found) < lines / 2 or len({who.casefold() for who, _ in found}) < _MESSAGES_MIN:
        return None
    said = _said(found, len(text), users)
    own = [one for one in said if one.speaker == ME]
    is_own = any(_OF_MYSELF.search(text, one.start, one.end) for one in own)
    takes_turns = len({one.speaker for one in said}) < len(said) and all(
        text[one.start : one.end].rstrip().endswith((".", "!", "?", "…")) for one in said
    )
    return said if own and (is_own or takes_turns) else None


def _said(marks: list[tuple[str, re.Match[str]]], end: int, users: frozenset[str]) -> list[Turn]:
    """Of the names and beginnings of messages; what stands behind one without a name is nobody's ("Bo left the group")."""
    names = {who.casefold() for who, _ in marks if who}
    people = names - _MACHINES
    day_first = is_day_first(" ".join(mark[0] for _, mark in marks))
    is_with_model = len(people) == 1 < len(names)
    ends = [mark.start() for _, mark in marks[1:]] + [end]
    return [
        Turn(
            mark.end(), stop, ME if is_with_model or who.casefold() in users else who, written_on(mark[0], day_first=day_first)
        )
        for (who, mark), stop in zip(marks, ends, strict=True)
        if who and who.casefold() not in _MACHINES
    ]
