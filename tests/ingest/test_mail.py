"""Mails as a mail program shows them, messages in messages, address cards, and what stands beside the words of a chat."""

from __future__ import annotations

import json
import struct
from email.message import EmailMessage
from email.mime.base import MIMEBase
from email.mime.message import MIMEMessage
from email.mime.multipart import MIMEMultipart
from email.mime.text import MIMEText

import pytest
from oxmsg.storage import Storage, Stream

from memdir.ingest.extractors import outlook
from memdir.ingest.extractors.output import Output
from memdir.ingest.sandbox import Sandbox
from tests.ingest.reading import read

pytestmark = pytest.mark.promise("extract.kinds")


def mail(kind: str, *parts: MIMEBase) -> bytes:
    made = MIMEMultipart(kind)
    made["Subject"], made["From"], made["To"] = "Nets", "ana@quay.example", "ben@quay.example"
    for part in parts:
        made.attach(part)
    return made.as_bytes()


def forwarded() -> MIMEText:
    inner = MIMEText("Fog until noon.")
    inner["Subject"], inner["From"], inner["Date"] = "Weather", "cem@quay.example", "Fri, 20 Nov 2026 10:00:00 +0000"
    return inner


def test_a_page_with_a_footer_of_the_list_keeps_both(sandbox: Sandbox) -> None:
    data = mail("mixed", MIMEText("<p>The <b>nets</b> are mended.</p>", "html"), MIMEText("-- \nlist footer"))
    text = read(sandbox, data, "a.eml").text
    assert text.index("The **nets** are mended.") < text.index("list footer")
    assert "Date" not in text  # it has none


def test_of_alternatives_one_is_read(sandbox: Sandbox) -> None:
    both = mail("alternative", MIMEText("The nets are mended."), MIMEText("<p>The nets are mended at last.</p>", "html"))
    assert read(sandbox, both, "a.eml").text.count("mended") == 1
    empty = mail("alternative", MIMEText("  \n"), MIMEText("<p>The nets are mended.</p>", "html"))
    assert "The nets are mended." in read(sandbox, empty, "a.eml").text
    stub = mail("alternative", MIMEText("See it in a browser."), MIMEText(f"<p>{'mended nets ' * 20}</p>", "html"))
    text = read(sandbox, stub, "a.eml").text
    assert text.index("browser") < text.index("mended nets")


def test_what_alternatives_have_beside_their_text(sandbox: Sandbox) -> None:
    log = MIMEText("a log")
    log.add_header("Content-Disposition", "attachment", filename="log.txt")
    page = MIMEMultipart("mixed")
    for part in (MIMEText("<p>mended</p>", "html"), log):
        page.attach(part)
    invitation = MIMEText("BEGIN:VCALENDAR\r\nBEGIN:VEVENT\r\nSUMMARY:Mend nets\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n", "calendar")
    text = read(sandbox, mail("alternative", MIMEText("mended"), page, invitation), "a.eml").text
    assert text.count("mended") == 1
    assert "## Attachment: log.txt\n\na log\n" in text
    assert "## Mend nets" in text
    assert "BEGIN" not in text


def test_messages_in_messages_say_who_wrote_them_and_when(sandbox: Sandbox) -> None:
    again = mail("mixed", MIMEText("look"), MIMEMessage(forwarded()))
    text = read(sandbox, again, "a.eml").text
    assert "## Message: Weather\n\n- From: cem@quay.example\n- Date: 2026-11-20 10:00 +0000\n\nFog until noon.\n" in text
    box = b"".join(b"From a Fri Nov 20 10:00:00 2026\n" + again + b"\n" for _ in range(2))
    assert read(sandbox, box, "a.mbox").text.count("### Message: Weather") == 2


def test_messages_in_messages_in_messages_end_somewhere(sandbox: Sandbox) -> None:
    inner: MIMEText | MIMEMultipart = forwarded()
    for _ in range(30):
        outer = MIMEMultipart("mixed")
        outer["Subject"] = outer["From"] = "again"
        outer.attach(MIMEMessage(inner))
        inner = outer
    inner["To"] = inner["Date"] = "x"
    extraction = read(sandbox, inner.as_bytes(), "a.eml")
    assert extraction.truncated
    assert 2 < extraction.text.count("again") < 30


def test_a_report_of_what_did_not_arrive(sandbox: Sandbox) -> None:
    report = MIMEBase("message", "delivery-status")
    block = EmailMessage()
    block["Final-Recipient"], block["Status"] = "rfc822; ben@quay.example", "5.1.1"
    report.set_payload([block])
    removed = MIMEMessage(MIMEText("Message removed"))
    text = read(sandbox, mail("report", MIMEText("Undelivered"), report, MIMEMessage(forwarded()), removed), "a.eml").text
    assert "Message removed" in text
    assert "Final-Recipient: rfc822; ben@quay.example\nStatus: 5.1.1\n" in text
    assert "## Message: Weather" in text


def test_parts_that_cannot_be_told_apart_are_kept(sandbox: Sandbox) -> None:
    data = b"From: a@b.c\nTo: b@b.c\nSubject: x\nContent-Type: multipart/mixed\n\nno boundary, and words\n"
    assert "no boundary, and words" in read(sandbox, data, "a.eml").text


def storage(name: str, said: dict[int, str], header: int, numbers: dict[int, int] | None = None, *inside: Storage) -> Storage:
    """As Outlook stores a message, a receiver or an attachment (MS-OXMSG 2.2)."""
    streams = [Stream(f"{name}/__substg1.0_{key:04X}001F", text.encode("utf-16-le")) for key, text in said.items()]
    table = b"\0" * header
    for key, text in said.items():
        table += struct.pack("<HHIII", 0x1F, key, 6, 2 * len(text) + 2, 0)
    for key, number in (numbers or {}).items():
        table += struct.pack("<HHIQ", 3, key, 6, number)
    return Storage(name, (*streams, Stream(f"{name}/__properties_version1.0", table)), inside)


def test_messages_in_messages_of_outlook() -> None:
    people = [
        storage(f"__recip_version1.0_#{at}", {0x3001: name, 0x39FE: f"{name}@quay.example"}, 8, {0x0C15: kind})
        for at, (name, kind) in enumerate([("ben", 1), ("dan", 2), ("eva", 1)])
    ]
    inner = storage(
        "__substg1.0_3701000D", {0x37: "Weather", 0x1000: "Fog until noon.", 0x0C1A: "cem", 0x0C1F: "cem@quay.example"}, 24
    )
    enclosed = storage("__attach_version1.0_#0", {0x3001: "Weather"}, 8, None, inner)
    root = storage("", {0x37: "Fwd: Weather", 0x1000: "look"}, 32, None, *people, enclosed)
    out = Output()
    outlook.add(outlook.Message(root), root, out)
    assert "- To: ben <ben@quay.example>, eva <eva@quay.example>\n- Cc: dan <dan@quay.example>\n" in out.text()
    assert out.text().endswith('## Message: Weather\n\n- From: "cem" <cem@quay.example>\n\nFog until noon.\n')


def test_cards_of_a_telephone(sandbox: Sandbox) -> None:
    """vCard 2.1 as telephones export it: quoted-printable, long lines broken without a space, no full name."""
    name = "N;CHARSET=UTF-8;ENCODING=QUOTED-PRINTABLE:M=C3=BCller;J=C3=B6rg;;;\r\n"
    note = "NOTE;CHARSET=ISO-8859-1;ENCODING=QUOTED-PRINTABLE:Kauft Netze,=\r\n=0AGr=FC=DFe\r\n"
    data = f"BEGIN:VCARD\r\nVERSION:2.1\r\n{name}TEL;CELL;WORK:+49 30 1\r\n{note}NICKNAME:Jo\r\nEND:VCARD\r\n"
    text = read(sandbox, data.encode(), "a.vcf").text
    assert text == "## Jörg Müller\n\n- Telephone: +49 30 1 (cell, work)\n- Note: Kauft Netze, Grüße\n- Nickname: Jo\n"


def test_calendars_have_a_name_and_what_people_fill_in(sandbox: Sandbox) -> None:
    event = "BEGIN:VEVENT\nSUMMARY:Mend nets\nDTSTART:20261130\nDURATION:PT2H\nCATEGORIES:work\nEND:VEVENT\n"
    extraction = read(sandbox, f"BEGIN:VCALENDAR\nX-WR-CALNAME:Harbour\n{event}END:VCALENDAR\n".encode(), "a.ics")
    assert extraction.title == "Harbour"
    assert extraction.text == "## Mend nets\n\n- Start: 2026-11-30\n- Duration: PT2H\n- Categories: work\n"


def test_a_calendar_without_events_is_no_error(sandbox: Sandbox) -> None:
    extraction = read(sandbox, b"BEGIN:VCALENDAR\nBEGIN:VTIMEZONE\nTZID:x\nEND:VTIMEZONE\nEND:VCALENDAR\n", "a.ics")
    assert (extraction.text, extraction.facts["entries"]) == ("", 0)


TELEGRAM = {
    "name": "Boat crew",
    "type": "private_group",
    "messages": [
        {"type": "service", "date": "2024-10-09T19:30:00", "actor": "Ana", "action": "create_group"},
        {"type": "message", "date": "2024-10-09T21:32:23", "date_unixtime": "1728502343", "from": "Ana Ruiz",
         "from_id": "user6",
         "text": ["See ", {"type": "link", "text": "https://quay.example"}, "\nand tell me"]},
        {"type": "message", "date_unixtime": "1728502403", "from": None, "from_id": "user2", "text": "", "file": "files/a.pdf"},
        {"type": "message", "date_unixtime": "1728502463", "from": "Ben", "from_id": "user3", "text": "",
         "poll": {"question": "When?", "answers": [{"text": "Monday"}, {"text": "Tuesday"}]}},
    ],
}  # fmt: skip
TELEGRAM_SAID = (
    "## Boat crew\n\n[2024-10-09 19:32] Ana Ruiz: See https://quay.example\nand tell me\n\n"
    "[2024-10-09 19:33] ?: [file: files/a.pdf]\n\n[2024-10-09 19:34] Ben: When?\n- Monday\n- Tuesday\n"
)
DISCORD = {
    "guild": {"name": "Sailors"},
    "channel": {"type": "GuildTextChat", "name": "general"},
    "dateRange": {"after": None, "before": None},
    "messages": [
        {"type": "Default", "timestamp": "2023-12-05T16:01:33.123+01:00", "content": "Hello @Ben",
         "author": {"name": "ana", "nickname": "Ana R"}, "attachments": [{"fileName": "chart.png"}],
         "embeds": [{"title": "A page", "description": "About boats"}]},
    ],
}  # fmt: skip
MESSENGER = {
    "participants": [{"name": "Jos\u00c3\u00a9"}, {"name": "Ana"}],
    "messages": [
        {
            "sender_name": "Jos\u00c3\u00a9",
            "timestamp_ms": 1700000100000,
            "content": "ma\u00c3\u00b1ana \u00f0\u009f\u0098\u0080",
        },
        {"sender_name": "Ana", "timestamp_ms": 1700000000000, "photos": [{"uri": "photos/1.jpg"}]},
    ],
    "title": "Jos\u00c3\u00a9",
}


@pytest.mark.parametrize(
    ("export", "said"),
    [
        (TELEGRAM, TELEGRAM_SAID),
        (
            {"about": "Here is the data you requested. Telegram is ad free.", "chats": {"list": [TELEGRAM, TELEGRAM]}},
            2 * TELEGRAM_SAID,
        ),
        (DISCORD, "## Sailors › general\n\n[2023-12-05 15:01] Ana R: Hello @Ben\nA page\nAbout boats\n[file: chart.png]\n"),
        (MESSENGER, "## José\n\n[2023-11-14 22:13] Ana: [file: photos/1.jpg]\n\n[2023-11-14 22:15] José: mañana 😀\n"),
    ],
    ids=["telegram", "telegram whole", "discord", "messenger"],
)
def test_exports_of_messengers(sandbox: Sandbox, export: object, said: str) -> None:
    """As Telegram Desktop, DiscordChatExporter and Meta's "Download your information" write them."""
    text = read(sandbox, json.dumps(export, indent=1).encode(), "result.json").text
    assert text.replace("\n\n##", "\n##") == said.replace("\n\n##", "\n##")


ENEX = """<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE en-export SYSTEM "http://xml.evernote.com/pub/evernote-export4.dtd">
<en-export export-date="20261101T052957Z" application="Evernote" version="10.8.5">
  <note>
    <title>Nets &amp; ropes</title><created>20260308T051614Z</created><updated>20260309T071855Z</updated>
    <tag>boat</tag><tag>winter</tag>
    <note-attributes><author>Ana</author><source-url>https://quay.example/nets</source-url></note-attributes>
    <content><![CDATA[<?xml version="1.0" encoding="UTF-8" standalone="no"?>
<!DOCTYPE en-note SYSTEM "http://xml.evernote.com/pub/enml2.dtd"><en-note><div>Mend them.&nbsp;Caf&eacute; at nine.</div>
<div><en-todo checked="true"/>Buy twine</div><div><en-todo checked="false"/>Sell the old ones</div>
<table><tbody><tr><td><div>net</div></td><td>m</td></tr><tr><td>A</td><td>40</td></tr></tbody></table>
<en-media type="text/plain" hash="abc"/><en-crypt hint="no">AAAA</en-crypt></en-note>]]></content>
    <resource><data encoding="base64">VGhlIGFuY2hvciB3ZWln\naHMgNDAga2cu</data><mime>text/plain</mime>
    <resource-attributes><file-name>anchor.txt</file-name></resource-attributes></resource>
  </note>
  <note><title>Fog</title><content><![CDATA[<en-note>Until noon.</en-note>]]></content></note>
</en-export>
"""


def test_notes_of_evernote_with_their_tasks_tables_and_attachments(sandbox: Sandbox) -> None:
    found = read(sandbox, ENEX.encode(), "My notes.enex")
    assert (found.kind, found.facts["notes"]) == ("archive", 2)
    for line in (
        "## Nets & ropes", "Created: 2026-03-08 05:16", "Updated: 2026-03-09 07:18", "Tags: boat, winter", "Author: Ana",
        "Address: https://quay.example/nets", "Mend them.", "Café at nine.", "[x] Buy twine", "[ ] Sell the old ones",
        "| net | m |", "| A | 40 |", "## Attachment: anchor.txt", "The anchor weighs 40 kg.", "## Fog", "Until noon.",
    ):  # fmt: skip
        assert line in found.text.split("\n"), (line, found.text)
    assert not any(word in found.text for word in ("AAAA", "DOCTYPE", "en-"))


def test_notes_of_evernote_before_the_end_of_a_file_that_is_cut_off(sandbox: Sandbox) -> None:
    found = read(sandbox, ENEX[:-60].encode(), "My notes.enex")
    assert "Mend them." in found.text
    assert found.truncated
    assert "cut off" in str(found.facts["unread"])


def test_what_was_given_to_a_chat_beside_words(sandbox: Sandbox) -> None:
    given = {"file_name": "log.txt", "extracted_content": "Fog until noon."}
    document = {"type": "tool_use", "input": {"title": "Net plan", "content": "Mend them on Monday."}}
    claude = [{"name": "Nets", "chat_messages": [
        {"sender": "human", "text": "look", "attachments": [given], "files": [{"file_name": "board.png"}]},
        {"sender": "assistant", "content": [{"type": "text", "text": "Done:"}, document]},
    ]}]  # fmt: skip
    text = read(sandbox, json.dumps(claude).encode(), "a.json").text
    assert "human: look\n[file: log.txt]\nFog until noon.\n[file: board.png]\n" in text
    assert "assistant: Done:\nNet plan\nMend them on Monday.\n" in text
    spoken = {"content_type": "audio_transcription", "text": "what about the nets"}
    user = {"author": {"role": "user"}, "content": {"parts": [spoken, "?"]}, "metadata": {"attachments": [{"name": "log.txt"}]}}
    code = {"author": {"role": "assistant"}, "content": {"content_type": "code", "text": "mend()"}}
    chatgpt = [
        {"title": "Nets", "mapping": {"a": {"message": user}, "b": {"message": code, "parent": "a"}}, "current_node": "b"}
    ]
    text = read(sandbox, json.dumps(chatgpt).encode(), "a.json").text
    assert "user: what about the nets\n?\n[file: log.txt]\n\nassistant: mend()\n" in text
    posted = {"title": "Build 7", "text": "nets failed", "fields": [{"title": "Branch", "value": "quay"}]}
    slack = [
        {
            "type": "message",
            "ts": "1764000000.1",
            "user": "U1",
            "text": "",
            "attachments": [posted],
            "files": [{"name": "a.pdf"}],
        }
    ]
    text = read(sandbox, json.dumps(slack).encode(), "a.json").text
    assert "U1: Build 7\nnets failed\nBranch: quay\n[file: a.pdf]\n" in text
