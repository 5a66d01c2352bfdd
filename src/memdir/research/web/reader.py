"""Turns bytes from anywhere into readable Markdown, in the confined process of the ingest extractors."""

from __future__ import annotations

import re
from functools import cache
from typing import Final
from urllib.parse import urlsplit

from memdir.core.errors import FetchError
from memdir.core.web import Http
from memdir.ingest.extractors.formats import HEAD_BYTES, HTML, family_of
from memdir.ingest.extractors.output import ExtractionError
from memdir.ingest.sandbox import Sandbox
from memdir.ingest.text import decode
from memdir.research.archive import TEXT_MAX_CHARS, Page

_TITLE: Final = re.compile(r"^#{1,3}\s+(?!Page \d+$)(\S.{0,250})$", re.M)
"""A heading that is no number of a page, as the extractor of PDF writes them."""


@cache
def _sandbox() -> Sandbox:
    return Sandbox()


def close() -> None:
    """End the process that reads documents; the next page starts another."""
    if _sandbox.cache_info().currsize:
        _sandbox().close()
        _sandbox.cache_clear()


def page(url: str, name: str, data: bytes, *, media_type: str = "") -> Page:
    """FetchError when nothing can be read in it."""
    found = family_of(data[:HEAD_BYTES], name)
    if found is None and media_type.partition(";")[0].strip() in ("text/html", "application/xhtml+xml"):
        found = HTML
    if found is None:
        text = decode(data)
        if text is None:
            raise FetchError(f"{url}: nothing that can be read ({media_type or 'unknown kind'})")
        return _made(url, name, "", media_type.partition(";")[0].strip() or "text/plain", text.text, truncated=text.truncated)
    try:
        extraction = _sandbox().extract([data], found)
    except ExtractionError as error:
        raise FetchError(f"{url}: {error}") from error
    return _made(url, name, extraction.title, extraction.media_type, extraction.text, truncated=extraction.truncated)


def _made(url: str, name: str, title: str, media_type: str, text: str, *, truncated: bool) -> Page:
    if not text.strip():
        raise FetchError(f"{url}: there is no text in it")
    heading = _TITLE.search(text)
    named = " ".join(title.split()) or (heading[1].strip() if heading else name)
    cut = truncated or len(text) > TEXT_MAX_CHARS
    return Page(url=url, title=named, media_type=media_type, text=text[:TEXT_MAX_CHARS], truncated=cut)


def fetched_page(http: Http, url: str) -> Page:
    """The readable page of an address."""
    final, media_type, data = http.get(url)
    return page(final, urlsplit(final).path.rpartition("/")[2], data, media_type=media_type)
