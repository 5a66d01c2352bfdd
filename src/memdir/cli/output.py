"""Where a command talks: data on standard output, talk on standard error, colours and progress only for a person."""

from __future__ import annotations

import codecs
import os
import sys
import time
from types import TracebackType
from typing import Any, Final

from memdir.cli.text import is_terminal, plural, shortened, visible

_COLOURS: Final = {"path": "35", "line": "32", "bold": "1", "ok": "32", "warn": "33", "fail": "31", "dim": "2", "match": "1;31"}
_PROGRESS_INTERVAL_S: Final = 0.1
_BAR_WIDTH: Final = 24


class Output:
    """The two streams of one command run."""

    def __init__(self, *, json: bool = False) -> None:
        self.json = json
        self.is_terminal = is_terminal(sys.stdout)
        self._colour = self.is_terminal and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"

    def line(self, text: str = "") -> None:
        """One line of data. Callers pass foreign text through `text.visible` or `name` first."""
        sys.stdout.write(text + "\n")

    def document(self, value: Any) -> None:
        """The JSON answer. ASCII only, so that no content can steer a terminal and any encoding works."""
        import json

        sys.stdout.write(json.dumps(value, indent=2 if self.is_terminal else None) + "\n")

    def note(self, text: str) -> None:
        """One line of talk."""
        sys.stderr.write(f"memdir: {visible(text)}\n")

    def name(self, text: str) -> str:
        """A path or name ready for `line`: control characters escaped; other bytes as they are when a program reads."""
        return visible(text, keep_raw_bytes=not self.is_terminal)

    def raw(self, text: str) -> str:
        """A name or a line of a file, byte for byte when a program reads; for a person control characters are escaped."""
        return visible(text) if self.is_terminal else text

    def style(self, text: str, kind: str) -> str:
        """`text` in the colour of `kind`, when colours are wanted."""
        return f"\x1b[{_COLOURS[kind]}m{text}\x1b[0m" if self._colour else text

    def flush(self) -> None:
        sys.stdout.flush()


class Progress:
    """A progress bar on standard error; silent when that is no terminal. Use as a context manager."""

    def __init__(self, label: str, *, noun: str, many: str | None = None) -> None:
        self._label = label
        self._noun = noun
        self._many = many
        self._shown = is_terminal(sys.stderr)
        self._next_s = 0.0
        self._drawn = False

    def update(self, done: int, total: int | None = None, detail: str = "") -> None:
        """Draw again, at most every 0.1 s."""
        now_s = time.monotonic()
        if not self._shown or now_s < self._next_s:
            return
        self._next_s = now_s + _PROGRESS_INTERVAL_S
        counted = plural(done, self._noun, self._many)
        if total:
            filled = min(_BAR_WIDTH * done // total, _BAR_WIDTH)
            counted = f"[{'#' * filled}{'.' * (_BAR_WIDTH - filled)}] {done:,}/{plural(total, self._noun, self._many)}"
        sys.stderr.write(f"\r\x1b[K{shortened(f'{self._label} {counted} {visible(detail)}'.rstrip(), 110)}")
        sys.stderr.flush()
        self._drawn = True

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._drawn:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()


def _encode_anyway(error: UnicodeError) -> tuple[str | bytes, int]:
    """Bytes of a file's name go out as they came in; a character that the terminal's encoding lacks is written `\\uNNNN`."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    part = error.object[error.start : error.end]
    raw = bytearray()
    for character in part:
        code = ord(character)
        raw += bytes([code - 0xDC00]) if 0xDC80 <= code <= 0xDCFF else character.encode("ascii", "backslashreplace")
    return bytes(raw), error.end


def prepare_streams() -> None:
    """Make writing any text possible: nothing a file is called may end a command in a UnicodeEncodeError."""
    codecs.register_error("memdir", _encode_anyway)
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="memdir")
