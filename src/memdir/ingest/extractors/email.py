"""Mail (RFC 5322 and MIME) and mailboxes (mbox): sender, receivers and time of each message, its text, its attachments."""

from __future__ import annotations

import email.policy
import re
from collections.abc import Iterator
from email import message_from_bytes
from email.message import EmailMessage
from email.utils import parsedate_to_datetime
from itertools import chain
from pathlib import Path
from typing import Final

from memdir.ingest.extractors import embedded, markup
from memdir.ingest.extractors.output import ExtractionError, Output
from memdir.ingest.text import decode

_ENVELOPE: Final = re.compile(rb"From \S+ .*\d{4}\s*$")
_MESSAGES_MAX: Final = 100_000
_MESSAGE_MAX_BYTES: Final = 64 << 20
_PARTS_MAX: Final = 500
_SHOWN: Final = ("From", "To", "Cc", "Date")
_SIGNATURES: Final = frozenset({"application/pgp-signature", "application/pkcs7-signature", "application/x-pkcs7-signature"})
"""Attachments that say nothing to a reader."""


def extract(path: Path, out: Output) -> None:
    """ExtractionError when there is no message in it."""
    out.engine = "python email"
    size = path.stat().st_size
    done = 0
    count = 0
    messages = _messages(path)
    first, second = next(messages, None), next(messages, None)
    for data in chain([one for one in (first, second) if one is not None], messages):
        message = message_from_bytes(data, policy=email.policy.default)
        assert isinstance(message, EmailMessage)
        _message(message, out, in_box=second is not None)
        done += len(data)
        count += 1
        out.progress(done, size)
    if not count:
        raise ExtractionError("there is no message in it")
    out.fact("messages", count if count > 1 else None)


def _messages(path: Path) -> Iterator[bytes]:
    """Each message of a mailbox, or the one of a file. `>From ` in a body is `From ` (mboxrd)."""
    lines: list[bytes] = []
    size = 0
    count = 0
    box = False
    blank = True
    with path.open("rb") as handle:
        for line in handle:
            if blank and _ENVELOPE.match(line):
                box = True
                if any(lines):
                    yield b"".join(lines)
                    count += 1
                    if count >= _MESSAGES_MAX:
                        return
                lines, size = [], 0
                continue
            size += len(line)
            if size <= _MESSAGE_MAX_BYTES:
                lines.append(line[1:] if box and line.startswith((b">From ", b">>From ")) else line)
            blank = not line.strip()
    if any(line.strip() for line in lines):
        yield b"".join(lines)


def _message(message: EmailMessage, out: Output, *, in_box: bool) -> None:
    subject = header(message, "Subject")
    if in_box:
        out.heading(2, subject or "(no subject)")
    else:
        out.title = subject
        out.fact("from", header(message, "From"))
        out.fact("date", iso_date(header(message, "Date")))
        out.heading(1, subject or "(no subject)")
    for name in _SHOWN:
        value = header(message, name)
        out.item(f"{name}: {iso_date(value) or value}" if name == "Date" else f"{name}: {value}" if value else "")
    out.end_list()
    attached: list[EmailMessage] = []
    out.paragraph(_body(message, attached))
    for part in attached:
        _attachment(part, out)


def header(message: EmailMessage, name: str) -> str:
    """A header in words; as much of a malformed one as there is."""
    try:
        return " ".join(str(message.get(name, "")).split())
    except (AttributeError, IndexError, KeyError, LookupError, TypeError, ValueError):  # the header parser's own faults
        raw = [value for key, value in message.raw_items() if key.lower() == name.lower()]
        return " ".join(str(raw[0]).split()) if raw else ""


def iso_date(value: str) -> str:
    """`2026-11-25 10:30 +0100`; nothing when it is no date."""
    try:
        return parsedate_to_datetime(value).strftime("%Y-%m-%d %H:%M %z").strip()
    except (ValueError, TypeError, IndexError, OverflowError):
        return ""


def _body(message: EmailMessage, attached: list[EmailMessage]) -> str:
    """The text that a mail program shows: plain where there is a choice. Everything else goes to `attached`."""
    plain: list[str] = []
    pages: list[str] = []
    for number, part in enumerate(message.walk()):
        if number > _PARTS_MAX:
            break
        if part.is_multipart() or part.get_content_maintype() == "message":
            continue
        if part.get_content_disposition() == "attachment" or part.get_content_maintype() != "text":
            attached.append(part)
        elif part.get_content_subtype() == "html":
            pages.append(_text(part))
        else:
            plain.append(_text(part))
    if any(text.strip() for text in plain):
        return "\n\n".join(plain)
    return "\n\n".join(markup.markdown(page) for page in pages)


def _text(part: EmailMessage) -> str:
    try:
        return str(part.get_content())
    except (LookupError, UnicodeError, ValueError, AttributeError):  # an unknown or wrong charset
        data = part.get_payload(decode=True)
        text = decode(data) if isinstance(data, bytes) else None
        return text.text if text is not None else ""


def _attachment(part: EmailMessage, out: Output) -> None:
    data = part.get_payload(decode=True)
    if not isinstance(data, bytes) or not data:
        return
    try:
        name = part.get_filename() or part.get_content_type()
    except (AttributeError, LookupError, TypeError, ValueError):
        name = part.get_content_type()
    if len(data) > embedded.PART_MAX_BYTES or part.get_content_type() in _SIGNATURES:
        out.paragraph(f"Attachment: {name} ({len(data)} bytes)")
    else:
        embedded.add(data, name, out, title="Attachment")
