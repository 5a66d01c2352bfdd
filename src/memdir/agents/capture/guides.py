"""What the guide files of a project (CLAUDE.md, AGENTS.md, …) tell agents, out of their Markdown: the items of lists, one each,
and of paragraphs the sentences that say a rule. Pure.

An item that stands under words with a colon is told with them ("When adding tests: …"), and one under a heading that names
what is wrong ("Pitfalls") with that heading: alone it would say the contrary. Of a long item its first sentences are told.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Final

from memdir.agents.capture.candidates import convention_of
from memdir.core.frontmatter import parse
from memdir.memory.agent_sessions import Candidate, fits
from memdir.store.text.sentences import sentences

_LEFT_OUT: Final = re.compile(
    r"<!-- memdir:begin.*?<!-- memdir:end[^\n]*|<!--.*?-->|^[ \t]*(```|~~~).*?(?:\1|\Z)", re.DOTALL | re.MULTILINE
)
_HEADING: Final = re.compile(r"#{1,6}\s+(.+?)[ #]*$")
_ITEM: Final = re.compile(r"(\s*)(?:[-*+]|\d{1,3}[.)])\s+(?:\[[ xX]\]\s+)?(\S.*)")
_NO_PROSE: Final = re.compile(r"\s*[|<>@]")
_CODE: Final = re.compile(r"(`+[^`]*`+)")
_LINK: Final = re.compile(r"!?\[([^\]]*)\]\(([^)\s]*)[^)]*\)")
STRONG: Final = re.compile(r"(?<!\s)\*\*|\*\*(?!\s)")
_EMPHASIS: Final = re.compile(r"(?<![\w*])\*(?=\S)([^*]+)(?<=\S)\*(?![\w*])")
_NAMES_WRONG: Final = re.compile(
    r"\b(?:don['’]?t|do not|not to|avoid|never|anti-?patterns?|mistakes?|pitfalls?|gotchas?|wrong|forbidden|prohibited)\b",
    re.IGNORECASE,
)
_RULE: Final = re.compile(
    r"^(?:always|never|use|prefer|avoid|do not|don['’]t|run|keep|ensure|make sure|follow|write|put)\b"
    r"|\b(?:must|never|always|do not|don['’]t|(?:is|are) (?:required|forbidden|not allowed)|instead of|rather than)\b",
    re.IGNORECASE,
)
_PARAGRAPH: Final = -1


@dataclass(slots=True)
class _Block:
    """A paragraph or an item with the lines that go on from it; `depth` is the item's indentation in columns."""

    depth: int
    heading: str
    text: str


def rules_of(markdown: str) -> list[Candidate]:
    """In the order of the text, each once."""
    blocks = [block for block in _blocks(parse(markdown)[1]) if block.text]
    found = {one.content: one for text in _told(blocks) if (one := convention_of(text)) is not None}
    return list(found.values())


def _blocks(text: str) -> Iterator[_Block]:
    heading = ""
    block: _Block | None = None
    for line in _LEFT_OUT.sub("\n", text).expandtabs(4).splitlines():
        title, item = _HEADING.match(line), _ITEM.match(line)
        if block is not None and not (title or item or not line.strip() or _NO_PROSE.match(line)):
            block.text += f" {line.strip()}"
            continue
        if block is not None:
            yield _plain(block)
            block = None
        if title:
            heading = title[1]
        elif item:
            block = _Block(depth=len(item[1]), heading=heading, text=item[2])
        elif line.strip() and not _NO_PROSE.match(line):
            block = _Block(depth=_PARAGRAPH, heading=heading, text=line.strip())
    if block is not None:
        yield _plain(block)


def _plain(block: _Block) -> _Block:
    """Without emphasis, links within the project as their words; without text where nothing but links was in it."""
    if len(_LINK.sub("", block.text).split()) > 1:
        text = _LINK.sub(_named, block.text)
        parts = _CODE.split(text)
        parts[::2] = (_EMPHASIS.sub(r"\1", STRONG.sub("", part)) for part in parts[::2])
        block.text = "".join(parts).strip()
    else:
        block.text = ""
    return block


def _named(link: re.Match[str]) -> str:
    return f"{link[1]} ({link[2]})" if link[2].startswith(("http:", "https:")) and link[1] != link[2] else link[1]


def _told(blocks: Sequence[_Block], head: str = "") -> Iterator[str]:
    at = 0
    while at < len(blocks):
        block = blocks[at]
        at += 1
        below: list[_Block] = []
        if block.text.endswith(":"):
            below = _below(block, blocks[at:])
            at += len(below)
        if below:
            above = _sentences(block.text)[-1]
            whole = f"{above} {'; '.join(one.text.rstrip('.,;') for one in below)}"
            yield from [whole] if fits(whole) else _told(below, above)
        elif block.depth == _PARAGRAPH:
            yield from (text for text in _sentences(block.text.rstrip(":")) if _RULE.search(text) and fits(text))
        else:
            wrong = f"{block.heading}:" if _NAMES_WRONG.search(block.heading) else ""
            yield _first_sentences(block.text.rstrip(",;: "), head or wrong)


def _below(head: _Block, following: Sequence[_Block]) -> list[_Block]:
    return list(takewhile(lambda one: one.depth > head.depth and one.heading == head.heading, following))


def _sentences(text: str) -> list[str]:
    return [text[start:end] for start, end in sentences(text)]


def _first_sentences(text: str, head: str) -> str:
    """As many as fit behind the head; where none does, as many as fit alone; "" where none fits at all."""
    for before in (f"{head} ", "") if head else ("",):
        told = before
        for sentence in _sentences(text):
            if not fits(told + sentence):
                break
            told += f"{sentence} "
        if told != before:
            return told.strip()
    return ""
