"""Mail (RFC 5322 and MIME) and mailboxes (mbox): sender, receivers and time of each message, its text, its attachments."""

from __future__ import annotations

import contextlib
import email.policy
import re
from collections.abc import Iterable, Iterator
from email import message_from_bytes
from email.message import MIMEPart
from email.utils import parsedate_to_datetime
from itertools import chain, islice
from pathlib import Path
from typing import Final, TypeAlias

from memdir.ingest.extractors import embedded, markup
from memdir.ingest.extractors.output import ExtractionError, Output
from memdir.ingest.text import decode

_ENVELOPE: Final = re.compile(rb"From \S+ .*\d{4}\s*$")
_MESSAGES_MAX: Final = 100_000
_MESSAGE_MAX_BYTES: Final = 64 << 20
_PARTS_MAX: Final = 500
_DEPTH_MAX: Final = 5
"""Of messages in messages."""
_SHOWN: Final = ("From", "To", "Cc", "Bcc", "Date")
_NOT_FOR_READING: Final = frozenset({"calendar", "directory", "vcard", "x-vcard"})
"""Texts with an extractor of their own."""
_STUB: Final = 4
"""How many times as many words another form of a text has before it is read beside the plain one, which then says no more than
where the text can be seen."""
_Part: TypeAlias = tuple[MIMEPart, str | None]
"""One that is no container; its text, when a mail program shows that in the mail."""
_SIGNATURES: Final = frozenset({"application/pgp-signature", "application/pkcs7-signature", "application/x-pkcs7-signature"})
"""Attachments that say nothing to a reader."""


def extract(path: Path, out: Output) -> None:
    """ExtractionError when there is no message in it."""
    out.engine = "python email"
    size = path.stat().st_size
    done = 0
    count = 0
    messages = _messages(path, out)
    first, second = next(messages, None), next(messages, None)
    for data in chain([one for one in (first, second) if one is not None], messages):
        message = message_from_bytes(data, policy=email.policy.default)
        assert isinstance(message, MIMEPart)
        _message(message, out, level=1 if second is None else 2)
        done += len(data)
        count += 1
        out.progress(done, size)
    if not count:
        raise ExtractionError("there is no message in it")
    out.fact("messages", count if count > 1 else None)


def _messages(path: Path, out: Output) -> Iterator[bytes]:
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
                        out.truncated = True
                        return
                lines, size = [], 0
                continue
            size += len(line)
            if size <= _MESSAGE_MAX_BYTES:
                lines.append(line[1:] if box and line.startswith((b">From ", b">>From ")) else line)
            else:
                out.truncated = True
            blank = not line.strip()
    if any(line.strip() for line in lines):
        yield b"".join(lines)


def _message(message: MIMEPart, out: Output, *, level: int, depth: int = 0) -> None:
    subject = header(message, "Subject")
    if level == 1:
        out.title = subject
        out.fact("from", header(message, "From"))
        out.fact("date", iso_date(header(message, "Date")))
    out.heading(level, ("Message: " if depth else "") + (subject or "(no subject)"))
    for name in _SHOWN:
        value = header(message, name)
        out.item(f"{name}: {(name == 'Date' and iso_date(value)) or value}" if value else "")
    out.end_list()
    parts = [*islice(_parts(message), _PARTS_MAX + 1)]
    out.truncated = out.truncated or len(parts) > _PARTS_MAX or depth > _DEPTH_MAX
    enclosed: list[MIMEPart] = []
    out.paragraph(_body(parts[:_PARTS_MAX], enclosed))
    for part in enclosed if depth <= _DEPTH_MAX else ():
        inner = _message_in(part)
        if inner is not None:
            _message(inner, out, level=level + 1, depth=depth + 1)
        else:
            _attachment(part, out)


def header(message: MIMEPart, name: str) -> str:
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


def _body(parts: Iterable[_Part], enclosed: list[MIMEPart]) -> str:
    """The text that a mail program shows, in its order. Everything else goes to `enclosed`."""
    pieces = []
    for part, text in parts:
        if text is not None:
            pieces.append(text)
        elif part.get_content_maintype() == "message" and part.is_multipart() and not _message_in(part):
            for block in part.iter_parts():
                fields = "\n".join(f"{name}: {value}" for name, value in block.raw_items())
                pieces += [fields, _text(block) if _is_text(block) else ""]
        else:
            enclosed.append(part)
    return "\n\n".join(pieces)


def _parts(message: MIMEPart) -> Iterator[_Part]:
    """What is no container, in order; of alternatives (RFC 2046, 5.1.4) the best, and what else the others have."""
    if message.get_content_maintype() != "multipart" or not message.is_multipart():
        yield message, _text(message) if _is_text(message) else None
    elif message.get_content_subtype() != "alternative":
        for part in message.iter_parts():
            yield from _parts(part)
    else:
        alternatives = [list(_parts(part)) for part in message.iter_parts()]
        chosen = _chosen(["\n".join(text for _, text in parts if text is not None) for parts in alternatives])
        for number, parts in enumerate(alternatives):
            yield from ((part, text) for part, text in parts if number in chosen or text is None)


def _chosen(texts: list[str]) -> set[int]:
    """The first that has words, which is the plainest; the longest beside it when the first only points to it."""
    sizes = [len(text.split()) for text in texts]
    first = next((number for number, size in enumerate(sizes) if size), 0)
    longest = max(sizes, default=0)
    return {first, sizes.index(longest)} if sizes and sizes[first] * _STUB < longest else {first}


def _is_text(part: MIMEPart) -> bool:
    """A container is one when its parts cannot be told apart, and its raw text is all there is."""
    return (
        part.get_content_maintype() in ("text", "multipart")
        and part.get_content_subtype() not in _NOT_FOR_READING
        and part.get_content_disposition() != "attachment"
    )


def _message_in(part: MIMEPart) -> MIMEPart | None:
    """The message that a part is (forwarded, or returned with a report)."""
    inner = next(part.iter_parts(), None) if part.get_content_maintype() == "message" and part.is_multipart() else None
    return inner if inner is not None and ("From" in inner or "Subject" in inner) else None


def _text(part: MIMEPart) -> str:
    """Of a text or a page, as Markdown; a page that cannot be read as it stands."""
    text = _decoded(part)
    with contextlib.suppress(ExtractionError):
        return markup.markdown(text) if part.get_content_subtype() == "html" else text
    return text


def _decoded(part: MIMEPart) -> str:
    try:
        return str(part.get_content())
    except (LookupError, UnicodeError, ValueError, AttributeError):  # an unknown or wrong charset
        data = part.get_payload(decode=True)
        text = decode(data) if isinstance(data, bytes) else None
        return text.text if text is not None else ""


def _attachment(part: MIMEPart, out: Output) -> None:
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
