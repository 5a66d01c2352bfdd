"""EPUB: the chapters in reading order (the package's spine), each as Markdown."""

from __future__ import annotations

import posixpath
import zipfile
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote

from memdir.ingest.extractors import markup, packages, web
from memdir.ingest.extractors.output import ExtractionError, Output

_CHAPTERS_MAX: Final = 5_000
_DC: Final = "{http://purl.org/dc/elements/1.1/}"


def extract(path: Path, out: Output) -> None:
    """ExtractionError when there is no book in it, or one that is locked."""
    out.engine = f"html-to-markdown {version('html-to-markdown')}"
    with packages.opened(path) as archive:
        container = packages.parsed(archive, "META-INF/container.xml")
        place = next((node.get("full-path") for node in _all(container, "rootfile")), None)
        book = packages.parsed(archive, place) if place else None
        if book is None or place is None:
            raise ExtractionError("there is no book in it", hint=packages.DAMAGED_HINT)
        out.title = book.findtext(f".//{_DC}title") or ""
        out.fact("author", "; ".join(node.text or "" for node in book.iter(f"{_DC}creator")))
        out.fact("language", book.findtext(f".//{_DC}language"))
        locked = "META-INF/encryption.xml" in archive.namelist()
        _chapters(archive, book, posixpath.dirname(place), out)
    if locked and out.is_empty:
        raise ExtractionError("it is locked by its publisher (DRM)", hint="it can be read in the publisher's program only")


def _chapters(archive: zipfile.ZipFile, book: Any, folder: str, out: Output) -> None:
    places = {node.get("id"): node.get("href") for node in _all(book, "item")}
    order = [places.get(node.get("idref")) for node in _all(book, "itemref")]
    out.fact("chapters", len(order))
    out.truncated, order = len(order) > _CHAPTERS_MAX, order[:_CHAPTERS_MAX]
    for number, href in enumerate(order, start=1):
        if href is not None:
            try:
                page = web.decoded(packages.part(archive, posixpath.normpath(posixpath.join(folder, unquote(href)))))
            except KeyError:
                continue
            out.paragraph(markup.markdown(page))
        out.progress(number, len(order))


def _all(root: Any, name: str) -> list[Any]:
    return [] if root is None else [node for node in root.iter() if isinstance(node.tag, str) and node.tag.endswith("}" + name)]
