"""What happens once, on a day that its statement names: "My op is on 4 December", "Our flight leaves on 3 January". Pure.

Recent context until that day has come, and fading from then on. English, German, Spanish and French; a weekday alone ("The exam
is on Friday") only of what nobody has every week.
"""

from __future__ import annotations

import re
from datetime import date
from functools import lru_cache
from typing import Final

from memdir.memory.dates import ANY_WEEKDAY, MONTH, in_english, is_told_as_past, next_weekday, planned_for, written_on

_KNOWN: Final = 32_768
_DAY: Final = (
    rf"(?:(?:\d{{1,2}}(?:st|nd|rd|th|er)?\.?(?: of)? {MONTH}\b|{MONTH} \d{{1,2}}(?:st|nd|rd|th)?\b(?!:))(?:,? \d{{4}}\b)?|"
    r"\d{4}-\d\d-\d\d|"
    r"\d{1,2}[./]\d{1,2}[./](?:\d{4}|\d\d)\b)"
)
_DAYS: Final = rf"\b\d{{1,2}}\.?(?: {MONTH})? ?(?:[-–]|to|until|till|bis|au|al) ?(?:the )?{_DAY}"
"""From one to another: "1–14 December"."""
_ON: Final = r"(?:(?:on|for|by|from|until|till|am|den|zum|ab|le|du|el|the|this|next|coming) )*"
_IS: Final = r"(?:\b(?:is|are|will be|ist|sind|est|sont|es|son)|['’](?:s|re))(?: [\w'’-]+){0,4}? "
_HAS: Final = (
    r"\b(?:have|has|got|habe|haben|hat|tengo|tenemos|tiene|j['’]ai|avons|a|ont) (?:got )?"
    r"(?:an?|my|our|his|her|their|another|the|eine?n?|mein\w*|unser\w*|una?|mi|un|une|mon|ma|rendez-vous|cita)\b[^.;]{1,60}? |"
    r"\b(?:habe|haben|hat) (?=am\b)"
)
_GOES: Final = (
    r"\b(?:leaves?|departs?|arrives?|lands?|starts?|begins?|ends?|expires?|runs? out|finish(?:es)?|closes?|takes? place|comes?|"
    r"flies|fly|visits?|gets? (?:back|married)|returns?|renews?|"
    r"geht|findet|fliegt|fliege|fahre|fährt|kommt|läuft|beginnt|endet|sale|llega|empieza|termina|caduca|vuelve|voy|vamos|viajo|"
    r"viaja|part|pars|partons|arrive|commence|finit|expire|a lieu|rentre)\b[^.;]{0,40}? "
)
_BEHIND: Final = r" (?:habe ich|hat \w+|haben wir) (?:eine?n?|mein\w*|unser\w*)\b| (?:flieg|fahr|zieh|reis)(?:e|t|en)\b"
"""What German says behind the day: "Am Freitag habe ich eine Prüfung"."""
_ON_A_DAY: Final = re.compile(rf"(?:{_IS}|{_HAS}|{_GOES}){_ON}(?:{_DAYS}|{_DAY})|\bam {_DAY}(?={_BEHIND})", re.IGNORECASE)
_NAMED_DAY: Final = re.compile(
    rf"(?:\b(?:on|for|until|till|by|due) (?:the )?|(?P<bare>))(?:(?P<days>{_DAYS})|{_DAY})", re.IGNORECASE
)
"""Without a verb that tells it is to come: once where no word tells that it is past."""
_ON_A_WEEKDAY: Final = re.compile(
    rf"(?:(?:{_IS}|{_HAS}|{_GOES}){_ON}|\bam (?=\w+(?:{_BEHIND})))(?P<name>{ANY_WEEKDAY})\b", re.IGNORECASE
)
_ONCE: Final = re.compile(
    r"\b(?:exams?|tests?|parents['’]? evening|interview|surgery|op|operation|appointment|dentist|haircut|jab|vaccination|"
    r"concert|match|conference|viewing|hearing|trial|scan|biopsy|check-?up|deadline|party|wedding|funeral|flight|train|trip|delivery|"
    r"inspection|audit|demo|presentation|launch|graduation|moving day|"
    r"prüfung|klausur|termin|zahnarzt|zahnarzttermin|arzttermin|vorstellungsgespräch|hochzeit|beerdigung|flug|umzug|"
    r"examen|entrevista|cita|dentista|dentiste|boda|vuelo|operación|mudanza|entretien|rendez-vous|opération|mariage|vol|"
    r"déménagement)\b",
    re.IGNORECASE,
)
_AGAIN: Final = re.compile(
    r"\b(?:every|each|always|usually|normally|weekly|monthly|yearly|annual(?:ly)?|born|birthday|anniversary|name day|"
    r"jede[nrsm]?|immer|geboren|geburtstag|jahrestag|hochzeitstag|cada|siempre|todos los|nació|cumpleaños|aniversario|"
    r"chaque|toujours|tous les|née?|anniversaire|since|seit|desde|depuis|was|were)\b",
    re.IGNORECASE,
)
"""What comes every year, or week, and what has been."""
_MAY_NAME_A_DAY: Final = re.compile(rf"\d|{ANY_WEEKDAY}", re.IGNORECASE)
_A_DAY: Final = re.compile(rf"{_DAY}|{ANY_WEEKDAY}", re.IGNORECASE)
"""Of most statements these tell, in a tenth of the time, that nothing is announced."""
_ENTRY: Final = re.compile(rf"(?:{_DAY}|{ANY_WEEKDAY})(?: \([^()]*\))?\s?[:–—-] ", re.IGNORECASE)
"""The day on which it is said, before what is said."""
_YEAR: Final = re.compile(r"\b(?:19|20)\d\d\b|[./]\d\d\b")


@lru_cache(maxsize=_KNOWN)
def appointment_day(statement: str, said: date) -> date | None:
    """The day of what happens once and was still to come when it was `said`; of several days the first. None for all else."""
    if _MAY_NAME_A_DAY.search(statement) is None:
        return None
    text = in_english(statement)
    if _A_DAY.search(text) is None:
        return None
    entry = _ENTRY.match(text)
    text = text if entry is None else text[entry.end() :]
    if _AGAIN.search(text):
        return None
    found = _ON_A_DAY.search(text)
    if found is None and not is_told_as_past(text):
        found = _NAMED_DAY.search(text)
        if found is not None and found["bare"] is not None and not found["days"] and _ONCE.search(text) is None:
            found = None
    if found is not None:
        written = written_on(found[0], day_first=True) if _YEAR.search(found[0]) else None
        day = written or planned_for(text, said)
        return day if day >= said else None
    weekday = _ON_A_WEEKDAY.search(text)
    if weekday is None or _ONCE.search(text) is None:
        return None
    return next_weekday(weekday["name"], said)
