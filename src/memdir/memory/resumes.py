"""A curriculum vitae: who the user is, where they work and worked, what they learnt and know. Its entries are no sentences:
sections, and lines with a span of years. Pure; English, German, French, Spanish.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Final, Literal

from memdir.core.frontmatter import parse
from memdir.memory.markup import cleaned
from memdir.memory.occupations import JOB
from memdir.memory.statements import Statement

_Kind = Literal["work", "education", "list", "other"]
_SECTIONS: Final[tuple[tuple[_Kind, re.Pattern[str]], ...]] = (
    (
        "work",
        re.compile(
            r"(?:(?:work(?:ing)?|professional|relevant|other|further|selected) )*(?:experiences?|employment(?: history)?|"
            r"history|positions?|career)|beruf(?:serfahrung|spraxis|licher werdegang)|werdegang|praktische erfahrung|"
            r"experiencia(?: laboral| profesional)?|expériences?(?: professionnelles?)?|parcours professionnel",
            re.IGNORECASE,
        ),
    ),
    (
        "education",
        re.compile(
            r"(?:academic )?(?:education|background|studies|degrees)(?: (?:and|&) training)?|(?:schul|aus)?bildung|studium|"
            r"formación(?: académica)?|estudios|formations?|études|diplômes",
            re.IGNORECASE,
        ),
    ),
    (
        "list",
        re.compile(
            r"(?:(?:(?:technical|key|core|other|soft|it|computer) )*(?:skills|competenc(?:es|ies)|languages|certifi"
            r"cat(?:ions|es)|licen[cs]es|interests|hobbies|awards|volunteering|memberships)|"
            r"(?:it-|edv-|sprach)?kenntnisse|fähigkeiten|sprachen|zertifikate|interessen|ehrenamt|"
            r"idiomas|competencias|habilidades|conocimientos|certificados|aficiones|intereses|"
            r"langues|compétences|certifications|centres d['’]intérêt|loisirs)(?: (?:and|&|und|y|et) \w+)?",
            re.IGNORECASE,
        ),
    ),
    (
        "other",
        re.compile(
            r"(?:professional |personal |executive )?(?:summary|profile|about(?: me)?|objective|projects?|publications?|"
            r"references?|contact|details|data)|profil|über mich|persönliche(?:s| daten)|projekte|kontakt|"
            r"referenzen|perfil|sobre mí|proyectos|contacto|referencias|à propos|projets|coordonnées|références",
            re.IGNORECASE,
        ),
    ),
)
_TITLE: Final = re.compile(
    r"\b(?:curriculum(?: vit(?:ae|æ))?|cv|r[eé]sum[eé]|lebenslauf|currículum|europass|personal (?:information|details|data)|"
    r"(?:angaben )?zur person|persönliche (?:daten|angaben)|informations? personnelles?|datos personales)\b",
    re.IGNORECASE,
)
"""What stands above or before the name, and is none."""
_YEAR: Final = (
    r"(?:(?:(?:jan|feb|mar|mär|apr|abr|avr|ma[iy]|jun|jul|juin|juil|aug|ago|août|sep|okt|oct|nov|dez|dec|dic|déc|ene|fév)[a-zà-þ]*"
    r"\.?,?(?: de)? |\d{1,2}[./])?(?:19|20)\d\d)"
)
_NOW: Final = r"(?:present|now|today|current(?:ly)?|ongoing|heute|jetzt|laufend|actualidad|hoy|presente|aujourd['’]hui|présent)"
_SPAN: Final = re.compile(
    rf"(?P<years>(?:since|seit|desde|depuis) {_YEAR}|{_YEAR} ?(?:[-–—]+|to|bis|until|a|à) ?(?:{_YEAR}|{_NOW})|"
    rf"{_YEAR} ?[-–—](?=\W*$))",
    re.IGNORECASE,
)
_IS_OPEN: Final = re.compile(rf"(?:^(?:since|seit|desde|depuis)\b|{_NOW}$|[-–—]$)", re.IGNORECASE)
_ONE_YEAR: Final = re.compile(rf"\b{_YEAR}\b")
_PAGE: Final = re.compile(r"Page \d+")
"""As the extractor of PDF heads them."""
_BULLET: Final = re.compile(r"\s*(?:[-*+•·▪]|\d{1,2}[.)])\s+")
_HEADING: Final = re.compile(r"#{1,6}\s")
_EDGES: Final = " \t,;:|·•–—-()"
_BETWEEN: Final = re.compile(r"\s+(?:[—–|·@]|-)\s+")
_MAIL: Final = re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+")
_PHONE: Final = re.compile(r"\+?\d[\d ()/.-]{6,18}\d")
_NAME: Final = re.compile(r"[^\W\d_][\w'’.-]*(?: [^\W\d_][\w'’.-]*){1,3}")
_PLACE: Final = re.compile(r"[A-ZÀ-Þ][\w'’-]+(?: [A-ZÀ-Þ][\w'’-]+)?(?:, [A-ZÀ-Þ][\w'’-]+(?: [A-ZÀ-Þ][\w'’-]+)?)?")
_PARTS: Final = re.compile(r"\s*[|·•]\s*")
_LINE_MAX_CHARS: Final = 300
_ENTRIES_MAX: Final = 200
_HEAD_LINES: Final = 8
"""Above the first section: name, address, what the user is."""
_WORK: Final = re.compile(rf"\b{JOB}\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class _Line:
    """Of a text, without its bullet and markup."""

    start: int
    end: int
    text: str
    is_item: bool


def with_entries(text: str, stated: Iterable[Statement]) -> list[Statement]:
    """The statements of a curriculum vitae as of any other text, with what its head, its entries and its lists say."""
    found = list(islice(_entries(text), _ENTRIES_MAX))
    return [
        *found,
        *(
            one
            for one in stated
            if not (_kind_of_section(one.text.strip(": ")) or any(_overlap(one, other) for other in found))
        ),
    ]


def _overlap(one: Statement, other: Statement) -> bool:
    return one.start < other.end and other.start < one.end


def _entries(text: str) -> Iterator[Statement]:
    lines = list(_lines(text))
    first = next((at for at, line in enumerate(lines) if _section(line) is not None), len(lines))
    yield from _head(lines[: min(first, _HEAD_LINES)])
    kind: _Kind | None = None
    label = ""
    is_employed = False
    before: _Line | None = None
    for line in lines[first:]:
        section = _section(line)
        if section is not None:
            kind, label, before = section[0], section[1], None
            continue
        if kind == "list":
            if said := line.text.strip("| ").replace(" | ", ": ", 1).replace(" | ", ", "):  # of a table
                yield _said(line, f"{label}: {said}")
        elif kind in {"work", "education"}:
            found = _SPAN.search(line.text)
            entry = _entry(line, before, found)
            if entry is not None and found is not None and kind == "work":
                start, title = entry
                is_open = _IS_OPEN.search(found["years"]) is not None
                what = "Former job" if not is_open else "Other job" if is_employed else "Job"
                is_employed = is_employed or is_open
                yield _said(line, f"{what}: {title.replace(', ', ' at ', 1)} ({found['years']})", start=start)
            elif kind == "education" and (entry is not None or _ONE_YEAR.search(line.text)):
                start, title = entry or (line.start, line.text)
                if before is not None and start == line.start:  # the degree stands above the school, or the reverse
                    start, title = before.start, f"{before.text}, {title}"
                years = f" ({found['years']})" if found is not None else ""
                yield _said(line, f"Education: {title}{years}", start=start)
            before = line if found is None and not line.is_item and not _ONE_YEAR.search(line.text) else None


def _lines(text: str) -> Iterator[_Line]:
    _, body = parse(text)
    at = len(text) - len(body)
    for line in body.splitlines(keepends=True):
        written = line.strip()
        if written and len(written) <= _LINE_MAX_CHARS:
            start = at + line.index(written)
            bullet = _BULLET.match(written)
            said = cleaned(_HEADING.sub("", written[bullet.end() :] if bullet else written).strip("# "))
            if said.strip("-=_| ") and _PAGE.fullmatch(said) is None:
                yield _Line(start, start + len(written), said, bullet is not None)
        at += len(line)


def _section(line: _Line) -> tuple[_Kind, str] | None:
    name = line.text.strip(": ")
    kind = None if line.is_item else _kind_of_section(name)
    return None if kind is None else (kind, name.capitalize())


def _kind_of_section(name: str) -> _Kind | None:
    return next((kind for kind, pattern in _SECTIONS if pattern.fullmatch(name)), None)


def _head(lines: list[_Line]) -> Iterator[Statement]:
    """Name, address, mail and telephone; a line `key: value` says it by itself."""
    is_named: bool | None = None  # before the first line that may be the name; what stands behind it is none
    for line in lines:
        if ": " in line.text:
            is_named = True if line.text.casefold().startswith("name") else is_named
            continue
        for part in filter(None, (one.strip(_EDGES) for one in _PARTS.split(line.text))):
            mail, phone = _MAIL.search(part), _PHONE.fullmatch(part)
            if mail is not None:
                yield _said(line, f"E-mail: {mail[0]}")
            elif phone is not None:
                yield _said(line, f"Phone: {phone[0]}")
            elif is_named is None and (name := _TITLE.sub("", part).strip(_EDGES)):
                is_named = _NAME.fullmatch(name) is not None
                if is_named:
                    yield _said(line, f"Name: {name.title() if name.isupper() else name}")
            elif is_named and _PLACE.fullmatch(part) and ("," in part or _WORK.search(part) is None):
                yield _said(line, f"Location: {part}")


def _entry(line: _Line, before: _Line | None, found: re.Match[str] | None) -> tuple[int, str] | None:
    """Where an entry begins, and its title: the line without its years, or the line above one that has nothing but these and a
    place."""
    if found is None:
        return None
    rest = " ".join((line.text[: found.start()].rstrip(_EDGES) + ", " + line.text[found.end() :].lstrip(_EDGES)).split())
    rest = rest.strip(_EDGES)
    is_below = before is not None and not line.is_item and not line.text[: found.start()].strip(_EDGES)
    if before is not None and is_below and (not rest or _PLACE.fullmatch(rest)):
        return before.start, _with_job_first(before.text)
    return (line.start, _with_job_first(rest)) if rest else None


def _with_job_first(title: str) -> str:
    """ "Razorpay, Bengaluru — Staff Engineer" as "Staff Engineer, Razorpay, Bengaluru"."""
    parts = [part for part in _BETWEEN.split(title) if part]
    parts.sort(key=lambda part: _WORK.search(part) is None)
    return ", ".join(parts)


def _said(line: _Line, text: str, *, start: int | None = None) -> Statement:
    return Statement(start=line.start if start is None else start, end=line.end, text=text, form="pair")
