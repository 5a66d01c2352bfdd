"""The statements of a Markdown text: sentences, list items, `key: value` lines, rows of tables and fields of front
matter, each with its exact place and the headings it stands under. Pure; what they mean is for `memory.extract`.

Passed over: fenced code, quotations, HTML comments, wider tables, and what a template asks to be filled in.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date
from itertools import pairwise
from typing import Final

from memdir.memory.dates import DAY_PREFIX
from memdir.memory.markup import cleaned
from memdir.memory.people_tables import COLUMNS_MAX, Person, are_of_people, person_in, rows_of_csv
from memdir.memory.personal import is_attribute
from memdir.memory.pronouns import CALLING, NEWS
from memdir.memory.pronouns_other_languages import NEWS_OTHER_LANGUAGES
from memdir.memory.turns import turns
from memdir.store.text.sentences import sentences

FRONT_MAX_CHARS: Final = 20_000
_LINE_MAX_CHARS: Final = 4000
"""What is longer is no heading and no pair; of a statement no more is given."""
_HEADING: Final = re.compile(r"(#{1,6})\s+(.+?)\s*#*$")
_RULE: Final = re.compile(r"([=~^\"'*+#-])\1{2,}")
"""A line of one character. It makes a heading of the line above: in Markdown `=` or `-`, in reStructuredText any of these, as
many as that line has characters."""
_LEVELS: Final = {"=": 1, "-": 2}
_OTHER_LEVEL: Final = 3
_BOLD_LINE: Final = re.compile(r"(?:\*\*|__)([^*_\n]{1,60}?):?(?:\*\*|__):?\s*$")
_BOLD_LEVEL: Final = 7
"""Of a line that is nothing but bold: it heads what follows, up to the next heading."""
_ITEM: Final = re.compile(r"(?P<indent>\s*)(?:[-*+•]|\d{1,3}[.)])\s+(?:\[(?P<box>[^\[\]\s\w]|[ xXa-zA-Z])\]\s+)?")
_OPEN_BOXES: Final = frozenset({" ", "/"})
_CLOSED_BOXES: Final = frozenset({"x", "X", "-", ">", "<"})
"""Done, cancelled, put off."""
_FENCE: Final = re.compile(r"\s{0,3}(`{3,}|~{3,})")
_QUOTED: Final = re.compile(r"\s{0,3}>\s?")
_CALLOUT: Final = re.compile(
    r"\s{0,3}>\s?\[!(?!(?:quote|cite|example|question|help|faq)\b)[\w-]+(?:\|[^\]\n]*)?\][+-]?\s*", re.IGNORECASE
)
"""A box with words of one's own, which is written like a quotation."""
SENTENCES: Final = frozenset({"sentence", "line"})
"""Forms of statements that are sentences."""
_MARK: Final = re.compile(
    r"^\[(?:(?:\d{4}-\d\d-\d\d[ T])?\d{1,2}[:.]\d{2}(?:[:.]\d{2})?(?: ?[AaPp][Mm])?|[a-z][a-z_-]{2,23})\]\s+(?=[^\W\d_])"
)
"""When an entry of a log was made; of an item its category, as Basic Memory writes (`- [preference] Likes tea #drinks`)."""
_LETTERS: Final = re.compile(r"[^\W\d_]{2}")
_LINK_ONLY: Final = re.compile(r"\s*(?:!?\[\[[^\[\]]*\]\]|!?\[[^\]]*\]\([^)]*\)|(?:#[^\W\d][\w/-]*\s*)+)\s*")
"""One that leads to another text, or tags: it says nothing."""
_TABLE_HEAD_ROWS: Final = 2  # the names of the columns, and the rule below
_COLUMNS_MAX: Final = 6
_ROW: Final = re.compile(r"\s*\|(?P<key>[^|\n]+)\|(?P<values>[^|\n]+(?:\|[^|\n]*){0,4}?)\|?\s*$")
_KEY_VALUE: Final = re.compile(r"(?P<key>[^\W\d_][\w '’/&.-]{0,39}?)(?: \([^()]{1,40}\))?(?:\s*:\s+|\s*：\s*)(?P<value>\S.*)$")
_ROW_SUBJECT: Final = re.compile(r"[A-ZÀ-Þ][\w'’-]*(?: [\w'’/.+-]+){1,5}")
"""What a row of a table is about, a product's number included: "Bosch WAN282 washing machine"."""
_FIELD: Final = re.compile(
    r"^(?P<key>[A-Za-z_][\w -]{0,39}?)[ \t]*:(?:[ \t]+(?P<value>\S.*)|[ \t]*\r?(?P<items>(?:\n[ \t]*-[ \t]+\S.*)+))$",
    re.MULTILINE,
)
_OF_EXTRACTION: Final = re.compile(r"^media_type: .*\nengine: ", re.MULTILINE)
"""What the extractors say of a file they read."""
_FRONT_SKIP: Final = frozenset(
    {
        *("title", "date", "created", "updated", "modified", "tags", "tag", "id", "uuid", "type", "layout", "slug", "draft"),
        *("aliases", "category", "categories", "source", "author", "version", "topic", "permalink", "description"),
        *("summary", "project", "metadata", "by", "trust", "confirmed", "seen", "may_replace", "subtitle", "image", "url"),
        *("weight", "class", "icon", "order", "keywords", "menu", "theme", "lang", "excerpt", "cover", "feed", "comments"),
        "toc",
    }
)
_KEYS_OF_FILE: Final = frozenset(
    {
        *("last updated", "last modified", "last edited time", "last edited by", "updated", "modified", "created"),
        *("created time", "created by", "id", "contact id", "uuid", "version", "up", "prev", "alias", "aliases", "tags"),
        *("collapsed", "stand", "zuletzt aktualisiert", "zuletzt geändert", "zuletzt bearbeitet"),
    }
)
"""Of lines that are about the file and not about anybody."""
_ABOUT_FILE: Final = re.compile(
    r"(?i)(?:what (?:goes (?:here|in)|this file)\b.*|(?:about|how to use) (?:this|the) (?:file|memory|document)\b.*|"
    r"how to use)$"
)
"""Headings of what a template says of itself."""
_VERB: Final = re.compile(
    r"(?i)\b(?:is|are|was|were|has|have|uses?|runs?|must|always|never|prefers?|likes?|lives?|works?|decided|agreed|because|"
    rf"{CALLING}|(?:{NEWS}) from|{NEWS_OTHER_LANGUAGES})\b"
)
"""A key of several words with one of these is the beginning of a sentence."""
_UNSPACED: Final = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3]")
_UNSPACED_KEY_MAX: Final = 8
_PLAIN_KEY_WORDS: Final = 3
_VALUE_MAX_CHARS: Final = 60
_NARROW: Final = 60
"""Prose is not wrapped at fewer characters."""
_UNFINISHED: Final = re.compile(
    r"(?:,|\b(?:a|an|the|my|our|your|his|her|of|on|in|at|to|for|with|by|from|and|or|but|is|are|was|were|that|which|der|die|das|den|"
    r"dem|ein|eine|im|am|zu|und|mit|für|auf|von|ist|el|la|los|las|un|una|de|del|en|y|con|para|por|es|le|les|des|du|et|à|"
    r"avec|pour|est))$",
    re.IGNORECASE,
)
"""The end of a line whose sentence does not end there."""
_ENTRY: Final = re.compile(rf"\s*(?:\d{{4}}-\d\d-\d\d[ ,:]|\d{{1,2}}\.\d{{1,2}}\.\d{{4}}[ ,:]|{DAY_PREFIX.pattern})")
"""How a line of a log begins that somebody keeps by hand: "2026-11-10: 6 km easy"."""
_BOLD_KEY_WORDS: Final = 6
_BLANK: Final = (
    r"\[(?!\[)[^\]]*[^\W\d_][^\]]*\]|\[\s*\]|<[^>]*>|\{[^}]*\}\}?|[-–—.…?/\s]+"
    r"|\(\([0-9a-f-]{36}\)\)|(?:n/?a|tbd|tba|todo|unknown|unset|optional|not (?:set|specified|provided|given|known)|"
    r"your \w+(?: here)?)\.?"
)
_BLANK_VALUE: Final = re.compile(rf"[\s*_]*(?:{_BLANK}|\([^)]*\))[\s*_]*", re.IGNORECASE)
"""What nobody has filled in: `[NAME]`, `<your name>`, `{{name}}`, `_(optional)_`, `-`, `TBD`."""
_BLANK_LINE: Final = re.compile(rf"[\s*_]*(?:{_BLANK})[\s*_]*|[*_]+\(.*\)[*_]+", re.IGNORECASE)
_TO_FILL: Final = re.compile(
    r"^\[[^\]]*[^\W\d_][^\]]*\](?!\().*\[[^\]]+\](?!\()|:\s*\((?i:yes/no)\)$|(?<!\[)\[[A-Z][A-Z_ ]{2,}\]|\{\{[^}]*\}\}|"
    r"<your[^>]*>"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """Characters `start` to `end` of a text, and what stands around them."""

    start: int
    end: int
    text: str
    """Without markup, in one line."""
    form: str
    """`item`, `task` (an item with an empty box), `pair` (`key: value`), `front` (the same in front matter), `sentence`, or
    `line` (a sentence in a paragraph whose lines each say something of their own)."""
    headings: tuple[str, ...] = ()
    """From the outermost; the last may be a bold line, or a list item that only opens a nested list."""
    speaker: str | None = None
    """Who says it where several speak, `turns.ME` for the user; None where the text has one voice."""
    day: date | None = None
    """When, where a message tells."""
    concerns_user: bool = False
    """Whether it is a report, or speaks of the user by name."""
    whom: str = ""
    """Whom it is about, where its place in a table tells."""
    is_report: bool = False
    """Whether somebody else, an agent, reports that the user said it."""

    @property
    def key(self) -> str:
        """Of a pair; empty for others."""
        found = _KEY_VALUE.match(self.text) if self.form in {"pair", "front"} else None
        return "" if found is None else found["key"]


def statements(text: str, *, is_csv: bool = False, called: frozenset[str] = frozenset()) -> Iterator[Statement]:
    """All of a text, as `markup.as_markdown` gives it, in order; of a conversation what people say in it, of CSV the rows that
    are people. `called`: names of the user."""
    if is_csv:
        yield from _in_csv(text)
        return
    position, front = _front_matter(text)
    yield from (one for one in front if not _is_blank(one))
    said = turns(text, position, called)
    if said is None:
        yield from _read(text, position, len(text))
    else:
        for turn in said:
            yield from (replace(one, speaker=turn.speaker, day=turn.day) for one in _read(text, turn.start, turn.end))


def _read(text: str, start: int, end: int) -> Iterator[Statement]:
    for one in _Reader(text).read(start, end):
        said = _MARK.sub("", cleaned(one.text[:_LINE_MAX_CHARS]))
        if said and not _is_blank(one) and _LINK_ONLY.fullmatch(one.text) is None:
            yield replace(one, text=said)


def _is_blank(one: Statement) -> bool:
    said = cleaned(one.text[:_LINE_MAX_CHARS])
    pair = _KEY_VALUE.match(said) if one.form in {"pair", "front"} else None
    if any(_ABOUT_FILE.match(heading) for heading in one.headings) or (
        pair is not None and pair["key"].casefold() in _KEYS_OF_FILE
    ):
        return True
    written = one.text[:_LINE_MAX_CHARS].strip()
    is_blank = _BLANK_LINE.fullmatch(written) if pair is None else _BLANK_VALUE.fullmatch(pair["value"])
    return is_blank is not None or _TO_FILL.search(said) is not None


class _Reader:
    """One pass over the lines; a list item or a paragraph is open until something ends it."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._headings: list[tuple[int, str]] = []
        self._parents: list[tuple[int, str]] = []
        """Items that open a nested list, with their indents."""
        self._item: tuple[int, int, int] | None = None
        self._is_task = False
        self._paragraph: tuple[int, int] | None = None
        self._fence = ""
        self._rows = 0
        self._columns: list[str] = []
        """Names of a table's columns."""
        self._are_people = False
        self._is_callout = False

    def read(self, position: int, end: int) -> Iterator[Statement]:
        while position < end:
            newline = self._text.find("\n", position, end)
            stop = end if newline < 0 else newline
            yield from self._line(position, stop)
            position = stop + 1
        yield from self._close()

    def _line(self, start: int, stop: int) -> Iterator[Statement]:
        line = self._text[start:stop]
        quoted = _QUOTED.match(line)
        box = None if quoted is None else _CALLOUT.match(line)
        self._is_callout = box is not None or (self._is_callout and quoted is not None)
        if self._is_callout and (mark := box or quoted) is not None:
            yield from self._close()
            start += mark.end()
            line = self._text[start:stop]
        stripped = line.strip()
        rule = None if self._fence else _RULE.fullmatch(stripped)
        if rule is not None and self._make_heading(stripped, start):
            return
        in_fence = self._in_fence(line)
        self._rows = self._rows + 1 if stripped.startswith("|") and not in_fence else 0
        if in_fence or rule is not None or not stripped or stripped.startswith((">", "|", "<!--", "---", "===")):
            yield from self._close()
            yield from self._row(start, stop)
            return
        is_short = len(line) <= _LINE_MAX_CHARS
        heading = _HEADING.match(line) if is_short else None
        item = _ITEM.match(line)
        if heading is not None:
            yield from self._close()
            self._head(len(heading.group(1)), heading.group(2))
        elif is_short and (bold := _BOLD_LINE.match(line)) is not None:
            yield from self._close()
            self._head(_BOLD_LEVEL, bold.group(1))
        elif item is not None:
            yield from self._close()
            indent = len(item["indent"].expandtabs(4))
            while self._parents and self._parents[-1][0] >= indent:
                self._parents.pop()
            if item["box"] not in _CLOSED_BOXES:
                self._item = (start + item.end(), stop, indent)
                self._is_task = item["box"] in _OPEN_BOXES
        elif self._item is not None and line[:1].isspace():
            self._item = (self._item[0], stop, self._item[2])
        else:
            if self._item is not None:
                yield from self._close()
            self._parents.clear()
            first = start + len(line) - len(line.lstrip())
            self._paragraph = (self._paragraph[0] if self._paragraph else first, stop)

    def _make_heading(self, rule: str, start: int) -> bool:
        """Make a heading of the line above a rule; False where it is none."""
        title = "" if self._paragraph is None else self._text[self._paragraph[0] : start - 1]
        if not title or "\n" in title or (rule[0] not in _LEVELS and len(rule) < len(title.rstrip())):
            return False
        self._paragraph = None
        self._head(_LEVELS.get(rule[0], _OTHER_LEVEL), title)
        return True

    def _head(self, level: int, title: str) -> None:
        self._parents.clear()
        while self._headings and self._headings[-1][0] >= level:
            self._headings.pop()
        self._headings.append((level, cleaned(title)))

    def _row(self, start: int, stop: int) -> Iterator[Statement]:
        """Of a table of two to six columns each row behind the head is a pair; with a day before it, an item. Of more than two
        columns the names stand before the values."""
        if self._rows == 1:
            self._columns = self._cells(start, stop)
            self._are_people = are_of_people(self._columns)
        is_data = self._rows > _TABLE_HEAD_ROWS and stop - start <= _LINE_MAX_CHARS
        person = person_in(self._columns, self._cells(start, stop)) if is_data and self._are_people else None
        if person is not None:
            yield from _of_person(self._text, start, stop, person, self._above())
            return
        found = _ROW.match(self._text, start, stop) if is_data else None
        if found is None:
            return
        cells = [cleaned(one) for one in found["values"].split("|")]
        called = self._columns[1:] if 1 < len(cells) == len(self._columns) - 1 else [""] * len(cells)
        values = " – ".join(f"{name} {cell}".strip() for name, cell in zip(called, cells, strict=True) if cell.strip("-–— "))
        key = cleaned(found["key"])
        said = f"{key}: {values}"
        is_dated = DAY_PREFIX.match(said) is not None and _LETTERS.search(values) is not None
        if values and (is_dated or _is_pair(said) or _ROW_SUBJECT.fullmatch(key) is not None):
            yield Statement(start=start, end=stop, text=said, form="item" if is_dated else "pair", headings=self._above())

    def _cells(self, start: int, stop: int) -> list[str]:
        row = self._text[start : min(stop, start + _LINE_MAX_CHARS)].strip().removeprefix("|").removesuffix("|")
        return [cleaned(one) for one in row.split("|", COLUMNS_MAX + 2)]

    def _in_fence(self, line: str) -> bool:
        mark = _FENCE.match(line)
        if mark is None:
            return bool(self._fence)
        if not self._fence:
            self._fence = mark.group(1)[0]
        elif mark.group(1)[0] == self._fence:
            self._fence = ""
        return True

    def _above(self) -> tuple[str, ...]:
        return tuple(name for _, name in (*self._headings, *self._parents))

    def _close(self) -> Iterator[Statement]:
        item, paragraph = self._item, self._paragraph
        self._item = self._paragraph = None
        if item is not None:
            start, end, indent = item
            said = self._text[start:end].strip()
            if len(said) <= _LINE_MAX_CHARS and said.rstrip("*_ ").endswith((":", "：", "..", "…")):
                self._parents.append((indent, cleaned(said).rstrip("*_:：.… ")))
            elif said:
                yield from _item(self._text, start, end, self._above(), form="task" if self._is_task else "item")
        if paragraph is not None:
            yield from _paragraph(self._text, *paragraph, self._above())


def _of_person(text: str, start: int, stop: int, said: Person, above: tuple[str, ...]) -> Iterator[Statement]:
    """A statement for each cell of a row."""
    name, facts = said
    at = start
    for form, words in facts:
        cell = words.partition(": ")[2] if form == "pair" else words
        at = max(text.find(cell, at, stop), at)
        yield Statement(start=at, end=min(at + len(cell), stop), text=words, form=form, headings=above, whom=name)
        at += 1


def _in_csv(text: str) -> Iterator[Statement]:
    rows = rows_of_csv(text)
    _, _, columns = next(rows, (0, 0, []))
    for start, stop, cells in rows if are_of_people(columns) else ():
        person = person_in(columns, cells)
        if person is not None:
            yield from _of_person(text, start, stop, person, ())


def _front_matter(text: str) -> tuple[int, list[Statement]]:
    """Where the text goes on, and the pairs of the front matter that say something about their subject."""
    if not text.startswith(("---\n", "---\r\n")):
        return 0, []
    end = re.compile(r"^(?:---|\.\.\.)[ \t]*\r?$", re.MULTILINE).search(text, 4)
    if end is None or end.start() > FRONT_MAX_CHARS:
        return 0, []
    if _OF_EXTRACTION.search(text, 4, end.start()) is not None:
        return end.end(), []
    found = []
    for field in _FIELD.finditer(text, text.index("\n") + 1, end.start()):
        value = _value(field)
        if field["key"].casefold() in _FRONT_SKIP or ("_" in field["key"] and value.casefold() in {"true", "false"}):
            continue  # the latter is a setting of a web site
        said = cleaned(f"{field['key'][:1].upper()}{field['key'][1:]}: {value or '-'}")
        found.append(Statement(start=field.start(), end=field.end(), text=said, form="front"))
    return end.end(), found


def _value(field: re.Match[str]) -> str:
    """Without quotes and comments; a list with commas."""
    value = re.sub(r"\s#(?:\s.*)?$", "", f" {field['value'] or ''}").strip()
    if field["items"] is not None:
        items = re.sub(r"^[ \t]*-", "", field["items"].strip(), flags=re.MULTILINE).splitlines()
    else:
        is_list = value.startswith("[") and value.endswith("]") and not value.startswith("[[") and "," in value
        items = value[1:-1].split(",") if is_list else [value]
    return ", ".join(plain for item in items if (plain := item.strip().strip("\"'")))


def _is_pair(line: str) -> bool:
    """`key: value` with a short name for a key; "Decided on 3 May: …" and "X is Y: …" are statements."""
    found = _KEY_VALUE.match(cleaned(line)) if len(line) <= _LINE_MAX_CHARS else None
    if found is None:
        return False
    key = found["key"]
    if _UNSPACED.search(key) is not None and len(key) > _UNSPACED_KEY_MAX:
        return False
    most = _BOLD_KEY_WORDS if re.match(r"\s*(?:\*\*|__)[^*_]+:(?:\*\*|__)", line) else _PLAIN_KEY_WORDS
    if len(key.split()) > most or any(char.isdigit() for char in key):
        return False
    return " " not in key or _VERB.search(key) is None


def _item(text: str, start: int, end: int, headings: tuple[str, ...], *, form: str) -> Iterator[Statement]:
    """A list item is one pair, or its sentences."""
    while end > start and text[end - 1].isspace():
        end -= 1
    if form == "item" and _is_pair(text[start:end]):
        yield Statement(start=start, end=end, text=text[start:end], form="pair", headings=headings)
        return
    for first, last in sentences(text, start, end):
        yield Statement(start=first, end=last, text=text[first:last], form=form, headings=headings)


def _paragraph(text: str, start: int, end: int, headings: tuple[str, ...]) -> Iterator[Statement]:
    """Its sentences; lines of `key: value` and bold definitions stand for themselves, and so does the one line under a heading
    that is a key ("## Timezone")."""
    lines = text[start:end].split("\n")
    is_value = len(lines) == 1 and len(lines[0]) <= _VALUE_MAX_CHARS and not lines[0].rstrip().endswith((".", "!", "?"))
    if headings and is_value and is_attribute(headings[-1]) and _is_pair(f"{headings[-1]}: {lines[0]}"):
        yield Statement(start=start, end=end, text=f"{headings[-1]}: {lines[0].strip()}", form="pair", headings=headings[:-1])
        return
    are_definitions = all(_is_pair(line) or re.match(r"\s*\*\*[^*]+\*\*\s+\S", line) for line in lines)
    if not are_definitions and not _has_hard_breaks(lines):
        for first, last in sentences(text, start, end):
            yield Statement(start=first, end=last, text=text[first:last], form="sentence", headings=headings)
        return
    position = start
    for line in lines:
        lead = len(line) - len(line.lstrip())
        whole = [(position + lead, position + len(line.rstrip()))]
        spans = whole if are_definitions else list(sentences(text, position, position + len(line)))
        if len(spans) > 1 and _is_pair(text[spans[0][0] : spans[0][1]]):
            spans = whole  # "Landlord: Herr Wendt. He only answers texts."
        for first, last in spans:
            is_pair = len(spans) == 1 and _is_pair(text[first:last])
            is_entry = len(spans) == 1 and text[last - 1] != "." and _ENTRY.match(text, first, last) is not None
            form = "item" if is_entry else "pair" if is_pair else "sentence" if are_definitions else "line"
            yield Statement(start=first, end=last, text=text[first:last], form=form, headings=headings)
        position += len(line) + 1


def _has_hard_breaks(lines: Sequence[str]) -> bool:
    """Whether each line says something of its own: none ends in the middle of a sentence, and each has its full stop, or some
    end where the next word would have had room. Where lines begin with small letters, none has a full stop, and most have
    room. A line by itself does, unless it is a whole sentence."""
    if all(map(_ENTRY.match, lines)):
        return True
    width = max(_NARROW, *map(len, lines))
    pairs = [(line.rstrip(), after.split()[0]) for line, after in pairwise(lines)]
    if not pairs:
        line = lines[0].strip()
        return line[:1] not in {"*", "_"} and not line.rstrip("\"')*_ ").endswith((".", "!", "?", ":", ";", ",", "。"))
    if any(_UNFINISHED.search(line) for line, _ in pairs):
        return False
    with_room = sum(len(line) + 1 + len(word) <= width for line, word in pairs)
    if any(word[:1].islower() for _, word in pairs):
        return with_room * 2 > len(pairs) and not any(line.endswith((".", ";")) for line, _ in pairs)
    return with_room > 0 or all(line.endswith((".", "!", "?", ":", ";")) for line, _ in pairs)
