"""Turns bytes from anywhere into readable Markdown, in the confined process of the ingest extractors."""

from __future__ import annotations

from functools import cache
from urllib.parse import urlsplit

from memdir.core.errors import FetchError
from memdir.core.web import Http
from memdir.ingest.extractors.output import ExtractionError
from memdir.ingest.pages import first_heading, read_page
from memdir.ingest.sandbox import Sandbox
from memdir.research.archive import TEXT_MAX_CHARS, Page


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
    try:
        found = read_page(_sandbox(), name, data, media_type)
    except ExtractionError as error:
        raise FetchError(f"{url}: {error}") from error
    if not found.text.strip():
        raise FetchError(f"{url}: there is no text in it")
    title = " ".join(found.title.split()) or first_heading(found.text) or name
    cut = found.truncated or len(found.text) > TEXT_MAX_CHARS
    return Page(url=url, title=title, media_type=found.media_type, text=found.text[:TEXT_MAX_CHARS], truncated=cut)


def fetched_page(http: Http, url: str) -> Page:
    """The readable page of an address."""
    final, media_type, data = http.get(url)
    return page(final, urlsplit(final).path.rpartition("/")[2], data, media_type=media_type)
