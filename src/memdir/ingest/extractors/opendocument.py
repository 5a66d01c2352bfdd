"""OpenDocument texts, slides, tables and drawings: ISO/IEC 26300, the parts of `content.xml` that carry words.

Files of OpenOffice 1 (.sxw, .sxc, .sxi) have the same elements in other namespaces, and two kinds of lists.
"""

from __future__ import annotations

import posixpath
import re
import zipfile
from collections.abc import Iterator
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

from memdir.ingest.extractors import markup, ole_objects, packages
from memdir.ingest.extractors.output import ExtractionError, Output, comment_text, encrypted

_NAMESPACE: Final = "urn:oasis:names:tc:opendocument:xmlns:"
_TEXT: Final = f"{{{_NAMESPACE}text:1.0}}"
_TABLE: Final = f"{{{_NAMESPACE}table:1.0}}"
_DRAW: Final = f"{{{_NAMESPACE}drawing:1.0}}"
_OFFICE: Final = f"{{{_NAMESPACE}office:1.0}}"
_PRESENTATION: Final = f"{{{_NAMESPACE}presentation:1.0}}"
_SVG: Final = f"{{{_NAMESPACE}svg-compatible:1.0}}"
_LINK: Final = "{http://www.w3.org/1999/xlink}href"
_SKIPPED: Final = frozenset({f"{_TEXT}tracked-changes", f"{_TEXT}sequence-decls", f"{_OFFICE}forms"})
_REPEATED_MAX: Final = 1_000
_DEPTH_MAX: Final = 200
_ASIDE: Final = (f"{_OFFICE}annotation", f"{_TEXT}note")
"""What stands in a paragraph and has paragraphs."""
_LISTS: Final = frozenset({f"{_TEXT}list", f"{_TEXT}ordered-list", f"{_TEXT}unordered-list"})
_OLD_NAMESPACE: Final = re.compile(rb'"http://openoffice\.org/2000/(\w+)"')


def extract(path: Path, out: Output) -> None:
    """ExtractionError when it is encrypted or damaged."""
    out.engine = f"lxml {version('lxml')}"
    packages.properties(path, out)
    with packages.opened(path) as archive:
        manifest = packages.parsed(archive, "META-INF/manifest.xml")
        if manifest is not None and any(str(node.tag).endswith("}encryption-data") for node in manifest.iter()):
            raise encrypted()
        root = packages.parsed(archive, "content.xml", change=partial(_OLD_NAMESPACE.sub, rb'"%s\1:1.0"' % _NAMESPACE.encode()))
        body = None if root is None else root.find(f"{_OFFICE}body")
        if body is None:
            raise ExtractionError("it is damaged: there is no content in it", hint=packages.DAMAGED_HINT)
        pages = list(body.iter(f"{_DRAW}page"))
        if pages:
            out.fact("slides", len(pages))
        for number, page in enumerate(pages or [body], start=1):
            out.heading(2, f"Slide {number}" if pages else "")
            _blocks(page, out, 0)
            for frame in page.iter(f"{_DRAW}frame"):
                _frame(archive, frame, out)
            out.progress(number, len(pages))
        _headers_and_footers(packages.parsed_if_whole(archive, "styles.xml"), out)


def _frame(archive: zipfile.ZipFile, frame: Any, out: Output) -> None:
    """What is said in place of a picture, the text in it, and documents in the document: charts, formulas, sheets, files."""
    said = " ".join(filter(None, (packages.words(one) for name in ("title", "desc") for one in frame.iter(f"{_SVG}{name}"))))
    out.paragraph(markup.description(said))
    objects = [one.get(_LINK) or "" for name in ("object", "object-ole") for one in frame.iter(f"{_DRAW}{name}")]
    for place in (posixpath.normpath(link) for link in objects):
        root = packages.parsed_if_whole(archive, f"{place}/content.xml")
        body = None if root is None else root.find(f"{_OFFICE}body")
        if body is not None:
            _blocks(body, out, 0)
        elif root is not None:
            out.paragraph(packages.words_in(root, "annotation"))
        else:
            ole_objects.add_part(archive, place, out)
    for image in frame.iter(f"{_DRAW}image"):
        if not objects:  # else it shows the object
            packages.add_picture(archive, image.get(_LINK) or "", out)


def _headers_and_footers(styles: Any, out: Output) -> None:
    """Headers and footers, each text once."""
    parts = packages.elements(styles, "header", "footer", "header-left", "footer-left", "header-first", "footer-first")
    packages.add_headers_and_footers((_words(paragraph) for part in parts for paragraph in part.iter(f"{_TEXT}p")), out)


def _blocks(parent: Any, out: Output, depth: int) -> None:
    if depth > _DEPTH_MAX:
        raise ExtractionError(f"its parts are nested deeper than {_DEPTH_MAX}", hint=packages.DAMAGED_HINT)
    for node in parent:
        if node.tag in _SKIPPED or not isinstance(node.tag, str):
            continue
        if node.tag == f"{_TEXT}h":
            level = node.get(f"{_TEXT}outline-level") or node.get(f"{_TEXT}level") or 1
            out.heading(int(level) + 1, _words(node))
        elif node.tag == f"{_TEXT}p":
            out.paragraph(_words(node))
            _framed(node, out, depth)
        elif node.tag in _LISTS:
            _items(node, out, 0)
            out.end_list()
        elif node.tag == f"{_TABLE}table":
            if parent.tag == f"{_OFFICE}spreadsheet":
                out.heading(2, f"Sheet: {node.get(f'{_TABLE}name')}")
            out.table(_rows(node))
        elif node.tag == f"{_PRESENTATION}notes":
            notes = "\n".join(_words(paragraph) for paragraph in node.iter(f"{_TEXT}p"))
            out.paragraph(f"Notes: {notes}" if notes.strip() else "")
        else:
            _blocks(node, out, depth + 1)


def _framed(paragraph: Any, out: Output, depth: int) -> None:
    """Text boxes that are anchored in a paragraph stand behind it."""
    inside: set[Any] = set()
    for box in paragraph.iter(f"{_DRAW}text-box"):
        if box not in inside:
            inside.update(box.iter(f"{_DRAW}text-box"))
            _blocks(box, out, depth + 1)


def _items(node: Any, out: Output, depth: int) -> None:
    for item in node:
        for child in item:
            if child.tag in _LISTS and depth < _DEPTH_MAX:
                _items(child, out, depth + 1)
            elif child.tag in (f"{_TEXT}p", f"{_TEXT}h"):
                out.item(_words(child), depth=depth)


def _rows(table: Any) -> Iterator[list[str]]:
    for row in table.iter(f"{_TABLE}table-row"):
        cells: list[str] = []
        for cell in row:
            if cell.tag not in (f"{_TABLE}table-cell", f"{_TABLE}covered-table-cell"):
                continue
            paragraphs = (one for one in cell.iter(f"{_TEXT}p", f"{_TEXT}h") if next(one.iterancestors(*_ASIDE), None) is None)
            text = " ".join(map(_words, paragraphs))
            again = int(cell.get(f"{_TABLE}number-columns-repeated") or 1) if text else 1
            cells += [text] * min(again, _REPEATED_MAX)
        yield cells


def _words(node: Any) -> str:
    """The text of a paragraph: `text:s` is spaces, `text:tab` a tab; notes stand in brackets; boxes in it are told apart."""
    pieces = [node.text or ""]
    for child in node:
        if child.tag == f"{_TEXT}s":
            pieces.append(" " * min(int(child.get(f"{_TEXT}c") or 1), _REPEATED_MAX))
        elif child.tag == f"{_TEXT}tab":
            pieces.append("\t")
        elif child.tag == f"{_TEXT}line-break":
            pieces.append("\n")
        elif child.tag == f"{_TEXT}note":
            pieces.append(f" ({' '.join(_words(part) for part in child.iter(f'{_TEXT}p'))})")
        elif child.tag == f"{_OFFICE}annotation":
            said = " ".join(_words(part) for part in child.iter(f"{_TEXT}p"))
            pieces.append(comment_text(said, packages.words_in(child, "creator")))
        elif isinstance(child.tag, str) and child.tag not in (f"{_DRAW}frame", f"{_DRAW}text-box"):
            pieces.append(_words(child))
        pieces.append(child.tail or "")
    return "".join(pieces)
