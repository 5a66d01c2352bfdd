"""An agent's memory as a Markdown file: front matter, then the text. Written one way, read in any that a person may write."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Final

from memdir.core.clock import iso_ms
from memdir.core.frontmatter import BOOKKEEPING, listed, mapping, parse, render, single
from memdir.core.limits import INT64_MAX, MEMORY_PROJECT_MAX_CHARS, MEMORY_TAG_MAX_CHARS, MEMORY_TAGS_MAX
from memdir.core.secrets import kinds, redacted
from memdir.store.paths import INBOX
from memdir.store.text.passage_text import storable
from memdir.store.text.words import fold

TOKEN_CHARS: Final = 4
"""About, as the seed counts: 512 tokens are about 2,048 characters."""
PIECE_MAX_CHARS: Final = 512 * TOKEN_CHARS
OVERLAP_CHARS: Final = 64 * TOKEN_CHARS
_TIME_MAX_MS: Final = INT64_MAX // 1_000_000
"""A file's time is nanoseconds in 64 bits: the years 1678 to 2262."""
_SLUG_WORDS: Final = 6
_SLUG_MAX_CHARS: Final = 48
_UNSAFE: Final = re.compile(r"[\x00-\x1f\x7f/\\]+")
_OWN: Final = BOOKKEEPING | {"metadata", "by", "trust", "confirmed", "seen", "may_replace"}
BY_USER: Final = "user"
UNTRUSTED: Final = "untrusted"
BY_MAX_CHARS: Final = 100
SEEN_MAX: Final = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """Where a memory is from, and how far it may be relied on. `stored_by`: `user`, `agent HOST`, `import SOURCE`, or
    `capture HOST`."""

    stored_by: str = BY_USER
    is_trusted: bool = True
    """Untrusted: from web pages, issues or files of others. Never given unasked before a person confirms it."""
    confirmed_at_ms: int | None = None
    seen: int = 1
    """How often it was said."""
    may_replace: str | None = None
    """Id of an older memory that this one may contradict: a question for `memory review`."""

    def fields(self) -> dict[str, str | int]:
        """As the front matter says it: what goes without saying is left out."""
        found: dict[str, str | int] = {} if self.stored_by == BY_USER else {"by": self.stored_by}
        if not self.is_trusted:
            found["trust"] = UNTRUSTED
        if self.confirmed_at_ms is not None:
            found["confirmed"] = iso_ms(self.confirmed_at_ms)
        if self.seen > 1:
            found["seen"] = self.seen
        if self.may_replace is not None:
            found["may_replace"] = self.may_replace
        return found

    @classmethod
    def of(cls, fields: Mapping[str, Any]) -> Provenance:
        """Of the fields of a front matter; whatever a person wrote there that makes no sense counts as not written."""
        by, confirmed, other = (single(fields.get(name)) for name in ("by", "confirmed", "may_replace"))
        seen = single(str(fields.get("seen", "")))
        confirmed_ms = moment_ms(confirmed, -1)
        return cls(
            stored_by=(by or BY_USER)[:BY_MAX_CHARS],
            is_trusted=(single(fields.get("trust")) or "").casefold() != UNTRUSTED,
            confirmed_at_ms=None if confirmed_ms < 0 else confirmed_ms,
            seen=min(int(seen), SEEN_MAX) if seen is not None and seen.isdecimal() and int(seen[:9]) else 1,
            may_replace=None if other is None else other[:BY_MAX_CHARS],
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """What a file says, or is to say, and what becomes its records. Other fields of the front matter are metadata, too.
    `project` is where a new file goes: of one that is there its folder counts. `access_count` is of an import."""

    content: str
    tags: tuple[str, ...] = ()
    project: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    created_at_ms: int
    updated_at_ms: int
    access_count: int = 0
    provenance: Provenance = field(default_factory=Provenance)

    def cut(self) -> list[Draft]:
        """One for each piece of its text."""
        return [replace(self, content=piece) for piece in pieces(self.content) if piece]

    def clean(self) -> Draft:
        """With its text and tags as they are kept: U+0000 and white space around them gone, lines that end in a newline."""
        return replace(self, content=storable(self.content).replace("\r\n", "\n").strip(), tags=clean_tags(self.tags))

    def secrets(self) -> list[str]:
        """The kinds of the secrets in it."""
        return sorted({kind for text in (self.content, *self.tags, self.metadata_text()) for kind in kinds(text)})

    def redacted(self) -> Draft:
        """Without any; metadata in which one stood across quotes go as a whole."""
        try:
            metadata = json.loads(redacted(self.metadata_text()))
        except ValueError:
            metadata = {}
        return replace(self, content=redacted(self.content), tags=clean_tags(map(redacted, self.tags)), metadata=metadata)

    def metadata_text(self) -> str:
        """The metadata as JSON."""
        return json.dumps(dict(self.metadata), ensure_ascii=False, sort_keys=True)


def project_folder(name: str | None) -> str | None:
    """The name of a project as its folder spells it: one path component, nothing hidden. None for none, an empty one too."""
    if not name:
        return None
    text = _UNSAFE.sub("-", name).strip().strip(".").strip()[:MEMORY_PROJECT_MAX_CHARS]
    while len(text.encode("utf-8", "replace")) > 200:
        text = text[:-1]
    if text.casefold() == INBOX:
        return f"{text} project"
    return text if text.strip("-") else "project"


def slug(content: str, digest: str) -> str:
    """A name for the file that tells people what it says: its first words, and six digits of its hash."""
    words = re.findall(r"[^\W_]+", fold(content))[:_SLUG_WORDS]
    text = "-".join(words)[:_SLUG_MAX_CHARS].strip("-")
    while len(text.encode("utf-8", "replace")) > 200:
        text = text[:-1]
    return f"{text}-{digest[:6]}" if text else digest[:12]


def rendered(draft: Draft) -> bytes:
    """The file."""
    fields: dict[str, str | int | tuple[str, ...] | Mapping[str, Any]] = {"tags": draft.tags}
    if draft.project is not None:
        fields["project"] = draft.project
    fields |= {"created": iso_ms(draft.created_at_ms), "updated": iso_ms(draft.updated_at_ms)}
    fields |= draft.provenance.fields()
    if draft.metadata:
        fields["metadata"] = draft.metadata
    return render(fields, f"{draft.content}\n").encode("utf-8", "replace")


def parsed(text: str, *, created_at_ms: int, updated_at_ms: int) -> Draft:
    """What a file says, however its front matter is written; without any, all of it is the text. The times are the file's own,
    for one that says none."""
    found, body = parse(text.removeprefix("\ufeff").replace("\r\n", "\n"))
    fields = {name.casefold(): value for name, value in found.items()}
    created, updated = (
        single(fields.get(name) or fields.get(other)) for name, other in (("created", "date"), ("updated", "modified"))
    )
    return Draft(
        content=body,
        tags=tuple(listed(fields.get("tags") or fields.get("tag"))),
        metadata={name: value for name, value in found.items() if name.casefold() not in _OWN}
        | mapping(fields.get("metadata")),
        created_at_ms=moment_ms(created, created_at_ms),
        updated_at_ms=moment_ms(updated, updated_at_ms),
        provenance=Provenance.of(fields),
    ).clean()


def clean_tags(tags: Iterable[str]) -> tuple[str, ...]:
    """Each once, without the `#` that people write before them, on one line, within the bounds."""
    named = (" ".join(tag.replace("\0", "").split()).lstrip("#").strip()[:MEMORY_TAG_MAX_CHARS].strip() for tag in tags)
    return tuple(dict.fromkeys(filter(None, named)))[:MEMORY_TAGS_MAX]


def moment_ms(value: str | None, otherwise_ms: int) -> int:
    """A time as people and the wire write it, without a zone in UTC; `otherwise_ms` for none, or for text that is none."""
    try:
        moment = datetime.fromisoformat(value or "")
        found_ms = int((moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)).timestamp() * 1000)
    except (OverflowError, ValueError):  # a person wrote something else there
        return otherwise_ms
    return found_ms if abs(found_ms) <= _TIME_MAX_MS else otherwise_ms


def pieces(content: str) -> list[str]:
    """The text, cut into pieces of at most 512 tokens that overlap by 64, at white space where there is some. None is below 64:
    the overlap alone is that long."""
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
