"""Drawings: the words in SVG pictures, in diagrams of draw.io, and in those of Excalidraw; and what arrows lead from where.

Formats: www.w3.org/TR/SVG2/text.html; www.drawio.com/doc/faq/diagram-source-edit; docs.excalidraw.com (JSON schema).
"""

from __future__ import annotations

import base64
import binascii
import html
import json
import re
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote

from lxml import etree

from memdir.ingest.extractors import packages
from memdir.ingest.extractors.formats import DRAWIO, EXCALIDRAW
from memdir.ingest.extractors.output import ExtractionError, Output
from memdir.ingest.text import decode

_DIAGRAM_MAX_BYTES: Final = 64 << 20
_NO_TEXT: Final = frozenset({"style", "script", "metadata", "namedview", "glyph", "font"})
_PLACED: Final = frozenset({"x", "y", "dx", "dy"})
"""A piece of a text with one of these stands in a place of its own."""
_TAG: Final = re.compile(r"<(?:br|/?(?:div|p|li|tr))\b[^>]*>|<[^>]{1,500}>", re.IGNORECASE)


def extract(path: Path, out: Output) -> None:
    """ExtractionError when it is damaged."""
    out.engine = "memdir drawing"
    if out.media_type == EXCALIDRAW.media_type:
        _excalidraw(path, out)
        return
    root = etree.fromstring(path.read_bytes(), packages.parser())
    if root is None:
        raise ExtractionError("it is damaged", hint="open it in its program and save it again")
    if out.media_type == DRAWIO.media_type:
        _drawio(root, out)
        return
    title = next((child for child in root if _name(child) == "title"), None)
    out.title = "" if title is None else _words(title)
    _lines(_svg(root), out)


def _lines(said: Iterable[str], out: Output) -> None:
    """Each once, in order."""
    out.paragraph("\n".join(dict.fromkeys(line for one in said if (line := " ".join(one.split())))))


def _svg(element: Any) -> Iterator[str]:
    name = _name(element)
    if name in _NO_TEXT:
        return
    if name in {"title", "desc", "foreignobject"}:
        yield _words(element)
    elif name == "text":
        yield "".join(_placed(element))
    elif name == "switch":  # one of several, the first that a program can show
        rich = [child for child in element if _name(child) == "foreignobject"]
        for child in rich or list(element)[:1]:
            yield from _svg(child)
    elif element.tag is etree.Comment:
        parent = element.getparent()  # Matplotlib draws the letters, and says here what they are
        if parent is not None and str(parent.get("id", "")).startswith("text_"):
            yield element.text or ""
    else:
        for child in element:
            yield from _svg(child)


def _placed(element: Any) -> Iterator[str]:
    yield element.text or ""
    for child in element:
        if isinstance(child.tag, str):
            yield " " if _PLACED & set(child.attrib) else ""
            yield from _placed(child)
        yield child.tail or ""


def _words(element: Any) -> str:
    return " ".join(" ".join(element.itertext()).split())


def _name(element: Any) -> str:
    return packages.local_name(element.tag).lower() if isinstance(element.tag, str) else ""


def _drawio(root: Any, out: Output) -> None:
    diagrams = [root] if _name(root) == "mxgraphmodel" else [one for one in root if _name(one) == "diagram"]
    for number, diagram in enumerate(diagrams, start=1):
        model = diagram if len(diagram) else _unpacked(diagram.text or "")
        if len(diagrams) > 1 or diagram.get("name"):
            out.heading(2, diagram.get("name") or f"Page {number}")
        if model is None:
            out.fact("unread", f"page {number}: it is damaged")
        else:
            _lines(_of_cells(model), out)
        out.progress(number, len(diagrams))


def _unpacked(packed: str) -> Any:
    """A page that is deflated; None when it cannot be read."""
    try:
        source = zlib.decompressobj(-15).decompress(base64.b64decode(packed), _DIAGRAM_MAX_BYTES)
        return etree.fromstring(unquote(source.decode()).encode(), packages.parser())
    except (binascii.Error, zlib.error, ValueError, etree.LxmlError):
        return None


def _of_cells(model: Any) -> Iterator[str]:
    names: dict[str, str] = {}
    arrows: list[tuple[str, str, str]] = []
    for cell in packages.elements(model, "mxCell", "object", "UserObject"):
        said = " ".join(html.unescape(_TAG.sub(" ", cell.get("value") or cell.get("label") or "")).split())
        parent = cell.getparent()
        name = cell.get("id") or ("" if parent is None else parent.get("id", ""))
        if cell.get("source") and cell.get("target"):
            arrows.append((cell.get("source"), cell.get("target"), said or names.get(name, "")))
        elif said:
            names[name] = said
    yield from names.values()
    yield from _arrows(names, arrows)


def _arrows(names: dict[str, str], arrows: Iterable[tuple[str, str, str]]) -> Iterator[str]:
    for source, target, said in arrows:
        ends = " → ".join(names[one] for one in (source, target) if one in names)
        yield f"{ends}: {said}" if ends and said else ends if "→" in ends else said


def _excalidraw(path: Path, out: Output) -> None:
    decoded = decode(path.read_bytes())
    try:
        found = json.loads("" if decoded is None else decoded.text)
        shapes = [one for one in found["elements"] if isinstance(one, dict) and not one.get("isDeleted")]
    except (ValueError, KeyError, TypeError) as error:
        raise ExtractionError("it is damaged or cut off", hint="open it in Excalidraw and save it again") from error
    names: dict[str, str] = {}
    for one in shapes:
        said = " ".join(str(one.get("originalText") or one.get("text") or "").split())
        if said:
            names[str(one.get("containerId") or one.get("id"))] = said
    arrows = [one for one in shapes if one.get("type") == "arrow"]
    told = [(_bound(one, "startBinding"), _bound(one, "endBinding"), names.pop(str(one.get("id")), "")) for one in arrows]
    _lines([*names.values(), *_arrows(names, told)], out)


def _bound(arrow: dict[str, Any], end: str) -> str:
    binding = arrow.get(end)
    return str(binding.get("elementId")) if isinstance(binding, dict) else ""
