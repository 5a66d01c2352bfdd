"""Exports of chats: Slack, Telegram, Discord (DiscordChatExporter), Messenger, Instagram, ChatGPT, Claude (JSON) and WhatsApp
(text). Each message with its sender and time, in its order."""

from __future__ import annotations

import datetime
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from memdir.ingest.extractors.output import ExtractionError, Output
from memdir.ingest.text import decode

_DAY: Final = r"\d{1,4}[./-]\d{1,2}[./-]\d{1,4}"
_TIME: Final = r"\d{1,2}:\d{2}(?::\d{2})?(?:[ \u202f]?[AaPp]\.?[Mm]\.?)?"
_STAMP: Final = rf"\u200e?\[?({_DAY}),? ({_TIME})(?:\] | - )"
_WHATSAPP: Final = re.compile(rf"{_STAMP}([^:\n]{{1,60}}): (.*)$")
_SYSTEM: Final = re.compile(_STAMP)
"""A line of the program itself: it has no sender."""
_MENTION: Final = re.compile(r"<@([A-Z0-9]+)>")
_LOOK_CHARS: Final = 4_000
_DEPTH_MAX: Final = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class _Message:
    at: str
    sender: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Conversation:
    title: str
    messages: list[_Message]


def extract(path: Path, out: Output) -> None:
    """ExtractionError when there is no message in it."""
    out.engine = "memdir chat"
    decoded = decode(path.read_bytes())
    text = "" if decoded is None else decoded.text
    count = 0
    for conversation in _whatsapp(text) if is_whatsapp(text) else _exported(text):
        out.heading(2, conversation.title or "Conversation")
        for message in conversation.messages:
            if message.text.strip():
                stamp = f"[{message.at}] " if message.at else ""
                out.paragraph(f"{stamp}{message.sender}: {message.text}")
                count += 1
        out.progress(count, 0)
    if not count:
        raise ExtractionError("there is no message in it")
    out.fact("messages", count)


def is_whatsapp(text: str) -> bool:
    """Three messages near the beginning."""
    return sum(_WHATSAPP.match(line) is not None for line in text[:_LOOK_CHARS].splitlines()) >= 3


def _whatsapp(text: str) -> Iterator[_Conversation]:
    messages: list[_Message] = []
    for line in text.splitlines():
        found = _WHATSAPP.match(line)
        if found is not None:
            messages.append(_Message(at=f"{found[1]} {found[2]}".replace("\u202f", " "), sender=found[3], text=found[4]))
        elif messages and not _SYSTEM.match(line):
            last = messages[-1]
            messages[-1] = _Message(at=last.at, sender=last.sender, text=f"{last.text}\n{line}")
    yield _Conversation(title="WhatsApp", messages=messages)


def _exported(text: str) -> Iterator[_Conversation]:
    try:
        found = json.loads(text)
    except ValueError as error:
        raise ExtractionError("it is no JSON that can be read: damaged or cut off", hint="export it again") from error
    items = found if isinstance(found, list) else [found]
    if any(isinstance(item, dict) and "ts" in item and "mapping" not in item for item in items[:50]):
        yield _Conversation(title="Slack", messages=[_slack(item) for item in items if isinstance(item, dict) and "ts" in item])
        return
    for item in items:
        if isinstance(item, dict) and isinstance(item.get("mapping"), dict):
            yield _Conversation(title=str(item.get("title") or ""), messages=list(_chatgpt(item)))
        elif isinstance(item, dict) and isinstance(item.get("chat_messages"), list):
            yield _Conversation(title=str(item.get("name") or ""), messages=[_claude(one) for one in item["chat_messages"]])
        elif isinstance(item, dict):
            for one in _objects(_object(item.get("chats")).get("list")) or [item]:
                yield _of_messenger(one)


def _of_messenger(item: dict[str, Any]) -> _Conversation:
    """A conversation of Telegram, of Discord, or of Messenger and Instagram."""
    messages = _objects(item.get("messages"))
    if "participants" in item:
        messages.sort(key=_milliseconds)
        return _Conversation(title=_repaired(item.get("title")), messages=[_meta(one) for one in messages])
    if "channel" in item:
        names = (_object(item.get(place)).get("name") for place in ("guild", "channel"))
        return _Conversation(
            title=" › ".join(str(name) for name in names if name), messages=[_discord(one) for one in messages]
        )
    said = [_telegram(one) for one in messages if one.get("type") == "message"]
    return _Conversation(title=str(item.get("name") or ""), messages=said)


def _telegram(item: dict[str, Any]) -> _Message:
    pieces = item.get("text")
    text = "".join(one if isinstance(one, str) else str(_object(one).get("text") or "") for one in pieces or ())
    poll = _object(item.get("poll"))
    said = _lines(
        f"[forwarded from {item['forwarded_from']}]" if item.get("forwarded_from") else "",
        text,
        str(poll.get("question") or ""),
        *(f"- {one.get('text')}" for one in _objects(poll.get("answers"))),
        _file(item.get("file_name") or item.get("file") or item.get("photo")),
    )
    return _Message(at=moment(item.get("date_unixtime") or item.get("date")), sender=str(item.get("from") or "?"), text=said)


def _discord(item: dict[str, Any]) -> _Message:
    author = _object(item.get("author"))
    said = [str(item.get("content") or "")]
    for one in _objects(item.get("embeds")):
        said += [str(one.get("title") or ""), str(one.get("description") or "")]
    said += [_file(one.get("fileName")) for one in _objects(item.get("attachments"))]
    sender = author.get("nickname") or author.get("name") or "?"
    return _Message(at=moment(item.get("timestamp")), sender=str(sender), text=_lines(*said))


def _meta(item: dict[str, Any]) -> _Message:
    files = (_file(one.get("uri")) for kind in ("photos", "videos", "files", "audio_files") for one in _objects(item.get(kind)))
    shared = _object(item.get("share"))
    said = _lines(_repaired(item.get("content")), _repaired(shared.get("share_text")), _repaired(shared.get("link")), *files)
    return _Message(at=moment(_milliseconds(item) / 1000), sender=_repaired(item.get("sender_name")) or "?", text=said)


def _milliseconds(item: dict[str, Any]) -> int:
    at = item.get("timestamp_ms")
    return at if isinstance(at, int) else 0


def _repaired(text: Any) -> str:
    """Meta writes each byte of UTF-8 as a character."""
    try:
        return str(text or "").encode("latin-1").decode()
    except UnicodeError:
        return str(text)


def _slack(item: dict[str, Any]) -> _Message:
    named = _object(item.get("user_profile"))
    sender = named.get("real_name") or named.get("name") or item.get("username") or item.get("user") or "?"
    said = [str(item.get("text") or "")]
    for one in _objects(item.get("attachments")):  # what a program posted, and what stands behind a link
        fields = (f"{field.get('title') or ''}: {field.get('value') or ''}" for field in _objects(one.get("fields")))
        said += [
            *(str(one.get(name) or "") for name in ("pretext", "title")),
            str(one.get("text") or one.get("fallback") or ""),
            *fields,
        ]
    text = _lines(*said, *(_file(one.get("title") or one.get("name")) for one in _objects(item.get("files"))))
    return _Message(at=moment(item.get("ts")), sender=str(sender), text=_MENTION.sub(r"@\1", text))


def _chatgpt(item: dict[str, Any]) -> Iterator[_Message]:
    """The branch that was shown last: from `current_node` up, else every node by time."""
    mapping = item["mapping"]
    nodes: list[dict[str, Any]] = []
    at = item.get("current_node")
    while isinstance(at, str) and isinstance(mapping.get(at), dict) and len(nodes) < _DEPTH_MAX:
        nodes.append(mapping[at])
        at = mapping[at].get("parent")
    nodes.reverse()
    for node in nodes or [one for one in mapping.values() if isinstance(one, dict)]:
        message = node.get("message")
        if not isinstance(message, dict):
            continue
        author, content, told = (_object(message.get(name)) for name in ("author", "content", "metadata"))
        parts = content.get("parts")
        if not isinstance(parts, list):
            parts = [content]
        said = _lines(
            *(part if isinstance(part, str) else str(_object(part).get("text") or "") for part in parts),
            *(_file(one.get("name")) for one in _objects(told.get("attachments"))),
        )
        role = str(author.get("role") or "?")
        if role in ("user", "assistant"):
            yield _Message(at=moment(message.get("create_time")), sender=role, text=said)


def _claude(item: Any) -> _Message:
    told = _object(item)
    parts = []
    for one in _objects(told.get("content")):
        written = _object(one.get("input"))  # a document that it wrote
        parts += [str(one.get("text") or ""), *(str(written[name]) for name in ("title", "content") if written.get(name))]
    said = _lines(*parts) or str(told.get("text") or "")
    for one in _objects(told.get("attachments")):
        said = _lines(said, _file(one.get("file_name")), str(one.get("extracted_content") or ""))
    said = _lines(said, *(_file(one.get("file_name")) for one in _objects(told.get("files"))))
    return _Message(at=moment(told.get("created_at")), sender=str(told.get("sender") or "?"), text=said)


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _objects(value: Any) -> list[dict[str, Any]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _file(name: Any) -> str:
    return f"[file: {name}]" if name else ""


def _lines(*said: str) -> str:
    return "\n".join(filter(None, said))


def moment(value: Any) -> str:
    """`2026-11-25 10:30` in UTC; nothing when it is no time."""
    try:
        if isinstance(value, str) and "T" in value:
            moment = datetime.datetime.fromisoformat(value)
        else:
            moment = datetime.datetime.fromtimestamp(float(value), tz=datetime.UTC)
        return moment.astimezone(datetime.UTC).strftime("%Y-%m-%d %H:%M")
    except (TypeError, ValueError, OverflowError, OSError):
        return ""
