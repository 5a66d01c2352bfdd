"""Web pages: the readable text with headings, lists, tables and links, and the title. MHTML (RFC 2557) is a page in a mail,
a web archive of Safari one in a property list."""

from __future__ import annotations

import email
import email.policy
import html
import plistlib
import re
from importlib.metadata import version
from pathlib import Path
from typing import Final

from memdir.ingest.extractors import markup
from memdir.ingest.extractors.output import ExtractionError, Output
from memdir.ingest.text import decode

SAFARI: Final = b"bplist00"
_TITLE: Final = re.compile(r"<title[^>]*>(.*?)</title>", re.I | re.S)
_CHARSET: Final = re.compile(rb"""<(?:meta[^>]+charset|\?xml[^>]+encoding)\s*=\s*["']?\s*([\w.:-]+)""", re.I)
_ADDRESS: Final = re.compile(r"""<link[^>]+rel=["']canonical["'][^>]*href=["']([^"']+)""", re.I)
_HEADERS: Final = re.compile(rb"(?:From|MIME-Version|Subject|Date|Content-Type|Snapshot-Content-Location):[ \t]", re.I)
_SAVED_FROM: Final = re.compile(r"<!-- saved from url=\(\d+\)(\S+) -->")
_LANGUAGE: Final = re.compile(r"""<html[^>]+lang=["']?([\w-]{2,12})""", re.I)


def extract(path: Path, out: Output) -> None:
    """ExtractionError when there is no page in it."""
    out.engine = f"html-to-markdown {version('html-to-markdown')}"
    data = path.read_bytes()
    if data.startswith(SAFARI):
        add(_of_safari(data), out)
    else:
        add(_in_mail(data) if _HEADERS.match(data) else decoded(data), out)


def add(page: str, out: Output) -> None:
    """The page's title, address, language and text."""
    title = _TITLE.search(page[:200_000])
    out.title = html.unescape(title[1]).strip() if title else ""
    address = _SAVED_FROM.search(page[:4000]) or _ADDRESS.search(page[:200_000])
    out.fact("address", html.unescape(address[1]) if address else None)
    language = _LANGUAGE.search(page[:4000])
    out.fact("language", language[1] if language else None)
    out.paragraph(markup.markdown(page, page=True))


def decoded(data: bytes) -> str:
    """By byte order mark, by what the page says, else as any text (HTML standard, "encoding sniffing")."""
    said = _CHARSET.search(data[:4096])
    if said and not data.startswith((b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")):
        try:
            return data.decode(said[1].decode("ascii"), "replace")
        except LookupError:
            pass
    text = decode(data)
    return text.text if text is not None else data.decode("utf-8", "replace")


def _of_safari(data: bytes) -> str:
    """The page of a web archive, a property list with the page and what it shows."""
    try:
        page = plistlib.loads(data)["WebMainResource"]
        raw, said = page["WebResourceData"], page.get("WebResourceTextEncodingName", "")
        return bytes(raw).decode(said, "replace") if said else decoded(bytes(raw))
    except (plistlib.InvalidFileException, KeyError, LookupError, TypeError, ValueError) as error:
        raise ExtractionError("there is no page in it", hint="save the page again") from error


def _in_mail(data: bytes) -> str:
    message = email.message_from_bytes(data, policy=email.policy.default)
    for part in message.walk():
        if part.get_content_type() == "text/html":
            try:
                return str(part.get_content())
            except (LookupError, UnicodeError, ValueError):
                raw = part.get_payload(decode=True)
                return decoded(raw) if isinstance(raw, bytes) else ""
    raise ExtractionError("there is no page in it", hint="save the page again")
