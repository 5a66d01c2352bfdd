"""What stands on a sheet and in none of its cells: comments on cells and text boxes ([ECMA-376] part 1, 18.7 and 20.5;
OpenDocument 1.3, 14.1). Calamine reads cells alone."""

from __future__ import annotations

import posixpath
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from lxml import etree

from memdir.ingest.extractors import packages
from memdir.ingest.extractors.output import ExtractionError

_WORKBOOK: Final = "xl/workbook.xml"
_COPY: Final = "[Threaded comment]"
"""What Excel says in the old kind of comment where there is one of the new kind, which is read."""
_SHEET_MAX: Final = 5_000
_PART_MAX_BYTES: Final = 16 << 20


def notes(path: Path) -> dict[str, list[str]]:
    """Lines of each sheet of a package by its name: `Comment of Ana on B3: is it not 26?`, `Text box: ...`."""
    with packages.opened(path) as archive:
        return dict(_of_excel(archive)) if _WORKBOOK in archive.namelist() else dict(_of_opendocument(archive))


def _of_excel(archive: zipfile.ZipFile) -> Iterator[tuple[str, list[str]]]:
    parts = {key: place for key, _, place in _related(archive, _WORKBOOK)}
    for sheet in packages.elements(_root(archive, _WORKBOOK), "sheet"):
        key = next((value for name, value in sheet.attrib.items() if name.rpartition("}")[2] == "id"), "")
        lines = [
            line for _, kind, place in _related(archive, parts.get(key, "")) for line in _lines(kind, _root(archive, place))
        ]
        if lines:
            yield sheet.get("name", ""), lines[:_SHEET_MAX]


def _related(archive: zipfile.ZipFile, part: str) -> Iterator[tuple[str, str, str]]:
    """Identity, last word of the kind and place of what a part refers to inside the package."""
    folder, name = posixpath.split(part)
    for one in packages.elements(_root(archive, f"{folder}/_rels/{name}.rels"), "Relationship"):
        if one.get("TargetMode") != "External":
            target = one.get("Target", "")
            place = target.lstrip("/") if target.startswith("/") else posixpath.normpath(posixpath.join(folder, target))
            yield one.get("Id", ""), one.get("Type", "").rpartition("/")[2], place


def _lines(kind: str, root: Any) -> Iterator[str]:
    if kind == "comments":
        authors = {str(at): " ".join(packages.words(one)) for at, one in enumerate(packages.elements(root, "author"))}
        for comment in packages.elements(root, "comment"):
            said, author = " ".join(packages.words(comment)), authors.get(comment.get("authorId", ""), "")
            if said and not said.startswith(_COPY):
                by = f" of {author}" if author and not author.startswith("tc=") else ""
                yield f"Comment{by} on {comment.get('ref', '?')}: {said.removeprefix(f'{author}: ') if author else said}"
    elif kind == "threadedComment":
        for comment in packages.elements(root, "threadedComment"):
            yield f"Comment on {comment.get('ref', '?')}: {' '.join(packages.words(comment))}"
    elif kind == "drawing":
        for body in packages.elements(root, "txBody"):
            said = " ".join(word for text in packages.elements(body, "t") for word in packages.words(text))
            if said:
                yield f"Text box: {said}"


def _of_opendocument(archive: zipfile.ZipFile) -> Iterator[tuple[str, list[str]]]:
    for table in packages.elements(_root(archive, "content.xml"), "table"):
        lines = []
        for comment in packages.elements(table, "annotation"):
            author = next((" ".join(packages.words(one)) for one in packages.elements(comment, "creator")), "")
            said = " ".join(word for paragraph in packages.elements(comment, "p") for word in packages.words(paragraph))
            lines.append(f"Comment{f' of {author}' if author else ''}: {said}")
        lines += [
            f"Text box: {' '.join(packages.words(paragraph))}"
            for shape in packages.elements(table, "custom-shape", "text-box")
            for paragraph in packages.elements(shape, "p")
            if packages.words(paragraph)
        ]
        name = next((value for key, value in table.attrib.items() if key.rpartition("}")[2] == "name"), "")
        if lines:
            yield name, lines[:_SHEET_MAX]


def _root(archive: zipfile.ZipFile, name: str) -> Any:
    """None also for a part that is damaged or very large: the cells are read all the same."""
    try:
        return packages.parsed(archive, name) if archive.getinfo(name).file_size <= _PART_MAX_BYTES else None
    except (KeyError, ExtractionError, etree.LxmlError):
        return None
