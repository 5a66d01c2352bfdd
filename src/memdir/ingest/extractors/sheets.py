"""Spreadsheets (.xlsx, .xlsb, .xls, .ods) by calamine: each sheet a table, each row with its number."""

from __future__ import annotations

import contextlib
import datetime
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import olefile
import python_calamine as calamine

from memdir.ingest.extractors import old_sheet_notes, ole_objects, opendocument, packages, sheet_notes
from memdir.ingest.extractors.formats import ODS
from memdir.ingest.extractors.output import ExtractionError, Output, encrypted, number_text

_SHEETS_MAX: Final = 1_000
_TOLD_EVERY: Final = 5_000
_ZIP: Final = b"PK\x03\x04"
_FILE_PASS: Final = 0x2F
_FIRST_BYTES: Final = 4096


def extract(path: Path, out: Output) -> None:
    """ExtractionError when it is encrypted or damaged."""
    out.engine = f"calamine {version('python-calamine')}"
    with path.open("rb") as handle:
        zipped = handle.read(4) == _ZIP
    if zipped:
        packages.properties(path, out)
    try:
        book = calamine.load_workbook(str(path))
    except calamine.PasswordError:
        raise encrypted() from None
    except (calamine.CalamineError, OSError, ValueError) as error:
        if out.media_type == ODS.media_type:  # calamine wants it without spaces between the cells
            opendocument.extract(path, out)
            return
        raise (encrypted() if not zipped and _wants_password(path) else _damaged()) from error
    names = book.sheet_names[:_SHEETS_MAX]
    out.truncated = len(names) < len(book.sheet_names)
    out.fact("sheets", len(book.sheet_names))
    unread = 0
    beside = sheet_notes.notes(path) if zipped else old_sheet_notes.notes(path)
    for number, name in enumerate(names, start=1):
        try:
            sheet = book.get_sheet_by_name(name)
        except (calamine.CalamineError, OSError, ValueError):
            unread += 1
            out.paragraph(f"(Sheet {name} could not be read.)")
            continue
        if sheet.start is not None or name in beside:
            out.heading(2, f"Sheet: {name}")
        addresses: set[str] = set()
        if sheet.start is not None:
            out.table(_rows(sheet, out, addresses))
        lines = (line for line in beside.get(name, ()) if line.rpartition(" ")[2] not in addresses)
        out.paragraph("\n".join(f"- {line}" for line in lines))
        out.progress(number, len(names))
    if unread and unread == len(names):
        raise _damaged()
    if zipped:
        packages.add_pictures(path, ("xl/media/", "Pictures/"), out)
        ole_objects.add_all(path, out)
    else:
        ole_objects.add_stored_in(path, out)


def _wants_password(path: Path) -> bool:
    """Whether there is a FilePass among the first records ([MS-XLS] 2.4.117). Calamine tells it by the name of a file alone."""
    with contextlib.suppress(*ole_objects.FAULTS), olefile.OleFileIO(path) as storage:
        for name in filter(storage.exists, ("Workbook", "Book")):
            head = ole_objects.stream(storage, name)[:_FIRST_BYTES]
            if any(kind == _FILE_PASS for _, kind, _ in old_sheet_notes.records(head)):
                return True
    return False


def _damaged() -> ExtractionError:
    return ExtractionError("it is damaged: no sheet can be opened", hint=packages.DAMAGED_HINT)


def _rows(sheet: Any, out: Output, addresses: set[str]) -> Iterator[list[str]]:
    """`addresses` gets those that stand in cells, so that no link says them again."""
    first = sheet.start[0] + 1
    head = True
    for number, row in enumerate(sheet.to_python(skip_empty_area=True), start=first):
        cells = [_shown(cell) for cell in row]
        addresses.update(cell for cell in cells if "://" in cell)
        if any(cells):
            yield ["row" if head else str(number), *cells]
            head = False
        if number % _TOLD_EVERY == 0:
            out.progress(0, 0)


def _shown(value: Any) -> str:
    """As the program shows it: no `.0` of whole numbers, no midnight of dates."""
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, float):
        return number_text(value)
    if isinstance(value, datetime.datetime):
        return value.date().isoformat() if value.time() == datetime.time() else value.isoformat(" ")
    return str(value)
