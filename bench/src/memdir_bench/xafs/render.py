"""Turns statements into files of the kinds that drives hold; what a file says is among talk of the same things."""

from __future__ import annotations

import io
import json
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from email.message import EmailMessage
from typing import Final

from memdir_bench.ingest import documents
from memdir_bench.xafs import wording
from memdir_bench.xafs.world import Fact, World

Render = Callable[["Writer", str, list[str], list[tuple[str, str, str]]], bytes]


@dataclass(frozen=True, slots=True)
class Format:
    """`family`: what an agent needs to read it: `text`, `office`, `picture`, `sound`."""

    suffix: str
    family: str
    folder: str
    filler: tuple[int, int]
    """Sentences of talk, least and most."""


FORMATS: Final[dict[str, Format]] = {
    "md": Format(".md", "text", "notes", (10, 150)),
    "txt": Format(".txt", "text", "notes", (10, 120)),
    "eml": Format(".eml", "text", "mail", (4, 40)),
    "chat": Format(".json", "text", "chat", (30, 250)),
    "csv": Format(".csv", "text", "finance", (20, 200)),
    "html": Format(".html", "text", "reports", (10, 100)),
    "ics": Format(".ics", "text", "meetings", (4, 20)),
    "py": Format(".py", "text", "ops", (20, 100)),
    "log": Format(".log", "text", "ops", (200, 900)),
    "xlsx": Format(".xlsx", "office", "finance", (20, 200)),
    "docx": Format(".docx", "office", "projects", (10, 120)),
    "pptx": Format(".pptx", "office", "reports", (4, 30)),
    "pdf": Format(".pdf", "office", "reports", (20, 200)),
    "scan": Format(".pdf", "picture", "scans", (8, 20)),
    "png": Format(".png", "picture", "scans", (6, 16)),
    "wav": Format(".wav", "sound", "meetings", (4, 8)),
}
MIX: Final = {
    "md": 22, "txt": 10, "eml": 16, "chat": 6, "csv": 5, "html": 6, "ics": 3, "py": 3, "log": 3, "xlsx": 6, "docx": 8,
    "pptx": 3, "pdf": 6, "scan": 1.2, "png": 1.2, "wav": 0.6,
}  # fmt: skip
"""Of the files beside those that answer questions."""
GOLD: Final = {
    "md": 20,
    "txt": 8,
    "eml": 16,
    "chat": 6,
    "csv": 7,
    "html": 6,
    "xlsx": 9,
    "docx": 11,
    "pptx": 5,
    "pdf": 9,
    "png": 3,
}


class Writer:
    """Writes the files of one world."""

    def __init__(self, rng: random.Random, world: World) -> None:
        self._rng = rng
        self._world = world

    def one(self, kind: str) -> str:
        return self._rng.choice(self._world.entities[kind])

    def _thing(self) -> str:
        return self._rng.choice(wording.THINGS)

    def talk(self, count: int, kind: str, subject: str) -> list[str]:
        """Sentences of a document about `subject`: some about it and those around it, most about everyday things."""
        lines = []
        for _ in range(count):
            chance = self._rng.random()
            about, name = (
                (kind, subject)
                if chance < 0.3
                else (self._rng.choice(("person", "project")), "")
                if chance < 0.36
                else ("", "")
            )
            pattern = self._rng.choice(wording.ABOUT[about] if about else wording.GENERAL)
            line = pattern.format(
                s=name or (self.one(about) if about else ""), q=self.one("person"), n=self._thing(), m=self._thing()
            )
            lines.append(line[0].upper() + line[1:])
        return lines

    def document(
        self, kind: str, title: str, facts: Sequence[Fact], *, about: tuple[str, str] = ("", ""), warning: str = ""
    ) -> bytes:
        """A file of the format `kind` about an entity (its kind and name; default: that of the first fact), that states
        `facts`; `warning` stands at its head."""
        rng, shape = self._rng, FORMATS[kind]
        of, subject = (facts[0].about.of, facts[0].subject) if facts else about
        lines = self.talk(rng.randint(*shape.filler), of, subject)
        for fact in facts:
            statement = rng.choice(fact.about.statements).format(s=fact.subject, v=fact.value)
            statement = statement[0].upper() + statement[1:]
            lines.insert(rng.randint(len(lines) // 4, len(lines)), statement)
        if warning:
            lines.insert(0, warning)
        rows = [(fact.subject, fact.about.label, fact.value) for fact in facts]
        made: bytes = getattr(self, f"_{kind}")(title, lines, rows)
        return made

    def _paragraphs(self, lines: Sequence[str]) -> list[str]:
        size = self._rng.randint(2, 5)
        return [" ".join(lines[at : at + size]) for at in range(0, len(lines), size)]

    def _md(self, title: str, lines: list[str], _rows: object) -> bytes:
        parts = [f"# {title}"]
        for number, paragraph in enumerate(self._paragraphs(lines)):
            if number % 5 == 4:
                parts.append(f"## {self.one('project')}")
            parts.append(paragraph if self._rng.random() < 0.8 else "\n".join(f"- {one}" for one in paragraph.split(". ")))
        return ("\n\n".join(parts) + "\n").encode()

    def _txt(self, title: str, lines: list[str], _rows: object) -> bytes:
        return (title + "\n\n" + "\n".join(self._paragraphs(lines)) + "\n").encode()

    def _eml(self, title: str, lines: list[str], _rows: object) -> bytes:
        message = EmailMessage()
        sender, receiver = self.one("person"), self.one("person")
        message["From"], message["To"] = (
            f"{name} <{name.lower().replace(' ', '.')}@example.org>" for name in (sender, receiver)
        )
        message["Subject"], message["Date"] = (
            title,
            f"{self._rng.randint(1, 28)} Mar 2026 10:{self._rng.randint(10, 59)}:00 +0000",
        )
        message.set_content(
            f"Hello {receiver.split()[0]},\n\n" + "\n\n".join(self._paragraphs(lines)) + f"\n\nRegards\n{sender}\n", cte="8bit"
        )
        return message.as_bytes()

    def _chat(self, title: str, lines: list[str], _rows: object) -> bytes:
        users = [self.one("person") for _ in range(4)]
        messages = [
            {
                "type": "message",
                "user": self._rng.choice(users),
                "text": line,
                "ts": f"{1_770_000_000 + 61 * number}.000{number % 10}",
            }
            for number, line in enumerate(lines)
        ]
        del title
        return (json.dumps(messages, indent=1, ensure_ascii=False) + "\n").encode()

    def _table(self, lines: Sequence[str], rows: Sequence[tuple[str, str, str]]) -> list[tuple[str, str, str]]:
        kinds = [("project", "reviewed by"), ("client", "met at"), ("person", "seat"), ("incident", "reported in")]
        found = []
        for line in lines:
            kind, label = self._rng.choice(kinds)
            found.append(
                (self.one(kind), label, self._rng.choice(("floor 2", "the annex", "week 7", "nobody yet", line.split()[0])))
            )
        for row in rows:
            found.insert(self._rng.randint(0, len(found)), row)
        return [("Item", "What", "Value"), *found]

    def _csv(self, _title: str, lines: list[str], rows: list[tuple[str, str, str]]) -> bytes:
        return ("\n".join(";".join(row) for row in self._table(lines[:150], rows)) + "\n").encode()

    def _xlsx(self, _title: str, lines: list[str], rows: list[tuple[str, str, str]]) -> bytes:
        return documents.xlsx_of(self._table(lines, rows))

    def _html(self, title: str, lines: list[str], _rows: object) -> bytes:
        body = "".join(f"<p>{one}</p>\n" for one in self._paragraphs(lines))
        head = f"<!doctype html><html><head><title>{title}</title></head><body><nav>Home</nav>"
        return f"{head}<main><h1>{title}</h1>{body}</main></body></html>\n".encode()

    def _ics(self, title: str, lines: list[str], _rows: object) -> bytes:
        text = "\\n".join(lines).replace(",", "\\,").replace(";", "\\;")
        event = [
            "BEGIN:VEVENT",
            "UID:1@example.org",
            "DTSTART:20260309T100000Z",
            f"SUMMARY:{title}",
            f"DESCRIPTION:{text}",
            "END:VEVENT",
        ]
        return ("\r\n".join(["BEGIN:VCALENDAR", "VERSION:2.0", *event, "END:VCALENDAR"]) + "\r\n").encode()

    def _py(self, title: str, lines: list[str], _rows: object) -> bytes:
        """Code, with a remark of the talk now and then."""
        parts = [f'"""{title}."""\n\nimport sys\n']
        for number, line in enumerate(lines):
            remark = f"    # {line}\n" if number % 12 == 5 else ""
            name = f"{self._thing()}_{self._rng.choice(('load', 'check', 'merge', 'split'))}_{number}"
            parts.append(
                f"\n\ndef {name}(items: list[int]) -> int:\n{remark}    return sum(one % {number + 2} for one in items)\n"
            )
        return "".join(parts).encode()

    def _log(self, _title: str, lines: list[str], _rows: object) -> bytes:
        """Requests and their times; of the talk one line in a hundred."""
        out = []
        for number, line in enumerate(lines):
            stamp = f"2026-03-{1 + number % 28:02d}T10:{number % 60:02d}:{number * 7 % 60:02d}Z"
            said = (
                line
                if number % 100 == 50
                else f"GET /{self._thing()} {self._rng.choice((200, 200, 200, 304, 404, 500))} {self._rng.randint(1, 900)}ms"
            )
            out.append(f"{stamp} INFO worker={number % 7} {said}\n")
        return "".join(out).encode()

    def _docx(self, _title: str, lines: list[str], _rows: object) -> bytes:
        return documents.docx_of(self._paragraphs(lines))

    def _pptx(self, title: str, lines: list[str], _rows: object) -> bytes:
        return documents.pptx_of((), slides=[(title, one) for one in self._paragraphs(lines)])

    def _pdf(self, _title: str, lines: list[str], _rows: object) -> bytes:
        return documents.pdf_of(self._paragraphs(lines))

    def _page(self, lines: Sequence[str]) -> bytes:
        import textwrap

        return documents.page([part for line in lines for part in textwrap.wrap(line, 75)][:55])

    def _png(self, _title: str, lines: list[str], _rows: object) -> bytes:
        return self._page(lines)

    def _scan(self, _title: str, lines: list[str], _rows: object) -> bytes:
        from reportlab.lib.pagesizes import A4
        from reportlab.lib.utils import ImageReader
        from reportlab.pdfgen.canvas import Canvas

        out = io.BytesIO()
        canvas = Canvas(out, pagesize=A4)
        canvas.drawImage(ImageReader(io.BytesIO(self._page(lines))), 0, 0, width=A4[0], height=A4[1])
        canvas.save()
        return out.getvalue()

    def _wav(self, _title: str, lines: list[str], _rows: object) -> bytes:
        return documents.speech(" ".join(lines))
