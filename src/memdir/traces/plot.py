"""Numbers over sessions as a picture: a row for each, with its name, its line, its least and most. SVG or PNG, made here."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from typing import Final

WIDTH: Final = 720
_ROW: Final = 64
_LEFT: Final = 170
_LINE: Final = 40
"""Height of a line, in a row."""
Rows = Sequence[tuple[str, Sequence[float]]]
"""Names and values."""
_Row = tuple[int, str, str, list[tuple[float, float]]]


def svg(rows: Rows, days: Sequence[str]) -> bytes:
    """Opens without a network."""
    height = _height(rows)
    size = f'width="{WIDTH}" height="{height}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="12">',
        f'<rect {size} fill="white"/>',
    ]
    for top, title, span, points in _rows(rows):
        line = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        parts.append(f'<text x="10" y="{top + 24}">{title}</text>')
        parts.append(f'<text x="{_LEFT - 8}" y="{top + 44}" text-anchor="end" fill="#777" font-size="10">{span}</text>')
        parts.append(f'<polyline points="{line}" fill="none" stroke="#3465a4" stroke-width="1.5"/>')
    if days:
        parts.append(f'<text x="{_LEFT}" y="{height - 10}" fill="#777">{days[0]}</text>')
        parts.append(f'<text x="{WIDTH - 40}" y="{height - 10}" text-anchor="end" fill="#777">{days[-1]}</text>')
    return "\n".join([*parts, "</svg>", ""]).encode()


def png(rows: Rows, days: Sequence[str]) -> bytes:
    """Twice as fine as the SVG."""
    from PIL import Image, ImageDraw, ImageFont

    height = _height(rows)
    image = Image.new("RGB", (2 * WIDTH, 2 * height), "white")
    draw = ImageDraw.Draw(image)
    font, small = ImageFont.load_default(24), ImageFont.load_default(20)
    for top, title, span, points in _rows(rows):
        draw.text((20, 2 * top + 24), title, fill="black", font=font)
        draw.text((2 * _LEFT - 16, 2 * top + 68), span, fill="#777777", font=small, anchor="ra")
        draw.line([(2 * x, 2 * y) for x, y in points], fill="#3465a4", width=3)
    if days:
        draw.text((2 * _LEFT, 2 * height - 40), days[0], fill="#777777", font=small)
        draw.text((2 * WIDTH - 80, 2 * height - 40), days[-1], fill="#777777", font=small, anchor="ra")
    held = io.BytesIO()
    image.save(held, "PNG")
    return held.getvalue()


def _height(rows: Rows) -> int:
    return _ROW * len(rows) + 40


def _rows(rows: Rows) -> Iterator[_Row]:
    """Top, name, from where to where, and the points of the line."""
    for place, (title, values) in enumerate(rows):
        top = place * _ROW + 20
        low, high = min(values, default=0.0), max(values, default=0.0)
        step = (WIDTH - _LEFT - 40) / max(1, len(values) - 1)
        points = [
            (_LEFT + at * step, top + _LINE - (_LINE * (one - low) / (high - low) if high > low else _LINE / 2))
            for at, one in enumerate(values)
        ]  # fmt: skip
        yield top, title, f"{low:.3g} to {high:.3g}", points
