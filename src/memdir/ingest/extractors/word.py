"""Word documents (.docx) by mammoth, which knows styles, lists, notes, comments and tracked changes; its HTML made Markdown."""

from __future__ import annotations

import posixpath
import re
import zipfile
from importlib.metadata import version
from io import BytesIO
from pathlib import Path
from typing import IO, Any, Final

import mammoth
from lxml import etree

from memdir.ingest.extractors import charts, embedded, markup, ole_objects, packages
from memdir.ingest.extractors.output import Output

_W: Final = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_M: Final = "{http://schemas.openxmlformats.org/officeDocument/2006/math}"
_DOCUMENT: Final = "word/document.xml"
_STYLES: Final = """
p[style-name='Title'] => h1:fresh
p[style-name='Subtitle'] => h2:fresh
comment-reference => sup
"""


def extract(path: Path, out: Output) -> None:
    """ExtractionError when it is encrypted or damaged."""
    out.engine = f"mammoth {version('mammoth')}"
    packages.properties(path, out)
    with packages.reading(path) as handle:
        html = mammoth.convert_to_html(
            _with_formulas_and_ruby(handle),
            style_map=_STYLES,
            convert_image=mammoth.images.img_element(lambda _image: {}),
            ignore_empty_paragraphs=True,
        ).value
    out.paragraph(markup.markdown(html))
    _imported_parts(path, out)
    _drawn(path, out)
    _headers_and_footers(path, out)
    packages.add_pictures(path, ("word/media/",), out)
    ole_objects.add_all(path, out)


def _with_formulas_and_ruby(handle: IO[bytes]) -> IO[bytes]:
    """The same document with the letters of its formulas, and words with their reading behind them, as text: mammoth passes
    over both."""
    with zipfile.ZipFile(handle) as archive:
        root = packages.parsed(archive, _DOCUMENT)
        formulas = [] if root is None else list(root.iter(f"{_M}oMath"))
        rubies = [] if root is None else list(root.iter(f"{_W}ruby"))
        if not formulas and not rubies:
            return handle
        for formula in formulas:
            text = "".join(node.text or "" for node in formula.iter(f"{_M}t"))
            tail = formula.tail
            formula.clear()
            formula.tail = tail
            formula.tag = f"{_W}r"
            etree.SubElement(formula, f"{_W}t").text = text
        for ruby in rubies:
            base, reading = (_words(element) for element in (ruby.find(f"{_W}rubyBase"), ruby.find(f"{_W}rt")))
            ruby.clear()
            ruby.tag = f"{_W}t"
            ruby.text = f"{base}({reading})" if reading else base
        copy = BytesIO()
        with zipfile.ZipFile(copy, "w") as written:
            for info in archive.infolist():
                data = etree.tostring(root) if info.filename == _DOCUMENT else packages.part(archive, info.filename)
                written.writestr(info.filename, data)
    return copy


def _words(element: Any) -> str:
    return "" if element is None else "".join(node.text or "" for node in element.iter(f"{_W}t"))


def _imported_parts(path: Path, out: Output) -> None:
    """Pages and documents that Word is to take in when it opens this one ([ECMA-376] part 1, 17.17.2)."""
    with zipfile.ZipFile(path) as archive:
        for _, kind, place in packages.related(archive, _DOCUMENT):
            if kind == "aFChunk":
                embedded.add(packages.small_part(archive, place), posixpath.basename(place), out, title="Part")


def _drawn(path: Path, out: Output) -> None:
    """Charts and the words of SmartArt, which mammoth passes over."""
    with zipfile.ZipFile(path) as archive:
        names = sorted(name for name in archive.namelist() if re.fullmatch(r"word/charts/chart(?:Ex)?\d*\.xml", name))
        for number, name in enumerate(names, start=1):
            out.heading(2, f"Chart {number}")
            charts.add(packages.parsed_if_whole(archive, name), out)
        names = sorted(name for name in archive.namelist() if re.fullmatch(r"word/diagrams/data\d*\.xml", name))
        for number, name in enumerate(names, start=1):
            points = [*packages.points(packages.parsed_if_whole(archive, name))]
            if points:
                out.heading(2, f"Diagram {number}")
            for said in points:
                out.item(said)
            out.end_list()


def _headers_and_footers(path: Path, out: Output) -> None:
    paragraphs: list[Any] = []
    with zipfile.ZipFile(path) as archive:
        for name in sorted(archive.namelist()):
            if not name.startswith(("word/header", "word/footer")) or not name.endswith(".xml"):
                continue
            root = packages.parsed(archive, name)
            paragraphs += list(root.iter(f"{_W}p")) if root is not None else []
    packages.add_headers_and_footers(map(_words, paragraphs), out)
