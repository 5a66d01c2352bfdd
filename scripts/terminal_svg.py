"""Draw a recorded terminal session as an SVG picture: text stays text, no font is embedded, nothing is fetched."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal
from xml.sax.saxutils import escape

Kind = Literal["command", "output", "note"]

COLUMNS: Final = 104
LINES_MAX: Final = 60
_CHAR_WIDTH_PX: Final = 8.4
_LINE_HEIGHT_PX: Final = 19
_PADDING_PX: Final = 20
_TITLE_BAR_PX: Final = 34
_COLOURS: Final[dict[Kind, str]] = {"command": "#f2f4f8", "output": "#b8c0cc", "note": "#7ee2a8"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One line of the session. A command is shown behind a prompt."""

    kind: Kind
    text: str


def columns_of(text: str) -> int:
    """Width on a terminal: East Asian wide characters take two columns."""
    return sum(2 if unicodedata.east_asian_width(letter) in "WF" else 1 for letter in text)


def cut(text: str, columns: int) -> str:
    """The text, or as much of it as fits with an ellipsis behind it."""
    if columns_of(text) <= columns:
        return text
    kept = ""
    for letter in text:
        if columns_of(kept + letter) > columns - 1:
            break
        kept += letter
    return kept + "…"


def render(lines: Sequence[Line], *, title: str) -> str:
    """The whole picture as SVG source. At most LINES_MAX lines are drawn; what is cut is said in the last one."""
    shown = list(lines[:LINES_MAX])
    if len(lines) > LINES_MAX:
        shown[-1] = Line(kind="note", text=f"… {len(lines) - LINES_MAX + 1} more lines")
    width = round(COLUMNS * _CHAR_WIDTH_PX + 2 * _PADDING_PX)
    height = _TITLE_BAR_PX + len(shown) * _LINE_HEIGHT_PX + 2 * _PADDING_PX
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" role="img">',
        f"<title>{escape(title)}</title>",
        f'<rect width="{width}" height="{height}" rx="9" fill="#14171c"/>',
        *(f'<circle cx="{22 + 20 * i}" cy="18" r="6" fill="{c}"/>' for i, c in enumerate(("#ff5f57", "#febc2e", "#28c840"))),
        '<g font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, \'DejaVu Sans Mono\', monospace" font-size="14">',
    ]
    y = _TITLE_BAR_PX + _PADDING_PX
    for line in shown:
        prompt = '<tspan fill="#6cb6ff">$ </tspan>' if line.kind == "command" else ""
        room = COLUMNS - 2 if line.kind == "command" else COLUMNS
        body = escape(cut(line.text.expandtabs(4), room))
        parts.append(f'<text x="{_PADDING_PX}" y="{y}" fill="{_COLOURS[line.kind]}" xml:space="preserve">{prompt}{body}</text>')
        y += _LINE_HEIGHT_PX
    return "\n".join([*parts, "</g>", "</svg>", ""])
