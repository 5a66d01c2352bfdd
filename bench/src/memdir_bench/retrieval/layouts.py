"""How the files of the generated corpus look: each layout writes facts the way people and programs write them.

A layout gets facts as (subject, label, statement, value) and returns the text, the values still between their marks and in the
order of the facts. Layouts of the half `held` differ in shape from those of `fit`, not in words only.
"""

from __future__ import annotations

import json
import random
import re
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from memdir_bench.retrieval.phrases import FILLER, FILLERS

OPEN: Final = "\ue000"
CLOSE: Final = "\ue001"
WIDTH: Final = 72

Fact = tuple[str, str, str, str]
"""Subject, label, statement with the value marked, and the marked value."""
Render = Callable[["Pen", Sequence[Fact]], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """One shape of file."""

    name: str
    suffix: str
    render: Render
    language: str = "english"


def marked(value: str) -> str:
    """The value between marks."""
    return f"{OPEN}{value}{CLOSE}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pen:
    """What a layout writes with."""

    rng: random.Random
    language: str

    def filler(self) -> str:
        """A sentence about nothing that is asked for."""
        return self.rng.choice(FILLER if self.language == "english" else FILLERS[self.language])


def _wrapped(text: str, width: int = WIDTH) -> str:
    return textwrap.fill(text, width, break_long_words=False, break_on_hyphens=False)


def _identifier(subject: str) -> str:
    return re.sub(r"\W+", "_", subject.lower())


def _headers(pen: Pen, subject: str) -> str:
    sender = pen.rng.choice(("ana@example.org", "bo@example.net", "office@example.com"))
    return f"From: {sender}\nTo: board@example.org\nDate: Tue, 3 Jun 2025 09:12:00 +0200\nSubject: {subject}\n\n"


def _mail_wrapped(pen: Pen, facts: Sequence[Fact]) -> str:
    """Paragraphs of three facts, wrapped."""
    paragraphs = []
    for first in range(0, len(facts), 3):
        sentences = [pen.filler()]
        for _, _, said, _ in facts[first : first + 3]:
            sentences += [said, pen.filler()]
        paragraphs.append(_wrapped(" ".join(sentences)))
    return _headers(pen, "News about our buildings") + "Hello all,\n\n" + "\n\n".join(paragraphs) + "\n\nBest,\nAna\n"


def _mail_reply(pen: Pen, facts: Sequence[Fact]) -> str:
    """Questions quoted, answered below."""
    parts = [f"> And what about the {subject}, the {label}?\n\n{_wrapped(said)}" for subject, label, said, _ in facts]
    return _headers(pen, "Re: open points") + "\n\n".join(parts) + "\n\n-- \nBo\n"


def _notes_list(pen: Pen, facts: Sequence[Fact]) -> str:
    """One list item a fact, some of them wrapped with an indent."""
    items = []
    for _, _, said, _ in facts:
        text = f"{said} {pen.filler()}" if pen.rng.random() < 0.4 else said
        items.append(textwrap.fill(text, 60, initial_indent="- ", subsequent_indent="  ", break_on_hyphens=False))
    return "# Houses\n\nWhat to know:\n\n" + "\n".join(items) + "\n"


def _notes_nested(pen: Pen, facts: Sequence[Fact]) -> str:
    """The subject is the lead-in, its value below it."""
    items = [f"* {subject}\n    * {pen.filler()[:-1].lower()}\n    * {label}: {value}" for subject, label, _, value in facts]
    return "# Inventory\n\n" + "\n".join(items) + "\n"


def _notes_sections(pen: Pen, facts: Sequence[Fact]) -> str:
    """A heading for each subject, the value in the text below."""
    return "# Handbook\n\n" + "\n".join(
        f"## {subject.capitalize()}\n\n{pen.filler()}\n{said}\n" for subject, _, said, _ in facts
    )


def _pairs(pen: Pen, facts: Sequence[Fact]) -> str:
    """Key and value on a line."""
    return (
        f"Facts and figures\n\n{pen.filler()}\n\n"
        + "\n".join(f"{subject}, {label}: {value}" for subject, label, _, value in facts)
        + "\n"
    )


def _faq(pen: Pen, facts: Sequence[Fact]) -> str:
    """Question and answer on lines of their own."""
    return f"{pen.filler()}\n\n" + "\n\n".join(
        f"Q: What should one know about the {subject} ({label})?\nA: {said}" for subject, label, said, _ in facts
    )


def _talk(pen: Pen, facts: Sequence[Fact]) -> str:
    """Turns with times; one asks, the other answers without naming the subject."""
    turns = []
    minute = 0
    for subject, label, _, value in facts:
        minute += pen.rng.randrange(1, 4)
        turns.append(f"[00:{minute:02}:07] Ines: And the {subject}, what is the {label}?")
        turns.append(f"[00:{minute:02}:31] Kurt: That would be {value}.")
        if pen.rng.random() < 0.5:
            turns.append(f"[00:{minute:02}:49] Ines: {pen.filler()}")
    return "\n".join(turns) + "\n"


def _chat(pen: Pen, facts: Sequence[Fact]) -> str:
    """Speaker and a statement on a line."""
    lines = []
    for _, _, said, _ in facts:
        lines.append(f"{pen.rng.choice(('Mira', 'Oskar'))}: {said}")
        lines.append(f"{pen.rng.choice(('Mira', 'Oskar'))}: {pen.filler()}")
    return "\n".join(lines) + "\n"


def _csv(pen: Pen, facts: Sequence[Fact]) -> str:
    """A row a fact."""
    return "id,place,item,value,remark\n" + "".join(
        f'{number},{subject},{label},{value},"{pen.filler()}"\n' for number, (subject, label, _, value) in enumerate(facts, 100)
    )


def _markdown_table(pen: Pen, facts: Sequence[Fact]) -> str:
    """A row a fact, between bars."""
    rows = "\n".join(f"| {subject} | {label} | {value} |" for subject, label, _, value in facts)
    return f"# Register\n\n{pen.filler()}\n\n| place | what | value |\n| --- | --- | --- |\n{rows}\n"


def _python(pen: Pen, facts: Sequence[Fact]) -> str:
    """A function a subject, its value in the body."""
    return "import site\n\n" + "\n".join(
        f"def {_identifier(subject)}_{_identifier(label)}(today):\n"
        f'    """{pen.filler()}"""\n'
        f"    if today is None:\n        raise ValueError('no day')\n"
        f'    {_identifier(label)} = "{value}"\n    return site.checked({_identifier(label)}, today)\n'
        for subject, label, _, value in facts
    )


def _constants(pen: Pen, facts: Sequence[Fact]) -> str:
    """Constants in camel case, a comment above each."""
    names = [(re.sub(r"_(\w)", lambda found: found[1].upper(), _identifier(f"{s} {label}")), s, v) for s, label, _, v in facts]
    return "".join(f'// {pen.filler()}\nexport const {name} = "{value}";\n\n' for name, _, value in names)


def _yaml(pen: Pen, facts: Sequence[Fact]) -> str:
    """A section a subject."""
    return "".join(
        f"{_identifier(subject)}:\n  enabled: true\n  {_identifier(label)}: {value}\n  note: {pen.filler()}\n"
        for subject, label, _, value in facts
    )


def _json_lines(pen: Pen, facts: Sequence[Fact]) -> str:
    """A record a line."""
    return "".join(
        json.dumps({"place": subject, "what": label, "value": value, "remark": pen.filler()}, ensure_ascii=False) + "\n"
        for subject, label, _, value in facts
    )


def _log(pen: Pen, facts: Sequence[Fact]) -> str:
    """Lines of a program's log, others between them."""
    lines = []
    for number, (subject, label, _, value) in enumerate(facts):
        stamp = f"2025-06-03T09:{number:02}"
        lines.append(f"{stamp}:01Z INFO  watcher[{pen.rng.randrange(900)}]: heartbeat ok")
        lines.append(f"{stamp}:05Z WARN  {subject}: {label} set to {value} by operator")
        lines.append(f"{stamp}:09Z INFO  watcher[{pen.rng.randrange(900)}]: heartbeat ok")
    return "\n".join(lines) + "\n"


def _prose(pen: Pen, facts: Sequence[Fact]) -> str:
    """Long paragraphs on one line each."""
    space = "" if pen.language == "japanese" else " "
    paragraphs = []
    for first in range(0, len(facts), 4):
        sentences = [pen.filler()]
        for _, _, said, _ in facts[first : first + 4]:
            sentences += [said, pen.filler()]
        paragraphs.append(space.join(sentences))
    return "\n\n".join(paragraphs) + "\n"


def _prose_wrapped(pen: Pen, facts: Sequence[Fact]) -> str:
    """The same, wrapped where the language has spaces."""
    text = _prose(pen, facts)
    return "\n\n".join(_wrapped(part, 66) for part in text.strip().split("\n\n")) + "\n"


def _ini(pen: Pen, facts: Sequence[Fact]) -> str:
    """A section a subject, its value between other settings."""
    return "".join(
        f"[{_identifier(subject)}]\nactive = yes\nremark = {pen.filler()}\n{_identifier(label)} = {value}\nowner = board\n\n"
        for subject, label, _, value in facts
    )


def _jotted(pen: Pen, facts: Sequence[Fact]) -> str:
    """Lines without stops, the value first."""
    rows = "".join(f"{value} {label} {subject}\n" for subject, label, _, value in facts)
    return f"{pen.filler()}\n\n{rows}"


def _letter(pen: Pen, facts: Sequence[Fact]) -> str:
    """Wrapped narrow, all in one paragraph."""
    return _wrapped(" ".join(_prose(pen, facts).split("\n\n")), 58) + "\n"


def _address_book(pen: Pen, facts: Sequence[Fact]) -> str:
    """Records parted by blank lines, the subject on top."""
    records = (f"{subject.title()}\n  {pen.filler()}\n  {label.capitalize()} - {value}\n" for subject, label, _, value in facts)
    return "\n".join(records)


def _org(pen: Pen, facts: Sequence[Fact]) -> str:
    """Org mode: a headline a subject, a property and wrapped text below."""
    return "".join(
        f"* {subject.capitalize()}\n  :CREATED: [2025-06-03]\n{_wrapped(f'{pen.filler()} {said}', 64)}\n\n"
        for subject, _, said, _ in facts
    )


def _tsv(pen: Pen, facts: Sequence[Fact]) -> str:
    """A row a fact, parted by tabs."""
    rows = "".join(f"{value}\t{subject}\t{label}\t{pen.filler()}\n" for subject, label, _, value in facts)
    return f"value\tplace\twhat\tremark\n{rows}"


def _go(pen: Pen, facts: Sequence[Fact]) -> str:
    """A function a subject with its comment, the value inside."""
    return "package houses\n\n" + "\n".join(
        f"// {pen.filler()}\nfunc {_identifier(subject).title().replace('_', '')}(d Day) (string, error) {{\n"
        f'\tif d.Closed() {{\n\t\treturn "", errClosed\n\t}}\n\t{_identifier(label)} := "{value}"\n'
        f"\treturn {_identifier(label)}, nil\n}}\n"
        for subject, label, _, value in facts
    )


def _minutes(pen: Pen, facts: Sequence[Fact]) -> str:
    """Numbered points, wrapped below their number, in sentences."""
    points = (f"{number}. {pen.filler()} {said} {pen.filler()}" for number, (_, _, said, _) in enumerate(facts, 1))
    return "Minutes of the meeting\n\n" + "\n".join(
        textwrap.fill(point, 76, subsequent_indent="   ", break_on_hyphens=False) for point in points
    )


def _interview(pen: Pen, facts: Sequence[Fact]) -> str:
    """Bold speakers, question and answer in paragraphs of their own."""
    return "# An interview\n\n" + "\n\n".join(
        f"**Editor:** Let us turn to the {subject}. What about the {label}?\n\n"
        f"**Warden:** {pen.filler()} It is {value}, I believe."
        for subject, label, _, value in facts
    )


_FOREIGN: Final = ("german", "french", "spanish", "dutch", "russian", "japanese")
LAYOUTS: Final[dict[str, tuple[Layout, ...]]] = {
    "fit": (
        Layout(name="mail-wrapped", suffix="eml", render=_mail_wrapped),
        Layout(name="notes-list", suffix="md", render=_notes_list),
        Layout(name="notes-sections", suffix="md", render=_notes_sections),
        Layout(name="faq", suffix="txt", render=_faq),
        Layout(name="chat", suffix="txt", render=_chat),
        Layout(name="csv", suffix="csv", render=_csv),
        Layout(name="python", suffix="py", render=_python),
        Layout(name="json-lines", suffix="jsonl", render=_json_lines),
        Layout(name="log", suffix="log", render=_log),
        Layout(name="prose", suffix="txt", render=_prose),
        Layout(name="ini", suffix="ini", render=_ini),
        Layout(name="jotted", suffix="txt", render=_jotted),
        Layout(name="pairs", suffix="txt", render=_pairs),
        Layout(name="yaml", suffix="yaml", render=_yaml),
        Layout(name="talk", suffix="txt", render=_talk),
        Layout(name="constants", suffix="ts", render=_constants),
        *(Layout(name=f"prose-{name}", suffix="txt", render=_prose, language=name) for name in _FOREIGN),
        *(Layout(name=f"letter-{name}", suffix="txt", render=_letter, language=name) for name in ("english", *_FOREIGN)),
    ),
    "held": (
        Layout(name="mail-reply", suffix="eml", render=_mail_reply),
        Layout(name="notes-nested", suffix="md", render=_notes_nested),
        Layout(name="markdown-table", suffix="md", render=_markdown_table),
        Layout(name="address-book", suffix="txt", render=_address_book),
        Layout(name="org", suffix="org", render=_org),
        Layout(name="tsv", suffix="tsv", render=_tsv),
        Layout(name="go", suffix="go", render=_go),
        Layout(name="minutes", suffix="txt", render=_minutes),
        Layout(name="interview", suffix="md", render=_interview),
        Layout(name="prose-wrapped", suffix="txt", render=_prose_wrapped),
        *(Layout(name=f"wrapped-{name}", suffix="txt", render=_prose_wrapped, language=name) for name in _FOREIGN),
    ),
}
