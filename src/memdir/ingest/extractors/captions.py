"""What people wrote about a picture: title, caption, keywords, people and place, as photo managers keep them in the file
(XMP, ISO 16684-1; IPTC-IIM 4.2; EXIF with the fields of Windows; text chunks of PNG)."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from typing import Any, Final

from lxml import etree
from PIL import ExifTags, Image, IptcImagePlugin

from memdir.ingest.extractors import packages

_XMP: Final = {
    "title": "Title", "Headline": "Title", "description": "Caption", "subject": "Keywords", "Location": "Place",
    "City": "Place", "State": "Place", "Country": "Place",
}  # fmt: skip
_NAMES: Final = ("Name", "PersonDisplayName")
"""Of the regions of faces: of the Metadata Working Group, and of Microsoft."""
_IPTC: Final = {
    (2, 5): "Title", (2, 105): "Title", (2, 120): "Caption", (2, 25): "Keywords", (2, 92): "Place", (2, 90): "Place",
    (2, 95): "Place", (2, 101): "Place",
}  # fmt: skip
_WINDOWS: Final = {0x9C9B: "Title", 0x9C9F: "Caption", 0x9C9C: "Caption", 0x9C9E: "Keywords"}
_PNG: Final = {"title": "Title", "description": "Caption", "comment": "Caption", "keywords": "Keywords"}
_OF_PROGRAMS: Final = re.compile(
    r".*digital camera|sony dsc|dcim|samsung|default|screenshot|created (?:with|by) .*", re.IGNORECASE
)
"""Descriptions that no person wrote."""
_LABELS: Final = ("Title", "Caption", "Keywords", "People", "Place")
_XMP_MAX_BYTES: Final = 4 << 20
_VALUE_MAX_CHARS: Final = 4_000


def lines(image: Image.Image) -> list[str]:
    """`Caption: The boat below the bridge`, a line for each kind; what several places say is said once."""
    said: dict[str, dict[str, None]] = {}
    for source in (_of_xmp, _of_iptc, _of_exif, _of_png):
        with contextlib.suppress(ValueError, KeyError, TypeError, SyntaxError, IndexError, OSError, etree.LxmlError):
            for label, value in source(image):
                kept = " ".join(value.replace("\0", " ").split())[:_VALUE_MAX_CHARS]
                if kept and not _OF_PROGRAMS.fullmatch(kept):
                    said.setdefault(label, {})[kept] = None
    return [f"{label}: {', '.join(said[label])}" for label in _LABELS if label in said]


def _of_xmp(image: Image.Image) -> Iterator[tuple[str, str]]:
    data = image.info.get("xmp") or image.info.get("XML:com.adobe.xmp") or b""
    data = data.encode() if isinstance(data, str) else data
    root = etree.fromstring(data, packages.parser()) if data and len(data) <= _XMP_MAX_BYTES else None
    for element in root.iter() if root is not None else ():
        for name, value in element.attrib.items():  # a simple value may stand as one
            label = _XMP.get(packages.local_name(name))
            if label is not None and name.startswith("{"):
                yield label, value
    for element in packages.elements(root, *_XMP):
        items = [*packages.elements(element, "li")]
        for item in items or [element]:
            yield _XMP[packages.local_name(element.tag)], packages.words(item)
    for region in packages.elements(root, "Regions"):
        for element in region.iter():
            yield from (("People", value) for name, value in element.attrib.items() if packages.local_name(name) in _NAMES)
        for element in packages.elements(region, *_NAMES):
            yield "People", packages.words(element)


def _of_iptc(image: Image.Image) -> Iterator[tuple[str, str]]:
    opened: Any = image
    found: Any = IptcImagePlugin.getiptcinfo(opened) or {}
    for key, label in _IPTC.items():
        value = found.get(key, [])
        for one in value if isinstance(value, list) else [value]:
            yield label, _decoded(one)


def _of_exif(image: Image.Image) -> Iterator[tuple[str, str]]:
    exif = image.getexif()
    yield "Caption", str(exif.get(ExifTags.Base.ImageDescription) or "")
    for tag, label in _WINDOWS.items():
        value = exif.get(tag)
        if isinstance(value, bytes | tuple):
            text = bytes(value).decode("utf-16-le", "replace").rstrip("\0")
            for one in text.split(";") if label == "Keywords" else [text]:
                yield label, one
    comment = exif.get_ifd(ExifTags.IFD.Exif).get(ExifTags.Base.UserComment)
    if isinstance(comment, bytes) and comment[:8] in (b"ASCII\0\0\0", b"UNICODE\0"):
        code = "utf-16" if comment.startswith(b"UNICODE") else "utf-8"
        yield "Caption", comment[8:].decode(code, "replace")


def _of_png(image: Image.Image) -> Iterator[tuple[str, str]]:
    for key, value in getattr(image, "text", {}).items():
        label = _PNG.get(str(key).casefold())
        if label is not None:
            yield label, str(value)


def _decoded(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value.decode("latin-1")
