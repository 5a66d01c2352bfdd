"""Charts of office files as tables: DrawingML charts ([ECMA-376] part 1, 21.2) and the newer kinds (waterfall, treemap, funnel;
[MS-ODRAWXML] 2.24.3). What is drawn is read from the values that the file keeps beside the formulas."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from itertools import groupby
from typing import Any, Final

from memdir.ingest.extractors import packages
from memdir.ingest.extractors.output import Output, number_text

RELATIONS: Final = ("chart", "chartEx")
"""Kinds of parts that `add` and `titles` read, by the last word of their relationship."""
_CATEGORIES: Final = ("cat", "xVal", "strDim")
_VALUES: Final = ("val", "yVal", "numDim")
_NUMBERS: Final = ("numCache", "numLit")
_DAY_ZERO: Final = datetime.date(1899, 12, 30)
_DAYS_MAX: Final = 100_000


def add(root: Any, out: Output) -> None:
    """Titles, and the series side by side where they have the same categories."""
    out.paragraph("\n".join(titles(root)))
    for categories, some in groupby(_series(root), key=lambda one: one[1]):
        group = list(some)
        places = sorted({*categories, *(place for _, _, values in group for place in values)})
        head = ["", *(name for name, _, _ in group)]
        rows = ([categories.get(place, ""), *(values.get(place, "") for _, _, values in group)] for place in places)
        out.table([head, *rows])


def titles(root: Any) -> Iterator[str]:
    """A line for the title of the chart, then one for that of each axis."""
    for title in packages.elements(root, "title"):
        said = packages.words_in(title, "t", "v")
        if said:
            yield f"Chart: {said}" if packages.local_name(title.getparent().tag) == "chart" else f"Axis: {said}"


def _series(root: Any) -> Iterator[tuple[str, dict[int, str], dict[int, str]]]:
    """Name, categories and values of each by their place."""
    shared = {one.get("id"): one for one in packages.elements(root, "data")}
    for one in packages.elements(root, "ser", "series"):
        names = [child for child in one if isinstance(child.tag, str) and packages.local_name(child.tag) == "tx"]
        held = [one, *(shared[key.get("val")] for key in packages.elements(one, "dataId") if key.get("val") in shared)]
        yield packages.words_in(names[0], "v") if names else "", _points(held, _CATEGORIES), _points(held, _VALUES)


def _points(held: list[Any], names: tuple[str, ...]) -> dict[int, str]:
    """What a series keeps under one of the names. Several levels (a year, its quarters) at one place stand together."""
    found: dict[int, list[str]] = {}
    for part in held:
        for kept in packages.elements(part, *names):
            is_date = any("yy" in (code.text or "") for code in packages.elements(kept, "formatCode"))
            for point in packages.elements(kept, "pt"):
                said, place = packages.words(point), point.get("idx", "")
                is_number = packages.local_name(point.getparent().tag) in _NUMBERS
                if place.isdecimal():
                    found.setdefault(int(place), []).insert(0, _shown(said, is_date=is_date) if is_number else said)
    return {place: " ".join(said) for place, said in found.items()}


def _shown(number: str, *, is_date: bool) -> str:
    """A day by its date."""
    try:
        value = float(number)
    except ValueError:
        return number
    if is_date and 0 < value < _DAYS_MAX:
        return str(_DAY_ZERO + datetime.timedelta(days=int(value)))
    return number_text(value)
