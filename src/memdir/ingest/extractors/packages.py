"""ZIP packages of office files: their properties, and XML read without entities."""

from __future__ import annotations

import contextlib
import posixpath
import zipfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import IO, Any, Final

from lxml import etree

from memdir.ingest.extractors import embedded
from memdir.ingest.extractors.output import ExtractionError, Output, encrypted

_DC: Final = "{http://purl.org/dc/elements/1.1/}"
_TERMS: Final = "{http://purl.org/dc/terms/}"
_META: Final = "{urn:oasis:names:tc:opendocument:xmlns:meta:1.0}"
PART_MAX_BYTES: Final = 128 << 20
"""Of one part, uncompressed; a part that says or holds more is refused before it fills the memory."""
_MINOR_PART_MAX_BYTES: Final = 16 << 20
_LIBRARY_FAULTS: Final = (
    *(KeyError, ValueError, AttributeError, TypeError, IndexError, SyntaxError, zipfile.BadZipFile, etree.LxmlError),
)
"""What the libraries for office files raise over parts that do not fit together."""
DAMAGED_HINT: Final = "open it in its program and save it again"


def parser() -> Any:
    """Without entities, network and DTD: billion laughs and external files come to nothing. Nesting is bounded by libxml2."""
    return etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False, recover=True)


def parsed(archive: zipfile.ZipFile, name: str, *, change: Callable[[bytes], bytes] = bytes) -> Any:
    """The root element of a part, `change`d before; None when there is no such part or nothing in it."""
    try:
        data = change(part(archive, name))
    except KeyError:
        return None
    return etree.fromstring(data, parser()) if data.strip() else None


def elements(root: Any, *names: str) -> Iterator[Any]:
    """Those with one of these names in any namespace: office files have two for the same. None has none."""
    for element in root.iter() if root is not None else ():
        if isinstance(element.tag, str) and local_name(element.tag) in names:
            yield element


def local_name(name: str) -> str:
    """Of an element or attribute, without its namespace. Unlike `etree.QName` it takes what a damaged part has."""
    return name.rpartition("}")[2]


def words(element: Any) -> str:
    """The text in an element, in one line."""
    return " ".join("".join(element.itertext()).split())


def words_in(element: Any, *names: str) -> str:
    """The text of the elements in it with one of these names."""
    return " ".join(filter(None, map(words, elements(element, *names))))


def points(diagram: Any) -> Iterator[str]:
    """The words of each point of a SmartArt ([ECMA-376] part 1, 21.4)."""
    for point in elements(diagram, "pt"):
        said = words_in(point, "p")
        if said:
            yield said


def parsed_if_whole(archive: zipfile.ZipFile, name: str) -> Any:
    """`parsed`, and None also for a part that is damaged or very large: the rest of the file is read all the same."""
    try:
        return parsed(archive, name) if archive.getinfo(name).file_size <= _MINOR_PART_MAX_BYTES else None
    except (KeyError, ExtractionError, etree.LxmlError):
        return None


def related(archive: zipfile.ZipFile, part: str) -> Iterator[tuple[str, str, str]]:
    """Identity, last word of the kind and place of what a part refers to inside the package."""
    folder = posixpath.dirname(part)
    for one in _relationships(archive, part):
        if one.get("TargetMode") != "External":
            target = one.get("Target", "")
            place = target.lstrip("/") if target.startswith("/") else posixpath.normpath(posixpath.join(folder, target))
            yield one.get("Id", ""), one.get("Type", "").rpartition("/")[2], place


def addresses(archive: zipfile.ZipFile, part: str) -> dict[str, str]:
    """What a part refers to outside the package, by its identity."""
    external = (one for one in _relationships(archive, part) if one.get("TargetMode") == "External")
    return {one.get("Id", ""): one.get("Target", "") for one in external}


def _relationships(archive: zipfile.ZipFile, part: str) -> Iterable[Any]:
    folder, name = posixpath.split(part)
    return elements(parsed_if_whole(archive, f"{folder}/_rels/{name}.rels"), "Relationship")


def part(archive: zipfile.ZipFile, name: str) -> bytes:
    """The bytes of a part. KeyError when it is missing, ExtractionError beyond PART_MAX_BYTES or when it cannot be unpacked."""
    info = archive.getinfo(name)
    _refuse_locked(info)
    try:
        with archive.open(info) as handle:
            data = handle.read(PART_MAX_BYTES + 1)
    except (zipfile.BadZipFile, OSError, EOFError, NotImplementedError) as error:
        raise ExtractionError("it is damaged: a part cannot be unpacked", hint=DAMAGED_HINT) from error
    if len(data) > PART_MAX_BYTES:
        raise _too_large()
    return data


def _refuse_locked(info: zipfile.ZipInfo) -> None:
    if info.flag_bits & 1:
        raise encrypted()


def _too_large() -> ExtractionError:
    return ExtractionError(f"a part of it unpacks to more than {PART_MAX_BYTES >> 20} MiB", hint="split the document")


@contextlib.contextmanager
def opened(path: Path) -> Iterator[zipfile.ZipFile]:
    """The package. ExtractionError when it is none."""
    try:
        archive = zipfile.ZipFile(path)
    except (zipfile.BadZipFile, OSError, ValueError) as error:
        raise ExtractionError("it is damaged or cut off", hint=DAMAGED_HINT) from error
    with archive:
        yield archive


@contextlib.contextmanager
def reading(path: Path) -> Iterator[IO[bytes]]:
    """The file for a library that unpacks by itself, after a look at what it would unpack to."""
    with opened(path) as archive:
        for info in archive.infolist():
            if info.file_size > PART_MAX_BYTES and info.filename.endswith((".xml", ".rels")):
                raise _too_large()
            _refuse_locked(info)
    with path.open("rb") as handle:
        try:
            yield handle
        except _LIBRARY_FAULTS as error:
            raise ExtractionError("it is damaged: its parts do not fit together", hint=DAMAGED_HINT) from error


def add_pictures(path: Path, folders: tuple[str, ...], out: Output) -> None:
    """The text in the pictures below `folders` of the package."""
    with opened(path) as archive:
        for name in archive.namelist():
            if name.startswith(folders):
                add_picture(archive, name, out)


def add_picture(archive: zipfile.ZipFile, name: str, out: Output) -> None:
    """The text in one picture; nothing when there is no such part or it is too large."""
    embedded.add_picture(small_part(archive, name), posixpath.basename(name), out)


def small_part(archive: zipfile.ZipFile, name: str) -> bytes:
    """The bytes of a part that stands in the document; none when there is no such part or it is too large to be read."""
    try:
        return part(archive, name) if archive.getinfo(name).file_size <= embedded.PART_MAX_BYTES else b""
    except KeyError:
        return b""


def add_headers_and_footers(said: Iterable[str], out: Output) -> None:
    """A section of headers and footers, each text once; numbers alone are those of pages."""
    kept = dict.fromkeys(text.strip() for text in said)
    texts = [text for text in kept if text and not text.isdigit()]
    if texts:
        out.heading(2, "Headers and footers")
        out.paragraph("\n\n".join(texts))


def properties(path: Path, out: Output) -> None:
    """Title, author and date of an office file."""
    with opened(path) as archive:
        root = parsed(archive, "docProps/core.xml")
        root = parsed(archive, "meta.xml") if root is None else root
    if root is None:
        return
    out.title = root.findtext(f".//{_DC}title") or ""
    out.fact("author", root.findtext(f".//{_DC}creator"))
    out.fact("written", root.findtext(f".//{_TERMS}modified") or root.findtext(f".//{_DC}date"))
    out.fact("subject", root.findtext(f".//{_DC}subject"))
