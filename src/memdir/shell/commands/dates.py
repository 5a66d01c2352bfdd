"""Dates as people type them for `date -d` and `touch -d`: a subset of GNU's "Date input formats" (coreutils, chapter 29)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta, timezone, tzinfo
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from memdir.core.errors import UsageError

_MONTHS: Final = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november", "december",
)  # fmt: skip
_DAYS: Final = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_SECONDS: Final = {
    "sec": 1, "second": 1, "min": 60, "minute": 60, "hour": 3600, "day": 86400, "week": 604800, "fortnight": 1209600,
}  # fmt: skip
_WORDS: Final = {"last": -1, "this": 0, "next": 1, "a": 1}
_TEXT_MAX: Final = 200
_AMOUNT_MAX: Final = 10**9

_TOKENS: Final = re.compile(
    r"""\s*(?:
      (?P<epoch>@-?\d{1,18}(?:\.\d{1,9})?)
    | (?P<iso>\d{4}-\d{1,2}-\d{1,2})(?:T(?=\d))?
    | (?P<us>\d{1,2}/\d{1,2}/\d{4})
    | (?P<compact>\d{8})(?!\d)
    | (?P<time>\d{1,2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?)(?:\s*(?P<half>[ap]\.?m\.?)\b)?
    | (?P<zone>z\b|utc?\b|gmt\b|[+-]\d{2}:?\d{2}(?!\d))
    | (?P<relative>[+-]?\s*\d{1,10})\s*
      (?P<unit>(?:sec|second|min|minute|hour|day|week|fortnight|month|year)s?)\b(?P<ago>\s*ago\b)?
    | (?P<spoken>last|this|next|a)\s+(?P<what>[a-z]{3,10}\b)(?P<past>\s*ago\b)?
    | (?P<named>(?P<d1>\d{1,2})[\s-]+(?P<m1>[a-z]{3,9})\.?(?:[\s,-]+(?P<y1>\d{4}))?)(?!:)
    | (?P<monthly>(?P<m2>[a-z]{3,9})\.?\s+(?P<d2>\d{1,2})(?!\d|:)(?:(?:\s*,)?\s+(?P<y2>\d{4})(?!\d|:))?)
    | (?P<word>[a-z]+)
    | (?P<year>\d{4})
    | ,
    )""",
    re.VERBOSE | re.IGNORECASE,
)


def zone(env: Mapping[str, str]) -> tzinfo:
    """The time zone that `TZ` names; UTC without it, or for one that nobody knows."""
    try:
        return ZoneInfo(env.get("TZ", "").removeprefix(":") or "UTC")
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return timezone.utc  # noqa: UP017  one object for both


def parsed_date(text: str, now: datetime) -> datetime:
    """The moment that `text` says, seen from `now` (with a time zone); UsageError for what is no date."""
    wrong = UsageError(f"invalid date '{text[:_TEXT_MAX]}'")
    if len(text) > _TEXT_MAX:
        raise wrong
    reader = _Reader(now)
    at = 0
    while at < len(text.rstrip()):
        match = _TOKENS.match(text, at)
        if match is None or match.end() == at:
            raise wrong
        try:
            reader.take(match)
        except (ValueError, KeyError, OverflowError):
            raise wrong from None
        at = match.end()
    try:
        return reader.result()
    except (ValueError, OverflowError):
        raise wrong from None


class _Reader:
    """Puts together what the parts of a date say."""

    def __init__(self, now: datetime) -> None:
        self._now = now
        self._date: tuple[int, int, int] | None = None
        self._time: tuple[int, int, int, int] | None = None
        self._zone: tzinfo | None = None
        self._epoch: datetime | None = None
        self._months = 0
        self._delta = timedelta()
        self._weekday: tuple[int, int] | None = None

    def take(self, match: re.Match[str]) -> None:
        groups = {name: value for name, value in match.groupdict().items() if value is not None}
        if "epoch" in groups:
            seconds = float(groups["epoch"][1:])
            self._epoch = datetime.fromtimestamp(seconds, timezone.utc).astimezone(self._now.tzinfo)  # noqa: UP017
        elif "iso" in groups:
            year, month, day = map(int, groups["iso"].split("-"))
            self._date = (year, month, day)
        elif "us" in groups:
            month, day, year = map(int, groups["us"].split("/"))
            self._date = (year, month, day)
        elif "compact" in groups:
            digits = groups["compact"]
            self._date = (int(digits[:4]), int(digits[4:6]), int(digits[6:]))
        elif "time" in groups:
            self._take_time(groups["time"], groups.get("half", ""))
        elif "zone" in groups:
            self._zone = _offset(groups["zone"])
        elif "relative" in groups:
            number = int(groups["relative"].replace(" ", ""))
            self._add(-number if "ago" in groups else number, groups["unit"])
        elif "spoken" in groups:
            self._spoken(_WORDS[groups["spoken"].lower()], groups["what"], ago="past" in groups)
        elif "named" in groups:
            self._date = (int(groups.get("y1") or self._now.year), _month(groups["m1"]), int(groups["d1"]))
        elif "monthly" in groups:
            self._date = (int(groups.get("y2") or self._now.year), _month(groups["m2"]), int(groups["d2"]))
        elif "word" in groups:
            self._word(groups["word"].lower())
        elif "year" in groups:
            raise ValueError("a year alone")

    def _take_time(self, text: str, half: str) -> None:
        hour, minute, *rest = text.replace(",", ".").split(":")
        second, _, part = (rest[0] if rest else "0").partition(".")
        hours = int(hour)
        if half:
            hours = hours % 12 + (12 if half[0] in "pP" else 0)
        self._time = (hours, int(minute), int(second), int((part + "000000")[:6]))

    def _add(self, number: int, unit: str) -> None:
        if abs(number) > _AMOUNT_MAX:
            raise OverflowError(number)
        unit = unit.lower().removesuffix("s") if unit.lower() != "s" else unit
        if unit in ("month", "year"):
            self._months += number * (12 if unit == "year" else 1)
        else:
            self._delta += timedelta(seconds=number * _SECONDS[unit])

    def _spoken(self, number: int, what: str, *, ago: bool) -> None:
        unit = what.lower()
        if unit[:3] in _DAYS and unit.removesuffix("s") not in _SECONDS and unit not in ("month", "months"):
            self._weekday = (_DAYS.index(unit[:3]), number)
        else:
            self._add(-number if ago else number, unit)

    def _word(self, word: str) -> None:
        days = {"today": 0, "yesterday": -1, "tomorrow": 1}
        if word in days:
            self._delta += timedelta(days=days[word])
        elif word in ("noon", "midnight"):
            self._time = (12 if word == "noon" else 0, 0, 0, 0)
        elif word[:3] in _DAYS:
            self._weekday = (_DAYS.index(word[:3]), 0)
        elif word not in ("now", "ago", "at", "on"):
            raise ValueError(word)

    def result(self) -> datetime:
        if self._epoch is not None:
            return self._epoch + self._delta
        moment = self._now
        if self._date is not None:
            moment = moment.replace(year=self._date[0], month=self._date[1], day=self._date[2])
        if self._time is not None:
            hour, minute, second, micro = self._time
            moment = moment.replace(hour=hour, minute=minute, second=second, microsecond=micro)
        elif self._date is not None or self._weekday is not None:
            moment = moment.replace(hour=0, minute=0, second=0, microsecond=0)
        if self._zone is not None:
            moment = moment.replace(tzinfo=self._zone)
        if self._months:
            moment = _months_later(moment, self._months)
        moment += self._delta
        if self._weekday is not None:
            day, number = self._weekday
            ahead = (day - moment.weekday()) % 7
            moment += timedelta(days=ahead + 7 * (number - (1 if number > 0 and ahead else 0)))
        return moment.astimezone(self._now.tzinfo)


def _months_later(moment: datetime, months: int) -> datetime:
    """A day that the month has not is counted into the next, as mktime(3) does."""
    years, month = divmod(moment.year * 12 + moment.month - 1 + months, 12)
    return moment.replace(year=years, month=month + 1, day=1) + timedelta(days=moment.day - 1)


def _month(name: str) -> int:
    word = name.lower()
    for number, month in enumerate(_MONTHS, 1):
        if word in (month, month[:3]) or (word == "sept" and number == 9):
            return number
    raise ValueError(name)


def _offset(text: str) -> tzinfo:
    if text[0] not in "+-":
        return timezone.utc  # noqa: UP017
    digits = text[1:].replace(":", "")
    delta = timedelta(hours=int(digits[:2]), minutes=int(digits[2:]))
    return timezone(-delta if text[0] == "-" else delta)


def formatted(moment: datetime, pattern: str) -> str:
    """As strftime(3) in the C locale, with GNU's `%N`, `%s`, `%:z` and the flags `-`, `_`, `0`, `^`."""
    return re.sub(r"%([-_0^#]*)(\d{0,3})(:{0,2}.)", lambda match: _field(moment, *match.groups()), pattern)


def full_time(time_ns: int, where: tzinfo) -> str:
    """`2026-03-01 10:00:00.123456789 +0000`, as `stat`, `diff -u` and `ls --full-time` write it."""
    seconds, rest_ns = divmod(time_ns, 1_000_000_000)
    return formatted(datetime.fromtimestamp(seconds, where), f"%Y-%m-%d %H:%M:%S.{rest_ns:09d} %z")


def _field(moment: datetime, flags: str, width: str, letter: str) -> str:
    special: dict[str, Callable[[], str]] = {
        "s": lambda: str(int(moment.timestamp())),
        "N": lambda: f"{moment.microsecond * 1000:09d}"[: int(width or 9)],
        "P": lambda: moment.strftime("%p").lower(),
        "e": lambda: f"{moment.day:2d}",
        "k": lambda: f"{moment.hour:2d}",
        "l": lambda: f"{moment.hour % 12 or 12:2d}",
        "n": lambda: "\n",
        "t": lambda: "\t",
        "Z": lambda: moment.tzname() or "",
        ":z": lambda: f"{moment:%z}"[:3] + ":" + f"{moment:%z}"[3:5],
        "c": lambda: f"{moment:%a %b} {moment.day:2d} {moment:%H:%M:%S} {moment.year}",
        "x": lambda: f"{moment:%m/%d/%y}",
        "X": lambda: f"{moment:%H:%M:%S}",
        "r": lambda: f"{moment:%I:%M:%S %p}",
        "h": lambda: f"{moment:%b}",
        "C": lambda: f"{moment.year // 100:02d}",
        "q": lambda: str((moment.month + 2) // 3),
        "%": lambda: "%",
    }
    if letter in special:
        text = special[letter]()
    elif letter in "aAbBdDFgGHIjmMpRSTuUVwWyYz":
        text = f"{moment.year:04d}" if letter == "Y" else moment.strftime("%" + letter)
    else:
        return f"%{flags}{width}{letter}"
    if "^" in flags:
        text = text.upper()
    if "-" in flags:
        text = text.lstrip("0 ") or "0"
    elif "_" in flags:
        body = text.lstrip("0") or "0"
        text = body.rjust(len(text))
    elif "0" in flags:
        text = text.replace(" ", "0")
    return text.rjust(int(width), "0") if width and letter != "N" else text
