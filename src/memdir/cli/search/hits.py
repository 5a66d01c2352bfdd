"""How hits are printed: `path:line:text`, with `path-line-text` for lines around them; on a terminal in colours."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from memdir.cli.text import one_line, shortened

if TYPE_CHECKING:
    from memdir.cli.output import Output

_TERMINAL_TEXT_MAX_CHARS: Final = 240
_COMMON: Final = frozenset(
    """
    a an and are as at be by did do does for from had has have how i in is it its my of on or that the this to was we were what
    when where which who why will with you
    """.split()  # noqa: SIM905
)


class Page:
    """The hits of one search."""

    def __init__(self, out: Output, *, query: str | None, context: bool, raw: bool = False, names: bool = True) -> None:
        """`query`: its words are marked on a terminal. `context`: hits are shown line by line. `raw`: names and lines as they
        are, byte for byte, when a program reads. `names`: whether files are named."""
        self._out = out
        self._context = context
        self._raw = raw
        self._names = names
        words = [] if query is None else [word for word in re.findall(r"\w+", query) if word.casefold() not in _COMMON]
        self._words = (
            re.compile("|".join(map(re.escape, sorted(set(words), key=len, reverse=True))), re.IGNORECASE) if words else None
        )

    def show(self, rows: list[dict[str, Any]], *, explain: bool) -> None:
        """Print them in their order."""
        before: dict[str, Any] | None = None
        for row in rows:
            if self._context:
                goes_on = before is not None and (before["path"], before["end_line"] + 1) == (row["path"], row["start_line"])
                if before is not None and not goes_on:
                    self._out.line(self._out.style("--", "dim"))
                before = row
                self._lines(row)
            else:
                self._line(row)
            if explain:
                signals = " ".join(f"{name}={value:.3f}" for name, value in sorted(row["signals"].items()))
                why = f"{one_line(row['why'])}; " if row.get("why") else ""
                self._out.line(self._out.style(f"    {why}{row['kind']} score={row['score']:.3f} {signals}".rstrip(), "dim"))

    def _line(self, row: dict[str, Any]) -> None:
        first, last = row["start_line"], row["end_line"]
        self._put(row, f"{first}" if last <= first else f"{first}-{last}", row["text"], ":")

    def _lines(self, row: dict[str, Any]) -> None:
        """Each line of a hit by itself; those around what was found with `-`, as grep -C has it."""
        matched = row.get("matched") or [[row["start_line"], row["end_line"]]]
        for number, text in enumerate(str(row["text"]).split("\n"), start=row["start_line"]):
            if number > row["end_line"]:
                break
            found = any(first <= number <= last for first, last in matched)
            self._put(row, str(number), text, ":" if found else "-")

    def _put(self, row: dict[str, Any], place: str, text: str, between: str) -> None:
        out = self._out
        path = out.raw(row["path"]) if self._raw else out.name(row["path"])
        shown = text if self._raw and not out.is_terminal else one_line(text)
        if out.is_terminal:
            shown = shortened(shown, _TERMINAL_TEXT_MAX_CHARS)
            if self._words is not None and between == ":":
                shown = self._words.sub(lambda match: out.style(match[0], "match"), shown)
        mark = "[memory] " if row["kind"] == "memory" else ""
        name = f"{out.style(path, 'path')}{between}" if self._names else ""
        out.line(f"{name}{out.style(place, 'line')}{between}{mark}{shown}")
