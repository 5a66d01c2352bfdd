"""Tells what kind of file some bytes are, by their content; the name decides only between kinds that look alike.

Signatures: the formats' own specifications, as collected in the file(1) magic and the WHATWG MIME Sniffing standard.
"""

from __future__ import annotations

import re
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from memdir.ingest.chunker import mail
from memdir.ingest.extractors.chat import is_whatsapp

HEAD_BYTES: Final = 16 << 10
"""How much of a file `family_of` needs to see."""
_OOXML: Final = "application/vnd.openxmlformats-officedocument."
_ODF: Final = "application/vnd.oasis.opendocument."
_NAMES_MAX: Final = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """`kind` is the word in the sibling's name, `module` the extractor's name below memdir.ingest.extractors."""

    kind: str
    media_type: str
    module: str


def _made(kind: str, media_type: str, module: str) -> Format:
    return Format(kind=kind, media_type=media_type, module=module)


PDF: Final = _made("pdf", "application/pdf", "pdf")
DOCX: Final = _made("office", _OOXML + "wordprocessingml.document", "word")
PPTX: Final = _made("office", _OOXML + "presentationml.presentation", "slides")
XLSX: Final = _made("office", _OOXML + "spreadsheetml.sheet", "sheets")
XLS: Final = _made("office", "application/vnd.ms-excel", "sheets")
ODS: Final = _made("office", _ODF + "spreadsheet", "sheets")
ODT: Final = _made("office", _ODF + "text", "opendocument")
ODP: Final = _made("office", _ODF + "presentation", "opendocument")
ODG: Final = _made("office", _ODF + "graphics", "opendocument")
SXW: Final = _made("office", "application/vnd.sun.xml.writer", "opendocument")
SXC: Final = _made("office", "application/vnd.sun.xml.calc", "opendocument")
SXI: Final = _made("office", "application/vnd.sun.xml.impress", "opendocument")
RTF: Final = _made("office", "application/rtf", "rtf")
IWORK: Final = _made("office", "application/vnd.apple.iwork", "iwork")
EPUB: Final = _made("web", "application/epub+zip", "ebook")
HTML: Final = _made("web", "text/html", "web")
WEB_ARCHIVE: Final = _made("web", "application/x-webarchive", "web")
MAIL: Final = _made("mail", "message/rfc822", "email")
MBOX: Final = _made("mail", "application/mbox", "email")
CALENDAR: Final = _made("mail", "text/calendar", "calendar")
CARDS: Final = _made("mail", "text/vcard", "calendar")
CHAT: Final = _made("mail", "application/x-chat-export", "chat")
EVERNOTE: Final = _made("archive", "application/enex+xml", "evernote")
TNEF: Final = _made("mail", "application/ms-tnef", "tnef")
OUTLOOK: Final = _made("mail", "application/vnd.ms-outlook", "outlook")
ZIP: Final = _made("archive", "application/zip", "archive")
TAR: Final = _made("archive", "application/x-tar", "archive")
GZIP: Final = _made("archive", "application/gzip", "archive")
BZIP2: Final = _made("archive", "application/x-bzip2", "archive")
XZ: Final = _made("archive", "application/x-xz", "archive")
OLD_WORD: Final = _made("office", "application/msword", "old_office")
OLD_SLIDES: Final = _made("office", "application/vnd.ms-powerpoint", "old_office")
_OLE: Final = _made("office", "application/x-ole-storage", "ole")


def _image(media_type: str) -> Format:
    return _made("image", media_type, "image")


def _audio(media_type: str) -> Format:
    return _made("audio", media_type, "speech")


def _video(media_type: str) -> Format:
    return _made("video", media_type, "video")


SVG: Final = _made("image", "image/svg+xml", "drawing")
DRAWIO: Final = _made("image", "application/vnd.jgraph.mxfile", "drawing")
EXCALIDRAW: Final = _made("image", "application/vnd.excalidraw+json", "drawing")

_SIGNATURES: Final = (
    (b"\x89PNG\r\n\x1a\n", _image("image/png")),
    (b"\xff\xd8\xff", _image("image/jpeg")),
    (b"GIF87a", _image("image/gif")),
    (b"GIF89a", _image("image/gif")),
    (b"II*\x00", _image("image/tiff")),
    (b"MM\x00*", _image("image/tiff")),
    (b"OggS", _audio("audio/ogg")),
    (b"ID3", _audio("audio/mpeg")),
    (b"fLaC", _audio("audio/flac")),
    (b"#!AMR", _audio("audio/amr")),
    (b".snd", _audio("audio/basic")),
    (b"caff", _audio("audio/x-caf")),
    (b"\x1a\x45\xdf\xa3", _video("video/x-matroska")),
    (b"FLV\x01", _video("video/x-flv")),
    (b"\x00\x00\x01\xba", _video("video/mpeg")),
    (b"PK\x03\x04", ZIP),
    (b"PK\x05\x06", ZIP),
    (b"\x1f\x8b", GZIP),
    (b"BZh", BZIP2),
    (b"\xfd7zXZ\x00", XZ),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", _OLE),
    (b"{\\rtf", RTF),
    (b"\x78\x9f\x3e\x22", TNEF),
)
_ASF: Final = b"\x30\x26\xb2\x75\x8e\x66\xcf\x11"
_SIGNATURES_AND_NAMES: Final = (
    (_ASF, ("wma",), _audio("audio/x-ms-wma")),
    (_ASF, ("wmv", "asf"), _video("video/x-ms-wmv")),
    (b"FORM", ("aif", "aiff", "aifc"), _audio("audio/aiff")),
    (b"bplist00", ("webarchive",), WEB_ARCHIVE),
)
"""Of containers of many things, which are told by the ends of names."""
_RIFF: Final = {b"WAVE": _audio("audio/wav"), b"AVI ": _video("video/x-msvideo"), b"WEBP": _image("image/webp")}
_BRANDS: Final = {
    b"M4A ": _audio("audio/mp4"),
    b"M4B ": _audio("audio/mp4"),
    b"heic": _image("image/heic"),
    b"heix": _image("image/heic"),
    b"mif1": _image("image/heic"),
    b"avif": _image("image/avif"),
    b"qt  ": _video("video/quicktime"),
}
_MPEG_AUDIO: Final = re.compile(rb"\xff[\xe2\xe3\xf2\xf3\xf6\xf7\xfa\xfb\xf1\xf9]")
_BMP: Final = re.compile(rb"BM.{4}\x00{4}.{4}[\x0c\x28\x38\x40\x6c\x7c]\x00\x00\x00", re.DOTALL)
_COMMENTS: Final = rb"(?:<!--(?:(?!-->).){0,4000}-->\s*)*+"
_PROLOGUE: Final = rb"\s*(?:<\?xml[^>]*>\s*)?" + _COMMENTS
_DOCTYPE: Final = _PROLOGUE + rb"(?:<!DOCTYPE [^>\[]*(?:\[[^\]]{0,4000}\]\s*)?>\s*)?" + _COMMENTS
_HTML: Final = re.compile(_PROLOGUE + rb"<(?:!doctype\s+html|html|head|body)\b", re.I | re.S)
_BEGINNINGS: Final = (
    (re.compile(_DOCTYPE + rb"<en-export\b", re.S), EVERNOTE),
    (re.compile(_DOCTYPE + rb"<(?:svg:)?svg\b", re.S), SVG),
    (re.compile(_DOCTYPE + rb"<(?:mxfile|mxGraphModel)\b", re.S), DRAWIO),
    (re.compile(rb'\s*\{\s*"type"\s*:\s*"excalidraw"'), EXCALIDRAW),
)
_ENVELOPE: Final = re.compile(rb"From \S+ +\w{3} \w{3} [ \d]\d \d\d:\d\d")


def family_of(head: bytes, name: str) -> Format | None:
    """The format as far as the first HEAD_BYTES tell, None for text that is indexed as it is and for what nobody can read.

    A ZIP may turn out to be an office document, a compound file a mail: `refined` looks inside, in the process that may.
    """
    suffix = name.rpartition(".")[2].lower()
    fitting = [found for signature, found in _SIGNATURES if head.startswith(signature)]
    fitting += [found for signature, named, found in _SIGNATURES_AND_NAMES if head.startswith(signature) and suffix in named]
    if fitting:
        return fitting[0]
    if b"%PDF-" in head[:1024]:
        return PDF
    if head[:4] == b"RIFF":
        return _RIFF.get(head[8:12])
    if head[4:8] == b"ftyp":
        return _BRANDS.get(head[8:12], _video("video/mp4"))
    if head[257:262] == b"ustar":
        return TAR
    if _BMP.match(head):
        return _image("image/bmp")
    if _MPEG_AUDIO.match(head) and b"\x00" in head[:4096]:
        return _audio("audio/mpeg")
    return _text_family(head, name)


def _text_family(head: bytes, name: str) -> Format | None:
    suffix = name.rpartition(".")[2].lower() if "." in name else ""
    bare = head.removeprefix(b"\xef\xbb\xbf")
    if b"\x00" in head[:8000] and not head.startswith((b"\xff\xfe", b"\xfe\xff")):
        return None
    if _HTML.match(bare) or (suffix in {"html", "htm", "xhtml"} and b"<" in bare):
        return HTML
    for beginning, found in _BEGINNINGS:
        if beginning.match(bare):
            return found
    for signature, found in ((b"BEGIN:VCALENDAR", CALENDAR), (b"BEGIN:VCARD", CARDS)):
        if bare[:200].lstrip().upper().startswith(signature):
            return found
    if _is_chat(bare):
        return CHAT
    if _ENVELOPE.match(bare):
        return MBOX
    if suffix in {"eml", "mht", "mhtml"} or mail.looks_like(bare[:8000].decode("utf-8", "replace").replace("\r\n", "\n")):
        return HTML if suffix in {"mht", "mhtml"} else MAIL
    return None


_CHATS: Final = (
    (b'"mapping"', b'"author"', b'"role"'),
    (b'"chat_messages"', b'"sender"'),
    (b'"messages"', b'"from_id"', b'"date"', b'"type": "message"'),
    (b'"messages"', b'"guild"', b'"channel"', b'"dateRange"'),
    (b'"messages"', b'"participants"', b'"sender_name"', b'"timestamp_ms"'),
)
"""Fields that only an export of ChatGPT has, of Claude, of Telegram, of Discord, and of Messenger and Instagram."""
_SLACK: Final = (b'"type": "message"', b'"ts": "', b'"text": ', b'"user": "')
"""Fields of a list of messages."""


def _is_chat(head: bytes) -> bool:
    """An export in JSON by the fields that only it has; one of WhatsApp by three messages."""
    begins = head[:64].lstrip()[:1]
    if begins in (b"[", b"{"):
        known = (*_CHATS, _SLACK) if begins == b"[" else _CHATS
        is_all_of_telegram = b'"about"' in head[:64] and b"Telegram" in head[:1000]
        return is_all_of_telegram or any(all(field in head for field in fields) for fields in known)
    return is_whatsapp(head[:8000].decode("utf-8", "replace"))


def refined(found: Format, path: Path) -> Format:
    """The same, after a look inside of containers. Reads the file: only for the process apart."""
    if found == ZIP:
        return _zipped(path)
    return _compound(path) if found == _OLE else found


def _zipped(path: Path) -> Format:
    try:
        with zipfile.ZipFile(path) as archive:
            names = set(archive.namelist()[:_NAMES_MAX])
            declared = archive.read("mimetype")[:200].strip().decode("ascii", "replace") if "mimetype" in names else ""
    except (zipfile.BadZipFile, OSError, RuntimeError, ValueError, KeyError, NotImplementedError):
        return ZIP
    for found in (EPUB, ODT, ODS, ODP, ODG, SXW, SXC, SXI):
        if declared.removesuffix("-template") == found.media_type:
            return found
    for member, found in (("word/document.xml", DOCX), ("ppt/presentation.xml", PPTX), ("xl/workbook.xml", XLSX)):
        if member in names:
            return found
    if any(name.endswith("Index/Document.iwa") for name in names) or _is_iwork(names):
        return IWORK
    return XLSX if "xl/workbook.bin" in names else ZIP


def _is_iwork(names: set[str]) -> bool:
    """By names that all of its versions have beside the document."""
    beside = any(name.lower().endswith("buildversionhistory.plist") for name in names)
    return beside and any(name.rpartition("/")[2] in ("index.apxl", "index.xml", "Index.zip") for name in names)


def _compound(path: Path) -> Format:
    import olefile

    try:
        with olefile.OleFileIO(str(path)) as storage:
            streams = {"/".join(entry).lower() for entry in storage.listdir()}
    except Exception:  # noqa: BLE001  a damaged storage raises whatever its bytes lead to
        return OLD_WORD
    if any(name.startswith("__properties_version1") for name in streams):
        return OUTLOOK
    if streams & {"workbook", "book"}:
        return XLS
    return OLD_SLIDES if "powerpoint document" in streams else OLD_WORD
