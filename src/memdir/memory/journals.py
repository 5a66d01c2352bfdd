"""The days of a journal, as people and programs write them above an entry, before it, or in the name of its file. Pure.

English, German, Spanish and French, and dates in digits.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from typing import Final

from memdir.memory.dates import (
    ANY_MONTH,
    ANY_WEEKDAY,
    MONTH,
    MONTHS,
    NUMERIC_DATE,
    WEEKDAYS,
    in_english,
    is_day_first,
    parsed,
    valid_day,
    written_on,
)

_MONTH: Final = f"(?P<month>{MONTH})"
_WEEKDAY_NAME: Final = rf"(?i:{ANY_WEEKDAY}|mon|tue|wed|thu|fri|sat|sun|mo|di|mi|do|fr|sa|so)"
_ANY_WEEKDAY: Final = rf"{_WEEKDAY_NAME}[.,]{{0,2}} (?:(?:den|le|el|the) )?"
_IN_FOLDERS: Final = re.compile(r"/(\d{4})/(\d{2})/(?:\d{4}-\d{2}-)?(\d{2})\b")
_BEFORE_DAY: Final = r"(?:[-*\t ]{0,6}(?:={1,6} ?)?|\t(?i:date|datum|fecha):[ \t]+|[\[<])"
_LINE: Final = re.compile(
    rf"^(?P<mark>#{{1,6}}[ \t]+)?{_BEFORE_DAY}(?P<weekday>{_ANY_WEEKDAY})?(?:(?P<iso>\d{{4}}-\d{{2}}-\d{{2}})"
    r"|(?P<digits>(?P<first>\d{1,2})(?P<stop>[./])(?P<second>\d{1,2})(?P=stop)(?P<short>\d{4}|\d{2}))"
    r"|(?P<padded>\d\d\.\d\d\.)"
    rf"|(?P<day>\d{{1,2}})(?:st|nd|rd|th|er|º)?\.? {_MONTH}\.?(?:,? (?P<year>\d{{4}}))?"
    rf"|{_MONTH.replace('month', 'month2')}\.? (?P<day2>\d{{1,2}})(?:st|nd|rd|th)?(?:,? (?P<year2>\d{{4}}))?)"
    r"(?![\w/]|[.-]\d)(?P<rest>[^\n]*)",
    re.MULTILINE,
)
"""A line that begins with a day, in English (`in_english`)."""
_NOTHING_ELSE: Final = re.compile(
    rf"[ \t:–—*.,-]*(?:{_WEEKDAY_NAME}\b[.,]{{0,2}} ?)?(?:(?:at|um|à|a las)? ?\d{{1,2}}[:.]\d{{2}}"
    r"(?:[:.]\d{2})?(?: ?[AaPp]\.?[Mm]\.?)?(?: ?(?:GMT|UTC|CES?T)?[+-]?\d{0,4})?)?[ \t:–—*.,=\]>)-]*$"
)
"""But a weekday and a time."""
_IN_OTHER_WORDS: Final = re.compile(
    rf"(?:#{{1,6}}[ \t]+)?{_BEFORE_DAY}(?:{_ANY_WEEKDAY})?\d{{1,2}}(?:er|º|\.)? (?:de )?{ANY_MONTH}", re.IGNORECASE
)
_PADDED: Final = re.compile(r"\d\d([./])\d\d\1\d\d")
"""A short year stands in what is no number of a version."""
_SOME_YEAR: Final = re.compile(r"\b(?:19|20)\d\d\b")
_HEADING_OR_DAY: Final = re.compile(
    rf"^(?:(?P<mark>#{{1,6}})[ \t]|{_BEFORE_DAY}(?:{_ANY_WEEKDAY})?(?:\d{{1,4}}|[A-Z][a-z]{{2,8}} \d)"
    rf"|[*_]{{0,3}}{_WEEKDAY_NAME}\.?:?[*_]{{0,3}}:?[ \t]*$)[^\n]*",
    re.MULTILINE,
)
_WEEK_NAME: Final = re.compile(r"(?<!\d)(?P<year>\d{4})-?W(?P<week>\d\d)(?!\d)", re.IGNORECASE)
_WEEK: Final = re.compile(
    r"^#{1,6}[ \t].*?\b(?:(?P<iso>\d{4})-?W|(?:calendar )?(?:week|wk|kw|woche|semaine|semana)[ .-]{0,2})(?P<week>\d{1,2})\b"
    r"(?:\D{0,3}(?P<year>(?:19|20)\d\d)\b)?",
    re.IGNORECASE,
)
"""A heading of a calendar week, as ISO 8601 counts them."""
_RECENT_WEEK_DAYS: Final = 27
_WEEKDAY_ALONE: Final = re.compile(r"(?P<mark>#{1,6}[ \t]+)?[*_]{0,3}(?P<name>[^\W\d_]+)\.?:?[*_]{0,3}:?[ \t]*$")
_WEEKDAY_NUMBERS: Final = WEEKDAYS | {
    name: number
    for number, names in enumerate(
        ("mon mo lun", "tue tues di mar", "wed mi mer mié", "thu thur thurs do jeu jue", "fri fr ven vie", "sat sa sam sáb",
         "sun so dim dom")
    )
    for name in names.split()
}  # fmt: skip
"""With the short ones, which a heading in a note of a week may be."""
_WRAPPED_MIN: Final = 40
"""Characters of a line of prose that goes on below."""
_DAY_LINE_CHARS: Final = 200
_BARE_LEVEL: Final = 7  # of a line that is nothing but a day: it dates what follows, up to the next heading


def named_by(path: str) -> date | None:
    """The day in the name of a file (`2026-03-01.md`, `20260301 notes.txt`, `1 March 2026.md`, `202603011412 An idea.md`) or in
    its folders (`2026/03/01.md`); of a week (`2026-W47.md`) its Monday."""
    if (week := week_of(path)) is not None:
        return week
    name = path.rpartition("/")[2]
    found = NUMERIC_DATE.search(name) or _IN_FOLDERS.search(path)
    if found is not None:
        return valid_day(*map(int, found.groups()))
    written = _day_in(name.rpartition(".")[0] or name)
    return None if written is None else _day_of_line(written)


def week_of(path: str) -> date | None:
    """The Monday of the week that a file is called after."""
    found = _WEEK_NAME.search(path.rpartition("/")[2])
    return None if found is None else _monday(int(found["year"]), int(found["week"]))


class Journal:
    """The days of a text whose lines say some: what stands below a heading with a day, or on a line that begins with one."""

    def __init__(self, text: str, written: date | None = None, week: date | None = None) -> None:
        """`written`: when the text was. See `_days_of` for days without a year. `week`: the Monday of its week."""
        self._starts: list[int] = []
        self._days: list[date | None] = []  # of what stands from there on
        section: date | None = None
        level = 0
        lines = [(line, _day_in(line[0][:_DAY_LINE_CHARS])) for line in _HEADING_OR_DAY.finditer(text)]
        for (line, found), day in zip(lines, _of_weeks(lines, _days_of(lines, written), written, week), strict=True):
            depth = len(line["mark"] or "") or _BARE_LEVEL
            if line["mark"]:
                if day is not None or depth <= level:
                    section, level = day, depth
                self._put(line.start(), section)
            elif day is not None and (found is None or _NOTHING_ELSE.match(found["rest"]) is not None):
                if _goes_on(text, line.start()):
                    continue
                section, level = day, depth
                self._put(line.start(), section)
            elif day is not None:
                self._put(line.start(), day)
                self._put(line.end(), section)

    def day_at(self, position: int) -> date | None:
        """The day that the statement at a character is of."""
        at = bisect_right(self._starts, position) - 1
        return None if at < 0 else self._days[at]

    @property
    def is_newest_first(self) -> bool:
        """Whether its days go backwards."""
        days = [day for day in self._days if day is not None]
        return len(days) > 1 and days[0] > days[-1]

    def _put(self, start: int, day: date | None) -> None:
        self._starts.append(start)
        self._days.append(day)


def is_day(text: str) -> bool:
    """Whether it is a day and nothing else, as of a heading."""
    return (found := _day_in(text)) is not None and _NOTHING_ELSE.match(found["rest"]) is not None


def _goes_on(text: str, start: int) -> bool:
    """Whether the line above ends in the middle of a sentence, which the day belongs to."""
    end = max(start - 1, 0)
    above = text[text.rfind("\n", 0, end) + 1 : end].strip()
    return above[-1:].isalpha() and len(above) > _WRAPPED_MIN


def _day_in(line: str) -> re.Match[str] | None:
    """With which a line begins."""
    return _LINE.match(in_english(line) if _IN_OTHER_WORDS.match(line) else line)


def _days_of(lines: Sequence[tuple[re.Match[str], re.Match[str] | None]], written: date | None) -> list[date | None]:
    """Of each line of a journal. One without a year is the last before the day that comes next in time: below in the text, or
    above, where the newest stands first and all so lie closer together. The year of a heading counts for what stands below, and
    none is later than when the text was `written`."""
    day_first = is_day_first(" ".join(found["digits"] for _, found in lines if found is not None and found["digits"]))
    days: list[date | None] = []
    without: dict[int, tuple[int, int]] = {}
    year: int | None = None
    for line, found in lines:
        day = None if found is None else _day_of_line(found, day_first=day_first)
        named = None if found is None or day is not None else _without_year(found)
        if named is not None and year is not None:
            day = valid_day(year, *named)
        elif named is not None:
            without[len(days)] = named
        elif day is None and line["mark"] and (said := _SOME_YEAR.search(line[0])) is not None:
            year = int(said[0])
        days.append(day)
    if written is None or not without:
        return days
    orders = [_in_order(days, without, written, order) for order in (range(len(lines) - 1, -1, -1), range(len(lines)))]
    return min(orders, key=lambda one: _span([one[at] for at in without]))


def _of_weeks(
    lines: Sequence[tuple[re.Match[str], re.Match[str] | None]],
    days: Sequence[date | None],
    written: date | None,
    week: date | None,
) -> list[date | None]:
    """With the weekdays that stand alone on a line, of the `week` that the text is of or a heading above names."""
    found = list(days)
    mondays = _weeks_named([line[0] for line, _ in lines], written, week)
    for at, (line, _) in enumerate(lines):
        if at in mondays:
            week = mondays[at]
        elif found[at] is None and week is not None and (alone := _WEEKDAY_ALONE.match(line[0])) is not None:
            number = _WEEKDAY_NUMBERS.get(alone["name"].casefold())
            found[at] = None if number is None else week + timedelta(days=number)
    return found


def _weeks_named(lines: Sequence[str], written: date | None, week: date | None) -> dict[int, date | None]:
    """The Mondays of the weeks that lines name, by number of the line. One without a year is of the year of `week`, else the
    last before the text was `written`, if one of them is of about that time: "Week 3" of a plan or a course is none of the
    year."""
    mondays: dict[int, date | None] = {}
    without_year: dict[int, date | None] = {}
    for at, line in enumerate(lines):
        found = _WEEK.match(line)
        if found is None:
            continue
        number = int(found["week"])
        year = found["iso"] or found["year"] or (None if week is None else week.isocalendar().year)
        if year is not None:
            mondays[at] = _monday(int(year), number)
        elif written is not None:
            monday = _monday(written.year, number)
            without_year[at] = _monday(written.year - 1, number) if monday is not None and monday > written else monday
    ages = [(written - monday).days for monday in without_year.values() if written is not None and monday is not None]
    return mondays | without_year if ages and min(ages) <= _RECENT_WEEK_DAYS else mondays


def _monday(year: int, week: int) -> date | None:
    try:
        return date.fromisocalendar(year, week, 1)
    except ValueError:
        return None


def _in_order(
    days: Sequence[date | None], without: Mapping[int, tuple[int, int]], written: date, order: range
) -> list[date | None]:
    """With the days that have no year, from the last one in time on."""
    found, bound = list(days), written
    for at in order:
        if at in without:
            possible = (valid_day(bound.year - back, *without[at]) for back in range(5))
            found[at] = next((one for one in possible if one is not None and one <= bound), None)
        bound = min(found[at] or bound, written)
    return found


def _span(days: Sequence[date | None]) -> int:
    known = [day.toordinal() for day in days if day is not None]
    return max(known, default=0) - min(known, default=0)


def _day_of_line(found: re.Match[str], *, day_first: bool | None = None) -> date | None:
    """Of `_LINE`; None without a year."""
    if found["iso"]:
        return parsed(found["iso"])
    if found["digits"]:
        if len(found["short"]) == 2 and _PADDED.fullmatch(found["digits"]) is None:
            return None
        return written_on(found["digits"], day_first=day_first)
    year = found["year"] or found["year2"]
    return None if year is None else valid_day(int(year), *_named(found))


def _without_year(found: re.Match[str]) -> tuple[int, int] | None:
    """The month and the day of a line that is nothing else."""
    if found["iso"] or found["digits"] or found["year"] or found["year2"] or _NOTHING_ELSE.match(found["rest"]) is None:
        return None
    if not found["padded"]:
        return _named(found)
    day, month = map(int, found["padded"].split(".")[:2])
    return (month, day) if found["mark"] or found["weekday"] else None


def _named(found: re.Match[str]) -> tuple[int, int]:
    return MONTHS.index((found["month"] or found["month2"])[:3].casefold()) + 1, int(found["day"] or found["day2"])
