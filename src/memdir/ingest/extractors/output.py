"""What an extractor makes: Markdown with anchors, facts about the file, and how far it is. Bounded."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

TEXT_MAX_CHARS: Final = 16 << 20
"""Of one file; what comes behind is left out, and said."""
TITLE_MAX_CHARS: Final = 300
FACT_MAX_CHARS: Final = 500
_WHOLE_MAX: Final = 1e15
_BLANK_LINES: Final = re.compile(r"\n{3,}")
_CONTROLS: Final = re.compile(r"[\x00-\x08\x0b\x0e-\x1f\x7f\ud800-\udfff]")
_BREAKS: Final = re.compile(r"\r\n?|\x0c|\u2028|\u2029")


class ExtractionError(Exception):
    """The file cannot be read. `reason` is a sentence about the file for people, `hint` says what to do; `needs` is the engine
    that was not there (ocr, speech), `kind` what the file is, as far as that was found out."""

    def __init__(self, reason: str, *, hint: str = "", needs: str = "", kind: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.hint = hint
        self.needs = needs
        self.kind = kind


def encrypted() -> ExtractionError:
    """The error for a file that wants a password."""
    return ExtractionError("it is encrypted with a password", hint="save a copy without the password beside it")


class OutputFullError(Exception):
    """The text has reached TEXT_MAX_CHARS: the extractor ends here."""


@dataclass(slots=True)
class Output:
    """Collects what one extractor finds. `kind` is the word in the sibling's name; `engine` names the library."""

    kind: str = ""
    media_type: str = ""
    engine: str = ""
    title: str = ""
    progress: Callable[[int, int], None] = lambda _done, _total: None
    """Told after each page, sheet, message or second: how many are done, of how many (0: not known)."""
    recognising: Callable[[], None] = lambda: None
    """Told before text in a picture is recognised, which takes longer and more memory than everything else."""
    first_part: int = 0
    """The parts before it, counted from 0, are for another process: it reads them, or ended in the last of them."""
    facts: dict[str, str | int] = field(default_factory=dict)
    """For the front matter: pages, slides, duration, sender, taken."""
    truncated: bool = False
    needs: str = ""
    """The engine that was not there for a part of the file: ocr, speech."""
    _pieces: list[str] = field(default_factory=list)
    _size: int = 0
    _taken: int = 0

    def heading(self, level: int, text: str) -> None:
        """An anchor or a heading of the file itself."""
        words = " ".join(clean(text).split())
        if words:
            self._add(f"{'#' * min(max(level, 1), 6)} {words}\n\n")

    def paragraph(self, text: str) -> None:
        """Text as it is, lines kept, with an empty line behind it."""
        kept = "\n".join(line.rstrip() for line in clean(text).strip("\n").split("\n")).strip("\n")
        if kept.strip():
            self._add(_BLANK_LINES.sub("\n\n", kept) + "\n\n")

    def item(self, text: str, *, depth: int = 0) -> None:
        """One line of a list."""
        words = " ".join(clean(text).split())
        if words:
            self._add(f"{'  ' * depth}- {words}\n")

    def end_list(self) -> None:
        self._add("\n")

    def table(self, rows: Iterable[Sequence[str]], *, header: bool = True) -> None:
        """A Markdown table; the first row is its head, or an empty one is made. Empty rows are left out."""
        shown = ([cell_text(cell) for cell in cells] for cells in rows)
        line = ""
        for line in table_lines((cells for cells in shown if any(cells)), header=header):
            self._add(line)
        if line:
            self._add("\n")

    def fact(self, name: str, value: str | int | None) -> None:
        """One field of the front matter; nothing for None and an empty text."""
        if isinstance(value, str):
            value = " ".join(clean(value).split())[:FACT_MAX_CHARS]
        if value not in (None, ""):
            self.facts[name] = value

    def text(self) -> str:
        """All of it; ends with one line feed unless it is empty."""
        whole = "".join(self._pieces).rstrip()
        return whole + "\n" if whole else ""

    def new_text(self) -> str:
        """What was added since the last call."""
        begin, self._taken = self._taken, len(self._pieces)
        return "".join(self._pieces[begin:])

    @property
    def is_empty(self) -> bool:
        return not any(piece.strip() for piece in self._pieces)

    def _add(self, piece: str) -> None:
        room = TEXT_MAX_CHARS - self._size
        self._pieces.append(piece[:room])
        self._size += min(len(piece), room)
        if len(piece) > room:
            self.truncated = True
            raise OutputFullError


def clean(text: str) -> str:
    """Without control characters and lone surrogates; every line ends with a line feed."""
    return _CONTROLS.sub("", _BREAKS.sub("\n", text))


def number_text(value: float) -> str:
    """As office programs show it: no `.0` of whole numbers, no 17th digit."""
    return str(int(value)) if value.is_integer() and abs(value) < _WHOLE_MAX else repr(value)


def comment_text(said: str, author: str) -> str:
    """A comment in the line that it is on."""
    return f" [comment{f' of {author}' if author else ''}: {said}]"


def cell_text(text: str) -> str:
    """One cell on one line, with the bar escaped."""
    return " ".join(clean(text).split()).replace("|", "\\|")


def table_lines(rows: Iterable[Sequence[str]], *, header: bool) -> Iterator[str]:
    """The lines of a Markdown table, of cells whose bars are escaped; without a `header` an empty one is made."""
    for number, cells in enumerate(rows):
        if not number:
            yield _row(cells if header else [""] * len(cells))
            yield f"|{' --- |' * len(cells)}\n"
        if number or not header:
            yield _row(cells)


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |\n"
