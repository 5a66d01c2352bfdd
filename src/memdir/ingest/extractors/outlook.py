"""Messages of Outlook (.msg, MS-OXMSG) by python-oxmsg, those attached to them included."""

from __future__ import annotations

import codecs
from importlib.metadata import version
from pathlib import Path
from typing import Final

from olefile import OleFileIO
from oxmsg import Message
from oxmsg.attachment import Attachment
from oxmsg.domain.constants import PID_DISPLAY_NAME
from oxmsg.properties import Properties
from oxmsg.storage import Storage

from memdir.ingest.extractors import embedded, markup, ole_objects, rtf, tnef
from memdir.ingest.extractors.output import ExtractionError, Output

_RECIPIENT_TYPE: Final = 0x0C15
"""PidTagRecipientType (MS-OXOMSG 2.2.3.1)."""
_RECEIVERS: Final = {1: "To", 2: "Cc", 3: "Bcc"}
_ENCLOSED: Final = "__substg1.0_3701000D"
"""The storage of a message in an attachment (MS-OXMSG 2.2.2.1)."""
_ENCLOSED_HEADER_BYTES: Final = 24
_DEPTH_MAX: Final = 5
"""Of messages in messages."""


@codecs.register
def _of_windows(name: str) -> codecs.CodecInfo | None:
    """The library says `windows-950` for what Python calls `cp950`."""
    number = name.removeprefix("windows_")
    return codecs.lookup(f"cp{number}") if number != name and number.isdigit() else None


class _Enclosed(Message):
    """A message in another: the header before its properties is shorter (MS-OXMSG 2.4.1.2)."""

    def __init__(self, storage: Storage) -> None:
        super().__init__(storage)
        self._own = Properties(storage, properties_header_offset=_ENCLOSED_HEADER_BYTES)

    @property
    def properties(self) -> Properties:
        return self._own


def extract(path: Path, out: Output) -> None:
    """ExtractionError when it is damaged."""
    out.engine = f"python-oxmsg {version('python-oxmsg')}"
    try:
        with OleFileIO(str(path)) as file:
            storage = Storage.from_ole(file)
        add(Message(storage), storage, out)
    except ole_objects.FAULTS as error:
        raise ExtractionError("it is damaged", hint="export the message again") from error


def add(message: Message, storage: Storage, out: Output, *, depth: int = 0) -> None:
    """A message and those attached to it, `depth` messages deep."""
    subject, sender = message.subject or "", message.sender or ""
    sent = message.sent_date.strftime("%Y-%m-%d %H:%M %z").strip() if message.sent_date else ""
    receivers: dict[str, list[str]] = {name: [] for name in _RECEIVERS.values()}
    for one in message.recipients:
        kind = _RECEIVERS.get(one.properties.int_prop_value(_RECIPIENT_TYPE) or 1, "To")
        receivers[kind].append(f"{one.name} <{one.email_address}>")
    if not depth:
        out.title = subject
        out.fact("from", sender)
        out.fact("date", sent)
    out.heading(1 + depth, ("Message: " if depth else "") + (subject or "(no subject)"))
    named = [("From", sender), *((name, ", ".join(some)) for name, some in receivers.items()), ("Date", sent)]
    for name, value in named:
        out.item(f"{name}: {value}" if value else "")
    out.end_list()
    packed = message.properties.binary_prop_value(tnef.PACKED_RTF)
    if packed and not message.body and not message.html_body:
        rtf.add(tnef.unpacked(packed), out)
    else:
        out.paragraph(message.body or (markup.markdown(message.html_body) if message.html_body else ""))
    for attached in storage.iter_attachment_storages():
        inner = next((one for one in attached.storages if one.name == _ENCLOSED), None)
        if inner is None:
            file = Attachment(attached)
            name = file.file_name or file.properties.str_prop_value(PID_DISPLAY_NAME) or "attachment"
            embedded.add(file.file_bytes or b"", name, out, title="Attachment")
        elif depth < _DEPTH_MAX:
            add(_Enclosed(inner), inner, out, depth=depth + 1)
        else:
            out.truncated = True
