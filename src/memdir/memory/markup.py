"""Plain text of Markdown, as GitHub and note programs (Obsidian, Logseq, Bear) write it: emphasis, links, wiki links, marked
and struck words, tags, marks of tasks. Pure.

What is dropped is dropped only: the plain text is its source without some characters, so that `source_at` finds the way back.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

_KNOWN: Final = 4096
"""Statements of about one text: each is read, split and judged."""
_SMALL_I: Final = re.compile(
    r"(?<![\w.'’-])i(?=['’](?:m|ve|d|ll)\b| (?:am|was|have|had|do|don['’]t|can|can['’]t|will|think|prefer|like|love|hate|use|"
    r"need|want|live|work|never|always|usually|also|now|just|still|got|moved|started|stopped|gave|bought|sold|take|run|drink|eat)\b)"
)
_LINK: Final = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
_WIKI_LINK: Final = re.compile(
    r"(?P<shown>!?)\[\[(?:[^\[\]|#]*/)?(?P<page>[^\[\]|#]*)(?:#[^\[\]|]*)?(?:\|(?P<alias>[^\[\]]*))?\]\]"
)
"""`[[page]]`, `[[folder/page#heading|as it is called here]]`, `![[a page or a file that is shown here]]`."""
_ORG_LINK: Final = re.compile(r"\[\[[^\[\]]*\]\[([^\[\]]*)\]\]")
_EMPHASIS: Final = (
    re.compile(r"(\*\*|__|==)(?=\S)(.+?)(?<=\S)\1"),
    re.compile(r"(?<![\w*\\])(\*)(?=[^\s*])([^*]+?)(?<=\S)\*(?![\w*])"),
    re.compile(r"(?<![\w_\\])(_)(?=[^\s_])([^_]+?)(?<=\S)_(?![\w_])"),
)
_FIELD: Final = re.compile(r"^([^:]{1,40})::(?=\s)")
"""`key:: value`, as Dataview and Logseq read it."""
_STRUCK: Final = re.compile(r"~~(?=\S).+?(?<=\S)~~")
_NOTE_MARKS: Final = re.compile(r"\[\^[^\]\s]+\]|\s\^[\w-]+$")
"""Of footnotes and, at the end of a line, of a block that others link to."""
_TASK_MARKS: Final = re.compile(r"\s*(?:[🔺⏫🔼🔽⏬]|[➕✅❌]\ufe0f? ?\d{4}-\d{2}-\d{2})\ufe0f?")
"""A task's priority, and when it was made or done."""
_TAGS: Final = re.compile(r"(?:\s+#(?![0-9a-fA-F]{3}(?:[0-9a-fA-F]{3})?\b)[^\W\d_][\w/-]*)+\s*$")
_LEADING_TAGS: Final = re.compile(r"^(?:#[^\W\d_][\w/-]*\s+)+(?=\S)")
_NEEDS_MORE: Final = re.compile(
    r"(?:[:,]|\b(?:in|on|at|to|is|are|of|via|the|my|our|channel|tag|and|or|im|auf|ist|en|es|sur|dans|est))$", re.IGNORECASE
)
"""What a tag is a part of: "Deploys are announced in #releases"."""
_COMMENT: Final = re.compile(r"<!--.*?-->", re.DOTALL)
_OBSIDIAN_COMMENT: Final = re.compile(r"%%[^%\n]+%%|^%%[ \t]*$.*?^%%[ \t]*$", re.DOTALL | re.MULTILINE)
_ADMONITION: Final = re.compile(r"^\.\. [a-z][\w-]*::", re.MULTILINE)
"""Of reStructuredText; what follows is said."""
_DRAWER: Final = re.compile(
    r"^[ \t]*:[A-Za-z_-]{1,40}:[ \t]*\n(?:(?![ \t]*:[A-Za-z_-]{1,40}:[ \t]*$)[^\n]*\n){0,99}[ \t]*:END:[ \t]*$", re.MULTILINE
)
_LOGSEQ_SETTING: Final = re.compile(
    r"(?<=- )(?:collapsed|id):: [^\n]*$|^[ \t]+(?:collapsed|id|logseq\.[\w.-]+|created-at|updated-at|heading|background-color|"
    r"query-[\w-]+|card-[\w-]+):: [^\n]*$",
    re.MULTILINE,
)
_TASK: Final = re.compile(
    r"^(?P<indent>[ \t]*)(?:[-+]|\*+) (?P<state>TODO|NEXT|LATER|DOING|NOW|WAITING|WAIT|STARTED|DONE|CANCELL?ED) (?=\S)",
    re.MULTILINE,
)
_DONE: Final = frozenset({"DONE", "CANCELED", "CANCELLED"})
_ORG_HEADING: Final = re.compile(r"^\*+(?= )", re.MULTILINE)
_ORG_SETTING: Final = re.compile(r"^[ \t]*(?:#\+\w+:|CLOSED: |CLOCK: )[^\n]*$", re.MULTILINE)
_ORG_EMPHASIS: Final = re.compile(r"(?<![\w/])/(?=\S)([^/\n]+?)(?<=\S)/(?![\w/])")


@lru_cache(maxsize=_KNOWN)
def cleaned(text: str) -> str:
    """Without markup and folded white space, with "I" where "i" was typed; one line. What is struck out is not said."""
    text = _SMALL_I.sub("I", " ".join(text.split()))
    text = _LINK.sub(r"\1", text)
    if "[[" in text:
        text = _WIKI_LINK.sub(_named, _ORG_LINK.sub(r"\1", text))
    text = _STRUCK.sub("", text)
    for emphasis in _EMPHASIS:
        text = emphasis.sub(r"\2", text)
    text = _FIELD.sub(r"\1:", text)
    text = _TASK_MARKS.sub("", _NOTE_MARKS.sub("", text))
    text = _LEADING_TAGS.sub("", text)
    tags = _TAGS.search(text)
    if tags is not None and tags.start() and _NEEDS_MORE.search(text[: tags.start()].rstrip()) is None:
        text = text[: tags.start()]
    return " ".join(text.replace("`", "").split())


def _named(link: re.Match[str]) -> str:
    return "" if link["shown"] else link["alias"] or link["page"]


def source_at(source: str, plain: str, position: int) -> int:
    """Where in a text the character at a position of its plain text stands; the first of several that it could be."""
    at = 0
    for char in plain[:position]:
        while at < len(source) and not _is_same(char, source[at]):
            at += 1
        at += 1
    return min(at, len(source))


def _is_same(plain: str, source: str) -> bool:
    return plain == source or (plain == " " and source.isspace()) or (plain == "I" and source == "i")


def as_markdown(text: str, *, is_org: bool) -> str:
    """A text with comments, drawers and settings blanked out, tasks of Logseq and Org as those of Markdown, and Org's headings
    and emphasis as Markdown's; each character stays where it was."""
    last = text.rfind("-->") + 3  # what is opened behind it is never closed, and looking for that costs its square
    text = _COMMENT.sub(blanked, text[:last]) + text[last:]
    text = _OBSIDIAN_COMMENT.sub(blanked, text)
    text = _ADMONITION.sub(blanked, text)
    text = _DRAWER.sub(blanked, text)
    text = _LOGSEQ_SETTING.sub(blanked, text)
    text = _TASK.sub(_task, text)
    if is_org:
        text = _ORG_SETTING.sub(blanked, text)
        text = _ORG_HEADING.sub(lambda found: "#" * len(found[0]), text)
        text = _ORG_EMPHASIS.sub(r"*\1*", text)
    return text


def blanked(found: re.Match[str]) -> str:
    """As many spaces, and the ends of its lines."""
    return re.sub(r"[^\n]", " ", found[0])


def _task(found: re.Match[str]) -> str:
    box = f"{found['indent']}- [{'x' if found['state'] in _DONE else ' '}]"
    return box.ljust(len(found[0]))
