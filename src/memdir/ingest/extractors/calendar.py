"""Calendars (iCalendar, RFC 5545) and address cards (vCard, RFC 6350): each entry as a list of what it says."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from memdir.ingest.extractors.output import ExtractionError, Output
from memdir.ingest.text import decode

_ENTRIES_MAX: Final = 100_000
_LINE: Final = re.compile(r"(?:[\w-]+\.)?([\w-]+)((?:;[^:\"]*(?:\"[^\"]*\"[^:\"]*)*)?):(.*)", re.DOTALL)
_SHOWN: Final = {
    "SUMMARY": "", "DTSTART": "Start", "DTEND": "End", "DUE": "Due", "RRULE": "Repeats", "LOCATION": "Place",
    "ORGANIZER": "Organizer", "ATTENDEE": "Attendee", "STATUS": "Status", "DESCRIPTION": "Description", "URL": "Address",
    "FN": "", "ORG": "Organisation", "TITLE": "Title", "TEL": "Telephone", "EMAIL": "Mail", "ADR": "Postal address",
    "BDAY": "Birthday", "NOTE": "Note",
}  # fmt: skip
"""Fields and what they are called; those without a name are the heading."""
_ENTRY: Final = frozenset({"VEVENT", "VTODO", "VJOURNAL", "VCARD"})
_MOMENT: Final = re.compile(r"(\d{4})(\d\d)(\d\d)(?:T(\d\d)(\d\d)(\d\d)?(Z?))?")
_ESCAPES: Final = {"n": "\n", "N": "\n"}


def extract(path: Path, out: Output) -> None:
    """ExtractionError when there is no entry in it."""
    out.engine = "memdir calendar"
    text = decode(path.read_bytes())
    count = 0
    for fields in _entries("" if text is None else text.text):
        count += 1
        if count > _ENTRIES_MAX:
            out.truncated = True
            break
        out.heading(2, next((value for name, value in fields if not _SHOWN[name]), "(without a title)"))
        for name, value in fields:
            if _SHOWN[name]:
                out.item(f"{_SHOWN[name]}: {value}")
        out.end_list()
        out.progress(count, 0)
    if not count:
        raise ExtractionError("there is no entry in it")
    out.fact("entries", count)


def _entries(text: str) -> Iterator[list[tuple[str, str]]]:
    """Names and values of the fields of each entry that are shown; what stands in an entry (alarms) is passed over."""
    fields: list[tuple[str, str]] | None = None
    inner = 0
    for line in re.sub(r"\r?\n[ \t]", "", text).splitlines():
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
    text = re.sub(r"\\(.)", lambda escape: _ESCAPES.get(escape[1], escape[1]), value).strip()
    moment = _MOMENT.fullmatch(text) if name in ("DTSTART", "DTEND", "DUE", "BDAY") else None
    if moment is not None:
        day = f"{moment[1]}-{moment[2]}-{moment[3]}"
        zone = re.search(r"TZID=\"?([^;:\"]+)", parameters)
        text = f"{day} {moment[4]}:{moment[5]}" if moment[4] else day
        text += " UTC" if moment[7] else f" {zone[1]}" if zone and moment[4] else ""
    if name in ("ORGANIZER", "ATTENDEE"):
        called = re.search(r"CN=\"?([^;:\"]+)", parameters)
        address = text.removeprefix("mailto:").removeprefix("MAILTO:")
        text = f"{called[1]} <{address}>" if called else address
    return ", ".join(part for part in text.split(";") if part) if name in ("ADR", "ORG") else text
