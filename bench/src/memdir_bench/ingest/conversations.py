"""Exports of chats, calendars and cards."""

from __future__ import annotations

import json

from memdir_bench.ingest.phrases import PHRASE


def slack() -> bytes:
    """A day of a channel, as Slack exports it."""
    messages = [
        {"type": "message", "user": "U01", "text": text, "ts": f"17955{number:05}.000100", "user_profile": {"real_name": name}}
        for number, (name, text) in enumerate([("Ana Ruiz", "Morning!"), ("Marta", f"<@U01> {PHRASE}"), ("Ana Ruiz", "Noted.")])
    ]
    return json.dumps(messages, indent=4).encode()


def chatgpt() -> bytes:
    """A conversation with a branch that was given up."""

    def node(name: str, parent: str | None, role: str, text: str) -> dict[str, object]:
        message = {
            "author": {"role": role},
            "create_time": 1_795_500_000.5,
            "content": {"content_type": "text", "parts": [text]},
        }
        return {"id": name, "parent": parent, "message": message}

    mapping = {
        "a": node("a", None, "user", "When does the heron feed?"),
        "b": node("b", "a", "assistant", "I do not know."),
        "c": node("c", "a", "assistant", f"{PHRASE}."),
    }
    return json.dumps([{"title": "Herons", "mapping": mapping, "current_node": "c"}]).encode()


def claude() -> bytes:
    """A conversation as Claude exports it."""
    messages = [
        {"sender": "human", "created_at": "2026-11-25T10:30:00.000000Z", "text": "When does the heron feed?"},
        {"sender": "assistant", "created_at": "2026-11-25T10:30:05Z", "content": [{"type": "text", "text": f"{PHRASE}."}]},
    ]
    return json.dumps([{"uuid": "1", "name": "Herons", "chat_messages": messages}]).encode()


def whatsapp() -> bytes:
    """A chat with a line of the system and a message of two lines."""
    return (
        "25.11.26, 10:29 - Messages and calls are end-to-end encrypted.\n25.11.26, 10:30 - Ana Ruiz: Morning!\n"
        f"25.11.26, 10:31 - Marta: {PHRASE}\nand on Fridays\n25.11.26, 10:32 - Ana Ruiz: Noted: thanks\n"
    ).encode()


def calendar() -> bytes:
    """An event whose description is folded, with an alarm in it."""
    return (
        "BEGIN:VCALENDAR\r\nBEGIN:VEVENT\r\nSUMMARY:Bird walk\\, spring\r\nDTSTART;TZID=Europe/Madrid:20260405T083000\r\n"
        f"DESCRIPTION:{PHRASE[:20]}\r\n {PHRASE[20:]}.\\nBring boots.\r\n"
        "BEGIN:VALARM\r\nDESCRIPTION:Alarm text\r\nEND:VALARM\r\nORGANIZER;CN=Ana Ruiz:mailto:ana@example.org\r\n"
        "END:VEVENT\r\nEND:VCALENDAR\r\n"
    ).encode()


def card() -> bytes:
    """An address card."""
    return (
        f"BEGIN:VCARD\r\nVERSION:4.0\r\nFN:Ana Ruiz\r\nTEL;TYPE=cell:+34 600 100 200\r\nNOTE:{PHRASE}\r\nEND:VCARD\r\n"
    ).encode()
