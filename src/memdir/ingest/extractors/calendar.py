"""Calendars (iCalendar, RFC 5545) and address cards (vCard, RFC 6350): each entry as a list of what it says."""

from __future__ import annotations

import quopri
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from memdir.ingest.extractors.output import Output
from memdir.ingest.text import decode

_ENTRIES_MAX: Final = 100_000
_LINE: Final = re.compile(r"(?:[\w-]+\.)?([\w-]+)((?:;[^:\"]*(?:\"[^\"]*\"[^:\"]*)*)?):(.*)", re.DOTALL)
_SHOWN: Final = {
    "SUMMARY": "", "DTSTART": "Start", "DTEND": "End", "DURATION": "Duration", "DUE": "Due", "COMPLETED": "Completed",
    "RRULE": "Repeats", "EXDATE": "Not on", "LOCATION": "Place", "CONFERENCE": "Conference", "ORGANIZER": "Organizer",
    "ATTENDEE": "Attendee", "CONTACT": "Contact", "STATUS": "Status", "PRIORITY": "Priority", "CATEGORIES": "Categories",
    "DESCRIPTION": "Description", "COMMENT": "Comment", "URL": "Address",
    "FN": "", "N": "", "NICKNAME": "Nickname", "ORG": "Organisation", "TITLE": "Title", "ROLE": "Role", "TEL": "Telephone",
    "EMAIL": "Mail", "IMPP": "Messenger", "ADR": "Postal address", "BDAY": "Birthday", "ANNIVERSARY": "Anniversary",
    "RELATED": "Related", "NOTE": "Note",
}  # fmt: skip
"""Fields and what they are called; those without a name are for the heading."""
_TITLES: Final = ("SUMMARY", "FN", "N")
_ENTRY: Final = frozenset({"VEVENT", "VTODO", "VJOURNAL", "VCARD"})
_MOMENT: Final = re.compile(r"(\d{4})(\d\d)(\d\d)(?:T(\d\d)(\d\d)(\d\d)?(Z?))?")
_ESCAPES: Final = {"n": "\n", "N": "\n"}
_DAYS: Final = frozenset({"DTSTART", "DTEND", "DUE", "COMPLETED", "EXDATE", "BDAY", "ANNIVERSARY"})
_KINDS: Final = re.compile(r"\b(home|work|cell|mobile|fax|pager|main|iphone|spouse|child|parent|friend|colleague|contact)\b")
"""Of a telephone, an address or a relation, among the parameters."""
_NAME: Final = re.compile(r"^X-WR-CALNAME[^:\n]*:(.*)", re.MULTILINE)
_QUOTED_PRINTABLE: Final = re.compile(r"ENCODING=QUOTED-PRINTABLE", re.IGNORECASE)
_CHARSET: Final = re.compile(r"CHARSET=\"?([\w-]+)", re.IGNORECASE)
_SOFT_BREAKS: Final = re.compile(r"^([^:\n]*ENCODING=QUOTED-PRINTABLE[^:\n]*:(?:.*=\n)+)", re.IGNORECASE | re.MULTILINE)
"""A value of vCard 2.1 that goes on in the next line without a space before it."""


def extract(path: Path, out: Output) -> None:
    """Nothing but time zones and times when somebody is busy is no text."""
    out.engine = "memdir calendar"
    text = decode(path.read_bytes())
    called = _NAME.search("" if text is None else text.text)
    out.title = called[1].strip() if called else ""
    count = 0
    for fields in _entries("" if text is None else text.text):
        count += 1
        if count > _ENTRIES_MAX:
            out.truncated = True
            break
        titles = (value for wanted in _TITLES for name, value in fields if name == wanted and value)
        out.heading(2, next(titles, "(without a title)"))
        for name, value in fields:
            if _SHOWN[name]:
                out.item(f"{_SHOWN[name]}: {value}")
        out.end_list()
        out.progress(count, 0)
    out.fact("entries", count)


def _entries(text: str) -> Iterator[list[tuple[str, str]]]:
    """Names and values of the fields of each entry that are shown; what stands in an entry (alarms) is passed over."""
    fields: list[tuple[str, str]] | None = None
    inner = 0
    text = _SOFT_BREAKS.sub(lambda found: found[1].replace("=\n", ""), text.replace("\r\n", "\n"))
    for line in re.sub(r"\n[ \t]", "", text).split("\n"):
        found = _LINE.fullmatch(line)
        if found is None:
            continue
        name, parameters, value = found[1].upper(), found[2], found[3]
        if name == "BEGIN" and value.strip().upper() in _ENTRY and fields is None:
            fields, inner = [], 0
        elif name == "BEGIN":
            inner += fields is not None
        elif name == "END" and inner:
            inner -= 1
        elif name == "END" and fields is not None:
            yield fields
            fields = None
        elif fields is not None and not inner and name in _SHOWN and value.strip():
            fields.append((name, _shown(name, parameters, value)))


def _shown(name: str, parameters: str, value: str) -> str:
    if _QUOTED_PRINTABLE.search(parameters):
        value = _unquoted(value, _CHARSET.search(parameters))
    text = re.sub(r"\\(.)", lambda escape: _ESCAPES.get(escape[1], escape[1]), value).strip()
    moment = _MOMENT.fullmatch(text) if name in _DAYS else None
    if moment is not None:
        day = f"{moment[1]}-{moment[2]}-{moment[3]}"
        zone = re.search(r"TZID=\"?([^;:\"]+)", parameters)
        text = f"{day} {moment[4]}:{moment[5]}" if moment[4] else day
        text += " UTC" if moment[7] else f" {zone[1]}" if zone and moment[4] else ""
    if name in ("ORGANIZER", "ATTENDEE"):
        called = re.search(r"CN=\"?([^;:\"]+)", parameters)
        address = text.removeprefix("mailto:").removeprefix("MAILTO:")
        text = f"{called[1]} <{address}>" if called else address
    if name == "N":  # family, given, middle, before, behind
        family, given, *others = [*text.split(";"), ""]
        return " ".join(filter(None, (given, *others, family)))
    if name in ("ADR", "ORG"):
        text = ", ".join(part for part in text.split(";") if part)
    kinds = ", ".join(dict.fromkeys(_KINDS.findall(parameters.lower()))) if name in ("TEL", "EMAIL", "ADR", "RELATED") else ""
    return f"{text} ({kinds})" if kinds and text else text


def _unquoted(value: str, charset: re.Match[str] | None) -> str:
    data = quopri.decodestring(value.encode("utf-8"))
    try:
        return data.decode(charset[1] if charset else "utf-8", "replace")
    except LookupError:
        return data.decode("utf-8", "replace")
