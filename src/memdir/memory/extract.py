"""Facts from text by rules: front matter, list items, `key: value` lines, table rows, statements, dated events.

Everything found is said by the document in so many words; nothing is inferred. Each candidate carries its exact span.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date
from itertools import accumulate, compress
from typing import Final

from memdir.core.caseless import Caseless
from memdir.core.frontmatter import parse
from memdir.memory.claims import claim_of, formers_of
from memdir.memory.dates import Journal, day_of, ms_of, named_by, parsed, since
from memdir.memory.guard import is_instruction, is_secret
from memdir.memory.personal import personal, worth_remembering
from memdir.memory.pronouns import resolved
from memdir.store.agents.files import Provenance
from memdir.store.text.sentences import sentences
from memdir.store.types import MemoryCandidate

CANDIDATES_MAX: Final = 500
"""Of one document; what comes after is searchable but not remembered."""
TEXT_MIN_CHARS: Final = 6
TEXT_MAX_CHARS: Final = 400
_LOOK_MAX_CHARS: Final = 400_000
_FRONT_MAX_CHARS: Final = 20_000

_HEADING: Final = re.compile(r"(#{1,6})\s+(.+?)\s*#*$")
_ITEM: Final = re.compile(r"(\s*)(?:[-*+•]|\d{1,3}[.)])\s+(?:\[(?P<box>[ xX])\]\s+)?")
_FENCE: Final = re.compile(r"\s{0,3}(`{3,}|~{3,})")
_KEY_VALUE: Final = re.compile(r"(?P<key>[A-Za-z\u00c0-\u024f][\w '’/-]{0,39}?)\s*:\s+(?P<value>\S.*)$")
_FRONT_KEY: Final = re.compile(r"(?P<key>[A-Za-z_][\w -]{0,39}?)\s*:\s+(?P<value>\S.*)$")
_FRONT_SKIP: Final = frozenset(
    {
        *("title", "date", "created", "updated", "modified", "tags", "tag", "id", "uuid", "type", "layout", "slug", "draft"),
        *("aliases", "category", "categories", "source", "author", "version", "topic", "permalink", "status", "description"),
        *("summary", "project", "metadata", "by", "trust", "confirmed", "seen", "may_replace"),
    }
)
_DATED_BY: Final = ("updated", "modified", "last_modified", "date", "created")
"""Keys of front matter, the one that counts most first."""
_STATIC: Final = Caseless(
    r"\b(?:always|never|prefers?|preferred|likes?|loves?|hates?|dislikes?|uses?|wants?|needs?|requires?|avoids?"
    r"|works? (?:at|for|as|in|on|with)|lives? (?:in|at|with)|is|are|am|was|were|born|has|have|owns?|speaks?|studied|graduated"
    r"|married|allergic|means|stands for|called|named|runs?|writes?|manages?|leads?|reports? to|looks? after|responsible for"
    r"|decided|agreed|chose|chosen|settled on|committed to|must|stays?|favou?rite|birthday|timezone|expires?"
    r"|immer|nie|bevorzugt|mag|wohnt|arbeitet|heißt|ist|hat|entschieden|toujours|jamais|préfère|habite|travaille|est|décidé"
    r"|siempre|nunca|prefiere|vive|trabaja|es|tiene|decidió)\b|です|ます|する|是|喜欢|住在|总是|从不",
)
_DECIDED: Final = Caseless(r"\b(?:decided|agreed|chose|chosen|settled on|resolved|entschieden|beschlossen|décidé|decidió)\b")
_EMPHATIC: Final = Caseless(r"\b(?:always|never|prefers?)\b")
_DATE: Final = re.compile(
    r"\b\d{4}-\d{2}-\d{2}\b|\b\d{1,2}[./]\d{1,2}[./]\d{4}\b"
    r"|\b\d{1,2}\.? (?:January|February|March|April|May|June|July|August|September|October|November|December)\b"
)
_COMPOUND: Final = re.compile(
    r"(?P<who>I|We|[A-Z][\w'-]+(?: [A-Z][\w'-]+)?) (?P<first>\S.{2,120}?),? and "
    r"(?P<second>(?:(?:also|now|currently) )?(?:lives?|works?|speaks?|prefers?|likes?|loves?|hates?|uses?|drinks?|am|are|is|"
    r"was born|moved|joined|never|always) \S.{1,120})$",
    re.DOTALL,
)
_RECENT: Final = Caseless(
    r"\b(?:today|yesterday|tomorrow|tonight|currently|right now|at the moment|this (?:week|month|morning|afternoon|sprint)"
    r"|this quarter|last (?:week|night|month)|next (?:week|month|up)|now|in progress|working on|waiting for"
    r"|blocked|todo|to do|due|deadline|upcoming|recently|just (?:finished|started|shipped)"
    r"|heute|gestern|aujourd'hui|demain|hoy|mañana|ayer)\b|^next:",
)
_RECENT_HEADING: Final = Caseless(
    r"\b(?:recent|current|now|today|this week|in progress|to ?do|next|log|journal|diary|status|going on|upcoming"
    r"|open|tasks?)\b",
)
_TURN: Final = re.compile(
    r"^(?P<role>user|human|assistant|ai|system|developer|tool|function)(?: \([^)\n]{1,256}\))?[ \t]*:[ \t]*",
    re.IGNORECASE | re.MULTILINE,
)
"""How a turn of a conversation begins; `user (name):` names the speaker."""
_AGENT_NAME: Final = re.compile(r"-[0-9a-f]{6}\.md$")
"""As `store.agents.files.slug` names a file."""
_SPEAKERS: Final = frozenset({"user", "human"})
_USER_STEMS: Final = frozenset(
    {
        *("user", "me", "about", "about-me", "profile", "memory", "preferences", "prefs", "settings", "readme", "index"),
        *("notes", "identity"),
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Piece:
    """One statement: characters `start` to `end`, and what stands around it."""

    start: int
    end: int
    text: str
    form: str
    """`item`, `pair`, `front` or `sentence`."""
    heading: str


def extract(
    text: str,
    path: str,
    *,
    byte_at: Callable[[int], int],
    written_ms: int | None = None,
    is_first_writing: bool = True,
    restated: Sequence[tuple[int, str]] = (),
) -> tuple[MemoryCandidate, ...]:
    """Candidates in order of the text, at most CANDIDATES_MAX; `byte_at` gives the original byte of a character. Without a
    `path` nobody said that this is to be remembered: only a text about a person has any (`memory.personal`).

    Since when something is so is told by its own words, else by the day of its line or heading, of the file's name, of the
    front matter (in the first writing only: a later line is of a later day), or by when the document was `written_ms`.

    `restated` are lines and what a model says that they say (`model_reader`): candidates like the rules' own where no rule
    found the same.

    Pure. Questions, quotations, code, instructions to a model and secrets are left out.
    """
    if _is_untrusted(text):
        return ()
    subject = _subject_of(path)
    journal = Journal(text[:_LOOK_MAX_CHARS])
    of_document = _said_on(text, path, written_ms, is_first_writing=is_first_writing)
    found: list[MemoryCandidate] = []
    seen: set[str] = set()
    line, counted = 1, 0
    pieces = [part for piece in _pieces(text[:_LOOK_MAX_CHARS]) for part in _clauses(piece)]
    if not _is_conversation(text):
        pieces = [piece for piece in pieces if not is_instruction(piece.text)]
        statements = [_clean(piece.text) for piece in pieces]
        listed = [piece.form != "sentence" for piece in pieces]
        chosen = worth_remembering(statements, listed=listed) if path else personal(statements, listed=all(listed))
        pieces = _with_restated(text, list(compress(_with_names(text, pieces), chosen)), restated)
    for piece in pieces:
        candidate = _candidate(piece, subject)
        if candidate is None or candidate[1].casefold() in seen:
            continue
        kind, said, about, confidence = candidate
        seen.add(said.casefold())
        day, claim = journal.day_at(piece.start) or of_document, claim_of(said)
        line += text.count("\n", counted, piece.start)
        counted = piece.start
        found.append(
            MemoryCandidate(
                kind=kind,
                subject=about,
                text=said,
                confidence=confidence,
                start_line=line,
                end_line=line + text.count("\n", piece.start, piece.end),
                start_byte=byte_at(piece.start),
                end_byte=byte_at(piece.end),
                said_ms=None if day is None else ms_of(day),
                valid_from_ms=None if day is None else ms_of(since(said, day, value="" if claim is None else claim.value)),
            )
        )
        if len(found) >= CANDIDATES_MAX:
            break
    return _holding(found, newest_first=journal.is_newest_first)


def _holding(found: Sequence[MemoryCandidate], *, newest_first: bool) -> tuple[MemoryCandidate, ...]:
    """What a text says at its end, where it says one after the other: a journal in one file. Of an attribute with one value
    the last statement, and nothing that a later one says is gone."""
    kept: list[MemoryCandidate] = []
    taken: set[tuple[str, str]] = set()
    for candidate in found if newest_first else reversed(found):
        claim = claim_of(candidate.text)
        if claim is not None:
            own = {(claim.subject, f"={claim.value}")} | ({(claim.subject, claim.attribute)} if claim.is_single else set())
            if taken & own:
                continue
            taken |= {(claim.subject, claim.attribute)} if claim.is_single else set()
            taken |= {(claim.subject, f"={former}") for former in formers_of(candidate.text)}
        kept.append(candidate)
    return tuple(sorted(kept, key=lambda candidate: candidate.start_byte))


def _with_restated(text: str, pieces: list[_Piece], restated: Sequence[tuple[int, str]]) -> list[_Piece]:
    known = {(claim.subject, claim.attribute, claim.value) for piece in pieces if (claim := claim_of(_clean(piece.text)))}
    lines = text.split("\n")
    starts = list(accumulate((len(line) + 1 for line in lines), initial=0))
    for number, statement in restated:
        claim = claim_of(statement)
        if claim is None or is_instruction(lines[number - 1]) or (claim.subject, claim.attribute, claim.value) in known:
            continue
        known.add((claim.subject, claim.attribute, claim.value))
        start, end = starts[number - 1], starts[number - 1] + len(lines[number - 1])
        # What the line says in its own words, and no rule understands, is the same fact.
        pieces = [one for one in pieces if not (start <= one.start and one.end <= end and claim_of(_clean(one.text)) is None)]
        pieces.append(_Piece(start=start, end=end, text=statement, form="sentence", heading=""))
    return sorted(pieces, key=lambda piece: piece.start)


def _with_names(text: str, pieces: Sequence[_Piece]) -> list[_Piece]:
    """With the name in place of "she" and "he" where a paragraph tells who that is."""
    goes_on = [
        before is not None and piece.form == before.form == "sentence" and not text[before.end : piece.start].strip()
        and "\n\n" not in text[before.end : piece.start]
        for before, piece in zip([None, *pieces], pieces, strict=False)
    ]  # fmt: skip
    said = resolved([piece.text for piece in pieces], goes_on=goes_on)
    return [replace(piece, text=one) for piece, one in zip(pieces, said, strict=True)]


def _clauses(piece: _Piece) -> list[_Piece]:
    """ "I live in Porto and work at Tessera" are two facts, that change apart. Only where both are claims by themselves."""
    found = _COMPOUND.match(piece.text) if piece.form in {"sentence", "item"} else None
    if found is None:
        return [piece]
    first, second = f"{found['who']} {found['first']}.", f"{found['who']} {found['second']}"
    if claim_of(_clean(first)) is None or claim_of(_clean(second)) is None:
        return [piece]
    at = piece.start + found.end("first")
    begins = piece.start + found.start("second")
    return [replace(piece, end=at, text=first), replace(piece, start=begins, text=second)]


def _said_on(text: str, path: str, written_ms: int | None, *, is_first_writing: bool) -> date | None:
    """The day that a whole document is of: its name's, that of its front matter, else when it was written."""
    named = named_by(path)
    if named is not None:
        return named
    if is_first_writing and text.startswith("---"):
        fields, _ = parse(text[:_FRONT_MAX_CHARS])
        days = [day for key in _DATED_BY if (day := parsed(str(fields.get(key, "")))) is not None]
        if days and (written_ms is None or days[0] <= day_of(written_ms)):
            return days[0]
    return None if written_ms is None else day_of(written_ms)


def _is_untrusted(text: str) -> bool:
    """Whether its front matter says that others wrote it (`trust: untrusted`)."""
    fields, _ = parse(text[:_FRONT_MAX_CHARS]) if text.startswith("---") else ({}, "")
    return not Provenance.of(fields).is_trusted


def _subject_of(path: str) -> str:
    """`user` for files about the user, the project for memories of agents, which are called after what they say, else what the
    file is called."""
    folder, _, name = path.rpartition("/")
    if _AGENT_NAME.search(name) and folder.startswith("/memory/"):
        name = folder.rpartition("/")[2]
    if not name or is_secret(name):
        return "user"
    base = re.sub(r"^\d{4}-\d{2}-\d{2}[-_ ]?", "", name.rsplit(".", 1)[0]).replace("_", "-").casefold()
    return "user" if base in _USER_STEMS or not base or path.startswith("/user/") else base.replace("-", " ")


def _candidate(piece: _Piece, subject: str) -> tuple[str, str, str, float] | None:
    """Kind, text, subject and confidence; None when the piece states nothing that may be remembered."""
    said = _clean(piece.text)
    if not TEXT_MIN_CHARS <= len(said) <= TEXT_MAX_CHARS or said.endswith("?"):
        return None
    if is_instruction(said) or is_secret(said):
        return None
    recent = _RECENT.search(said) or _RECENT_HEADING.search(piece.heading)
    dated = _DATE.search(said)
    decided = _DECIDED.search(said)
    claim = claim_of(said)
    if piece.form == "sentence" and not (claim or _STATIC.search(said) or decided or dated):
        return None
    if piece.form == "sentence" and len(said.split()) < 3 and said.isascii():
        return None
    durable = decided and not _RECENT_HEADING.search(piece.heading)
    # A date at the beginning makes an event; one further in is a detail of a durable fact.
    event = recent or (dated is not None and dated.start() <= 12)
    kind = "dynamic" if event and not durable and claim is None else "static"
    confidence = {"front": 0.95, "pair": 0.9, "item": 0.85, "sentence": 0.7}[piece.form]
    if piece.form == "sentence" and (decided or _EMPHATIC.search(said)):
        confidence = 0.8
    about = subject if claim is None else claim.subject
    if piece.form in {"front", "pair"} and subject != "user" and not said.casefold().startswith(subject):
        said = f"{subject[:1].upper()}{subject[1:]} – {said}"
    elif piece.form == "item" and piece.heading and not _STATIC.search(said) and len(said.split()) < 4:
        said = f"{piece.heading}: {said}"
    return kind, said, about, confidence


def _clean(text: str) -> str:
    """Without Markdown emphasis, links and folded white space; one line."""
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)
    text = re.sub(r"(\*\*|__)(?=\S)(.+?)(?<=\S)\1", r"\2", text)
    return " ".join(text.replace("`", "").split())


def _pieces(text: str) -> Iterator[_Piece]:
    """Statements in order. Fenced code, quotations, tables and HTML comments are passed over."""
    position, front = _front_matter(text)
    yield from front
    turns = _turns(text, position)
    if not turns:
        yield from _Reader(text).read(position, len(text))
    for start, end in turns:
        yield from _Reader(text).read(start, end)


def _is_conversation(text: str) -> bool:
    return bool(_turns(text, 0))


def _turns(text: str, position: int) -> list[tuple[int, int]]:
    """What the user says in a conversation; what a model or a tool said about the user is no fact. Empty for other texts."""
    blank = re.compile(r"\s*").match(text, position)
    begin = blank.end() if blank else position
    if _TURN.match(text, begin) is None:
        return []
    marks = list(_TURN.finditer(text, begin))
    ends = [mark.start() for mark in marks[1:]] + [len(text)]
    return [(mark.end(), end) for mark, end in zip(marks, ends, strict=True) if mark["role"].lower() in _SPEAKERS]


class _Reader:
    """One pass over the lines; a list item or a paragraph is open until something ends it."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._headings: list[tuple[int, str]] = []
        self._item: tuple[int, int] | None = None
        self._paragraph: tuple[int, int] | None = None
        self._fence = ""

    def read(self, position: int, end: int) -> Iterator[_Piece]:
        while position < end:
            newline = self._text.find("\n", position, end)
            stop = end if newline < 0 else newline
            yield from self._line(position, stop)
            position = stop + 1
        yield from self._close()

    def _line(self, start: int, stop: int) -> Iterator[_Piece]:
        line = self._text[start:stop]
        stripped = line.strip()
        if self._in_fence(line) or not stripped or stripped.startswith((">", "|", "<!--", "---", "===")):
            yield from self._close()
            return
        heading = _HEADING.match(line)
        item = _ITEM.match(line)
        if heading is not None:
            yield from self._close()
            level = len(heading.group(1))
            while self._headings and self._headings[-1][0] >= level:
                self._headings.pop()
            self._headings.append((level, _clean(heading.group(2))))
        elif item is not None:
            yield from self._close()
            if item["box"] not in {"x", "X"}:
                self._item = (start + item.end(), stop)
        elif self._item is not None and line[:1].isspace():
            self._item = (self._item[0], stop)
        else:
            if self._item is not None:
                yield from self._close()
            first = start + len(line) - len(line.lstrip())
            self._paragraph = (self._paragraph[0] if self._paragraph else first, stop)

    def _in_fence(self, line: str) -> bool:
        mark = _FENCE.match(line)
        if mark is None:
            return bool(self._fence)
        if not self._fence:
            self._fence = mark.group(1)[0]
        elif mark.group(1)[0] == self._fence:
            self._fence = ""
        return True

    def _close(self) -> Iterator[_Piece]:
        heading = self._headings[-1][1] if self._headings else ""
        item, paragraph = self._item, self._paragraph
        self._item = self._paragraph = None
        if item is not None:
            yield from _item(self._text, *item, heading)
        if paragraph is not None:
            yield from _sentences(self._text, *paragraph, heading)


def _front_matter(text: str) -> tuple[int, list[_Piece]]:
    """Where the text goes on, and the pairs of the front matter that say something about their subject."""
    if not text.startswith(("---\n", "---\r\n")):
        return 0, []
    end = re.compile(r"^(?:---|\.\.\.)[ \t]*\r?$", re.MULTILINE).search(text, 4)
    if end is None or end.start() > 20_000:
        return 0, []
    pieces = []
    position = text.index("\n") + 1
    while position < end.start():
        stop = text.index("\n", position)
        line = text[position:stop].rstrip("\r")
        found = _FRONT_KEY.match(line)
        if found is not None and found["key"].casefold() not in _FRONT_SKIP:
            value = found["value"].strip().strip("\"'")
            said = f"{found['key'][:1].upper()}{found['key'][1:]}: {value}"
            pieces.append(_Piece(start=position, end=position + len(line), text=said, form="front", heading=""))
        position = stop + 1
    return end.end(), pieces


def _is_pair(line: str) -> bool:
    """`key: value` with a short name for a key; "Decided on 3 May: …" and "X is Y: …" are statements."""
    found = _KEY_VALUE.match(_clean(line))
    if found is None:
        return False
    key = found["key"]
    if len(key.split()) > 3 or any(char.isdigit() for char in key):
        return False
    return " " not in key or _STATIC.search(key) is None


def _item(text: str, start: int, end: int, heading: str) -> Iterator[_Piece]:
    """A list item is one statement; one that only opens a nested list is none."""
    while end > start and text[end - 1].isspace():
        end -= 1
    said = text[start:end]
    if not said or said.rstrip("*_ ").endswith(":"):
        return
    form = "pair" if _is_pair(said) else "item"
    yield _Piece(start=start, end=end, text=said, form=form, heading=heading)


def _sentences(text: str, start: int, end: int, heading: str) -> Iterator[_Piece]:
    """The sentences of a paragraph; lines of `key: value` and bold definitions stand for themselves."""
    lines = text[start:end].split("\n")
    if all(_is_pair(line) or re.match(r"\s*\*\*[^*]+\*\*\s+\S", line) for line in lines):
        position = start
        for line in lines:
            lead = len(line) - len(line.lstrip())
            form = "pair" if _is_pair(line) else "sentence"
            stop = position + len(line.rstrip())
            yield _Piece(start=position + lead, end=stop, text=line.strip(), form=form, heading=heading)
            position += len(line) + 1
        return
    for first, last in sentences(text, start, end):
        yield _Piece(start=first, end=last, text=text[first:last], form="sentence", heading=heading)
