"""What came from an address, as text: a web page, a PDF, anything that is read, or text as it is."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from memdir.ingest.extractors.formats import HEAD_BYTES, HTML, family_of
from memdir.ingest.extractors.output import ExtractionError
from memdir.ingest.sandbox import Extraction, Sandbox
from memdir.ingest.text import decode

_HTML_TYPES: Final = frozenset({"text/html", "application/xhtml+xml"})
_HEADING: Final = re.compile(r"^#{1,3}\s+(?!Page \d+$)(\S.{0,250})$", re.M)
"""That is no number of a page, as the extractor of PDF writes them."""


def read_page(
    sandbox: Sandbox,
    name: str,
    data: bytes,
    media_type: str = "",
    *,
    progress: Callable[[int, int], None] = lambda _done, _total: None,
    checkpoint: Callable[[], None] = lambda: None,
) -> Extraction:
    """What it is, is told by its content and `name`, else by `media_type`, which may have parameters. Text has its first
    heading as title. `progress` and `checkpoint` as `Sandbox.extract` says. ExtractionError when nothing can be read in it."""
    said = media_type.partition(";")[0].strip()
    found = family_of(data[:HEAD_BYTES], name)
    if found is None and said in _HTML_TYPES:
        found = HTML
    if found is not None:
        return sandbox.extract([data], found, progress=progress, checkpoint=checkpoint)
    text = decode(data)
    if text is None:
        raise ExtractionError(f"nothing that can be read ({media_type or 'unknown kind'})")
    return Extraction(
        kind=HTML.kind, media_type=said or "text/plain", engine="", title=first_heading(text.text), text=text.text, facts={},
        truncated=text.truncated, needs="", peak_bytes=0,
    )  # fmt: skip


def first_heading(markdown: str) -> str:
    """ "" where there is none."""
    found = _HEADING.search(markdown)
    return "" if found is None else found[1].strip()
