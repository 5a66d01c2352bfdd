"""Places without a network: a folder of documents, and a ZIM file (Wikipedia and others; https://wiki.openzim.org/wiki/ZIM_file_format)."""

from __future__ import annotations

import html
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, unquote

from memdir.core.errors import FetchError, UsageError
from memdir.core.web import PAGE_MAX_BYTES, too_large
from memdir.research.archive import Page
from memdir.research.web import reader
from memdir.research.web.local_index import Entry, LocalIndex, snippet
from memdir.research.web.place import Found

FOLDER_SCHEME: Final = "folder:"
ZIM_SCHEME: Final = "zim:"
FILES_MAX: Final = 20_000
_INDEXED_MAX_CHARS: Final = 400_000
_HIDDEN: Final = re.compile(r"<(script|style|head|nav|svg)\b.*?</\1\s*>", re.I | re.S)
_TAG: Final = re.compile(r"<[^>]{0,2000}>")
_TITLE: Final = re.compile(r"<title[^>]*>(.{0,500}?)</title>", re.I | re.S)
_HEADING: Final = re.compile(r"^#{1,3}\s+(\S.{0,250})$", re.M)
_MARKED_UP: Final = frozenset({".html", ".htm", ".xhtml"})
_PLAIN: Final = frozenset({".md", ".txt", ".rst", ".org", ".adoc", ".tex", ".csv", ".json", ".yaml", ".yml", ".toml", ""})
_READ_BY_EXTRACTOR: Final = frozenset({".pdf", ".docx", ".pptx", ".xlsx", ".odt", ".ods", ".odp", ".rtf", ".epub", ".eml"})


class Folder:
    """Documents below a folder. Links that lead out of it are not followed."""

    def __init__(self, root: Path) -> None:
        """Reads all of it. UsageError when it is no folder or there is nothing to read."""
        self._root = Path(os.path.realpath(root))
        if not self._root.is_dir():
            raise UsageError(f"{root} is no folder", hint="give a folder with documents, or a .zim file")
        self._index = LocalIndex(self._entries())
        if self._index.count == 0:
            raise UsageError(f"there are no documents in {root}", hint="HTML, Markdown, text, PDF and office files are read")

    @property
    def name(self) -> str:
        return f"{self._root} ({self._index.count:,} documents)"

    def _entries(self) -> Iterator[Entry]:
        count = 0
        for folder, folders, names in os.walk(self._root):
            folders[:] = sorted(name for name in folders if not name.startswith("."))
            for name in sorted(name for name in names if not name.startswith(".")):
                at = Path(folder, name)
                entry = _entry(at, at.relative_to(self._root).as_posix()) if at.is_file() and not at.is_symlink() else None
                if entry is not None:
                    yield entry
                    count += 1
                if count >= FILES_MAX:
                    return

    def search(self, query: str, limit: int) -> list[Found]:
        found = self._index.search(query, limit)
        return [Found(url=FOLDER_SCHEME + quote(one.key), title=one.title, snippet=line) for one, line in found]

    def has(self, url: str) -> bool:
        return url.startswith(FOLDER_SCHEME)

    def fetch(self, url: str) -> Page:
        path = unquote(url.removeprefix(FOLDER_SCHEME).partition("#")[0])
        at = Path(os.path.realpath(self._root / path))
        if not at.is_relative_to(self._root) or not at.is_file():
            raise FetchError(f"{url}: no such document")
        try:
            if at.stat().st_size > PAGE_MAX_BYTES:
                raise too_large(url)
            data = at.read_bytes()
        except OSError as error:
            raise FetchError(f"{url}: {error.strerror}") from error
        return reader.page(url, at.name, data)


def _entry(at: Path, key: str) -> Entry | None:
    suffix = at.suffix.lower()
    try:
        if suffix in _MARKED_UP or suffix in _PLAIN:
            with open(at, "rb") as file:
                text = file.read(2 * _INDEXED_MAX_CHARS).decode("utf-8", "replace")
            if "\x00" in text[:4000]:
                return None
            return _of_markup(key, text) if suffix in _MARKED_UP else _of_text(key, at.stem, text)
        if suffix in _READ_BY_EXTRACTOR:
            page = reader.page(key, at.name, at.read_bytes())
            return _of_text(key, page.title or at.stem, page.text)
    except (OSError, FetchError):
        pass  # what cannot be read cannot be found; fetching it says why
    return None


def _of_markup(key: str, markup: str) -> Entry:
    """For the index alone: without tags. What is archived comes from the extractor."""
    title = _TITLE.search(markup)
    text = html.unescape(_TAG.sub(" ", _HIDDEN.sub(" ", markup)))
    lines = (" ".join(line.split()) for line in text.split("\n"))
    body = "\n".join(line for line in lines if line)[:_INDEXED_MAX_CHARS]
    return Entry(key=key, title=html.unescape(" ".join(title[1].split())) if title else key, text=body)


def _of_text(key: str, name: str, text: str) -> Entry:
    heading = _HEADING.search(text[:20_000])
    return Entry(key=key, title=heading[1].strip() if heading else name, text=text[:_INDEXED_MAX_CHARS])


class Zim:
    """One ZIM file, searched by its own full-text index where it has one, else by titles."""

    def __init__(self, path: Path) -> None:
        """UsageError when the library or the file is missing."""
        try:
            from libzim.reader import Archive
        except ImportError:
            raise UsageError("ZIM files need the extra `zim`", hint="pip install 'memdir[zim]'") from None
        try:
            self._archive: Any = Archive(path)
        except RuntimeError as error:
            raise UsageError(f"{path} is no ZIM file: {error}") from error
        self._path = path

    @property
    def name(self) -> str:
        return f"{self._path.name} ({self._archive.article_count:,} articles)"

    def search(self, query: str, limit: int) -> list[Found]:
        from libzim.search import Query, Searcher
        from libzim.suggestion import SuggestionSearcher

        if self._archive.has_fulltext_index:
            paths = list(Searcher(self._archive).search(Query().set_query(query)).getResults(0, limit))
        else:
            paths = list(SuggestionSearcher(self._archive).suggest(query).getResults(0, limit))
        return [self._found(path, query) for path in paths]

    def _found(self, path: str, query: str) -> Found:
        entry = self._archive.get_entry_by_path(path)
        text = _of_markup(path, bytes(entry.get_item().content[: 2 * _INDEXED_MAX_CHARS]).decode("utf-8", "replace")).text
        return Found(url=ZIM_SCHEME + quote(path), title=entry.title, snippet=snippet(text, query.split()))

    def has(self, url: str) -> bool:
        return url.startswith(ZIM_SCHEME)

    def fetch(self, url: str) -> Page:
        path = unquote(url.removeprefix(ZIM_SCHEME).partition("#")[0])
        try:
            item = self._archive.get_entry_by_path(path).get_item()
        except (KeyError, RuntimeError) as error:
            raise FetchError(f"{url}: no such article") from error
        if item.size > PAGE_MAX_BYTES:
            raise too_large(url)
        return reader.page(url, path.rpartition("/")[2], bytes(item.content), media_type=item.mimetype)
