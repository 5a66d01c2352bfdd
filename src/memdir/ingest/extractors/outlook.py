"""Messages of Outlook (.msg, MS-OXMSG) by python-oxmsg."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path

from oxmsg import Message

from memdir.ingest.extractors import embedded, markup
from memdir.ingest.extractors.output import ExtractionError, Output


def extract(path: Path, out: Output) -> None:
    """ExtractionError when it is damaged."""
    out.engine = f"python-oxmsg {version('python-oxmsg')}"
    try:
        message = Message.load(str(path))
        sender, subject = message.sender or "", message.subject or ""
        receivers = ", ".join(f"{one.name} <{one.email_address}>" for one in message.recipients)
        sent = message.sent_date.strftime("%Y-%m-%d %H:%M %z").strip() if message.sent_date else ""
        body = message.body or (markup.markdown(message.html_body) if message.html_body else "")
        attached = [(one.file_name or "attachment", one.file_bytes or b"") for one in message.attachments]
    except (KeyError, ValueError, OSError, AttributeError, IndexError, TypeError) as error:
        raise ExtractionError("it is damaged", hint="export the message again") from error
    out.title = subject
    out.fact("from", sender)
    out.fact("date", sent)
    out.heading(1, subject or "(no subject)")
    for name, value in (("From", sender), ("To", receivers), ("Date", sent)):
        out.item(f"{name}: {value}" if value else "")
    out.end_list()
    out.paragraph(body)
    for name, data in attached:
        embedded.add(data, name, out, title="Attachment")
