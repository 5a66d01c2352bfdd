"""Slides (.pptx) by python-pptx: each under its number and title, with tables, charts and the speaker's notes."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

from lxml import etree
from pptx.exc import PackageNotFoundError
from pptx.opc.package import PartFactory
from pptx.package import Package
from pptx.parts.presentation import PresentationPart
from pptx.shapes.picture import Picture

from memdir.ingest.extractors import charts, embedded, markup, ole_objects, packages
from memdir.ingest.extractors.output import ExtractionError, Output

for _kind in ("slideshow", "template"):  # with macros; without them the library knows both
    PartFactory.part_type_for[f"application/vnd.ms-powerpoint.{_kind}.macroEnabled.main+xml"] = PresentationPart


def extract(path: Path, out: Output) -> None:
    """ExtractionError when it is damaged."""
    out.engine = f"python-pptx {version('python-pptx')}"
    packages.properties(path, out)
    with packages.reading(path) as handle:
        try:
            # `Presentation` refuses what is shown at once when it is opened (.ppsx), and templates.
            presentation: Any = Package.open(handle).main_document_part
            slides = presentation.presentation.slides
        except (AttributeError, PackageNotFoundError):
            raise ExtractionError("it is damaged: no slide can be opened", hint=packages.DAMAGED_HINT) from None
        out.fact("slides", len(slides))
        authors = _authors(presentation)
        for number, slide in enumerate(slides, start=1):
            title = slide.shapes.title
            named = title.text_frame.text if title is not None and title.has_text_frame else ""
            out.heading(2, f"Slide {number}: {named}" if named.strip() else f"Slide {number}")
            _shapes((shape for shape in slide.shapes if title is None or shape.shape_id != title.shape_id), out)
            for root in _related(slide.part, *charts.RELATIONS):
                charts.add(root, out)
            _diagrams(slide.part, out)
            if slide.has_notes_slide and slide.notes_slide.notes_text_frame is not None:
                notes = slide.notes_slide.notes_text_frame.text
                out.paragraph(f"Notes: {notes}" if notes.strip() else "")
            out.paragraph("\n".join(_comments(slide.part, authors)))
            out.progress(number, len(slides))
    ole_objects.add_all(path, out)


def _shapes(shapes: Iterable[Any], out: Output) -> None:
    for shape in shapes:
        if hasattr(shape, "shapes"):
            _shapes(shape.shapes, out)
        elif getattr(shape, "has_table", False):
            out.table([cell.text for cell in row.cells] for row in shape.table.rows)
        elif isinstance(shape, Picture):
            _picture(shape, out)
        elif shape.has_text_frame:
            paragraphs = [paragraph for paragraph in shape.text_frame.paragraphs if paragraph.text.strip()]
            if len(paragraphs) == 1:
                out.paragraph(paragraphs[0].text)
            else:
                for paragraph in paragraphs:
                    out.item(paragraph.text, depth=paragraph.level)
                out.end_list()


def _related(part: Any, *kinds: str) -> Iterator[Any]:
    """The root elements of what a part refers to as one of these kinds; of what is damaged nothing."""
    for one in part.rels.values():
        if not one.is_external and one.reltype.rpartition("/")[2] in kinds:
            with contextlib.suppress(etree.LxmlError):
                yield etree.fromstring(one.target_part.blob, packages.parser())


def _diagrams(slide: Any, out: Output) -> None:
    for root in _related(slide, "diagramData"):
        for said in packages.points(root):
            out.item(said)
        out.end_list()


def _authors(presentation: Any) -> dict[str, str]:
    """Of comments, by their identity."""
    roots = _related(presentation, "commentAuthors", "authors")
    return {one.get("id", ""): one.get("name", "") for root in roots for one in packages.elements(root, "cmAuthor", "author")}


def _comments(slide: Any, authors: dict[str, str]) -> Iterator[str]:
    for root in _related(slide, "comments"):
        for comment in packages.elements(root, "cm"):
            said = packages.words_in(comment, "text", "t")
            author = authors.get(comment.get("authorId", ""), "")
            if said:
                yield f"- Comment{f' of {author}' if author else ''}: {said}"


def _picture(shape: Picture, out: Output) -> None:
    for said in shape.element.xpath("./p:nvPicPr/p:cNvPr/@descr"):
        out.paragraph(markup.description(said))
    try:
        image = shape.image
    except (KeyError, ValueError):  # linked, and not in the file
        return
    embedded.add_picture(image.blob, image.filename or shape.name, out)
