"""Since when a statement holds: dates in file names, in headings of journals and in the statement itself. Pure.

Days are UTC days in milliseconds of the epoch. English, and dates in digits (ISO 8601) in any language.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from typing import Final

DAY_MS: Final = 86_400_000
_KNOWN: Final = 32_768
_YEARS: Final = range(1900, 2101)
MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
MONTH: Final = (
    r"(?:Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?|Sept?(?:ember)?|"
    r"Oct(?:ober)?|Nov(?:ember)?|Dec(?:ember)?)"
)
_MONTH: Final = f"(?P<month>{MONTH})"
ANY_MONTH: Final = (
    r"(?:jan|feb|fév|mär|mar|apr|abr|avr|may|mai|jun|jui|jul|aug|ago|aoû|sep|o[ck]t|nov|de[cz]|déc|ene|dic)[a-zéû]*"
)
"""In English, German, Spanish or French."""
WEEKDAY: Final = r"(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day"
WEEKDAYS: Final = {
    name: number
    for number, names in enumerate(
        (
            "monday montag lundi lunes",
            "tuesday dienstag mardi martes",
            "wednesday mittwoch mercredi miércoles",
            "thursday donnerstag jeudi jueves",
            "friday freitag vendredi viernes",
            "saturday samstag sonnabend samedi sábado",
            "sunday sonntag dimanche domingo",
        )
    )
    for name in names.split()
}
"""Their numbers, from 0."""
ANY_WEEKDAY: Final = f"(?:{'|'.join(WEEKDAYS)})"
"""In English, German, French or Spanish."""
NUMERIC_DATE: Final = re.compile(r"(?<!\d)(\d{4})[-_.]?(\d{2})[-_.]?(\d{2})(?:\d{4}(?:\d{2})?)?(?!\d)")
DATE: Final = re.compile(
    r"\b\d{4}-\d{2}-\d{2}\b|\b\d{1,2}[./]\d{1,2}[./]\d{4}\b"
    r"|\b\d{1,2}\.? (?:January|February|March|April|May|June|July|August|September|October|November|December)\b"
)
"""A day within a statement."""
DAY_PREFIX: Final = re.compile(
    r"(?:\d{1,2}\.\d{1,2}\.\d{4}|"
    rf"\d{{4}}-\d\d(?:-\d\d)?|\d{{1,2}}\.? [A-Z][a-z]{{2,8}}|[A-Z][a-z]{{2,8}} \d{{1,2}}|{WEEKDAY})\s?[:–—-] "
)
"""A day before a statement, with its year or without: "Nov 3: …"."""
_ISO: Final = re.compile(r"\b(?P<year>\d{4})-(?P<month>\d{2})(?:-(?P<day>\d{2}))?\b")
_NAMED: Final = re.compile(
    rf"\b(?:(?P<day>\d{{1,2}})(?:st|nd|rd|th)?(?: of)? {_MONTH}(?:,? (?P<year>\d{{4}}))?"
    rf"|(?i:in|since|from|as of|last|early|late|mid|on) (?:early |late |mid-?)?{_MONTH.replace('month', 'month2')}"
    r"(?: (?P<day2>\d{1,2})(?:st|nd|rd|th)?\b)?(?:,? (?P<year2>\d{4}))?)\b"
)
_DIGITS: Final = re.compile(r"(?<!\d)(?P<first>\d{1,2})(?P<mark>[./-])(?P<second>\d{1,2})(?P=mark)(?P<year>\d{4}|\d{2})(?!\d)")
_FROM: Final = re.compile(r"\bfrom (?:the )?$", re.IGNORECASE)
_YEAR: Final = re.compile(r"\b(?:in|since|from|as of|during) (?P<year>(?:19|20)\d{2})\b", re.IGNORECASE)
_LENGTH: Final = r"(?P<count>\d{1,3}|a|an|one|two|three|four|five|six|seven|eight|nine|ten) (?P<unit>day|week|month|year)s?"
_AGO: Final = re.compile(rf"\b{_LENGTH} ago\b", re.IGNORECASE)
_LAST: Final = re.compile(
    rf"\b(?P<which>last|this) (?P<unit>week|month|year|{WEEKDAY})\b|\b(?P<day>yesterday)\b", re.IGNORECASE
)
_COUNTS: Final = {
    "a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9,
    "ten": 10,
}  # fmt: skip
_TO_COME: Final = re.compile(
    r"\b(?:will|going to|next|soon|plan(?:s|ning)?|due|booked|turns \d+|leaves|starts|joins|ends|expires)\b"
    r"|\b(?:se casan?|nos (?:casamos|mudamos)|se marient?|heiratet|heiraten)\b"
    r"|\b(?:am|is|are) (?:moving|relocating|joining|starting|leaving|switching)\b"
    r"|['’](?:ll|(?:m|re|s) (?:moving|relocating|joining|starting|leaving|switching))\b",
    re.IGNORECASE,
)
"""Of what is to come no past month is meant."""
_PLANNED_VERB: Final = (
    r"(?:\b(?:am|is|are|will be)|['’](?:m|re|s|ll be)|^)(?: (?:now|also|both|all|finally|officially|probably))* ?\b"
    r"(?:moving|relocating|migrating|joining|starting|beginning|leaving|quitting|switching|changing|selling|buying|stopping|"
    r"giving|cancell?ing|taking|becoming|opening|closing|retiring|returning|rewriting|replacing|dropping|going|"
    r"getting (?:an?|the|my|our|rid))\b"
    r"|\b(?:(?:start|begin|join|move|leave|retire|switch|take|open|close|end)s?|become|becomes|will)\b|\blast day\b.* is\b"
)
_AHEAD: Final = (
    rf"(?<!to )\b(?:next (?:week|month|year|quarter|term|semester|spring|summer|autumn|fall|winter|sprint|{WEEKDAY}|{MONTH})|"
    rf"tomorrow|soon(?! after)|later this \w+|this (?:coming|spring|summer|autumn|fall|winter)|"
    rf"(?:in|on|by|after|before|from|around|at the (?:end|beginning|start) of) (?:early |late |mid-?|the )?"
    rf"(?:{MONTH}\b|{WEEKDAY}\b|\d{{1,2}}(?:st|nd|rd|th)?\.? (?:of )?{MONTH}\b|next\b|new year\b|christmas\b|easter\b|"
    rf"summer\b|holidays\b|month\b|year\b)|is \d{{1,2}}(?:st|nd|rd|th)?\.? {MONTH}\b|is {MONTH} \d|"
    r"in (?:a|an|one|two|three|four|five|six|ten|\d{1,2}|a few|a couple of) (?:days?|weeks?|months?|years?)\b)"
)
_DONE: Final = (
    rf"\b(?:last (?:week|month|year|{WEEKDAY}|{MONTH})|ago|yesterday|already|since|now|quit|left|moved|joined|switched|changed|"
    r"sold|bought)\b"
)
_PAST: Final = r"\b(?:was|were|had|did|worked|lived|used|war|arbeitete|wohnte|trabajé|viví|travaillais|habitais)\b"
_TOLD_AS_PAST: Final = re.compile(
    rf"{_PAST}|\b(?:since|last|got|bought|sold|left|met|took|went|came|began|quit|gave|made|\w+ed|never)\b", re.IGNORECASE
)
"""Of what is over, or holds already: beside it a day without a year is one before."""
_CLAUSE: Final = re.compile(r".*[,;:.!?–—] (?:and |but |so )?(?=(?:I|we|he|she|they|it)\b)", re.IGNORECASE | re.DOTALL)
"""Up to the last one that begins with its own subject: of "Signed it today, I start on 1 December" the start is not past."""
_PLANNED: Final = (
    re.compile(rf"^(?=.*(?:{_PLANNED_VERB}))(?=.*{_AHEAD})(?!.*{_DONE})", re.IGNORECASE),
    re.compile(
        rf"^(?:(?:from|as of|starting|ab|desde|a partir de|dès|à partir d[eu']) ?(?:{ANY_MONTH}|next|\d)|"
        rf"next (?:week|month|year|quarter|term|semester|sprint|season)\b)(?!.*{_PAST})",
        re.IGNORECASE,
    ),
    re.compile(
        r"^(?=.*\b(?:zieh(?:e|t|en)|fäng(?:t|e)|fange|beginn(?:e|t)|wechs(?:le|elt)|heirat(?:e|et|en)|geh(?:e|t) in|"
        r"verl(?:asse|ässt)|start(?:e|et)|quitte|déménage|déménageons|commence|se marie|part|me mudo|se muda|nos mudamos|"
        r"empiez[oa]|se casan?|deja|dejo)\b)"
        r"(?=.*\b(?:im|am|ab|nächste[nrsm]?|en|au mois de|le|el)(?: \d{1,2}(?:\.|er)?)?(?: de)? "
        rf"{ANY_MONTH}\b)(?!.*{_PAST})(?!.*\b(?:seit|depuis|desde|jedes|chaque|cada|immer|h[ae]|hemos|han|"
        r"habe|hat|haben|j['’]ai|avons|ont)\b)",
        re.IGNORECASE,
    ),
)
_MONTH_TO_COME: Final = re.compile(
    rf"\b(?:(?P<day>\d{{1,2}})(?:st|nd|rd|th)?\.? (?:of )?)?{_MONTH}\b(?: (?P<day2>\d{{1,2}})\b(?!:))?(?:,? (?P<year>\d{{4}}))?"
)
_TIMES_TO_COME: Final = ((re.compile(r"\btomorrow\b", re.IGNORECASE), 1), (re.compile(r"\bsoon\b", re.IGNORECASE), 30))
"""With how many days they are off."""
_IN_TIME: Final = re.compile(rf"\bin {_LENGTH}\b", re.IGNORECASE)
_WEEKDAY_TO_COME: Final = re.compile(rf"\b{WEEKDAY}\b")
_SEASONS: Final = {"spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12, "christmas": 12}
_PERIOD_TO_COME: Final = re.compile(
    rf"\b(?:next (?:week|month|quarter|year)|end of (?:the|this) (?:week|month|quarter|year)|new year|{'|'.join(_SEASONS)})\b",
    re.IGNORECASE,
)
_UNIT_DAYS: Final = {"day": 1.0, "week": 7.0, "month": 30.44, "year": 365.25}


def day_of(ms: int) -> date:
    """The UTC day of a moment; the first or last day that a `date` can be for one beyond."""
    return date.fromordinal(min(max(ms // DAY_MS + date(1970, 1, 1).toordinal(), 1), date.max.toordinal()))


def ms_of(day: date) -> int:
    """Its midnight."""
    return int(datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp()) * 1000


def parsed(text: str) -> date | None:
    """The day that a value of front matter begins with, `2026-03-01` or `2026-03-01T10:00`."""
    found = re.match(r"\s*[\"']?(\d{4})-(\d{2})-(\d{2})", text)
    return None if found is None else valid_day(*map(int, found.groups()))


def is_day_first(stamps: str) -> bool | None:
    """Whether `18/11/2026` stands among time stamps, or `11/18/2026`; None where neither does."""
    found = list(_DIGITS.finditer(stamps))
    if any(one["mark"] == "." or int(one["first"]) > 12 for one in found):
        return True
    return False if any(int(one["second"]) > 12 for one in found) else None


def written_on(text: str, *, day_first: bool | None = None) -> date | None:
    """The day that a time stamp or the head of a letter names with its year: `2026-11-18 10:02`, `18 Nov 2026`, `18.11.26`,
    `11/18/2026`; None where day and month could change places and `day_first` does not tell."""
    iso = NUMERIC_DATE.search(text)
    if iso is not None:
        return valid_day(*map(int, iso.groups()))
    found = _NAMED.search(text)
    if found is not None and (found["year"] or found["year2"]):
        return _by_name(text, date.max)
    digits = _DIGITS.search(text)
    if digits is None:
        return None
    first, second = int(digits["first"]), int(digits["second"])
    year = int(digits["year"]) + (2000 if len(digits["year"]) == 2 else 0)
    if first == second:
        day_first = True
    elif day_first is None:
        day_first = is_day_first(digits[0])
    return None if day_first is None else valid_day(year, second, first) if day_first else valid_day(year, first, second)


@lru_cache(maxsize=_KNOWN)
def is_planned(statement: str) -> bool:
    """Whether it says what will be so from a day to come: "I'm moving to Lisbon in May", "I start at Tessera on Monday"."""
    return any(pattern.search(statement) for pattern in _PLANNED)


def is_told_as_past(statement: str) -> bool:
    """Whether a word of it tells that it is over, or holds already."""
    return _TOLD_AS_PAST.search(statement) is not None


def since(statement: str, said: date, *, value: str = "") -> date:
    """From when on a statement holds that was said on a day: the day that it names, where that is not in the future, else
    `said`; of a plan with a `value` the day for which it is. Days in `value` (a birthday, a deadline) are what it is about."""
    planned = bool(value) and said.year in _YEARS and is_planned(statement)
    if not planned and (_TO_COME.search(statement) or is_planned(statement)):
        return said
    text = in_english(statement)
    if value:
        at = text.casefold().find(value)
        text = text if at < 0 else text[:at] + text[at + len(value) :]
    if planned:
        return planned_for(text, said)
    for read in (_by_iso, _by_name, _by_distance, _by_year):
        day = read(text, said)
        if day is not None:
            return day if day <= said else said
    return said


_ENGLISH: Final = (
    (re.compile(r"\b(?:seit|desde|depuis)\b", re.IGNORECASE), "since"),
    (re.compile(r"\b(?:im|en)(?= (?:\d{4}|[A-ZÀ-Þa-zà-ÿ]{3,10}(?: |[.,;]|$)))"), "in"),
    (re.compile(r"\b(?:letzte[nrs]? Woche|la semana pasada|la semaine dernière)\b", re.IGNORECASE), "last week"),
    (re.compile(r"\b(?:letzte[nr]? Monat|el mes pasado|le mois dernier)\b", re.IGNORECASE), "last month"),
    (re.compile(r"\b(?:letztes Jahr|el año pasado|l['’]année dernière|l['’]an dernier)\b", re.IGNORECASE), "last year"),
    (re.compile(r"\b(?:gestern|ayer)\b", re.IGNORECASE), "yesterday"),
    (re.compile(r"\b(?:Januar|Jänner|enero|janvier)\b", re.IGNORECASE), "January"),
    (re.compile(r"\b(?:Februar|febrero|février)\b", re.IGNORECASE), "February"),
    (re.compile(r"\b(?:März|marzo|mars)\b", re.IGNORECASE), "March"),
    (re.compile(r"\b(?:abril|avril)\b", re.IGNORECASE), "April"),
    (re.compile(r"\b(?:Mai|mayo)\b", re.IGNORECASE), "May"),
    (re.compile(r"\b(?:Juni|junio|juin)\b", re.IGNORECASE), "June"),
    (re.compile(r"\b(?:Juli|julio|juillet)\b", re.IGNORECASE), "July"),
    (re.compile(r"\b(?:agosto|août)\b", re.IGNORECASE), "August"),
    (re.compile(r"\b(?:septiembre|septembre)\b", re.IGNORECASE), "September"),
    (re.compile(r"\b(?:Oktober|octubre|octobre)\b", re.IGNORECASE), "October"),
    (re.compile(r"\b(?:noviembre|novembre)\b", re.IGNORECASE), "November"),
    (re.compile(r"\b(?:Dezember|diciembre|décembre)\b", re.IGNORECASE), "December"),
    (re.compile(r"\b(\d{1,2})\. (?=[A-Z])"), r"\1 "),
    (re.compile(r"(?<=\d) de (?=[A-Z])"), " "),
    (re.compile(r"(?<=[a-z]) de (?=\d{4}\b)"), " "),
)
"""Of German, Spanish and French what tells a day."""


def in_english(statement: str) -> str:
    """With English words for months and the like."""
    for pattern, word in _ENGLISH:
        statement = pattern.sub(word, statement)
    return statement


def planned_for(text: str, said: date) -> date:
    """The first day of the time that a plan names, after `said`; a year later where it names none that is known here."""
    iso = _by_iso(text, said)
    if iso is not None and iso > said:
        return iso
    found = _MONTH_TO_COME.search(text)
    if found is not None:
        month, day = MONTHS.index(found["month"][:3].casefold()) + 1, int(found["day"] or found["day2"] or 1)
        years = (int(found["year"]),) if found["year"] else (said.year, said.year + 1)
        named = (valid_day(year, month, day) for year in years)
        return next((one for one in named if one is not None and one > said), said + timedelta(days=1))
    for pattern, days in _TIMES_TO_COME:
        if pattern.search(text):
            return said + timedelta(days=days)
    found = _IN_TIME.search(text)
    if found is not None:
        return said + _length(found)
    found = _WEEKDAY_TO_COME.search(text)
    if found is not None:
        return next_weekday(found[0], said)
    found = _PERIOD_TO_COME.search(text)
    return said + timedelta(days=365) if found is None else _period(found[0].casefold(), said)


def next_weekday(name: str, said: date) -> date:
    """The first day of that name (one of WEEKDAYS) after `said`."""
    return said + timedelta(days=(WEEKDAYS[name.casefold()] - said.weekday()) % 7 or 7)


def _period(name: str, said: date) -> date:
    """When the next such period begins; of a year or month that is named by its end, when it ends."""
    after_year = date(said.year + 1, 1, 1)
    after_month = date(said.year + said.month // 12, said.month % 12 + 1, 1)
    if "week" in name:
        return said + timedelta(days=7 - said.weekday())
    if "month" in name:
        return after_month
    if "quarter" in name:
        month = (said.month - 1) // 3 * 3 + 4
        return after_year if month > len(MONTHS) else date(said.year, month, 1)
    for season, month in _SEASONS.items():
        if season in name:
            begins = date(said.year, month, 1)
            return begins if begins > said else date(said.year + 1, month, 1)
    return after_year


def _by_iso(text: str, said: date) -> date | None:
    del said
    found = _ISO.search(text)
    return None if found is None else valid_day(int(found["year"]), int(found["month"]), int(found["day"] or 1))


def _by_name(text: str, said: date) -> date | None:
    found = _NAMED.search(text)
    if found is None:
        return None
    month = MONTHS.index((found["month"] or found["month2"])[:3].casefold()) + 1
    day = int(found["day"] or found["day2"] or 1)
    year = found["year"] or found["year2"]
    if year is not None:
        return valid_day(int(year), month, day)
    clause = _CLAUSE.match(text[: found.start()])
    may_come = found["day"] is not None and _TOLD_AS_PAST.search(text, clause.end() if clause else 0) is None
    if may_come or _FROM.search(text[: found.start()]) is not None or found[0].casefold().startswith("from"):
        days = [one for year in (said.year - 1, said.year, said.year + 1) if (one := valid_day(year, month, day)) is not None]
        return min(days, key=lambda one: abs(one - said), default=None)
    return next((one for back in (0, 1) if (one := valid_day(said.year - back, month, day)) is not None and one <= said), None)


def _by_distance(text: str, said: date) -> date | None:
    ago = _AGO.search(text)
    if ago is not None:
        return said - _length(ago)
    found = _LAST.search(text)
    if found is None:
        return None
    if found["day"]:
        return said - timedelta(days=1)
    unit, last = found["unit"].casefold(), found["which"].casefold() == "last"
    if unit in WEEKDAYS:
        back = (said.weekday() - WEEKDAYS[unit]) % 7
        return said - timedelta(days=back or (7 if last else 0))
    first = {"week": said - timedelta(days=said.weekday()), "month": said.replace(day=1), "year": date(said.year, 1, 1)}[unit]
    if not last:
        return first
    before = first - timedelta(days=1)
    return {"week": first - timedelta(days=7), "month": before.replace(day=1), "year": date(before.year, 1, 1)}[unit]


def _length(found: re.Match[str]) -> timedelta:
    """Of `_LENGTH`."""
    count = _COUNTS.get(found["count"].casefold()) or int(found["count"])
    return timedelta(days=round(count * _UNIT_DAYS[found["unit"].casefold()]))


def _by_year(text: str, said: date) -> date | None:
    del said
    found = _YEAR.search(text)
    return None if found is None else valid_day(int(found["year"]), 1, 1)


def valid_day(year: int, month: int, day: int) -> date | None:
    try:
        return date(year, month, day) if year in _YEARS else None
    except ValueError:
        return None
