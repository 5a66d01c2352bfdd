"""What stands on a sheet and in none of its values: formulas, links, comments on cells, text boxes and titles of charts
([ECMA-376] part 1, 18.3, 18.7, 20.5 and 21.2; OpenDocument 1.3, 14.1). Calamine reads values alone."""

from __future__ import annotations

import contextlib
import html
import posixpath
import re
import zipfile
from collections.abc import Iterable, Iterator
from io import BytesIO
from itertools import islice
from pathlib import Path
from typing import Any, Final

from lxml import etree

from memdir.ingest.extractors import charts, packages
from memdir.ingest.extractors.output import ExtractionError

_WORKBOOK: Final = "xl/workbook.xml"
_NO_VALUE: Final = re.compile(rb"</(?:\w+:)?f>(?:<(?:\w+:)?v ?/>|<(?:\w+:)?v></(?:\w+:)?v>)?</(?:\w+:)?c>")
_HEADER_OR_FOOTER: Final = re.compile(rb"<(?:\w+:)?(?:odd|even|first)(?:Header|Footer)\b[^>]*>([^<]*)<")
_CODES: Final = re.compile(r'&(?:"[^"]*"|K[0-9A-F]{6}|K\d\d[+-]\d{3}|\d+|[A-Z])')
"""What stands in headers and footers and is no text ([ECMA-376] part 1, 18.3.1.39)."""
_LINK: Final = re.compile(rb"<(?:\w+:)?hyperlink\b([^>]*)>")
_ATTRIBUTE: Final = re.compile(r'(?:^|\s|:)(ref|id)="([^"]*)"')
_FORMULAS_MAX: Final = 1_000
"""Of a sheet: a column of them says the same again and again."""
_LINKS_MAX: Final = 1_000
_COPY: Final = "[Threaded comment]"
"""What Excel says in the old kind of comment where there is one of the new kind, which is read."""


def notes(path: Path) -> dict[str, list[str]]:
    """Lines of each sheet of a package by its name: `Comment of Ana on B3: is it not 26?`, `Text box: ...`."""
    with packages.opened(path) as archive:
        return dict(_of_excel(archive)) if _WORKBOOK in archive.namelist() else dict(_of_opendocument(archive))


def _of_excel(archive: zipfile.ZipFile) -> Iterator[tuple[str, list[str]]]:
    parts = {key: place for key, _, place in packages.related(archive, _WORKBOOK)}
    for sheet in packages.elements(packages.parsed_if_whole(archive, _WORKBOOK), "sheet"):
        key = next((value for name, value in sheet.attrib.items() if packages.local_name(name) == "id"), "")
        data = b""
        with contextlib.suppress(ExtractionError):  # calamine says so
            data = packages.small_part(archive, parts.get(key, ""))
        lines = [
            *_formulas(data),
            *_headers_and_footers(data),
            *_links(data, archive, parts.get(key, "")),
            *(
                line
                for _, kind, place in packages.related(archive, parts.get(key, ""))
                for line in (*_lines(kind, packages.parsed_if_whole(archive, place)), *_drawn(archive, place))
            ),
        ]
        if lines:
            yield sheet.get("name", ""), lines


def _formulas(sheet: bytes) -> Iterator[str]:
    """Those without a value: a program wrote them, and none has worked them out."""
    count = 0
    if _NO_VALUE.search(sheet):
        for _, cell in etree.iterparse(BytesIO(sheet), tag="{*}c", resolve_entities=False, no_network=True, recover=True):
            place, formula, value = cell.get("r", "?"), packages.words_in(cell, "f"), packages.words_in(cell, "v", "is")
            cell.clear()
            count += bool(formula and not value)
            if formula and not value and count <= _FORMULAS_MAX:
                yield f"{place}: ={formula}"
    if count > _FORMULAS_MAX:
        yield f"{count - _FORMULAS_MAX} more formulas"


def _links(sheet: bytes, archive: zipfile.ZipFile, part: str) -> Iterator[str]:
    """Where the words of cells lead: `Link on A1: https://…`."""
    found = list(islice(_LINK.finditer(sheet, max(sheet.rfind(b"sheetData"), 0)), _LINKS_MAX))
    addresses = packages.addresses(archive, part) if found else {}
    for link in found:
        at = dict(_ATTRIBUTE.findall(link[1].decode("utf-8", "replace")))
        if address := addresses.get(at.get("id", "")):
            yield f"Link on {at.get('ref', '?')}: {address}"


def _headers_and_footers(sheet: bytes) -> Iterator[str]:
    """What is printed above and below the sheet, without what programs fill in (page, date, name)."""
    found = _HEADER_OR_FOOTER.findall(sheet, max(sheet.rfind(b"sheetData"), 0))
    yield from headers_and_footers_line(html.unescape(one.decode("utf-8", "replace")) for one in found)


def headers_and_footers_line(texts: Iterable[str]) -> Iterator[str]:
    """What headers and footers say, without their codes, in one line; none when that is nothing."""
    said = dict.fromkeys(part.strip() for text in texts for part in _CODES.split(text) if part.strip())
    if said:
        yield f"Header and footer: {', '.join(said)}"


def column_name(number: int) -> str:
    """A for 0, Z for 25, AA for 26."""
    letters = ""
    number += 1
    while number:
        number, rest = divmod(number - 1, 26)
        letters = chr(ord("A") + rest) + letters
    return letters


def _drawn(archive: zipfile.ZipFile, drawing: str) -> Iterator[str]:
    """Titles of charts, whose values stand in cells, and the words of SmartArt."""
    for _, kind, place in packages.related(archive, drawing):
        if kind in charts.RELATIONS:
            yield from charts.titles(packages.parsed_if_whole(archive, place))
        elif kind == "diagramData":
            yield from (f"Diagram: {said}" for said in packages.points(packages.parsed_if_whole(archive, place)))


def _lines(kind: str, root: Any) -> Iterator[str]:
    if kind == "comments":
        authors = {str(at): packages.words(one) for at, one in enumerate(packages.elements(root, "author"))}
        for comment in packages.elements(root, "comment"):
            said, author = packages.words(comment), authors.get(comment.get("authorId", ""), "")
            if said and not said.startswith(_COPY):
                by = f" of {author}" if author and not author.startswith("tc=") else ""
                yield f"Comment{by} on {comment.get('ref', '?')}: {said.removeprefix(f'{author}: ') if author else said}"
    elif kind == "threadedComment":
        for comment in packages.elements(root, "threadedComment"):
            yield f"Comment on {comment.get('ref', '?')}: {packages.words(comment)}"
    elif kind == "drawing":
        for body in packages.elements(root, "txBody"):
            said = packages.words_in(body, "t")
            if said:
                yield f"Text box: {said}"


def _of_opendocument(archive: zipfile.ZipFile) -> Iterator[tuple[str, list[str]]]:
    for table in packages.elements(packages.parsed_if_whole(archive, "content.xml"), "table"):
        links = (
            f"Link on {packages.words(link)}: {address}"
            for link in packages.elements(table, "a")
            if ":" in (address := next((value for key, value in link.attrib.items() if key.endswith("}href")), ""))
        )
        lines = list(islice(links, _LINKS_MAX))
        for comment in packages.elements(table, "annotation"):
            author = next((packages.words(one) for one in packages.elements(comment, "creator")), "")
            said = packages.words_in(comment, "p")
            lines.append(f"Comment{f' of {author}' if author else ''}: {said}")
        for drawn in packages.elements(table, "object"):
            place = posixpath.normpath(next((value for key, value in drawn.attrib.items() if key.endswith("}href")), ""))
            chart = packages.parsed_if_whole(archive, f"{place}/content.xml")
            lines += [f"Chart: {packages.words(one)}" for one in packages.elements(chart, "title") if packages.words(one)]
        lines += [
            f"Text box: {packages.words(paragraph)}"
            for shape in packages.elements(table, "custom-shape", "text-box")
            for paragraph in packages.elements(shape, "p")
            if packages.words(paragraph)
        ]
        name = next((value for key, value in table.attrib.items() if packages.local_name(key) == "name"), "")
        if lines:
            yield name, lines
