"""`sources/`: every page as it was fetched, once, under a name that carries the hash of its text. Nobody changes it then."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final
from urllib.parse import urlsplit

from memdir.core import frontmatter
from memdir.research.workspace import SOURCES, Workspace, slug, split_lines
from memdir.store.text.sentences import sentences

TEXT_MAX_CHARS: Final = 2 << 20
_LINE_CHARS: Final = 200
"""Longer lines of prose are broken after sentences, so that a citation of a line says where to look."""
_FLOWING: Final = frozenset({"text/html", "application/xhtml+xml", "application/epub+zip"})
"""Where a line's end says nothing."""
_ITEM: Final = re.compile(r"\s*(?:[-*+]|\d{1,3}[.)]|>|:)\s")
_STRUCTURE: Final = re.compile(r"\s*(?:\||```|~~~|#{1,6}\s|\s{4})")


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A page as a place gave it: readable text in Markdown."""

    url: str
    title: str
    media_type: str
    text: str
    truncated: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """An archived page. `first` is the number of the first line of its text, after its header."""

    path: str
    url: str
    title: str
    text_hash: str
    lines: Sequence[str]
    first: int

    @property
    def text(self) -> str:
        return "\n".join(self.lines[self.first - 1 :]) + "\n"


class Archive:
    """The pages of one workspace. Reads of one page are kept: a page never changes."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._known: dict[str, Source] = {}

    def add(self, page: Page, fetched_ms: int) -> Source:
        """Archive a page. The same text of the same address is the same file, and is not written twice."""
        text = one_sentence_a_line(page.text[:TEXT_MAX_CHARS], joined=page.media_type in _FLOWING)
        digest = text_hash(text)
        address = urlsplit(page.url)
        host = slug(address.hostname or address.scheme or "page", 40)
        named = page.title or address.path.rstrip("/").rpartition("/")[2] or address.path
        key = hashlib.sha256(f"{page.url}\n{digest}".encode()).hexdigest()[:8]
        path = f"{SOURCES}/{host}-{slug(named)}-{key}.md"
        if self._workspace.read(path) is None:
            header = {
                "url": page.url[:2000],
                "title": " ".join(page.title.split())[:300],
                "fetched": datetime.fromtimestamp(fetched_ms / 1000, UTC).isoformat(timespec="seconds"),
                "media_type": page.media_type[:100],
                "sha256": digest,
            }
            if page.truncated or len(page.text) > TEXT_MAX_CHARS:
                header["truncated"] = "yes"
            self._workspace.write(path, frontmatter.render(header, text))
            self._known.pop(path, None)
        source = self.get(path)
        assert source is not None, "was just written"
        return source

    def get(self, path: str) -> Source | None:
        """The archived page of a path; None when there is none."""
        known = self._known.get(path)
        if known is None:
            text = self._workspace.read(path)
            if text is None:
                return None
            fields, body = frontmatter.parse(text)
            lines = split_lines(text)
            known = self._known[path] = Source(
                path=path,
                url=frontmatter.single(fields.get("url")) or "",
                title=frontmatter.single(fields.get("title")) or "",
                text_hash=frontmatter.single(fields.get("sha256")) or "",
                lines=lines,
                first=len(lines) - len(split_lines(body)) + 1,
            )
        return known

    def lines(self, path: str) -> Sequence[str]:
        """All lines of a page, its header included; none when there is no such page."""
        try:
            source = self.get(path)
        except ValueError:
            return []
        return [] if source is None else source.lines

    def all(self) -> list[Source]:
        return [source for path in self._workspace.sources() if (source := self.get(path)) is not None]


def text_hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()


def one_sentence_a_line(text: str, *, joined: bool) -> str:
    """The text with long lines of prose broken after sentences; tables, code and headings stay as they are. With `joined` lines
    that only a page's markup broke are put together before."""
    result: list[str] = []
    fenced = False
    open_prose = False
    for line in text.replace("\r\n", "\n").replace("\r", "\n").split("\n"):
        if line.lstrip().startswith(("```", "~~~")):
            fenced = not fenced
        keeps = fenced or not line.strip() or bool(_STRUCTURE.match(line))
        begins = bool(_ITEM.match(line)) or not open_prose
        if keeps or begins or not joined:
            result.append(line.rstrip())
        else:
            result[-1] += " " + line.strip()
        open_prose = not keeps and not line.endswith(("  ", "\\"))
    return "\n".join(_broken(result)).strip("\n") + "\n"


def _broken(lines: Iterable[str]) -> Iterator[str]:
    fenced = False
    for line in lines:
        if line.lstrip().startswith(("```", "~~~")):
            fenced = not fenced
        if fenced or len(line) <= _LINE_CHARS or _STRUCTURE.match(line):
            yield line
        else:
            yield from (line[start:end] for start, end in sentences(line))
